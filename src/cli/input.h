/*
 * cli/input.h: files that are named on the command line.
 */
#ifndef HF_CLI_INPUT_H
#define HF_CLI_INPUT_H

#include <holdfast/scope.h>

/*
 * A whole file, in the scope and with a NUL behind it; "-" is standard input. Absent, and *error,
 * when it cannot be read or has more than `max` bytes.
 */
struct hf_str hf__input_read(struct hf_scope *s, const char *path, size_t max,
                             struct hf_str *error);

#endif
