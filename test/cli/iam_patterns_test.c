/*
 * cli/iam_patterns_test.c: the policies that `holdfast iam lock|kv|counter|once|limit|records|
 * streams` print allow what is called, and nothing that is not.
 *
 * Each role does all that it is for, with a table that it makes, and with one that is there.
 */
#include "iam_gate.h"
#include "steps.h"

#include <holdfast/counter.h>
#include <holdfast/engine.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>
#include <holdfast/records.h>
#include <holdfast/set.h>
#include <holdfast/streams.h>

typedef void work_fn(struct hf_scope *s, struct hf_db *db, bool create);

/*
 * A role that makes its table, and one that finds it, behind their policies. `prepare` (may be
 * NULL) puts something there to work on, and needs no policy.
 */
static void try_role(struct hf_scope *s, struct gate_command command, const char *role,
                     work_fn *make, work_fn *prepare, work_fn *work, const char *more)
{
    for (int create = 0; create <= 1; create++) {
        struct gate gate;
        struct hf_db *db;

        CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
        gate_open(&gate, s, db, command, "--role", role, create ? "--create" : more, more);
        make(s, create ? &gate.base : db, true);
        if (prepare)
            prepare(s, db, false);
        work(s, &gate.base, false);
        gate_check(&gate);
        hf_db_close(db);
    }
}

static void transact(struct hf_scope *s, struct hf_db *db, const struct hf_transact_write *actions,
                     size_t len)
{
    CHECK_OK(hf_transact_write_items(
        s, db, &(struct hf_transact_write_items){.actions = actions, .actions_len = len}, NULL));
}

/* The gate is a gate. */
TEST(iam, what_is_not_in_the_policy_is_denied)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_counters *counters;
    struct gate gate;
    struct hf_db *db;
    int64_t value;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf_counters_open(s, db, NULL, &counters));
    hf_counters_close(counters);
    gate_open(&gate, s, db, IAM(counter), "--role", "reader");
    CHECK_OK(hf_counters_open(s, &gate.base, NULL, &counters));
    CHECK_OK(hf_counter_get(s, counters, hf_counter_named(HF_STR("a")), &value));
    CHECK_INT(0, gate.denied);
    CHECK_STATUS(HF_DENIED, hf_counter_incr(s, counters, hf_counter_named(HF_STR("a")), 1, &value));
    CHECK(gate.denied > 0);
    hf_counters_close(counters);
    gate_open(&gate, s, db, IAM(counter), "--role", "writer", "--table", "others");
    CHECK_STATUS(HF_DENIED, hf_counters_open(s, &gate.base, NULL, &counters));
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- lock ----------------------------------------------------------------------------------- */

static struct hf_lock_table *open_locks(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_lock_table *locks = NULL;

    CHECK_OK(hf_lock_table_open(s, db,
                                HF_OPTIONS(hf_lock_table_options, .no_create = !create,
                                           .no_threads = true, .forget_s = 3600),
                                &locks));
    return locks;
}

static void make_locks(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_lock_table_close(open_locks(s, db, create));
}

static void hold_locks(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_lock_table *locks = open_locks(s, db, create);
    struct hf_transact_write action;
    struct hf_election *election;
    struct hf_lock_info info;
    struct hf_lock *lock, *other;

    CHECK_OK(hf_lock_try(s, locks, HF_STR("a"), NULL, &lock));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, locks, HF_STR("a"), NULL, &other));
    CHECK_OK(hf_lock_extend(s, lock, 0));
    CHECK_OK(hf_lock_set_data(s, lock, HF_ITEM(s, HF_N("n", 1))));
    CHECK_OK(hf_lock_guard(s, lock, &action));
    transact(s, db, &action, 1);
    CHECK_OK(hf_lock_inspect(s, locks, HF_STR("a"), &info));
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_OK(hf_lock_acquire(s, locks, HF_STR("a"), NULL, &lock));
    locks_step(locks);
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_OK(hf_election_open(s, locks, HF_STR("e"), NULL, &election));
    locks_step(locks);
    CHECK(hf_election_leads(election, NULL));
    hf_election_close(election);
    hf_lock_table_close(locks);
}

static void operate_locks(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_lock_table *locks = open_locks(s, db, create);
    struct hf_lock_list list;
    struct hf_lock_info info;
    size_t broken;

    CHECK_OK(hf_lock_list(s, locks, HF_OPTIONS(hf_lock_list_options, .free_too = true), &list));
    CHECK_OK(hf_lock_inspect(s, locks, HF_STR("held"), &info));
    CHECK_OK(hf_lock_break(s, locks, HF_STR("held"), (struct hf_str){0}, &broken));
    CHECK_INT(1, broken);
    hf_lock_table_close(locks);
}

/* Somebody holds "held", and does not come back: the item is as it was while it was held. */
static void leave_lock(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_lock_table *locks = open_locks(s, db, create);
    struct hf_scan_result held;
    struct hf_lock *lock;

    CHECK_OK(hf_lock_try(s, locks, HF_STR("held"), NULL, &lock));
    CHECK_OK(hf_scan(s, db, &(struct hf_scan){.table = HF_STR("locks")}, &held));
    CHECK_OK(hf_lock_release(s, lock));
    for (size_t i = 0; i < held.items_len; i++)
        CHECK_OK(hf_put_item(s, db,
                             &(struct hf_put_item){.table = HF_STR("locks"), .item = held.items[i]},
                             NULL));
    hf_lock_table_close(locks);
}

TEST(iam, policies_of_locks)
{
    struct hf_scope *s = hf_scope_new(NULL);

    try_role(s, IAM(lock), "holder", make_locks, leave_lock, hold_locks, NULL);
    try_role(s, IAM(lock), "operator", make_locks, leave_lock, operate_locks, NULL);
    hf_scope_free(s);
}

/* ---- kv ------------------------------------------------------------------------------------- */

static bool partitioned; /* the tables of keys and counters */
static bool indexed;     /* by namespace */

static struct hf_kv_key key_of(const char *id)
{
    return (struct hf_kv_key){.id = hf_str_from(id),
                              .partition = partitioned ? HF_STR("p") : (struct hf_str){0}};
}

static struct hf_kv *open_kv(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_kv *kv = NULL;

    CHECK_OK(hf_kv_open(s, db,
                        HF_OPTIONS(hf_kv_options, .no_create = !create, .partitioned = partitioned,
                                   .space_index = indexed),
                        &kv));
    return kv;
}

static void make_kv(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_kv_close(open_kv(s, db, create));
}

static void read_keys(struct hf_scope *s, struct hf_db *db, bool create)
{
    const struct hf_kv_key keys[] = {key_of("a"), key_of("b")};
    struct hf_kv *kv = open_kv(s, db, create);
    struct hf_kv_entry entry;
    struct hf_kv_many many;
    struct hf_kv_page page;
    struct hf_set set;
    bool there;

    CHECK_OK(hf_kv_exists(s, kv, key_of("a"), NULL, &there));
    CHECK_OK(hf_kv_get(s, kv, key_of("a"), NULL, &entry));
    CHECK_OK(hf_kv_get_many(s, kv, keys, 2, NULL, &many));
    CHECK_OK(hf_kv_page(s, kv, NULL, HF_OPTIONS(hf_kv_list_options, .consistent = HF_YES), &page));
    if (indexed)
        CHECK_OK(hf_kv_page(s, kv, NULL, NULL, &page));
    if (partitioned)
        CHECK_OK(hf_kv_page(s, kv, &(struct hf_kv_range){.partition = HF_STR("p")}, NULL, &page));
    CHECK_OK(hf_set_get(s, kv, key_of("a"), NULL, &set));
    CHECK_OK(hf_set_contains(s, kv, key_of("a"), hf_value_make(s, (struct hf_attr)HF_N("", 1)),
                             NULL, &there));
    hf_kv_close(kv);
}

static enum hf_status replace(struct hf_scope *s, const struct hf_kv_entry *now,
                              struct hf_value *value, void *user)
{
    (void)now, (void)user;
    *value = hf_value_make(s, (struct hf_attr)HF_N("", 2));
    return HF_OK;
}

static void write_keys(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_kv *kv = open_kv(s, db, create);
    struct hf_value one = hf_value_make(s, (struct hf_attr)HF_N("", 1));
    const struct hf_kv_pair pairs[] = {{.key = key_of("a"), .value = one}, {.key = key_of("b")}};
    struct hf_transact_write actions[2];
    struct hf_kv_entry entry;
    uint64_t cleared;

    hf_kv_close(kv);
    read_keys(s, db, create);
    kv = open_kv(s, db, create);
    CHECK_OK(hf_kv_set(s, kv, key_of("a"), one, NULL, &entry));
    CHECK_OK(
        hf_kv_set(s, kv, key_of("a"), one, HF_OPTIONS(hf_kv_set_options, .blind = true), NULL));
    CHECK_OK(hf_kv_set_many(s, kv, pairs, 2, NULL, NULL));
    CHECK_OK(hf_kv_change(s, kv, key_of("a"), replace, NULL, NULL, &entry));
    CHECK_OK(hf_kv_set_tx(s, kv, key_of("b"), one, NULL, &actions[0], NULL));
    CHECK_OK(hf_kv_check_tx(s, kv, key_of("a"), entry.version, &actions[1]));
    transact(s, db, actions, 2);
    CHECK_OK(hf_kv_delete_tx(s, kv, key_of("b"), NULL, &actions[0]));
    transact(s, db, actions, 1);
    CHECK_OK(hf_kv_delete(s, kv, key_of("a"), NULL, NULL));
    CHECK_OK(hf_set_add(s, kv, key_of("a"), &one, 1, NULL, NULL));
    CHECK_OK(hf_set_remove(s, kv, key_of("a"), &one, 1, NULL, NULL));
    CHECK_OK(hf_kv_set(s, kv, key_of("a"), one, NULL, NULL));
    CHECK_OK(hf_kv_clear(s, kv, NULL, HF_OPTIONS(hf_kv_clear_options, .exact = true), &cleared));
    CHECK_OK(hf_kv_set(s, kv, key_of("a"), one, NULL, NULL));
    CHECK_OK(hf_kv_clear(s, kv, NULL, NULL, &cleared));
    hf_kv_close(kv);
    CHECK_OK(hf_kv_open(s, db,
                        HF_OPTIONS(hf_kv_options, .no_create = true, .no_tombstones = true,
                                   .partitioned = partitioned),
                        &kv));
    CHECK_OK(hf_kv_set(s, kv, key_of("a"), one, NULL, NULL));
    CHECK_OK(hf_kv_delete(s, kv, key_of("a"), NULL, NULL));
    hf_kv_close(kv);
}

static void leave_key(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_kv *kv = open_kv(s, db, create);

    CHECK_OK(
        hf_kv_set(s, kv, key_of("a"), hf_value_make(s, (struct hf_attr)HF_N("", 1)), NULL, NULL));
    hf_kv_close(kv);
}

static void index_keys(struct hf_scope *s, struct hf_db *db, bool create)
{
    uint64_t added;

    CHECK_OK(hf_kv_add_space_index(s, db, HF_OPTIONS(hf_kv_options, .no_create = !create), &added));
    CHECK_INT(1, added);
}

TEST(iam, policies_of_keys_and_values)
{
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i <= 1; i++) {
        partitioned = i;
        try_role(s, IAM(kv), "reader", make_kv, NULL, read_keys, i ? "--partitioned" : NULL);
        try_role(s, IAM(kv), "writer", make_kv, NULL, write_keys, i ? "--partitioned" : NULL);
    }
    partitioned = false;
    indexed = true;
    try_role(s, IAM(kv), "reader", make_kv, NULL, read_keys, "--namespace-index");
    try_role(s, IAM(kv), "writer", make_kv, NULL, write_keys, "--namespace-index");
    indexed = false;
    try_role(s, IAM(kv), "indexer", make_kv, leave_key, index_keys, NULL);
    hf_scope_free(s);
}

/* ---- counter -------------------------------------------------------------------------------- */

static struct hf_counter_key counter_of(const char *id)
{
    return partitioned ? hf_counter_of(HF_STR("p"), hf_str_from(id))
                       : hf_counter_named(hf_str_from(id));
}

static struct hf_counters *open_counters(struct hf_scope *s, struct hf_db *db, bool create,
                                         uint32_t shards)
{
    struct hf_counters *counters = NULL;

    CHECK_OK(hf_counters_open(s, db,
                              HF_OPTIONS(hf_counters_options, .no_create = !create,
                                         .shards = shards, .partitioned = partitioned),
                              &counters));
    return counters;
}

static void make_counters(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_counters_close(open_counters(s, db, create, 1));
}

static void read_counters(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_counter_key keys[] = {counter_of("a"), counter_of("b")};
    struct hf_counter_value values[2];
    struct hf_counter_list list;
    int64_t value;

    for (uint32_t shards = 1; shards <= (partitioned ? 1u : 4u); shards += 3) {
        struct hf_counters *counters = open_counters(s, db, create, shards);

        CHECK_OK(hf_counter_get(s, counters, keys[0], &value));
        CHECK_OK(hf_counter_get_many(s, counters, keys, 2, values));
        CHECK_OK(hf_counter_list(s, counters, NULL, &list));
        if (partitioned)
            CHECK_OK(hf_counter_list(s, counters,
                                     HF_OPTIONS(hf_counter_list_options, .partition = HF_STR("p")),
                                     &list));
        hf_counters_close(counters);
    }
}

static enum hf_status build(struct hf_scope *s, int64_t first, struct hf_transact_write *actions,
                            size_t cap, size_t *len, void *user)
{
    (void)s, (void)first, (void)actions, (void)cap, (void)user;
    *len = 0;
    return HF_OK;
}

static void take_numbers(struct hf_scope *s, struct hf_db *db)
{
    struct hf_counters *counters = open_counters(s, db, false, 1);
    struct hf_transact_write action;
    struct hf_sequence *sequence;
    int64_t number;

    CHECK_OK(hf_sequence_open(s, counters, counter_of("q"), NULL, &sequence));
    CHECK_OK(hf_sequence_next(s, sequence, &number));
    CHECK_OK(hf_sequence_take(s, sequence, 10, &number));
    CHECK_OK(hf_sequence_take_tx(s, sequence, 1, &number, &action));
    transact(s, db, &action, 1);
    CHECK_OK(hf_sequence_commit(s, sequence, 1, build, NULL, &number));
    CHECK_OK(hf_sequence_close(s, sequence));
    hf_counters_close(counters);
}

static void write_counters(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_counter_key key = counter_of("a");
    struct hf_transact_write action;
    int64_t value;
    bool again;

    read_counters(s, db, create);
    for (uint32_t shards = 1; shards <= (partitioned ? 1u : 4u); shards += 3) {
        struct hf_counters *counters = open_counters(s, db, false, shards);

        CHECK_OK(hf_counter_incr(s, counters, key, 2, &value));
        CHECK_OK(hf_counter_add_once(s, counters, key, HF_STR("r"), 1, NULL, &value, &again));
        CHECK_OK(hf_counter_add_once(s, counters, key, HF_STR("r"), 1, NULL, &value, &again));
        if (shards == 1)
            CHECK_STATUS(HF_LIMIT,
                         hf_counter_add(s, counters, key, 1000,
                                        HF_OPTIONS(hf_counter_options, .ceiling = 5), &value));
        CHECK_OK(hf_counter_add_tx(s, counters, key, HF_STR("t"), 1, NULL, &action));
        transact(s, db, &action, 1);
        CHECK_OK(hf_counter_set(s, counters, key, 7, &value));
        CHECK_OK(hf_counter_reset(s, counters, key, &value));
        CHECK_OK(hf_counter_delete(s, counters, key));
        hf_counters_close(counters);
    }
    take_numbers(s, db);
}

TEST(iam, policies_of_counters)
{
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i <= 1; i++) {
        const char *more = i ? "--partitioned" : NULL;

        partitioned = i;
        try_role(s, IAM(counter), "reader", make_counters, NULL, read_counters, more);
        try_role(s, IAM(counter), "writer", make_counters, NULL, write_counters, more);
    }
    hf_scope_free(s);
}

/* ---- once ----------------------------------------------------------------------------------- */

static const struct hf_str me = {"me", 2};

static struct hf_once_table *open_once(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_once_table *onces = NULL;

    CHECK_OK(hf_once_table_open(s, db,
                                HF_OPTIONS(hf_once_table_options, .no_create = !create,
                                           .no_threads = true),
                                &onces));
    return onces;
}

static void make_once(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_once_table_close(open_once(s, db, create));
}

static enum hf_status do_it(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                            void *user)
{
    enum hf_status status = hf_once_renew(s, once);

    (void)user;
    *result = HF_ITEM(s, HF_N("n", 1));
    return status;
}

static enum hf_status refuse(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                             void *user)
{
    (void)once, (void)user, (void)result;
    return hf_scope_fail(s, HF_IO, "not now");
}

static void do_once(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_once_table *onces = open_once(s, db, create);
    struct hf_transact_write action;
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_once_do(s, onces, me, HF_STR("a"), NULL, do_it, NULL, &record));
    CHECK_OK(hf_once_do(s, onces, me, HF_STR("a"), NULL, do_it, NULL, &record));
    CHECK_STATUS(HF_IO, hf_once_do(s, onces, me, HF_STR("b"), NULL, refuse, NULL, &record));
    CHECK_OK(hf_once_get(s, onces, me, HF_STR("a"), &record));
    CHECK_OK(hf_once_begin(s, onces, me, HF_STR("c"), NULL, &once, &record));
    onces_step(onces);
    CHECK_OK(hf_once_fail(s, once, (struct hf_item){0}));
    hf_once_close(once);
    CHECK_OK(hf_once_begin(s, onces, me, HF_STR("d"), NULL, &once, &record));
    CHECK_OK(hf_once_finish_tx(s, once, (struct hf_item){0}, &action));
    transact(s, db, &action, 1);
    hf_once_committed(once);
    hf_once_close(once);
    CHECK_OK(hf_once_begin(s, onces, me, HF_STR("e"), NULL, &once, &record));
    hf_once_close(once); /* given up */
    onces_step(onces);
    CHECK_OK(
        hf_once_transact(s, onces, me, HF_STR("f"), NULL, (struct hf_item){0}, NULL, 0, &record));
    CHECK_OK(hf_once_mark_done(s, onces, me, HF_STR("g"), NULL, (struct hf_item){0}, &record));
    hf_once_table_close(onces);
}

static void prepare_once(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_once_table *onces = open_once(s, db, create);
    struct hf_once_record record;

    CHECK_OK(hf_once_mark_done(s, onces, me, HF_STR("done"), NULL, (struct hf_item){0}, &record));
    hf_once_table_close(onces);
}

static void operate_once(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_once_table *onces = open_once(s, db, create);
    struct hf_once_record record;
    struct hf_once_list list;
    bool cleared;

    CHECK_OK(hf_once_get(s, onces, me, HF_STR("done"), &record));
    CHECK_OK(hf_once_list(s, onces, me, NULL, &list));
    CHECK_OK(hf_once_clear(s, onces, me, HF_STR("done"), &cleared));
    CHECK(cleared);
    hf_once_table_close(onces);
}

TEST(iam, policies_of_doing_it_once)
{
    struct hf_scope *s = hf_scope_new(NULL);

    try_role(s, IAM(once), "worker", make_once, NULL, do_once, NULL);
    try_role(s, IAM(once), "operator", make_once, prepare_once, operate_once, NULL);
    hf_scope_free(s);
}

/* ---- limit ---------------------------------------------------------------------------------- */

static struct hf_limit_table *open_limits(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_limit_table *limits = NULL;

    CHECK_OK(hf_limit_table_open(s, db, HF_OPTIONS(hf_limit_table_options, .no_create = !create),
                                 &limits));
    return limits;
}

static void make_limits(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_limit_table_close(open_limits(s, db, create));
}

static void count_limits(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_limit_table *limits = open_limits(s, db, create);

    for (int kind = HF_LIMIT_ATTEMPTS; kind <= HF_LIMIT_RATE; kind++) {
        const struct hf_limit_rule rule = {.kind = (enum hf_limit_kind)kind,
                                           .limit = 3,
                                           .window_ms = 3600000,
                                           .lockout_ms = kind <= HF_LIMIT_FIXED ? 1000 : 0};
        struct hf_str name = hf_scope_format(s, "n%d", kind);
        struct hf_limit_verdict verdict;
        struct hf_transact_write action;

        CHECK_OK(hf_limit_take(s, limits, name, &rule, NULL, &verdict));
        CHECK_OK(hf_limit_peek(s, limits, name, &rule, NULL, &verdict));
        CHECK_OK(hf_limit_take(s, limits, name, &rule, NULL, &verdict));
        CHECK_OK(hf_limit_refund(s, limits, name, &rule, &verdict));
        CHECK_OK(hf_limit_take_tx(s, limits, name, &rule, NULL, &action, &verdict));
        transact(s, db, &action, 1);
        CHECK_OK(hf_limit_take(s, limits, name, &rule, NULL, &verdict));
        CHECK_STATUS(HF_LIMIT, hf_limit_take(s, limits, name, &rule, NULL, &verdict));
        CHECK_OK(hf_limit_clear(s, limits, name, NULL));
        CHECK_OK(hf_limit_take(s, limits, name, &rule, NULL, &verdict));
        CHECK_OK(hf_limit_clear(s, limits, name, &verdict));
    }
    hf_limit_table_close(limits);
}

static void look_at_limits(struct hf_scope *s, struct hf_db *db, bool create)
{
    const struct hf_limit_rule rule = {.limit = 3, .window_ms = 1000};
    struct hf_limit_table *limits = open_limits(s, db, create);
    struct hf_limit_verdict verdict;

    CHECK_OK(hf_limit_peek(s, limits, HF_STR("n"), &rule, NULL, &verdict));
    hf_limit_table_close(limits);
}

TEST(iam, policies_of_limits)
{
    struct hf_scope *s = hf_scope_new(NULL);

    try_role(s, IAM(limit), "caller", make_limits, NULL, count_limits, NULL);
    try_role(s, IAM(limit), "viewer", make_limits, NULL, look_at_limits, NULL);
    hf_scope_free(s);
}

/* ---- records -------------------------------------------------------------------------------- */

static struct hf_records *open_records(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_records *records = NULL;

    CHECK_OK(
        hf_records_open(s, db, HF_OPTIONS(hf_records_options, .no_create = !create), &records));
    return records;
}

static void make_records(struct hf_scope *s, struct hf_db *db, bool create)
{
    hf_records_close(open_records(s, db, create));
}

static struct hf_item record_of(struct hf_scope *s, const char *account)
{
    return HF_ITEM(s, HF_S("AccountId", hf_str_from(account)), HF_S("RunTime", HF_STR("2026")));
}

static void put_records(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_records *records = open_records(s, db, create);
    struct hf_transact_write action;
    struct hf_record_info info;

    CHECK_OK(hf_records_put(s, records, record_of(s, "a"), NULL));
    CHECK_OK(hf_records_put(s, records, record_of(s, "b"),
                            HF_OPTIONS(hf_record_put_options, .only_new = true)));
    CHECK_STATUS(HF_DUPLICATE, hf_records_put(s, records, record_of(s, "b"),
                                              HF_OPTIONS(hf_record_put_options, .only_new = true)));
    CHECK_OK(hf_records_put_tx(s, records, record_of(s, "c"), &action));
    transact(s, db, &action, 1);
    CHECK_OK(hf_records_get(s, records, HF_STR("a"), HF_STR("2026"), &info));
    hf_records_close(records);
}

/* "a" is done, "b" in a transaction, "c" fails for good. */
static enum hf_status process_one(struct hf_scope *s, const struct hf_record_info *record,
                                  void *user)
{
    struct hf_transact_write action;

    CHECK_OK(hf_record_extend(s, record));
    if (hf_str_equal(record->account, HF_STR("c")))
        return hf_scope_fail(s, HF_INVALID, "not this one");
    if (!hf_str_equal(record->account, HF_STR("b")))
        return HF_OK;
    CHECK_OK(hf_record_complete_tx(s, record, &action));
    transact(s, user, &action, 1);
    return HF_OK;
}

static void process_records(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_records *records = open_records(s, db, create);

    for (int order = 0; order <= 1; order++) {
        struct hf_processor *processor;
        struct hf_processor_report report;

        CHECK_OK(hf_processor_open(s, records,
                                   HF_OPTIONS(hf_processor_options, .no_threads = true,
                                              .account_order = order == 0),
                                   &processor));
        CHECK_OK(hf_processor_run(s, processor, process_one, db, &report));
        CHECK_INT(order ? 0 : 2, report.metrics.completed);
        hf_processor_close(processor);
    }
    hf_records_close(records);
}

static void operate_records(struct hf_scope *s, struct hf_db *db, bool create)
{
    struct hf_records *records = open_records(s, db, create);
    struct hf_transact_write action;
    struct hf_record_list list;
    struct hf_record_info info;
    uint64_t count;

    CHECK_OK(hf_records_unprocessed(s, records, NULL, &list));
    CHECK_OK(hf_records_failed(s, records, NULL, &list));
    CHECK_OK(hf_records_by_account(s, records, HF_STR("a"), NULL, &list));
    CHECK_OK(hf_records_count(s, records, HF_RECORD_UNPROCESSED, &count));
    CHECK_OK(hf_records_retry_failed(s, records, 0, &count));
    CHECK_OK(hf_records_adopt(s, records, &count));
    CHECK_OK(hf_records_get(s, records, HF_STR("a"), HF_STR("2026"), &info));
    CHECK_OK(hf_records_mark(s, records, HF_STR("a"), HF_STR("2026")));
    CHECK_OK(hf_records_reset(s, records, HF_STR("a"), HF_STR("2026")));
    CHECK_OK(hf_records_mark_tx(s, records, HF_STR("b"), HF_STR("2026"), &action));
    transact(s, db, &action, 1);
    CHECK_OK(hf_records_delete(s, records, HF_STR("a"), HF_STR("2026")));
    hf_records_close(records);
}

TEST(iam, policies_of_records)
{
    struct hf_scope *s = hf_scope_new(NULL);

    try_role(s, IAM(records), "producer", make_records, NULL, put_records, NULL);
    try_role(s, IAM(records), "processor", make_records, put_records, process_records, NULL);
    try_role(s, IAM(records), "operator", make_records, put_records, operate_records, NULL);
    hf_scope_free(s);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void make_source(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition attribute = {HF_STR("pk"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("pk"), HF_KEY_HASH};
    const struct hf_stream_spec stream = {HF_YES, HF_VIEW_NEW_IMAGE};

    CHECK_OK(hf_create_table(s, db,
                             &(struct hf_create_table){.table = HF_STR("orders"),
                                                       .attributes = &attribute,
                                                       .attributes_len = 1,
                                                       .key_schema = &key,
                                                       .key_schema_len = 1,
                                                       .billing = HF_BILLING_PAY_PER_REQUEST,
                                                       .stream = &stream},
                             NULL));
    CHECK_OK(hf_put_item(s, db,
                         &(struct hf_put_item){.table = HF_STR("orders"),
                                               .item = HF_ITEM(s, HF_S("pk", HF_STR("a")))},
                         NULL));
}

static enum hf_status count_changes(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user)
{
    size_t *count = user;

    (void)s, (void)changes;
    *count += len;
    return HF_OK;
}

static void consume(struct hf_scope *s, struct hf_db *db, const char *name, size_t expected)
{
    struct hf_consumer *consumer;
    size_t count = 0;

    CHECK_OK(hf_consumer_open(s, db, HF_STR("orders"),
                              HF_OPTIONS(hf_consumer_options,
                                         .name = name ? hf_str_from(name) : (struct hf_str){0},
                                         .until_end = true, .no_threads = true),
                              &consumer));
    CHECK_OK(hf_consumer_run(s, consumer, count_changes, &count));
    CHECK_INT(expected, count);
    hf_consumer_close(consumer);
}

TEST(iam, policies_of_streams)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct gate gate;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    make_source(s, db);
    gate_open(&gate, s, db, IAM(streams), "--table", "orders", "--role", "reader");
    consume(s, &gate.base, NULL, 1);
    gate_check(&gate);
    gate_open(&gate, s, db, IAM(streams), "--table", "orders", "--create");
    consume(s, &gate.base, "me", 1);
    gate_check(&gate);
    gate_open(&gate, s, db, IAM(streams), "--table", "orders");
    consume(s, &gate.base, "me", 0); /* from its position */
    consume(s, &gate.base, "you", 1);
    gate_check(&gate);
    hf_db_close(db);
    hf_scope_free(s);
}
