/*
 * wire/encode.c: the walker that writes the structs of <holdfast/db.h> as JSON by their tables.
 *
 * Members come in the order of the table. An absent one is left out, unless the table says that a
 * response always has it; then it is empty or zero.
 *
 * With a frame, large items are left out, and noted: the sender of the JSON writes them when the
 * time has come, one by one, so that it never is in memory as a whole.
 */
#include "wire/private.h"

#include "base/assert_held.h"

static void write_struct(struct hf__buf *buf, const struct fields *fields, const uint8_t *in,
                         struct wire_frame *frame);

enum { MICROS = 1000000, MICRO_DIGITS = 6 };

/* Seconds, with as many decimals as it needs. */
static void write_time(struct hf__buf *buf, int64_t us)
{
    int64_t seconds = us / MICROS;
    int64_t rest = us % MICROS;
    char decimals[1 + MICRO_DIGITS] = ".";
    size_t len = sizeof(decimals);

    if (us < 0 && seconds == 0)
        hf__buf_put_byte(buf, '-');
    hf__wire_write_int(buf, seconds);
    if (rest == 0)
        return;
    rest = rest < 0 ? -rest : rest;
    assert(rest < MICROS);
    for (size_t i = MICRO_DIGITS; i > 0; i--, rest /= 10)
        decimals[i] = (char)('0' + rest % 10);
    while (decimals[len - 1] == '0')
        len--;
    hf__buf_put(buf, decimals, len);
}

/* ---- what is where in a struct -------------------------------------------------------------- */

static const void *pointer_at(const uint8_t *in, const struct field *field)
{
    const void *ptr;

    memcpy(&ptr, in + field->at, sizeof(ptr));
    return ptr;
}

static size_t count_at(const uint8_t *in, const struct field *field)
{
    size_t count;

    assert(field->kind >= FIELD_STRS);
    memcpy(&count, in + field->count_at, sizeof(count));
    return count;
}

static int64_t int_at(const uint8_t *in, const struct field *field)
{
    int64_t value;

    memcpy(&value, in + field->at, sizeof(value));
    return value;
}

static int enum_at(const uint8_t *in, const struct field *field)
{
    int value;

    memcpy(&value, in + field->at, sizeof(value));
    return value;
}

static double double_at(const uint8_t *in, const struct field *field)
{
    double value;

    memcpy(&value, in + field->at, sizeof(value));
    return value;
}

/* Is there nothing to write? Pointers come first in strings, items and values too. */
static bool is_absent(const uint8_t *in, const struct field *field)
{
    switch (field->kind) {
    case FIELD_INT:
    case FIELD_TIME:
        return int_at(in, field) == 0;
    case FIELD_DOUBLE:
        return double_at(in, field) == 0;
    case FIELD_FLAG:
        return enum_at(in, field) == HF_UNSET;
    case FIELD_ENUM:
        /* A text that is no member is for error messages; a caller cannot have meant it. */
        return enum_at(in, field) <= 0 || (size_t)enum_at(in, field) > field->members->len;
    default:
        return pointer_at(in, field) == NULL;
    }
}

_Static_assert(MICROS == 1000000 && MICRO_DIGITS == 6, "a time is in microseconds");
_Static_assert(offsetof(struct hf_str, ptr) == 0 && offsetof(struct hf_item, ptr) == 0 &&
                   offsetof(struct hf_value, ptr) == 0,
               "is_absent() looks at the first member");

/* ---- fields --------------------------------------------------------------------------------- */

static void write_names(struct hf__buf *buf, struct hf_item names)
{
    struct value_walk walk = hf__value_walk(hf_item_value(names));
    const uint32_t count = walk.left;

    if (hf__item_poisoned(names)) {
        buf->failed = true;
        return;
    }
    hf__buf_put_byte(buf, '{');
    while (hf__value_next(&walk)) {
        if (walk.left + 1 != count)
            hf__buf_put_byte(buf, ',');
        hf__wire_write_str(buf, walk.name);
        hf__buf_put_byte(buf, ':');
        hf__wire_write_str(buf, hf_value_str(walk.value));
    }
    hf__buf_put_byte(buf, '}');
}

/* `frame` is NULL when everything is wanted. */
static void write_item(struct hf__buf *buf, struct hf_item item, struct wire_frame *frame)
{
    assert(!frame || buf == &frame->text); /* holes are places in it */
    if (frame && item.len >= WIRE_HOLE_MIN && !hf__item_poisoned(item)) {
        struct wire_hole hole = {buf->len, item};

        hf__buf_put(&frame->holes, &hole, sizeof(hole));
    } else {
        hf__wire_write_item(buf, item);
    }
}

static void write_list(struct hf__buf *buf, const struct field *field, const void *list,
                       size_t count, struct wire_frame *frame)
{
    assert(list || !count);
    hf__buf_put_byte(buf, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hf__buf_put_byte(buf, ',');
        switch (field->kind) {
        case FIELD_STRS:
            hf__wire_write_str(buf, ((const struct hf_str *)list)[i]);
            break;
        case FIELD_DOUBLES:
            hf__wire_write_double(buf, ((const double *)list)[i]);
            break;
        case FIELD_ITEMS:
            write_item(buf, ((const struct hf_item *)list)[i], frame);
            break;
        case FIELD_VALUES:
            hf__wire_write_value(buf, ((const struct hf_value *)list)[i]);
            break;
        default:
            write_struct(buf, field->sub, (const uint8_t *)list + i * field->sub->size, frame);
            break;
        }
    }
    hf__buf_put_byte(buf, ']');
}

static void write_field(struct hf__buf *buf, const struct field *field, const uint8_t *in,
                        struct wire_frame *frame);

static void write_map(struct hf__buf *buf, const struct field *field, const uint8_t *entries,
                      size_t count, struct wire_frame *frame)
{
    const struct fields *sub = field->sub;

    assert((entries || !count) && sub->size >= sizeof(struct hf_str)); /* the key is first */
    hf__buf_put_byte(buf, '{');
    for (size_t i = 0; i < count; i++) {
        const uint8_t *entry = entries + i * sub->size;
        struct hf_str key;

        if (i > 0)
            hf__buf_put_byte(buf, ',');
        memcpy(&key, entry, sizeof(key));
        hf__wire_write_str(buf, key);
        hf__buf_put_byte(buf, ':');
        if (sub->len == 1 && !sub->list[0].name)
            write_field(buf, &sub->list[0], entry, frame);
        else
            write_struct(buf, sub, entry, frame);
    }
    hf__buf_put_byte(buf, '}');
}

static void write_enum(struct hf__buf *buf, const struct field *field, int number)
{
    assert(field->kind == FIELD_ENUM && field->members);
    if (number <= 0 || (size_t)number > field->members->len)
        hf__buf_put_str(buf, HF_STR("\"\""));
    else
        hf__wire_write_str(buf, hf_str_from(field->members->names[number - 1]));
}

static void write_field(struct hf__buf *buf, const struct field *field, const uint8_t *in,
                        struct wire_frame *frame)
{
    const void *at = in + field->at;
    int64_t number;

    switch (field->kind) {
    case FIELD_STR:
        hf__wire_write_str(buf, *(const struct hf_str *)at);
        break;
    case FIELD_INT:
        number = int_at(in, field);
        hf__wire_write_int(buf, number == HF_ZERO ? 0 : number);
        break;
    case FIELD_DOUBLE:
        hf__wire_write_double(buf, double_at(in, field));
        break;
    case FIELD_FLAG:
        hf__buf_put_str(buf, enum_at(in, field) == HF_YES ? HF_STR("true") : HF_STR("false"));
        break;
    case FIELD_ENUM:
        write_enum(buf, field, enum_at(in, field));
        break;
    case FIELD_TIME:
        write_time(buf, int_at(in, field));
        break;
    case FIELD_ITEM:
        write_item(buf, *(const struct hf_item *)at, frame);
        break;
    case FIELD_NAMES:
        write_names(buf, *(const struct hf_item *)at);
        break;
    case FIELD_VALUE:
        hf__wire_write_value(buf, *(const struct hf_value *)at);
        break;
    case FIELD_STRUCT:
        write_struct(buf, field->sub, pointer_at(in, field), frame);
        break;
    case FIELD_STRS:
    case FIELD_DOUBLES:
    case FIELD_ITEMS:
    case FIELD_VALUES:
    case FIELD_STRUCTS:
        write_list(buf, field, pointer_at(in, field), count_at(in, field), frame);
        break;
    case FIELD_MAP:
        write_map(buf, field, pointer_at(in, field), count_at(in, field), frame);
        break;
    }
}

/* `in` may be NULL: a struct of which nothing is there. */
static void write_struct(struct hf__buf *buf, const struct fields *fields, const uint8_t *in,
                         struct wire_frame *frame)
{
    char before = '{';

    for (size_t i = 0; in && i < fields->len; i++) {
        const struct field *field = &fields->list[i];

        if (!(field->rules & FIELD_ALWAYS) && is_absent(in, field))
            continue;
        hf__buf_put_byte(buf, (uint8_t)before);
        hf__buf_put_byte(buf, '"');
        hf__buf_put_str(buf, hf_str_from(field->name));
        hf__buf_put_str(buf, HF_STR("\":"));
        write_field(buf, field, in, frame);
        before = ',';
    }
    if (before == '{')
        hf__buf_put_byte(buf, '{');
    hf__buf_put_byte(buf, '}');
}

void hf__wire_write(struct hf__buf *buf, const struct fields *fields, const void *in)
{
    if (DEV_CHECKS)
        hf__fields_check(fields);
    write_struct(buf, fields, in, NULL);
}

/* Holes are in the text, in its order, and none is small. */
static void frame_check(const struct wire_frame *frame)
{
    const struct wire_hole *holes;
    size_t len = hf__wire_holes(frame, &holes);

    for (size_t i = 0; i < len && !frame->text.failed; i++) {
        assert(holes[i].at <= frame->text.len && holes[i].item.len >= WIRE_HOLE_MIN);
        assert(i == 0 || holes[i - 1].at <= holes[i].at);
    }
}

void hf__wire_write_frame(struct hf_scope *s, const struct fields *fields, const void *in,
                          struct wire_frame *frame)
{
    assert(in && fields->size > 0);
    *frame = (struct wire_frame){.text = {.scope = s}, .holes = {.scope = s}};
    write_struct(&frame->text, fields, in, frame);
    if (DEV_CHECKS)
        frame_check(frame);
}

size_t hf__wire_holes(const struct wire_frame *frame, const struct wire_hole **holes)
{
    assert(frame->holes.len % sizeof(struct wire_hole) == 0);
    *holes = (const struct wire_hole *)(const void *)frame->holes.ptr;
    return frame->holes.len / sizeof(struct wire_hole);
}
