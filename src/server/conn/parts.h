/*
 * server/conn/parts.h: a large answer, made part by part while it is sent.
 *
 * The result of an operation is held as it is, which takes a sixth of what its JSON may take. One
 * walk over it, which keeps nothing, finds the length and the checksum that belong in the head;
 * then the JSON is made once more, in parts, each when the one before it has left.
 */
#ifndef HF_SERVER_PARTS_H
#define HF_SERVER_PARTS_H

#include "base/buf.h"
#include "wire/wire.h"

enum { PART_BYTES = 256 * 1024 }; /* size of a part; it ends with a complete item */

struct parts {
    struct hf_scope *scope; /* has the result and the frame; ours */
    struct hf__buf request; /* what the result may borrow from; ours */
    struct wire_frame frame;
    size_t hole;  /* index of the next hole of the frame */
    size_t begin; /* where the text of the frame goes on behind it */
    uint64_t len; /* of the whole JSON */
    uint32_t crc; /* checksum of the whole JSON */
};

/*
 * The result at `in`, which is in the scope, will be sent in parts. The scope is the new object's,
 * unless NULL is returned: the result cannot be written, or there is no memory.
 */
struct parts *hf__parts_new(const struct hf_env *env, struct hf_scope *s,
                            const struct fields *fields, const void *in);

/* Append the next part; false when there was none left. What fails shows in `out`. */
bool hf__parts_next(struct parts *parts, struct hf__buf *out);

/* Memory that it holds. */
size_t hf__parts_bytes(const struct parts *parts);

void hf__parts_free(const struct hf_env *env, struct parts *parts);

#endif
