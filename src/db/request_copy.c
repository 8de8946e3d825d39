/*
 * db/request_copy.c: copy a request with all that it points to, by its table of fields.
 *
 * Depth is that of the tables, which are ours and do not recurse.
 */
#include "db/request_copy.h"

#include "model/value.h"

/* A struct hf_str, hf_item or hf_value: all are a pointer and a length. What is absent stays so. */
static enum hf_status copy_text(struct hf_scope *s, const void *from, void *to)
{
    struct hf_item item;
    struct hf_str copy;

    memcpy(&item, from, sizeof(item));
    if (hf__item_poisoned(item)) {
        const struct poison *poison = hf__item_poison(item);

        return hf__fail_text(s, poison->status, hf_scope_copy(s, poison->message));
    }
    if (!item.ptr)
        return HF_OK;
    copy = hf_scope_copy(s, hf_str_of((const char *)item.ptr, item.len));
    if (!copy.ptr)
        return hf__fail_nomem(s);
    memcpy(to, &copy, sizeof(copy));
    return HF_OK;
}

_Static_assert(sizeof(struct hf_str) == sizeof(struct hf_item), "a pointer and a length");
_Static_assert(sizeof(struct hf_str) == sizeof(struct hf_value), "a pointer and a length");

static enum hf_status copy_list(struct hf_scope *s, const struct field *field, const char *from,
                                char *to)
{
    const char *list;
    char *copy;
    size_t len, size;
    bool texts =
        field->kind == FIELD_STRS || field->kind == FIELD_ITEMS || field->kind == FIELD_VALUES;

    memcpy(&list, from + field->at, sizeof(list));
    memcpy(&len, from + field->count_at, sizeof(len));
    if (!list)
        return HF_OK;
    size = field_element_size(field);
    copy = hf__scope_array(s, len, size);
    if (!copy)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        const char *element = list + i * size;

        if (texts)
            TRY(copy_text(s, element, copy + i * size));
        else if (field->kind == FIELD_DOUBLES)
            memcpy(copy + i * size, element, size);
        else
            TRY(hf__request_copy(s, field->sub, element, copy + i * size));
        if (field->kind == FIELD_MAP) /* its key is not among the fields */
            TRY(copy_text(s, element, copy + i * size));
    }
    memcpy(to + field->at, &copy, sizeof(copy));
    return HF_OK;
}

static enum hf_status copy_pointer(struct hf_scope *s, const struct field *field, const char *from,
                                   char *to)
{
    const char *one;
    char *copy;

    memcpy(&one, from + field->at, sizeof(one));
    if (!one)
        return HF_OK;
    copy = hf_scope_alloc(s, field->sub->size);
    if (!copy)
        return hf__fail_nomem(s);
    TRY(hf__request_copy(s, field->sub, one, copy));
    memcpy(to + field->at, &copy, sizeof(copy));
    return HF_OK;
}

static enum hf_status copy_field(struct hf_scope *s, const struct field *field, const char *from,
                                 char *to)
{
    switch (field->kind) {
    case FIELD_STR:
    case FIELD_ITEM:
    case FIELD_NAMES:
    case FIELD_VALUE:
        return copy_text(s, from + field->at, to + field->at);
    case FIELD_STRUCT:
        return copy_pointer(s, field, from, to);
    case FIELD_STRS:
    case FIELD_DOUBLES:
    case FIELD_ITEMS:
    case FIELD_VALUES:
    case FIELD_STRUCTS:
    case FIELD_MAP:
        return copy_list(s, field, from, to);
    default:
        return HF_OK; /* a number: there already */
    }
}

enum hf_status hf__request_copy(struct hf_scope *s, const struct fields *fields, const void *from,
                                void *to)
{
    memcpy(to, from, fields->size);
    for (size_t i = 0; i < fields->len; i++)
        TRY(copy_field(s, &fields->list[i], from, to));
    return HF_OK;
}
