/*
 * model/value.h: the flat form of attribute values and items, how it is built and how it is walked.
 *
 * A value is a type byte (enum hf_type) and its payload:
 *
 *     S, B        length as LEB128 of at most 5 bytes, bytes
 *     N           length as one byte, the bytes of model/number.h
 *     BOOL        one byte, 0 or 1
 *     NULL        nothing
 *     L           u32le length of what follows, u32le count, the values
 *     M           u32le length, u32le count, the members: u16le name length, name, value
 *     SS, BS      u32le length, u32le count, the elements: LEB128 length, bytes
 *     NS          u32le length, u32le count, the elements: length as one byte, bytes
 *
 * ("length of what follows" counts the count field too.) An item is an M.
 *
 * What always holds:
 *
 *  (1) Members of an M are in the order of their names' bytes and no name comes twice; elements of
 *      a set are in the order of their bytes and none comes twice; numbers are canonical. So equal
 *      values have equal bytes.
 *  (2) A set is never empty. An S, a B, an L and an M may be.
 *  (3) Nesting is at most VALUE_DEPTH_MAX, so walking may recurse.
 *
 * An item or value that could not be built is "poisoned": its len is SIZE_MAX and its ptr is a
 * struct poison with the error. hf_item_check() turns it into the scope's error.
 */
#ifndef HF_MODEL_VALUE_H
#define HF_MODEL_VALUE_H

#include <holdfast/item.h>

#include "base/buf.h"
#include "model/number.h"

enum {
    VALUE_DEPTH_MAX = 32,  /* levels, the attribute itself being the first */
    VALUE_HEAD = 9,        /* type, length, count of a container */
    ATTR_NAME_MAX = 65535, /* bytes */
    ITEM_SIZE_MAX = HF_ITEM_SIZE_MAX,
    KEY_HASH_MAX = 2048, /* bytes of a partition key value */
    KEY_RANGE_MAX = 1024 /* bytes of a sort key value */
};

/* ---- poison --------------------------------------------------------------------------------- */

struct poison {
    enum hf_status status;
    struct hf_str message;
    struct hf_str key;   /* the top-level attribute it was found in; absent when unknown */
    struct hf_str newer; /* the message of DynamoDB's 2026 layer; absent when it is the same */
    struct hf_item rest; /* the item with something valid in place of the error; absent: unknown */
};

static inline bool hf__item_poisoned(struct hf_item item)
{
    return item.len == SIZE_MAX;
}

static inline bool hf__value_poisoned(struct hf_value value)
{
    return value.len == SIZE_MAX;
}

static inline const struct poison *hf__item_poison(struct hf_item item)
{
    return (const struct poison *)(const void *)item.ptr;
}

/* A poisoned item; the texts are borrowed. */
struct hf_item hf__item_poison_of(struct hf_scope *s, const struct poison *poison);
struct hf_item hf__item_poison_new(struct hf_scope *s, enum hf_status status, struct hf_str message,
                                   struct hf_str key);

/* ---- reading -------------------------------------------------------------------------------- */

/* Bytes that the value at `p` takes; the bytes are trusted (they were checked, or built here). */
size_t hf__value_length_slow(const uint8_t *p);

static inline size_t hf__value_length(const uint8_t *p)
{
    if (p[0] >= HF_TYPE_S && p[0] <= HF_TYPE_B && p[1] < 0x80) /* a short S, N or B: most are */
        return 2u + p[1];
    return hf__value_length_slow(p);
}

/* The payload of an S, N or B. */
struct hf_bytes hf__value_scalar(struct hf_value value);

/* Walking the elements of an L or of a set, or the members of an M. */
struct value_walk {
    const uint8_t *at;
    uint32_t left;
    enum hf_type type;      /* of the container */
    struct hf_str name;     /* of the member, in an M */
    struct hf_value value;  /* the element: whole value in L and M */
    struct hf_bytes scalar; /* the element of a set: bytes only */
};
struct value_walk hf__value_walk(struct hf_value container);
bool hf__value_next_slow(struct value_walk *walk);

static inline bool hf__value_next(struct value_walk *walk)
{
    if (walk->left == 0)
        return false;
    if (walk->type != HF_TYPE_M) /* members are what is walked most */
        return hf__value_next_slow(walk);
    walk->left--;
    walk->name = hf_str_of((const char *)walk->at + 2, load_u16le(walk->at));
    walk->at += 2 + walk->name.len;
    walk->value = (struct hf_value){walk->at, hf__value_length(walk->at)};
    walk->at += walk->value.len;
    return true;
}

/* Is `bytes` an element of the set (of SS, NS or BS)? */
bool hf__set_has(struct hf_value set, struct hf_bytes bytes);

/* As DynamoDB counts it, without any name. */
size_t hf__value_size(struct hf_value value);

/* Levels of nesting: 1 for a scalar or a set, 2 for a list of scalars. */
int hf__value_depth(struct hf_value value);

/* Order of two values of one type S, N or B. */
int hf__value_compare(struct hf_value a, struct hf_value b);

/* "S", "NS", ..., and back; HF_TYPE_NONE for no such type. */
const char *hf__type_name(enum hf_type type);
enum hf_type hf__type_of_name(struct hf_str name);

/* Is what lies at `bytes` one whole, well-formed, canonical value? For bytes from outside. */
bool hf__value_valid(const uint8_t *bytes, size_t len);
bool hf__item_valid(const uint8_t *bytes, size_t len);

/* ---- building ------------------------------------------------------------------------------- */

/*
 * Values are appended to a buffer; a container is opened, filled, and closed:
 *
 *     size_t map = hf__build_open(&buf, HF_TYPE_M);
 *     hf__build_name(&buf, HF_STR("id"));
 *     hf__build_str(&buf, HF_TYPE_S, id);
 *     hf__build_close(&buf, map);
 *
 * Closing counts the elements, sorts those of sets and maps, and fills in the lengths. A name that
 * comes twice in a map keeps its last value; an element that comes twice in a set is reported.
 */
size_t hf__build_open(struct hf__buf *buf, enum hf_type type);

enum build_result { BUILD_OK, BUILD_EMPTY_SET, BUILD_DUPLICATE };
enum build_result hf__build_close(struct hf__buf *buf, size_t open);

/* The same; of a set with duplicates *repeat is the place of the first element that came twice, in
 * the order and without the repeats that the set has then. */
enum build_result hf__build_close_set(struct hf__buf *buf, size_t open, size_t *repeat);

void hf__build_name(struct hf__buf *buf, struct hf_str name); /* before a member */
void hf__build_str(struct hf__buf *buf, enum hf_type type, struct hf_str bytes); /* S, B */
void hf__build_number(struct hf__buf *buf, const uint8_t *bytes, size_t len);
void hf__build_bool(struct hf__buf *buf, bool truth);
void hf__build_null(struct hf__buf *buf);
void hf__build_value(struct hf__buf *buf, struct hf_value value);                     /* a copy */
void hf__build_element(struct hf__buf *buf, enum hf_type set, struct hf_bytes bytes); /* of a set */

/* What was built since `from`; poisoned when the buffer ran out of memory. */
struct hf_value hf__build_value_from(struct hf__buf *buf, size_t from);
struct hf_item hf__build_item_from(struct hf__buf *buf, size_t from);

#endif
