/*
 * cli/table/table_words.h: a table as words of the command line.
 *
 *     --key customer:S,day:N
 *     --index by_day=day:N   --index by_status=status:S,day:N/keys   --local-index by_total=total:N/status,note
 *
 * A key is one attribute or two, each with a type: S (the default), N or B. Behind an index and a slash is
 * what it contains: `all` (the default), `keys`, or names of attributes.
 */
#ifndef HF_CLI_TABLE_TABLE_WORDS_H
#define HF_CLI_TABLE_TABLE_WORDS_H

#include "cli/frame/options/options.h"

#include <holdfast/db.h>

struct table_words {
    struct hf_str key;
    struct option_list indexes;
    struct option_list local_indexes;
};

/* Fill in keys, attributes and indexes, in the scope. False: *error, which names the word. */
bool hf__cli_table_words_read(struct hf_scope *s, const struct table_words *words,
                              struct hf_create_table *spec, struct hf_str *error);

#endif
