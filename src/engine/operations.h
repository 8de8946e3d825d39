/*
 * engine/operations.h: a function for each operation of ops.def.
 */
#ifndef HF_ENGINE_OPERATIONS_H
#define HF_ENGINE_OPERATIONS_H

#include <holdfast/db.h>

struct engine;

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    enum hf_status hf__engine_##struct_(struct hf_scope *s, struct engine *e,                      \
                                        const struct hf_##struct_ *request,                        \
                                        struct hf_##struct_##_result *result);
#include "ops/ops.def"
#undef OP

#endif
