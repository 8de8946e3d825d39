/*
 * ops/values.c: checks of the items, keys and values in a request.
 *
 * A value that the decoder or HF_ITEM() could not build arrives as poison, with DynamoDB's message
 * in it. A value that was built may still be nested too deeply, or have an attribute without a
 * name.
 */
#include "ops/private.h"

#define START_INVALID "The provided starting key is invalid: "
#define TOO_DEEP                                                                                   \
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "    \
    "beyond supported limit"

_Static_assert(VALUE_DEPTH_MAX > 0 && VALUE_DEPTH_MAX < 1000, "the recursion is as deep as that");

/* One walk finds both; the recursion ends at VALUE_DEPTH_MAX. */
static enum hf_status check_part(struct hf_scope *s, struct hf_value value, int level)
{
    enum hf_type type = hf_value_type(value);
    struct value_walk walk;

    assert(value.ptr && level >= 0 && level <= VALUE_DEPTH_MAX + 1);
    if (level > VALUE_DEPTH_MAX)
        return hf__fail(s, HF_INVALID, TOO_DEEP);
    if (type != HF_TYPE_M && type != HF_TYPE_L)
        return HF_OK;
    walk = hf__value_walk(value);
    while (hf__value_next(&walk)) {
        if (type == HF_TYPE_M && walk.name.len == 0)
            return hf__fail(s, HF_INVALID, "Empty attribute name");
        if (level == VALUE_DEPTH_MAX || walk.value.ptr[0] == HF_TYPE_M ||
            walk.value.ptr[0] == HF_TYPE_L) /* a scalar or a set can only be too deep */
            TRY(check_part(s, walk.value, level + 1));
    }
    return HF_OK;
}

static enum hf_status fail_poison(struct hf_scope *s, enum hf_op op, const struct poison *poison)
{
    assert(poison->status != HF_OK);
    return hf__fail_text(s, poison->status, hf__poison_text(s, op, poison));
}

enum hf_status hf__check_item(struct hf_scope *s, enum hf_op op, struct hf_item item)
{
    if (hf__item_poisoned(item))
        return fail_poison(s, op, hf__item_poison(item));
    return item.ptr ? check_part(s, hf_item_value(item), 0) : HF_OK; /* the item is level 0 */
}

enum hf_status hf__check_value(struct hf_scope *s, enum hf_op op, struct hf_value value)
{
    if (hf__value_poisoned(value))
        return fail_poison(s, op, hf__item_poison(hf_value_item(value)));
    return value.ptr ? check_part(s, value, 1) : HF_OK;
}

static bool text_contains(struct hf_str text, struct hf_str part)
{
    assert(part.len > 0);
    return memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

enum hf_status hf__check_start(struct hf_scope *s, enum hf_op op, struct hf_item start)
{
    enum hf_status status = hf__check_item(s, op, start);
    struct hf_str message = hf_scope_error(s)->message;

    /* Errors of numbers and of repeats come from a layer below, which knows no starting key. */
    if (status != HF_INVALID || text_contains(message, HF_STR("contains duplicates")) ||
        text_contains(message, HF_STR("number set")) ||
        text_contains(message, HF_STR("numeric value")) ||
        text_contains(message, HF_STR("significant digits")) ||
        text_contains(message, HF_STR("number with magnitude")))
        return status;
    return hf__fail(s, HF_INVALID, START_INVALID "%.*s", HF_FMT(message));
}

enum hf_status hf__check_item_size(struct hf_scope *s, struct hf_item item, size_t *size)
{
    assert(item.ptr && !hf__item_poisoned(item)); /* hf__check_item() was before */
    *size = hf_item_size(item);
    if (*size > ITEM_SIZE_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ITEM_SIZE_MAX, *size),
                                   "Item size has exceeded the maximum allowed size");
    return HF_OK;
}

/* ---- repeats -------------------------------------------------------------------------------- */

/* By text, then by place, so that of equal strings the later follows the earlier. */
static int str_order(const void *a, const void *b)
{
    const struct hf_str *x = *(const struct hf_str *const *)a;
    const struct hf_str *y = *(const struct hf_str *const *)b;
    int order = bytes_compare(x->ptr, x->len, y->ptr, y->len);

    return order ? order : (x > y) - (x < y);
}

enum hf_status hf__find_repeat(struct hf_scope *s, const void *first, size_t stride, size_t len,
                               const struct hf_str **repeat)
{
    const struct hf_str **sorted;

    assert(stride >= sizeof(struct hf_str) && (first || !len));
    *repeat = NULL;
    if (len < 2)
        return HF_OK;
    sorted = hf__scope_array(s, len, sizeof(*sorted));
    if (!sorted)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        sorted[i] = (const struct hf_str *)(const void *)((const uint8_t *)first + i * stride);
    qsort(sorted, len, sizeof(*sorted), str_order);
    for (size_t i = 1; i < len; i++)
        assert(str_order(&sorted[i - 1], &sorted[i]) < 0); /* no two are in one place */
    for (size_t i = 1; i < len; i++)
        if (hf_str_equal(*sorted[i - 1], *sorted[i]) && (!*repeat || sorted[i] < *repeat))
            *repeat = sorted[i];
    return HF_OK;
}
