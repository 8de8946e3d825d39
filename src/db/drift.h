/*
 * db/drift.h: how a table differs from what it should be, in words.
 *
 * Differences are of two kinds: those that can be repaired in place, and those that cannot. All go
 * into one text, "hash key is pk S, expected id S; index by-owner is missing".
 */
#ifndef HF_DB_DRIFT_H
#define HF_DB_DRIFT_H

#include <holdfast/db.h>

#include "base/buf.h"

struct drift {
    struct hf__buf text;         /* empty: there is none */
    bool fixed;                  /* one of them cannot be repaired */
    bool stream_off;             /* repairable: there is no stream */
    const struct hf_index *lost; /* repairable: the first global index that is missing */
};

/* A difference; the sentence has no end. */
void hf__drift_add(struct drift *drift, const char *format, ...) HF_PRINTF(2, 3);

/*
 * Keys, indexes and stream. `all_projected`: the database projects everything into every index,
 * whatever it is asked for, and says so.
 */
void hf__drift_of_table(struct drift *drift, const struct hf_create_table *want,
                        const struct hf_table_description *is, bool all_projected);

#endif
