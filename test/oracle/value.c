/* oracle/value.c: memory, randomness, text, and values as trees. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* ---- memory ---------------------------------------------------------------------------------- */

struct arena_block {
    struct arena_block *next;
    _Alignas(16) char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = calloc(1, sizeof(*block) + size + 1);

    if (!block) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

void arena_free(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
}

/* ---- randomness ------------------------------------------------------------------------------ */

uint64_t rnd_next(struct rnd *rnd)
{
    uint64_t x = rnd->state += 0x9E3779B97F4A7C15u;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int rnd_below(struct rnd *rnd, int bound)
{
    return (int)(rnd_next(rnd) % (uint64_t)bound);
}

bool rnd_one_in(struct rnd *rnd, int n)
{
    return rnd_below(rnd, n) == 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

void text_put(struct text *text, const char *bytes, size_t len)
{
    if (text->len + len + 1 > text->cap) {
        size_t cap = 2 * (text->len + len) + 64;
        char *ptr = arena_alloc(text->arena, cap);

        if (text->len)
            memcpy(ptr, text->ptr, text->len);
        text->ptr = ptr;
        text->cap = cap;
    }
    memcpy(text->ptr + text->len, bytes, len);
    text->len += len;
    text->ptr[text->len] = 0;
}

void text_add(struct text *text, const char *format, ...)
{
    char room[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(room, sizeof(room), format, args);
    va_end(args);
    if (len >= (int)sizeof(room)) {
        char *more = arena_alloc(text->arena, (size_t)len + 1);

        va_start(args, format);
        vsnprintf(more, (size_t)len + 1, format, args);
        va_end(args);
        text_put(text, more, (size_t)len);
        return;
    }
    text_put(text, room, (size_t)len);
}

/* ---- values ---------------------------------------------------------------------------------- */

const char *type_tag(enum vtype type)
{
    static const char *const tags[] = {"?", "S", "N",  "B",  "BOOL", "NULL",
                                       "M", "L", "SS", "NS", "BS"};

    return tags[type];
}

struct val *val_new(struct arena *arena, enum vtype type)
{
    struct val *val = arena_alloc(arena, sizeof(*val));

    val->type = type;
    return val;
}

struct val *val_string(struct arena *arena, enum vtype type, const char *bytes, size_t len)
{
    struct val *val = val_new(arena, type);
    char *copy = arena_alloc(arena, len);

    memcpy(copy, bytes, len);
    val->bytes = copy;
    val->len = len;
    return val;
}

struct val *val_number(struct arena *arena, int64_t thousandths)
{
    struct val *val = val_new(arena, V_N);

    val->thousandths = thousandths;
    return val;
}

struct val *val_copy(struct arena *arena, const struct val *val)
{
    struct val *copy = arena_alloc(arena, sizeof(*copy));

    *copy = *val;
    copy->at = arena_alloc(arena, (val->count + 1) * sizeof(*copy->at));
    copy->names = arena_alloc(arena, (val->count + 1) * sizeof(*copy->names));
    for (size_t i = 0; i < val->count; i++) {
        copy->at[i] = val_copy(arena, val->at[i]);
        copy->names[i] = val->names ? val->names[i] : NULL;
    }
    return copy;
}

/* Make room for an element at position `at`. */
static void insert(struct arena *arena, struct val *to, size_t at, const char *name,
                   struct val *val)
{
    struct val **values = arena_alloc(arena, (to->count + 1) * sizeof(*values));
    const char **names = arena_alloc(arena, (to->count + 1) * sizeof(*names));

    for (size_t i = 0, from = 0; i <= to->count; i++) {
        values[i] = i == at ? val : to->at[from];
        names[i] = i == at ? name : to->names[from];
        from += i != at;
    }
    to->at = values;
    to->names = names;
    to->count++;
}

static void take_out(struct val *from, size_t at)
{
    for (size_t i = at; i + 1 < from->count; i++) {
        from->at[i] = from->at[i + 1];
        from->names[i] = from->names[i + 1];
    }
    from->count--;
}

struct val *map_get(const struct val *map, const char *name)
{
    for (size_t i = 0; map && i < map->count; i++)
        if (strcmp(map->names[i], name) == 0)
            return map->at[i];
    return NULL;
}

void map_set(struct arena *arena, struct val *map, const char *name, struct val *val)
{
    size_t at = 0;

    while (at < map->count && strcmp(map->names[at], name) < 0)
        at++;
    if (at < map->count && strcmp(map->names[at], name) == 0)
        map->at[at] = val;
    else
        insert(arena, map, at, name, val);
}

void map_remove(struct val *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->names[i], name) == 0) {
            take_out(map, i);
            return;
        }
}

void list_add(struct arena *arena, struct val *list, struct val *val)
{
    insert(arena, list, list->count, NULL, val);
}

bool set_has(const struct val *set, const struct val *val)
{
    for (size_t i = 0; i < set->count; i++)
        if (val_compare(set->at[i], val) == 0)
            return true;
    return false;
}

void set_add(struct arena *arena, struct val *set, struct val *val)
{
    size_t at = 0;

    if (set_has(set, val))
        return;
    while (at < set->count && val_compare(set->at[at], val) < 0)
        at++;
    insert(arena, set, at, NULL, val);
}

int val_compare(const struct val *a, const struct val *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order;

    if (a->type == V_N)
        return a->thousandths < b->thousandths ? -1 : a->thousandths > b->thousandths;
    order = len ? memcmp(a->bytes, b->bytes, len) : 0;
    if (order != 0)
        return order < 0 ? -1 : 1;
    return a->len < b->len ? -1 : a->len > b->len;
}

bool val_equal(const struct val *a, const struct val *b)
{
    if (!a || !b)
        return a == b;
    if (a->type != b->type || a->count != b->count)
        return false;
    if (a->type == V_S || a->type == V_N || a->type == V_B)
        return val_compare(a, b) == 0;
    if (a->type == V_BOOL)
        return a->truth == b->truth;
    for (size_t i = 0; i < a->count; i++)
        if (!val_equal(a->at[i], b->at[i]) ||
            (a->type == V_M && strcmp(a->names[i], b->names[i]) != 0))
            return false;
    return true;
}

static int digits_of(uint64_t number)
{
    int digits = 0;

    for (; number; number /= 10)
        digits++;
    return digits;
}

/* Digits of the whole and of the fractional part, without zeros at either end of the number. */
static size_t number_size(int64_t thousandths)
{
    uint64_t left = (uint64_t)(thousandths < 0 ? -thousandths : thousandths);
    uint64_t whole = left / 1000;
    uint64_t part = left % 1000;
    int part_digits = part ? 3 : 0;

    for (; part && part % 10 == 0; part /= 10)
        part_digits--;
    if (whole == 0)
        part_digits = digits_of(part);
    while (whole && !part && whole % 10 == 0)
        whole /= 10;
    return 1 + (size_t)(digits_of(whole) + 1) / 2 + (size_t)(part_digits + 1) / 2 +
           (thousandths < 0);
}

size_t val_size(const struct val *val)
{
    size_t sum = 0;

    switch (val->type) {
    case V_S:
    case V_B:
        return val->len;
    case V_N:
        return number_size(val->thousandths);
    case V_BOOL:
    case V_NULL:
    case V_NONE:
        return 1;
    case V_M:
    case V_L:
        for (size_t i = 0; i < val->count; i++)
            sum += 1 + val_size(val->at[i]) + (val->type == V_M ? strlen(val->names[i]) : 0);
        return 3 + sum;
    default:
        for (size_t i = 0; i < val->count; i++)
            sum += val_size(val->at[i]);
        return sum;
    }
}

size_t item_size(const struct val *item)
{
    size_t sum = 0;

    for (size_t i = 0; item && i < item->count; i++)
        sum += strlen(item->names[i]) + val_size(item->at[i]);
    return sum;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_base64(struct text *text, const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = 0;

        for (size_t j = 0; j < 3; j++)
            three = three << 8 | (i + j < len ? (uint8_t)bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            text_add(text, "%c", j <= len - i ? digits[three >> (18 - 6 * j) & 63] : '=');
    }
}

static void put_string(struct text *text, const struct val *val)
{
    text_add(text, "\"");
    if (val->type == V_B)
        put_base64(text, val->bytes, val->len);
    else
        for (size_t i = 0; i < val->len; i++)
            text_add(text, (uint8_t)val->bytes[i] < 32 ? "\\u%04x" : "%c", (uint8_t)val->bytes[i]);
    text_add(text, "\"");
}

static void put_number(struct text *text, int64_t thousandths, struct rnd *noise)
{
    int64_t left = thousandths < 0 ? -thousandths : thousandths;
    int part = (int)(left % 1000);
    const char *sign = thousandths < 0 ? "-" : "";

    if (noise && rnd_one_in(noise, 4))
        text_add(text, "\"%s%lldE-3\"", sign, (long long)left);
    else if (noise && rnd_one_in(noise, 4))
        text_add(text, "\"%s0%lld.%03d0\"", sign, (long long)(left / 1000), part);
    else if (part == 0)
        text_add(text, "\"%s%lld\"", sign, (long long)(left / 1000));
    else if (part % 100 == 0)
        text_add(text, "\"%s%lld.%d\"", sign, (long long)(left / 1000), part / 100);
    else if (part % 10 == 0)
        text_add(text, "\"%s%lld.%02d\"", sign, (long long)(left / 1000), part / 10);
    else
        text_add(text, "\"%s%lld.%03d\"", sign, (long long)(left / 1000), part);
}

static void put_scalar(struct text *text, const struct val *val, struct rnd *noise)
{
    if (val->type == V_N)
        put_number(text, val->thousandths, noise);
    else
        put_string(text, val);
}

void val_json(struct text *text, const struct val *val, struct rnd *noise)
{
    size_t first = noise && val->count ? (size_t)rnd_below(noise, (int)val->count) : 0;

    text_add(text, "{\"%s\":", type_tag(val->type));
    switch (val->type) {
    case V_S:
    case V_N:
    case V_B:
        put_scalar(text, val, noise);
        break;
    case V_BOOL:
        text_add(text, val->truth ? "true" : "false");
        break;
    case V_NULL:
    case V_NONE:
        text_add(text, "true");
        break;
    case V_M:
        item_json(text, val, noise);
        break;
    case V_L:
        text_add(text, "[");
        for (size_t i = 0; i < val->count; i++) {
            text_add(text, i ? "," : "");
            val_json(text, val->at[i], noise);
        }
        text_add(text, "]");
        break;
    default: /* a set may come in any order */
        text_add(text, "[");
        for (size_t i = 0; i < val->count; i++) {
            text_add(text, i ? "," : "");
            put_scalar(text, val->at[(i + first) % val->count], noise);
        }
        text_add(text, "]");
    }
    text_add(text, "}");
}

void item_json(struct text *text, const struct val *item, struct rnd *noise)
{
    size_t first = noise && item->count ? (size_t)rnd_below(noise, (int)item->count) : 0;

    text_add(text, "{");
    for (size_t i = 0; i < item->count; i++) {
        size_t at = (i + first) % item->count;

        text_add(text, "%s\"%s\":", i ? "," : "", item->names[at]);
        val_json(text, item->at[at], noise);
    }
    text_add(text, "}");
}

const char *item_text(struct arena *arena, const struct val *item)
{
    struct text text = {.arena = arena};

    if (!item)
        return "none";
    item_json(&text, item, NULL);
    return text.ptr;
}
