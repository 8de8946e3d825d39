/*
 * test/events/blob_kill_test.c: payloads in a blob store, and bad luck between the blob and the
 * event that names it: kills at every step, kills at any moment, answers that get lost, commits
 * that fail.
 *
 * What holds afterwards, always:
 *
 *  (1) What was confirmed is there, an append is there as a whole or not at all, and no event lacks
 *      its payload.
 *  (2) A sweep leaves exactly the blobs that events have: all others go, and so does what was being
 *      written; blobs of others in the same blob store stay.
 */
#include "admin_kit.h"
#include "base/kill.h"

#include <holdfast/blob.h>
#include <holdfast/engine.h>

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LARGE = 5000,
    BLOB_BYTES = 1000, /* items over that have their payload elsewhere */
    OLD_S = 60,
    USED_MAX = 4096
};

/* ---- payloads, and the blobs that are to be there ------------------------------------------- */

/* A payload of that number; no two are alike. */
static struct hf_bytes payload_no(struct hf_scope *s, int number, size_t len)
{
    char *text = hf_scope_alloc(s, len + 1);

    if (!text)
        return hf_bytes_of(NULL, 0);
    memset(text, 'a' + number % 26, len);
    memcpy(text, &number, sizeof(number));
    return hf_bytes_of(text, len);
}

static int number_of(const struct hf_stored_event *event)
{
    int number = -1;

    CHECK(event->payload.len > sizeof(number));
    memcpy(&number, event->payload.ptr, sizeof(number));
    for (size_t i = sizeof(number); i < event->payload.len; i++)
        CHECK_INT('a' + number % 26, event->payload.ptr[i]);
    return number;
}

/* Digests of blobs, each once. */
struct digests {
    char list[USED_MAX][HF_BLOB_DIGEST_LEN];
    size_t len;
};

static bool has_digest(const struct digests *d, struct hf_str digest)
{
    for (size_t i = 0; i < d->len; i++)
        if (memcmp(d->list[i], digest.ptr, HF_BLOB_DIGEST_LEN) == 0)
            return true;
    return false;
}

static void add_digest(struct digests *d, struct hf_str digest)
{
    CHECK_INT(HF_BLOB_DIGEST_LEN, digest.len);
    if (has_digest(d, digest))
        return;
    CHECK(d->len < USED_MAX);
    memcpy(d->list[d->len++], digest.ptr, HF_BLOB_DIGEST_LEN);
}

static enum hf_status note_blob(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)s;
    add_digest(user, blob->digest);
    return HF_OK;
}

/* All events: their payloads are what they were, and `seen` (may be NULL) counts their numbers. */
static size_t read_events(struct hf_scope *s, struct hf_events *store, struct digests *used,
                          uint8_t *seen, size_t seen_len)
{
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    size_t len, all = 0;

    CHECK_OK(hf_events_reader_open(s, store, NULL, &reader));
    do {
        enum hf_status status = hf_events_reader_next(s, reader, &events, &len);

        if (status != HF_OK)
            fail_msg("%s", hf_scope_error_text(s));
        for (size_t i = 0; i < len; i++, all++) {
            int number = number_of(&events[i]);

            if (events[i].blob.len)
                add_digest(used, events[i].blob);
            if (seen) {
                CHECK(number >= 0 && (size_t)number < seen_len);
                seen[number]++;
            }
        }
    } while (len);
    hf_events_reader_close(reader);
    return all;
}

/* (2): *orphans were there before. */
static void check_sweep(struct hf_scope *s, struct hf_events *store, struct hf_blobs *part,
                        const struct digests *used, uint64_t *orphans)
{
    struct digests *before = calloc(1, sizeof(*before)), *after = calloc(1, sizeof(*after));
    struct hf_events_swept swept;

    CHECK(before && after);
    CHECK_OK(hf_blobs_list(s, part, note_blob, before));
    CHECK(before->len >= used->len);
    CHECK_OK(hf_events_sweep(s, store, OLD_S, &swept));
    CHECK_INT(before->len - used->len, swept.blobs);
    CHECK_INT(0, swept.events);
    CHECK_OK(hf_blobs_list(s, part, note_blob, after));
    CHECK_INT(used->len, after->len);
    for (size_t i = 0; i < used->len; i++)
        CHECK(has_digest(after, hf_str_of(used->list[i], HF_BLOB_DIGEST_LEN)));
    *orphans = swept.blobs;
    CHECK_OK(hf_events_sweep(s, store, OLD_S, &swept));
    CHECK_INT(0, swept.blobs);
    free(before);
    free(after);
}

/* ---- commits that fail, answers that get lost ----------------------------------------------- */

static enum hf_status append_no(struct hf_scope *s, struct hf_events *store,
                                struct hf_event_stream_key stream, int number, size_t len)
{
    struct hf_new_event event = {.id = hf_scope_format(s, "event-%d", number),
                                 .type = HF_STR("happened"),
                                 .payload = payload_no(s, number, len)};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};

    return hf_events_append(s, store, &append, 1, NULL, NULL);
}

/* A store whose payloads are in memory. */
struct stage {
    struct hf_blobs *blobs, *part;
    struct hf_events *store;
    struct digests *used;
};

static void stage_open(struct kit *k, struct stage *st)
{
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &st->blobs));
    CHECK_OK(hf_blobs_part(k->scope, st->blobs, k->table, &st->part));
    st->store = open_store_with(k, (struct hf_events_options){.blobs = st->blobs,
                                                              .blob_bytes = BLOB_BYTES,
                                                              .shards = 1});
    st->used = calloc(1, sizeof(*st->used));
    CHECK(st->used != NULL);
}

static void stage_close(struct stage *st)
{
    free(st->used);
    hf_events_close(st->store);
    hf_blobs_close(st->part);
    hf_blobs_close(st->blobs);
}

KIT_TEST_TX(blob_kill, commits_that_fail_leave_what_is_swept)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_ERROR, HF_FAULT_THROTTLE,
                                               HF_FAULT_LOST_REQUEST};
    struct hf_str foreign;
    struct stage st;
    uint64_t orphans;

    stage_open(k, &st);
    CHECK_OK(hf_blob_put(k->scope, st.blobs, payload_no(k->scope, 99, LARGE), &foreign));
    CHECK_OK(append_no(k->scope, st.store, ORDER("1"), 0, LARGE));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        kit_fault(k, kinds[i], "TransactWriteItems", 0);
        hf_scope_timeout_ms(k->scope, 5000);
        CHECK(append_no(k->scope, st.store, ORDER("1"), 1 + (int)i, LARGE) != HF_OK);
        hf_scope_timeout_ms(k->scope, 0);
        kit_no_faults(k);
    }
    test_advance_ms(k->t, (OLD_S + 10) * 1000);
    CHECK_INT(1, read_events(k->scope, st.store, st.used, NULL, 0));
    CHECK_INT(1, st.used->len);
    check_sweep(k->scope, st.store, st.part, st.used, &orphans);
    CHECK_INT(3, orphans);
    CHECK_OK(hf_blob_has(k->scope, st.blobs, foreign, NULL));
    /* And what failed can be appended after all. */
    CHECK_OK(append_no(k->scope, st.store, ORDER("1"), 1, LARGE));
    check_sound(k, st.store, 2);
    stage_close(&st);
}

/* The event is there, though nobody was told: its blob stays, and it is not put again. */
KIT_TEST_TX(blob_kill, answers_that_get_lost_lose_no_payload)
{
    const struct hf_fault faults[] = {
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("TransactWriteItems"), .count = 1},
        {.kind = HF_FAULT_ERROR}, /* and it cannot be looked up */
    };
    struct stage st;
    uint64_t orphans;

    stage_open(k, &st);
    CHECK_OK(append_no(k->scope, st.store, ORDER("1"), 0, LARGE));
    CHECK_OK(hf_faulty_set(k->scope, k->db, faults, sizeof(faults) / sizeof(faults[0])));
    hf_scope_timeout_ms(k->scope, 5000);
    CHECK(append_no(k->scope, st.store, ORDER("1"), 1, LARGE) != HF_OK);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    hf_scope_timeout_ms(k->scope, 0);
    kit_no_faults(k);
    test_advance_ms(k->t, (OLD_S + 10) * 1000);
    CHECK_INT(2, read_events(k->scope, st.store, st.used, NULL, 0));
    CHECK_INT(2, st.used->len);
    check_sweep(k->scope, st.store, st.part, st.used, &orphans);
    CHECK_INT(0, orphans);
    CHECK_OK(append_no(k->scope, st.store, ORDER("1"), 1, LARGE)); /* it was there */
    check_sound(k, st.store, 2);
    stage_close(&st);
}

/* All kinds of bad luck at once, for a while, with sweeps in between. */
KIT_TEST_TX(blob_kill, any_bad_luck_leaves_events_with_their_payloads)
{
    enum { TRIES = 120 };
    static const struct hf_fault faults[] = {
        {.kind = HF_FAULT_LOST_ANSWER, .probability = 0.15},
        {.kind = HF_FAULT_LOST_REQUEST, .probability = 0.15},
        {.kind = HF_FAULT_ERROR, .probability = 0.1},
        {.kind = HF_FAULT_CONFLICT, .probability = 0.1},
    };
    uint8_t seen[TRIES] = {0}, confirmed[TRIES] = {0};
    uint32_t tries = test_times(TRIES);
    struct stage st;
    uint64_t orphans;

    stage_open(k, &st);
    tries = tries < TRIES ? tries : TRIES;
    for (uint32_t i = 0; i < tries; i++) {
        struct hf_scope_mark mark = hf_scope_mark(k->scope);
        struct hf_event_stream_key stream = i % 3 ? ORDER("1") : ORDER("2");

        CHECK_OK(hf_faulty_set(k->scope, k->db, faults, sizeof(faults) / sizeof(faults[0])));
        hf_scope_timeout_ms(k->scope, 100);
        confirmed[i] = append_no(k->scope, st.store, stream, (int)i, i % 4 ? LARGE : 100) == HF_OK;
        if (test_random_below(k->t, 10) == 0) {
            struct hf_events_swept swept;

            test_advance_ms(k->t, (OLD_S + 10) * 1000);
            (void)!hf_events_sweep(k->scope, st.store, OLD_S, &swept);
        }
        hf_scope_timeout_ms(k->scope, 0);
        kit_no_faults(k);
        hf_scope_rewind(k->scope, mark);
    }
    test_advance_ms(k->t, (OLD_S + 10) * 1000);
    (void)read_events(k->scope, st.store, st.used, seen, TRIES);
    for (uint32_t i = 0; i < tries; i++) {
        CHECK(seen[i] <= 1);
        CHECK(!confirmed[i] || seen[i] == 1);
    }
    check_sweep(k->scope, st.store, st.part, st.used, &orphans);
    stage_close(&st);
}

/* ---- kills ---------------------------------------------------------------------------------- */

/* A database and a folder of blobs on disk. */
struct place {
    struct hf_db *db;
    struct hf_blobs *blobs;
    struct hf_events *store;
};

static enum hf_status place_open(struct hf_scope *s, const char *path, const struct hf_env *env,
                                 struct place *p)
{
    enum hf_status status;

    *p = (struct place){.db = NULL};
    status = hf_open(s, hf_scope_format(s, "embedded:%s/db", path),
                     HF_OPTIONS(hf_engine_options, .env = env, .no_upkeep_thread = true), &p->db);
    if (status == HF_OK)
        status = hf_blobs_open(s, hf_scope_format(s, "dir:%s/blobs", path), NULL, &p->blobs);
    if (status == HF_OK)
        status = hf_events_open(s, p->db,
                                HF_OPTIONS(hf_events_options, .blobs = p->blobs,
                                           .blob_bytes = BLOB_BYTES),
                                &p->store);
    return status;
}

static void place_close(struct place *p)
{
    hf_events_close(p->store);
    hf_blobs_close(p->blobs);
    hf_db_close(p->db);
}

/* By a clock that is an hour ahead, what was left behind is old. */
static int64_t later_us(void *user)
{
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec + 3600) * 1000000 + now.tv_nsec / 1000;
}

/* How many files there are of blobs, whole or not, in parts or elsewhere: all but FORMAT. */
static int files_len; /* nftw() hands nothing on */

static int count_file(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    files_len += kind == FTW_F && strcmp(path + where->base, "FORMAT") != 0;
    return 0;
}

static int count_files(struct hf_scope *s, const char *path)
{
    files_len = 0;
    CHECK_INT(0, nftw(hf_scope_format(s, "%s/blobs", path).ptr, count_file, 16, FTW_PHYS));
    return files_len;
}

/* Blobs of others in the same folder: in the whole, and in a part. */
enum { FOREIGN = 2 };

static void put_foreign(const char *path)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_blobs *blobs, *part;
    struct hf_str digest;

    CHECK_OK(hf_blobs_open(s, hf_scope_format(s, "dir:%s/blobs", path), NULL, &blobs));
    CHECK_OK(hf_blobs_part(s, blobs, HF_STR("another"), &part));
    CHECK_OK(hf_blob_put(s, blobs, payload_no(s, 1, LARGE), &digest));
    CHECK_OK(hf_blob_put(s, part, payload_no(s, 1, LARGE), &digest));
    hf_blobs_close(part);
    hf_blobs_close(blobs);
    hf_scope_free(s);
}

/* What is to be seen of a place when somebody was killed there. */
struct sight {
    uint8_t *seen; /* by number */
    size_t seen_len;
    uint64_t orphans;
    size_t events;
    int unfinished; /* files of blobs that were being written */
};

/* (1) (2) */
static void look(const char *path, struct sight *sight)
{
    struct hf_env env = {.size = sizeof(env), .wall_us = later_us};
    struct hf_scope *s = hf_scope_new(&env);
    struct digests *used = calloc(1, sizeof(*used)), *there = calloc(1, sizeof(*there));
    struct hf_events_verified verified;
    struct hf_blobs *part;
    struct place p;
    int files = count_files(s, path);

    CHECK(used && there);
    CHECK_OK(place_open(s, path, &env, &p));
    CHECK_OK(hf_blobs_part(s, p.blobs, HF_STR("events"), &part));
    CHECK_OK(hf_blobs_list(s, part, note_blob, there));
    sight->unfinished = files - FOREIGN - (int)there->len;
    sight->events = read_events(s, p.store, used, sight->seen, sight->seen_len);
    check_sweep(s, p.store, part, used, &sight->orphans);
    CHECK_INT((int)used->len + FOREIGN, count_files(s, path));
    if (hf_events_verify(s, p.store, NULL, NULL, &verified) != HF_OK)
        fail_msg("%s", hf_scope_error_text(s));
    CHECK_INT(sight->events, verified.events);
    hf_blobs_close(part);
    place_close(&p);
    hf_scope_free(s);
    free(used);
    free(there);
}

#ifdef HF_KILL_POINTS

/* What the child appends, one after the other: some blobs, some events without, one blob twice. */
enum { APPENDS = 4, NUMBERS = 200 };
static const struct plan {
    int first, len; /* numbers; those that are divisible by 50 or so have a blob, see is_large() */
    bool again;     /* the payload of the first event of all */
} plans[APPENDS] = {{0, 1, false}, {1, 3, false}, {10, 120, false}, {0, 1, true}};

static bool is_large(int number)
{
    return number == 0 || number == 1 || number == 3 || number % 50 == 0;
}

static enum hf_status run_plan(struct hf_scope *s, struct hf_events *store, int index)
{
    const struct plan *plan = &plans[index];
    struct hf_new_event *events = hf_scope_alloc(s, (size_t)plan->len * sizeof(*events));
    struct hf_append append = {.stream = {HF_STR("plan"), hf_scope_format(s, "%d", index)},
                               .expect = HF_EXPECT_NONE,
                               .events = events,
                               .events_len = (size_t)plan->len};

    for (int i = 0; events && i < plan->len; i++)
        events[i] =
            (struct hf_new_event){.type = HF_STR("happened"),
                                  .payload = payload_no(s, plan->first + i,
                                                        is_large(plan->first + i) ? LARGE : 50)};
    return events ? hf_events_append(s, store, &append, 1, NULL, NULL) : HF_NOMEM;
}

/* Does all at a path, and dies at a point; tells of each append that is confirmed. */
CHILD(plans)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct place p;

    if (place_open(s, args[0], NULL, &p) != HF_OK)
        return 2;
    hf__kill_at(args[1]); /* counted from here on */
    for (int i = 0; i < APPENDS; i++)
        if (run_plan(s, p.store, i) != HF_OK || write(STDOUT_FILENO, "", 1) != 1)
            return 3;
    return 0;
}

/* Whether it came by that point, and died; *confirmed: appends that were. */
static bool die_in_child(const char *path, const char *point, int *confirmed)
{
    int out, status;
    pid_t pid = test_child("plans", (const char *[]){path, point, NULL}, &out);
    char byte;

    for (*confirmed = 0; read(out, &byte, 1) == 1;)
        ++*confirmed;
    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

/* (1): each append as a whole or not at all, those that were confirmed as a whole. */
static void check_plans(const uint8_t *seen, int confirmed)
{
    int there = 0;

    for (int i = 0; i < APPENDS; i++) {
        const struct plan *plan = &plans[i];
        int whole = seen[plan->first] > (plan->again ? 1 : 0);

        for (int j = 1; j < plan->len; j++)
            CHECK_INT(whole, seen[plan->first + j]);
        CHECK(whole || i >= confirmed);
        there += whole;
    }
    CHECK(there == confirmed || there == confirmed + 1);
}

/* At each of these points, for the first time that it is passed, the second, and so on. */
TEST(blob_kill, killed_at_every_step_between_blob_and_event)
{
    static const struct {
        const char *name;
        int kills;   /* at least */
        int orphans; /* as well, all of its kills together */
        int unfinished;
    } points[] = {
        {"blob_made", 5, 1, 5},    {"blob_written", 5, 1, 5},  {"blob_synced", 5, 1, 5},
        {"blob_renamed", 5, 5, 0}, {"blob_renewed", 1, 0, 0},  {"before_apply", 5, 5, 0},
        {"after_apply", 5, 1, 0},  {"before_answer", 5, 1, 0},
    };

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        int kills = 0, orphans = 0, unfinished = 0, confirmed;
        bool killed = true;

        for (int pass = 1; killed; pass++) {
            const char *path = test_quick_directory(t);
            uint8_t seen[NUMBERS] = {0};
            struct sight sight = {.seen = seen, .seen_len = NUMBERS};
            char point[64];

            snprintf(point, sizeof(point), "%s:%d", points[i].name, pass);
            put_foreign(path);
            killed = die_in_child(path, point, &confirmed);
            look(path, &sight);
            check_plans(seen, confirmed);
            CHECK(killed || confirmed == APPENDS);
            kills += killed;
            orphans += (int)sight.orphans;
            unfinished += sight.unfinished;
        }
        CHECK(kills >= points[i].kills);
        CHECK(orphans >= points[i].orphans);
        CHECK(unfinished >= points[i].unfinished);
    }
}

#endif

/* ---- at any moment -------------------------------------------------------------------------- */

/* One after the other, at a path, from a number on, until it is killed; what is confirmed is told.
 */
CHILD(appender)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct place p;

    if (place_open(s, args[0], NULL, &p) != HF_OK)
        return 2;
    for (int i = (int)strtol(args[1], NULL, 10);; i++) {
        hf_scope_reset(s);
        if (append_no(s, p.store, ORDER("1"), i, i % 5 ? LARGE : 50) != HF_OK ||
            write(STDOUT_FILENO, &i, sizeof(i)) != sizeof(i))
            return 3;
    }
}

static void pause_us(uint32_t us)
{
    struct timespec pause = {.tv_nsec = (long)us * 1000};

    nanosleep(&pause, NULL);
}

/* The same folder all the time: what one leaves behind the next one finds. */
TEST(blob_kill, killed_at_any_moment)
{
    enum { ROUNDS = 25, EACH = 2000 };
    const char *path = test_quick_directory(t);
    uint32_t rounds = test_times(ROUNDS);
    uint8_t *seen = calloc(ROUNDS, EACH), *told = calloc(ROUNDS, EACH);
    size_t events = 0;

    CHECK(seen && told);
    rounds = rounds < ROUNDS ? rounds : ROUNDS;
    put_foreign(path);
    for (uint32_t round = 0; round < rounds; round++) {
        struct sight sight = {.seen = seen, .seen_len = (size_t)ROUNDS * EACH};
        int out, status, number;
        char from[16];
        pid_t pid;

        snprintf(from, sizeof(from), "%d", (int)round * EACH);
        pid = test_child("appender", (const char *[]){path, from, NULL}, &out);
        CHECK(read(out, &number, sizeof(number)) == sizeof(number));
        told[number] = 1;
        pause_us((uint32_t)test_random_below(t, 15000));
        CHECK_INT(0, kill(pid, SIGKILL));
        while (read(out, &number, sizeof(number)) == sizeof(number))
            told[number] = 1;
        close(out);
        CHECK_INT(pid, waitpid(pid, &status, 0));
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        memset(seen, 0, (size_t)ROUNDS * EACH);
        look(path, &sight);
        CHECK(sight.events > events);
        events = sight.events;
        for (size_t i = 0; i < (size_t)ROUNDS * EACH; i++) {
            CHECK(seen[i] <= 1);
            CHECK(!told[i] || seen[i]);
        }
    }
    free(seen);
    free(told);
}
