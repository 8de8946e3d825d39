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
static const struct poison no_memory = {.status = HF_NOMEM,
                                        .message = HF_STR_INIT("out of memory")};

struct hf_item hf__item_poison_of(struct hf_scope *s, const struct poison *poison)
{
    struct poison *mine = hf_scope_alloc(s, sizeof(*mine));

    if (!mine)
        return (struct hf_item){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    *mine = *poison;
    return (struct hf_item){(const uint8_t *)(const void *)mine, SIZE_MAX};
}

struct hf_item hf__item_poison_new(struct hf_scope *s, enum hf_status status, struct hf_str message,
                                   struct hf_str key)
{
    const struct poison poison = {.status = status, .message = message, .key = key};

    return hf__item_poison_of(s, &poison);
}

/* For people: which attribute it is, where the message does not say it. */
static void attribute_say(struct hf_scope *s, struct hf_str message, struct hf_str attribute)
{
    struct hf_str said;

    if (!attribute.len || memmem(message.ptr, message.len, attribute.ptr, attribute.len))
        return;
    said = hf_scope_format(s, "%.*s: attribute \"%.*s\"", HF_FMT(message), HF_FMT(attribute));
    if (said.ptr)
        hf__scope_error_say(s, said);
}

enum hf_status hf_item_check(struct hf_scope *s, struct hf_item item)
{
    const struct poison *poison;
    enum hf_status status;

    hf__scope_error_clear(s);
    if (!hf__item_poisoned(item))
        return HF_OK;
    poison = hf__item_poison(item);
    if (poison->newer.ptr && hf__scope_wording(s) == HF__WORDING_2026)
        return hf__fail_text(s, poison->status, poison->newer);
    status = hf__fail_text(s, poison->status, poison->message);
    attribute_say(s, poison->message, poison->key);
    return status;
}

/* ---- the builder ---------------------------------------------------------------------------- */

enum { LEB_MAX = 5 };

/* Write a length as LEB128 and return where the bytes go on. */
static inline uint8_t *put_leb(uint8_t *to, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

size_t hf__build_open(struct hf__buf *buf, enum hf_type type)
{
    const uint8_t head[VALUE_HEAD] = {(uint8_t)type};
    size_t open = buf->len;

    assert(type >= HF_TYPE_M && type <= HF_TYPE_BS);
    hf__buf_put(buf, head, sizeof(head));
    return open;
}

void hf__build_name(struct hf__buf *buf, struct hf_str name)
{
    uint8_t *to = hf__buf_reserve(buf, 2 + name.len);

    assert(name.len <= ATTR_NAME_MAX);
    if (!to)
        return;
    store_u16le(to, (uint16_t)name.len);
    if (name.len)
        memcpy(to + 2, name.ptr, name.len);
    buf->len += 2 + name.len;
}

void hf__build_str(struct hf__buf *buf, enum hf_type type, struct hf_str bytes)
{
    uint8_t *to = hf__buf_reserve(buf, 1 + LEB_MAX + bytes.len);

    assert((type == HF_TYPE_S || type == HF_TYPE_B) && bytes.len <= UINT32_MAX);
    if (!to)
        return;
    *to++ = (uint8_t)type;
    to = put_leb(to, bytes.len);
    if (bytes.len)
        memcpy(to, bytes.ptr, bytes.len);
    buf->len = (size_t)(to - buf->ptr) + bytes.len;
}

void hf__build_number(struct hf__buf *buf, const uint8_t *bytes, size_t len)
{
    uint8_t *to = hf__buf_reserve(buf, 2 + len);

    assert(len >= 2 && len <= NUMBER_BYTES_MAX);
    if (!to)
        return;
    to[0] = HF_TYPE_N;
    to[1] = (uint8_t)len;
    memcpy(to + 2, bytes, len);
    buf->len += 2 + len;
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
    uint8_t *to = hf__buf_reserve(buf, LEB_MAX + bytes.len);

    assert(set != HF_TYPE_NS || bytes.len <= NUMBER_BYTES_MAX); /* as a LEB it is one byte too */
    if (!to)
        return;
    to = put_leb(to, bytes.len);
    if (bytes.len)
        memcpy(to, bytes.ptr, bytes.len);
    buf->len = (size_t)(to - buf->ptr) + bytes.len;
}

/* ---- closing: count, sort, fill in ---------------------------------------------------------- */

/*
 * One element of a set or member of a map, by its place in the body. The first eight bytes of what
 * it is sorted by, as a number, settle nearly every comparison.
 */
struct part {
    uint64_t prefix;
    uint32_t at;
    uint32_t len;
};

/* What the part at `p` is sorted by: an element's bytes, a member's name. */
static inline struct hf_bytes key_at(const uint8_t *p, enum hf_type type)
{
    size_t head = 1;
    size_t len = p[0];

    if (type == HF_TYPE_M)
        return hf_bytes_of(p + 2, load_u16le(p));
    if (len >= 0x80) { /* of an NS never */
        len &= 0x7F;
        for (unsigned shift = 7; p[head - 1] & 0x80; shift += 7)
            len |= (size_t)(p[head++] & 0x7F) << shift;
    }
    return hf_bytes_of(p + head, len);
}

/* Eight bytes of a key, with zeros behind a shorter one; they can be read up to `end`. */
static inline uint64_t prefix_of(struct hf_bytes key, const uint8_t *end)
{
    uint64_t prefix = 0;

    if (end - key.ptr >= 8) {
        prefix = load_u64be(key.ptr);
        if (key.len < 8)
            prefix &= ~(UINT64_MAX >> 8 * key.len);
        return prefix;
    }
    for (size_t i = 0; i < key.len; i++)
        prefix |= (uint64_t)key.ptr[i] << (56 - 8 * i);
    return prefix;
}

/* The part at `at`; the bytes were written by the builder. */
static inline struct part part_at(const uint8_t *body, size_t at, size_t end, enum hf_type type)
{
    struct hf_bytes key = key_at(body + at, type);
    const uint8_t *behind = key.ptr + key.len;

    if (type == HF_TYPE_M)
        behind += hf__value_length(behind);
    return (struct part){.prefix = prefix_of(key, body + end),
                         .at = (uint32_t)at,
                         .len = (uint32_t)((size_t)(behind - body) - at)};
}

/* The parts of one container, while they are put in order. */
struct parts {
    const uint8_t *body;
    enum hf_type type;
};

static int key_order(const struct parts *of, const struct part *a, const struct part *b)
{
    struct hf_bytes x = key_at(of->body + a->at, of->type);
    struct hf_bytes y = key_at(of->body + b->at, of->type);

    return bytes_compare(x.ptr, x.len, y.ptr, y.len);
}

static inline int part_order(const struct parts *of, const struct part *a, const struct part *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return key_order(of, a, b);
}

enum { INSERT_MAX = 16 }; /* so many parts are sorted by inserting, which is quicker then */

static void insert_parts(const struct parts *of, struct part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct part part = parts[i];
        size_t at = i;

        for (; at > 0 && part_order(of, &parts[at - 1], &part) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
}

/* Stable merge sort, so that of two members with one name the later stays behind the earlier. */
static void sort_parts(const struct parts *of, struct part *parts, struct part *other, size_t count)
{
    size_t half = count / 2;
    size_t left = 0;
    size_t right = half;

    if (count <= INSERT_MAX) {
        insert_parts(of, parts, count);
        return;
    }
    sort_parts(of, parts, other, half);
    sort_parts(of, parts + half, other, count - half);
    if (part_order(of, &parts[half - 1], &parts[half]) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        bool take_left =
            left < half && (right == count || part_order(of, &parts[left], &parts[right]) <= 0);

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

/* Find the parts of the body; the few that the walk over them kept need not be found again. */
static void find_parts(const uint8_t *body, size_t bytes, enum hf_type type, size_t count,
                       struct scratch *scratch)
{
    if (scratch->parts == scratch->few)
        return;
    for (size_t i = 0, at = 0; i < count; i++) {
        scratch->parts[i] = part_at(body, at, bytes, type);
        at += scratch->parts[i].len;
    }
}

/* Write the parts in order over the body; returns how many stay, or SIZE_MAX without memory. */
static size_t parts_reorder(struct hf__buf *buf, size_t open, enum hf_type type, size_t count,
                            struct scratch *scratch, size_t *repeat)
{
    uint8_t *body = buf->ptr + open + VALUE_HEAD;
    size_t bytes = buf->len - open - VALUE_HEAD;
    struct parts of = {body, type};
    uint8_t *to = body;
    size_t kept = 0;
    struct hf__mark mark = {NULL, 0};

    if (buf->scope)
        mark = hf__scope_mark(buf->scope);
    if (!scratch_take(buf, count, bytes, scratch)) {
        kept = SIZE_MAX;
        goto done;
    }
    find_parts(body, bytes, type, count, scratch);
    sort_parts(&of, scratch->parts, scratch->parts + count, count);
    of.body = memcpy(scratch->copy, body, bytes);
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &scratch->parts[i];

        if (i + 1 < count && part_order(&of, part, part + 1) == 0) {
            if (*repeat == SIZE_MAX)
                *repeat = kept;
            continue; /* the later one wins */
        }
        memcpy(to, scratch->copy + part->at, part->len);
        to += part->len;
        kept++;
    }
    assert(kept <= count && (size_t)(to - body) <= bytes);
    buf->len = (size_t)(to - buf->ptr);
done:
    scratch_give(buf, count, bytes, scratch);
    if (buf->scope)
        hf__scope_rewind(buf->scope, mark);
    return kept;
}

/* Sets and maps: count the parts and put them in order; SIZE_MAX without memory. */
static inline size_t close_parts(struct hf__buf *buf, size_t open, enum hf_type type,
                                 size_t *repeat)
{
    const struct parts of = {buf->ptr + open + VALUE_HEAD, type};
    size_t bytes = buf->len - open - VALUE_HEAD;
    struct part before = {.prefix = 0};
    struct scratch scratch;
    size_t count = 0;
    bool in_order = true;

    for (size_t at = 0; at < bytes; count++) {
        struct part part = part_at(of.body, at, bytes, type);

        if (count < SMALL_PARTS)
            scratch.few[count] = part;
        if (count > 0 && part.prefix <= before.prefix && part_order(&of, &before, &part) >= 0)
            in_order = false;
        before = part;
        at += part.len;
    }
    return in_order ? count : parts_reorder(buf, open, type, count, &scratch, repeat);
}

static size_t count_values(const struct hf__buf *buf, size_t open)
{
    size_t count = 0;

    for (size_t at = open + VALUE_HEAD; at < buf->len; count++)
        at += hf__value_length(buf->ptr + at);
    return count;
}

enum build_result hf__build_close_set(struct hf__buf *buf, size_t open, size_t *repeat)
{
    enum hf_type type;
    size_t count;

    *repeat = SIZE_MAX;
    if (buf->failed)
        return BUILD_OK;
    assert(open + VALUE_HEAD <= buf->len && buf->len - open <= UINT32_MAX);
    type = (enum hf_type)buf->ptr[open];
    if (type == HF_TYPE_L)
        count = count_values(buf, open);
    else if (type == HF_TYPE_M)
        count = close_parts(buf, open, HF_TYPE_M, repeat);
    else
        count = close_parts(buf, open, type, repeat);
    if (count == SIZE_MAX) {
        buf->failed = true;
        return BUILD_OK;
    }
    store_u32le(buf->ptr + open + 1, (uint32_t)(buf->len - open - 5));
    store_u32le(buf->ptr + open + 5, (uint32_t)count);
    if (type >= HF_TYPE_SS && count == 0)
        return BUILD_EMPTY_SET;
    return *repeat != SIZE_MAX && type != HF_TYPE_M ? BUILD_DUPLICATE : BUILD_OK;
}

enum build_result hf__build_close(struct hf__buf *buf, size_t open)
{
    size_t repeat;

    return hf__build_close_set(buf, open, &repeat);
}

struct hf_value hf__build_value_from(struct hf__buf *buf, size_t from)
{
    if (buf->failed)
        return (struct hf_value){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    assert(from < buf->len);
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
    int depth;             /* levels of the deepest ready value in it */
};

static void making_spoil(struct making *m, const struct hf_attr *attr, const char *why)
{
    if (m->poison.ptr)
        return;
    m->poison = hf__item_poison_new(m->s, HF_INVALID,
                                    hf_scope_format(m->s, "Attribute \"%.*s\": %s",
                                                    HF_FMT(attr->name), why),
                                    attr->name);
}

/* True: it is one. */
static bool judge_number(struct making *m, const struct hf_attr *attr, enum number_error error)
{
    switch (error) {
    case NUMBER_OK:
        return true;
    case NUMBER_SYNTAX:
        making_spoil(m, attr,
                     attr->is_real ? "NaN and infinity are no numbers here" : "not a number");
        break;
    case NUMBER_PRECISION:
        making_spoil(m, attr, "a number of more than 38 digits");
        break;
    case NUMBER_OVERFLOW:
    case NUMBER_UNDERFLOW:
        making_spoil(m, attr, "a number out of range");
        break;
    }
    return false;
}

static bool parse_number(struct making *m, const struct hf_attr *attr, struct hf_str text,
                         struct number *number)
{
    return judge_number(m, attr, hf__number_parse(text, number));
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
            making_spoil(m, attr, "a string of the set is not UTF-8");
        hf__build_element(&m->buf, attr->type, bytes);
    }
    if (hf__build_close(&m->buf, open) == BUILD_EMPTY_SET)
        making_spoil(m, attr, "a set may not be empty");
}

static void make_value(struct making *m, const struct hf_attr *attr)
{
    struct number number;

    switch (attr->type) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        if (!attr->text.ptr && attr->text.len == 0 && attr->type == HF_TYPE_S)
            making_spoil(m, attr, "the string is absent");
        else if (attr->type == HF_TYPE_S && !hf__utf8_valid(attr->text))
            making_spoil(m, attr, "the string is not UTF-8");
        hf__build_str(&m->buf, attr->type, attr->text);
        break;
    case HF_TYPE_N:
        if (attr->is_real) {
            if (!judge_number(m, attr, hf__number_from_double(attr->real, &number)))
                hf__number_from_i64(0, &number);
        } else if (attr->text.ptr) {
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
            making_spoil(m, attr, "the value is absent");
            hf__build_null(&m->buf);
        } else {
            int depth = hf__value_depth(attr->value);

            m->depth = depth > m->depth ? depth : m->depth;
            hf__build_value(&m->buf, attr->value);
        }
        break;
    default: /* a name without a value would be no item */
        making_spoil(m, attr, "there is no such type");
        hf__build_null(&m->buf);
        break;
    }
}

/* `levels` are those of the container that was made around the values. */
static struct hf_value making_finish(struct making *m, int levels)
{
    struct hf_value value = hf__build_value_from(&m->buf, 0);

    if (m->poison.ptr)
        return hf_item_value(m->poison);
    if (!hf__value_poisoned(value) && m->depth + levels > VALUE_DEPTH_MAX + 1)
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
        making_spoil(m, attr, "the name is longer than 65535 bytes");
        return;
    }
    if (!hf__utf8_valid(attr->name)) {
        making_spoil(m, &unnamed, "the name is not UTF-8");
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
        int depth = hf__value_depth(walk.value);

        m.depth = depth > m.depth ? depth : m.depth;
        hf__build_name(&m.buf, walk.name);
        hf__build_value(&m.buf, walk.value);
    }
    for (size_t i = 0; i < count; i++)
        make_member(&m, &attrs[i]);
    hf__build_close(&m.buf, open);
    made = making_finish(&m, 1);
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
    return making_finish(&m, 1);
}

struct hf_value hf_value_make(struct hf_scope *s, struct hf_attr attr)
{
    struct making m = {.s = s, .buf = {.scope = s}};

    make_value(&m, &attr);
    return making_finish(&m, 0);
}

static struct hf_str copy_if(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

struct hf_item hf_item_copy(struct hf_scope *s, struct hf_item item)
{
    uint8_t *copy;

    if (!item.ptr)
        return item;
    if (hf__item_poisoned(item)) { /* may outlive the scope in which it was built, as any copy */
        const struct poison *poison = hf__item_poison(item);

        struct poison mine = {.status = poison->status,
                              .message = hf_scope_copy(s, poison->message),
                              .key = copy_if(s, poison->key),
                              .newer = copy_if(s, poison->newer)};

        return hf__item_poison_of(s, &mine);
    }
    copy = hf_scope_alloc(s, item.len);
    if (!copy)
        return (struct hf_item){(const uint8_t *)(const void *)&no_memory, SIZE_MAX};
    memcpy(copy, item.ptr, item.len);
    return (struct hf_item){copy, item.len};
}
