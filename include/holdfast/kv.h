/*
 * Keys and values, kept in a table: by an id alone, or by a partition and an id inside of it. Ids
 * live in namespaces. Values are any of DynamoDB's, up to 400 KB, or to HF_BLOB_MAX with a blob
 * store.
 *
 *     struct hf_kv *kv;
 *     struct hf_kv_entry entry;
 *     if (hf_kv_open(s, db, HF_OPTIONS(hf_kv_options, .space = HF_STR("events")), &kv) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     struct hf_kv_key key = hf_kv_id(HF_STR("user-123"));
 *     struct hf_value login = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("login")));
 *     if (hf_kv_set(s, kv, key, login, NULL, NULL) != HF_OK ||
 *         hf_kv_get(s, kv, key, NULL, &entry) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     if (entry.value.ptr)
 *         use(entry.value);
 *
 * Every write gives its entry a unique version. So a write that is conditional on a version
 * (hf_kv_set_options.if_version) notices an entry that was changed and changed back, or removed and
 * created again. Each write is one conditional write of one item: after a lost answer the version
 * shows whether it was done, and a late or doubled request is refused. So all operations on a key
 * are linearizable: set, delete, change and the sets of <holdfast/set.h>, with each other. Only
 * these have no conditions: `blind`, hf_kv_set_many(), hf_kv_clear().
 *
 * For that, a deleted key is remembered for an hour (tombstone_s), invisibly: longer than any
 * request can be in flight.
 *
 * An entry with a time to live is gone when it has expired by the reader's clock, even if the
 * database removes it later.
 *
 * Any thread may use a table. Works on every database.
 */
#ifndef HOLDFAST_KV_H
#define HOLDFAST_KV_H

#include <holdfast/base.h>
#include <holdfast/batch.h>
#include <holdfast/blob.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_kv; /* a table of keys and values; any thread may use it */

/* ---- keys ----------------------------------------------------------------------------------- */

enum {
    HF_KV_KEY_MAX = 2048,  /* bytes of namespace and id, or of a partition, as they are stored */
    HF_KV_SORT_MAX = 1024, /* bytes of namespace and id in a partition, or with space_index */
    HF_KV_BLOB_OVER = 350 * 1024,
    HF_KV_SWEEP_S = 86400 /* a day */
};

/*
 * A key. It is stored as "NAMESPACE.ID"; in the namespace "%2E" stands for '.' and "%25" for '%',
 * so different keys are never stored as the same, and ids keep their order.
 */
struct hf_kv_key {
    struct hf_str partition; /* of partitioned tables, and only those */
    struct hf_str space;     /* the namespace; absent: that of the table */
    struct hf_str id;        /* not empty */
};

/* A key in the namespace of the table. */
static inline struct hf_kv_key hf_kv_id(struct hf_str id)
{
    struct hf_kv_key key;

    memset(&key, 0, sizeof(key));
    key.id = id;
    return key;
}

/* A key with its partition and namespace; absent ones as in struct hf_kv_key. */
static inline struct hf_kv_key hf_kv_in(struct hf_str partition, struct hf_str space,
                                        struct hf_str id)
{
    struct hf_kv_key key;

    key.partition = partition;
    key.space = space;
    key.id = id;
    return key;
}

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_kv_options {
    size_t size;         /* set by HF_OPTIONS() */
    bool partitioned;    /* keys have partitions */
    struct hf_str table; /* default "keys", partitioned "partitioned_keys"; created if missing */
    struct hf_str
        space;       /* the namespace of keys that name none; default "global", partitioned "" */
    bool consistent; /* reads are strongly consistent unless they say otherwise */
    bool no_create;  /* the table has to exist */

    /*
     * The table's time to live is taken as it is, as it is where the database has none. What has
     * expired is not seen all the same, but nobody may remove it, nor what remembers that a key was
     * deleted.
     */
    bool any_ttl;
    uint32_t tombstone_s; /* for how long a deleted key is remembered; default 3600 */

    /*
     * Deleted is removed at once. Then a request that made a key again, and whose answer was lost,
     * may arrive after the key was deleted, and bring it back; and of two who delete a key at the
     * same time both may get the answer that they did.
     */
    bool no_tombstones;

    uint32_t remember; /* keys that can be set again without a look, 120 bytes each; default 4096 */

    /* Names of attributes; defaults "key", "partition" and "sort", "data", "version", "expires". */
    struct hf_str hash_attribute; /* the key, or the partition */
    struct hf_str sort_attribute;
    struct hf_str data_attribute;
    struct hf_str version_attribute;
    struct hf_str expires_attribute;

    /*
     * Where values go that would make an item larger than blob_over bytes (blob.h): reads fetch
     * them. All who use the table have to be given the same store, which has to outlive it; the
     * table has a part of it for itself (hf_blobs_part_of()). An item has the attribute "blob"
     * then. Default: none, and such values are HF_INVALID.
     */
    struct hf_blobs *blobs;
    uint32_t blob_over; /* default HF_KV_BLOB_OVER, at most 400 KB */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * A table without partitions that is made now gets an index of namespaces, "spaces": with it, a
     * list of one namespace reads that namespace and not the whole table, unless it is consistent.
     * Each key that is made or removed costs one more write, of the index; setting a key again does
     * not. Items have the attribute "space" then, and keys at most HF_KV_SORT_MAX bytes. Whoever
     * opens the table later sees by its mark that it has the index, and needs no option. HF_INVALID
     * if the table is there and has no index: hf_kv_add_space_index() adds it. docs/tables.md says
     * when to have it.
     */
    bool space_index;
};

/*
 * Keys and values in a table of `db`, which has to outlive it. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is another's: see hf_table_ensure(); or it lacks the index that
 *             is asked for; or two attributes have the same name
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_open(struct hf_scope *s, struct hf_db *db,
                                              const struct hf_kv_options *options,
                                              struct hf_kv **kv);

/* NULL is accepted. */
HF_API void hf_kv_close(struct hf_kv *kv);

/* Whether the table has the index of namespaces, and lists read it. */
HF_API bool hf_kv_has_space_index(const struct hf_kv *kv);

/*
 * Add the index of namespaces (space_index) to a table without partitions; a missing table is
 * created with it. The index is created, each existing value gets the attribute "space", and then
 * the mark is set. *added (may be NULL) is how many values got it, also on failure. Reads the table
 * twice, and writes each value once. After a failure, or a crash, the same call goes on.
 *
 * Programs that have the table open do not notice: the values that they write are missing in lists
 * until they open it again. So stop them first, or restart them afterwards and call this once more,
 * which finds such values. Older versions without the index can no longer open the table. The
 * options are those of hf_kv_open().
 *
 * HF_INVALID  it has partitions; or a key is longer than HF_KV_SORT_MAX bytes, and nothing was
 *             changed; or it has another index of that name
 * and what UpdateTable fails with. The index is waited for, up to a day, within the deadline of the
 * scope.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_add_space_index(struct hf_scope *s, struct hf_db *db,
                                                         const struct hf_kv_options *options,
                                                         uint64_t *added);

/* ---- reading -------------------------------------------------------------------------------- */

struct hf_kv_entry {
    struct hf_kv_key key;  /* with its namespace */
    struct hf_value value; /* absent: there is none */
    struct hf_str version; /* absent when another program wrote it, without one */
    int64_t expires_s;     /* since 1970; 0: never */
    uint64_t reserved[4];
};

struct hf_kv_get_options {
    size_t size;             /* set by HF_OPTIONS() */
    enum hf_flag consistent; /* default as the table */
};

/*
 * The value of a key; absent when there is none.
 *
 * HF_INVALID      the key has no id; or no partition, or one where there are none; or it is too
 *                 long
 * HF_UNSUPPORTED  the value is in a blob store, and the table was opened without one
 * HF_CORRUPT      it is missing, or damaged
 * and what the database fails with: so do all functions below.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_get(struct hf_scope *s, struct hf_kv *kv,
                                             struct hf_kv_key key,
                                             const struct hf_kv_get_options *options,
                                             struct hf_kv_entry *entry);

/* Whether there is a value. */
HF_API HF_NODISCARD enum hf_status hf_kv_exists(struct hf_scope *s, struct hf_kv *kv,
                                                struct hf_kv_key key,
                                                const struct hf_kv_get_options *options,
                                                bool *exists);

struct hf_kv_many {
    const struct hf_kv_entry *entries; /* one per key, in their order */
    size_t entries_len;
    const size_t *left; /* the numbers of those that were not read; none on success */
    size_t left_len;
    uint64_t reserved[4];
};

/*
 * The values of any number of keys, which may repeat; see hf_get_many(), as whose it fails. On
 * failure `many` has what was read so far.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_get_many(struct hf_scope *s, struct hf_kv *kv,
                                                  const struct hf_kv_key *keys, size_t len,
                                                  const struct hf_many_options *options,
                                                  struct hf_kv_many *many);

/* ---- writing -------------------------------------------------------------------------------- */

struct hf_kv_set_options {
    size_t size;    /* set by HF_OPTIONS() */
    uint32_t ttl_s; /* expires after this many seconds, or up to one more; default never */
    bool if_absent; /* only if there is no value */
    struct hf_str if_version; /* only if this is the version of the value */

    /*
     * Without looking first, in one write; otherwise it takes a look unless this process wrote the
     * key last. But when an answer is lost, the value may be set again later, over what others have
     * set in between.
     */
    bool blind;
    uint32_t max_attempts; /* how often to try while others write the same key; default 100 */
};

/*
 * Set a value. *entry (may be NULL) is the entry that was made; with HF_CONDITION, the one that is
 * there, whose value may be absent.
 *
 * HF_CONDITION    there is a value already; or it has another version, or is gone
 * HF_TX_CONFLICT  others were always faster, `attempts` times
 * HF_INVALID      also: the value is absent or, with its key, too large; or options contradict
 *
 * hf_scope_error(s)->may_have_happened says whether it may have been set after all.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_set(struct hf_scope *s, struct hf_kv *kv,
                                             struct hf_kv_key key, struct hf_value value,
                                             const struct hf_kv_set_options *options,
                                             struct hf_kv_entry *entry);

struct hf_kv_pair {
    struct hf_kv_key key;
    struct hf_value value; /* absent: remove what is there */
    uint32_t ttl_s;        /* default never */
    uint64_t reserved[4];
};

/*
 * Set any number of values; see hf_write_many(), as whose this fails, and which says what is left.
 * It is blind, as there are no conditions in batches.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_set_many(struct hf_scope *s, struct hf_kv *kv,
                                                  const struct hf_kv_pair *pairs, size_t len,
                                                  const struct hf_many_options *options,
                                                  struct hf_write_many_result *result);

struct hf_kv_delete_options {
    size_t size;              /* set by HF_OPTIONS() */
    struct hf_str if_version; /* only if this is the version of the value */
    uint32_t max_attempts;    /* as in hf_kv_set_options */
};

/*
 * Delete a key; there may be none. *old (may be NULL) is the deleted entry; with HF_CONDITION, the
 * present one. Fails as hf_kv_set() does.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_delete(struct hf_scope *s, struct hf_kv *kv,
                                                struct hf_kv_key key,
                                                const struct hf_kv_delete_options *options,
                                                struct hf_kv_entry *old);

/*
 * Computes the new value. `now` is the present entry; *value is its value, and has to be set to the
 * new one: absent deletes it. The new value lives in the scope. The function may be called any
 * number of times, each time with a newer entry. A failure ends the change.
 */
typedef enum hf_status hf_kv_change_fn(struct hf_scope *s, const struct hf_kv_entry *now,
                                       struct hf_value *value, void *user);

struct hf_kv_change_options {
    size_t size;           /* set by HF_OPTIONS() */
    uint32_t ttl_s;        /* from now on; default: what it has stays */
    uint32_t max_attempts; /* as in hf_kv_set_options */
};

/*
 * Read a value, compute the new one and write it; nobody else changes it in between. Nothing is
 * written if the value stays the same. *entry (may be NULL) is the result. Fails as hf_kv_set() and
 * `change` do.
 */
HF_API HF_NODISCARD enum hf_status
hf_kv_change(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key, hf_kv_change_fn *change,
             void *user, const struct hf_kv_change_options *options, struct hf_kv_entry *entry);

/* ---- in transactions ------------------------------------------------------------------------ */

/*
 * The same writes as actions for a transaction on the same database: with the rest or not at all.
 * A condition that does not hold is HF_TX_CANCELED, with the reason ConditionalCheckFailed.
 *
 *     struct hf_transact_write actions[2] = {{.put = &invoice}};
 *     struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};
 *     if (hf_kv_set_tx(s, kv, key, paid, NULL, &actions[1], NULL) != HF_OK ||
 *         hf_transact_write_items(s, db, &both, NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * hf_kv_set_tx() and hf_kv_delete_tx() read nothing: without a condition they are blind.
 * hf_kv_change_tx() reads, and its action is conditional on what it read; so call it again when the
 * transaction was canceled. hf_kv_check_tx() is the condition alone: the value still has that
 * version; absent: there is none.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_set_tx(struct hf_scope *s, struct hf_kv *kv,
                                                struct hf_kv_key key, struct hf_value value,
                                                const struct hf_kv_set_options *options,
                                                struct hf_transact_write *action,
                                                struct hf_kv_entry *entry);
HF_API HF_NODISCARD enum hf_status hf_kv_delete_tx(struct hf_scope *s, struct hf_kv *kv,
                                                   struct hf_kv_key key,
                                                   const struct hf_kv_delete_options *options,
                                                   struct hf_transact_write *action);
HF_API HF_NODISCARD enum hf_status
hf_kv_change_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key, hf_kv_change_fn *change,
                void *user, const struct hf_kv_change_options *options,
                struct hf_transact_write *action, struct hf_kv_entry *entry);
HF_API HF_NODISCARD enum hf_status hf_kv_check_tx(struct hf_scope *s, struct hf_kv *kv,
                                                  struct hf_kv_key key, struct hf_str version,
                                                  struct hf_transact_write *action);

/* ---- large values --------------------------------------------------------------------------- */

/*
 * Remove blobs of this table that no key has, and that were put last more than older_s seconds ago
 * (0: HF_KV_SWEEP_S). That has to be longer than it takes from hf_kv_set_tx() to the commit, and
 * than this call takes. *removed (may be NULL) is how many. Reads the whole table; now and then is
 * enough. HF_INVALID: there is no blob store.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_sweep_blobs(struct hf_scope *s, struct hf_kv *kv,
                                                     uint32_t older_s, uint64_t *removed);

/* ---- lists ---------------------------------------------------------------------------------- */

/*
 * Which keys: those of one namespace, of one partition if the table has such. There they come in
 * the order of their ids, and only those are read that are asked for. So it is in a table with an
 * index of namespaces (space_index) if the list is not consistent. In all other cases they come in
 * no order, and the whole table is read.
 */
struct hf_kv_range {
    struct hf_str partition;   /* absent in a partitioned table: all of them */
    struct hf_str space;       /* absent: that of the table */
    bool all_spaces;           /* whatever the namespace; then the next three are absent */
    struct hf_str prefix;      /* of the ids */
    struct hf_str from;        /* ids from this one on */
    struct hf_str before;      /* and before this one */
    struct hf_str id_contains; /* ids with this text somewhere; costs as much as without */
    uint64_t reserved[4];
};

struct hf_kv_list_options {
    size_t size;             /* set by HF_OPTIONS() */
    uint32_t limit;          /* entries in all; default all, for hf_kv_page() 1000 */
    struct hf_str after;     /* go on behind where an earlier list of the range ended: its cursor */
    bool backward;           /* from the last id to the first; where they come in order */
    enum hf_flag consistent; /* default as the table; HF_NO: the newest keys may be missing */
    uint32_t page;           /* items to look at per call of the database; default as many as fit */
    uint32_t delay_ms;       /* at least so long from one such call to the next; default 0 */
    uint32_t segment;        /* of a parallel reading of a whole table: from 0 on, */
    uint32_t segments;       /* of so many */
};

struct hf_kv_list; /* one thread at a time uses it; the table has to outlive it */

/*
 * Begin a list; nothing is asked for yet.
 *
 * HF_INVALID  the range contradicts itself or the table, or the cursor is none
 */
HF_API HF_NODISCARD enum hf_status hf_kv_list_open(struct hf_scope *s, struct hf_kv *kv,
                                                   const struct hf_kv_range *range,
                                                   const struct hf_kv_list_options *options,
                                                   struct hf_kv_list **list);

/*
 * The next entry, which lives until the next step; its value is absent at the end, and then again
 * each time. After a failure the same step can be retried.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_list_next(struct hf_scope *s, struct hf_kv_list *list,
                                                   struct hf_kv_entry *entry);

/*
 * Where the list is, as a text in the scope: a list of the same range that is opened `after` it
 * goes on behind the last entry that was handed out, also in another process. Absent at the end;
 * before the first step, the list's own `after`.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_list_cursor(struct hf_scope *s, struct hf_kv_list *list,
                                                     struct hf_str *cursor);

/* NULL is accepted. */
HF_API void hf_kv_list_free(struct hf_kv_list *list);

struct hf_kv_page {
    const struct hf_kv_entry *entries;
    size_t entries_len;
    struct hf_str next; /* `after` of the next page, which may be empty; absent at the end */
    uint64_t reserved[4];
};

/* Up to `limit` entries at once, in the scope. */
HF_API HF_NODISCARD enum hf_status hf_kv_page(struct hf_scope *s, struct hf_kv *kv,
                                              const struct hf_kv_range *range,
                                              const struct hf_kv_list_options *options,
                                              struct hf_kv_page *page);

struct hf_kv_clear_options {
    size_t size;       /* set by HF_OPTIONS() */
    uint32_t delay_ms; /* at least so long from one page to the next; default 0 */

    /*
     * One conditional write per key: what is set again meanwhile stays. Default: batches, which are
     * blind. Either way what is set while this runs may be removed or not.
     */
    bool exact;

    /*
     * What was set just before this call may stay, too, as may items that other programs put under
     * such keys: the keys are looked for without consistent reads, in a table with an index of
     * namespaces by that index. Default: all that was set before is found.
     */
    bool eventual;
};

/*
 * Remove all keys of a range, with whatever else is stored under such keys. It is not atomic; after
 * a failure, or a crash, the same call goes on with what is left. *cleared (may be NULL) is how
 * many were removed, also on failure.
 */
HF_API HF_NODISCARD enum hf_status hf_kv_clear(struct hf_scope *s, struct hf_kv *kv,
                                               const struct hf_kv_range *range,
                                               const struct hf_kv_clear_options *options,
                                               uint64_t *cleared);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
