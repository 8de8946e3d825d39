/*
 * bind/bind_actions.c: actions of a transaction as DynamoDB's JSON, for a TransactWriteItems that
 * the language sends; and tables on demand.
 */
#include <holdfast/table.h>

#include "bind/table.h"
#include "ops/fields.h"
#include "wire/wire.h"

extern const struct fields hf__fields_transact_write_items;
extern const struct fields hf__fields_create_table;

#define T bind_actions
const struct bind_field hf__bind_actions_part_list[] = {JSON("actions", actions)};
const struct bind_fields hf__bind_actions_part = {hf__bind_actions_part_list, 1, sizeof(struct T)};
#undef T

/* The request is {"TransactItems":[...]}; the list is what stands behind the colon. */
enum hf_status hf__bind_actions(struct hf_scope *s, const struct hf_transact_write *actions,
                                size_t len, struct bind_actions *result)
{
    struct hf_transact_write_items request = {.actions = actions, .actions_len = len};
    static const char head[] = "{\"TransactItems\":";
    struct hf__buf buf = {.scope = s};

    hf__wire_write(&buf, &hf__fields_transact_write_items, &request);
    if (buf.failed)
        return hf__fail_nomem(s);
    assert(buf.len > sizeof(head) && memcmp(buf.ptr, head, sizeof(head) - 1) == 0);
    result->actions =
        hf_str_of((const char *)buf.ptr + sizeof(head) - 1, buf.len - sizeof(head) + 1 - 1);
    return HF_OK;
}

enum hf_status hf__bind_read_actions(struct hf_scope *s, struct hf_str json,
                                     struct hf_transact_write_items *request)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("{\"TransactItems\":"));
    hf__buf_put_str(&buf, json);
    hf__buf_put_byte(&buf, '}');
    if (buf.failed)
        return hf__fail_nomem(s);
    return hf__wire_read(s, &hf__fields_transact_write_items,
                         hf_str_of((const char *)buf.ptr, buf.len), request);
}

/* ---- tables --------------------------------------------------------------------------------- */

struct table_ensure_args {
    struct hf_str table;
};

#define T table_ensure_args
ARGUMENTS(table_ensure, JSON("table", table, REQUIRED));
#undef T
NO_RESULT(table_ensure);

BIND_FUNCTION(table_ensure)
{
    struct table_ensure_args *args = args_in;
    struct hf_create_table create = {0};

    (void)result_out;
    TRY(hf__wire_read(s, &hf__fields_create_table, args->table, &create));
    return hf_table_ensure(s, hf__bind_db(bind), &create, NULL);
}
