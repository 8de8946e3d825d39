/*
 * cli/when.h: moments on the command line.
 */
#ifndef HF_CLI_WHEN_H
#define HF_CLI_WHEN_H

#include <holdfast/scope.h>

/*
 * 2026-11-15T09:30:00.25Z, without the fraction, the seconds, the time of day or the Z; always UTC.
 * False when it is no such time, or lies before 1970.
 */
bool hf__when_time(const char *text, int64_t *us);

/* The same, or how long ago, such as 15m. */
bool hf__when(struct hf_scope *s, const char *text, int64_t *us);

#endif
