/*
 * cli/frame/foreign_table.c: a table of another library. See foreign_table.h.
 *
 *  (1) Their table is only read here, and their database is not made.
 */
#include "cli/frame/foreign_table.h"

#include <holdfast/pages.h>

#include <assert.h>

#include "base/base.h"

enum hf_status hf__foreign_table_check(struct command_ctx *c, struct hf_str url,
                                       struct hf_str table, const char *what)
{
    if (!url.ptr && hf_str_equal(table, hf__command_operand(c, 0)))
        return hf__command_fail(c, CLI_USAGE,
                                "'%s' is their table and the %s as well: name another %s with "
                                "--table",
                                c->operands[0], what, what);
    c->without_db = true;
    return HF_OK;
}

enum hf_status hf__foreign_table_open(struct command_ctx *c, struct hf_str url,
                                      struct foreign_table *from)
{
    struct database_settings theirs = {.url = url, .timeout_ms = c->database->timeout_ms};
    bool other = url.ptr && !hf_str_equal(url, c->database->url);

    assert(!c->db && !c->database->create); /* (1) */
    if (other && !hf__database_resolve(c->cli, c->name, &theirs, &c->ends))
        return HF_INVALID;
    if (!hf__database_open(c->cli, c->name, other ? &theirs : c->database, &from->db, &c->ends))
        return HF_INVALID;
    if (other)
        from->opened = from->db;
    else
        c->db = from->db; /* the frame closes it */
    return HF_OK;
}

void hf__foreign_table_close(struct command_ctx *c, struct foreign_table *from)
{
    hf__database_close(c->cli, from->opened);
}

enum hf_status hf__foreign_table_target(struct command_ctx *c)
{
    c->database->create = c->makes = true;
    if (!c->db && !hf__database_open(c->cli, c->name, c->database, &c->db, &c->ends))
        return HF_INVALID;
    return HF_OK;
}

enum hf_status hf__foreign_table_scan(struct command_ctx *c, struct hf_db *db,
                                      const struct hf_scan *scan, foreign_item_fn *take, void *user)
{
    struct hf_scope *s = c->scope;
    enum hf_status status = HF_OK;
    struct hf_pages *pages;
    struct hf_item item;

    TRY(hf_pages_scan(s, db, scan, NULL, &pages));
    while (status == HF_OK) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
        status = hf_pages_next_item(s, pages, &item);
        if (status != HF_OK || !item.ptr)
            break;
        status = take(item, user);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

bool hf__foreign_member_fail(struct hf_scope *s, struct hf_str name, const char *what,
                             struct hf_str *error)
{
    *error = hf_scope_format(s, "\"%.*s\" %s", HF_FMT(name), what);
    if (!error->ptr)
        *error = HF_STR("out of memory");
    return false;
}

bool hf__foreign_text(struct hf_scope *s, struct hf_item item, const char *name,
                      struct hf_str *text, struct hf_str *error)
{
    struct hf_value value = hf_item_get(item, hf_str_from(name));

    if (!value.ptr || hf_value_type(value) == HF_TYPE_NULL)
        return true;
    if (hf_value_type(value) != HF_TYPE_S)
        return hf__foreign_member_fail(s, hf_str_from(name), "must be a string", error);
    *text = hf_value_str(value);
    return true;
}
