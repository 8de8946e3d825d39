/*
 * cli/table/table.h: what the commands for tables share.
 */
#ifndef HF_CLI_TABLE_TABLE_H
#define HF_CLI_TABLE_TABLE_H

#include "cli/frame/commands.h"
#include "cli/table/table_spec.h"

/* Words for the views of a stream, in the order of enum table_stream. */
#define TABLE_STREAM_WORDS "none new-and-old new old keys"
enum table_stream { TABLE_STREAM_NONE };

/* The view that a word stands for, 0 for none; and the word for it. */
enum hf_stream_view hf__cli_table_view(unsigned word);
const char *hf__cli_table_view_word(enum hf_stream_view view);

/* The table as it is now. */
enum hf_status hf__cli_table_describe(struct command_ctx *c, struct hf_str name,
                                      const struct hf_table_description **table);

/* The attribute by which items expire; absent: they do not. */
enum hf_status hf__cli_table_ttl(struct command_ctx *c, struct hf_db *db, struct hf_str name,
                                 struct hf_str *attribute);

/* Print a table, as `table show` does. */
enum hf_status hf__cli_table_print(struct command_ctx *c, const struct hf_table_description *table);

/* Numbers of a description: HF_ZERO is 0. */
static inline uint64_t hf__cli_table_count(int64_t number)
{
    return number > 0 ? (uint64_t)number : 0;
}

#endif
