/*
 * Lists that come in pages: Query, Scan, ListTables, ListTagsOfResource, ListStreams, and the
 * shards of DescribeStream, from the first element to the last, one by one or page by page. Works
 * on any database.
 *
 *     struct hf_pages *pages;
 *     struct hf_item item;
 *
 *     if (hf_pages_query(s, db, &request, NULL, &pages) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr)
 *         use(item);
 *     hf_pages_free(pages);
 *
 * Memory is that of one page, however long the list: elements live until the next step or
 * hf_pages_free(), not in the scope. A page without elements does not end the list. Steps end at
 * the deadline of the scope they are given, or when that is canceled; after a failure the same step
 * can be retried, with nothing lost or doubled.
 *
 * A list that is left before its end can be continued later, or elsewhere: hf_pages_cursor() is the
 * `start` of the request that goes on.
 *
 * A parallel scan is one of these per segment, each in a thread of its own: .segment = n,
 * .total_segments = threads.
 */
#ifndef HOLDFAST_PAGES_H
#define HOLDFAST_PAGES_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_pages; /* one thread at a time uses it; the database has to outlive it */

struct hf_pages_options {
    size_t size;    /* set by HF_OPTIONS() */
    uint64_t limit; /* elements in all; default: no limit. The request's limit is that of a page */
};

/*
 * Begin a list. Nothing is asked for yet. The request is copied; its `start`, when it has one, is
 * where the list begins.
 *
 * HF_INVALID  no database or request, an item in it could not be built, or a limit for a
 *             HF_SELECT_COUNT, which has no elements
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_pages_query(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_query *request,
                                                  const struct hf_pages_options *options,
                                                  struct hf_pages **pages);
HF_API HF_NODISCARD enum hf_status hf_pages_scan(struct hf_scope *s, struct hf_db *db,
                                                 const struct hf_scan *request,
                                                 const struct hf_pages_options *options,
                                                 struct hf_pages **pages);
HF_API HF_NODISCARD enum hf_status hf_pages_list_tables(struct hf_scope *s, struct hf_db *db,
                                                        const struct hf_list_tables *request,
                                                        const struct hf_pages_options *options,
                                                        struct hf_pages **pages);
HF_API HF_NODISCARD enum hf_status
hf_pages_list_tags_of_resource(struct hf_scope *s, struct hf_db *db,
                               const struct hf_list_tags_of_resource *request,
                               const struct hf_pages_options *options, struct hf_pages **pages);
HF_API HF_NODISCARD enum hf_status hf_pages_list_streams(struct hf_scope *s, struct hf_db *db,
                                                         const struct hf_list_streams *request,
                                                         const struct hf_pages_options *options,
                                                         struct hf_pages **pages);
HF_API HF_NODISCARD enum hf_status
hf_pages_describe_stream(struct hf_scope *s, struct hf_db *db,
                         const struct hf_describe_stream *request,
                         const struct hf_pages_options *options, struct hf_pages **pages);

/* NULL is accepted. */
HF_API void hf_pages_free(struct hf_pages *pages);

/*
 * The next element; absent at the end (its ptr, or its first member's, is NULL), and then again
 * each time. HF_INVALID when the list has other elements. Else it fails as the operation does.
 */
HF_API HF_NODISCARD enum hf_status hf_pages_next_item(struct hf_scope *s, struct hf_pages *pages,
                                                      struct hf_item *item);
HF_API HF_NODISCARD enum hf_status hf_pages_next_table(struct hf_scope *s, struct hf_pages *pages,
                                                       struct hf_str *table);
HF_API HF_NODISCARD enum hf_status hf_pages_next_tag(struct hf_scope *s, struct hf_pages *pages,
                                                     struct hf_tag *tag);
HF_API HF_NODISCARD enum hf_status hf_pages_next_stream(struct hf_scope *s, struct hf_pages *pages,
                                                        struct hf_stream_name *stream);
HF_API HF_NODISCARD enum hf_status hf_pages_next_shard(struct hf_scope *s, struct hf_pages *pages,
                                                       struct hf_shard *shard);

struct hf_page {
    bool found;                  /* false: the list had ended */
    size_t len;                  /* of the one list below that this is about */
    const struct hf_item *items; /* Query, Scan; NULL with HF_SELECT_COUNT */
    const struct hf_str *tables;
    const struct hf_tag *tags;
    const struct hf_stream_name *streams;
    const struct hf_shard *shards;
    int64_t count; /* Query, Scan: what they said since the last page that was handed out; */
    int64_t scanned_count; /* they say so of pages without elements, too */
    uint64_t reserved[4];
};

/*
 * The next page, or the rest of one that was begun element by element. Pages without elements are
 * passed over, those of HF_SELECT_COUNT are not.
 */
HF_API HF_NODISCARD enum hf_status hf_pages_next(struct hf_scope *s, struct hf_pages *pages,
                                                 struct hf_page *page);

/*
 * Where a later request has to start to go on behind the last element that was handed out, in the
 * scope: as the key that Query and Scan take, or as the text that the others do (for tags at the
 * ends of pages only). Absent when the list has ended; before the first step, the request's own.
 *
 * In the middle of a last page the key's names are not known: then DescribeTable is called.
 *
 * HF_INVALID  a list of the other kind; or the projection leaves out a key
 */
HF_API HF_NODISCARD enum hf_status hf_pages_cursor(struct hf_scope *s, struct hf_pages *pages,
                                                   struct hf_item *start);
HF_API HF_NODISCARD enum hf_status hf_pages_cursor_text(struct hf_scope *s, struct hf_pages *pages,
                                                        struct hf_str *start);

#ifdef __cplusplus
}
#endif

#endif
