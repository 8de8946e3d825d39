/*
 * cli/table/table_words.c: a table as words of the command line. See table_words.h.
 *
 * What always holds: an attribute that several keys name has one type. Everything else is for the
 * database to judge.
 */
#include "cli/table/table_words.h"

#include <assert.h>
#include <string.h>

enum { KEY_PARTS_MAX = 2 };

struct words_reader {
    struct hf_scope *s;
    struct hf_attribute_definition *attributes; /* room for all that keys can name */
    size_t attributes_len;
    size_t attributes_max;
    struct hf_str word; /* that is read, for errors */
    struct hf_str *error;
};

_Static_assert(HF_SCALAR_N == HF_SCALAR_S + 1 && HF_SCALAR_B == HF_SCALAR_N + 1,
               "in the order of SNB");

static bool word_fails(struct words_reader *r, const char *what)
{
    assert(what && r->error);
    *r->error = hf_scope_format(r->s, "%.*s: %s", HF_FMT(r->word), what);
    return false;
}

/* What stands before the first `end`, which is taken off with it; all of it if there is none. */
static struct hf_str part_take(struct hf_str *text, char end)
{
    const char *found = text->len ? memchr(text->ptr, end, text->len) : NULL;
    size_t len = found ? (size_t)(found - text->ptr) : text->len;
    struct hf_str part = hf_str_of(text->ptr, len);

    *text = found ? hf_str_of(found + 1, text->len - len - 1) : (struct hf_str){0};
    return part;
}

static bool attribute_define(struct words_reader *r, struct hf_str name, enum hf_scalar_type type)
{
    assert(name.len > 0 && type >= HF_SCALAR_S && type <= HF_SCALAR_B);
    for (size_t i = 0; i < r->attributes_len; i++)
        if (hf_str_equal(r->attributes[i].name, name)) {
            if (r->attributes[i].type == type)
                return true;
            *r->error = hf_scope_format(r->s, "attribute %.*s has two types", HF_FMT(name));
            return false;
        }
    assert(r->attributes_len < r->attributes_max);
    r->attributes[r->attributes_len++] =
        (struct hf_attribute_definition){.name = name, .type = type};
    return true;
}

/* "day:N" */
static bool attribute_read(struct words_reader *r, struct hf_str part, struct hf_str *name)
{
    static const char types[] = "SNB";
    const char *found;
    struct hf_str type;

    *name = part_take(&part, ':');
    type = part.ptr ? part : HF_STR("S");
    found = type.len == 1 ? memchr(types, type.ptr[0], sizeof(types) - 1) : NULL;
    if (!name->len)
        return word_fails(r, "the name of an attribute is missing");
    if (!found)
        return word_fails(r, "a type is S, N or B: customer:S,day:N");
    return attribute_define(r, *name, (enum hf_scalar_type)(HF_SCALAR_S + (found - types)));
}

/* "customer:S,day:N", the first of them being of the kind `first`. */
static bool keys_read(struct words_reader *r, struct hf_str text, enum hf_key_type first,
                      struct hf_key_element *elements, size_t *len)
{
    assert(first == HF_KEY_HASH || first == HF_KEY_RANGE);
    *len = 0;
    do {
        struct hf_str name;

        if (*len == KEY_PARTS_MAX || (*len == 1 && first == HF_KEY_RANGE))
            return word_fails(r, first == HF_KEY_RANGE
                                     ? "a local index has one key of its own, its range key"
                                     : "a key has one attribute or two");
        if (!attribute_read(r, part_take(&text, ','), &name))
            return false;
        assert(*len < KEY_PARTS_MAX);
        elements[*len] = (struct hf_key_element){name, *len ? HF_KEY_RANGE : first};
        (*len)++;
    } while (text.ptr);
    return true;
}

/* "all", "keys" or "status,note" */
static bool projection_read(struct words_reader *r, struct hf_str text,
                            const struct hf_projection **made)
{
    struct hf_projection *projection = hf_scope_alloc(r->s, sizeof(*projection));
    struct hf_str *names = hf_scope_alloc(r->s, (text.len + 1) * sizeof(*names));

    *made = projection;
    if (!projection || !names)
        return word_fails(r, "out of memory");
    *projection = (struct hf_projection){.type = HF_PROJECT_ALL};
    if (!text.ptr || hf_str_equal(text, HF_STR("all")))
        return true;
    projection->type = HF_PROJECT_KEYS_ONLY;
    if (hf_str_equal(text, HF_STR("keys")))
        return true;
    projection->type = HF_PROJECT_INCLUDE;
    projection->attributes = names;
    while (text.ptr)
        names[projection->attributes_len++] = part_take(&text, ',');
    assert(projection->attributes_len > 0);
    return true;
}

/* "by_status=status:S,day:N/keys"; a local index has the hash key of the table before its own. */
static bool index_read(struct words_reader *r, const struct hf_key_element *hash,
                       struct hf_index *index)
{
    struct hf_key_element *keys = hf_scope_alloc(r->s, (KEY_PARTS_MAX + 1) * sizeof(*keys));
    struct hf_str text = r->word, definition;
    size_t own = hash ? 1 : 0;

    if (!keys)
        return word_fails(r, "out of memory");
    *index = (struct hf_index){.name = part_take(&text, '='), .key_schema = keys};
    if (!index->name.len || !text.ptr)
        return word_fails(r, "an index is NAME=KEY: by_day=day:N");
    definition = part_take(&text, '/');
    if (hash)
        keys[0] = *hash;
    if (!keys_read(r, definition, hash ? HF_KEY_RANGE : HF_KEY_HASH, keys + own,
                   &index->key_schema_len))
        return false;
    index->key_schema_len += own;
    assert(index->key_schema_len > own && index->key_schema_len <= KEY_PARTS_MAX + 1);
    return projection_read(r, text, &index->projection);
}

static bool indexes_read(struct words_reader *r, const struct option_list *words,
                         const struct hf_key_element *hash, const struct hf_index **made,
                         size_t *made_len)
{
    struct hf_index *indexes = hf_scope_alloc(r->s, (words->len + 1) * sizeof(*indexes));

    *made = words->len ? indexes : NULL;
    *made_len = words->len;
    if (!indexes)
        return word_fails(r, "out of memory");
    for (size_t i = 0; i < words->len; i++) {
        r->word = words->values[i];
        if (!index_read(r, hash, &indexes[i]))
            return false;
    }
    return true;
}

bool hf__cli_table_words_read(struct hf_scope *s, const struct table_words *words,
                              struct hf_create_table *spec, struct hf_str *error)
{
    size_t keys = 1 + words->indexes.len + words->local_indexes.len;
    struct words_reader r = {.s = s, .word = words->key, .error = error};
    struct hf_key_element *elements = hf_scope_alloc(s, KEY_PARTS_MAX * sizeof(*elements));

    r.attributes_max = keys * KEY_PARTS_MAX;
    r.attributes = hf_scope_alloc(s, r.attributes_max * sizeof(*r.attributes));
    if (!elements || !r.attributes)
        return word_fails(&r, "out of memory");
    if (!keys_read(&r, words->key, HF_KEY_HASH, elements, &spec->key_schema_len) ||
        !indexes_read(&r, &words->indexes, NULL, &spec->global_indexes,
                      &spec->global_indexes_len) ||
        !indexes_read(&r, &words->local_indexes, &elements[0], &spec->local_indexes,
                      &spec->local_indexes_len))
        return false;
    spec->key_schema = elements;
    spec->attributes = r.attributes;
    spec->attributes_len = r.attributes_len;
    return true;
}
