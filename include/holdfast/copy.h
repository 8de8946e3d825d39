/*
 * Copies of tables from one database to another, of any two kinds: their definitions, their items,
 * then the changes that are made meanwhile, a comparison, and the cutover, at which writers move.
 *
 *     struct hf_copy *copy;
 *     struct hf_copy_options *options = HF_OPTIONS(hf_copy_options, .follow = true);
 *     struct hf_copy_result result;
 *
 *     if (hf_copy_open(s, source, target, options, &copy) != HF_OK ||
 *         hf_copy_run(s, copy) != HF_OK ||                    // definitions and items
 *         hf_copy_follow(s, copy, true) != HF_OK ||           // what was changed meanwhile
 *         hf_copy_cutover(s, copy, NULL, &result) != HF_OK)   // fence, wait, compare
 *         return complain(hf_scope_error_text(s));
 *     hf_copy_close(copy);
 *
 * The progress of a copy is stored in a table of the target ("holdfast.copy"): after a crash make the
 * same calls again, and the copy goes on. Nothing is added to the items.
 *
 * hf_copy_follow() applies the source's streams in their order. What somebody else has written to
 * the target is reported by on_conflict and stays: it is never overwritten. A stream keeps changes
 * for 24 hours: a table whose changes were removed before they were read is copied again.
 *
 * One copy of a table runs at a time: a process that opens it again takes it over, and the former
 * one ends with HF_LOST. docs/copying.md has all of it.
 */
#ifndef HOLDFAST_COPY_H
#define HOLDFAST_COPY_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_copy; /* one thread uses it; hf_copy_progress() is for any */

/* A table of the source that has another name in the target. */
struct hf_copy_name {
    struct hf_str source;
    struct hf_str target;
};

enum { HF_COPY_SEGMENTS_MAX = 64 };

/*
 * A sentence about what the copy does, for a log: a stream was switched on, a table is copied again.
 * Called on a thread of the copy.
 */
typedef void hf_copy_note_fn(struct hf_str table, struct hf_str text, void *user);

/*
 * Somebody else has written an item of the target since it was copied. It stays as it is. `theirs` is
 * absent if it was removed. Called on a thread of the copy.
 */
typedef void hf_copy_conflict_fn(struct hf_str table, struct hf_item key, struct hf_item theirs,
                                 void *user);

struct hf_copy_options {
    size_t size;                 /* set by HF_OPTIONS() */
    const struct hf_str *tables; /* of the source; default: all but those of copies and fences */
    size_t tables_len;
    const struct hf_copy_name *names; /* tables that get another name */
    size_t names_len;
    struct hf_str source_name; /* of the source, for people, without secrets; default: none */
    struct hf_str target_name; /* of the target, likewise: where writers are sent at the end */
    uint32_t segments;         /* of a table, each with a thread; default 4; 1: no thread */
    uint64_t items_per_s;      /* at most; default: no limit */
    uint64_t units_per_s;      /* read units at most, and write units at most; default: no limit */
    bool follow;      /* changes will be applied: their positions are taken before items are read,
                                  and streams that are off are switched on */
    bool overwrite;   /* accept tables of the target that have items: those with the same key
                                  are replaced */
    bool restart;     /* forget how far this copy got: what it wrote is removed from the target */
    bool eventual;    /* read the items with eventually consistent reads, at half the price;
                                  HF_INVALID with follow */
    uint32_t poll_ms; /* how often a shard without news is asked; default 500 */
    hf_copy_note_fn *on_note;
    hf_copy_conflict_fn *on_conflict;
    void *user; /* handed to both */
};

/*
 * Look at both databases, and take over what was begun. Nothing is made yet. The databases have to
 * outlive the copy.
 *
 * HF_NOT_FOUND  a table that was named is not in the source
 * HF_INVALID    an option is invalid; a table of the target has another definition, or items; a
 *               table has a stream without both images. The message names the table and says what
 *               to do
 */
HF_API HF_NODISCARD enum hf_status hf_copy_open(struct hf_scope *s, struct hf_db *source,
                                                struct hf_db *target,
                                                const struct hf_copy_options *options,
                                                struct hf_copy **copy);

/* NULL is accepted. */
HF_API void hf_copy_close(struct hf_copy *copy);

enum hf_copy_state {
    HF_COPY_NEW = 1,   /* nothing was copied yet */
    HF_COPY_ITEMS,     /* items are being copied */
    HF_COPY_COPIED,    /* all items were copied; without follow that is all */
    HF_COPY_FOLLOWING, /* changes are being applied */
    HF_COPY_FENCED,    /* writers of the source were fenced */
    HF_COPY_CUT_OVER   /* the target has taken over */
};

struct hf_copy_table {
    struct hf_str source; /* its name there */
    struct hf_str target;
    enum hf_copy_state state;
    bool make;            /* it is not in the target yet */
    bool has_stream;      /* in the source */
    uint64_t items;       /* in the source, as it says: Amazon counts every six hours */
    uint64_t items_bytes; /* likewise */
    uint64_t copied;      /* items so far */
    uint32_t indexes;
    struct hf_str ttl_attribute; /* absent: none */
    uint32_t tags;
    uint64_t reserved[4];
};

/* The tables, as they are now, in the scope. HF_NOMEM. */
HF_API HF_NODISCARD enum hf_status hf_copy_tables(struct hf_scope *s, struct hf_copy *copy,
                                                  const struct hf_copy_table **tables, size_t *len);

/*
 * Create the tables and copy all items. Continues where it was interrupted; returns at once when all
 * is copied.
 *
 * HF_LOST      the copy was opened again elsewhere, and goes on there
 * HF_CANCELED, HF_TIMEOUT  call it again
 * and what the operations fail with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_copy_run(struct hf_scope *s, struct hf_copy *copy);

/*
 * Apply changes until the scope is canceled or its deadline comes; with until_caught_up, until all are
 * applied that were made before the call. Tables whose changes were removed before they were read
 * are copied again.
 *
 * HF_INVALID  the copy was made without `follow`, or hf_copy_run() is not done
 * HF_LOST, HF_CANCELED, HF_TIMEOUT and what the operations fail with, as above.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_copy_follow(struct hf_scope *s, struct hf_copy *copy,
                                                  bool until_caught_up);

/* ---- comparing ------------------------------------------------------------------------------ */

enum hf_copy_difference_kind {
    HF_COPY_MISSING = 1, /* not in the target */
    HF_COPY_EXTRA,       /* only in the target */
    HF_COPY_DIFFERENT
};

struct hf_copy_difference {
    enum hf_copy_difference_kind kind;
    struct hf_str table; /* of the source */
    struct hf_item key;
    struct hf_item source; /* absent: there is none */
    struct hf_item target; /* absent: there is none */
    uint64_t reserved[4];
};

/* On the caller's thread. Not HF_OK: the comparison ends with that. */
typedef enum hf_status
hf_copy_difference_fn(struct hf_scope *s, const struct hf_copy_difference *difference, void *user);

struct hf_copy_result {
    uint64_t tables;
    uint64_t source_items; /* that were compared */
    uint64_t target_items;
    uint64_t missing;
    uint64_t extra;
    uint64_t different;
    uint64_t moving;    /* items that writers changed between any two looks at them */
    uint64_t conflicts; /* items that somebody else has written to the target */
    uint64_t changes;   /* applied by this copy */
    uint64_t reserved[4];
};

/*
 * Read all items of both databases and compare them: a digest for each of many ranges of keys, then
 * the items of those that differ. Items that differ are read once more from both, with consistent
 * reads. Works at any time after hf_copy_run(); with `follow` it applies changes before it looks
 * again. Definitions are compared, too.
 *
 * HF_OK       it was compared: *result says whether there are differences
 * HF_INVALID  the definition of a table differs
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_copy_verify(struct hf_scope *s, struct hf_copy *copy,
                                                  hf_copy_difference_fn *difference, void *user,
                                                  struct hf_copy_result *result);

/* ---- cutover -------------------------------------------------------------------------------- */

struct hf_copy_cutover_options {
    size_t size;        /* set by HF_OPTIONS() */
    uint32_t settle_ms; /* how long to wait until all writers know of the fence; default 3000. 1 is
                           enough for a source that is a directory or `holdfast serve`, which know
                           at once */
    uint32_t wait_ms;   /* how long it may take before it is undone; default 600000 */
    bool unverified;    /* do not compare */
    hf_copy_difference_fn *difference; /* default: only counted */
    void *user;                        /* handed to it */
};

/*
 * Fence the writers of the source (fence.h), apply all changes that are left, compare, switch the
 * time to live on in the target. When it fails before it is complete, the fence is taken away, and
 * the source can be written again. May be called again after a crash.
 *
 * HF_INVALID    the copy was made without `follow`; it has conflicts
 * HF_CONDITION  the databases differ, as *result says
 * HF_TIMEOUT    it took longer than wait_ms
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_copy_cutover(struct hf_scope *s, struct hf_copy *copy,
                                                   const struct hf_copy_cutover_options *options,
                                                   struct hf_copy_result *result);

/*
 * Undo a cutover: the source can be written again. What was written to the target since is not
 * copied back. Works on a copy whose fence was set by another process, which has ended.
 */
HF_API HF_NODISCARD enum hf_status hf_copy_abort(struct hf_scope *s, struct hf_copy *copy);

/* ---- progress ------------------------------------------------------------------------------- */

struct hf_copy_progress {
    uint64_t tables;
    uint64_t tables_done;
    uint64_t items;       /* copied, with those of earlier runs */
    uint64_t items_total; /* as the source says */
    uint64_t bytes;
    uint64_t items_now; /* copied in this run */
    double read_units;  /* consumed by this run in the source */
    double write_units; /* consumed by this run in the target */
    uint64_t changes;   /* applied in this run */
    uint64_t conflicts;
    int64_t lag_ms; /* how old the last change was when it was applied; 0: caught up */
    bool caught_up;
    bool comparing;
    uint64_t compared; /* items read for the comparison, of both */
    char table[256];   /* the table that is being copied; ends with a NUL */
    uint64_t reserved[4];
};

/* Any thread. */
HF_API void hf_copy_progress(struct hf_copy *copy, struct hf_copy_progress *progress);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
