/*
 * serving/read_only.h: a wrapper for a database that refuses what writes, whatever the database is.
 */
#ifndef HF_SERVING_READ_ONLY_H
#define HF_SERVING_READ_ONLY_H

#include "db/db.h"

struct serving_read_only {
    struct hf_db db; /* use this */
    struct hf_db *inner;
};

/* Around `inner`, which stays the caller's: the wrapper is not closed. */
void hf__serving_read_only_init(struct serving_read_only *wrapper, struct hf_db *inner);

#endif
