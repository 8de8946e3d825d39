/*
 * coord/scope_list.c: lists that grow in a scope. What a list leaves behind when it moves is the
 * scope's, as all else.
 */
#include "coord/pattern.h"

enum { FIRST_ROOM = 8 };

enum hf_status hf__pattern_grow(struct hf_scope *s, void **list, size_t len, size_t *cap,
                                size_t size)
{
    size_t more = *cap ? 2 * *cap : FIRST_ROOM;
    void *longer;

    assert(len <= *cap && (*list || !len));
    if (len < *cap)
        return HF_OK;
    longer = hf_scope_alloc(s, more * size);
    TRY(hf_scope_built(s));
    if (len)
        memcpy(longer, *list, len * size);
    *list = longer;
    *cap = more;
    return HF_OK;
}
