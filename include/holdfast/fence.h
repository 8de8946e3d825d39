/*
 * Fences: tables that nobody may write any more, because their data has moved to another database.
 *
 * A fence is an item of the table "holdfast.fence": its key `table` is the name of the fenced table,
 * `to` says where the data has moved. hf_copy_cutover() (copy.h) sets it. Databases of hf_open() in
 * this process, and so `holdfast serve`, refuse writes to a fenced table from the moment on at which
 * the item is there. Programs that reach a database of others, such as Amazon DynamoDB, put this
 * wrapper around it:
 *
 *     if (hf_connect(s, HF_STR("dynamodb://eu-central-1"), NULL, &inner) != HF_OK ||
 *         hf_fenced_open(s, inner, NULL, &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db); // closes the inner one too
 *
 * A write to a fenced table is HF_DENIED, and nothing was done; the message says where to write now.
 * Reads are not refused, and neither is what the database does by itself, such as removing what has
 * expired.
 */
#ifndef HOLDFAST_FENCE_H
#define HOLDFAST_FENCE_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_FENCE_TABLE HF_STR("holdfast.fence")

enum { HF_FENCES_MAX = 1000 };

struct hf_fence_options {
    size_t size; /* set by HF_OPTIONS() */
    uint32_t
        check_ms; /* before a write, look for new fences if the last look is so long ago; default
                          1000. hf_copy_cutover_options.settle_ms has to be more than twice that */
    bool alone;   /* all writers use this very wrapper, so nobody else can set a fence: look once */
};

/*
 * A database that does what `inner` does, except for writes to fenced tables. It closes the inner
 * one when it is closed; on failure the inner one stays open and *db is NULL.
 *
 * HF_INVALID  `inner` is NULL
 * HF_NOMEM, and what a Scan fails with: a database without fences is fine
 */
HF_API HF_NODISCARD enum hf_status hf_fenced_open(struct hf_scope *s, struct hf_db *inner,
                                                  const struct hf_fence_options *options,
                                                  struct hf_db **db);

/*
 * Fence a table; `to` is where writers go now, for people. The table of fences is made if it is
 * missing. When this returns, no write to that table through this database is under way, if that is
 * of hf_fenced_open(), in this process, or of `holdfast serve`. Other processes with hf_fenced_open()
 * notice it within check_ms.
 *
 * HF_LIMIT  there are HF_FENCES_MAX fences already
 */
HF_API HF_NODISCARD enum hf_status hf_fence_set(struct hf_scope *s, struct hf_db *db,
                                                struct hf_str table, struct hf_str to);

/* Take the fence away; it is not an error if there is none. */
HF_API HF_NODISCARD enum hf_status hf_fence_clear(struct hf_scope *s, struct hf_db *db,
                                                  struct hf_str table);

/* *to, in the scope, is where the data of the table has moved; absent: it is not fenced. */
HF_API HF_NODISCARD enum hf_status hf_fence_get(struct hf_scope *s, struct hf_db *db,
                                                struct hf_str table, struct hf_str *to);

#ifdef __cplusplus
}
#endif

#endif
