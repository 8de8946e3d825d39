/*
 * server/conn/parts.c: see parts.h.
 */
#include "server/conn/parts.h"

#include <libdeflate.h>

/* Make JSON until `out` has PART_BYTES; false when there was none left. */
static bool write_part(const struct parts *parts, size_t *hole, size_t *begin, struct hf__buf *out)
{
    const struct wire_hole *holes;
    const size_t holes_len = hf__wire_holes(&parts->frame, &holes);
    const struct hf__buf *text = &parts->frame.text;
    const size_t start = out->len;

    while (out->len - start < PART_BYTES && !out->failed) {
        size_t end = *hole < holes_len ? holes[*hole].at : text->len;
        size_t some = end - *begin < PART_BYTES ? end - *begin : PART_BYTES;

        assert(*hole <= holes_len && *begin <= end && end <= text->len);
        hf__buf_put(out, text->ptr + *begin, some);
        *begin += some;
        if (*begin < end)
            continue;
        if (*hole == holes_len)
            break;
        hf__wire_write_item(out, holes[(*hole)++].item);
    }
    return out->len > start;
}

/* The walk that keeps nothing. */
static bool measure_parts(const struct hf_env *env, struct parts *parts)
{
    struct hf__buf part = {.env = env};
    size_t hole = 0, begin = 0;
    bool done;

    while (write_part(parts, &hole, &begin, &part) && !part.failed) {
        parts->len += part.len;
        parts->crc = libdeflate_crc32(parts->crc, part.ptr, part.len);
        part.len = 0;
    }
    done = !part.failed;
    hf__buf_free(&part);
    return done;
}

struct parts *hf__parts_new(const struct hf_env *env, struct hf_scope *s,
                            const struct fields *fields, const void *in)
{
    struct parts *parts = hf__env_alloc(env, sizeof(*parts));

    if (!parts)
        return NULL;
    assert(s && fields && in);
    *parts = (struct parts){.scope = s, .request = {.env = env}};
    hf__wire_write_frame(s, fields, in, &parts->frame);
    if (!parts->frame.text.failed && !parts->frame.holes.failed && measure_parts(env, parts))
        return parts;
    hf__env_free(env, parts, sizeof(*parts));
    return NULL;
}

bool hf__parts_next(struct parts *parts, struct hf__buf *out)
{
    return write_part(parts, &parts->hole, &parts->begin, out);
}

size_t hf__parts_bytes(const struct parts *parts)
{
    return sizeof(*parts) + hf__scope_bytes(parts->scope) + parts->request.cap;
}

void hf__parts_free(const struct hf_env *env, struct parts *parts)
{
    if (!parts)
        return;
    hf__buf_free(&parts->request);
    hf_scope_free(parts->scope);
    hf__env_free(env, parts, sizeof(*parts));
}
