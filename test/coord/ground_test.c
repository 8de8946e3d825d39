/* coord/ground_test.c: what patterns share; (n) is an invariant of the file in question. */
#include "kit.h"

#include <holdfast/engine.h>

#include <stdatomic.h>

#include "coord/pattern.h"

/* ---- name.c --------------------------------------------------------------------------------- */

TEST(name, ids_differ_and_are_hexadecimal)
{
    struct pattern_id a = hf__pattern_id_make(test_env(t)), b = hf__pattern_id_make(test_env(t));

    CHECK_INT(32, strspn(a.text, "0123456789abcdef"));
    CHECK_INT(32, id_str(&a).len);
    CHECK_INT(0, a.text[32]);
    CHECK(!hf_str_equal(id_str(&a), id_str(&b)));
}

TEST(name, one_text_after_the_other)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STR("h:7", hf__pattern_join(s, HF_STR("h:"), HF_STR("7")));
    CHECK_STR("h:", hf__pattern_join(s, HF_STR("h:"), hf_str_of(NULL, 0)));
    CHECK_STR("7", hf__pattern_join(s, hf_str_of(NULL, 0), HF_STR("7")));
    t->fail_at = -(int64_t)(t->allocs + 1);
    hf_scope_reset(s);
    for (int i = 0; i < 1000 && hf__pattern_join(s, HF_STR("h:"), HF_STR("7")).ptr; i++)
        ;
    t->fail_at = 0;
    CHECK_STATUS(HF_NOMEM, hf_scope_built(s));
    hf_scope_free(s);
}

TEST(name, keys_from_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STR("users.ann", PATTERN_KEY(s, HF_STR("users"), HF_STR("ann")));
    CHECK_STR("a%2Eb.c", PATTERN_KEY(s, HF_STR("a.b"), HF_STR("c")));
    CHECK_STR("a.b%2Ec", PATTERN_KEY(s, HF_STR("a"), HF_STR("b.c")));
    CHECK_STR("100%25.", PATTERN_KEY(s, HF_STR("100%"), HF_STR("")));
    CHECK_STR("%252E", PATTERN_KEY(s, HF_STR("%2E")));
    CHECK_STR("", PATTERN_KEY(s, HF_STR("")));
    hf_scope_free(s);
}

/* (1) (2): whatever the parts are, they come back, and no other list gives the same key. */
TEST(name, parts_come_back)
{
    static const char letters[] = ".%25Ea";
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (int round = 0; round < 2000; round++) {
        struct hf_str parts[3], back[3];
        char texts[3][4];
        struct hf_str key;

        for (size_t i = 0; i < 3; i++) {
            for (size_t j = 0; j < 4; j++)
                texts[i][j] = letters[test_random_below(t, 6)];
            parts[i] = hf_str_of(texts[i], test_random_below(t, 5));
        }
        key = hf__pattern_key(s, parts, 3);
        CHECK_OK(hf__pattern_key_parts(s, key, back, 3));
        for (size_t i = 0; i < 3; i++)
            CHECK(hf_str_equal(parts[i], back[i]));
        CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, key, back, 2));
    }
    hf_scope_free(s);
}

TEST(name, what_is_no_key)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str parts[2];

    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a"), parts, 2));
    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a.b.c"), parts, 2));
    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a.b%"), parts, 2));
    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a.b%2"), parts, 2));
    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a.b%26"), parts, 2));
    CHECK_STATUS(HF_CORRUPT, hf__pattern_key_parts(s, HF_STR("a.b%2e"), parts, 2));
    CHECK_ERROR(HF_CORRUPT, "the key \"a.b%2e\" is not one of 2 parts", s);
    hf_scope_free(s);
}

/* ---- write.c -------------------------------------------------------------------------------- */

/* Take "x" for `who`, if nobody has it. */
static enum hf_status take(struct kit *k, struct hf_str who, struct hf_item *item)
{
    struct hf_scope *s = k->scope;
    struct hf_item key = HF_ITEM(s, HF_S("id", HF_STR("x")));
    struct hf_update_item update = {.table = k->table,
                                    .key = key,
                                    .update = HF_STR("SET #who = :who"),
                                    .condition = HF_STR("attribute_not_exists(#who)"),
                                    .names = HF_ITEM(s, HF_S("#who", HF_STR("who"))),
                                    .values = HF_ITEM(s, HF_S(":who", who)),
                                    .returns = HF_RETURN_ALL_NEW};

    return hf__pattern_write(s, k->db, &(struct hf_transact_write){.update = &update}, key, item);
}

static struct hf_str who_of(struct hf_item item)
{
    return hf_value_str(hf_item_get(item, HF_STR("who")));
}

KIT_TEST(write, done_or_refused_with_the_item)
{
    struct hf_item item;

    kit_make_table(k, k->table);
    CHECK_OK(take(k, HF_STR("ann"), &item));
    CHECK_STR("ann", who_of(item));
    CHECK_STATUS(HF_CONDITION, take(k, HF_STR("ben"), &item));
    CHECK_STR("ann", who_of(item));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
}

/* A lost answer: the write is sent again, and what it finds is its own. */
KIT_TEST(write, a_lost_answer_is_settled_by_the_item)
{
    struct hf_item item;

    kit_make_table(k, k->table);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_STATUS(HF_CONDITION, take(k, HF_STR("ann"), &item));
    CHECK_STR("ann", who_of(item));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
}

/* (1) (3): nothing is sent again that was certainly not done; what stays in doubt says so. */
KIT_TEST(write, doubt_is_reported_and_only_doubt)
{
    const struct hf_fault *faults;
    struct hf_item item;
    size_t len;

    kit_make_table(k, k->table);
    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 0);
    CHECK_STATUS(HF_THROTTLED, take(k, HF_STR("ann"), &item));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK_OK(hf_faulty_get(k->scope, k->db, &faults, &len));
    CHECK_INT(1, faults[0].struck);

    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER, .count = 1},
                                               {.kind = HF_FAULT_THROTTLE}},
                           2));
    CHECK_STATUS(HF_THROTTLED, take(k, HF_STR("ann"), &item));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    CHECK_STATUS(HF_CONDITION, take(k, HF_STR("ann"), &item));
    CHECK_STR("ann", who_of(item));
}

/* (2): a refusal of something that is not there says that nothing is there. */
KIT_TEST(write, a_refusal_without_an_item)
{
    struct hf_scope *s = k->scope;
    struct hf_item key = HF_ITEM(s, HF_S("id", HF_STR("x"))), item;
    struct hf_delete_item del = {.table = k->table,
                                 .key = key,
                                 .condition = HF_STR("attribute_exists(id)")};
    struct hf_put_item put = {.table = k->table,
                              .item = key,
                              .condition = HF_STR("attribute_not_exists(id)")};

    kit_make_table(k, k->table);
    CHECK_STATUS(HF_CONDITION,
                 hf__pattern_write(s, k->db, &(struct hf_transact_write){.del = &del}, key, &item));
    CHECK(!item.ptr);
    CHECK_OK(hf__pattern_write(s, k->db, &(struct hf_transact_write){.put = &put}, key, &item));
    CHECK_STATUS(HF_CONDITION,
                 hf__pattern_write(s, k->db, &(struct hf_transact_write){.put = &put}, key, &item));
    CHECK(hf_item_equal(key, item));
    CHECK_OK(hf__pattern_write(s, k->db, &(struct hf_transact_write){.del = &del}, key, &item));
    CHECK_OK(hf__pattern_read(s, k->db, k->table, key, &item));
    CHECK(!item.ptr);
}

/* ---- timer.c -------------------------------------------------------------------------------- */

struct counted {
    atomic_int calls;
    int64_t next_us;
};

static int64_t count_up(void *user)
{
    struct counted *c = user;

    atomic_fetch_add(&c->calls, 1);
    return c->next_us;
}

/* A timer's thread waits by the system's clock. */
static enum hf_status sleep_really(uint32_t ms)
{
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status = hf_scope_sleep_ms(s, ms);

    hf_scope_free(s);
    return status;
}

static bool reaches(struct counted *c, int calls)
{
    for (int i = 0; i < 5000 && atomic_load(&c->calls) < calls; i++)
        CHECK_OK(sleep_really(1));
    return atomic_load(&c->calls) >= calls;
}

/* (1) (2) */
TEST(timer, runs_when_due_or_woken_and_not_after_its_end)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct counted often = {.next_us = 1000}, asleep = {.next_us = INT64_MAX};
    struct counted seldom = {.next_us = 900000};
    struct timer *first, *second, *third;
    int calls;

    CHECK_OK(hf__timer_start(s, count_up, &often, &first));
    CHECK_OK(hf__timer_start(s, count_up, &asleep, &second));
    CHECK(reaches(&often, 5));
    CHECK(reaches(&asleep, 1));
    for (int i = 2; i < 20; i++) {
        hf__timer_wake(second);
        CHECK(reaches(&asleep, i));
    }
    CHECK_INT(19, atomic_load(&asleep.calls));
    hf__timer_wake_in(second, 1000); /* it sleeps forever: now is in time */
    CHECK(reaches(&asleep, 20));
    CHECK_OK(hf__timer_start(s, count_up, &seldom, &third));
    CHECK(reaches(&seldom, 1));
    CHECK_OK(sleep_really(20));
    hf__timer_wake_in(third, 1000000); /* it wakes by itself before that */
    CHECK_OK(sleep_really(20));
    CHECK_INT(1, atomic_load(&seldom.calls));
    hf__timer_wake_in(third, 0);
    CHECK(reaches(&seldom, 2));
    hf__timer_stop(third);
    hf__timer_stop(first);
    hf__timer_stop(second);
    calls = atomic_load(&often.calls);
    CHECK_OK(sleep_really(20));
    CHECK_INT(calls, atomic_load(&often.calls));
    hf_scope_free(s);
}

/* Timers of one thread, one of which keeps it until it is told to go on. */
struct turns {
    atomic_int held, open, next;
};

struct in_turn {
    struct turns *turns;
    atomic_int calls;
    atomic_int place; /* in which it was called after that; 0: not yet */
    int64_t next_us;
};

static int64_t take_turn(void *user)
{
    struct in_turn *c = user;

    atomic_fetch_add(&c->calls, 1);
    if (atomic_load(&c->turns->open) && !atomic_load(&c->place))
        atomic_store(&c->place, atomic_fetch_add(&c->turns->next, 1) + 1);
    return c->next_us;
}

static int64_t hold_all(void *user)
{
    struct turns *turns = user;

    atomic_store(&turns->held, 1);
    while (!atomic_load(&turns->open))
        (void)sleep_really(1);
    return INT64_MAX;
}

static void wait_until_set(atomic_int *value)
{
    for (int i = 0; i < 5000 && !atomic_load(value); i++)
        CHECK_OK(sleep_really(1));
    CHECK(atomic_load(value));
}

/* (4) */
TEST(timer, who_is_woken_does_not_pass_who_is_due)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct turns turns = {0};
    struct in_turn due = {.turns = &turns, .next_us = 1000};
    struct in_turn woken = {.turns = &turns, .next_us = INT64_MAX};
    struct timer *timers[3];
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf__timer_join(s, db, take_turn, &due, &timers[0]));
    CHECK_OK(hf__timer_join(s, db, take_turn, &woken, &timers[1]));
    wait_until_set(&due.calls);
    wait_until_set(&woken.calls);
    CHECK_OK(hf__timer_join(s, db, hold_all, &turns, &timers[2]));
    wait_until_set(&turns.held);
    CHECK_OK(sleep_really(20));
    hf__timer_wake(timers[1]);
    atomic_store(&turns.open, 1);
    wait_until_set(&due.place);
    wait_until_set(&woken.place);
    CHECK_INT(1, atomic_load(&due.place));
    CHECK_INT(2, atomic_load(&woken.place));
    for (int i = 0; i < 3; i++)
        hf__timer_stop(timers[i]);
    hf_db_close(db);
    hf_scope_free(s);
}

/* Which thread has called; a slow call, so that the others are due meanwhile. */
struct caller {
    pthread_t thread;
    atomic_int calls;
};

static int64_t note_caller(void *user)
{
    struct caller *c = user;

    c->thread = pthread_self();
    atomic_fetch_add(&c->calls, 1);
    (void)sleep_really(1);
    return 0; /* at once again */
}

/* (4), and the thread is one for all of a database, and gone with the last. */
TEST(timer, joins_the_thread_of_its_database)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct caller callers[3] = {0};
    struct timer *timers[3];
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    for (int i = 0; i < 2; i++)
        CHECK_OK(hf__timer_join(s, db, note_caller, &callers[i], &timers[i]));
    CHECK_OK(hf__timer_start(s, note_caller, &callers[2], &timers[2]));
    for (int i = 0;
         i < 5000 && (atomic_load(&callers[0].calls) < 20 || atomic_load(&callers[1].calls) < 20 ||
                      atomic_load(&callers[2].calls) < 1);
         i++)
        CHECK_OK(sleep_really(1));
    for (int i = 0; i < 3; i++)
        hf__timer_stop(timers[i]);
    CHECK(atomic_load(&callers[0].calls) >= 20);
    CHECK(atomic_load(&callers[1].calls) >= 20);
    CHECK(pthread_equal(callers[0].thread, callers[1].thread));
    CHECK(atomic_load(&callers[2].calls) >= 1);
    CHECK_OK(hf__timer_join(s, db, note_caller, &callers[0], &timers[0])); /* a new one */
    hf__timer_stop(timers[0]);
    hf_db_close(db);
    hf_scope_free(s);
}
