/*
 * cli/frame/commands.h: the commands and their options; cli/serve/serve.h has the one that serves.
 */
#ifndef HF_CLI_FRAME_COMMANDS_H
#define HF_CLI_FRAME_COMMANDS_H

#include "cli/frame/command.h"

#define COMMAND_DECLARE(name)                                                                      \
    extern const struct options_table hf__##name##_options;                                        \
    extern const struct command hf__##name##_command;

COMMAND_DECLARE(check)
COMMAND_DECLARE(healthcheck)
COMMAND_DECLARE(lock_run)
COMMAND_DECLARE(lock_ls)
COMMAND_DECLARE(lock_show)
COMMAND_DECLARE(lock_break)
COMMAND_DECLARE(lock_import)
COMMAND_DECLARE(item_get)
COMMAND_DECLARE(item_put)
COMMAND_DECLARE(item_update)
COMMAND_DECLARE(item_delete)
COMMAND_DECLARE(query)
COMMAND_DECLARE(scan)
COMMAND_DECLARE(sql)
COMMAND_DECLARE(table_create)
COMMAND_DECLARE(table_ls)
COMMAND_DECLARE(table_show)
COMMAND_DECLARE(table_delete)
COMMAND_DECLARE(kv_get)
COMMAND_DECLARE(kv_set)
COMMAND_DECLARE(kv_delete)
COMMAND_DECLARE(kv_ls)
COMMAND_DECLARE(kv_clear)
COMMAND_DECLARE(kv_index)
COMMAND_DECLARE(kv_sweep)
COMMAND_DECLARE(kv_import)
COMMAND_DECLARE(counter_add)
COMMAND_DECLARE(counter_get)
COMMAND_DECLARE(counter_set)
COMMAND_DECLARE(counter_delete)
COMMAND_DECLARE(counter_ls)
COMMAND_DECLARE(counter_import)
COMMAND_DECLARE(once_run)
COMMAND_DECLARE(once_show)
COMMAND_DECLARE(once_ls)
COMMAND_DECLARE(once_clear)
COMMAND_DECLARE(limit_check)
COMMAND_DECLARE(limit_peek)
COMMAND_DECLARE(limit_reset)
COMMAND_DECLARE(records_put)
COMMAND_DECLARE(records_ls)
COMMAND_DECLARE(records_retry)
COMMAND_DECLARE(records_adopt)
COMMAND_DECLARE(records_process)
COMMAND_DECLARE(outbox_emit)
COMMAND_DECLARE(outbox_import)
COMMAND_DECLARE(outbox_ls)
COMMAND_DECLARE(outbox_failed)
COMMAND_DECLARE(outbox_retry)
COMMAND_DECLARE(outbox_discard)
COMMAND_DECLARE(outbox_stats)
COMMAND_DECLARE(outbox_cleanup)
COMMAND_DECLARE(outbox_replay)
COMMAND_DECLARE(outbox_drain)
COMMAND_DECLARE(outbox_sweep)
COMMAND_DECLARE(relay)
COMMAND_DECLARE(events_append)
COMMAND_DECLARE(events_read)
COMMAND_DECLARE(events_all)
COMMAND_DECLARE(events_get)
COMMAND_DECLARE(events_caused)
COMMAND_DECLARE(events_correlated)
COMMAND_DECLARE(events_tree)
COMMAND_DECLARE(events_info)
COMMAND_DECLARE(events_ls)
COMMAND_DECLARE(events_truncate)
COMMAND_DECLARE(events_limit)
COMMAND_DECLARE(events_delete)
COMMAND_DECLARE(events_archive)
COMMAND_DECLARE(events_unarchive)
COMMAND_DECLARE(events_sweep)
COMMAND_DECLARE(events_export)
COMMAND_DECLARE(events_import)
COMMAND_DECLARE(events_verify)
COMMAND_DECLARE(events_subscribe)
COMMAND_DECLARE(events_consume)
COMMAND_DECLARE(events_group)
COMMAND_DECLARE(events_revert)
COMMAND_DECLARE(events_subscription)
COMMAND_DECLARE(events_rebuild)
COMMAND_DECLARE(events_forget)
COMMAND_DECLARE(events_parked)
COMMAND_DECLARE(events_replay)
COMMAND_DECLARE(events_discard)
COMMAND_DECLARE(blobs_put)
COMMAND_DECLARE(blobs_get)
COMMAND_DECLARE(blobs_ls)
COMMAND_DECLARE(completion)
COMMAND_DECLARE(iam_outbox)
COMMAND_DECLARE(iam_events)
COMMAND_DECLARE(iam_lock)
COMMAND_DECLARE(iam_kv)
COMMAND_DECLARE(iam_counter)
COMMAND_DECLARE(iam_once)
COMMAND_DECLARE(iam_limit)
COMMAND_DECLARE(iam_records)
COMMAND_DECLARE(iam_streams)
COMMAND_DECLARE(streams_tail)

#undef COMMAND_DECLARE

/* Define the struct command of one of them: its body, then other members. */
#define COMMAND_OF(name, body_, ...)                                                               \
    const struct command hf__##name##_command = {.body = body_, __VA_ARGS__}

/* How long a table is, for the tables of options. */
#define COMMAND_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* In a struct options_table: what it has, and examples. */
#define COMMAND_TABLE(specs_, examples_)                                                           \
    .specs = specs_, .len = COMMAND_LEN(specs_), .examples = examples_,                            \
    .examples_len = COMMAND_LEN(examples_)

/* The same: name##_specs and name##_examples; or those of different names. */
#define COMMAND_SPECS(name) COMMAND_SPECS_OF(name, name)
#define COMMAND_SPECS_OF(specs_, examples_) COMMAND_TABLE(specs_##_specs, examples_##_examples)

#endif
