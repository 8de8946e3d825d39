/*
 * cli/frame/text_map.h: a number for each of many texts, in the memory of a scope.
 *
 *     struct text_map map = {.s = scope};
 *     uint64_t *number = hf__cli_text_map_add(&map, text);
 */
#ifndef HF_CLI_FRAME_TEXT_MAP_H
#define HF_CLI_FRAME_TEXT_MAP_H

#include <holdfast/scope.h>

struct text_map {
    struct hf_scope *s;
    struct text_map_slot *slots;
    size_t len, cap;
};

/* The number of a text; NULL: it is not there. */
uint64_t *hf__cli_text_map_find(const struct text_map *map, struct hf_str text);

/* The same; a new text, which is copied, has 0. NULL: no memory. It lives until the next call. */
uint64_t *hf__cli_text_map_add(struct text_map *map, struct hf_str text);

#endif
