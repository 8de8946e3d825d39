/*
 * cli/frame/progress.c: one line that is written again and again, or a line a second.
 */
#include "cli/frame/progress.h"

#include <stdarg.h>
#include <unistd.h>

enum { ONE_LINE_US = 200 * 1000, LINES_US = 1000 * 1000, ERASED = 8 };

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
    va_list args;

    progress->any = true;
    if (progress->kind == PROGRESS_ONE_LINE)
        fputc('\r', err);
    va_start(args, format);
    vfprintf(err, format, args);
    va_end(args);
    if (progress->kind == PROGRESS_ONE_LINE)
        fprintf(err, "%*s", ERASED, ""); /* what a longer one before may have left */
    else
        fputc('\n', err);
    fflush(err);
}

void hf__progress_end(struct progress *progress)
{
    if (progress->any && progress->kind == PROGRESS_ONE_LINE)
        fputc('\n', progress->cli->err);
    progress->any = false;
}
