/*
 * ops/fields.c: the table of operations, from ops.def, and finding things in it.
 */
#include "base/assert_held.h"
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
    assert(service == OP_DYNAMODB || service == OP_STREAMS);
    for (size_t i = 0; DEV_CHECKS && i < ARRAY_LEN(ops); i++)
        assert((size_t)ops[i].op == i && ops[i].request && ops[i].response);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].service == service && hf_str_equal(ops[i].name, name))
            return &ops[i];
    return NULL;
}

struct hf_str hf_op_name(enum hf_op op)
{
    return (unsigned)op < HF_OP_COUNT ? hf__op(op)->name : hf_str_of(NULL, 0);
}

/* The bytes of a member in its struct; of lists without their count. */
static size_t member_size(enum field_kind kind)
{
    switch (kind) {
    case FIELD_STR:
        return sizeof(struct hf_str);
    case FIELD_INT:
    case FIELD_TIME:
        return sizeof(int64_t);
    case FIELD_DOUBLE:
        return sizeof(double);
    case FIELD_FLAG:
    case FIELD_ENUM:
        return sizeof(int);
    case FIELD_ITEM:
    case FIELD_NAMES:
        return sizeof(struct hf_item);
    case FIELD_VALUE:
        return sizeof(struct hf_value);
    default:
        return sizeof(void *);
    }
}

_Static_assert(sizeof(enum hf_flag) == sizeof(int), "enums are read as int");
_Static_assert(sizeof(enum hf_select) == sizeof(int), "enums are read as int");
_Static_assert(sizeof(enum hf_billing) == sizeof(int), "enums are read as int");
_Static_assert(sizeof(enum hf_return_values) == sizeof(int), "enums are read as int");
_Static_assert(FIELD_MAP == FIELD_STRUCTS + 1 && FIELD_STRS == FIELD_STRUCT + 1,
               "lists and maps are behind all others");

void hf__fields_check(const struct fields *fields)
{
    assert(fields->name && fields->size > 0);
    assert(!fields->len || fields->list);
    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];
        bool list = field->kind >= FIELD_STRS;

        assert(field->name || fields->len == 1);
        assert(field->at + member_size(field->kind) <= fields->size);
        assert(!list || field->count_at + sizeof(size_t) <= fields->size);
        assert(!list || field->count_at != field->at);
        assert((field->kind == FIELD_ENUM) == (field->members != NULL));
        assert((field->kind == FIELD_STRUCT || field->kind == FIELD_STRUCTS ||
                field->kind == FIELD_MAP) == (field->sub != NULL));
        assert(!field->max || field->min <= field->max);
        assert(!field->element_max || field->element_min <= field->element_max);
        assert(!(field->rules & FIELD_LONG) || field->kind == FIELD_INT);
        assert(!(field->rules & FIELD_FROM_ZERO) || field->kind == FIELD_INT);
        assert(field->pattern == PATTERN_NONE || field->kind == FIELD_STR);
        assert(!field->element_max || field->kind == FIELD_STRS);
        for (size_t k = 0; field->name && k < i; k++)
            assert(strcmp(field->name, fields->list[k].name) != 0);
    }
}

int hf__enum_of_name(const struct field_enum *members, struct hf_str name)
{
    assert(members->len > 0);
    for (size_t i = 0; i < members->len; i++)
        if (hf_str_equal(hf_str_from(members->names[i]), name))
            return (int)i + 1;
    return 0;
}
