/*
 * ops/prepare_statements.c: statements of PartiQL, as far as no table is needed to judge them.
 *
 * Parameters come first, each a value like those of a request; then what the statement says.
 */
#include "ops/private.h"

enum hf_status hf__prepare_parameters(struct hf_scope *s, const struct hf_value *parameters,
                                      size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!parameters[i].ptr)
            return hf__fail(s, HF_INVALID,
                            "Supplied AttributeValue is empty, must contain exactly one of the "
                            "supported datatypes");
        TRY(hf__check_value(s, HF_OP_EXECUTE_STATEMENT, parameters[i]));
    }
    return HF_OK;
}

enum hf_status hf__prepare_statement(struct hf_scope *s, struct hf_str text,
                                     const struct hf_value *parameters, size_t len,
                                     struct statement *out)
{
    size_t size;

    TRY(hf__partiql_parse(s, text, parameters, len, out));
    if (out->kind != STATEMENT_INSERT)
        return HF_OK;
    TRY(hf__check_item(s, HF_OP_EXECUTE_STATEMENT, out->item));
    return hf__check_item_size(s, out->item, &size);
}
