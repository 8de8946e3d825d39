/*
 * kv/kv.c: keys and values: opening, reading, and batches.
 *
 * A key is one item (kv_item.c). Reading is reading that item; writing is replacing it, on the
 * condition that it is what was seen (kv_change.c). The table is made and marked in kv_table.c.
 * Lists and clearing are in kv_list.c, sets on top of all that in set.c.
 *
 * What always holds, for each key:
 *
 *  (1) Every write has a version that no other write has: a random id. A number that counts would
 *      start again when a key is deleted, and batches, which know no conditions, could not count.
 *  (2) What is conditional on a version is done only if nobody wrote the key in between.
 *  (3) A write whose answer was lost is reported as done or as not done when that can be known, and
 *      as doubtful otherwise; never as what it is not.
 *  (4) An expired value does not exist, for readers and writers alike. Items of other programs
 *      under such keys, without a value of ours, do not exist for readers.
 */
#include "kv/kv.h"

/* ---- open and close ------------------------------------------------------------------------- */

static void kv_free(struct hf_kv *kv)
{
    struct hf_env env = kv->env;

    hf_blobs_close(kv->blobs);
    hf__kv_memory_free(&env, kv->memory);
    hf_scope_free(kv->names);
    hf__env_free(&env, kv, sizeof(*kv));
}

static struct hf_str text_or(struct hf_kv *kv, struct hf_str text, struct hf_str otherwise)
{
    return hf_scope_copy(kv->names, text.ptr ? text : otherwise);
}

static struct hf_kv *kv_new(struct hf_scope *s, struct hf_db *db, const struct hf_kv_options *o)
{
    struct hf_kv *kv = hf__env_zalloc(hf_scope_env(s), sizeof(*kv));
    bool many = o->partitioned;

    if (!kv)
        return NULL;
    kv->env = *hf_scope_env(s);
    kv->db = db;
    kv->consistent = o->consistent;
    kv->tombstones = !o->no_tombstones;
    kv->tombstone_s = o->tombstone_s ? o->tombstone_s : KV_TOMBSTONE_DEFAULT_S;
    kv->names = hf_scope_new(&kv->env);
    kv->memory = hf__kv_memory_new(&kv->env, o->remember ? o->remember : KV_REMEMBER_DEFAULT);
    if (kv->names) {
        kv->table = text_or(kv, o->table, many ? HF_STR("partitioned_keys") : HF_STR("keys"));
        kv->space = text_or(kv, o->space, many ? HF_STR("") : HF_STR("global"));
        kv->hash = text_or(kv, o->hash_attribute, many ? HF_STR("partition") : HF_STR("key"));
        if (many)
            kv->sort = text_or(kv, o->sort_attribute, HF_STR("sort"));
        kv->data = text_or(kv, o->data_attribute, HF_STR("data"));
        kv->version = text_or(kv, o->version_attribute, HF_STR("version"));
        kv->expires = text_or(kv, o->expires_attribute, HF_STR("expires"));
    }
    if (!kv->names || !kv->memory || hf_scope_built(kv->names) != HF_OK) {
        kv_free(kv);
        return NULL;
    }
    return kv;
}

static enum hf_status open_blobs(struct hf_scope *s, struct hf_kv *kv,
                                 const struct hf_kv_options *o)
{
    if (o->blob_over > KV_ITEM_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ITEM_SIZE_MAX, o->blob_over),
                                   "blob_over is %u, more than the %d bytes of an item",
                                   o->blob_over, KV_ITEM_MAX);
    kv->blob_over = o->blob_over ? o->blob_over : HF_KV_BLOB_OVER;
    return o->blobs ? hf_blobs_part_of(s, o->blobs, kv->db, kv->table, &kv->blobs) : HF_OK;
}

enum hf_status hf_kv_open(struct hf_scope *s, struct hf_db *db, const struct hf_kv_options *options,
                          struct hf_kv **kv)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_kv_options o;
    struct hf_kv *made;
    enum hf_status status;

    *kv = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_kv_open() was called without a database");
    made = kv_new(s, db, &o);
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of keys and values");
    status = open_blobs(s, made, &o);
    if (status == HF_OK)
        status = hf__kv_table_open(s, made, &o);
    if (status != HF_OK) {
        kv_free(made);
        return status;
    }
    *kv = made;
    return kv_done(s, mark, call_ends(s, HF_OK));
}

void hf_kv_close(struct hf_kv *kv)
{
    if (kv)
        kv_free(kv);
}

bool hf_kv_has_space_index(const struct hf_kv *kv)
{
    return kv->indexed;
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status read_view(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                const struct hf_kv_get_options *options, struct kv_place *place,
                                struct kv_view *view)
{
    struct hf_kv_get_options o;
    struct hf_get_item get = {.table = kv->table};
    struct hf_get_item_result got;

    OPTIONS_COPY(&o, options);
    TRY(hf__kv_place(s, kv, key, place));
    get.key = hf__kv_item_key(s, kv, place->hash, place->sort);
    get.consistent = o.consistent ? o.consistent : kv->consistent ? HF_YES : HF_UNSET;
    TRY(hf_get_item(s, kv->db, &get, &got));
    return hf__kv_view(s, kv, got.item, view);
}

enum hf_status hf_kv_get(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                         const struct hf_kv_get_options *options, struct hf_kv_entry *entry)
{
    struct kv_place place;
    struct kv_view view;

    *entry = (struct hf_kv_entry){0};
    TRY(read_view(s, kv, key, options, &place, &view));
    TRY(hf__kv_load(s, kv, &place, &view));
    *entry = hf__kv_entry(place.key, &view);
    return HF_OK;
}

enum hf_status hf_kv_exists(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                            const struct hf_kv_get_options *options, bool *exists)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct kv_place place;
    struct kv_view view;

    *exists = false;
    TRY(read_view(s, kv, key, options, &place, &view));
    *exists = view.live;
    return kv_done(s, mark, HF_OK);
}

/* ---- batches -------------------------------------------------------------------------------- */

/* The numbers of all, when not one was sent. */
static void all_left(struct hf_scope *s, size_t len, const size_t **left, size_t *left_len)
{
    size_t *all = hf_scope_alloc(s, (len + 1) * sizeof(*all));

    for (size_t i = 0; all && i < len; i++)
        all[i] = i;
    *left = all;
    *left_len = all ? len : 0;
}

static enum hf_status get_requests(struct hf_scope *s, struct hf_kv *kv,
                                   const struct hf_kv_key *keys, size_t len,
                                   struct kv_place *places, struct hf_get *gets)
{
    for (size_t i = 0; i < len; i++) {
        TRY(hf__kv_place(s, kv, keys[i], &places[i]));
        gets[i] = (struct hf_get){.table = kv->table,
                                  .key = hf__kv_item_key(s, kv, places[i].hash, places[i].sort)};
    }
    return HF_OK;
}

enum hf_status hf_kv_get_many(struct hf_scope *s, struct hf_kv *kv, const struct hf_kv_key *keys,
                              size_t len, const struct hf_many_options *options,
                              struct hf_kv_many *many)
{
    struct hf_many_options o;
    struct hf_get_many_result got = {0};
    struct hf_get *gets = hf_scope_alloc(s, (len + 1) * sizeof(*gets));
    struct kv_place *places = hf_scope_alloc(s, (len + 1) * sizeof(*places));
    struct hf_kv_entry *entries = hf_scope_alloc(s, (len + 1) * sizeof(*entries));
    enum hf_status status;

    *many = (struct hf_kv_many){0};
    OPTIONS_COPY(&o, options);
    o.size = sizeof(o);
    o.consistent = o.consistent || kv->consistent;
    TRY(hf_scope_built(s));
    status = get_requests(s, kv, keys, len, places, gets);
    if (status != HF_OK) {
        all_left(s, len, &many->left, &many->left_len);
        return status;
    }
    status = hf_get_many(s, kv->db, gets, len, &o, &got);
    for (size_t i = 0; i < got.items_len; i++) {
        struct kv_view view;

        TRY(hf__kv_view(s, kv, got.items[i], &view));
        TRY(hf__kv_load(s, kv, &places[i], &view));
        entries[i] = hf__kv_entry(places[i].key, &view);
    }
    many->entries = entries;
    many->entries_len = got.items_len;
    many->left = got.left;
    many->left_len = got.left_len;
    return status;
}

static enum hf_status write_request(struct hf_scope *s, struct hf_kv *kv,
                                    const struct hf_kv_pair *pair, struct hf_write *write)
{
    struct pattern_id version = hf__pattern_id_make(hf_scope_env(s));
    struct kv_content content = {.value = pair->value,
                                 .version = id_str(&version),
                                 .expires_s = hf__kv_expires_s(hf_scope_env(s), pair->ttl_s)};
    struct kv_place place;

    *write = (struct hf_write){.table = kv->table};
    TRY(hf__kv_place(s, kv, pair->key, &place));
    if (!pair->value.ptr) {
        write->del = hf__kv_item_key(s, kv, place.hash, place.sort);
        return HF_OK;
    }
    TRY(hf__kv_offload(s, kv, &place, &content));
    write->put = hf__kv_item(s, kv, &place, &content);
    return hf__kv_item_fits(s, place.key, write->put);
}

enum hf_status hf_kv_set_many(struct hf_scope *s, struct hf_kv *kv, const struct hf_kv_pair *pairs,
                              size_t len, const struct hf_many_options *options,
                              struct hf_write_many_result *result)
{
    struct hf_write *writes = hf_scope_alloc(s, (len + 1) * sizeof(*writes));
    struct hf_write_many_result ignored;

    result = result ? result : &ignored;
    *result = (struct hf_write_many_result){0};
    if (!writes)
        return hf_scope_built(s);
    for (size_t i = 0; i < len; i++) {
        enum hf_status status = write_request(s, kv, &pairs[i], &writes[i]);

        if (status != HF_OK) {
            all_left(s, len, &result->left, &result->left_len);
            return status;
        }
    }
    return hf_write_many(s, kv->db, writes, len, options, result);
}
