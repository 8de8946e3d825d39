/*
 * kv/kv.h: what the files of keys and values share. kv.c has the essay.
 */
#ifndef HF_KV_KV_H
#define HF_KV_KV_H

#include <holdfast/kv.h>

#include "coord/pattern.h"

enum {
    KV_ATTEMPTS_DEFAULT = 100,
    KV_TOMBSTONE_DEFAULT_S = 3600,
    KV_PAGE_DEFAULT = 1000,
    KV_REMEMBER_DEFAULT = 4096,
    KV_ITEM_MAX = HF_ITEM_SIZE_MAX,
    KV_PAST_MAX = 4,    /* ids of earlier writes in a version */
    KV_PAST_ID_LEN = 16 /* how much of each */
};

struct kv_memory;

struct hf_kv {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* all texts below live here */
    struct hf_str table;
    struct hf_str space;
    struct hf_str hash;
    struct hf_str sort; /* absent: not partitioned */
    struct hf_str data;
    struct hf_str version;
    struct hf_str expires;
    bool consistent;
    bool spaced;  /* values have their namespace for the index (KIND_VALUES_FILLING) */
    bool indexed; /* and all of them are in it (KIND_VALUES_SPACED) */
    bool tombstones;
    uint32_t tombstone_s;
    struct kv_memory *memory;
    struct hf_blobs *blobs; /* a part of those of the options; NULL: none */
    size_t blob_over;
};

#define KV_BLOB "blob"     /* the attribute */
#define KV_SPACE "space"   /* the attribute */
#define KV_SPACES "spaces" /* the index */

/* ---- kv_table.c: the table ------------------------------------------------------------------ */

/* Make the table if it is missing, compare it and its mark with the options, and find out whether
 * it has the index of namespaces. */
enum hf_status hf__kv_table_open(struct hf_scope *s, struct hf_kv *kv,
                                 const struct hf_kv_options *o);

/* ---- kv_item.c: keys and items, and the requests that change them --------------------------- */

/* Where a key is stored. */
struct kv_place {
    struct hf_kv_key key; /* with its namespace */
    struct hf_str hash;
    struct hf_str sort; /* absent: not partitioned */
};

/* HF_INVALID when it cannot be a key of this table. */
enum hf_status hf__kv_place(struct hf_scope *s, const struct hf_kv *kv, struct hf_kv_key key,
                            struct kv_place *place);

/* "SPACE.ID" of a namespace, and what is in front of all ids of it. Absent when there is no memory.
 */
struct hf_str hf__kv_join(struct hf_scope *s, struct hf_str space, struct hf_str id);

/* "SPACE." of a key as it is stored. */
struct hf_str hf__kv_head(struct hf_str joined);

/* The key of an item, which lives as long as the item and the scope. HF_CORRUPT: it is none of
 * ours.
 */
enum hf_status hf__kv_key_of(struct hf_scope *s, const struct hf_kv *kv, struct hf_item item,
                             struct hf_kv_key *key);

/* The primary key of an item. */
struct hf_item hf__kv_item_key(struct hf_scope *s, const struct hf_kv *kv, struct hf_str hash,
                               struct hf_str sort);

/* An item as it was read. */
struct kv_view {
    bool there; /* something is stored there: a value, the memory of one, or somebody else's */
    bool live;  /* there is a value, and its time has not come */
    struct hf_value value; /* with a blob: a NULL until hf__kv_load() */
    struct hf_str version; /* absent: not written by us */
    int64_t expires_s;
    struct hf_str blob; /* the value is this one of the blob store; absent: it is there */
};

/* HF_CORRUPT when it cannot be one. An absent item is nothing stored. */
enum hf_status hf__kv_view(struct hf_scope *s, const struct hf_kv *kv, struct hf_item item,
                           struct kv_view *view);

/* The entry of a key, with no value unless the view is live. */
struct hf_kv_entry hf__kv_entry(struct hf_kv_key key, const struct kv_view *view);

/* What a write is conditional on. */
enum kv_base_kind {
    KV_BASE_ANY = 1, /* nothing */
    KV_BASE_SEEN,    /* what is stored is what was seen: by its version, or by being absent */
    KV_BASE_VERSION, /* a value with that version is live */
    KV_BASE_NO_VALUE /* no value is live, whatever is stored */
};

struct kv_base {
    enum kv_base_kind kind;
    struct kv_view seen; /* KV_BASE_VERSION: its version alone */
};

/* A write that was built, and not sent. */
struct kv_request {
    struct hf_put_item put;
    struct hf_delete_item del;
    struct hf_condition_check check;
    struct hf_item key;
};

/* The version of a write with that id. */
struct hf_str hf__kv_version(struct hf_scope *s, const struct kv_base *base, struct hf_str id);

/* What is stored under a key. */
struct kv_content {
    struct hf_value value; /* absent: a tombstone */
    struct hf_str blob;    /* the digest of the real value, if it is in the blob store */
    struct hf_str version;
    int64_t expires_s; /* 0: never */
};

/* Put it; hf_item_check() says whether it is too large. */
void hf__kv_put_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                        const struct kv_base *base, const struct kv_content *content,
                        struct kv_request *request);
void hf__kv_delete_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           const struct kv_base *base, struct kv_request *request);
void hf__kv_check_request(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                          const struct kv_base *base, struct kv_request *request);

/* The item alone, without a condition: what a batch takes. */
struct hf_item hf__kv_item(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           const struct kv_content *content);

/* HF_INVALID when the item is larger than any may be. */
enum hf_status hf__kv_item_fits(struct hf_scope *s, struct hf_kv_key key, struct hf_item item);

/*
 * What became of a write of `version`, based on `base`, whose answer was lost, by what is there.
 * `remembered`: deleted keys are, so where nothing is there was nothing.
 */
enum kv_verdict { KV_DONE = 1, KV_NOT_DONE, KV_UNKNOWN };
enum kv_verdict hf__kv_judge_write(const struct kv_base *base, struct hf_str version,
                                   const struct kv_view *now, bool remembered);
/* The same for a removal. */
enum kv_verdict hf__kv_judge_removal(const struct kv_base *base, const struct kv_view *now);

/* When an entry ends that is to live that long from now on; 0 for 0. */
int64_t hf__kv_expires_s(const struct hf_env *env, uint32_t ttl_s);

/* What succeeds and hands nothing out leaves nothing in the scope. */
static inline enum hf_status kv_done(struct hf_scope *s, struct hf_scope_mark mark,
                                     enum hf_status status)
{
    if (status == HF_OK)
        hf_scope_rewind(s, mark);
    return status;
}

/* For messages: the id, cut when it is long. */
#define KV_FMT(key) (int)((key).id.len > 80 ? 80 : (key).id.len), (key).id.ptr

/* ---- kv_blob.c: large values ---------------------------------------------------------------- */

/* Put the value into the blob store if it is too large; then the content has a digest, and another
 * value instead. */
enum hf_status hf__kv_offload(struct hf_scope *s, const struct hf_kv *kv,
                              const struct kv_place *place, struct kv_content *content);

/* Fetch the value of a view, if it is live and has a blob. The view may be a newer one then. */
enum hf_status hf__kv_load(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           struct kv_view *view);

/* ---- kv_memory.c: which version was seen last ----------------------------------------------- */

/* NULL when there is no memory. Any thread may use it. */
struct kv_memory *hf__kv_memory_new(const struct hf_env *env, size_t len);
void hf__kv_memory_free(const struct hf_env *env, struct kv_memory *memory);

/* Absent: forget it. */
void hf__kv_remember(struct kv_memory *memory, const struct kv_place *place, struct hf_str version);

/* True, and a version that it had once, if one is remembered. */
bool hf__kv_recall(struct hf_scope *s, struct kv_memory *memory, const struct kv_place *place,
                   struct hf_str *version);

#endif
