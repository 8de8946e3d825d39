/*
 * cli/frame/output/progress.c: one line that is written again and again, or a line a second.
 */
#include "cli/frame/output/progress.h"

#include <assert.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ONE_LINE_US = 200 * 1000, LINES_US = 1000 * 1000, ERASED = 8, LINE_MAX_LEN = 512 };

static int64_t now_us(const struct progress *progress)
{
    const struct hf_env *env = hf_scope_env(progress->cli->scope);

    return env->elapsed_us(env->user);
}

void hf__progress_begin(struct progress *progress, struct cli *cli, bool quiet, bool always)
{
    *progress = (struct progress){.cli = cli};
    if (isatty(STDERR_FILENO) == 1 && (!quiet || always))
        progress->kind = PROGRESS_ONE_LINE;
    else if (always)
        progress->kind = PROGRESS_LINES;
    progress->begin_us = now_us(progress);
}

bool hf__progress_due(struct progress *progress, bool done)
{
    int64_t now = now_us(progress);

    assert(progress->cli);
    if (progress->kind == PROGRESS_HIDDEN)
        return false;
    if (progress->any && !done &&
        now - progress->last_us < (progress->kind == PROGRESS_LINES ? LINES_US : ONE_LINE_US))
        return false;
    progress->last_us = now;
    return true;
}

double hf__progress_rate(const struct progress *progress, uint64_t count)
{
    int64_t took_us = now_us(progress) - progress->begin_us;

    return took_us > 0 ? (double)count * 1e6 / (double)took_us : 0.0;
}

void hf__progress_print(struct progress *progress, const char *format, ...)
{
    FILE *err = progress->cli->err;
    char line[LINE_MAX_LEN];
    size_t room = sizeof(line) - 1;
    struct winsize size;
    va_list args;
    int len;

    assert(progress->kind != PROGRESS_HIDDEN);
    va_start(args, format);
    len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len < 0)
        return;
    progress->any = true;
    if (progress->kind != PROGRESS_ONE_LINE) {
        fprintf(err, "%s\n", line);
        fflush(err);
        return;
    }
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_col - 1u < room)
        room = size.ws_col - 1u; /* a longer line would be two, and could not be written again */
    if ((size_t)len > room)
        len = (int)room;
    assert((size_t)len <= room && room < sizeof(line));
    fprintf(err, "\r%.*s", len, line);
    if ((size_t)len + ERASED <= room)
        fprintf(err, "%*s", ERASED, ""); /* what a longer one before may have left */
    else
        fprintf(err, "%*s", (int)(room - (size_t)len), "");
    fflush(err);
}

void hf__progress_end(struct progress *progress)
{
    if (progress->any && progress->kind == PROGRESS_ONE_LINE)
        fputc('\n', progress->cli->err);
    progress->any = false;
}
