/*
 * cli/frame/output/progress.h: how far long work is, on standard error.
 *
 *     hf__progress_begin(&progress, cli, quiet, always);
 *     ... if (hf__progress_due(&progress, done))
 *             hf__progress_print(&progress, "%llu of %llu", ...);
 *     hf__progress_end(&progress);
 *
 * On a terminal it is one line that is written again and again, a few times a second. Where it was
 * asked for and there is no terminal, it is a line a second.
 */
#ifndef HF_CLI_FRAME_PROGRESS_H
#define HF_CLI_FRAME_PROGRESS_H

#include "cli/frame/cli.h"

enum progress_kind { PROGRESS_HIDDEN, PROGRESS_ONE_LINE, PROGRESS_LINES };

struct progress {
    struct cli *cli;
    enum progress_kind kind;
    bool any; /* something was written */
    int64_t begin_us;
    int64_t last_us;
};

/* `always`: also where standard error is no terminal, and whatever `quiet` says. */
void hf__progress_begin(struct progress *progress, struct cli *cli, bool quiet, bool always);

/* Is it time to write? `done`: the work is, so that the last figures are shown in any case. */
bool hf__progress_due(struct progress *progress, bool done);

/* `count` since the beginning, as so many a second. */
double hf__progress_rate(const struct progress *progress, uint64_t count);

void hf__progress_print(struct progress *progress, const char *format, ...) HF_PRINTF(2, 3);

/* The line, if there is one, gets its end. */
void hf__progress_end(struct progress *progress);

#endif
