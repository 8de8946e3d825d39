/*
 * db/table_diff.c: compare a table with what it should be.
 *
 * Everything that is compared is first turned into the words that a message would have ("pk S",
 * "INCLUDE a, b"): equal words are no difference.
 */
#include "db/table_diff.h"

#include <stdlib.h>

static const char *const scalar_names[] = {"?", "S", "N", "B"};
static const char *const projection_names[] = {"unknown", "ALL", "KEYS_ONLY", "INCLUDE"};
static const char *const view_names[] = {"off", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES",
                                         "KEYS_ONLY"};

/* Enums come from outside and may have members that we do not know. */
#define NAME_OF(names, number)                                                                     \
    ((unsigned)(number) < ARRAY_LEN(names) ? (names)[(unsigned)(number)] : "unknown")

struct attributes {
    const struct hf_attribute_definition *list;
    size_t len;
};

struct keys {
    const struct hf_key_element *list;
    size_t len;
};

/* ---- words ---------------------------------------------------------------------------------- */

static void text_separate(struct table_diff *diff)
{
    if (diff->text.len)
        hf__buf_put_str(&diff->text, HF_STR("; "));
}

void hf__diff_add(struct table_diff *diff, const char *format, ...)
{
    va_list args;

    text_separate(diff);
    va_start(args, format);
    hf__buf_vformat(&diff->text, format, args);
    va_end(args);
}

/* "pk S", or "a S, b N" where several make up the key; "none" when there is no key of that type. */
static struct hf_str key_words(struct hf_scope *s, struct keys keys, struct attributes attributes,
                               enum hf_key_type type)
{
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < keys.len; i++) {
        enum hf_scalar_type scalar = 0;

        if (keys.list[i].type != type)
            continue;
        for (size_t j = 0; j < attributes.len; j++)
            if (hf_str_equal(attributes.list[j].name, keys.list[i].name))
                scalar = attributes.list[j].type;
        hf__buf_format(&buf, "%s%.*s %s", buf.len ? ", " : "", HF_FMT(keys.list[i].name),
                       NAME_OF(scalar_names, scalar));
    }
    if (buf.failed)
        return hf_str_of(NULL, 0);
    return buf.len ? hf_str_of((const char *)buf.ptr, buf.len) : HF_STR("none");
}

static int compare_strs(const void *a, const void *b)
{
    const struct hf_str *x = a, *y = b;

    return bytes_compare(x->ptr, x->len, y->ptr, y->len);
}

/* "INCLUDE a, b", in the order of names. */
static struct hf_str projection_words(struct hf_scope *s, const struct hf_projection *projection)
{
    struct hf__buf buf = {.scope = s};
    struct hf_str *names;

    hf__buf_format(&buf, "%s", NAME_OF(projection_names, projection->type));
    if (projection->type == HF_PROJECT_INCLUDE && projection->attributes_len) {
        names = hf__scope_array(s, projection->attributes_len, sizeof(*names));
        if (!names)
            return hf_str_of(NULL, 0);
        memcpy(names, projection->attributes, projection->attributes_len * sizeof(*names));
        qsort(names, projection->attributes_len, sizeof(*names), compare_strs);
        for (size_t i = 0; i < projection->attributes_len; i++)
            hf__buf_format(&buf, "%s%.*s", i ? ", " : " ", HF_FMT(names[i]));
    }
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len);
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* `owner` is absent for the table itself. */
static void texts_compare(struct table_diff *diff, struct hf_str owner, const char *what,
                          struct hf_str is, struct hf_str want)
{
    if (!is.ptr || !want.ptr) {
        diff->text.failed = true;
        return;
    }
    if (hf_str_equal(is, want))
        return;
    diff->fixed = true;
    if (owner.ptr)
        hf__diff_add(diff, "index %.*s: %s is %.*s, expected %.*s", HF_FMT(owner), what, HF_FMT(is),
                     HF_FMT(want));
    else
        hf__diff_add(diff, "%s is %.*s, expected %.*s", what, HF_FMT(is), HF_FMT(want));
}

static void compare_keys(struct table_diff *diff, struct hf_str owner, struct keys is,
                         struct attributes is_types, struct keys want, struct attributes want_types)
{
    struct hf_scope *s = diff->text.scope;

    texts_compare(diff, owner, "hash key", key_words(s, is, is_types, HF_KEY_HASH),
                  key_words(s, want, want_types, HF_KEY_HASH));
    texts_compare(diff, owner, "range key", key_words(s, is, is_types, HF_KEY_RANGE),
                  key_words(s, want, want_types, HF_KEY_RANGE));
}

static const struct hf_index_description *index_find(const struct hf_index_description *list,
                                                     size_t len, struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(list[i].name, name))
            return &list[i];
    return NULL;
}

/* A projection that the description lacks is not compared. */
static void compare_index(struct table_diff *diff, const struct hf_create_table *spec,
                          const struct hf_table_description *table, const struct hf_index *want,
                          const struct hf_index_description *is, bool all_projected)
{
    struct hf_scope *s = diff->text.scope;

    compare_keys(diff, want->name, (struct keys){is->key_schema, is->key_schema_len},
                 (struct attributes){table->attributes, table->attributes_len},
                 (struct keys){want->key_schema, want->key_schema_len},
                 (struct attributes){spec->attributes, spec->attributes_len});
    if (!is->projection || !want->projection ||
        (all_projected && is->projection->type == HF_PROJECT_ALL))
        return;
    texts_compare(diff, want->name, "projection", projection_words(s, is->projection),
                  projection_words(s, want->projection));
}

static void compare_indexes(struct table_diff *diff, const struct hf_create_table *spec,
                            const struct hf_table_description *is, bool local, bool all_projected)
{
    const struct hf_index *list = local ? spec->local_indexes : spec->global_indexes;
    size_t len = local ? spec->local_indexes_len : spec->global_indexes_len;

    for (size_t i = 0; i < len; i++) {
        const struct hf_index_description *global =
            index_find(is->global_indexes, is->global_indexes_len, list[i].name);
        const struct hf_index_description *here =
            index_find(is->local_indexes, is->local_indexes_len, list[i].name);
        const struct hf_index_description *right = local ? here : global;

        if (right) {
            compare_index(diff, spec, is, &list[i], right, all_projected);
        } else if (global || here) {
            diff->fixed = true;
            hf__diff_add(diff, "index %.*s is %s, expected %s", HF_FMT(list[i].name),
                         global ? "global" : "local", local ? "local" : "global");
        } else {
            if (local)
                diff->fixed = true;
            else if (!diff->lost)
                diff->lost = &list[i];
            hf__diff_add(diff, "index %.*s is missing", HF_FMT(list[i].name));
        }
    }
}

void hf__diff_table(struct table_diff *diff, const struct hf_create_table *want,
                    const struct hf_table_description *is, bool all_projected)
{
    bool has = is->stream && is->stream->enabled == HF_YES;

    compare_keys(diff, hf_str_of(NULL, 0), (struct keys){is->key_schema, is->key_schema_len},
                 (struct attributes){is->attributes, is->attributes_len},
                 (struct keys){want->key_schema, want->key_schema_len},
                 (struct attributes){want->attributes, want->attributes_len});
    compare_indexes(diff, want, is, true, all_projected);
    compare_indexes(diff, want, is, false, all_projected);
    if (!want->stream || want->stream->enabled != HF_YES)
        return;
    if (!has) {
        diff->stream_off = true;
        hf__diff_add(diff, "stream is off, expected %s", NAME_OF(view_names, want->stream->view));
    } else if (is->stream->view != want->stream->view) {
        diff->fixed = true;
        hf__diff_add(diff, "stream view is %s, expected %s", NAME_OF(view_names, is->stream->view),
                     NAME_OF(view_names, want->stream->view));
    }
}
