/*
 * lock/lock_test.c: one feature at a time, on every kind of database, by a virtual clock: no
 * time passes unless a test lets it, or somebody waits. (n) is an invariant of lock/lock.c.
 */
#include <holdfast/engine.h>
#include <holdfast/lock.h>

#include <stdio.h>

#include "kit.h"
#include "lock/lock.h"
#include "steps.h"

static struct hf_lock_table *table_of(struct kit *k, const char *owner)
{
    struct hf_lock_table *locks;

    CHECK_OK(hf_lock_table_open(k->scope, k->db,
                                HF_OPTIONS(hf_lock_table_options, .table = k->table,
                                           .owner = hf_str_from(owner), .no_threads = true),
                                &locks));
    return locks;
}

static struct hf_lock_options *lease(uint32_t ms)
{
    static struct hf_lock_options options;

    options = (struct hf_lock_options){.size = sizeof(options), .lease_ms = ms};
    return &options;
}

static struct hf_lock *get(struct kit *k, struct hf_lock_table *locks, const char *name,
                           const struct hf_lock_options *options)
{
    struct hf_lock *lock;

    hf_scope_timeout_ms(k->scope, 0);
    CHECK_OK(hf_lock_try(k->scope, locks, hf_str_from(name), options, &lock));
    CHECK(lock);
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    return lock;
}

static void locked(struct kit *k, struct hf_lock_table *locks, const char *name,
                   const struct hf_lock_options *options)
{
    struct hf_lock *lock;

    CHECK_STATUS(HF_LOCKED, hf_lock_try(k->scope, locks, hf_str_from(name), options, &lock));
    CHECK(!lock);
}

/* Wait for the lock for so long. */
static enum hf_status wait_ms(struct kit *k, struct hf_lock_table *locks, const char *name,
                              const struct hf_lock_options *options, uint32_t ms,
                              struct hf_lock **lock)
{
    enum hf_status status;

    hf_scope_timeout_ms(k->scope, ms);
    status = hf_lock_acquire(k->scope, locks, hf_str_from(name), options, lock);
    hf_scope_timeout_ms(k->scope, 0);
    CHECK((status == HF_OK) == (*lock != NULL));
    return status;
}

static size_t holders(struct kit *k, struct hf_lock_table *locks, const char *name)
{
    struct hf_lock_info info;

    CHECK_OK(hf_lock_inspect(k->scope, locks, hf_str_from(name), &info));
    return info.holders_len;
}

/* ---- one holder ----------------------------------------------------------------------------- */

/* (1): each holder has a higher fence, also when the lock was free in between. */
KIT_TEST(lock, fences_grow_across_releases)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    uint64_t last = 0;

    for (int i = 0; i < 6; i++) {
        struct hf_lock *lock = get(k, i % 2 ? ann : ben, "job", NULL);

        CHECK(hf_lock_fence(lock) > last);
        CHECK(last == 0 || hf_lock_fence(lock) == last + 1);
        last = hf_lock_fence(lock);
        CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
        CHECK_STR("job", hf_lock_name(lock));
        CHECK_OK(hf_lock_release(k->scope, lock));
    }
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

KIT_TEST(lock, one_of_two_gets_it)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *lock = get(k, ann, "job", NULL), *other;

    locked(k, ben, "job", NULL);
    CHECK_ERROR(HF_LOCKED, "lock job is held by ann", k->scope);
    locked(k, ann, "job", NULL); /* not even the same owner */
    other = get(k, ben, "another", NULL);
    CHECK_OK(hf_lock_release(k->scope, other));
    CHECK_OK(hf_lock_release(k->scope, lock));
    lock = get(k, ben, "job", NULL);
    CHECK_OK(hf_lock_release(k->scope, lock));
    CHECK_OK(hf_lock_release(k->scope, NULL));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* (3): a silent holder is replaced after one lease, not before, and has known it before. */
KIT_TEST(lock, a_silent_holder_is_replaced_after_one_lease)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *held = get(k, ann, "job", lease(1000)), *taken;
    int64_t before = k->t->elapsed_us;

    CHECK_STATUS(HF_TIMEOUT, wait_ms(k, ben, "job", lease(1000), 900, &taken));
    CHECK_ERROR(HF_TIMEOUT, "lock job is held by ann", k->scope);
    CHECK(k->t->elapsed_us - before <= 900000);
    CHECK(k->t->elapsed_us - before >= 899000);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(held));
    CHECK_STATUS(HF_OK, wait_ms(k, ben, "job", lease(1000), 102, &taken));
    CHECK(k->t->elapsed_us - before >= 1000000);
    CHECK(hf_lock_fence(taken) > hf_lock_fence(held));
    CHECK_INT(HF_LOCK_EXPIRED, hf_lock_state(held));
    CHECK_INT(0, hf_lock_left_ms(held));
    CHECK_STATUS(HF_LOST, hf_lock_extend(k->scope, held, 0));
    CHECK_ERROR(HF_LOST, "lock job is lost: its lease has ended", k->scope);
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, held));
    CHECK_INT(1, holders(k, ben, "job"));
    CHECK_OK(hf_lock_release(k->scope, taken));
    CHECK_INT(0, holders(k, ben, "job"));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* A lock that is left stays held for a lease, and nobody renews it. */
KIT_TEST(lock, a_lock_that_is_left_ends_with_its_lease)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *taken;

    hf_lock_leave(NULL);
    hf_lock_leave(get(k, ann, "job", lease(1000)));
    CHECK_INT(UINT32_MAX, locks_step(ann));
    locked(k, ben, "job", lease(1000));
    CHECK_INT(1, holders(k, ben, "job"));
    CHECK_STATUS(HF_TIMEOUT, wait_ms(k, ben, "job", lease(1000), 500, &taken));
    CHECK_OK(wait_ms(k, ben, "job", lease(1000), 1500, &taken));
    CHECK_OK(hf_lock_release(k->scope, taken));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* A lease is counted from before it was asked for, and ends a hundredth early. */
KIT_TEST(lock, what_is_left_of_a_lease)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock = get(k, ann, "job", lease(1000));

    CHECK_INT(990, hf_lock_left_ms(lock));
    test_advance_ms(k->t, 700);
    CHECK_INT(290, hf_lock_left_ms(lock));
    CHECK_OK(hf_lock_extend(k->scope, lock, 0));
    CHECK_INT(990, hf_lock_left_ms(lock));
    CHECK_OK(hf_lock_extend(k->scope, lock, 5000));
    CHECK_INT(4950, hf_lock_left_ms(lock));
    CHECK_STATUS(HF_INVALID, hf_lock_extend(k->scope, lock, 499));
    CHECK_ERROR(HF_INVALID,
                "lock job: a heartbeat of 250 ms is more than half of a lease of 499 ms", k->scope);
    test_advance_ms(k->t, 4949);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    test_advance_ms(k->t, 1);
    CHECK_INT(HF_LOCK_EXPIRED, hf_lock_state(lock));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
}

/* As long as heartbeats come nobody takes it, however long he watches. */
KIT_TEST(lock, heartbeats_keep_it)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *lock = get(k, ann, "job", lease(1000));

    CHECK_INT(250, locks_step(ann));
    for (int i = 0; i < 100; i++) {
        test_advance_ms(k->t, 50);
        locked(k, ben, "job", lease(1000));
        CHECK(locks_step(ann) <= 250);
    }
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    CHECK_OK(hf_lock_release(k->scope, lock));
    CHECK(locks_step(ann) == UINT32_MAX);
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* Who tries now and then comes to the same verdict as who waits. */
KIT_TEST(lock, a_table_remembers_what_it_saw)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *held = get(k, ann, "job", lease(1000)), *taken;

    test_advance_ms(k->t, 5000);
    locked(k, ben, "job", lease(1000));
    test_advance_ms(k->t, 999);
    locked(k, ben, "job", lease(1000));
    test_advance_ms(k->t, 1);
    taken = get(k, ben, "job", lease(1000));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, held));
    CHECK_OK(hf_lock_release(k->scope, taken));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* With clocks that are trusted a lock that ended long ago is there for the taking. */
KIT_TEST(lock, trusted_clocks_take_over_at_once)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben;
    struct hf_lock *held = get(k, ann, "job", lease(1000)), *taken;

    CHECK_OK(hf_lock_table_open(k->scope, k->db,
                                HF_OPTIONS(hf_lock_table_options, .table = k->table,
                                           .owner = HF_STR("ben"), .no_threads = true,
                                           .clock_skew_ms = 500),
                                &ben));
    test_advance_ms(k->t, 1499);
    locked(k, ben, "job", NULL);
    test_advance_ms(k->t, 1);
    taken = get(k, ben, "job", NULL);
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, held));
    CHECK_OK(hf_lock_release(k->scope, taken));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* (1): even if somebody deletes the item. */
KIT_TEST(lock, fences_grow_when_the_item_is_gone)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock = get(k, ann, "job", NULL), *next;
    struct hf_delete_item del = {.table = k->table,
                                 .key = HF_ITEM(k->scope, HF_S("name", HF_STR("job")))};

    CHECK_OK(hf_delete_item(k->scope, k->db, &del, NULL));
    test_advance_ms(k->t, 2);
    CHECK_STATUS(HF_LOST, hf_lock_extend(k->scope, lock, 0));
    CHECK_ERROR(HF_LOST, "lock job is lost: another took it over, or it was broken", k->scope);
    next = get(k, ann, "job", NULL);
    CHECK(hf_lock_fence(next) > hf_lock_fence(lock));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, lock));
    CHECK_OK(hf_lock_release(k->scope, next));
    hf_lock_table_close(ann);
}

KIT_TEST(lock, what_cannot_be)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *none;
    struct hf_lock *lock;

    CHECK_STATUS(HF_INVALID, hf_lock_try(k->scope, ann, HF_STR(""), NULL, &lock));
    CHECK_ERROR(HF_INVALID, "a lock needs a name", k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_lock_acquire(k->scope, ann, HF_STR("x"),
                                 HF_OPTIONS(hf_lock_options, .heartbeat_ms = 10001), &lock));
    CHECK_ERROR(HF_INVALID,
                "lock x: a heartbeat of 10001 ms is more than half of a lease of 20000 ms",
                k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_lock_try(k->scope, ann, HF_STR("x"),
                             HF_OPTIONS(hf_lock_options, .mode = HF_LOCK_PERMIT), &lock));
    CHECK_ERROR(HF_INVALID, "lock x: HF_LOCK_PERMIT needs permits", k->scope);
    CHECK_STATUS(HF_INVALID, hf_lock_try(k->scope, ann, HF_STR("x"),
                                         HF_OPTIONS(hf_lock_options, .permits = 2), &lock));
    CHECK_STATUS(HF_INVALID, hf_lock_try(k->scope, ann, HF_STR("x"),
                                         HF_OPTIONS(hf_lock_options, .mode = 7), &lock));
    CHECK_STATUS(HF_INVALID, hf_lock_table_open(k->scope, NULL, NULL, &none));
    CHECK(!none);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_lock_table_open(k->scope, k->db,
                                    HF_OPTIONS(hf_lock_table_options, .table = HF_STR("nowhere"),
                                               .no_create = true),
                                    &none));
    CHECK(!none);
    hf_lock_table_close(ann);
    hf_lock_table_close(NULL);
}

KIT_TEST(lock, an_item_that_is_no_lock)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_scope *s = k->scope;
    struct hf_put_item put = {.table = k->table};
    struct hf_lock *lock;

    put.item = HF_ITEM(s, HF_S("name", HF_STR("x")), HF_N("held", 1), HF_N("fence", 1),
                       HF_S("mode", HF_STR("shared")));
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_lock_try(s, ann, HF_STR("x"), NULL, &lock));
    CHECK_ERROR(
        HF_CORRUPT,
        hf_scope_format(
            s, "the item \"x\" of table %.*s is not a lock: it has fewer holders than it counts",
            HF_FMT(k->table))
            .ptr,
        s);
    put.item = HF_ITEM(s, HF_S("name", HF_STR("x")), HF_N("held", 1), HF_S("fence", HF_STR("a")));
    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_lock_try(s, ann, HF_STR("x"), NULL, &lock));
    CHECK_ERROR(HF_CORRUPT,
                hf_scope_format(s, "the item \"x\" of table %.*s is not a lock: it has no fence",
                                HF_FMT(k->table))
                    .ptr,
                s);
    hf_lock_table_close(ann);
}

/* ---- bad days ------------------------------------------------------------------------------- */

/* (2): answers to every step get lost, and nobody notices. */
KIT_TEST(lock, lost_answers_lose_nothing)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock;

    for (uint32_t lost = 1; lost < 4; lost++) {
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", lost);
        lock = get(k, ann, "job", lease(10000));
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", lost);
        test_advance_ms(k->t, 2500);
        CHECK(locks_step(ann) < UINT32_MAX);
        CHECK(hf_lock_left_ms(lock) > 9000);
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", lost);
        CHECK_OK(hf_lock_release(k->scope, lock));
        CHECK_INT(0, holders(k, ann, "job"));
    }
    hf_lock_table_close(ann);
}

/* A renewal that arrives late, after another one, does not bring its beat back: somebody may have
 * watched it since before the other. Found by simulation. */
KIT_TEST(lock, a_late_renewal_is_refused)
{
    struct hf_scope *s = k->scope;
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock = get(k, ann, "job", NULL);
    const struct lock_own own = {.at = &ann->at,
                                 .name = HF_STR("job"),
                                 .id = lock_id(lock),
                                 .fence = hf_lock_fence(lock)};
    const struct lock_holder me = {.owner = HF_STR("ann"),
                                   .beat = 2,
                                   .lease_ms = 20000,
                                   .since_ms = 1767225600000,
                                   .renewed_ms = 1767225600000};
    struct hf_update_item late =
        hf__lock_beat_request(s, &own, 2, hf__lock_entry(s, &me), (struct hf_item){0});

    CHECK_OK(hf_update_item(s, k->db, &late, NULL));
    lock->beat = 2;
    CHECK_OK(hf_lock_extend(s, lock, 0));
    CHECK_STATUS(HF_CONDITION, hf_update_item(s, k->db, &late, NULL));
    CHECK_OK(hf_lock_extend(s, lock, 0));
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_STATUS(HF_CONDITION, hf_update_item(s, k->db, &late, NULL));
    hf_lock_table_close(ann);
}

/* A shorter lease that may have been granted is what others may go by; a longer one is not ours
 * before it is granted. */
KIT_TEST(lock, a_doubtful_extension_counts_against_us)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock =
        get(k, ann, "job", HF_OPTIONS(hf_lock_options, .lease_ms = 10000, .heartbeat_ms = 200));

    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER, .count = 1},
                                               {.kind = HF_FAULT_ERROR}},
                           2));
    CHECK_STATUS(HF_INTERNAL, hf_lock_extend(k->scope, lock, 60000));
    CHECK(hf_lock_left_ms(lock) <= 9900);
    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER, .count = 1},
                                               {.kind = HF_FAULT_ERROR}},
                           2));
    CHECK_STATUS(HF_INTERNAL, hf_lock_extend(k->scope, lock, 1000));
    CHECK(hf_lock_left_ms(lock) <= 990);
    kit_no_faults(k);
    CHECK_OK(hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
}

struct told {
    int late, lost;
    uint32_t left_ms;
    enum hf_lock_state why;
    struct hf_lock *release; /* in the callback */
    struct hf_scope *s;
};

static void on_late(struct hf_lock *lock, uint32_t left_ms, void *user)
{
    struct told *told = user;

    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    told->late++;
    told->left_ms = left_ms;
}

static void on_lost(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    struct told *told = user;

    CHECK(hf_lock_state(lock) == why);
    told->lost++;
    told->why = why;
    if (told->s)
        CHECK_STATUS(HF_LOST, hf_lock_release(told->s, lock));
}

/* A database that cannot be reached: warned in time, lost when the lease ends, and not as stolen.
 */
KIT_TEST(lock, unreachable_is_told_near_and_at_the_end)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct told told = {0};
    struct hf_lock *lock = get(k, ann, "job",
                               HF_OPTIONS(hf_lock_options, .lease_ms = 1000, .on_late = on_late,
                                          .on_lost = on_lost, .late_ms = 400, .user = &told));

    kit_fault(k, HF_FAULT_ERROR, "UpdateItem", 0);
    for (int i = 0; i < 58; i++) {
        test_advance_ms(k->t, 10);
        locks_step(ann);
    }
    CHECK_INT(0, told.late);
    test_advance_ms(k->t, 10);
    CHECK(locks_step(ann) <= 250);
    CHECK_INT(1, told.late);
    CHECK_INT(400, told.left_ms);
    kit_no_faults(k); /* it comes back: all is well, and the next time is told again */
    test_advance_ms(k->t, 250);
    locks_step(ann);
    CHECK_INT(990, hf_lock_left_ms(lock));
    kit_fault(k, HF_FAULT_ERROR, "UpdateItem", 0);
    for (int i = 0; i < 98; i++) {
        test_advance_ms(k->t, 10);
        locks_step(ann);
    }
    CHECK_INT(2, told.late);
    CHECK_INT(0, told.lost);
    test_advance_ms(k->t, 10);
    locks_step(ann);
    CHECK_INT(1, told.lost);
    CHECK_INT(HF_LOCK_EXPIRED, told.why);
    kit_no_faults(k);
    test_advance_ms(k->t, 10);
    CHECK(locks_step(ann) == UINT32_MAX);
    CHECK_INT(1, told.lost);
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, lock));
    CHECK_INT(0, holders(k, ann, "job")); /* it was still ours to give back */
    hf_lock_table_close(ann);
}

/* Somebody else has it: that is known at the next heartbeat, and may be released in the callback.
 */
KIT_TEST(lock, stolen_is_told_as_stolen)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct told told = {.s = k->scope};
    struct hf_lock *next;
    size_t broken;

    get(k, ann, "job",
        HF_OPTIONS(hf_lock_options, .lease_ms = 1000, .on_lost = on_lost, .user = &told));
    CHECK_OK(hf_lock_break(k->scope, ben, HF_STR("job"), hf_str_of(NULL, 0), &broken));
    CHECK_INT(1, broken);
    next = get(k, ben, "job", NULL);
    locks_step(ann);
    CHECK_INT(0, told.lost);
    test_advance_ms(k->t, 250);
    locks_step(ann);
    CHECK_INT(1, told.lost);
    CHECK_INT(HF_LOCK_STOLEN, told.why);
    CHECK(locks_step(ann) == UINT32_MAX);
    CHECK_OK(hf_lock_release(k->scope, next));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* A release that cannot be sent is made up for. */
KIT_TEST(lock, what_could_not_be_released_is_released_later)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock = get(k, ann, "job", NULL);

    kit_fault(k, HF_FAULT_ERROR, "UpdateItem", 0);
    CHECK_STATUS(HF_INTERNAL, hf_lock_release(k->scope, lock));
    CHECK_INT(1, holders(k, ann, "job"));
    CHECK_INT(1000, locks_step(ann));
    kit_no_faults(k);
    test_advance_ms(k->t, 1000);
    CHECK(locks_step(ann) == UINT32_MAX);
    CHECK_INT(0, holders(k, ann, "job"));
    lock = get(k, ann, "job", NULL);
    CHECK_OK(hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
}

/* Whether we got it is not known when the time is over: then nobody has it soon. */
KIT_TEST(lock, a_doubtful_acquisition_is_undone)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *lock;

    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER, .count = 1},
                                               {.kind = HF_FAULT_ERROR}},
                           2));
    CHECK_STATUS(HF_INTERNAL, hf_lock_try(k->scope, ann, HF_STR("job"), NULL, &lock));
    CHECK(!lock);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    locked(k, ben, "job", NULL);
    locks_step(ann);
    lock = get(k, ben, "job", NULL);
    CHECK_OK(hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* Waiting goes on while the database has a bad time, and ends when told to. */
KIT_TEST(lock, waiting_outlasts_failures)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock;

    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 20);
    CHECK_OK(wait_ms(k, ann, "job", NULL, 60000, &lock));
    kit_fault(k, HF_FAULT_THROTTLE, NULL, 0);
    hf_scope_timeout_ms(k->scope, 3000);
    {
        struct hf_lock *other;

        CHECK_STATUS(HF_TIMEOUT, hf_lock_acquire(k->scope, ann, HF_STR("job"), NULL, &other));
        kit_no_faults(k);
        hf_scope_cancel(k->scope);
        CHECK_STATUS(HF_CANCELED, hf_lock_acquire(k->scope, ann, HF_STR("job"), NULL, &other));
        hf_scope_reset(k->scope);
    }
    CHECK_OK(hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
}

/* Heartbeats say nothing of the work: when that is stuck, they stop. */
KIT_TEST(lock, stuck_work_lets_the_lease_end)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct told told = {0};
    struct hf_lock *lock = get(k, ann, "job",
                               HF_OPTIONS(hf_lock_options, .lease_ms = 1000, .stuck_ms = 2000,
                                          .on_lost = on_lost, .user = &told));

    for (int i = 0; i < 50; i++) {
        test_advance_ms(k->t, 100);
        hf_lock_touch(lock);
        locks_step(ann);
    }
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    for (int i = 0; i < 19; i++) {
        test_advance_ms(k->t, 100);
        locks_step(ann);
    }
    CHECK_INT(0, told.lost);
    for (int i = 0; i < 11; i++) {
        test_advance_ms(k->t, 100);
        locks_step(ann);
    }
    CHECK_INT(1, told.lost);
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, lock));
    hf_lock_table_close(ann);
}

/* ---- many holders --------------------------------------------------------------------------- */

static struct hf_lock_options *shared(uint32_t ms)
{
    struct hf_lock_options *options = lease(ms);

    options->mode = HF_LOCK_SHARED;
    return options;
}

static struct hf_lock_options *permit(uint32_t ms, uint32_t permits)
{
    struct hf_lock_options *options = lease(ms);

    options->mode = HF_LOCK_PERMIT;
    options->permits = permits;
    return options;
}

KIT_TEST(lock, readers_share_and_a_writer_is_alone)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *first = get(k, ann, "doc", shared(1000));
    struct hf_lock *second = get(k, ben, "doc", shared(1000)), *writer;

    CHECK(hf_lock_fence(second) > hf_lock_fence(first));
    locked(k, ben, "doc", lease(1000));
    CHECK_INT(2, holders(k, ann, "doc"));
    locked(k, ben, "doc", permit(1000, 5));
    CHECK_OK(hf_lock_release(k->scope, first));
    locked(k, ben, "doc", lease(1000));
    CHECK_OK(hf_lock_release(k->scope, second));
    writer = get(k, ann, "doc", lease(1000));
    locked(k, ben, "doc", shared(1000));
    CHECK_ERROR(HF_LOCKED, "lock doc is held by ann", k->scope);
    CHECK_OK(hf_lock_release(k->scope, writer));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

KIT_TEST(lock, as_many_as_there_are_permits)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *held[3], *fourth;

    for (int i = 0; i < 3; i++)
        held[i] = get(k, i == 1 ? ann : ben, "gate", permit(1000, 3));
    locked(k, ann, "gate", permit(1000, 3));
    CHECK_STR("lock gate is held by ", hf_str_of(hf_scope_error_text(k->scope), 21));
    locked(k, ann, "gate", permit(1000, 2));
    CHECK_OK(hf_lock_release(k->scope, held[1]));
    locked(k, ann, "gate", permit(1000, 2));
    fourth = get(k, ann, "gate", permit(1000, 3));
    CHECK_INT(3, holders(k, ann, "gate"));
    CHECK_OK(hf_lock_release(k->scope, held[0]));
    CHECK_OK(hf_lock_release(k->scope, held[2]));
    CHECK_OK(hf_lock_release(k->scope, fourth));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* The silent ones are replaced, the others stay. */
KIT_TEST(lock, a_silent_permit_is_replaced)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *alive = get(k, ann, "gate", permit(1000, 2));
    struct hf_lock *silent = get(k, ben, "gate", permit(1000, 2)), *third;

    for (int i = 0; i < 10; i++) {
        locked(k, ann, "gate", permit(1000, 2));
        test_advance_ms(k->t, 100);
        locks_step(ann);
    }
    third = get(k, ann, "gate", permit(1000, 2));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, silent));
    CHECK_OK(hf_lock_extend(k->scope, alive, 0));
    CHECK_INT(2, holders(k, ann, "gate"));
    CHECK_OK(hf_lock_release(k->scope, alive));
    CHECK_OK(hf_lock_release(k->scope, third));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* Where nobody has to wait for them the dead are cleared away by who renews. */
KIT_TEST(lock, silent_readers_do_not_pile_up)
{
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *alive = get(k, ann, "doc", shared(1000)), *silent[5];

    for (int i = 0; i < 5; i++)
        silent[i] = get(k, ben, "doc", shared(1000));
    for (int i = 0; i < 5; i++) { /* seen at the first heartbeat, and for a lease */
        CHECK_INT(6, holders(k, ann, "doc"));
        test_advance_ms(k->t, 250);
        locks_step(ann);
    }
    CHECK_INT(1, holders(k, ann, "doc"));
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, silent[i]));
    CHECK_OK(hf_lock_release(k->scope, alive));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* More dead readers than one write can evict. */
KIT_TEST(lock, a_writer_after_very_many_readers)
{
    enum { READERS = 95 };
    struct hf_lock_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_lock *silent[READERS], *writer;

    for (int i = 0; i < READERS; i++)
        silent[i] = get(k, ann, "doc", shared(1000));
    CHECK_INT(READERS, holders(k, ann, "doc"));
    CHECK_OK(wait_ms(k, ben, "doc", lease(1000), 3000, &writer));
    CHECK_INT(1, holders(k, ann, "doc"));
    for (int i = 0; i < READERS; i++)
        CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, silent[i]));
    CHECK_INT(1, holders(k, ann, "doc"));
    CHECK_OK(hf_lock_release(k->scope, writer));
    hf_lock_table_close(ann);
    hf_lock_table_close(ben);
}

/* ---- data, lists, breaking ------------------------------------------------------------------ */

static void check_data(struct hf_item data, const char *expected)
{
    CHECK_STR(expected, hf_value_str(hf_item_get(data, HF_STR("at"))));
}

KIT_TEST(lock, data_stays_with_the_lock)
{
    struct hf_scope *s = k->scope;
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock = get(k, ann, "job", NULL);
    struct hf_lock_info info;

    CHECK(!hf_lock_data(s, lock).ptr);
    CHECK_OK(hf_lock_set_data(s, lock, HF_ITEM(s, HF_S("at", HF_STR("one")))));
    check_data(hf_lock_data(s, lock), "one");
    CHECK_OK(hf_lock_release(s, lock));
    lock = get(k, ann, "job", NULL);
    check_data(hf_lock_data(s, lock), "one");
    CHECK_OK(hf_lock_release_data(s, lock, HF_ITEM(s, HF_S("at", HF_STR("two")))));
    CHECK_OK(hf_lock_inspect(s, ann, HF_STR("job"), &info));
    check_data(info.data, "two");
    lock = get(k, ann, "job",
               HF_OPTIONS(hf_lock_options, .data = HF_ITEM(s, HF_S("at", HF_STR("three")))));
    check_data(hf_lock_data(s, lock), "three");
    CHECK_OK(hf_lock_break(s, ann, HF_STR("job"), hf_str_of(NULL, 0), NULL));
    CHECK_STATUS(HF_LOST, hf_lock_set_data(s, lock, HF_ITEM(s, HF_S("at", HF_STR("four")))));
    CHECK_STATUS(HF_LOST, hf_lock_release(s, lock));
    CHECK_OK(hf_lock_inspect(s, ann, HF_STR("job"), &info));
    check_data(info.data, "three");
    hf_lock_table_close(ann);
}

KIT_TEST(lock, who_holds_it)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *lock;
    struct hf_lock_info info;

    CHECK_STATUS(HF_NOT_FOUND, hf_lock_inspect(k->scope, ann, HF_STR("job"), &info));
    CHECK_ERROR(HF_NOT_FOUND, "nobody ever held lock job", k->scope);
    lock = get(k, ann, "job", lease(1000));
    test_advance_ms(k->t, 250);
    locks_step(ann);
    CHECK_OK(hf_lock_inspect(k->scope, ann, HF_STR("job"), &info));
    CHECK_STR("job", info.name);
    CHECK_INT(HF_LOCK_EXCLUSIVE, info.mode);
    CHECK(info.fence == hf_lock_fence(lock));
    CHECK_INT(1, info.holders_len);
    CHECK_STR("ann", info.holders[0].owner);
    CHECK(info.holders[0].fence == hf_lock_fence(lock));
    CHECK_INT(1000, info.holders[0].lease_ms);
    CHECK_INT(k->t->wall_us / 1000 * 1000, info.holders[0].renewed_us);
    CHECK_INT(info.holders[0].renewed_us - 250000, info.holders[0].since_us);
    CHECK_OK(hf_lock_release(k->scope, lock));
    CHECK_OK(hf_lock_inspect(k->scope, ann, HF_STR("job"), &info));
    CHECK_INT(0, info.mode);
    CHECK_INT(0, info.holders_len);
    hf_lock_table_close(ann);
}

KIT_TEST(lock, lists_follow_every_page)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *held[20];
    struct hf_lock_list list;
    struct hf_str after = {0};
    int found = 0, calls = 0;

    for (int i = 0; i < 20; i++)
        held[i] =
            get(k, ann, hf_scope_format(k->scope, "%s/%d", i % 2 ? "odd" : "even", i).ptr, NULL);
    for (int i = 0; i < 20; i += 4)
        CHECK_OK(hf_lock_release(k->scope, held[i]));
    CHECK_OK(hf_lock_list(k->scope, ann, NULL, &list));
    CHECK_INT(15, list.locks_len);
    CHECK(!list.next.ptr);
    CHECK_OK(
        hf_lock_list(k->scope, ann, HF_OPTIONS(hf_lock_list_options, .free_too = true), &list));
    CHECK_INT(20, list.locks_len);
    CHECK_OK(hf_lock_list(k->scope, ann,
                          HF_OPTIONS(hf_lock_list_options, .prefix = HF_STR("even/")), &list));
    CHECK_INT(5, list.locks_len);
    do {
        CHECK_OK(hf_lock_list(k->scope, ann,
                              HF_OPTIONS(hf_lock_list_options, .prefix = HF_STR("odd/"),
                                         .free_too = true, .limit = 3, .after = after),
                              &list));
        CHECK(list.locks_len <= 3);
        for (size_t i = 0; i < list.locks_len; i++)
            CHECK_STR("odd/", hf_str_of(list.locks[i].name.ptr, 4));
        found += (int)list.locks_len;
        after = list.next;
        calls++;
    } while (after.ptr);
    CHECK_INT(10, found);
    CHECK_INT(4, calls);
    for (int i = 0; i < 20; i++)
        if (i % 4)
            CHECK_OK(hf_lock_release(k->scope, held[i]));
    hf_lock_table_close(ann);
}

KIT_TEST(lock, breaking_one_or_all)
{
    struct hf_lock_table *ann = table_of(k, "ann");
    struct hf_lock *first = get(k, ann, "doc", shared(1000));
    struct hf_lock *second = get(k, ann, "doc", shared(1000));
    struct hf_lock *third = get(k, ann, "doc", shared(1000)), *next;
    struct hf_lock_info info;
    struct hf_str id = {0};
    size_t broken;

    CHECK_OK(hf_lock_inspect(k->scope, ann, HF_STR("doc"), &info));
    for (size_t i = 0; i < info.holders_len; i++)
        if (info.holders[i].fence == hf_lock_fence(second))
            id = info.holders[i].id;
    CHECK_OK(hf_lock_break(k->scope, ann, HF_STR("doc"), id, &broken));
    CHECK_INT(1, broken);
    CHECK_OK(hf_lock_extend(k->scope, first, 0));
    CHECK_STATUS(HF_LOST, hf_lock_extend(k->scope, second, 0));
    CHECK_STATUS(HF_NOT_FOUND, hf_lock_break(k->scope, ann, HF_STR("doc"), id, &broken));
    CHECK_ERROR(HF_NOT_FOUND, "nobody holds lock doc under that id", k->scope);
    CHECK_OK(hf_lock_break(k->scope, ann, HF_STR("doc"), hf_str_of(NULL, 0), &broken));
    CHECK_INT(2, broken);
    CHECK_OK(hf_lock_break(k->scope, ann, HF_STR("doc"), hf_str_of(NULL, 0), &broken));
    CHECK_INT(0, broken);
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_lock_break(k->scope, ann, HF_STR("none"), hf_str_of(NULL, 0), NULL));
    next = get(k, ann, "doc", lease(1000));
    CHECK(hf_lock_fence(next) > hf_lock_fence(third) + 1);
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, first));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, second));
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, third));
    CHECK_OK(hf_lock_release(k->scope, next));
    hf_lock_table_close(ann);
}

/* A lock that nobody holds may be removed by the database; one that is held may not. */
KIT_TEST(lock, only_free_locks_are_forgotten)
{
    struct hf_scope *s = k->scope;
    struct hf_lock_table *ann;
    struct hf_lock *lock;
    struct hf_get_item read = {.table = k->table,
                               .key = HF_ITEM(s, HF_S("name", HF_STR("job"))),
                               .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t expires;

    if (!kit_has(k, HF_FEATURE_TIME_TO_LIVE))
        return;
    CHECK_OK(hf_lock_table_open(s, k->db,
                                HF_OPTIONS(hf_lock_table_options, .table = k->table,
                                           .no_threads = true, .forget_s = 3600),
                                &ann));
    lock = get(k, ann, "job", NULL);
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_OK(hf_get_item(s, k->db, &read, &got));
    CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("expires")), &expires));
    CHECK_INT(k->t->wall_us / 1000000 + 3600, expires);
    lock = get(k, ann, "job", NULL);
    CHECK_OK(hf_get_item(s, k->db, &read, &got));
    CHECK(!hf_item_get(got.item, HF_STR("expires")).ptr);
    CHECK_OK(hf_lock_release(s, lock));
    lock = get(k, ann, "job", shared(1000)); /* another may share it when one gives it back */
    CHECK_OK(hf_lock_release(s, lock));
    CHECK_OK(hf_get_item(s, k->db, &read, &got));
    CHECK(!hf_item_get(got.item, HF_STR("expires")).ptr);
    hf_lock_table_close(ann);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Open, acquire, extend; in the end, with enough memory, nobody holds the lock. */
static enum hf_status use_lock(struct test *t, struct hf_db *db)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_lock_table *locks = NULL;
    struct hf_lock *lock = NULL;
    enum hf_status status =
        s ? hf_lock_table_open(s, db, HF_OPTIONS(hf_lock_table_options, .no_threads = true), &locks)
          : HF_NOMEM;

    if (status == HF_OK)
        status = hf_lock_acquire(s, locks, HF_STR("job"),
                                 HF_OPTIONS(hf_lock_options, .mode = HF_LOCK_SHARED), &lock);
    if (status == HF_OK)
        status = hf_lock_extend(s, lock, 30000);
    ALLOC_SWEEP_STOP(t);
    CHECK(status != HF_OK || hf_lock_state(lock) == HF_LOCK_HELD);
    CHECK_OK(hf_lock_release(s, lock));
    if (locks) {
        struct hf_lock_info info;

        locks_step(locks); /* releases what nobody knew of */
        if (hf_lock_inspect(s, locks, HF_STR("job"), &info) == HF_OK)
            CHECK_INT(0, info.holders_len);
    }
    hf_lock_table_close(locks);
    hf_scope_free(s);
    return status;
}

/* Any allocation may fail, and there is a lock or an error. */
TEST(lock, any_failed_allocation_gives_a_lock_or_an_error)
{
    struct hf_db *db;
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    for (int i = 0; i < 2; i++) /* what the database keeps is there before we count */
        CHECK_OK(use_lock(t, db));
    ALLOC_SWEEP (t, nth) {
        enum hf_status status = use_lock(t, db);

        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
    }
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- no-op ---------------------------------------------------------------------------------- */

TEST(lock, a_noop_table_grants_all_or_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_lock_table *all, *none;
    struct hf_lock *first, *second;
    struct hf_transact_write action;
    struct hf_lock_list list;

    CHECK_OK(hf_lock_table_open_noop(s, true, &all));
    CHECK_OK(hf_lock_table_open_noop(s, false, &none));
    CHECK_OK(hf_lock_try(s, all, HF_STR("job"), NULL, &first));
    CHECK_OK(hf_lock_acquire(s, all, HF_STR("job"), NULL, &second));
    CHECK(hf_lock_fence(second) > hf_lock_fence(first));
    test_advance_ms(t, 1000000);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(first));
    CHECK_OK(hf_lock_extend(s, first, 0));
    test_advance_ms(t, 1000000);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(first));
    CHECK_OK(hf_lock_set_data(s, first, HF_ITEM(s, HF_S("at", HF_STR("here")))));
    check_data(hf_lock_data(s, first), "here");
    CHECK_STATUS(HF_UNSUPPORTED, hf_lock_guard(s, first, &action));
    CHECK_OK(hf_lock_list(s, all, NULL, &list));
    CHECK_INT(0, list.locks_len);
    CHECK_OK(hf_lock_release(s, first));
    CHECK_OK(hf_lock_release(s, second));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, none, HF_STR("job"), NULL, &first));
    CHECK(!first);
    hf_lock_table_close(all);
    hf_lock_table_close(none);
    hf_scope_free(s);
}

/* A loop on one scope does not grow: what succeeds leaves nothing in it. */
TEST(lock, steady_use_leaves_nothing_in_the_scope)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_lock_table *locks;
    struct hf_lock *lock;
    struct hf_db *db;
    size_t live = 0;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(
        hf_lock_table_open(s, db, HF_OPTIONS(hf_lock_table_options, .no_threads = true), &locks));
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(hf_lock_acquire(s, locks, HF_STR("job"), NULL, &lock));
        CHECK_OK(hf_lock_extend(s, lock, 0));
        CHECK_OK(hf_lock_release(s, lock));
        if (i == 10)
            live = t->live_bytes;
    }
    CHECK(t->live_bytes <= live);
    hf_lock_table_close(locks);
    hf_db_close(db);
    hf_scope_free(s);
}
