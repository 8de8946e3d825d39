/*
 * wire/poison.c: why a request cannot be written: the first poisoned item or value in it, in the
 * order of the tables. Only asked when writing failed, so it need not be fast.
 */
#include "wire/private.h"

static struct hf_item poison_of_item(struct hf_item item)
{
    return hf__item_poisoned(item) ? item : (struct hf_item){NULL, 0};
}

static struct hf_item poison_of_value(struct hf_value value)
{
    return hf__value_poisoned(value) ? (struct hf_item){value.ptr, value.len}
                                     : (struct hf_item){NULL, 0};
}

static struct hf_item poison_of_element(const struct field *field, const uint8_t *list, size_t i)
{
    assert(list);
    switch (field->kind) {
    case FIELD_ITEMS:
        return poison_of_item(((const struct hf_item *)(const void *)list)[i]);
    case FIELD_VALUES:
        return poison_of_value(((const struct hf_value *)(const void *)list)[i]);
    case FIELD_STRUCTS:
    case FIELD_MAP:
        return hf__wire_poison(field->sub, list + i * field->sub->size);
    default:
        return (struct hf_item){NULL, 0};
    }
}

static struct hf_item poison_of_field(const struct field *field, const uint8_t *in)
{
    const void *at = in + field->at;
    struct hf_item found = {NULL, 0};
    const uint8_t *list;
    size_t count = 0;

    assert(in);
    switch (field->kind) {
    case FIELD_ITEM:
    case FIELD_NAMES:
        return poison_of_item(*(const struct hf_item *)at);
    case FIELD_VALUE:
        return poison_of_value(*(const struct hf_value *)at);
    case FIELD_STRUCT:
        memcpy(&list, at, sizeof(list));
        return list ? hf__wire_poison(field->sub, list) : found;
    case FIELD_ITEMS:
    case FIELD_VALUES:
    case FIELD_STRUCTS:
    case FIELD_MAP:
        memcpy(&list, at, sizeof(list));
        if (list)
            memcpy(&count, in + field->count_at, sizeof(count));
        for (size_t i = 0; i < count && !found.ptr; i++)
            found = poison_of_element(field, list, i);
        return found;
    default:
        return found;
    }
}

struct hf_item hf__wire_poison(const struct fields *fields, const void *in)
{
    struct hf_item found = {NULL, 0};

    assert(in && (fields->list || !fields->len));
    for (size_t i = 0; i < fields->len && !found.ptr; i++)
        found = poison_of_field(&fields->list[i], in);
    return found;
}
