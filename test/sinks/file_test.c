/*
 * sinks/file_test.c: lines in files and on standard output; (n) is of sink_file.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../http/help.h"
#include "help.h"

struct cabinet {
    struct desk d;
    char path[200];
    char text[1 << 24];
};

static struct cabinet *cabinet_open(struct test *t, const char *options)
{
    struct cabinet *c = calloc(1, sizeof(*c));

    desk_open(t, &c->d);
    snprintf(c->path, sizeof(c->path), "%s/events", test_directory(t));
    desk_sink(&c->d, "file:%s?%s", c->path, options);
    return c;
}

static void cabinet_close(struct cabinet *c)
{
    desk_close(&c->d);
    free(c);
}

static struct hf_str contents(struct cabinet *c, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(c->text, 1, sizeof(c->text) - 1, file) : 0;

    if (file)
        fclose(file);
    c->text[len] = '\0';
    return hf_str_of(c->text, len);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    fputs(text, file);
    fclose(file);
}

/* Every line is an event; how many there are of that id, or of all. */
static size_t count_lines(struct cabinet *c, const char *path, const char *id)
{
    struct hf_str text = contents(c, path);
    size_t count = 0;
    char *line = c->text;

    CHECK(text.len == 0 || text.ptr[text.len - 1] == '\n');
    while (*line) {
        char *end = strchr(line, '\n');
        json_t *event;

        *end = '\0';
        event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        CHECK(event != NULL);
        count += !id || strcmp(id, json_string_value(json_object_get(event, "id"))) == 0;
        json_decref(event);
        line = end + 1;
    }
    return count;
}

static void send_one(struct cabinet *c, const char *id)
{
    desk_clear(&c->d);
    desk_add(&c->d, id, NULL, "{\"a\":\n1}");
    CHECK_OK(desk_send(&c->d));
    CHECK_INT(HF_OK, c->d.deliveries[0].status);
}

TEST(file, has_a_line_for_each_event)
{
    struct cabinet *c = cabinet_open(t, "");
    struct stat about;

    CHECK_INT(100, hf_sink_ops(c->d.sink)->batch_max);
    CHECK(hf_sink_ops(c->d.sink)->keeps_order && hf_sink_ops(c->d.sink)->workers == 1);
    CHECK_OK(hf_sink_probe(c->d.s, c->d.sink));
    desk_add(&c->d, "a", "k", "1");
    desk_add(&c->d, "b", "k", "{\"x\":\n[ ]}");
    CHECK_OK(desk_send(&c->d));
    CHECK_OK(desk_send(&c->d));
    CHECK_INT(4, count_lines(c, c->path, NULL));
    CHECK_INT(2, count_lines(c, c->path, "b"));
    CHECK_INT(0, stat(c->path, &about));
    CHECK_INT(0, about.st_mode & 0007);
    cabinet_close(c);
}

TEST(file, payloads_are_lines_when_they_can_be)
{
    struct cabinet *c = cabinet_open(t, "form=payload&sync=no&batch=5");

    CHECK_INT(5, hf_sink_ops(c->d.sink)->batch_max);
    desk_add(&c->d, "a", "k", "[ 1,\n2 ]");
    desk_add(&c->d, "b", "l", "text \x01");
    desk_add(&c->d, "c", "m", "two\nlines");
    desk_add(&c->d, "d", "m", "behind it");
    desk_add(&c->d, "e", NULL, "");
    CHECK_OK(desk_send(&c->d));
    CHECK_STR("[1,2]\ntext \x01\n\n", contents(c, c->path));
    CHECK_INT(HF_INVALID, c->d.deliveries[2].status);
    CHECK(c->d.deliveries[2].for_good);
    CHECK_INT(HF_INTERNAL, c->d.deliveries[3].status);
    CHECK(!c->d.deliveries[3].for_good);
    CHECK_INT(HF_OK, c->d.deliveries[4].status);
    cabinet_close(c);
}

TEST(file, lines_may_be_those_of_outbox_event_bus)
{
    struct cabinet *c = cabinet_open(t, "form=outbox-event-bus");

    desk_add(&c->d, "a", "k", "[ 1,\n2 ]")->time_us = 0;
    CHECK_OK(desk_send(&c->d));
    CHECK_STR("{\"id\":\"a\",\"type\":\"order.placed\",\"payload\":[1,2],"
              "\"occurredAt\":\"1970-01-01T00:00:00.000Z\"}\n",
              contents(c, c->path));
    cabinet_close(c);
}

TEST(file, an_event_that_is_none_does_not_stop_the_others)
{
    struct cabinet *c = cabinet_open(t, "");

    desk_add(&c->d, NULL, NULL, "1");
    desk_add(&c->d, "b", NULL, "1");
    CHECK_OK(desk_send(&c->d));
    CHECK_INT(HF_INVALID, c->d.deliveries[0].status);
    CHECK(c->d.deliveries[0].for_good);
    CHECK_INT(HF_OK, c->d.deliveries[1].status);
    CHECK_INT(1, count_lines(c, c->path, NULL));
    cabinet_close(c);
}

TEST(file, is_opened_again_when_it_was_moved_away_or_removed)
{
    struct cabinet *c = cabinet_open(t, "");
    char moved[220];

    snprintf(moved, sizeof(moved), "%s.1", c->path);
    send_one(c, "a");
    CHECK_INT(0, rename(c->path, moved));
    send_one(c, "b");
    CHECK_INT(1, count_lines(c, moved, "a"));
    CHECK_INT(1, count_lines(c, c->path, "b"));
    CHECK_INT(1, count_lines(c, c->path, NULL));
    CHECK_INT(0, unlink(c->path));
    send_one(c, "c");
    CHECK_INT(1, count_lines(c, c->path, NULL));
    CHECK_INT(0, truncate(c->path, 0)); /* copytruncate */
    send_one(c, "d");
    CHECK_INT(1, count_lines(c, c->path, "d"));
    cabinet_close(c);
}

/* (1) */
TEST(file, half_a_line_of_ours_is_cut_off_and_anything_else_is_kept)
{
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"", ""},
        {"{", ""},
        {"{\"specversion\":\"1.0\",\"id\":\"x\",\"da", ""},
        {"whole\n{\"specv", "whole\n"},
        {"whole\n{\"specversion\":\"1.0\",", "whole\n"},
        {"somebody's", "somebody's\n"},
        {"whole\n{\"other\":", "whole\n{\"other\":\n"},
        {"whole\n", "whole\n"},
        {"\n", "\n"},
    };
    struct cabinet *c = cabinet_open(t, "form=event");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text, rest = {NULL, 0};

        put_text(c->path, cases[i].before);
        send_one(c, "new");
        text = contents(c, c->path);
        CHECK(str_after(text, str_of(cases[i].after), &rest));
        CHECK(str_after(rest, HF_STR("{\"specversion\":\"1.0\",\"id\":\"new\""), &rest));
    }
    cabinet_close(c);
}

TEST(file, a_long_half_line_is_cut_off_too)
{
    struct cabinet *c = cabinet_open(t, "");
    FILE *file = fopen(c->path, "w");

    fputs("whole\n{\"specversion\":\"1.0\",\"id\":\"", file);
    for (int i = 0; i < 100000; i++)
        fputc('x', file);
    fclose(file);
    send_one(c, "new");
    CHECK(contents(c, c->path).len < 1000);
    CHECK_HAS("whole\n{\"specversion\":\"1.0\",\"id\":\"new\"", contents(c, c->path));
    cabinet_close(c);
}

/* When there is no room the batch is taken back, as a whole, and is not done. */
TEST(file, a_batch_that_does_not_fit_leaves_no_trace)
{
    struct cabinet *c = cabinet_open(t, "");
    struct rlimit before, small = {.rlim_cur = 600, .rlim_max = RLIM_INFINITY};
    sighandler_t handler = signal(SIGXFSZ, SIG_IGN);
    size_t len;

    send_one(c, "a");
    len = contents(c, c->path).len;
    desk_clear(&c->d);
    for (int i = 0; i < 5; i++)
        desk_add(&c->d, "b", NULL, "1");
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_STATUS(HF_IO, desk_send(&c->d));
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    for (int i = 0; i < 5; i++)
        CHECK_INT(HF_INTERNAL, c->d.deliveries[i].status);
    CHECK_INT(len, contents(c, c->path).len);
    CHECK_OK(desk_send(&c->d));
    CHECK_INT(6, count_lines(c, c->path, NULL));
    cabinet_close(c);
}

TEST(file, places_that_are_no_files_are_refused)
{
    struct cabinet *c = cabinet_open(t, "");

    desk_add(&c->d, "a", NULL, "1");
    desk_sink(&c->d, "file:/nonexistent/x%%3Fy");
    CHECK_STATUS(HF_IO, desk_send(&c->d));
    CHECK_HAS("opening /nonexistent/x?y failed", hf_scope_error(c->d.s)->message);
    CHECK_STATUS(HF_IO, hf_sink_probe(c->d.s, c->d.sink));
    desk_sink(&c->d, "file:/dev/null");
    CHECK_STATUS(HF_INVALID, desk_send(&c->d));
    CHECK_INT(0, mkfifo(c->path, 0600));
    desk_sink(&c->d, "file:%s", c->path);
    CHECK_STATUS(HF_INVALID, desk_send(&c->d)); /* and does not wait for a reader */
    CHECK_INT(HF_INTERNAL, c->d.deliveries[0].status);
    cabinet_close(c);
}

TEST(file, waits_for_the_lock_of_another_until_the_deadline)
{
    struct cabinet *c = cabinet_open(t, "");
    int fd;

    send_one(c, "a");
    fd = open(c->path, O_RDONLY);
    CHECK_INT(0, flock(fd, LOCK_EX));
    hf_scope_reset(c->d.s);
    hf_scope_timeout_ms(c->d.s, 50);
    CHECK_STATUS(HF_TIMEOUT, hf_sink_send(c->d.s, c->d.sink, c->d.deliveries, 1));
    CHECK_INT(HF_INTERNAL, c->d.deliveries[0].status);
    close(fd);
    CHECK_OK(desk_send(&c->d));
    CHECK_INT(2, count_lines(c, c->path, NULL));
    cabinet_close(c);
}

enum { CHILDREN = 8, BATCH = 3, BATCHES_MAX = 20000 };

struct done {
    int child, batch;
};

/* A child that sends all the time, and says what is done. */
static pid_t start_child(struct cabinet *c, int number, int out)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    for (int i = 0; i < BATCHES_MAX; i++) {
        const struct done done = {number, i};

        desk_clear(&c->d);
        for (int j = 0; j < BATCH; j++) {
            char id[40];

            snprintf(id, sizeof(id), "%d.%d.%d", number, i, j);
            desk_add(&c->d, id, NULL, "{\"text\":\"some more, so that a line has a length\"}");
        }
        if (desk_send(&c->d) != HF_OK || c->d.deliveries[BATCH - 1].status != HF_OK ||
            write(out, &done, sizeof(done)) != sizeof(done))
            _exit(1);
    }
    _exit(0);
}

/* Two children for a while, killed while they write; `last` is told how far each has come. */
static void run_children(struct cabinet *c, struct test *t, int first, int *last)
{
    pid_t children[2];
    struct done done;
    int ends[2];

    CHECK_INT(0, pipe(ends));
    for (int i = 0; i < 2; i++) {
        children[i] = start_child(c, first + i, ends[1]);
        CHECK(children[i] > 0);
    }
    close(ends[1]);
    CHECK_INT(sizeof(done), read(ends[0], &done, sizeof(done)));
    last[done.child] = done.batch;
    sleep_ms((int)test_random_below(t, 30));
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    while (read(ends[0], &done, sizeof(done)) == sizeof(done))
        last[done.child] = done.batch;
    close(ends[0]);
}

/* Killed in the middle, again and again: what was done is there, once and in order, and every line
 * is whole. */
TEST(file, survives_the_death_of_its_writers)
{
    struct cabinet *c = cabinet_open(t, "sync=no");
    int last[CHILDREN], next[CHILDREN] = {0}; /* lines of each that were seen */
    int children = (int)test_times(CHILDREN / 2) * 2;
    char *line;

    children = children < CHILDREN ? children : CHILDREN;
    for (int i = 0; i < children; i++)
        last[i] = -1;
    for (int i = 0; i < children; i += 2)
        run_children(c, t, i, last);
    send_one(c, "last"); /* repairs what the last ones left */
    CHECK(contents(c, c->path).len + 1 < sizeof(c->text));
    for (line = c->text; *line; line = strchr(line, '\n') + 1) {
        const char *id = strstr(line, "\"id\":\"");
        int child, batch, place;

        if (sscanf(id, "\"id\":\"%d.%d.%d\"", &child, &batch, &place) != 3)
            continue; /* "last" */
        CHECK_INT(next[child], batch * BATCH + place);
        next[child]++;
    }
    for (int i = 0; i < children; i++)
        CHECK(next[i] >= (last[i] + 1) * BATCH);
    CHECK(count_lines(c, c->path, NULL) > (size_t)children);
    cabinet_close(c);
}

/* ---- standard output ------------------------------------------------------------------------ */

/* Standard output as the writing end of a pipe, until it is put back. */
struct tap {
    int before, out;
};

static struct tap tap_open(void)
{
    struct tap tap = {.before = dup(STDOUT_FILENO)};
    int ends[2];

    fflush(stdout);
    CHECK_INT(0, pipe(ends));
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    tap.out = ends[0];
    return tap;
}

static void tap_close(struct tap *tap)
{
    dup2(tap->before, STDOUT_FILENO);
    close(tap->before);
    close(tap->out);
}

TEST(stdout, has_a_line_for_each_event)
{
    struct desk d;
    struct tap tap;
    enum hf_status status;
    char text[4096];
    ssize_t len;

    desk_open(t, &d);
    desk_sink(&d, "stdout:?form=payload");
    desk_add(&d, "a", NULL, "[ 1 ]");
    desk_add(&d, "b", NULL, "2");
    tap = tap_open();
    status = desk_send(&d);
    len = read(tap.out, text, sizeof(text));
    tap_close(&tap);
    CHECK_OK(status);
    CHECK_STR("[1]\n2\n", hf_str_of(text, (size_t)len));
    CHECK_INT(HF_OK, d.deliveries[1].status);
    desk_close(&d);
}

TEST(stdout, a_closed_pipe_is_an_outage_and_ends_nobody)
{
    struct desk d;
    struct tap tap;
    enum hf_status status;

    desk_open(t, &d);
    desk_sink(&d, "stdout:");
    desk_add(&d, "a", NULL, "1");
    tap = tap_open();
    close(tap.out);
    status = desk_send(&d);
    tap.out = -1;
    tap_close(&tap);
    CHECK_STATUS(HF_IO, status);
    CHECK_INT(HF_INTERNAL, d.deliveries[0].status);
    CHECK_HAS("writing to standard output failed: Broken pipe", hf_scope_error(d.s)->message);
    desk_close(&d);
}

/* A reader that does not read: the deadline holds, whole lines are done, and the next batch begins
 * on a line of its own. */
TEST(stdout, a_stuck_reader_costs_no_more_than_the_deadline)
{
    struct desk d;
    struct tap tap;
    enum hf_status first, second;
    size_t done = 0, lines = 0, len = 0;
    char *large, *text = malloc(1 << 20);

    desk_open(t, &d);
    desk_sink(&d, "stdout:?form=payload");
    large = hf_scope_alloc(d.keep, 10000);
    memset(large, 'x', 10000);
    for (int i = 0; i < 20; i++)
        desk_add(&d, "a", NULL, "")->payload = hf_bytes_of(large, 10000);
    tap = tap_open();
    hf_scope_timeout_ms(d.s, 100);
    first = hf_sink_send(d.s, d.sink, d.deliveries, d.len);
    for (size_t i = 0; i < d.len; i++)
        done += d.deliveries[i].status == HF_OK;
    len = (size_t)read(tap.out, text, 1 << 20);
    d.len = 1;
    d.events[0].event.payload = hf_bytes_of("y", 1);
    second = desk_send(&d);
    len += (size_t)read(tap.out, text + len, (1 << 20) - len);
    tap_close(&tap);
    CHECK_STATUS(HF_TIMEOUT, first);
    CHECK_OK(second);
    for (size_t i = 0; i + 10000 < len; i++)
        if (text[i] == 'x' && (i == 0 || text[i - 1] == '\n') && text[i + 10000] == '\n')
            lines++;
    CHECK(done > 0 && done < 20);
    CHECK_INT(done, lines);
    CHECK(len > 3 && memcmp(text + len - 3, "\ny\n", 3) == 0);
    free(text);
    desk_close(&d);
}
