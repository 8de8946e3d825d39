/*
 * Names of attributes that callers choose: every request of locks, do-once and limits under other
 * names than the usual, names that cannot be, and two programs that name them differently.
 *
 * The names chosen here are reserved words, or no words at all: whoever left out a placeholder would
 * be refused by the database.
 */
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/table.h>

#include "coord/pattern.h"
#include "kit.h"

#define HASH HF_STR("select")
#define SORT HF_STR("a.b c")
#define TTL HF_STR("ttl")

static void drop_table(struct kit *k)
{
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
}

static size_t count_items(struct kit *k)
{
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    struct hf_scan_result result;

    CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
    return result.items_len;
}

/* The item under a key with these names; absent: there is none. */
static struct hf_item item_at(struct kit *k, const char *hash, const char *sort)
{
    const struct hf_attr key[] = {{.name = HASH, .type = HF_TYPE_S, .text = hf_str_from(hash)},
                                  {.name = SORT,
                                   .type = HF_TYPE_S,
                                   .text = hf_str_from(sort ? sort : "")}};
    struct hf_get_item get = {.table = k->table,
                              .key = hf_item_make(k->scope, key, sort ? 2 : 1),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    return got.item;
}

/* When the database may remove it, in seconds; 0: never. Nothing has the usual names. */
static int64_t expires_s(struct kit *k, const char *hash, const char *sort)
{
    struct hf_item item = item_at(k, hash, sort);
    int64_t at = 0;

    CHECK(item.ptr);
    CHECK(!hf_item_get(item, HF_STR("expires")).ptr);
    CHECK(!hf_item_get(item, HF_STR("name")).ptr && !hf_item_get(item, HF_STR("user")).ptr &&
          !hf_item_get(item, HF_STR("key")).ptr);
    (void)hf_value_i64(hf_item_get(item, TTL), &at);
    return at;
}

static void send(struct kit *k, const struct hf_transact_write *actions, size_t len)
{
    struct hf_transact_write_items request = {.actions = actions, .actions_len = len};

    CHECK_OK(hf_transact_write_items(k->scope, k->db, &request, NULL));
}

/* ---- locks ---------------------------------------------------------------------------------- */

static enum hf_status open_lock_table(struct kit *k, struct hf_str hash, struct hf_str expires,
                                      uint32_t forget_s, struct hf_lock_table **locks)
{
    return hf_lock_table_open(k->scope, k->db,
                              HF_OPTIONS(hf_lock_table_options, .table = k->table,
                                         .no_threads = true, .forget_s = forget_s,
                                         .hash_attribute = hash, .expires_attribute = expires),
                              locks);
}

KIT_TEST(names, locks)
{
    struct hf_scope *s = k->scope;
    bool ttl = kit_has(k, HF_FEATURE_TIME_TO_LIVE);
    struct hf_lock_table *ann, *bob;
    struct hf_lock *lock, *other;
    struct hf_lock_info info;
    struct hf_lock_list list;
    size_t broken;

    CHECK_OK(open_lock_table(k, HASH, TTL, ttl ? 60 : 0, &ann));
    CHECK_OK(open_lock_table(k, HASH, TTL, 0, &bob));
    CHECK_OK(hf_lock_try(s, ann, HF_STR("job/1"), NULL, &lock));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, bob, HF_STR("job/1"), NULL, &other));
    CHECK_OK(hf_lock_extend(s, lock, 0));
    CHECK_OK(hf_lock_set_data(s, lock, HF_ITEM(s, HF_N("step", 2))));
    CHECK_OK(hf_lock_inspect(s, bob, HF_STR("job/1"), &info));
    CHECK_STR("job/1", info.name);
    CHECK_INT(0, expires_s(k, "job/1", NULL));
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_INT(ttl ? k->t->wall_us / 1000000 + 60 : 0, expires_s(k, "job/1", NULL));

    /* Whoever takes it again takes the time to live away, though he sets none himself. */
    CHECK_OK(hf_lock_try(s, bob, HF_STR("job/1"), NULL, &lock));
    CHECK_INT(0, expires_s(k, "job/1", NULL));
    CHECK_OK(hf_lock_list(s, ann,
                          HF_OPTIONS(hf_lock_list_options, .prefix = HF_STR("job/"),
                                     .after = HF_STR("none")),
                          &list));
    CHECK_OK(
        hf_lock_list(s, ann, HF_OPTIONS(hf_lock_list_options, .prefix = HF_STR("job/")), &list));
    CHECK_INT(1, list.locks_len);
    CHECK_STR("job/1", list.locks[0].name);
    CHECK_OK(hf_lock_list(s, ann, HF_OPTIONS(hf_lock_list_options, .free_too = true), &list));
    CHECK_INT(1, list.locks_len); /* and no mark */
    CHECK_OK(hf_lock_break(s, ann, HF_STR("job/1"), (struct hf_str){0}, &broken));
    CHECK_INT(1, broken);
    CHECK_STATUS(HF_LOST, hf_lock_extend(s, lock, 0));
    CHECK_STATUS(HF_LOST, hf_lock_release(s, lock));
    hf_lock_table_close(bob);
    hf_lock_table_close(ann);
}

/* The grant is checked under the key as it is named. */
KIT_TEST_TX(names, guards)
{
    struct hf_scope *s = k->scope;
    struct hf_put_item put = {.table = k->other, .item = HF_ITEM(s, HF_S("id", HF_STR("x")))};
    struct hf_transact_write actions[2] = {{.put = &put}};
    struct hf_lock_table *ann;
    struct hf_lock *lock;

    kit_make_table(k, k->other);
    CHECK_OK(open_lock_table(k, HASH, TTL, 0, &ann));
    CHECK_OK(hf_lock_try(s, ann, HF_STR("job"), NULL, &lock));
    CHECK_OK(hf_lock_guard(s, lock, &actions[1]));
    send(k, actions, 2);
    CHECK_OK(hf_lock_release(s, lock));
    hf_lock_table_close(ann);
}

/* ---- do-once -------------------------------------------------------------------------------- */

static enum hf_status open_once_table(struct kit *k, struct hf_str hash, struct hf_str sort,
                                      struct hf_str expires, struct hf_once_table **onces)
{
    return hf_once_table_open(k->scope, k->db,
                              HF_OPTIONS(hf_once_table_options, .table = k->table,
                                         .no_threads = true, .hash_attribute = hash,
                                         .sort_attribute = sort, .expires_attribute = expires),
                              onces);
}

/* With a result that is kept for some time, and with one that stays: all that sets the time to live
 * and all that removes it. */
KIT_TEST(names, once)
{
    struct hf_scope *s = k->scope;
    const struct hf_str ann = HF_STR("ann");
    struct hf_item result = HF_ITEM(s, HF_N("total", 7));
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct hf_once_list list;
    struct hf_once *once;
    bool cleared;

    CHECK_OK(open_once_table(k, HASH, SORT, TTL, &onces));
    for (uint32_t keep_s = 0; keep_s <= 60; keep_s += 60) {
        const struct hf_once_options options = {.size = sizeof(options), .keep_s = keep_s};

        CHECK_OK(hf_once_try(s, onces, ann, HF_STR("pay/1"), &options, &once, &record));
        CHECK(once);
        CHECK_OK(hf_once_renew(s, once));
        CHECK_INT(keep_s > 0, expires_s(k, "ann", "pay/1") > 0);
        CHECK_OK(hf_once_finish(s, once, result));
        hf_once_close(once);
        CHECK_INT(keep_s > 0, expires_s(k, "ann", "pay/1") > 0);
        CHECK_OK(hf_once_try(s, onces, ann, HF_STR("pay/1"), &options, &once, &record));
        CHECK(!once && record.state == HF_ONCE_DONE);
        CHECK_OK(hf_once_mark_done(s, onces, ann, HF_STR("pay/2"), &options, result, &record));
        CHECK(record.did);
        CHECK_INT(keep_s > 0, expires_s(k, "ann", "pay/2") > 0);
        CHECK_OK(hf_once_get(s, onces, ann, HF_STR("pay/2"), &record));
        CHECK_STR("ann", record.user);
        CHECK_STR("pay/2", record.key);
        CHECK_OK(hf_once_list(s, onces, ann,
                              HF_OPTIONS(hf_once_list_options, .prefix = HF_STR("pay/"),
                                         .after = HF_STR("pay/1")),
                              &list));
        CHECK_INT(1, list.records_len);
        CHECK_OK(hf_once_clear(s, onces, ann, HF_STR("pay/1"), &cleared));
        CHECK(cleared && !item_at(k, "ann", "pay/1").ptr);
        CHECK_OK(hf_once_clear(s, onces, ann, HF_STR("pay/2"), &cleared));
        CHECK(cleared);
    }
    CHECK_OK(hf_once_try(s, onces, ann, HF_STR("pay/3"), NULL, &once, &record));
    hf_once_close(once); /* given up */
    CHECK(!item_at(k, "ann", "pay/3").ptr);
    hf_once_table_close(onces);
}

/* What goes into a transaction may outlive the table it came from. */
KIT_TEST_TX(names, actions)
{
    struct hf_scope *s = k->scope;
    const struct hf_limit_rule rule = {.limit = 3, .window_ms = 60000};
    struct hf_once_table *onces;
    struct hf_limit_table *limits;
    struct hf_once_record record;
    struct hf_limit_verdict verdict;
    struct hf_transact_write actions[2];
    struct hf_once *once;

    CHECK_OK(open_once_table(k, HASH, SORT, TTL, &onces));
    CHECK_OK(hf_limit_table_open(s, k->db,
                                 HF_OPTIONS(hf_limit_table_options, .table = k->other,
                                            .hash_attribute = HASH, .expires_attribute = TTL),
                                 &limits));
    CHECK_OK(hf_once_try(s, onces, HF_STR("ann"), HF_STR("pay"), NULL, &once, &record));
    CHECK_OK(hf_once_finish_tx(s, once, (struct hf_item){0}, &actions[0]));
    CHECK_OK(hf_limit_take_tx(s, limits, HF_STR("ann"), &rule, NULL, &actions[1], &verdict));
    hf_limit_table_close(limits);
    send(k, actions, 2);
    hf_once_committed(once);
    hf_once_close(once);
    CHECK_OK(hf_once_get(s, onces, HF_STR("ann"), HF_STR("pay"), &record));
    CHECK(record.state == HF_ONCE_DONE);
    CHECK_OK(hf_once_transact(s, onces, HF_STR("ann"), HF_STR("pay"), NULL, (struct hf_item){0},
                              &actions[1], 1, &record));
    CHECK(!record.did);
    hf_once_table_close(onces);
}

/* ---- limits --------------------------------------------------------------------------------- */

static enum hf_status open_limit_table(struct kit *k, struct hf_str hash, struct hf_str expires,
                                       struct hf_limit_table **limits)
{
    return hf_limit_table_open(k->scope, k->db,
                               HF_OPTIONS(hf_limit_table_options, .table = k->table,
                                          .hash_attribute = hash, .expires_attribute = expires),
                               limits);
}

KIT_TEST(names, limits)
{
    static const struct {
        const char *name;
        struct hf_limit_rule rule;
    } limits_of[] = {
        {"attempts", {.kind = HF_LIMIT_ATTEMPTS, .limit = 2, .window_ms = 60000}},
        {"lockouts",
         {.kind = HF_LIMIT_ATTEMPTS, .limit = 2, .window_ms = 60000, .lockout_ms = 1000}},
        {"fixed", {.kind = HF_LIMIT_FIXED, .limit = 2, .window_ms = 3600000}},
        {"sliding", {.kind = HF_LIMIT_SLIDING, .limit = 2, .window_ms = 60000}},
        {"rate", {.kind = HF_LIMIT_RATE, .limit = 2, .window_ms = 60000}},
    };
    struct hf_scope *s = k->scope;
    struct hf_limit_verdict verdict, denied;
    struct hf_limit_table *limits;

    CHECK_OK(open_limit_table(k, HASH, TTL, &limits));
    for (size_t i = 0; i < ARRAY_LEN(limits_of); i++) {
        struct hf_str name = hf_str_from(limits_of[i].name);
        const struct hf_limit_rule *rule = &limits_of[i].rule;

        CHECK_OK(hf_limit_take(s, limits, name, rule, NULL, &verdict));
        CHECK(expires_s(k, limits_of[i].name, NULL) > k->t->wall_us / 1000000);
        test_advance_ms(k->t, 7000); /* the next slice */
        CHECK_OK(hf_limit_take(s, limits, name, rule, NULL, &verdict));
        CHECK_OK(hf_limit_refund(s, limits, name, rule, &verdict));
        CHECK_OK(hf_limit_peek(s, limits, name, rule, NULL, &verdict));
        CHECK_OK(hf_limit_take(s, limits, name, rule, NULL, &verdict));
        CHECK_STATUS(HF_LIMIT, hf_limit_take(s, limits, name, rule, NULL, &denied));
        CHECK(denied.locked == (rule->lockout_ms > 0));
        CHECK(expires_s(k, limits_of[i].name, NULL) > k->t->wall_us / 1000000);
        CHECK_OK(hf_limit_clear(s, limits, name, NULL));
        CHECK(!item_at(k, limits_of[i].name, NULL).ptr);
    }
    hf_limit_table_close(limits);
}

/* ---- names that cannot be ------------------------------------------------------------------- */

/* All three patterns, with these names; NULL: the usual one. */
static enum hf_status open_named(struct kit *k, size_t pattern, const char *hash, const char *sort,
                                 const char *expires)
{
    struct hf_str h = hash ? hf_str_from(hash) : (struct hf_str){0};
    struct hf_str r = sort ? hf_str_from(sort) : (struct hf_str){0};
    struct hf_str e = expires ? hf_str_from(expires) : (struct hf_str){0};
    struct hf_limit_table *limits = NULL;
    struct hf_once_table *onces = NULL;
    struct hf_lock_table *locks = NULL;
    enum hf_status status = pattern == 0   ? open_lock_table(k, h, e, 0, &locks)
                            : pattern == 1 ? open_once_table(k, h, r, e, &onces)
                                           : open_limit_table(k, h, e, &limits);

    CHECK(status == HF_OK || (!limits && !onces && !locks));
    hf_limit_table_close(limits);
    hf_once_table_close(onces);
    hf_lock_table_close(locks);
    return status;
}

KIT_TEST(names, that_cannot_be)
{
    static const struct {
        size_t pattern;
        const char *hash, *sort, *expires;
        const char *says;
    } bad[] = {
        {0, "", NULL, NULL, "hash_attribute is empty"},
        {0, NULL, NULL, "", "expires_attribute is empty"},
        {1, NULL, "", NULL, "sort_attribute is empty"},
        {2, "", NULL, NULL, "hash_attribute is empty"},
        {0, "x", NULL, "x", "hash_attribute and expires_attribute are both \"x\""},
        {0, "expires", NULL, NULL, "hash_attribute and expires_attribute are both \"expires\""},
        {1, "key", NULL, NULL, "hash_attribute and sort_attribute are both \"key\""},
        {1, NULL, "x", "x", "expires_attribute and sort_attribute are both \"x\""},
        {0, "held", NULL, NULL, "hash_attribute cannot be \"held\""},
        {0, "h:mine", NULL, NULL, "hash_attribute cannot be \"h:mine\""},
        {0, NULL, NULL, "f:", "expires_attribute cannot be \"f:\""},
        {0, NULL, NULL, "holdfast", "expires_attribute cannot be \"holdfast\""},
        {1, "attempt", NULL, NULL, "hash_attribute cannot be \"attempt\""},
        {1, NULL, "until_ms", NULL, "sort_attribute cannot be \"until_ms\""},
        {1, NULL, NULL, "result", "expires_attribute cannot be \"result\""},
        {2, "window", NULL, NULL, "hash_attribute cannot be \"window\""},
        {2, NULL, NULL, "tat_us", "expires_attribute cannot be \"tat_us\""},
        {2, "holdfast", NULL, NULL, "hash_attribute cannot be \"holdfast\""},
    };
    struct hf_describe_table describe = {.table = k->table};
    struct hf_describe_table_result described;
    char longest[257];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_STATUS(HF_INVALID,
                     open_named(k, bad[i].pattern, bad[i].hash, bad[i].sort, bad[i].expires));
        CHECK(strstr(hf_scope_error_text(k->scope), bad[i].says));
    }
    memset(longest, 'n', 256);
    longest[256] = '\0';
    CHECK_STATUS(HF_INVALID, open_named(k, 0, longest, NULL, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "hash_attribute has 256 bytes, more than 255"));
    CHECK_STATUS(HF_INVALID, open_named(k, 0, NULL, NULL, longest));
    CHECK_STATUS(HF_NOT_FOUND, hf_describe_table(k->scope, k->db, &describe, &described));
    longest[255] = '\0';
    CHECK_OK(open_named(k, 0, longest, NULL, NULL));
    CHECK_OK(open_named(k, 0, longest, NULL, NULL));
}

/* ---- others who name them differently ------------------------------------------------------- */

/* The attribute by which items of the table expire; an empty text: none. */
static struct hf_str ttl_of(struct kit *k)
{
    struct hf_describe_time_to_live describe = {.table = k->table};
    struct hf_describe_time_to_live_result result;

    CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &describe, &result));
    return result.description->attribute.ptr ? result.description->attribute : HF_STR("");
}

/* Whoever comes second is refused, whether it is the key that differs or the time to live, and
 * nothing is changed. The usual names are names, too. */
KIT_TEST(names, of_others)
{
    static const char *const expires[] = {NULL, "ttl"};
    bool ttl = kit_has(k, HF_FEATURE_TIME_TO_LIVE);

    for (size_t pattern = 0; pattern < 3; pattern++)
        for (size_t i = 0; i < ARRAY_LEN(expires); i++) {
            struct hf_str before;

            CHECK_OK(open_named(k, pattern, NULL, NULL, expires[i]));
            before = ttl ? ttl_of(k) : HF_STR("");
            CHECK_STATUS(HF_INVALID, open_named(k, pattern, "other", NULL, expires[i]));
            CHECK(strstr(hf_scope_error_text(k->scope), "other"));
            CHECK_STATUS(HF_INVALID, open_named(k, pattern, NULL, NULL, expires[!i]));
            CHECK(strstr(hf_scope_error_text(k->scope), expires[1]));
            if (ttl)
                CHECK(hf_str_equal(before, ttl_of(k)));
            CHECK_INT(1, count_items(k));
            CHECK_OK(open_named(k, pattern, NULL, NULL, expires[i]));
            drop_table(k);
        }
}

/* A time to live that locks do not switch on is named all the same: one who does would set it where
 * another does not remove it. */
KIT_TEST(names, of_locks_that_are_forgotten)
{
    struct hf_lock_table *ann, *bob;

    if (!kit_has(k, HF_FEATURE_TIME_TO_LIVE))
        return;
    CHECK_OK(open_lock_table(k, (struct hf_str){0}, (struct hf_str){0}, 0, &ann));
    CHECK_STATUS(HF_INVALID, open_lock_table(k, (struct hf_str){0}, TTL, 60, &bob));
    CHECK(strstr(hf_scope_error_text(k->scope),
                 "is a table of locks whose time to live is in the attribute \"expires\", not in "
                 "\"ttl\""));
    CHECK(hf_str_equal(HF_STR(""), ttl_of(k)));
    hf_lock_table_close(ann);
}

/* ---- one table for two patterns ------------------------------------------------------------- */

static enum hf_status open_values_at(struct kit *k, const char *hash, const char *sort)
{
    struct hf_kv *kv;
    enum hf_status status =
        hf_kv_open(k->scope, k->db,
                   HF_OPTIONS(hf_kv_options, .table = k->table, .partitioned = sort != NULL,
                              .hash_attribute = hf_str_from(hash),
                              .sort_attribute = hf_str_from(sort ? sort : "sort"), .adopt = true),
                   &kv);

    hf_kv_close(kv);
    return status;
}

static enum hf_status open_outbox(struct kit *k)
{
    struct hf_outbox *outbox;
    enum hf_status status =
        hf_outbox_open(k->scope, k->db, HF_OPTIONS(hf_outbox_options, .table = k->table), &outbox);

    hf_outbox_close(outbox);
    return status;
}

/* Keys that people choose freely would be those of others: chosen names make no such table. */
KIT_TEST(names, no_table_is_shared_by_names)
{
    static const char *const what[] = {"a table of locks", "a do-once table", "a table of limits"};

    for (size_t pattern = 0; pattern < 3; pattern++) {
        const char *sort = pattern == 1 ? "b" : NULL;

        CHECK_OK(open_named(k, pattern, "a", "b", NULL));
        CHECK_STATUS(HF_INVALID, open_values_at(k, "a", sort));
        CHECK(strstr(hf_scope_error_text(k->scope), "is not a table of values: it is a "));
        CHECK(strstr(hf_scope_error_text(k->scope), what[pattern]));
        drop_table(k);
        CHECK_OK(open_values_at(k, "a", sort));
        CHECK_STATUS(HF_INVALID, open_named(k, pattern, "a", "b", NULL));
        CHECK(strstr(hf_scope_error_text(k->scope), "it is a table of values"));
        drop_table(k);
    }
    CHECK_OK(open_outbox(k));
    CHECK_STATUS(HF_INVALID, open_named(k, 1, "pk", "sk", "ttl"));
    CHECK(strstr(hf_scope_error_text(k->scope), "it is an outbox"));
    drop_table(k);
    CHECK_OK(open_named(k, 1, "pk", "sk", "ttl"));
    CHECK_STATUS(HF_INVALID, open_outbox(k));
    CHECK(strstr(hf_scope_error_text(k->scope), "it is a do-once table"));
}
