/*
 * model/value.c: reading flat values in place. The layout and what always holds are in value.h.
 *
 * Everything here trusts the bytes except hf__value_valid() and hf__item_valid(), which are for
 * bytes that come from a disk or a fuzzer.
 */
#include "model/value.h"

_Static_assert(HF_TYPE_S == 1 && HF_TYPE_N == 2 && HF_TYPE_B == 3 && HF_TYPE_BOOL == 4 &&
                   HF_TYPE_NULL == 5 && HF_TYPE_M == 6 && HF_TYPE_L == 7 && HF_TYPE_SS == 8 &&
                   HF_TYPE_NS == 9 && HF_TYPE_BS == 10,
               "they are on disk");
_Static_assert(VALUE_HEAD == 1 + 4 + 4, "type, u32le length, u32le count");

/* ---- lengths -------------------------------------------------------------------------------- */

enum { LEB_MAX = 5 };

static size_t leb_read(const uint8_t *p, uint32_t *value)
{
    uint32_t v = p[0];
    size_t used = 1;

    if (v < 0x80) {
        *value = v;
        return 1;
    }
    v &= 0x7F;
    for (unsigned shift = 7;; shift += 7) {
        uint8_t byte = p[used++];

        v |= (uint32_t)(byte & 0x7F) << shift;
        if (byte < 0x80 || used == LEB_MAX)
            break;
    }
    *value = v;
    return used;
}

size_t hf__value_length_slow(const uint8_t *p)
{
    uint32_t len;
    size_t head;

    switch ((enum hf_type)p[0]) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        head = leb_read(p + 1, &len);
        return 1 + head + len;
    case HF_TYPE_N:
        return 2u + p[1];
    case HF_TYPE_BOOL:
        return 2;
    case HF_TYPE_NULL:
        return 1;
    case HF_TYPE_M:
    case HF_TYPE_L:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return 5 + (size_t)load_u32le(p + 1);
    case HF_TYPE_NONE:
        break;
    }
    assert(p[0] != HF_TYPE_NONE);
    return 1;
}

enum hf_type hf_value_type(struct hf_value value)
{
    return value.ptr && !hf__value_poisoned(value) ? (enum hf_type)value.ptr[0] : HF_TYPE_NONE;
}

struct hf_bytes hf__value_scalar(struct hf_value value)
{
    uint32_t len;
    size_t head;

    assert(value.ptr[0] >= HF_TYPE_S && value.ptr[0] <= HF_TYPE_B);
    if (value.ptr[0] == HF_TYPE_N)
        return hf_bytes_of(value.ptr + 2, value.ptr[1]);
    head = leb_read(value.ptr + 1, &len);
    return hf_bytes_of(value.ptr + 1 + head, len);
}

struct hf_str hf_value_str(struct hf_value value)
{
    struct hf_bytes bytes;

    if (hf_value_type(value) != HF_TYPE_S)
        return hf_str_of(NULL, 0);
    bytes = hf__value_scalar(value);
    return hf_str_of((const char *)bytes.ptr, bytes.len);
}

struct hf_bytes hf_value_bytes(struct hf_value value)
{
    return hf_value_type(value) == HF_TYPE_B ? hf__value_scalar(value) : hf_bytes_of(NULL, 0);
}

struct hf_str hf_value_number(struct hf_scope *s, struct hf_value value)
{
    char text[NUMBER_TEXT_MAX];
    struct hf_bytes bytes;

    if (hf_value_type(value) != HF_TYPE_N)
        return hf_str_of(NULL, 0);
    bytes = hf__value_scalar(value);
    return hf_scope_copy(s, hf_str_of(text, hf__number_text(bytes.ptr, bytes.len, text)));
}

bool hf_value_i64(struct hf_value value, int64_t *out)
{
    struct hf_bytes bytes;

    if (hf_value_type(value) != HF_TYPE_N)
        return false;
    bytes = hf__value_scalar(value);
    return hf__number_to_i64(bytes.ptr, bytes.len, out);
}

bool hf_value_f64(struct hf_value value, double *out)
{
    struct hf_bytes bytes;

    if (hf_value_type(value) != HF_TYPE_N)
        return false;
    bytes = hf__value_scalar(value);
    *out = hf__number_to_double(bytes.ptr, bytes.len);
    return true;
}

bool hf_value_true(struct hf_value value)
{
    return hf_value_type(value) == HF_TYPE_BOOL && value.ptr[1];
}

static bool is_container(enum hf_type type)
{
    return type >= HF_TYPE_M && type <= HF_TYPE_BS;
}

size_t hf_value_count(struct hf_value value)
{
    return is_container(hf_value_type(value)) ? load_u32le(value.ptr + 5) : 0;
}

/* ---- walking -------------------------------------------------------------------------------- */

struct value_walk hf__value_walk(struct hf_value container)
{
    struct value_walk walk = {.type = hf_value_type(container)};

    if (is_container(walk.type)) {
        walk.left = load_u32le(container.ptr + 5);
        walk.at = container.ptr + VALUE_HEAD;
    }
    return walk;
}

/* The next element of what is no M; there is one. */
bool hf__value_next_slow(struct value_walk *walk)
{
    uint32_t len;

    assert(walk->left > 0 && is_container(walk->type) && walk->type != HF_TYPE_M);
    walk->left--;
    switch (walk->type) {
    case HF_TYPE_L:
        walk->value = (struct hf_value){walk->at, hf__value_length(walk->at)};
        walk->at += walk->value.len;
        break;
    case HF_TYPE_NS:
        walk->scalar = hf_bytes_of(walk->at + 1, walk->at[0]);
        walk->at += 1 + walk->scalar.len;
        break;
    default:
        walk->at += leb_read(walk->at, &len);
        walk->scalar = hf_bytes_of(walk->at, len);
        walk->at += len;
        break;
    }
    return true;
}

/* The element where the walk is, as a value. */
static struct hf_value element_of(struct hf_scope *s, const struct value_walk *walk)
{
    struct hf__buf buf = {.scope = s};

    assert(is_container(walk->type));
    if (walk->type == HF_TYPE_L)
        return walk->value;
    if (walk->type == HF_TYPE_NS)
        hf__build_number(&buf, walk->scalar.ptr, walk->scalar.len);
    else
        hf__build_str(&buf, walk->type == HF_TYPE_SS ? HF_TYPE_S : HF_TYPE_B,
                      hf_str_of((const char *)walk->scalar.ptr, walk->scalar.len));
    return hf__build_value_from(&buf, 0);
}

struct hf_value hf_value_at(struct hf_scope *s, struct hf_value value, size_t index)
{
    struct value_walk walk = hf__value_walk(value);

    if (walk.type == HF_TYPE_M || index >= walk.left)
        return (struct hf_value){NULL, 0};
    for (size_t i = 0; i <= index; i++)
        hf__value_next(&walk);
    return element_of(s, &walk);
}

bool hf_value_next(struct hf_scope *s, struct hf_value value, struct hf_value_walk *walk)
{
    struct value_walk at = hf__value_walk(value);

    if (at.type == HF_TYPE_M)
        return false;
    if (walk->next) {
        if (walk->index + 1 >= at.left)
            return false;
        walk->index++;
        at.at = value.ptr + walk->next;
        at.left -= (uint32_t)walk->index;
    }
    if (!hf__value_next(&at))
        return false;
    walk->next = (size_t)(at.at - value.ptr);
    walk->value = element_of(s, &at);
    return true;
}

struct hf_value hf_value_get(struct hf_value map, struct hf_str name)
{
    const uint8_t *at;
    uint32_t left;

    if (hf_value_type(map) != HF_TYPE_M)
        return (struct hf_value){NULL, 0};
    at = map.ptr + VALUE_HEAD;
    for (left = load_u32le(map.ptr + 5); left > 0; left--) {
        const uint8_t *own = at + 2;
        size_t len = load_u16le(at);
        const uint8_t *value = own + len;

        at = value + hf__value_length(value);
        if (len == name.len && (len == 0 || memcmp(own, name.ptr, len) == 0))
            return (struct hf_value){value, (size_t)(at - value)};
    }
    return (struct hf_value){NULL, 0};
}

struct hf_value hf_item_get(struct hf_item item, struct hf_str name)
{
    return hf_value_get(hf_item_value(item), name);
}

struct hf_item hf_value_item(struct hf_value map)
{
    if (hf_value_type(map) != HF_TYPE_M && !hf__value_poisoned(map))
        return (struct hf_item){NULL, 0};
    return (struct hf_item){map.ptr, map.len};
}

struct hf_value hf_item_value(struct hf_item item)
{
    return (struct hf_value){item.ptr, item.len};
}

size_t hf_item_count(struct hf_item item)
{
    return hf_value_count(hf_item_value(item));
}

bool hf_item_next(struct hf_item item, struct hf_item_walk *walk)
{
    const uint8_t *at;

    if (!item.ptr || hf__item_poisoned(item))
        return false;
    if (walk->next == 0)
        walk->next = VALUE_HEAD;
    if (walk->next >= item.len)
        return false;
    at = item.ptr + walk->next;
    walk->name = hf_str_of((const char *)at + 2, load_u16le(at));
    at += 2 + walk->name.len;
    walk->value = (struct hf_value){at, hf__value_length(at)};
    walk->next = (size_t)(at - item.ptr) + walk->value.len;
    return true;
}

bool hf__set_has(struct hf_value set, struct hf_bytes bytes)
{
    struct value_walk walk = hf__value_walk(set);

    while (hf__value_next(&walk))
        if (walk.scalar.len == bytes.len &&
            (bytes.len == 0 || memcmp(walk.scalar.ptr, bytes.ptr, bytes.len) == 0))
            return true;
    return false;
}

/* ---- comparing and measuring ---------------------------------------------------------------- */

bool hf_value_equal(struct hf_value a, struct hf_value b)
{
    if (!a.ptr || !b.ptr || hf__value_poisoned(a) || hf__value_poisoned(b))
        return !a.ptr && !b.ptr;
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

bool hf_item_equal(struct hf_item a, struct hf_item b)
{
    return hf_value_equal(hf_item_value(a), hf_item_value(b));
}

int hf__value_compare(struct hf_value a, struct hf_value b)
{
    struct hf_bytes x = hf__value_scalar(a);
    struct hf_bytes y = hf__value_scalar(b);

    return bytes_compare(x.ptr, x.len, y.ptr, y.len);
}

enum { CONTAINER_SIZE = 3, ELEMENT_SIZE = 1 }; /* what DynamoDB adds for an L or M, per element */

static size_t container_size(struct hf_value value)
{
    struct value_walk walk = hf__value_walk(value);
    size_t size = 0;

    switch (walk.type) {
    case HF_TYPE_SS:
    case HF_TYPE_BS:
        while (hf__value_next(&walk))
            size += walk.scalar.len;
        return size;
    case HF_TYPE_NS:
        while (hf__value_next(&walk))
            size += hf__number_size(walk.scalar.ptr, walk.scalar.len);
        return size;
    case HF_TYPE_L:
    case HF_TYPE_M:
        size = CONTAINER_SIZE;
        while (hf__value_next(&walk))
            size += ELEMENT_SIZE + walk.name.len + hf__value_size(walk.value);
        return size;
    default:
        return 0;
    }
}

size_t hf__value_size(struct hf_value value)
{
    switch (hf_value_type(value)) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        return hf__value_scalar(value).len;
    case HF_TYPE_N:
        return hf__number_size(value.ptr + 2, value.ptr[1]);
    case HF_TYPE_BOOL:
    case HF_TYPE_NULL:
        return 1;
    default:
        return container_size(value);
    }
}

size_t hf_item_size(struct hf_item item)
{
    struct value_walk walk = hf__value_walk(hf_item_value(item));
    size_t size = 0;

    while (hf__value_next(&walk))
        size += walk.name.len + hf__value_size(walk.value);
    return size;
}

int hf__value_depth(struct hf_value value)
{
    enum hf_type type = hf_value_type(value);
    struct value_walk walk;
    int deepest = 0;

    if (type != HF_TYPE_L && type != HF_TYPE_M)
        return 1;
    walk = hf__value_walk(value);
    while (hf__value_next(&walk)) {
        int depth = hf__value_depth(walk.value);

        if (depth > deepest)
            deepest = depth;
    }
    return deepest + 1;
}

/* ---- names of types ------------------------------------------------------------------------- */

static const char *const type_names[] = {"",  "S", "N",  "B",  "BOOL", "NULL",
                                         "M", "L", "SS", "NS", "BS"};

_Static_assert(ARRAY_LEN(type_names) == HF_TYPE_BS + 1, "each type has a name");

const char *hf__type_name(enum hf_type type)
{
    assert((unsigned)type < ARRAY_LEN(type_names));
    return type_names[type];
}

enum hf_type hf__type_of_name(struct hf_str name)
{
    for (size_t i = 1; i < ARRAY_LEN(type_names); i++)
        if (hf_str_equal(name, hf_str_from(type_names[i])))
            return (enum hf_type)i;
    return HF_TYPE_NONE;
}

/* ---- validity ------------------------------------------------------------------------------- */

/* Read a LEB128 that is followed by at least that many bytes; 0 when it is not so. */
static size_t valid_leb(const uint8_t *p, size_t len, uint32_t *value)
{
    size_t used = 0;
    uint64_t v = 0;

    do {
        if (used == len || used == LEB_MAX)
            return 0;
        v |= (uint64_t)(p[used] & 0x7F) << (7 * used);
    } while (p[used++] & 0x80);
    if (used > 1 && p[used - 1] == 0)
        return 0; /* not the shortest form */
    if (v > len - used)
        return 0;
    *value = (uint32_t)v;
    return used;
}

static size_t valid_value(const uint8_t *p, size_t len, int depth);

static bool valid_elements(const uint8_t *p, size_t len, enum hf_type type, uint32_t count)
{
    struct hf_bytes before = {NULL, 0};
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct hf_bytes element;
        uint32_t element_len;
        size_t head = 1;

        if (at == len)
            return false;
        if (type == HF_TYPE_NS) {
            element_len = p[at];
            if (element_len > len - at - 1 ||
                hf__number_length(p + at + 1, element_len) != element_len)
                return false;
        } else {
            head = valid_leb(p + at, len - at, &element_len);
            if (head == 0)
                return false;
        }
        element = hf_bytes_of(p + at + head, element_len);
        if (i > 0 && bytes_compare(before.ptr, before.len, element.ptr, element.len) >= 0)
            return false;
        before = element;
        at += head + element_len;
    }
    return at == len && count > 0;
}

static bool valid_members(const uint8_t *p, size_t len, bool named, uint32_t count, int depth)
{
    struct hf_str before = {NULL, 0};
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        size_t used;

        if (named) {
            struct hf_str name;

            if (len - at < 2 || load_u16le(p + at) > len - at - 2)
                return false;
            name = hf_str_of((const char *)p + at + 2, load_u16le(p + at));
            if (i > 0 && bytes_compare(before.ptr, before.len, name.ptr, name.len) >= 0)
                return false;
            before = name;
            at += 2 + name.len;
        }
        used = valid_value(p + at, len - at, depth);
        if (used == 0)
            return false;
        at += used;
    }
    return at == len;
}

static size_t valid_container(const uint8_t *p, size_t len, int depth)
{
    enum hf_type type = (enum hf_type)p[0];
    uint32_t body;
    uint32_t count;

    if (len < VALUE_HEAD)
        return 0;
    body = load_u32le(p + 1);
    if (body < 4 || body > len - 5)
        return 0;
    count = load_u32le(p + 5);
    if (type == HF_TYPE_L || type == HF_TYPE_M) {
        if (!valid_members(p + VALUE_HEAD, body - 4, type == HF_TYPE_M, count, depth + 1))
            return 0;
    } else if (!valid_elements(p + VALUE_HEAD, body - 4, type, count)) {
        return 0;
    }
    return 5 + (size_t)body;
}

/* How many bytes the valid value at `p` takes, at most `len`; 0 when it is not valid. */
static size_t valid_value(const uint8_t *p, size_t len, int depth)
{
    uint32_t text;
    size_t head;

    if (len == 0 || depth > VALUE_DEPTH_MAX + 1) /* the item's own M is no level */
        return 0;
    switch ((enum hf_type)p[0]) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        head = valid_leb(p + 1, len - 1, &text);
        return head ? 1 + head + text : 0;
    case HF_TYPE_N:
        if (len < 2 || p[1] > len - 2u || hf__number_length(p + 2, p[1]) != p[1])
            return 0;
        return 2u + p[1];
    case HF_TYPE_BOOL:
        return len >= 2 && p[1] <= 1 ? 2 : 0;
    case HF_TYPE_NULL:
        return 1;
    case HF_TYPE_M:
    case HF_TYPE_L:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return valid_container(p, len, depth);
    case HF_TYPE_NONE:
        break;
    }
    return 0;
}

bool hf__value_valid(const uint8_t *bytes, size_t len)
{
    return len > 0 && valid_value(bytes, len, 1) == len;
}

bool hf__item_valid(const uint8_t *bytes, size_t len)
{
    return len > 0 && bytes[0] == HF_TYPE_M && valid_value(bytes, len, 0) == len;
}
