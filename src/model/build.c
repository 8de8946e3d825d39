/*
 * model/build.c: making flat values: the append-only builder, and the items that programs write
 * with HF_ITEM().
 *
 * Containers are written in the order in which their parts come; hf__build_close() then brings
 * sets and maps into their canonical order (value.h (1)). Most come in order already, and then
 * closing moves nothing.
 */
#include "model/value.h"

#include "base/utf8.h"

/* ---- poison --------------------------------------------------------------------------------- */

/* What a poisoned item points to when there was no memory even for that. */
static const struct poison no_memory = {.status = HF_NOMEM, .message = {"out of memory", 13}};

struct hf_item hf__item_poison_new(struct hf_scope *s, enum hf_status status, struct hf_str message,
                                   struct hf_str key)
{
    struct poison *poison = hf_scope_alloc(s, sizeof(*poison));

    if (!poison)
        return (struct hf_item){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    *poison = (struct poison){.status = status, .message = message, .key = key};
    return (struct hf_item){(const uint8_t *)(const void *)poison, SIZE_MAX};
}

enum hf_status hf_item_check(struct hf_scope *s, struct hf_item item)
{
    const struct poison *poison;

    if (!hf__item_poisoned(item))
        return HF_OK;
    poison = hf__item_poison(item);
    return hf__fail_text(s, poison->status, poison->message);
}

/* ---- the builder ---------------------------------------------------------------------------- */

static void put_leb(struct hf__buf *buf, size_t value)
{
    uint8_t bytes[5];
    size_t len = 0;

    do {
        bytes[len] = (uint8_t)(value & 0x7F);
        value >>= 7;
        if (value)
            bytes[len] |= 0x80;
        len++;
    } while (value);
    hf__buf_put(buf, bytes, len);
}

size_t hf__build_open(struct hf__buf *buf, enum hf_type type)
{
    const uint8_t head[VALUE_HEAD] = {(uint8_t)type};
    size_t open = buf->len;

    hf__buf_put(buf, head, sizeof(head));
    return open;
}

void hf__build_name(struct hf__buf *buf, struct hf_str name)
{
    uint8_t len[2];

    assert(name.len <= ATTR_NAME_MAX);
    store_u16le(len, (uint16_t)name.len);
    hf__buf_put(buf, len, sizeof(len));
    hf__buf_put_str(buf, name);
}

void hf__build_str(struct hf__buf *buf, enum hf_type type, struct hf_str bytes)
{
    hf__buf_put_byte(buf, (uint8_t)type);
    put_leb(buf, bytes.len);
    hf__buf_put_str(buf, bytes);
}

void hf__build_number(struct hf__buf *buf, const uint8_t *bytes, size_t len)
{
    const uint8_t head[2] = {HF_TYPE_N, (uint8_t)len};

    hf__buf_put(buf, head, sizeof(head));
    hf__buf_put(buf, bytes, len);
}

void hf__build_bool(struct hf__buf *buf, bool truth)
{
    const uint8_t bytes[2] = {HF_TYPE_BOOL, truth};

    hf__buf_put(buf, bytes, sizeof(bytes));
}

void hf__build_null(struct hf__buf *buf)
{
    hf__buf_put_byte(buf, HF_TYPE_NULL);
}

void hf__build_value(struct hf__buf *buf, struct hf_value value)
{
    assert(value.ptr && !hf__value_poisoned(value));
    hf__buf_put(buf, value.ptr, value.len);
}

void hf__build_element(struct hf__buf *buf, enum hf_type set, struct hf_bytes bytes)
{
    if (set == HF_TYPE_NS)
        hf__buf_put_byte(buf, (uint8_t)bytes.len);
    else
        put_leb(buf, bytes.len);
    hf__buf_put(buf, bytes.ptr, bytes.len);
}

/* ---- closing: count, sort, fill in ---------------------------------------------------------- */

/* One element of a set or member of a map: what it is sorted by, and all of its bytes. */
struct part {
    struct hf_bytes key;
    struct hf_bytes whole;
};

/* Read the part at `p`; the bytes were written by the builder. */
static struct part part_at(const uint8_t *p, enum hf_type type)
{
    struct part part = {.whole = {p, 0}};

    if (type == HF_TYPE_M) {
        part.key = hf_bytes_of(p + 2, load_u16le(p));
        part.whole.len = 2 + part.key.len + hf__value_length(p + 2 + part.key.len);
    } else if (type == HF_TYPE_NS) {
        part.key = hf_bytes_of(p + 1, p[0]);
        part.whole.len = 1 + part.key.len;
    } else if (type == HF_TYPE_L) {
        part.whole.len = hf__value_length(p);
    } else {
        size_t head = 1;
        size_t len = p[0] & 0x7F;

        for (unsigned shift = 7; p[head - 1] & 0x80; shift += 7)
            len |= (size_t)(p[head++] & 0x7F) << shift;
        part.key = hf_bytes_of(p + head, len);
        part.whole.len = head + len;
    }
    return part;
}

static int part_order(const struct part *a, const struct part *b)
{
    if (a->key.len && b->key.len && a->key.ptr[0] != b->key.ptr[0]) /* most often */
        return a->key.ptr[0] < b->key.ptr[0] ? -1 : 1;
    return bytes_compare(a->key.ptr, a->key.len, b->key.ptr, b->key.len);
}

enum { INSERT_MAX = 16 }; /* so many parts are sorted by inserting, which is quicker then */

static void insert_parts(struct part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct part part = parts[i];
        size_t at = i;

        for (; at > 0 && part_order(&parts[at - 1], &part) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
}

/* Stable merge sort, so that of two members with one name the later stays behind the earlier. */
static void sort_parts(struct part *parts, struct part *other, size_t count)
{
    size_t half = count / 2;
    size_t left = 0;
    size_t right = half;

    if (count <= INSERT_MAX) {
        insert_parts(parts, count);
        return;
    }
    sort_parts(parts, other, half);
    sort_parts(parts + half, other, count - half);
    if (part_order(&parts[half - 1], &parts[half]) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        bool take_left =
            left < half && (right == count || part_order(&parts[left], &parts[right]) <= 0);

        other[i] = take_left ? parts[left++] : parts[right++];
    }
    memcpy(parts, other, count * sizeof(*parts));
}

enum { SMALL_PARTS = 24, SMALL_BYTES = 2048 };

/* Memory that is needed only while parts are put in order: this, when it is enough. */
struct scratch {
    struct part few[2 * SMALL_PARTS];
    uint8_t small[SMALL_BYTES];
    struct part *parts; /* twice the count */
    uint8_t *copy;      /* of the body */
};

static void *scratch_alloc(struct hf__buf *buf, size_t size)
{
    return buf->scope ? hf_scope_alloc(buf->scope, size) : hf__env_alloc(buf->env, size);
}

static bool scratch_take(struct hf__buf *buf, size_t count, size_t bytes, struct scratch *scratch)
{
    scratch->parts =
        count <= SMALL_PARTS ? scratch->few : scratch_alloc(buf, 2 * count * sizeof(struct part));
    scratch->copy = bytes <= SMALL_BYTES ? scratch->small : scratch_alloc(buf, bytes);
    return scratch->parts && scratch->copy;
}

static void scratch_give(struct hf__buf *buf, size_t count, size_t bytes, struct scratch *scratch)
{
    if (buf->scope)
        return; /* rewound as a whole */
    if (scratch->parts != scratch->few)
        hf__env_free(buf->env, scratch->parts, 2 * count * sizeof(struct part));
    if (scratch->copy != scratch->small)
        hf__env_free(buf->env, scratch->copy, bytes);
}

/* Write the parts in order over the body; returns how many stay, or SIZE_MAX without memory. */
static size_t reorder(struct hf__buf *buf, size_t body, enum hf_type type, size_t count,
                      bool *duplicate)
{
    struct scratch scratch;
    size_t kept = 0;
    size_t bytes = buf->len - body;
    struct hf__mark mark = {NULL, 0};

    if (buf->scope)
        mark = hf__scope_mark(buf->scope);
    if (!scratch_take(buf, count, bytes, &scratch)) {
        kept = SIZE_MAX;
        goto done;
    }
    memcpy(scratch.copy, buf->ptr + body, bytes);
    for (size_t i = 0, at = 0; i < count; i++) {
        scratch.parts[i] = part_at(scratch.copy + at, type);
        at += scratch.parts[i].whole.len;
    }
    sort_parts(scratch.parts, scratch.parts + count, count);
    buf->len = body;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && part_order(&scratch.parts[i], &scratch.parts[i + 1]) == 0) {
            *duplicate = true;
            continue; /* the later one wins */
        }
        hf__buf_put(buf, scratch.parts[i].whole.ptr, scratch.parts[i].whole.len);
        kept++;
    }
done:
    scratch_give(buf, count, bytes, &scratch);
    if (buf->scope)
        hf__scope_rewind(buf->scope, mark);
    return kept;
}

enum build_result hf__build_close(struct hf__buf *buf, size_t open)
{
    size_t body = open + VALUE_HEAD;
    size_t count = 0;
    bool in_order = true;
    bool duplicate = false;
    enum hf_type type;
    struct part before = {{NULL, 0}, {NULL, 0}};

    if (buf->failed)
        return BUILD_OK;
    type = (enum hf_type)buf->ptr[open];
    for (size_t at = body; at < buf->len; count++) {
        struct part part = part_at(buf->ptr + at, type);

        if (type != HF_TYPE_L && count > 0 && part_order(&before, &part) >= 0)
            in_order = false;
        before = part;
        at += part.whole.len;
    }
    if (!in_order) {
        count = reorder(buf, body, type, count, &duplicate);
        if (count == SIZE_MAX) {
            buf->failed = true;
            return BUILD_OK;
        }
    }
    store_u32le(buf->ptr + open + 1, (uint32_t)(buf->len - open - 5));
    store_u32le(buf->ptr + open + 5, (uint32_t)count);
    if (type >= HF_TYPE_SS && count == 0)
        return BUILD_EMPTY_SET;
    return duplicate && type != HF_TYPE_M ? BUILD_DUPLICATE : BUILD_OK;
}

struct hf_value hf__build_value_from(struct hf__buf *buf, size_t from)
{
    if (buf->failed)
        return (struct hf_value){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    return (struct hf_value){buf->ptr + from, buf->len - from};
}

struct hf_item hf__build_item_from(struct hf__buf *buf, size_t from)
{
    struct hf_value value = hf__build_value_from(buf, from);

    return (struct hf_item){value.ptr, value.len};
}

/* ---- items written in place ----------------------------------------------------------------- */

struct making {
    struct hf_scope *s;
    struct hf__buf buf;
    struct hf_item poison; /* the first error; absent while there is none */
};

static void spoil(struct making *m, const struct hf_attr *attr, const char *why)
{
    if (m->poison.ptr)
        return;
    m->poison = hf__item_poison_new(m->s, HF_INVALID,
                                    hf_scope_format(m->s, "Attribute \"%.*s\": %s",
                                                    HF_FMT(attr->name), why),
                                    attr->name);
}

static bool parse_number(struct making *m, const struct hf_attr *attr, struct hf_str text,
                         struct number *number)
{
    switch (hf__number_parse(text, number)) {
    case NUMBER_OK:
        return true;
    case NUMBER_SYNTAX:
        spoil(m, attr, "not a number");
        break;
    case NUMBER_PRECISION:
        spoil(m, attr, "a number of more than 38 digits");
        break;
    case NUMBER_OVERFLOW:
    case NUMBER_UNDERFLOW:
        spoil(m, attr, "a number out of range");
        break;
    }
    return false;
}

static void make_set(struct making *m, const struct hf_attr *attr)
{
    size_t open = hf__build_open(&m->buf, attr->type);

    for (size_t i = 0; i < attr->list_len; i++) {
        struct hf_bytes bytes = hf_bytes_of(attr->list[i].ptr, attr->list[i].len);
        struct number number;

        if (attr->type == HF_TYPE_NS) {
            if (!parse_number(m, attr, attr->list[i], &number))
                continue;
            bytes = hf_bytes_of(number.bytes, number.len);
        }
        if (attr->type == HF_TYPE_SS && !hf__utf8_valid(attr->list[i]))
            spoil(m, attr, "a string of the set is not UTF-8");
        hf__build_element(&m->buf, attr->type, bytes);
    }
    if (hf__build_close(&m->buf, open) == BUILD_EMPTY_SET)
        spoil(m, attr, "a set may not be empty");
}

static void make_value(struct making *m, const struct hf_attr *attr)
{
    struct number number;

    switch (attr->type) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        if (!attr->text.ptr && attr->text.len == 0 && attr->type == HF_TYPE_S)
            spoil(m, attr, "the string is absent");
        else if (attr->type == HF_TYPE_S && !hf__utf8_valid(attr->text))
            spoil(m, attr, "the string is not UTF-8");
        hf__build_str(&m->buf, attr->type, attr->text);
        break;
    case HF_TYPE_N:
        if (attr->text.ptr) {
            if (!parse_number(m, attr, attr->text, &number))
                hf__number_from_i64(0, &number);
        } else {
            hf__number_from_i64(attr->number, &number);
        }
        hf__build_number(&m->buf, number.bytes, number.len);
        break;
    case HF_TYPE_BOOL:
        hf__build_bool(&m->buf, attr->number != 0);
        break;
    case HF_TYPE_NULL:
        hf__build_null(&m->buf);
        break;
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        make_set(m, attr);
        break;
    case HF_TYPE_NONE:
    case HF_TYPE_M:
    case HF_TYPE_L:
        if (hf__value_poisoned(attr->value)) {
            if (!m->poison.ptr)
                m->poison = (struct hf_item){attr->value.ptr, attr->value.len};
            hf__build_null(&m->buf);
        } else if (!attr->value.ptr) {
            spoil(m, attr, "the value is absent");
            hf__build_null(&m->buf);
        } else {
            hf__build_value(&m->buf, attr->value);
        }
        break;
    }
}

static struct hf_value finish(struct making *m)
{
    struct hf_value value = hf__build_value_from(&m->buf, 0);

    if (m->poison.ptr)
        return hf_item_value(m->poison);
    if (!hf__value_poisoned(value) && hf__value_depth(value) > VALUE_DEPTH_MAX + 1)
        return hf_item_value(hf__item_poison_new(
            m->s, HF_INVALID,
            HF_STR("Nesting Levels have exceeded supported limits: Attributes in the item have "
                   "nested levels beyond supported limit"),
            hf_str_of(NULL, 0)));
    return value;
}

static void make_member(struct making *m, const struct hf_attr *attr)
{
    const struct hf_attr unnamed = {.name = HF_STR("?")};

    if (attr->name.len > ATTR_NAME_MAX) {
        spoil(m, attr, "the name is longer than 65535 bytes");
        return;
    }
    if (!hf__utf8_valid(attr->name)) {
        spoil(m, &unnamed, "the name is not UTF-8");
        return;
    }
    hf__build_name(&m->buf, attr->name);
    make_value(m, attr);
}

struct hf_item hf_item_with(struct hf_scope *s, struct hf_item item, const struct hf_attr *attrs,
                            size_t count)
{
    struct making m = {.s = s, .buf = {.scope = s}};
    struct value_walk walk;
    struct hf_value made;
    size_t open;

    if (hf__item_poisoned(item))
        return item;
    open = hf__build_open(&m.buf, HF_TYPE_M);
    walk = hf__value_walk(hf_item_value(item));
    while (hf__value_next(&walk)) {
        hf__build_name(&m.buf, walk.name);
        hf__build_value(&m.buf, walk.value);
    }
    for (size_t i = 0; i < count; i++)
        make_member(&m, &attrs[i]);
    hf__build_close(&m.buf, open);
    made = finish(&m);
    return (struct hf_item){made.ptr, made.len};
}

struct hf_item hf_item_make(struct hf_scope *s, const struct hf_attr *attrs, size_t count)
{
    return hf_item_with(s, (struct hf_item){NULL, 0}, attrs, count);
}

struct hf_value hf_list_make(struct hf_scope *s, const struct hf_attr *attrs, size_t count)
{
    struct making m = {.s = s, .buf = {.scope = s}};
    size_t open = hf__build_open(&m.buf, HF_TYPE_L);

    for (size_t i = 0; i < count; i++)
        make_value(&m, &attrs[i]);
    hf__build_close(&m.buf, open);
    return finish(&m);
}

struct hf_value hf_value_make(struct hf_scope *s, struct hf_attr attr)
{
    struct making m = {.s = s, .buf = {.scope = s}};

    make_value(&m, &attr);
    return finish(&m);
}

struct hf_item hf_item_copy(struct hf_scope *s, struct hf_item item)
{
    uint8_t *copy;

    if (!item.ptr)
        return item;
    if (hf__item_poisoned(item)) { /* may outlive the scope in which it was built, as any copy */
        const struct poison *poison = hf__item_poison(item);

        return hf__item_poison_new(s, poison->status, hf_scope_copy(s, poison->message),
                                   poison->key.ptr ? hf_scope_copy(s, poison->key) : poison->key);
    }
    copy = hf_scope_alloc(s, item.len);
    if (!copy)
        return (struct hf_item){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    memcpy(copy, item.ptr, item.len);
    return (struct hf_item){copy, item.len};
}
