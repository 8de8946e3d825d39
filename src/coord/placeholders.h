/*
 * coord/placeholders.h: the placeholders of one request. A name's placeholder is the name itself with
 * '#' before it, so that expressions read as they would without.
 */
#ifndef HF_COORD_PLACEHOLDERS_H
#define HF_COORD_PLACEHOLDERS_H

#include "coord/names.h"

enum { HOLDERS_MAX = 20 };

struct holders {
    struct hf_scope *s;
    struct hf_attr names[HOLDERS_MAX], values[HOLDERS_MAX];
    size_t names_len, values_len;
    const struct pattern_at
        *at; /* of an outbox: what #pk, #sk and #ttl are called; NULL: just so */
};

static inline void holders_name(struct holders *h, struct hf_str placeholder, struct hf_str name)
{
    assert(h->names_len < HOLDERS_MAX);
    h->names[h->names_len++] =
        (struct hf_attr){.name = placeholder, .type = HF_TYPE_S, .text = name};
}

static inline struct hf_str holders_called(const struct holders *h, struct hf_str name)
{
    return !h->at                              ? name
           : hf_str_equal(name, HF_STR("pk"))  ? h->at->hash
           : hf_str_equal(name, HF_STR("sk"))  ? h->at->sort
           : hf_str_equal(name, HF_STR("ttl")) ? h->at->expires
                                               : name;
}

static inline void holders_names(struct holders *h, const char *const *names)
{
    for (; *names; names++)
        holders_name(h, hf_str_from(*names), holders_called(h, hf_str_from(*names + 1)));
}

static inline void holders_value(struct holders *h, struct hf_attr value)
{
    assert(h->values_len < HOLDERS_MAX);
    h->values[h->values_len++] = value;
}

#define NAMES(h, ...) holders_names((h), (const char *const[]){__VA_ARGS__, NULL})
#define VALUE(h, ...) holders_value((h), (struct hf_attr)__VA_ARGS__)

#endif
