/*
 * kv/kv_table.c: the table of keys and values: made, marked, given an index of namespaces.
 *
 * A table without partitions has its keys spread by their hash, so that a list of one namespace has
 * to read all of it. With the index of namespaces (kv_item.c (5)) the list reads the namespace
 * alone. The format in the table's mark says what is known of the index:
 *
 *     KIND_VALUES_PLAIN    nothing: values have no `space`, and lists read the table
 *     KIND_VALUES_FILLING  whoever opens it writes `space` with each value; lists read the table
 *     KIND_VALUES_SPACED   all values have it; lists of a namespace read the index
 *
 *  (1) A table that is made with the index has the last format from the beginning: there is no
 *      value that could be missing in the index.
 *  (2) Another gets there by hf_kv_add_space_index(), one step after the other: the index is made,
 *      the mark says FILLING, each value without a `space` gets it, the mark says SPACED. After a
 *      failure all of that is begun again, and finds what was done.
 *  (3) `space` follows from the key. So it is set whatever the value is by now, as long as there is
 *      one, and the version stays: nobody who changes the value notices.
 *  (4) Formats are read when a table is opened. A process that opened it before (2) began writes
 *      values without `space` until it opens it again; to do (2) once more finds those.
 *  (5) Older versions of this library know the first format only, and refuse the others by number.
 */
#include "kv/kv.h"

#include <holdfast/pages.h>
#include <holdfast/table.h>

enum { INDEX_WAIT_MS = 24 * 3600 * 1000 }; /* for an index that is made: it reads the whole table */

/* The two forms of a table. It points into itself. */
struct forms {
    struct hf_attribute_definition attributes[2];
    struct hf_key_element keys[2], index_keys[2];
    struct hf_projection projection;
    struct hf_index index;
    struct hf_create_table plain, spaced;
};

static void forms_of(const struct hf_kv *kv, struct forms *f)
{
    size_t len = kv->sort.ptr ? 2 : 1;

    *f = (struct forms){
        .attributes = {{kv->hash, HF_SCALAR_S},
                       {kv->sort.ptr ? kv->sort : HF_STR(KV_SPACE), HF_SCALAR_S}},
        .keys = {{kv->hash, HF_KEY_HASH}, {kv->sort, HF_KEY_RANGE}},
        .index_keys = {{HF_STR(KV_SPACE), HF_KEY_HASH}, {kv->hash, HF_KEY_RANGE}},
        .projection = {.type = HF_PROJECT_KEYS_ONLY},
        .index = {.name = HF_STR(KV_SPACES),
                  .key_schema = f->index_keys,
                  .key_schema_len = ARRAY_LEN(f->index_keys),
                  .projection = &f->projection},
        .plain = {.table = kv->table,
                  .attributes = f->attributes,
                  .attributes_len = len,
                  .key_schema = f->keys,
                  .key_schema_len = len},
    };
    f->spaced = f->plain;
    f->spaced.attributes_len = ARRAY_LEN(f->attributes);
    f->spaced.global_indexes = &f->index;
    f->spaced.global_indexes_len = 1;
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status check_names(struct hf_scope *s, const struct hf_kv *kv, bool spaced)
{
    struct hf_str names[7] = {kv->hash, kv->data, kv->version, kv->expires};
    size_t len = 4;

    if (kv->sort.ptr)
        names[len++] = kv->sort;
    if (kv->blobs)
        names[len++] = HF_STR(KV_BLOB);
    if (spaced)
        names[len++] = HF_STR(KV_SPACE);
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < i; j++)
            if (hf_str_equal(names[i], names[j]))
                return hf_scope_fail(s, HF_INVALID,
                                     "table %.*s: two attributes have the name \"%.*s\"",
                                     HF_FMT(kv->table), HF_FMT(names[i]));
    return HF_OK;
}

static enum hf_status no_partitions(struct hf_scope *s, const struct hf_kv *kv)
{
    return hf_scope_fail(
        s, HF_INVALID,
        "table %.*s has partitions, in which a list reads one namespace without an "
        "index: open it without space_index",
        HF_FMT(kv->table));
}

static enum hf_status check_options(struct hf_scope *s, const struct hf_kv *kv,
                                    const struct hf_kv_options *o)
{
    if (o->space_index && o->partitioned)
        return no_partitions(s, kv);
    if (o->space_index && o->adopt)
        return hf_scope_fail(s, HF_INVALID,
                             "table %.*s: what other programs stored is not in the index of "
                             "namespaces: adopt and space_index exclude each other",
                             HF_FMT(kv->table));
    return check_names(s, kv, o->space_index);
}

static enum hf_status no_index(struct hf_scope *s, const struct hf_kv *kv)
{
    return hf_scope_fail(s, HF_INVALID,
                         "table %.*s has no index of namespaces with all of its values: open it "
                         "without space_index, or add the index with 'holdfast kv index' or "
                         "hf_kv_add_space_index()",
                         HF_FMT(kv->table));
}

/*
 * Which format a table has, and the mark of it. A new one has the index if it was made with it: by
 * us, or just now by another, whose mark is not there yet.
 */
static enum hf_status open_kind(struct hf_scope *s, const struct hf_kv *kv,
                                const struct hf_kv_options *o, const struct forms *f,
                                int64_t *format)
{
    const struct kind_table of = {.db = kv->db,
                                  .spec = &f->plain,
                                  .kind = KIND_VALUES,
                                  .adopt = o->adopt};
    enum hf_status status;

    *format = KIND_VALUES_PLAIN;
    if (o->space_index) {
        *format = KIND_VALUES_SPACED;
    } else if (!kv->sort.ptr && !o->adopt) {
        *format = 0;
        TRY(hf__kind_open_as(s, &of, format));
        if (*format)
            return HF_OK;
        status =
            hf_table_ensure(s, kv->db, &f->spaced, HF_OPTIONS(hf_table_options, .no_create = true));
        if (status != HF_OK && status != HF_INVALID)
            return status;
        *format = status == HF_OK ? KIND_VALUES_SPACED : KIND_VALUES_PLAIN;
    }
    return hf__kind_open_as(s, &of, format);
}

/* It differs from a table with the index, as the error says: only because there is none? */
static enum hf_status lacks_index(struct hf_scope *s, const struct hf_kv *kv,
                                  const struct hf_kv_options *o, const struct forms *f)
{
    bool marked;

    TRY(hf__pattern_table(s, kv->db, &f->plain, hf_str_of(NULL, 0), true));
    TRY(hf__kind_look(s,
                      &(struct kind_table){
                          .db = kv->db, .spec = &f->plain, .kind = KIND_VALUES, .adopt = o->adopt},
                      &marked));
    return no_index(s, kv);
}

/* Is the table there, with the index if there is to be one? */
static enum hf_status open_begin(struct hf_scope *s, const struct hf_kv *kv,
                                 const struct hf_kv_options *o, const struct forms *f,
                                 struct hf_str ttl, struct pattern_open *how)
{
    enum hf_status status =
        hf__pattern_table_begin(s, kv->db, o->space_index ? &f->spaced : &f->plain, ttl, how);

    if (status == HF_OK && o->space_index && !how->ready)
        status = hf__pattern_table(s, kv->db, &f->spaced, hf_str_of(NULL, 0), true);
    if (status == HF_INVALID && o->space_index)
        status = lacks_index(s, kv, o, f);
    return hf__kind_keys(s, kv->db, kv->table, KIND_VALUES, status);
}

enum hf_status hf__kv_table_open(struct hf_scope *s, struct hf_kv *kv,
                                 const struct hf_kv_options *o)
{
    struct pattern_open how = {KIND_VALUES, .no_create = o->no_create, .adopt = o->adopt};
    struct hf_str ttl = o->any_ttl ? hf_str_of(NULL, 0) : kv->expires;
    struct forms f;
    int64_t format;

    TRY(check_options(s, kv, o));
    forms_of(kv, &f);
    TRY(open_begin(s, kv, o, &f, ttl, &how));
    TRY(open_kind(s, kv, o, &f, &format));
    if (o->space_index && format < KIND_VALUES_SPACED)
        return no_index(s, kv);
    kv->spaced = !kv->sort.ptr && format >= KIND_VALUES_FILLING;
    kv->indexed = !kv->sort.ptr && format >= KIND_VALUES_SPACED;
    assert((!kv->indexed || kv->spaced) && format >= KIND_VALUES_PLAIN);
    TRY(check_names(s, kv, kv->spaced));
    return hf__pattern_table_end(s, kv->db, &f.plain, ttl, &how);
}

/* ---- adding the index ----------------------------------------------------------------------- */

static struct hf_attr name_attr(const char *placeholder, struct hf_str name)
{
    return (struct hf_attr){.name = hf_str_from(placeholder), .type = HF_TYPE_S, .text = name};
}

/* Give a value its `space`, if there still is one without. (3) */
static enum hf_status give_space(struct hf_scope *s, const struct hf_kv *kv, struct hf_str joined,
                                 uint64_t *added)
{
    const struct hf_attr names[] = {name_attr("#data", kv->data),
                                    name_attr("#space", HF_STR(KV_SPACE))};
    struct hf_update_item update = {.table = kv->table,
                                    .key = hf__kv_item_key(s, kv, joined, hf_str_of(NULL, 0)),
                                    .update = HF_STR("SET #space = :space"),
                                    .condition = HF_STR(
                                        "attribute_exists(#data) AND attribute_not_exists(#space)"),
                                    .names = hf_item_make(s, names, ARRAY_LEN(names)),
                                    .values = HF_ITEM(s, HF_S(":space", hf__kv_head(joined)))};
    enum hf_status status;
    struct hf_item item;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, kv->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    *added += status == HF_OK;
    return status == HF_CONDITION ? HF_OK : status;
}

static enum hf_status too_long(struct hf_scope *s, const struct hf_kv *kv, struct hf_str joined)
{
    return hf_scope_fail(s, HF_INVALID,
                         "key \"%.*s\" of table %.*s has %zu bytes with its namespace, and an "
                         "index of namespaces takes at most %d: delete it, or do without the index",
                         HF_FMT(hf__pattern_text(s, joined, 80)), HF_FMT(kv->table), joined.len,
                         HF_KV_SORT_MAX);
}

/* All values without a `space`: whether they can have one, and `fill`: give it to them. */
static enum hf_status each_value(struct hf_scope *s, const struct hf_kv *kv, bool fill,
                                 uint64_t *added)
{
    const struct hf_attr names[] = {name_attr("#data", kv->data),
                                    name_attr("#space", HF_STR(KV_SPACE)),
                                    name_attr("#key", kv->hash)};
    struct hf_scan scan = {.table = kv->table,
                           .filter = HF_STR("attribute_exists(#data) AND "
                                            "attribute_not_exists(#space)"),
                           .projection = HF_STR("#key"),
                           .names = hf_item_make(s, names, ARRAY_LEN(names)),
                           .consistent = HF_YES};
    enum hf_status status;
    struct hf_pages *pages;
    struct hf_item item;

    TRY(hf_scope_built(s));
    TRY(hf_pages_scan(s, kv->db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_str joined = hf_value_str(hf_item_get(item, kv->hash));
        struct hf_kv_key key;

        status = hf__kv_key_of(s, kv, item, &key);
        if (status == HF_OK && joined.len > HF_KV_SORT_MAX)
            status = too_long(s, kv, joined);
        else if (status == HF_OK && fill)
            status = give_space(s, kv, joined, added);
        if (status == HF_CORRUPT) /* it is no key of ours */
            status = HF_OK;
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

/* (2) */
static enum hf_status add_index(struct hf_scope *s, const struct hf_kv *kv, uint64_t *added)
{
    struct hf_table_wait_options wait = {.size = sizeof(wait), .timeout_ms = INDEX_WAIT_MS};
    struct forms f;

    if (kv->sort.ptr)
        return no_partitions(s, kv);
    TRY(check_names(s, kv, true));
    forms_of(kv, &f);
    if (!kv->spaced)
        TRY(each_value(s, kv, false, NULL));
    TRY(hf_table_ensure(s, kv->db, &f.spaced,
                        HF_OPTIONS(hf_table_options, .add_indexes = true, .wait = &wait)));
    TRY(hf__kind_raise(s, &(struct kind_table){.db = kv->db, .spec = &f.plain, .kind = KIND_VALUES},
                       KIND_VALUES_FILLING));
    TRY(each_value(s, kv, true, added));
    return hf__kind_raise(s,
                          &(struct kind_table){.db = kv->db, .spec = &f.plain, .kind = KIND_VALUES},
                          KIND_VALUES_SPACED);
}

enum hf_status hf_kv_add_space_index(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_kv_options *options, uint64_t *added)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_kv_options o;
    enum hf_status status;
    struct hf_kv *kv;
    uint64_t ignored;
    bool create;

    added = added ? added : &ignored;
    *added = 0;
    OPTIONS_COPY(&o, options);
    create = !o.no_create && !o.partitioned && !o.adopt;
    o.size = sizeof(o);
    o.space_index = false;
    o.no_create = true;
    status = hf_kv_open(s, db, &o, &kv);
    if (status == HF_NOT_FOUND && create) {
        o.space_index = true; /* (1) */
        o.no_create = false;
        status = hf_kv_open(s, db, &o, &kv);
    }
    if (status == HF_OK)
        status = add_index(s, kv, added);
    hf_kv_close(kv);
    return kv_done(s, mark, call_ends(s, status));
}
