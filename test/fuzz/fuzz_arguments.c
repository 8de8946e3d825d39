/*
 * test/fuzz/fuzz_arguments.c: the arguments of every command.
 *
 * The first byte chooses the command, the rest are its arguments, one per line. Nothing is run:
 * what is tried is how arguments are read, and what a shell would be offered to complete them.
 *
 *  - Arguments are accepted, ask for help, or are refused with a sentence.
 *  - Operands are among the arguments, and not more than these.
 */
#include <holdfast/scope.h>

#include <string.h>

#include "cli/frame/commands.h"
#include "cli/serve/serve.h"
#include "files.h"

enum { ARGS_MAX = 24, FIELDS_BYTES = 16 * 1024, WIDTH = 80 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct options_table *const tables[] = {
    &hf__serve_options,
    &hf__lock_run_options,
    &hf__lock_ls_options,
    &hf__lock_show_options,
    &hf__lock_break_options,
    &hf__lock_import_options,
    &hf__table_create_options,
    &hf__table_ls_options,
    &hf__table_show_options,
    &hf__table_delete_options,
    &hf__kv_get_options,
    &hf__kv_set_options,
    &hf__kv_delete_options,
    &hf__kv_ls_options,
    &hf__kv_clear_options,
    &hf__kv_sweep_options,
    &hf__kv_import_options,
    &hf__counter_add_options,
    &hf__counter_get_options,
    &hf__counter_set_options,
    &hf__counter_delete_options,
    &hf__counter_ls_options,
    &hf__counter_import_options,
    &hf__once_run_options,
    &hf__once_show_options,
    &hf__once_ls_options,
    &hf__once_clear_options,
    &hf__limit_check_options,
    &hf__limit_peek_options,
    &hf__limit_reset_options,
    &hf__records_put_options,
    &hf__records_ls_options,
    &hf__records_retry_options,
    &hf__records_adopt_options,
    &hf__records_process_options,
    &hf__outbox_emit_options,
    &hf__outbox_ls_options,
    &hf__outbox_failed_options,
    &hf__outbox_retry_options,
    &hf__outbox_discard_options,
    &hf__outbox_stats_options,
    &hf__outbox_pause_options,
    &hf__outbox_resume_options,
    &hf__outbox_cleanup_options,
    &hf__outbox_replay_options,
    &hf__outbox_drain_options,
    &hf__outbox_sweep_options,
    &hf__relay_options,
    &hf__events_append_options,
    &hf__events_read_options,
    &hf__events_all_options,
    &hf__events_get_options,
    &hf__events_caused_options,
    &hf__events_correlated_options,
    &hf__events_tree_options,
    &hf__events_info_options,
    &hf__events_ls_options,
    &hf__events_truncate_options,
    &hf__events_limit_options,
    &hf__events_delete_options,
    &hf__events_archive_options,
    &hf__events_unarchive_options,
    &hf__events_sweep_options,
    &hf__events_export_options,
    &hf__events_import_options,
    &hf__events_verify_options,
    &hf__events_subscribe_options,
    &hf__events_consume_options,
    &hf__events_group_options,
    &hf__events_revert_options,
    &hf__events_subscription_options,
    &hf__events_rebuild_options,
    &hf__events_forget_options,
    &hf__events_parked_options,
    &hf__events_replay_options,
    &hf__events_discard_options,
    &hf__blobs_put_options,
    &hf__blobs_get_options,
    &hf__blobs_ls_options,
    &hf__iam_outbox_options,
    &hf__iam_events_options,
    &hf__streams_tail_options,
};

/* Cut the text into lines, in place. */
static size_t split(char *text, const char **args)
{
    size_t len = 0;

    while (len < ARGS_MAX) {
        char *end = strchr(text, '\n');

        args[len++] = text;
        if (!end)
            break;
        *end = '\0';
        text = end + 1;
    }
    return len;
}

static void parse(struct hf_scope *s, const struct options_table *table, size_t len,
                  const char *const *args, FILE *nowhere)
{
    static _Alignas(16) uint8_t fields[FIELDS_BYTES];
    struct options options;

    memset(fields, 0, sizeof(fields));
    switch (hf__options_parse(s, table, len, args, NULL, fields, &options)) {
    case OPTIONS_OK:
        MUST(options.operands_len <= len && (table->operands || !options.operands_len));
        break;
    case OPTIONS_HELP:
        hf__options_help(nowhere, table, WIDTH, true);
        break;
    case OPTIONS_BAD:
        MUST(options.error.len > 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    struct input input = {data, size};
    const struct options_table *table =
        tables[input_byte(&input) % (sizeof(tables) / sizeof(tables[0]))];
    struct hf_scope *s = hf_scope_new(NULL);
    const char *args[ARGS_MAX];
    char *text = malloc(input.left + 1);
    size_t len;

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    MUST(s && text && nowhere);
    if (input.left)
        memcpy(text, input.at, input.left);
    text[input.left] = '\0';
    len = split(text, args);
    parse(s, table, len, args, nowhere);
    hf__options_complete(nowhere, table, len, args);
    free(text);
    hf_scope_free(s);
    return 0;
}
