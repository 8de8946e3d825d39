/*
 * cli/serve/log.c: lines for people, or for programs that read JSON.
 *
 *     2026-11-15T07:20:00.123Z info  serving on 127.0.0.1:8000
 *     {"time":"2026-11-15T07:20:00.123Z","level":"info","message":"serving on 127.0.0.1:8000"}
 *
 * Under systemd each line starts with its level as "<6>", which the journal takes off again.
 *
 * What always holds:
 *
 *  (1) A line is one write() of at most LOG_LINE_MAX bytes, which is as much as a pipe takes
 *      whole. So lines of several threads, and of several processes, do not mix.
 *  (2) A line is one line, whatever was logged: control characters are written as \x0a, so that
 *      text from a request cannot pretend to be a line of its own. JSON is always valid UTF-8.
 *  (3) A log that cannot be written is no reason to stop.
 */
#include "cli/serve/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)LOG_LINE_MAX <= (int)PIPE_BUF, "a line is one write to a pipe");

enum {
    TAIL_ROOM = 8,   /* for what ends a line: three dots, a quote, a brace, the line end */
    ESCAPE_MAX = 16, /* bytes that one character may become */
    UTF8_MAX = 4
};

struct line {
    char bytes[LOG_LINE_MAX];
    size_t len;
};

static const char *level_name(enum hf_log_level level)
{
    switch (level) {
    case HF_LOG_ERROR:
        return "error";
    case HF_LOG_WARNING:
        return "warn";
    case HF_LOG_INFO:
        return "info";
    case HF_LOG_DEBUG:
        break;
    }
    return "debug";
}

/* ---- one line ------------------------------------------------------------------------------- */

static void HF_PRINTF(2, 3) put(struct line *line, const char *format, ...)
{
    size_t room = sizeof(line->bytes) - line->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line->bytes + line->len, room, format, args);
    va_end(args);
    if (len > 0)
        line->len += (size_t)len < room ? (size_t)len : room - 1;
}

/* Bytes of the well-formed character at the start of `text`; 0: there is none. */
static size_t utf8_len(const unsigned char *text, size_t len)
{
    size_t want = 0;

    if (text[0] < 0x80)
        want = 1;
    else if (text[0] >= 0xc2 && text[0] < 0xf5)
        want = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (want == 0 || want > len)
        return 0;
    for (size_t i = 1; i < want; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return want;
}

/* How a character is written; returns how many bytes of `text` it took. */
static size_t escape_char(char room[ESCAPE_MAX], enum log_format format, const unsigned char *text,
                          size_t len)
{
    size_t taken = utf8_len(text, len);

    if (taken == 0 && format == LOG_JSON)
        snprintf(room, ESCAPE_MAX, "\\ufffd");
    else if (taken == 1 && (text[0] == '"' || text[0] == '\\') && format == LOG_JSON)
        snprintf(room, ESCAPE_MAX, "\\%c", text[0]);
    else if (taken == 0 || text[0] < 0x20 || text[0] == 0x7f)
        snprintf(room, ESCAPE_MAX, format == LOG_JSON ? "\\u%04x" : "\\x%02x", text[0]);
    else if (taken == 2 && text[0] == 0xc2 && text[1] < 0xa0) /* control characters again */
        snprintf(room, ESCAPE_MAX, "\\u%04x", text[1]);
    else
        snprintf(room, ESCAPE_MAX, "%.*s", (int)taken, (const char *)text);
    return taken ? taken : 1;
}

static void put_escaped(struct line *line, enum log_format format, struct hf_str text)
{
    char room[ESCAPE_MAX];

    for (size_t at = 0; at < text.len;) {
        at += escape_char(room, format, (const unsigned char *)text.ptr + at, text.len - at);
        if (line->len + strlen(room) + TAIL_ROOM > sizeof(line->bytes)) {
            put(line, "...");
            return;
        }
        put(line, "%s", room);
    }
}

static int64_t wall_us(const struct cli_log *log)
{
    struct timespec now;

    if (log->wall_us)
        return log->wall_us(log->wall_user);
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void put_time(struct line *line, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm day;
    char text[40] = "";

    if (gmtime_r(&seconds, &day))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &day);
    put(line, "%s.%03dZ", text, (int)(us % 1000000 / 1000));
}

static void write_line(const struct cli_log *log, const struct line *line)
{
    size_t done = 0;

    while (done < line->len) {
        ssize_t len = write(log->fd, line->bytes + done, line->len - done);

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return;
        done += (size_t)len;
    }
}

/* ---- the log -------------------------------------------------------------------------------- */

void hf__log_begin(struct cli_log *log, int fd, const char *journal_stream)
{
    struct stat info;
    char id[64];

    *log = (struct cli_log){.fd = fd, .level = HF_LOG_INFO};
    /* The variable may be inherited by one whose stderr leads elsewhere: compare. */
    if (!journal_stream || fstat(fd, &info) != 0)
        return;
    snprintf(id, sizeof(id), "%llu:%llu", (unsigned long long)info.st_dev,
             (unsigned long long)info.st_ino);
    log->journal = strcmp(id, journal_stream) == 0;
}

void hf__log_line(enum hf_log_level level, struct hf_str text, void *user)
{
    const struct cli_log *log = user;
    struct line line;
    int saved = errno; /* those who log an error may still want to look at it */

    if (level > log->level)
        return;
    line.len = 0;
    if (log->journal)
        put(&line, "<%d>", (int)level);
    if (log->format == LOG_JSON) {
        put(&line, "{\"time\":\"");
        put_time(&line, wall_us(log));
        put(&line, "\",\"level\":\"%s\",\"message\":\"", level_name(level));
        put_escaped(&line, log->format, text);
        put(&line, "\"}\n");
    } else {
        put_time(&line, wall_us(log));
        put(&line, " %-5s ", level_name(level));
        put_escaped(&line, log->format, text);
        put(&line, "\n");
    }
    write_line(log, &line);
    errno = saved;
}

void hf__log_print(struct cli_log *log, enum hf_log_level level, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list args;
    int len;

    if (level > log->level)
        return;
    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0)
        return;
    hf__log_line(level,
                 hf_str_of(text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1), log);
}
