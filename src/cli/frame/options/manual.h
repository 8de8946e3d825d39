/*
 * cli/frame/options/manual.h: the manual pages of section 1, from the tables of commands and options.
 */
#ifndef HF_CLI_FRAME_MANUAL_H
#define HF_CLI_FRAME_MANUAL_H

#include "cli/frame/cli.h"

/* `holdfast manual DIR`, for the build: write holdfast.1 and a page for each noun into DIR, which is
 * created if it is missing. Returns how the program ends. */
int hf__manual_run(struct cli *cli, size_t args_len, const char *const *args);

/* Text as roff that shows it as it is, for tests: no character of it is a request or an escape. */
void hf__manual_escape(FILE *out, struct hf_str text);

#endif
