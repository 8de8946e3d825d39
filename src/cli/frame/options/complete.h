/*
 * cli/frame/options/complete.h: what the last word of a command line may become.
 */
#ifndef HF_CLI_FRAME_COMPLETE_H
#define HF_CLI_FRAME_COMPLETE_H

#include "cli/frame/cli.h"

/*
 * `holdfast complete WORD...`, which shells call with the words so far: a line for each candidate; the
 * lines ":file" and ":dir" ask the shell for its files. Returns how the program ends.
 */
int hf__complete_run(struct cli *cli, size_t words_len, const char *const *words);

#endif
