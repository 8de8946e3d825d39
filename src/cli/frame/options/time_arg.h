/*
 * cli/frame/options/time_arg.h: moments on the command line.
 */
#ifndef HF_CLI_FRAME_TIME_ARG_H
#define HF_CLI_FRAME_TIME_ARG_H

#include <holdfast/scope.h>

/*
 * 2026-11-15T09:30:00.25Z, or with an offset, +01:00, in place of the Z; the fraction, the seconds,
 * the time of day and the Z may be left out. False when it is no such time, or lies before 1970.
 */
bool hf__time_arg_parse_time(const char *text, int64_t *us);

/* The same, or how long ago, such as 15m. */
bool hf__time_arg_parse(struct hf_scope *s, const char *text, int64_t *us);

#endif
