/*
 * cli/config/config_use.h: options of a command from the file of named databases. The frame calls it.
 */
#ifndef HF_CLI_CONFIG_CONFIG_USE_H
#define HF_CLI_CONFIG_CONFIG_USE_H

#include "cli/frame/command.h"

/*
 * After the arguments were read: if the database is @NAME, or none was named and the file has a default, fill
 * in what the file says and what was not given. False: the error was shown, and c->ends says how to end.
 */
bool hf__cli_config_use(struct command_ctx *c);

/* The same for settings of another database of a command, such as --from-db. */
bool hf__cli_config_use_for(struct cli *cli, const char *command,
                            struct database_settings *settings, int *ends);

#endif
