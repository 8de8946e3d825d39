/*
 * cli/frame/text_map.c: a number for each of many texts: a hash table with open addressing, at most half
 * full. See text_map.h.
 */
#include "cli/frame/text_map.h"

#include "base/base.h"
#include "base/fnv.h"

enum { CAP_FIRST = 64 };

struct text_map_slot {
    struct hf_str text; /* absent: the slot is free */
    uint64_t number;
};

static struct text_map_slot *slot_of(const struct text_map *map, struct hf_str text)
{
    size_t at = fnv_fold(fnv_add(FNV_BEGIN, text.ptr, text.len)) & (map->cap - 1);

    assert(map->len < map->cap);
    while (map->slots[at].text.ptr && !hf_str_equal(map->slots[at].text, text))
        at = (at + 1) & (map->cap - 1);
    return &map->slots[at];
}

static bool map_grow(struct text_map *map)
{
    struct text_map larger = {.s = map->s, .cap = map->cap ? map->cap * 2 : CAP_FIRST};

    larger.slots = hf_scope_alloc(map->s, larger.cap * sizeof(*larger.slots));
    if (!larger.slots)
        return false;
    memset(larger.slots, 0, larger.cap * sizeof(*larger.slots));
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].text.ptr)
            *slot_of(&larger, map->slots[i].text) = map->slots[i];
    larger.len = map->len;
    *map = larger;
    return true;
}

uint64_t *hf__cli_text_map_find(const struct text_map *map, struct hf_str text)
{
    struct text_map_slot *slot = map->cap ? slot_of(map, text) : NULL;

    return slot && slot->text.ptr ? &slot->number : NULL;
}

uint64_t *hf__cli_text_map_add(struct text_map *map, struct hf_str text)
{
    uint64_t *found = hf__cli_text_map_find(map, text);
    struct text_map_slot slot = {.number = 0}, *free_slot;

    assert(text.ptr);
    if (found)
        return found;
    if ((map->len + 1) * 2 > map->cap && !map_grow(map))
        return NULL;
    slot.text = hf_scope_copy(map->s, text);
    if (!slot.text.ptr)
        return NULL;
    free_slot = slot_of(map, text);
    *free_slot = slot;
    map->len++;
    return &free_slot->number;
}
