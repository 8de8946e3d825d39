/*
 * Attribute values and items: DynamoDB's ten types, in a flat form that is read in place.
 *
 * An item, or a value, is a pointer to bytes that nobody changes after they are made; copying the
 * struct copies nothing else. The form is canonical (numbers normalised, sets and maps sorted), so
 * two values are equal exactly when their bytes are.
 *
 *     struct hf_item user = HF_ITEM(s, HF_S("id", HF_STR("ann")), HF_N("visits", 1),
 *                                   HF_L("tags", HF_LIST(s, HF_S("", new_tag), HF_S("", eu))));
 *     struct hf_str id = hf_value_str(hf_item_get(user, HF_STR("id")));
 *
 * Building never fails by itself: a failed allocation, a bad number, an empty set or a string that
 * is not UTF-8 is remembered in the item, and the first call that uses it returns the error.
 */
#ifndef HOLDFAST_ITEM_H
#define HOLDFAST_ITEM_H

#include <holdfast/base.h>

#ifdef __cplusplus
#include <initializer_list>

extern "C" {
#endif

struct hf_scope;

enum hf_type {
    HF_TYPE_NONE = 0, /* no value there */
    HF_TYPE_S = 1,
    HF_TYPE_N = 2,
    HF_TYPE_B = 3,
    HF_TYPE_BOOL = 4,
    HF_TYPE_NULL = 5,
    HF_TYPE_M = 6,
    HF_TYPE_L = 7,
    HF_TYPE_SS = 8,
    HF_TYPE_NS = 9,
    HF_TYPE_BS = 10
};

/* One value. ptr is NULL when there is none. The bytes are holdfast's own affair. */
struct hf_value {
    const uint8_t *ptr;
    size_t len;
};

enum { HF_ITEM_SIZE_MAX = 400 * 1024 }; /* bytes of an item, as hf_item_size() counts them */

/* Attributes by name; ptr is NULL when there is no item. */
struct hf_item {
    const uint8_t *ptr;
    size_t len;
};

/* ---- reading -------------------------------------------------------------------------------- */

/* HF_TYPE_NONE when there is no value. */
HF_API enum hf_type hf_value_type(struct hf_value value);

/* The text of an S; absent forevery other type. */
HF_API struct hf_str hf_value_str(struct hf_value value);

/* The bytes of a B; absent forevery other type. */
HF_API struct hf_bytes hf_value_bytes(struct hf_value value);

/* The canonical text of an N, in the scope; absent forevery other type. */
HF_API struct hf_str hf_value_number(struct hf_scope *s, struct hf_value value);

/* True and *out when the value is an N that is a whole number of 64 bits. */
HF_API bool hf_value_i64(struct hf_value value, int64_t *out);

/*
 * True and *out, the double nearest to it, when the value is an N. What HF_F() has stored comes
 * back as the same double.
 */
HF_API bool hf_value_f64(struct hf_value value, double *out);

/* True when the value is a BOOL that is true. */
HF_API bool hf_value_true(struct hf_value value);

/* How many elements an L, M, SS, NS or BS has; 0 forevery other type. */
HF_API size_t hf_value_count(struct hf_value value);

/* Element `index` of an L or a set (as S, N or B); none when out of range. */
HF_API struct hf_value hf_value_at(struct hf_scope *s, struct hf_value value, size_t index);

/*
 * Walk an L or a set, whose elements are as S, N or B; hf_value_at() of each would begin from the
 * start each time:
 *
 *     struct hf_value tags = hf_item_get(item, HF_STR("tags"));
 *     struct hf_value_walk walk = {0};
 *     while (hf_value_next(s, tags, &walk))
 *         use(HF_STR("element"), walk.value);
 */
struct hf_value_walk {
    struct hf_value value;
    size_t index; /* of the value */
    size_t next;  /* holdfast's own */
};
HF_API bool hf_value_next(struct hf_scope *s, struct hf_value value, struct hf_value_walk *walk);

/* The attribute `name` of an item, or the member of an M; none when it is missing. */
HF_API struct hf_value hf_item_get(struct hf_item item, struct hf_str name);
HF_API struct hf_value hf_value_get(struct hf_value map, struct hf_str name);

/* An M as an item, and an item as an M. */
HF_API struct hf_item hf_value_item(struct hf_value map);
HF_API struct hf_value hf_item_value(struct hf_item item);

/* How many attributes there are; 0 when there is no item. */
HF_API size_t hf_item_count(struct hf_item item);

/*
 * Walk an item in the order of names:
 *
 *     struct hf_item_walk walk = {0};
 *     while (hf_item_next(item, &walk))
 *         use(walk.name, walk.value);
 */
struct hf_item_walk {
    struct hf_str name;
    struct hf_value value;
    size_t next; /* holdfast's own */
};
HF_API bool hf_item_next(struct hf_item item, struct hf_item_walk *walk);

/* Equal as DynamoDB judges it: numbers by value, sets and maps in any order. */
HF_API bool hf_value_equal(struct hf_value a, struct hf_value b);
HF_API bool hf_item_equal(struct hf_item a, struct hf_item b);

/* The size that DynamoDB counts against its limit of 400 KB. */
HF_API size_t hf_item_size(struct hf_item item);

/* ---- building ------------------------------------------------------------------------------- */

/* What HF_ITEM() and HF_LIST() are made of; use the macros. */
struct hf_attr {
    struct hf_str name;
    enum hf_type type;
    struct hf_str text;        /* S, B, and N when number is not used */
    int64_t number;            /* N, when text is absent; BOOL */
    struct hf_value value;     /* a ready value, when type is HF_TYPE_NONE */
    const struct hf_str *list; /* SS, NS, BS */
    size_t list_len;
    double real; /* N, when is_real */
    bool is_real;
};

/*
 * Strings, whole numbers, doubles, numbers as text, bytes, truth, null, and any ready value. The
 * strings of HF_SS(), HF_NS() and HF_BS() are an array of struct hf_str: texts, numbers as text,
 * bytes; what comes twice counts once.
 *
 * HF_N() takes integers of at most 64 bits with a sign; with a double it does not compile. HF_F()
 * stores a double as the shortest decimal that reads back as the same one, so 9.99 is 9.99; NaN,
 * the infinities and what DynamoDB's numbers cannot hold are errors. HF_NUM() is for all 38 digits.
 *
 * The names are literals. For a name that is known at run time there are hf_attr_of() and its
 * siblings below, in C and in C++: HF_ITEM(s, HF_S("id", id), hf_attr_of_str(name, text)).
 */
#ifndef __cplusplus
#define HF_S(attr_name, str)                                                                       \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_S, .text = (str)                                \
    }
#define HF_N(attr_name, whole)                                                                     \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_N, .number = (int64_t)((whole) | 0)             \
    }
#define HF_F(attr_name, fraction)                                                                  \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_N, .real = (fraction), .is_real = true          \
    }
#define HF_NUM(attr_name, str)                                                                     \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_N, .text = (str)                                \
    }
#define HF_B(attr_name, bytes)                                                                     \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_B, .text = {                                    \
            (const char *)(bytes).ptr,                                                             \
            (bytes).len                                                                            \
        }                                                                                          \
    }
#define HF_BOOL(attr_name, truth)                                                                  \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_BOOL, .number = (truth) ? 1 : 0                 \
    }
#define HF_NULL(attr_name)                                                                         \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_NULL                                            \
    }
#define HF_V(attr_name, ready)                                                                     \
    {                                                                                              \
        .name = HF_STR(attr_name), .value = (ready)                                                \
    }
#define HF_M(attr_name, item)                                                                      \
    {                                                                                              \
        .name = HF_STR(attr_name), .value = hf_item_value(item)                                    \
    }
#define HF_SS(attr_name, strs, count)                                                              \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_SS, .list = (strs), .list_len = (count)         \
    }
#define HF_NS(attr_name, strs, count)                                                              \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_NS, .list = (strs), .list_len = (count)         \
    }
#define HF_BS(attr_name, strs, count)                                                              \
    {                                                                                              \
        .name = HF_STR(attr_name), .type = HF_TYPE_BS, .list = (strs), .list_len = (count)         \
    }
#else
#define HF_S(attr_name, str) hf_attr_of(HF_STR(attr_name), HF_TYPE_S, (str), 0)
#define HF_N(attr_name, whole)                                                                     \
    hf_attr_of(HF_STR(attr_name), HF_TYPE_N, hf_str_of(NULL, 0), (int64_t)((whole) | 0))
#define HF_F(attr_name, fraction) hf_attr_of_f64(HF_STR(attr_name), (fraction))
#define HF_NUM(attr_name, str) hf_attr_of(HF_STR(attr_name), HF_TYPE_N, (str), 0)
#define HF_B(attr_name, bytes)                                                                     \
    hf_attr_of(HF_STR(attr_name), HF_TYPE_B, hf_str_of((const char *)(bytes).ptr, (bytes).len), 0)
#define HF_BOOL(attr_name, truth)                                                                  \
    hf_attr_of(HF_STR(attr_name), HF_TYPE_BOOL, hf_str_of(NULL, 0), (truth) ? 1 : 0)
#define HF_NULL(attr_name) hf_attr_of(HF_STR(attr_name), HF_TYPE_NULL, hf_str_of(NULL, 0), 0)
#define HF_V(attr_name, ready) hf_attr_of_value(HF_STR(attr_name), (ready))
#define HF_M(attr_name, item) HF_V(attr_name, hf_item_value(item))
#define HF_SS(attr_name, strs, count) hf_attr_of_set(HF_STR(attr_name), HF_TYPE_SS, (strs), (count))
#define HF_NS(attr_name, strs, count) hf_attr_of_set(HF_STR(attr_name), HF_TYPE_NS, (strs), (count))
#define HF_BS(attr_name, strs, count) hf_attr_of_set(HF_STR(attr_name), HF_TYPE_BS, (strs), (count))
#endif
#define HF_L(attr_name, ready) HF_V(attr_name, ready)

/*
 * An attribute whose name is known at run time only, with a text, a number, a ready value, or a
 * set: what the macros make of literals. hf_attr_of() is for S, N, B and BOOL: `text` is for S, B
 * and N, `number` for an N without a text and for a BOOL.
 */
static inline struct hf_attr hf_attr_of(struct hf_str name, enum hf_type type, struct hf_str text,
                                        int64_t number)
{
    struct hf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.name = name;
    attr.type = type;
    attr.text = text;
    attr.number = number;
    return attr;
}

static inline struct hf_attr hf_attr_of_str(struct hf_str name, struct hf_str text)
{
    return hf_attr_of(name, HF_TYPE_S, text, 0);
}

static inline struct hf_attr hf_attr_of_i64(struct hf_str name, int64_t whole)
{
    return hf_attr_of(name, HF_TYPE_N, hf_str_of(NULL, 0), whole);
}

static inline struct hf_attr hf_attr_of_f64(struct hf_str name, double fraction)
{
    struct hf_attr attr = hf_attr_of(name, HF_TYPE_N, hf_str_of(NULL, 0), 0);

    attr.real = fraction;
    attr.is_real = true;
    return attr;
}

static inline struct hf_attr hf_attr_of_value(struct hf_str name, struct hf_value value)
{
    struct hf_attr attr = hf_attr_of(name, HF_TYPE_NONE, hf_str_of(NULL, 0), 0);

    attr.value = value;
    return attr;
}

static inline struct hf_attr hf_attr_of_set(struct hf_str name, enum hf_type type,
                                            const struct hf_str *list, size_t list_len)
{
    struct hf_attr attr = hf_attr_of(name, type, hf_str_of(NULL, 0), 0);

    attr.list = list;
    attr.list_len = list_len;
    return attr;
}

/*
 * HF_ITEM(s, HF_S(...), ...) is an item in the scope; a name that comes twice keeps its last value.
 * HF_LIST(s, HF_S("", x), ...) is an L in the scope; its elements have empty names. In C++ they
 * need C++11.
 */
#ifndef __cplusplus
#define HF_ATTR_COUNT(...) (sizeof((const struct hf_attr[]){__VA_ARGS__}) / sizeof(struct hf_attr))
#define HF_ITEM(s, ...)                                                                            \
    hf_item_make((s), (const struct hf_attr[]){__VA_ARGS__}, HF_ATTR_COUNT(__VA_ARGS__))
#define HF_LIST(s, ...)                                                                            \
    hf_list_make((s), (const struct hf_attr[]){__VA_ARGS__}, HF_ATTR_COUNT(__VA_ARGS__))
#else
#define HF_ITEM(s, ...) hf_item_of((s), {__VA_ARGS__})
#define HF_LIST(s, ...) hf_list_of((s), {__VA_ARGS__})
#endif

/* What the two are made of: `count` attributes in a row. */
HF_API struct hf_item hf_item_make(struct hf_scope *s, const struct hf_attr *attrs, size_t count);
HF_API struct hf_value hf_list_make(struct hf_scope *s, const struct hf_attr *attrs, size_t count);

/* One value in the scope. */
HF_API struct hf_value hf_value_make(struct hf_scope *s, struct hf_attr attr);

/* `item` with `attrs` set over it, as a new item; `item` may be absent. */
HF_API struct hf_item hf_item_with(struct hf_scope *s, struct hf_item item,
                                   const struct hf_attr *attrs, size_t count);

/* A copy that lives in the scope. */
HF_API struct hf_item hf_item_copy(struct hf_scope *s, struct hf_item item);

/* HF_OK, or the error that was remembered while the item was built. */
HF_API HF_NODISCARD enum hf_status hf_item_check(struct hf_scope *s, struct hf_item item);

/*
 * Items as DynamoDB's JSON, {"id":{"S":"ann"}}, both ways. The text ends with a NUL, and is absent
 * when there is no item or no memory. HF_SERIALIZATION when it is not such JSON.
 */
HF_API HF_NODISCARD enum hf_status hf_item_from_json(struct hf_scope *s, struct hf_str json,
                                                     struct hf_item *item);
HF_API struct hf_str hf_item_to_json(struct hf_scope *s, struct hf_item item);

#ifdef __cplusplus
}

/* What HF_ITEM() and HF_LIST() are in C++, which has no arrays without a name. */
inline struct hf_item hf_item_of(struct hf_scope *s, std::initializer_list<struct hf_attr> attrs)
{
    return hf_item_make(s, attrs.begin(), attrs.size());
}

inline struct hf_value hf_list_of(struct hf_scope *s, std::initializer_list<struct hf_attr> attrs)
{
    return hf_list_make(s, attrs.begin(), attrs.size());
}
#endif

#endif
