/*
 * db/copy.h: requests that outlive their caller's.
 */
#ifndef HF_DB_COPY_H
#define HF_DB_COPY_H

#include "ops/fields.h"

/*
 * Copy a struct with all that it points to, into `to` and the scope. HF_INVALID, or what an item in
 * it was poisoned with; HF_NOMEM.
 */
enum hf_status hf__copy_struct(struct hf_scope *s, const struct fields *fields, const void *from,
                               void *to);

#endif
