/*
 * examples/kv.c: keys and values: a session that expires, settings of a user in a partition,
 * two writers of the same key, a set of tags, and all of it listed and cleared.
 *
 *     cc kv.c $(pkg-config --cflags --libs holdfast-engine) && ./a.out
 */
#include <holdfast/engine.h>
#include <holdfast/kv.h>
#include <holdfast/set.h>

#include <stdio.h>

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

static struct hf_value text(struct hf_scope *s, const char *chars)
{
    return hf_value_make(s, (struct hf_attr)HF_S("", hf_str_from(chars)));
}

/* A key that expires after an hour, and that only the first caller can set. */
static int sessions(struct hf_scope *s, struct hf_db *db)
{
    struct hf_kv_set_options *once =
        HF_OPTIONS(hf_kv_set_options, .if_absent = true, .ttl_s = 3600);
    struct hf_kv_key key = hf_kv_id(HF_STR("user-123"));
    struct hf_kv_entry entry;
    struct hf_kv *kv;
    enum hf_status status;

    if (hf_kv_open(s, db, HF_OPTIONS(hf_kv_options, .space = HF_STR("sessions")), &kv) != HF_OK ||
        hf_kv_set(s, kv, key, text(s, "laptop"), once, NULL) != HF_OK)
        return complain(s);
    status = hf_kv_set(s, kv, key, text(s, "phone"), once, &entry);
    if (status != HF_CONDITION)
        return complain(s);
    printf("there is a session on the %.*s already\n", HF_FMT(hf_value_str(entry.value)));
    hf_kv_close(kv);
    return 0;
}

/* Two writers read the same version: the second one gets HF_CONDITION. */
static int settings(struct hf_scope *s, struct hf_kv *kv)
{
    struct hf_kv_key theme = hf_kv_in(HF_STR("user-123"), HF_STR("settings"), HF_STR("theme"));
    struct hf_kv_entry seen, now;

    if (hf_kv_set(s, kv, theme, text(s, "dark"), NULL, NULL) != HF_OK ||
        hf_kv_get(s, kv, theme, NULL, &seen) != HF_OK ||
        hf_kv_set(s, kv, theme, text(s, "light"),
                  HF_OPTIONS(hf_kv_set_options, .if_version = seen.version), NULL) != HF_OK)
        return complain(s);
    if (hf_kv_set(s, kv, theme, text(s, "blue"),
                  HF_OPTIONS(hf_kv_set_options, .if_version = seen.version), &now) != HF_CONDITION)
        return complain(s);
    printf("it is %.*s now\n", HF_FMT(hf_value_str(now.value)));
    return 0;
}

static int tags(struct hf_scope *s, struct hf_kv *kv)
{
    struct hf_kv_key key = hf_kv_in(HF_STR("user-123"), HF_STR("profile"), HF_STR("tags"));
    struct hf_value known[] = {text(s, "c"), text(s, "sql")},
                    more[] = {text(s, "sql"), text(s, "go")};
    struct hf_set_change change;
    bool contains;

    if (hf_set_add(s, kv, key, known, 2, NULL, NULL) != HF_OK ||
        hf_set_add(s, kv, key, more, 2, NULL, &change) != HF_OK ||
        hf_set_remove(s, kv, key, &known[0], 1, NULL, NULL) != HF_OK ||
        hf_set_contains(s, kv, key, known[1], NULL, &contains) != HF_OK)
        return complain(s);
    printf("%zu tag was new, and sql is %s\n", change.added, contains ? "there" : "missing");
    return 0;
}

/* List everything of one user, in order; then delete it. */
static int leave(struct hf_scope *s, struct hf_kv *kv)
{
    struct hf_kv_range user = {.partition = HF_STR("user-123"), .all_spaces = true};
    struct hf_kv_entry entry;
    struct hf_kv_list *list;
    uint64_t cleared;

    if (hf_kv_list_open(s, kv, &user, NULL, &list) != HF_OK)
        return complain(s);
    for (;;) {
        if (hf_kv_list_next(s, list, &entry) != HF_OK)
            return complain(s);
        if (!entry.value.ptr)
            break;
        printf("%.*s: %.*s\n", HF_FMT(entry.key.space), HF_FMT(entry.key.id));
    }
    hf_kv_list_free(list);
    if (hf_kv_clear(s, kv, &user, NULL, &cleared) != HF_OK)
        return complain(s);
    printf("%d keys are gone\n", (int)cleared);
    return cleared == 2 ? 0 : 1;
}

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_kv *kv;
    struct hf_db *db;
    int failed;

    if (!s || hf_open(s, HF_STR("memory:"), NULL, &db) != HF_OK)
        return 1;
    if (hf_kv_open(s, db, HF_OPTIONS(hf_kv_options, .partitioned = true, .consistent = true),
                   &kv) != HF_OK)
        return complain(s);
    failed = sessions(s, db) || settings(s, kv) || tags(s, kv) || leave(s, kv);
    hf_kv_close(kv);
    hf_db_close(db);
    hf_scope_free(s);
    return failed;
}
