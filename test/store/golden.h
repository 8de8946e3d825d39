/*
 * store/golden.h: what is in the directories below golden/, which older versions made. It is
 * written by golden/make.c with the store of such a version, and by golden_test.c with a store in
 * memory.
 */
#ifndef HF_TEST_STORE_GOLDEN_H
#define HF_TEST_STORE_GOLDEN_H

#include "store/store.h"

#include <stdio.h>
#include <string.h>

enum { GOLDEN_BATCHES = 24, GOLDEN_HALF = 12 };

/* The nth batch, from 1: a key of its own, one that all write, and now and then one is deleted. */
static inline enum hf_status golden_write(struct hf_scope *s, struct hf__store *store, unsigned n)
{
    struct store_batch batch = {.ops = {.scope = s}};
    char key[16], gone[16], value[40];
    uint64_t ticket;

    snprintf(key, sizeof(key), "key %03u", n);
    snprintf(value, sizeof(value), "value %u of this store", n * n);
    hf__batch_put(&batch, hf_bytes_of(key, strlen(key)), hf_bytes_of(value, strlen(value)));
    hf__batch_put(&batch, hf_bytes_of("last", 4), hf_bytes_of(key, strlen(key)));
    if (n % 5 == 0) {
        snprintf(gone, sizeof(gone), "key %03u", n - 3);
        hf__batch_delete(&batch, hf_bytes_of(gone, strlen(gone)));
    }
    TRY(hf__store_write(s, store, &batch, &ticket));
    return hf__store_sync(s, store, ticket);
}

#endif
