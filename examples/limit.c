/*
 * examples/limit.c: three attempts at a password, with lockouts that grow; requests of a client at
 * an even rate; and mails to an address, never more than two in any minute.
 *
 *     cc limit.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/limit.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* Take `tries` times; how many were allowed, or -1. */
static int take(struct hf_scope *s, struct hf_limit_table *limits, const char *name,
                const struct hf_limit_rule *rule, int tries, struct hf_limit_verdict *last)
{
    int allowed = 0;

    for (int i = 0; i < tries; i++) {
        enum hf_status status = hf_limit_take(s, limits, hf_str_from(name), rule, NULL, last);

        if (status == HF_LIMIT)
            printf("%s\n", hf_scope_error_text(s));
        else if (status != HF_OK)
            return -1;
        allowed += last->allowed;
    }
    return allowed;
}

int main(void)
{
    const struct hf_limit_rule attempts = {.limit = 3, .window_ms = 3600000, .lockout_ms = 60000};
    const struct hf_limit_rule rate = {.kind = HF_LIMIT_RATE,
                                       .limit = 1,
                                       .window_ms = 60000,
                                       .burst = 5};
    const struct hf_limit_rule mails = {.kind = HF_LIMIT_SLIDING, .limit = 2, .window_ms = 60000};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_limit_verdict verdict, mail;
    struct hf_limit_table *limits;
    int logins, requests, sent;
    struct hf_db *db;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    if (hf_limit_table_open(s, db, NULL, &limits) != HF_OK)
        return complain(s);

    logins = take(s, limits, "login/ann", &attempts, 4, &verdict);
    if (logins < 0 || hf_limit_clear(s, limits, HF_STR("login/ann"), NULL) != HF_OK ||
        hf_limit_peek(s, limits, HF_STR("login/ann"), &attempts, NULL, &verdict) != HF_OK)
        return complain(s);
    printf("%d attempts were allowed; forgiven, %llu are\n", logins,
           (unsigned long long)verdict.left);

    requests = take(s, limits, "client/7", &rate, 6, &verdict);
    if (requests < 0)
        return complain(s);
    printf("%d requests at once, then one a minute\n", requests);

    /* A mail that could not be sent does not count. */
    if (take(s, limits, "mail/ann", &mails, 1, &mail) != 1 ||
        hf_limit_refund(s, limits, HF_STR("mail/ann"), &mails, &mail) != HF_OK)
        return complain(s);
    sent = take(s, limits, "mail/ann", &mails, 3, &verdict);
    printf("%d mails\n", sent);

    hf_limit_table_close(limits);
    hf_db_close(db);
    hf_scope_free(s);
    return logins == 3 && requests == 5 && sent == 2 ? 0 : 1;
}
