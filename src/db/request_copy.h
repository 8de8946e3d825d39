/*
 * db/request_copy.h: deep copies of requests, which outlive the caller's.
 */
#ifndef HF_DB_REQUEST_COPY_H
#define HF_DB_REQUEST_COPY_H

#include "ops/fields.h"

/*
 * Copy a struct with all that it points to, into `to` and the scope. HF_INVALID, or what an item in
 * it was poisoned with; HF_NOMEM.
 */
enum hf_status hf__request_copy(struct hf_scope *s, const struct fields *fields, const void *from,
                                void *to);

#endif
