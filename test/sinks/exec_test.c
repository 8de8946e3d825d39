/*
 * sinks/exec_test.c: programs, well behaved and otherwise; (n) is of sink_exec.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../http/help.h"
#include "help.h"

struct workshop {
    struct desk d;
    char path[200]; /* of a script */
    char out[220];  /* where it may leave something */
    char text[65536];
};

static struct workshop *workshop_open(struct test *t)
{
    struct workshop *w = calloc(1, sizeof(*w));
    const char *directory = test_directory(t);

    desk_open(t, &w->d);
    snprintf(w->path, sizeof(w->path), "%s/script", directory);
    snprintf(w->out, sizeof(w->out), "%s/out", directory);
    desk_add(&w->d, "id-1", "k", "pay\nload");
    return w;
}

static void workshop_close(struct workshop *w)
{
    desk_close(&w->d);
    free(w);
}

/* Open a sink for a script of a shell. "$OUT" is a file; options follow a '?'. */
static void script(struct workshop *w, const char *options, const char *text)
{
    FILE *file = fopen(w->path, "w");

    fprintf(file, "#!/bin/sh\nOUT=%s\n%s\n", w->out, text);
    fclose(file);
    chmod(w->path, 0700);
    desk_sink(&w->d, "exec:%s 'a b'%s", w->path, options);
}

static struct hf_str left(struct workshop *w)
{
    FILE *file = fopen(w->out, "r");
    size_t len = file ? fread(w->text, 1, sizeof(w->text) - 1, file) : 0;

    if (file)
        fclose(file);
    return hf_str_of(w->text, len);
}

TEST(exec, gets_the_payload_and_variables)
{
    struct workshop *w = workshop_open(t);
    struct hf_event *event = &w->d.events[0].event;

    setenv("HF_EVENT_STALE", "old", 1);
    event->sequence = 9;
    event->urgent = true;
    event->aggregate_type = HF_STR("$(touch /tmp/evil)\nx");
    event->headers = HF_ITEM(w->d.keep, HF_S("a", HF_STR("b\"")), HF_N("n", 7));
    w->d.events[0].attempts = 2;
    script(w, "", "cat >$OUT; echo \"[$1]\" >>$OUT; env | grep ^HF_EVENT_ | sort >>$OUT");
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_OK, w->d.deliveries[0].status);
    CHECK_STR("pay\nload[a b]\n"
              "HF_EVENT_AGGREGATE_TYPE=$(touch /tmp/evil)\n"
              "HF_EVENT_ATTEMPT=3\n"
              "HF_EVENT_CONTENT_TYPE=application/json\n"
              "HF_EVENT_HEADERS={\"a\":\"b\\\"\",\"n\":7}\n"
              "HF_EVENT_ID=id-1\n"
              "HF_EVENT_KEY=k\n"
              "HF_EVENT_SEQUENCE=9\n"
              "HF_EVENT_SOURCE=/shop\n"
              "HF_EVENT_TIME=2026-02-01T00:00:00.123456Z\n"
              "HF_EVENT_TYPE=order.placed\n"
              "HF_EVENT_URGENT=1\n",
              left(w));
    unsetenv("HF_EVENT_STALE");
    workshop_close(w);
}

TEST(exec, exit_codes_are_outcomes)
{
    static const struct {
        const char *script;
        enum hf_status sent, status;
        bool for_good;
        const char *part;
    } cases[] = {
        {"exit 0", HF_OK, HF_OK, false, ""},
        {"echo said >&2; echo more; exit 0", HF_OK, HF_OK, false, ""},
        {"echo no >&2; exit 75", HF_OK, HF_IO, false, "ended with exit code 75: no"},
        {"exit 1", HF_OK, HF_IO, false, "ended with exit code 1"},
        {"exit 64", HF_OK, HF_INVALID, true, "64"},
        {"printf 'a\\nb\\033c\\n' >&2; exit 65", HF_OK, HF_INVALID, true, "65: a b?c"},
        {"exit 255", HF_OK, HF_IO, false, "255"},
        {"kill -9 $$", HF_OK, HF_IO, false, "was killed by signal 9"},
        {"exec 2>&-; exit 75", HF_OK, HF_IO, false, "75"},
        {"echo closed >&2; exit 69", HF_IO, HF_INTERNAL, false, "is not accepting events: closed"},
    };
    struct workshop *w = workshop_open(t);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        script(w, "", cases[i].script);
        CHECK_STATUS(cases[i].sent, desk_send(&w->d));
        CHECK_INT(cases[i].status, w->d.deliveries[0].status);
        CHECK_INT(cases[i].for_good, w->d.deliveries[0].for_good);
        if (cases[i].part[0])
            CHECK_HAS(cases[i].part, cases[i].sent == HF_OK ? w->d.deliveries[0].error
                                                            : hf_scope_error(w->d.s)->message);
    }
    workshop_close(w);
}

/* (3) */
TEST(exec, neither_a_large_payload_nor_much_noise_stops_it)
{
    struct workshop *w = workshop_open(t);
    size_t len = 3 * 1024 * 1024;
    char *payload = hf_scope_alloc(w->d.keep, len);

    memset(payload, 'x', len);
    w->d.events[0].event.payload = hf_bytes_of(payload, len);
    script(w, "", "wc -c >$OUT; head -c 300000 /dev/zero | tr '\\0' y >&2; exit 75");
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(3145728, strtoll(left(w).ptr, NULL, 10));
    CHECK_HAS("75: yyyyyyyy", w->d.deliveries[0].error);
    CHECK(w->d.deliveries[0].error.len < 1000);
    script(w, "", "exit 0"); /* does not read it */
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_OK, w->d.deliveries[0].status);
    w->d.events[0].event.payload = hf_bytes_of("", 0);
    script(w, "", "wc -c >$OUT");
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(0, strtoll(left(w).ptr, NULL, 10));
    workshop_close(w);
}

static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 500; i++) {
        char path[64], state = 'X';
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        file = fopen(path, "r");
        if (!file)
            return true;
        if (fscanf(file, "%*d %*s %c", &state) != 1)
            state = 'X';
        fclose(file);
        if (state == 'Z' || state == 'X')
            return true;
        sleep_ms(10);
    }
    return false;
}

/* (2): with what it started, and although it ignores SIGTERM. */
TEST(exec, what_does_not_end_in_time_is_ended_with_all_it_started)
{
    struct workshop *w = workshop_open(t);

    script(w, "?timeout_ms=150&grace_ms=50",
           "trap '' TERM; sleep 60 & echo $! >$OUT; sleep 60; sleep 60");
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_IO, w->d.deliveries[0].status);
    CHECK(!w->d.deliveries[0].for_good);
    CHECK_HAS("did not end within 150 ms", w->d.deliveries[0].error);
    if (left(w).len)
        CHECK(is_gone((pid_t)strtol(w->text, NULL, 10)));

    script(w, "?timeout_ms=150&grace_ms=60000", "trap 'exit 0' TERM; sleep 60 & wait");
    CHECK_OK(desk_send(&w->d)); /* it heeds SIGTERM; it was too late all the same */
    CHECK_INT(HF_IO, w->d.deliveries[0].status);
    workshop_close(w);
}

TEST(exec, keeps_the_deadline_of_the_scope_and_its_cancellation)
{
    struct workshop *w = workshop_open(t);
    int64_t from;

    script(w, "?grace_ms=0", "echo $$ >$OUT; sleep 60");
    hf_scope_reset(w->d.s);
    hf_scope_timeout_ms(w->d.s, 100);
    from = clock_ms();
    CHECK_OK(hf_sink_send(w->d.s, w->d.sink, w->d.deliveries, 1));
    CHECK(clock_ms() - from < 20000);
    CHECK_INT(HF_TIMEOUT, w->d.deliveries[0].status); /* it may be this event's fault */
    CHECK(!w->d.deliveries[0].for_good);
    if (left(w).len)
        CHECK(is_gone((pid_t)strtol(w->text, NULL, 10)));
    workshop_close(w);
}

static void *cancel_later(void *scope)
{
    sleep_ms(50);
    hf_scope_cancel(scope);
    return NULL;
}

TEST(exec, that_is_canceled_is_nobodys_fault)
{
    struct workshop *w = workshop_open(t);
    pthread_t thread;

    script(w, "?grace_ms=0", "sleep 60");
    hf_scope_reset(w->d.s);
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_later, w->d.s));
    CHECK_STATUS(HF_CANCELED, hf_sink_send(w->d.s, w->d.sink, w->d.deliveries, 1));
    CHECK_INT(HF_INTERNAL, w->d.deliveries[0].status);
    pthread_join(thread, NULL);
    workshop_close(w);
}

/* One that it leaves behind with its standard error does not keep us. */
TEST(exec, does_not_wait_for_grandchildren)
{
    struct workshop *w = workshop_open(t);
    int64_t from = clock_ms();

    script(w, "", "sleep 30 & echo $! >$OUT; exit 0");
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_OK, w->d.deliveries[0].status);
    CHECK(clock_ms() - from < 20000);
    CHECK(left(w).len > 0);
    kill((pid_t)strtol(w->text, NULL, 10), SIGKILL);
    workshop_close(w);
}

TEST(exec, what_cannot_be_started_is_an_outage)
{
    struct workshop *w = workshop_open(t);

    desk_sink(&w->d, "exec:/nonexistent/program");
    CHECK_STATUS(HF_IO, desk_send(&w->d));
    CHECK_INT(HF_INTERNAL, w->d.deliveries[0].status);
    CHECK_HAS("/nonexistent/program cannot be started", hf_scope_error(w->d.s)->message);
    workshop_close(w);
}

TEST(exec, what_cannot_be_variables_fails_for_good)
{
    struct workshop *w = workshop_open(t);
    size_t len = 4 * 1024 * 1024;
    char *large = hf_scope_alloc(w->d.keep, len);

    script(w, "", "exit 0");
    w->d.events[0].event.tenant = hf_str_of("a\0b", 3);
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_INVALID, w->d.deliveries[0].status);
    CHECK(w->d.deliveries[0].for_good);
    CHECK_HAS("the value of HF_EVENT_TENANT contains a NUL byte", w->d.deliveries[0].error);
    memset(large, 'x', len);
    w->d.events[0].event.tenant = hf_str_of(large, len);
    CHECK_OK(desk_send(&w->d));
    CHECK_INT(HF_LIMIT, w->d.deliveries[0].status);
    CHECK(w->d.deliveries[0].for_good);
    workshop_close(w);
}

/* (1): no process and no descriptor is left behind. */
TEST(exec, leaves_nothing_behind)
{
    struct workshop *w = workshop_open(t);
    int before, after;

    script(w, "", "exit 0");
    CHECK_OK(desk_send(&w->d));
    before = open("/dev/null", O_RDONLY);
    close(before);
    for (int i = 0; i < 20; i++)
        CHECK_OK(desk_send(&w->d));
    after = open("/dev/null", O_RDONLY);
    close(after);
    CHECK_INT(before, after);
    workshop_close(w);
}

TEST(exec, fails_cleanly_without_memory)
{
    struct workshop *w = workshop_open(t);

    w->d.events[0].event.headers = HF_ITEM(w->d.keep, HF_N("n", 7));
    script(w, "", "exit 0");
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&w->d.env);
        struct hf_delivery delivery = {.event = &w->d.events[0]};
        enum hf_status status = s ? hf_sink_send(s, w->d.sink, &delivery, 1) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_scope_free(s);
    }
    workshop_close(w);
}
