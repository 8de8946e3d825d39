/* cli/log_test.c: lines through a pipe; (n) is an invariant of log.c. */
#include "cli/serve/log.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 2 * LOG_LINE_MAX };

struct pipe_log {
    struct cli_log log;
    int read_end;
};

static int64_t fixed_clock(void *user)
{
    (void)user;
    return 1794727200123456; /* 2026-11-15T07:20:00.123456Z */
}

static struct pipe_log begin(void)
{
    struct pipe_log p;
    int ends[2];

    CHECK(pipe(ends) == 0);
    hf__log_begin(&p.log, ends[1], NULL);
    p.log.wall_us = fixed_clock;
    p.read_end = ends[0];
    return p;
}

static void end(struct pipe_log *p)
{
    close(p->log.fd);
    close(p->read_end);
}

/* What one read() gets, which is what one write() wrote as long as nobody writes more. */
static struct hf_str written(struct pipe_log *p, char room[ROOM])
{
    ssize_t len = read(p->read_end, room, ROOM);

    CHECK(len >= 0);
    return hf_str_of(room, (size_t)len);
}

TEST(log, text)
{
    struct pipe_log p = begin();
    char room[ROOM];

    hf__log_line(HF_LOG_INFO, HF_STR("serving on 127.0.0.1:8000"), &p.log);
    CHECK_STR("2026-11-15T07:20:00.123Z info  serving on 127.0.0.1:8000\n", written(&p, room));
    hf__log_line(HF_LOG_WARNING, HF_STR("w"), &p.log);
    CHECK_STR("2026-11-15T07:20:00.123Z warn  w\n", written(&p, room));
    hf__log_print(&p.log, HF_LOG_ERROR, "%s %d", "e", 7);
    CHECK_STR("2026-11-15T07:20:00.123Z error e 7\n", written(&p, room));
    end(&p);
}

TEST(log, json)
{
    struct pipe_log p = begin();
    char room[ROOM];

    p.log.format = LOG_JSON;
    hf__log_line(HF_LOG_INFO, HF_STR("a \"b\" \\ \n \x7f \xc3\xa9 \xff \xed\xa0\x80"), &p.log);
    CHECK_STR("{\"time\":\"2026-11-15T07:20:00.123Z\",\"level\":\"info\",\"message\":\"a \\\"b\\\" "
              "\\\\ \\u000a \\u007f \xc3\xa9 \\ufffd \\ufffd\\ufffd\\ufffd\"}\n",
              written(&p, room));
    end(&p);
}

/* (2) */
TEST(log, nothing_can_forge_a_line)
{
    struct pipe_log p = begin();
    char room[ROOM];

    hf__log_line(HF_LOG_INFO, HF_STR("x\n2026-11-15 info\r\x1b[2J\0y \xc2\x9b \xc3\xa9 \xc0\x80"),
                 &p.log);
    CHECK_STR("2026-11-15T07:20:00.123Z info  x\\x0a2026-11-15 info\\x0d\\x1b[2J\\x00y \\u009b "
              "\xc3\xa9 \\xc0\\x80\n",
              written(&p, room));
    end(&p);
}

TEST(log, levels)
{
    struct pipe_log p = begin();
    char room[ROOM];

    p.log.level = HF_LOG_WARNING;
    hf__log_line(HF_LOG_DEBUG, HF_STR("no"), &p.log);
    hf__log_line(HF_LOG_INFO, HF_STR("no"), &p.log);
    hf__log_print(&p.log, HF_LOG_INFO, "no");
    hf__log_line(HF_LOG_WARNING, HF_STR("yes"), &p.log);
    CHECK_STR("2026-11-15T07:20:00.123Z warn  yes\n", written(&p, room));
    p.log.level = HF_LOG_DEBUG;
    hf__log_line(HF_LOG_DEBUG, HF_STR("yes"), &p.log);
    CHECK_STR("2026-11-15T07:20:00.123Z debug yes\n", written(&p, room));
    end(&p);
}

TEST(log, the_journal_gets_the_level_in_front)
{
    struct pipe_log p = begin();
    struct cli_log other;
    struct stat info;
    char id[64];
    char room[ROOM];

    CHECK(fstat(p.log.fd, &info) == 0);
    snprintf(id, sizeof(id), "%llu:%llu", (unsigned long long)info.st_dev,
             (unsigned long long)info.st_ino);
    hf__log_begin(&p.log, p.log.fd, id);
    p.log.wall_us = fixed_clock;
    hf__log_line(HF_LOG_WARNING, HF_STR("w"), &p.log);
    CHECK_STR("<4>2026-11-15T07:20:00.123Z warn  w\n", written(&p, room));
    hf__log_begin(&other, p.log.fd, "1:2"); /* inherited: another's stderr */
    CHECK(!other.journal);
    end(&p);
}

/* (1): cut between characters, still valid, still one line. */
TEST(log, long_lines_are_cut)
{
    struct pipe_log p = begin();
    char text[3 * LOG_LINE_MAX];
    char room[ROOM];
    struct hf_str got;

    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    hf__log_line(HF_LOG_INFO, hf_str_of(text, sizeof(text)), &p.log);
    got = written(&p, room);
    CHECK(got.len <= LOG_LINE_MAX && got.len > LOG_LINE_MAX - 16);
    CHECK(memcmp(got.ptr + got.len - 7, "\xe2\x82\xac...\n", 7) == 0);
    p.log.format = LOG_JSON;
    memset(text, '\n', sizeof(text));
    hf__log_line(HF_LOG_INFO, hf_str_of(text, sizeof(text)), &p.log);
    got = written(&p, room);
    CHECK(got.len <= LOG_LINE_MAX && got.len > LOG_LINE_MAX - 24);
    CHECK(memcmp(got.ptr + got.len - 12, "\\u000a...\"}\n", 12) == 0);
    end(&p);
}

/* (3) */
TEST(log, a_log_that_is_gone_does_not_hurt)
{
    struct cli_log log;

    hf__log_begin(&log, -1, "1:2");
    errno = EDOM;
    hf__log_line(HF_LOG_ERROR, HF_STR("x"), &log);
    CHECK_INT(EDOM, errno);
}

enum { THREADS = 4, LINES = 500 };

static void *many_lines(void *user)
{
    char text[200];

    memset(text, 'a', sizeof(text));
    for (int i = 0; i < LINES; i++)
        hf__log_line(HF_LOG_INFO, hf_str_of(text, sizeof(text)), user);
    return NULL;
}

/* (1) */
TEST(log, lines_of_threads_do_not_mix)
{
    struct pipe_log p = begin();
    pthread_t threads[THREADS];
    FILE *lines;
    char line[400];
    int count = 0;

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, many_lines, &p.log) == 0);
    lines = fdopen(p.read_end, "r");
    while (count < THREADS * LINES && fgets(line, sizeof(line), lines)) {
        CHECK_INT(31 + 200 + 1, strlen(line));
        CHECK(strncmp(line, "2026-11-15T07:20:00.123Z info  aaaa", 35) == 0);
        count++;
    }
    CHECK_INT(THREADS * LINES, count);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fclose(lines);
    close(p.log.fd);
}
