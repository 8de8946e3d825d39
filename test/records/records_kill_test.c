/*
 * records/records_kill_test.c: processors that are real processes, and are killed.
 *
 * A child works on all records, each in one transaction with its effect, and writes a line into a
 * ledger when it begins a record and when it has completed one. Its parent kills it now and then, and in the end reads the ledger and
 * the database: each record was completed once, had its effect once, and none was forgotten; no two
 * claims had one fence. A thousand records, which HF_TEST_TIMES=50 makes fifty thousand.
 */
#include <holdfast/records.h>

#include <holdfast/client.h>
#include <holdfast/engine.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

enum { RECORDS = 1000, BEGUN_MAX = 64, LEASE_MS = 1500, WORKERS = 4 };

static int records_len(void)
{
    return (int)test_times(RECORDS);
}

static void sleep_ms(uint64_t ms)
{
    const struct timespec for_ms = {.tv_sec = (time_t)(ms / 1000),
                                    .tv_nsec = (long)(ms % 1000 * 1000000)};

    nanosleep(&for_ms, NULL);
}

static enum hf_status open_url(struct hf_scope *s, struct hf_str url, struct hf_db **db)
{
    if (url.len > 4 && memcmp(url.ptr, "http", 4) == 0)
        return hf_connect(s, url, HF_OPTIONS(hf_client_options, .no_aws_config = true), db);
    return hf_open(s, url, HF_OPTIONS(hf_engine_options, .sync = HF_SYNC_NONE), db);
}

/* ---- the child ------------------------------------------------------------------------------ */

struct child {
    struct hf_db *db;
    struct hf_records *records;
    int ledger;
};

/* Lines are short, so that each is written whole or not at all. */
static void write_line(struct child *child, char what, const struct hf_record_info *record)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%c %.*s %llu %.*s\n", what, HF_FMT(record->run_time),
                       (unsigned long long)record->fence, HF_FMT(record->token));

    if (write(child->ledger, line, (size_t)len) != len)
        _exit(3);
}

static enum hf_status work(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct child *child = user;
    struct hf_update_item grow = {.table = HF_STR("Records"),
                                  .key = HF_ITEM(s, HF_S("AccountId", HF_STR("effects")),
                                                 HF_S("RunTime", record->run_time)),
                                  .update = HF_STR("ADD #n :one"),
                                  .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
                                  .values = HF_ITEM(s, HF_N(":one", 1))};
    struct hf_transact_write actions[2] = {{.update = &grow}};
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 2};
    enum hf_status status;

    write_line(child, 'b', record);
    if (records_len() <= RECORDS || record->run_time.ptr[record->run_time.len - 1] == '7')
        sleep_ms(3);
    status = hf_record_complete_tx(s, record, &actions[1]);
    return status == HF_OK ? hf_transact_write_items(s, child->db, &tx, NULL) : status;
}

static void ended(const struct hf_record_info *record, enum hf_record_outcome outcome,
                  const struct hf_error *error, void *user)
{
    (void)error;
    if (outcome == HF_RECORD_DONE)
        write_line(user, 'd', record);
}

static void complain(const struct hf_scope *s, const char *what)
{
    const struct hf_error *error = hf_scope_error(s);

    fprintf(stderr, "child: %s: %s: %s (operation %.*s, %d, %d)\n", what,
            hf_status_name(error->status), hf_scope_error_text(s), HF_FMT(error->operation),
            error->may_retry, error->may_have_happened);
}

/* By a database and into a ledger. */
CHILD(processor)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct child child = {.ledger = open(args[1], O_WRONLY | O_APPEND | O_CLOEXEC)};
    struct hf_processor *processor;
    enum hf_status status;

    if (child.ledger < 0 || open_url(s, hf_str_from(args[0]), &child.db) != HF_OK ||
        hf_records_open(s, child.db, NULL, &child.records) != HF_OK ||
        hf_processor_open(s, child.records,
                          HF_OPTIONS(hf_processor_options, .lease_ms = LEASE_MS, .poll_ms = 50,
                                     .workers = WORKERS, .max_retries = 20, .backoff_ms = 10,
                                     .backoff_max_ms = 200, .on_ended = ended, .user = &child),
                          &processor) != HF_OK) {
        complain(s, child.ledger < 0 ? "it has no ledger" : "cannot begin");
        return 2;
    }
    status = hf_processor_run(s, processor, work, &child, NULL);
    if (status != HF_OK)
        complain(s, "the run ended");
    hf_processor_close(processor);
    hf_records_close(child.records);
    hf_db_close(child.db);
    hf_scope_free(s);
    return status == HF_OK ? 0 : 1;
}

/* ---- the parent ----------------------------------------------------------------------------- */

struct parent {
    struct test *t;
    struct hf_scope *s;
    struct hf_str url;
    struct hf_str ledger;
};

static struct parent parent_of(struct test *t)
{
    struct parent p = {.t = t, .s = hf_scope_new(NULL)};
    int file;

    p.ledger = hf_scope_format(p.s, "%s/ledger", test_quick_directory(t));
    file = open(p.ledger.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
    return p;
}

static pid_t spawn(struct parent *p)
{
    return test_child("processor", (const char *[]){p->url.ptr, p->ledger.ptr, NULL}, NULL);
}

/* At once: a test that fails beside threads of its own may not come to say why. */
static void check_ended_well(int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fprintf(stderr, "a child ended by itself: wait status 0x%x\n", (unsigned)status);
    CHECK(WIFEXITED(status));
    CHECK_INT(0, WEXITSTATUS(status));
}

/* True: it had ended by itself, and well. */
static bool kill_one(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    if (WIFEXITED(status))
        check_ended_well(status);
    return WIFEXITED(status);
}

static void wait_one(pid_t pid)
{
    int status;

    CHECK_INT(pid, waitpid(pid, &status, 0));
    check_ended_well(status);
}

static void put_all(struct parent *p, struct hf_records *records)
{
    for (int i = 0; i < records_len(); i++) {
        struct hf_scope_mark mark = hf_scope_mark(p->s);

        CHECK_OK(
            hf_records_put(p->s, records,
                           HF_ITEM(p->s, HF_S("AccountId", hf_scope_format(p->s, "a%d", i % 7)),
                                   HF_S("RunTime", hf_scope_format(p->s, "%d", i))),
                           NULL));
        hf_scope_rewind(p->s, mark);
    }
}

struct line {
    char what;
    int number;
    unsigned long long fence;
    char token[40];
};

static void audit_ledger(struct parent *p, struct line *last, int *begun)
{
    unsigned long long(*fences)[BEGUN_MAX] = calloc((size_t)records_len(), sizeof(*fences));
    FILE *file = fopen(p->ledger.ptr, "r");
    struct line line;

    CHECK(file != NULL && fences != NULL);
    while (fscanf(file, "%c %d %llu %39s\n", &line.what, &line.number, &line.fence, line.token) ==
           4) {
        CHECK(line.number >= 0 && line.number < records_len());
        if (line.what == 'd') {
            CHECK_INT(0, last[line.number].fence); /* told once at most */
            last[line.number] = line;
            continue;
        }
        for (int i = 0; i < begun[line.number]; i++)
            CHECK(fences[line.number][i] != line.fence);
        CHECK(begun[line.number] < BEGUN_MAX);
        fences[line.number][begun[line.number]++] = line.fence;
    }
    CHECK(feof(file));
    fclose(file);
    free(fences);
}

static void audit(struct parent *p, struct hf_db *db, struct hf_records *records)
{
    struct line *last = calloc((size_t)records_len(), sizeof(*last));
    int *begun = calloc((size_t)records_len(), sizeof(*begun));

    CHECK(last && begun);
    audit_ledger(p, last, begun);
    for (int i = 0; i < records_len(); i++) {
        struct hf_scope_mark mark = hf_scope_mark(p->s);
        struct hf_str run_time = hf_scope_format(p->s, "%d", i);
        struct hf_get_item read = {.table = HF_STR("Records"),
                                   .key = HF_ITEM(p->s, HF_S("AccountId", HF_STR("effects")),
                                                  HF_S("RunTime", run_time)),
                                   .consistent = HF_YES};
        struct hf_get_item_result got;
        struct hf_record_info info;
        int64_t effects = 0;

        CHECK_OK(
            hf_records_get(p->s, records, hf_scope_format(p->s, "a%d", i % 7), run_time, &info));
        CHECK_INT(HF_RECORD_PROCESSED, info.state);
        CHECK_INT(32, info.done_by.len);
        CHECK(begun[i] >= 1);
        if (last[i].fence) {
            CHECK_STR(last[i].token, info.done_by);
            CHECK(last[i].fence == info.fence);
        }
        CHECK_OK(hf_get_item(p->s, db, &read, &got));
        CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("n")), &effects));
        CHECK_INT(1, effects);
        hf_scope_rewind(p->s, mark);
    }
    free(last);
    free(begun);
}

TEST(records_kill, a_processor_on_disk_is_killed_again_and_again)
{
    const int rounds = 10 + records_len() / 1000;
    struct parent p = parent_of(t);
    struct hf_records *records;
    struct hf_db *db;
    bool all_done = false;
    int kills = 0;

    p.url = hf_scope_format(p.s, "embedded:%s/db", test_quick_directory(t));
    CHECK_OK(open_url(p.s, p.url, &db));
    CHECK_OK(hf_records_open(p.s, db, NULL, &records));
    put_all(&p, records);
    hf_records_close(records);
    hf_db_close(db);
    for (int i = 0; i < rounds && !all_done; i++) {
        pid_t pid = spawn(&p);

        sleep_ms(60 + test_random_below(t, 80));
        all_done = kill_one(pid);
        kills += !all_done;
    }
    if (!all_done)
        wait_one(spawn(&p));
    CHECK(kills > 0);
    CHECK_OK(open_url(p.s, p.url, &db));
    CHECK_OK(hf_records_open(p.s, db, NULL, &records));
    audit(&p, db, records);
    CHECK_OK(hf_engine_check(p.s, db, NULL));
    hf_records_close(records);
    hf_db_close(db);
    hf_scope_free(p.s);
}

/* Three at once, over a network that fails now and then. */
TEST(records_kill, processors_of_a_server_are_killed_again_and_again)
{
    enum { CHILDREN = 3 };
    const int kills = 12 + records_len() / 500;
    const struct chaos_script script = {.faults = {CHAOS_CUT_ANSWER, CHAOS_CUT_REQUEST,
                                                   CHAOS_SAY_500, CHAOS_LIE_500,
                                                   CHAOS_SAY_THROTTLED, CHAOS_DELAY},
                                        .len = 6,
                                        .odds = 60,
                                        .seed = test_random(t)};
    struct parent p = parent_of(t);
    struct hf_records *records;
    pid_t children[CHILDREN];
    struct rig rig;

    rig_open(&rig);
    p.url = rig_url(&rig, p.s);
    CHECK_OK(hf_records_open(p.s, rig.truth.db, NULL, &records));
    put_all(&p, records);
    chaos_play(rig.chaos, &script);
    for (int i = 0; i < CHILDREN; i++)
        children[i] = spawn(&p);
    for (int i = 0; i < kills; i++) {
        int victim = (int)test_random_below(t, CHILDREN);

        sleep_ms(50 + test_random_below(t, 100));
        kill_one(children[victim]);
        children[victim] = spawn(&p);
    }
    for (int i = 0; i < CHILDREN; i++)
        wait_one(children[i]);
    audit(&p, rig.truth.db, records);
    hf_records_close(records);
    rig_close(&rig);
    hf_scope_free(p.s);
}
