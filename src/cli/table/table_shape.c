/*
 * cli/table/table_shape.c: JSON objects as structs. See table_shape.h.
 */
#include "cli/table/table_shape.h"

#include <holdfast/db.h>

#include <assert.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 15 };
_Static_assert(SHAPE_REFUSED > SHAPE_IGNORED && SHAPE_IGNORED > SHAPE_SKIPPED &&
                   SHAPE_SKIPPED > SHAPE_TAGS,
               "what is not used is behind what is");

_Static_assert(sizeof(enum hf_flag) == sizeof(unsigned) &&
                   sizeof(enum hf_scalar_type) == sizeof(unsigned),
               "enums are copied as what they are");

bool hf__cli_shape_fail(struct shape_reader *r, const char *path, const char *what,
                        const char *more)
{
    assert(path && what && more);
    r->error = hf_scope_format(r->s, "%s%s%s", path, what, more);
    if (!r->error.ptr)
        r->error = HF_STR("out of memory");
    return false;
}

const char *hf__cli_shape_path(struct shape_reader *r, const char *path, struct hf_str name)
{
    struct hf_str shown =
        name.len ? name : HF_STR("\"\""); /* a path is never empty, or nobody would find it */
    struct hf_str inner = hf_scope_format(r->s, "%s%s%.*s", path, *path ? "." : "", HF_FMT(shown));

    if (!inner.ptr)
        hf__cli_shape_fail(r, "", "out of memory", "");
    assert(!inner.ptr || inner.len > 0);
    return inner.ptr ? inner.ptr : "";
}

/* ---- values --------------------------------------------------------------------------------- */

static bool read_number(struct shape_reader *r, const char *path, const struct json_node *json,
                        int64_t *to)
{
    bool number = json->kind == JSON_NUMBER || (r->lenient && json->kind == JSON_STRING);
    bool negative = number && json->text.len > 1 && json->text.ptr[0] == '-';
    int64_t sum = 0;

    if (!number || json->text.len == 0 || json->text.len > NUMBER_DIGITS_MAX)
        return hf__cli_shape_fail(r, path, ": expected a whole number", "");
    for (size_t i = negative ? 1 : 0; i < json->text.len; i++) {
        if (json->text.ptr[i] < '0' || json->text.ptr[i] > '9')
            return hf__cli_shape_fail(r, path, ": expected a whole number", "");
        sum = sum * 10 + (json->text.ptr[i] - '0');
    }
    *to = negative ? -sum : sum;
    if (*to == 0)
        *to = HF_ZERO;
    return true;
}

static bool read_flag(struct shape_reader *r, const char *path, const struct json_node *json,
                      enum hf_flag *to)
{
    bool text = r->lenient && json->kind == JSON_STRING;

    if (json->kind == JSON_TRUE || (text && hf_str_equal(json->text, HF_STR("true"))))
        *to = HF_YES;
    else if (json->kind == JSON_FALSE || (text && hf_str_equal(json->text, HF_STR("false"))))
        *to = HF_NO;
    else
        return hf__cli_shape_fail(r, path, ": expected true or false", "");
    return true;
}

static bool read_word(struct shape_reader *r, const char *path, const char *words,
                      const struct json_node *json, unsigned *to)
{
    unsigned number = 1;

    assert(words && words[0]);
    if (r->lenient && json->kind == JSON_STRING && json->text.len == 0) {
        *to = 0; /* as states of Terraform have it for none */
        return true;
    }
    for (const char *word = words; json->kind == JSON_STRING && *word; number++) {
        size_t len = strcspn(word, " ");

        if (hf_str_equal(hf_str_of(word, len), json->text)) {
            *to = number;
            return true;
        }
        word += len;
        word += *word == ' ';
    }
    return hf__cli_shape_fail(r, path, ": expected one of: ", words);
}

/* What a value stands for; NULL: r->error is set. */
static const struct json_node *value_resolve(struct shape_reader *r, const char *path,
                                             const struct json_node *json)
{
    return r->resolve ? r->resolve(r, path, json) : json;
}

static bool read_texts(struct shape_reader *r, const char *path, const struct json_node *json,
                       const struct shape_member *member, char *to)
{
    struct hf_str *texts = hf_scope_alloc(r->s, (json->len + 1) * sizeof(*texts));
    const struct hf_str *list = texts;
    size_t len = 0;

    assert(member->kind == SHAPE_TEXTS && member->len_offset > 0);
    if (!texts)
        return hf__cli_shape_fail(r, "", "out of memory", "");
    if (json->kind != JSON_ARRAY)
        return hf__cli_shape_fail(r, path, ": expected a list", "");
    for (const struct json_node *at = json->first; at; at = at->next) {
        const struct json_node *element = value_resolve(r, path, at);

        if (!element)
            return false;
        if (element->kind == JSON_NULL && r->resolve)
            continue;
        if (element->kind != JSON_STRING)
            return hf__cli_shape_fail(r, path, ": expected strings", "");
        texts[len++] = element->text;
    }
    if (r->lenient && !len)
        return true; /* as states of Terraform have it for none */
    memcpy(to + member->offset, &list, sizeof(list));
    memcpy(to + member->len_offset, &len, sizeof(len));
    return true;
}

static bool read_tags(struct shape_reader *r, const char *path, const struct json_node *json,
                      const struct shape_member *member, char *to)
{
    struct hf_tag *tags = hf_scope_alloc(r->s, (json->len + 1) * sizeof(*tags));
    const struct hf_tag *list = tags;
    size_t len = 0;

    assert(member->kind == SHAPE_TAGS && member->len_offset > 0);
    if (!tags)
        return hf__cli_shape_fail(r, "", "out of memory", "");
    if (json->kind != JSON_OBJECT)
        return hf__cli_shape_fail(r, path, ": expected an object", "");
    for (const struct json_node *at = json->first; at; at = at->next) {
        const struct json_node *value = value_resolve(r, path, at);

        if (!value)
            return false;
        if (value->kind == JSON_NULL)
            continue;
        if (value->kind != JSON_STRING)
            return hf__cli_shape_fail(r, path, ": expected strings", "");
        tags[len++] = (struct hf_tag){.key = at->name, .value = value->text};
    }
    memcpy(to + member->offset, &list, sizeof(list));
    memcpy(to + member->len_offset, &len, sizeof(len));
    return true;
}

/* ---- structs -------------------------------------------------------------------------------- */

/* One struct. In templates a block may be written as a list of one. */
static bool read_struct(struct shape_reader *r, const char *path, const struct json_node *json,
                        const struct shape_member *member, char *to)
{
    char *made = hf_scope_alloc(r->s, member->shape->size);
    const char *ptr = made;

    assert(member->kind == SHAPE_OBJECT && member->shape);
    if (!made)
        return hf__cli_shape_fail(r, "", "out of memory", "");
    if (r->lenient && json->kind == JSON_ARRAY) {
        if (json->len == 0)
            return true;
        if (json->len > 1)
            return hf__cli_shape_fail(r, path, ": expected one block", "");
        json = json->first;
    }
    memset(made, 0, member->shape->size);
    memcpy(to + member->offset, &ptr, sizeof(ptr));
    return hf__cli_shape_read(r, path, member->shape, json, made);
}

static bool read_structs(struct shape_reader *r, const char *path, const struct json_node *json,
                         const struct shape_member *member, char *to)
{
    bool single = r->lenient && json->kind == JSON_OBJECT;
    size_t size = member->shape->size, len = 0;
    char *structs = hf_scope_alloc(r->s, (json->len + 1) * size);
    const char *list = structs;

    assert(member->kind == SHAPE_LIST && member->shape && size > 0);
    if (!structs)
        return hf__cli_shape_fail(r, "", "out of memory", "");
    if (json->kind != JSON_ARRAY && !single)
        return hf__cli_shape_fail(r, path, ": expected a list", "");
    for (const struct json_node *at = single ? json : json->first; at;
         at = single ? NULL : at->next) {
        struct hf_str inner = hf_scope_format(r->s, "%s[%zu]", path, len);
        const struct json_node *element = value_resolve(r, inner.ptr ? inner.ptr : path, at);

        if (!element)
            return false;
        if (element->kind == JSON_NULL && r->resolve)
            continue;
        memset(structs + len * size, 0, size);
        if (!hf__cli_shape_read(r, inner.ptr ? inner.ptr : path, member->shape, element,
                                structs + len * size))
            return false;
        len++;
    }
    if (r->lenient && !len)
        return true;
    memcpy(to + member->offset, &list, sizeof(list));
    memcpy(to + member->len_offset, &len, sizeof(len));
    return true;
}

static bool read_member(struct shape_reader *r, const char *path, const struct json_node *json,
                        const struct shape_member *member, char *to)
{
    enum hf_flag flag = HF_UNSET;
    unsigned word = 0;
    int64_t number = 0;

    switch (member->kind) {
    case SHAPE_TEXT:
        if (json->kind != JSON_STRING)
            return hf__cli_shape_fail(r, path, ": expected a string", "");
        memcpy(to + member->offset, &json->text, sizeof(json->text));
        return true;
    case SHAPE_NUMBER:
        if (!read_number(r, path, json, &number))
            return false;
        memcpy(to + member->offset, &number, sizeof(number));
        return true;
    case SHAPE_FLAG:
        if (!read_flag(r, path, json, &flag))
            return false;
        memcpy(to + member->offset, &flag, sizeof(flag));
        return true;
    case SHAPE_WORD:
        if (!read_word(r, path, member->words, json, &word))
            return false;
        memcpy(to + member->offset, &word, sizeof(word));
        return true;
    case SHAPE_TEXTS:
        return read_texts(r, path, json, member, to);
    case SHAPE_TAGS:
        return read_tags(r, path, json, member, to);
    case SHAPE_OBJECT:
        return read_struct(r, path, json, member, to);
    case SHAPE_LIST:
        return read_structs(r, path, json, member, to);
    case SHAPE_SKIPPED:
    case SHAPE_IGNORED:
    case SHAPE_REFUSED:
        break;
    }
    assert(false && "members that are not used have no value");
    return false;
}

/* Does it ask for nothing: null, false, "", [], {}, or only such? */
static bool is_empty(const struct json_node *json)
{
    switch (json->kind) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_STRING:
        return json->text.len == 0 || hf_str_equal(json->text, HF_STR("false"));
    case JSON_ARRAY:
    case JSON_OBJECT:
        for (const struct json_node *at = json->first; at; at = at->next)
            if (!is_empty(at))
                return false;
        return true;
    default:
        return false;
    }
}

/* A member that is not used. */
static bool member_leave(struct shape_reader *r, const char *path, const struct json_node *json,
                         const struct shape_member *member)
{
    assert(member->kind >= SHAPE_SKIPPED);
    if (member->kind == SHAPE_SKIPPED || is_empty(json))
        return true;
    if (member->kind == SHAPE_REFUSED)
        return hf__cli_shape_fail(r, path, ": not supported", "");
    r->ignored =
        hf_scope_format(r->s, "%.*s%s%s", HF_FMT(r->ignored), r->ignored.len ? ", " : "", path);
    return r->ignored.ptr || hf__cli_shape_fail(r, "", "out of memory", "");
}

static const struct shape_member *find_member(const struct table_shape *shape, struct hf_str name)
{
    assert(shape->len > 0);
    for (size_t i = 0; i < shape->len; i++)
        if (hf_str_equal(hf_str_from(shape->members[i].name), name))
            return &shape->members[i];
    return NULL;
}

bool hf__cli_shape_read(struct shape_reader *r, const char *path, const struct table_shape *shape,
                        const struct json_node *json, void *to)
{
    assert(r->what && to);
    if (json->kind != JSON_OBJECT)
        return hf__cli_shape_fail(r, *path ? path : "the table", ": expected an object", "");
    for (const struct json_node *part = json->first; part; part = part->next) {
        const struct shape_member *member = find_member(shape, part->name);
        const char *inner = hf__cli_shape_path(r, path, part->name);
        const struct json_node *value;

        if (!*inner)
            return false;
        if (!member)
            return hf__cli_shape_fail(r, inner, ": unknown member of ", r->what);
        if (member->kind >= SHAPE_SKIPPED) {
            if (!member_leave(r, inner, part, member))
                return false;
            continue;
        }
        value = value_resolve(r, inner, part);
        if (!value || (value->kind != JSON_NULL && !read_member(r, inner, value, member, to)))
            return false;
    }
    return true;
}

/* ---- writing -------------------------------------------------------------------------------- */

static struct hf_str word_at(const char *words, unsigned number)
{
    size_t len = strcspn(words, " ");

    assert(number > 0);
    while (--number) {
        words += len + (words[len] == ' ');
        len = strcspn(words, " ");
        assert(len > 0); /* there is a word of that number */
    }
    return hf_str_of(words, len);
}

static bool member_is_there(const struct shape_member *member, const char *from)
{
    static const char zeros[sizeof(struct hf_str)];
    size_t size = sizeof(void *);

    switch (member->kind) {
    case SHAPE_TEXT:
        size = sizeof(struct hf_str);
        break;
    case SHAPE_NUMBER:
        size = sizeof(int64_t);
        break;
    case SHAPE_FLAG:
    case SHAPE_WORD:
        size = sizeof(unsigned);
        break;
    case SHAPE_TEXTS:
    case SHAPE_TAGS:
    case SHAPE_LIST:
        return memcmp(from + member->len_offset, zeros, sizeof(size_t)) != 0;
    case SHAPE_OBJECT:
        break;
    case SHAPE_SKIPPED:
    case SHAPE_IGNORED:
    case SHAPE_REFUSED:
        return false;
    }
    return memcmp(from + member->offset, zeros, size) != 0;
}

static void write_list(FILE *out, const struct shape_member *member, const char *from)
{
    const char *list;
    size_t len;

    assert(member->kind == SHAPE_LIST || member->kind == SHAPE_TEXTS);
    memcpy(&list, from + member->offset, sizeof(list));
    memcpy(&len, from + member->len_offset, sizeof(len));
    fputc('[', out);
    for (size_t i = 0; i < len; i++) {
        if (i)
            fputc(',', out);
        if (member->kind == SHAPE_LIST)
            hf__cli_shape_write(out, member->shape, list + i * member->shape->size);
        else
            hf__cli_json_write_text(out, ((const struct hf_str *)(const void *)list)[i]);
    }
    fputc(']', out);
}

static void write_member(FILE *out, const struct shape_member *member, const char *from)
{
    struct hf_str text;
    unsigned word;
    int64_t number;
    const char *inner;

    switch (member->kind) {
    case SHAPE_TEXT:
        memcpy(&text, from + member->offset, sizeof(text));
        hf__cli_json_write_text(out, text);
        return;
    case SHAPE_NUMBER:
        memcpy(&number, from + member->offset, sizeof(number));
        fprintf(out, "%lld", (long long)(number == HF_ZERO ? 0 : number));
        return;
    case SHAPE_FLAG:
        memcpy(&word, from + member->offset, sizeof(word));
        fputs(word == HF_YES ? "true" : "false", out);
        return;
    case SHAPE_WORD:
        memcpy(&word, from + member->offset, sizeof(word));
        hf__cli_json_write_text(out, word_at(member->words, word));
        return;
    case SHAPE_OBJECT:
        memcpy(&inner, from + member->offset, sizeof(inner));
        hf__cli_shape_write(out, member->shape, inner);
        return;
    case SHAPE_LIST:
    case SHAPE_TEXTS:
        write_list(out, member, from);
        return;
    case SHAPE_TAGS:
    case SHAPE_SKIPPED:
    case SHAPE_IGNORED:
    case SHAPE_REFUSED:
        break;
    }
    assert(false && "only what CreateTable has is written");
}

void hf__cli_shape_write(FILE *out, const struct table_shape *shape, const void *from)
{
    bool more = false;

    assert(from);
    fputc('{', out);
    for (size_t i = 0; i < shape->len; i++) {
        const struct shape_member *member = &shape->members[i];

        if (!member_is_there(member, from))
            continue;
        fprintf(out, "%s\"%s\":", more ? "," : "", member->name);
        write_member(out, member, from);
        more = true;
    }
    fputc('}', out);
}
