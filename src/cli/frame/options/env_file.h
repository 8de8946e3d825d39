/*
 * cli/frame/options/env_file.h: variables from files, such as `.env`.
 */
#ifndef HF_CLI_FRAME_ENV_FILE_H
#define HF_CLI_FRAME_ENV_FILE_H

#include "cli/frame/cli.h"

enum { ENV_FILE_MAX = 65536 }; /* bytes */

/*
 * Take `--env-file FILE` in front of a command, as often as it is there, and set the variables of
 * those files that are not set yet. *taken is how many arguments that were. False: the error was
 * shown, nothing was set, and *ends says how to end.
 */
bool hf__cli_env_files(struct cli *cli, size_t args_len, const char *const *args, size_t *taken,
                       int *ends);

#endif
