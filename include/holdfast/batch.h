/*
 * Many items at once: any number of writes over any tables, any number of keys to read. They are
 * sent as BatchWriteItem and BatchGetItem, as many as each of those takes. Unprocessed ones are
 * sent again, after growing delays; the result lists exactly those that are left in the end. Works
 * on any database.
 *
 *     const struct hf_write writes[] = {
 *         {.table = HF_STR("users"), .put = HF_ITEM(s, HF_S("id", ann), HF_N("age", 41))},
 *         {.table = HF_STR("users"), .del = HF_ITEM(s, HF_S("id", ben))}};
 *     struct hf_write_many_result result;
 *
 *     if (hf_write_many(s, db, writes, 2, NULL, &result) != HF_OK)
 *         for (size_t i = 0; i < result.left_len; i++)
 *             note_undone(&writes[result.left[i]]);
 *
 * These are not transactions: some of the writes may be done and others not, and readers may see
 * that. A write or key is an entry; its number is its place in the list, from 0.
 */
#ifndef HOLDFAST_BATCH_H
#define HOLDFAST_BATCH_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to try again; the same for reading and writing. */
struct hf_many_options {
    size_t size;             /* set by HF_OPTIONS() */
    uint32_t max_attempts;   /* how often an entry is sent at most; default 10 */
    uint32_t backoff_ms;     /* the first delay is half of this up to all of it; default 50 */
    uint32_t backoff_max_ms; /* delays double up to this; default 5000 */
    bool consistent;         /* reading: strongly consistent */
};

struct hf_write {
    struct hf_str table;
    struct hf_item put; /* one of the two: a whole item, */
    struct hf_item del; /* or the key of one */
};

struct hf_write_many_result {
    const size_t *left; /* the numbers of the entries that may not be done, in order */
    size_t left_len;    /* 0 on success */
    size_t calls;       /* of BatchWriteItem */
    uint64_t reserved[4];
};

/*
 * Do all writes. Several for the same key are done in their order, so that the last one wins, and
 * no two of them are in one batch, which DynamoDB would refuse. Otherwise their order is open.
 *
 * All entries are looked at before the first is sent. A batch that the service refuses is sent
 * again in smaller parts, until the entry is found that is at fault: the message names it. Entries
 * that come later are not sent then.
 *
 * On failure `result` says what is left: all other entries are done. `result` may be NULL.
 *
 * HF_INVALID    an entry has no item, two, or one that could not be built; or what the service says
 *               of it
 * HF_NOT_FOUND  a table is missing
 * HF_THROTTLED  an entry was sent as often as options->max_attempts says
 * HF_TIMEOUT    the deadline of the scope came first
 * HF_CANCELED   hf_scope_cancel() was called
 * HF_NOMEM
 *
 * Takes memory of the scope for its result only: 12 bytes per entry. Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_write_many(struct hf_scope *s, struct hf_db *db,
                                                 const struct hf_write *writes, size_t len,
                                                 const struct hf_many_options *options,
                                                 struct hf_write_many_result *result);

struct hf_get {
    struct hf_str table;
    struct hf_item key;
};

struct hf_get_many_result {
    const struct hf_item *items; /* one per entry, in their order; absent: there is none, or left */
    size_t items_len;            /* as many as entries */
    const size_t *left;          /* the numbers of the entries that were not read, in order */
    size_t left_len;             /* 0 on success */
    size_t calls;                /* of BatchGetItem */
    uint64_t reserved[4];
};

/*
 * Read all items. A key may come any number of times, and is read once. On failure `result` has
 * what was read so far, and says which entries were not.
 *
 * The same failures as hf_write_many(). The items live in the scope: who reads very many does it in
 * parts. Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_get_many(struct hf_scope *s, struct hf_db *db,
                                               const struct hf_get *gets, size_t len,
                                               const struct hf_many_options *options,
                                               struct hf_get_many_result *result);

#ifdef __cplusplus
}
#endif

#endif
