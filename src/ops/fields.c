/*
 * ops/fields.c: the table of operations, from ops.def, and finding things in it.
 */
#include "ops/table.h"

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    [HF_OP_##constant] = {.name = {#name_, sizeof(#name_) - 1},                                    \
                          .op = HF_OP_##constant,                                                  \
                          .service = OP_##service_,                                                \
                          .access = OP_##access_,                                                  \
                          .repeat = OP_REPEAT_##repeat_,                                           \
                          .request = &hf__fields_##struct_,                                        \
                          .response = &hf__fields_##struct_##_result},
static const struct op ops[] = {
#include "ops/ops.def"
};
#undef OP

_Static_assert(ARRAY_LEN(ops) == HF_OP_COUNT, "ops.def has a line for every operation");

const struct op *hf__op(enum hf_op op)
{
    assert(op >= 0 && op < HF_OP_COUNT);
    return &ops[op];
}

const struct op *hf__op_of_name(enum op_service service, struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].service == service && hf_str_equal(ops[i].name, name))
            return &ops[i];
    return NULL;
}

struct hf_str hf_op_name(enum hf_op op)
{
    return (unsigned)op < HF_OP_COUNT ? hf__op(op)->name : hf_str_of(NULL, 0);
}

int hf__enum_of_name(const struct field_enum *members, struct hf_str name)
{
    for (size_t i = 0; i < members->len; i++)
        if (hf_str_equal(hf_str_from(members->names[i]), name))
            return (int)i + 1;
    return 0;
}
