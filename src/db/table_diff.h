/*
 * db/table_diff.h: how a table differs from its specification, in words.
 *
 * Differences are of two kinds: those that can be repaired in place, and those that cannot. All go
 * into one text, "hash key is pk S, expected id S; index by-owner is missing".
 */
#ifndef HF_DB_TABLE_DIFF_H
#define HF_DB_TABLE_DIFF_H

#include <holdfast/db.h>

#include "base/buf.h"

struct table_diff {
    struct hf__buf text;         /* all differences; empty: there is none */
    bool fixed;                  /* one of the differences cannot be repaired */
    bool stream_off;             /* repairable: there is no stream */
    const struct hf_index *lost; /* repairable: the first global index that is missing */
};

/* Add a difference; the sentence has no full stop. */
void hf__diff_add(struct table_diff *diff, const char *format, ...) HF_PRINTF(2, 3);

/*
 * Keys, indexes and stream. `all_projected`: the database projects everything into every index,
 * whatever it is asked for, and says so.
 */
void hf__diff_table(struct table_diff *diff, const struct hf_create_table *want,
                    const struct hf_table_description *is, bool all_projected);

#endif
