/*
 * examples/streams.c: a table with a stream, and a mailer that handles all changes since its last
 * run, also when a mail cannot be sent at first.
 *
 *     cc streams.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/streams.h>
#include <holdfast/table.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

struct mailer {
    int failures; /* how often the mail server fails */
    int mails;
};

/* Changes of one shard, those of one item in order. After a failure the same changes come again. */
static enum hf_status mail(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct mailer *mailer = user;

    if (mailer->failures > 0) {
        mailer->failures--;
        printf("the mail server is away\n");
        return hf_scope_fail(s, HF_IO, "the mail server is away");
    }
    for (size_t i = 0; i < len; i++) {
        struct hf_str id = hf_value_str(hf_item_get(changes[i].key, HF_STR("id")));
        struct hf_str state = hf_value_str(hf_item_get(changes[i].new_image, HF_STR("state")));

        printf("order %.*s is %.*s now\n", HF_FMT(id), HF_FMT(state));
        mailer->mails++;
    }
    return HF_OK;
}

/* All that is there now. A service leaves out until_end, and runs until its scope is canceled. */
static enum hf_status mail_all(struct hf_scope *s, struct hf_db *db, struct mailer *mailer)
{
    struct hf_consumer *consumer;
    enum hf_status status =
        hf_consumer_open(s, db, HF_STR("orders"),
                         HF_OPTIONS(hf_consumer_options, .name = HF_STR("mailer"),
                                    .until_end = true, .poll_ms = 50, .backoff_ms = 50),
                         &consumer);

    if (status != HF_OK)
        return status;
    status = hf_consumer_run(s, consumer, mail, mailer);
    hf_consumer_close(consumer);
    return status;
}

static enum hf_status set_state(struct hf_scope *s, struct hf_db *db, const char *order,
                                const char *state)
{
    struct hf_put_item put = {.table = HF_STR("orders"),
                              .item = HF_ITEM(s, HF_S("id", hf_str_from(order)),
                                              HF_S("state", hf_str_from(state)))};

    return hf_put_item(s, db, &put, NULL);
}

int main(void)
{
    const struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    const struct hf_stream_spec stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_IMAGE};
    const struct hf_create_table orders = {.table = HF_STR("orders"),
                                           .attributes = &attribute,
                                           .attributes_len = 1,
                                           .key_schema = &key,
                                           .key_schema_len = 1,
                                           .stream = &stream};
    struct mailer mailer = {.failures = 1};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;

    /* The same with "http://127.0.0.1:8000" or "dynamodb://eu-central-1". */
    if (hf_open(s, HF_STR("embedded:streams.db"), NULL, &db) != HF_OK ||
        hf_table_ensure(s, db, &orders, NULL) != HF_OK ||
        set_state(s, db, "7", "placed") != HF_OK || set_state(s, db, "7", "paid") != HF_OK ||
        mail_all(s, db, &mailer) != HF_OK)
        return complain(s);
    if (mailer.mails != 2)
        return 1;

    /* Later, or after a crash, or on another host: only what is new. */
    if (set_state(s, db, "7", "sent") != HF_OK || mail_all(s, db, &mailer) != HF_OK)
        return complain(s);
    hf_db_close(db);
    hf_scope_free(s);
    return mailer.mails == 3 ? 0 : 1;
}
