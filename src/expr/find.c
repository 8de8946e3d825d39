/*
 * expr/find.c: finding members of large containers again and again.
 *
 * To find a member of a container is to walk along it, which is the fastest way for items as they
 * mostly are. An expression of thousands of names against an item of thousands of attributes would
 * walk for seconds. So an expression with many parts has a finder: of each large container it
 * notes, at the first walk, where every nth member is; from then on a search among those leaves
 * less than n members to walk.
 *
 * A finder lives on the stack for one item. It has room for a few containers; a path through more
 * of them than that makes it note some of them again, which costs no more than the walk before.
 */
#include "expr/private.h"

void hf__expr_finder_begin(struct expr_finder *finder)
{
    for (size_t i = 0; i < FINDER_CONTAINERS; i++)
        finder->notes[i].ptr = NULL;
    finder->next = 0;
}

static const struct finder_note *container_note(struct expr_finder *finder,
                                                struct hf_value container)
{
    struct finder_note *made;
    struct value_walk walk;

    for (size_t i = 0; i < FINDER_CONTAINERS; i++)
        if (finder->notes[i].ptr == container.ptr)
            return &finder->notes[i];
    made = &finder->notes[finder->next++ % FINDER_CONTAINERS];
    walk = hf__value_walk(container);
    made->ptr = container.ptr;
    made->count = walk.left;
    made->stride = walk.left / FINDER_NOTES + 1;
    assert(made->count >= FINDER_MEMBERS);
    assert((made->count - 1) / made->stride < FINDER_NOTES);
    for (uint32_t i = 0; i < made->count; i++) {
        if (i % made->stride == 0)
            made->at[i / made->stride] = (uint32_t)(walk.at - container.ptr);
        hf__value_next(&walk);
    }
    return made;
}

/* A walk that begins with the member that was noted as number `at`. */
static struct value_walk walk_from(const struct finder_note *note, enum hf_type type, uint32_t at)
{
    assert(at * note->stride < note->count);
    return (struct value_walk){.at = note->ptr + note->at[at],
                               .left = note->count - at * note->stride,
                               .type = type};
}

/* How the member that the walk is at compares to what is looked for. */
static int member_compare(const struct value_walk *walk, struct hf_bytes key)
{
    if (walk->type == HF_TYPE_M)
        return bytes_compare(walk->name.ptr, walk->name.len, key.ptr, key.len);
    return bytes_compare(walk->scalar.ptr, walk->scalar.len, key.ptr, key.len);
}

/* The member of an M, or element of a set, with that name or those bytes; both are in order. */
static bool find_ordered(const struct finder_note *note, enum hf_type type, struct hf_bytes key,
                         struct value_walk *found)
{
    uint32_t low = 0, high = (note->count - 1) / note->stride; /* it is not in front of `low` */

    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        struct value_walk walk = walk_from(note, type, middle);

        hf__value_next(&walk);
        if (member_compare(&walk, key) <= 0)
            low = middle;
        else
            high = middle - 1;
    }
    *found = walk_from(note, type, low);
    while (hf__value_next(found)) {
        int order = member_compare(found, key);

        if (order >= 0)
            return order == 0;
    }
    return false;
}

static bool is_large(struct expr_finder *finder, struct hf_value container)
{
    return finder && hf_value_count(container) >= FINDER_MEMBERS;
}

struct hf_value hf__expr_find_name(struct expr_finder *finder, struct hf_value map,
                                   struct hf_str name)
{
    struct value_walk found;

    if (!is_large(finder, map) || hf_value_type(map) != HF_TYPE_M)
        return hf_value_get(map, name);
    if (!find_ordered(container_note(finder, map), HF_TYPE_M,
                      hf_bytes_of((const uint8_t *)name.ptr, name.len), &found))
        return (struct hf_value){NULL, 0};
    return found.value;
}

struct hf_value hf__expr_find_index(struct expr_finder *finder, struct hf_value list,
                                    uint32_t index)
{
    struct value_walk walk = hf__value_walk(list);

    if (walk.type != HF_TYPE_L || index >= walk.left)
        return (struct hf_value){NULL, 0};
    if (is_large(finder, list)) {
        const struct finder_note *noted = container_note(finder, list);

        walk = walk_from(noted, HF_TYPE_L, index / noted->stride);
        index %= noted->stride;
    }
    for (uint32_t at = 0; at <= index; at++)
        hf__value_next(&walk);
    return walk.value;
}

bool hf__expr_find_element(struct expr_finder *finder, struct hf_value set, struct hf_bytes bytes)
{
    struct value_walk found;

    if (!is_large(finder, set))
        return hf__set_has(set, bytes);
    return find_ordered(container_note(finder, set), hf_value_type(set), bytes, &found);
}
