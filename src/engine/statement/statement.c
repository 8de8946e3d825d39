/*
 * engine/statement/statement.c: what all statements of PartiQL have in common: their table, and the
 * writes that INSERT, UPDATE and DELETE come to.
 *
 * INSERT is a put on the condition that no item has the key. UPDATE has its whole WHERE clause as
 * condition: the equalities on the key hold for every item that is there, and for none that is not,
 * so it never makes an item. DELETE of what is not there succeeds whatever else the clause says.
 */
#include "engine/statement/statement.h"
#include "base/buf.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/write.h"
#include "expr/expr.h"
#include "model/value.h"
#include "ops/prepare.h"

/* ---- the table ------------------------------------------------------------------------------ */

static struct statement_key_attr copy_attr(struct hf_scope *s, const struct key_attr *attr)
{
    return (struct statement_key_attr){hf_scope_copy(s, attr->name), attr->type};
}

static struct statement_key copy_key(struct hf_scope *s, const struct key_schema *key)
{
    struct statement_key copy = {.hash = copy_attr(s, &key->hash[0])};

    if (key->range_len)
        copy.range = copy_attr(s, &key->range[0]);
    return copy;
}

/* "a, b": the attributes that the expression names and the index does not have. */
static enum hf_status find_unprojected(struct hf_scope *s, const struct table *table,
                                       const struct index *index, const struct expr_bound *bound,
                                       struct hf_str *out)
{
    struct hf__buf list = {.scope = s};
    const struct expr_path *paths;
    size_t len;

    if (!bound)
        return HF_OK;
    hf__expr_paths(bound, &paths, &len);
    for (size_t i = 0; i < len; i++) {
        struct hf_str name = paths[i].steps[0].name;
        bool again = false;

        for (size_t j = 0; j < i; j++)
            again = again || hf_str_equal(paths[j].steps[0].name, name);
        if (!again && !hf__index_projects(table, index, name))
            hf__put_name(&list, name);
    }
    if (list.failed)
        return hf__fail_nomem(s);
    if (list.len)
        *out = hf_str_of((const char *)list.ptr, list.len);
    return HF_OK;
}

static enum hf_status look_at_index(struct hf_scope *s, struct table *table,
                                    const struct statement *statement,
                                    struct statement_target *target)
{
    const struct index *index = hf__table_index(table, statement->index);

    if (!index)
        return hf__fail(s, HF_INVALID, "The table does not have the specified index");
    target->index = true;
    target->global = !index->local;
    target->many = index->key.hash_len > 1 || index->key.range_len > 1;
    target->index_key = copy_key(s, &index->key);
    if (target->global)
        TRY(find_unprojected(s, table, index, statement->columns, &target->missing_column));
    return find_unprojected(s, table, index, statement->where, &target->missing_filter);
}

static enum hf_status look_at_table(struct hf_scope *s, struct engine *e,
                                    const struct statement *statement,
                                    struct statement_target *target)
{
    struct table *table;

    TRY(hf__catalog_item_table(s, e, statement->table, &table));
    target->key = copy_key(s, &table->key);
    if (statement->index.ptr)
        TRY(look_at_index(s, table, statement, target));
    return hf__scope_alloc_failed(s) ? hf__fail_nomem(s) : HF_OK;
}

enum hf_status hf__statement_target(struct hf_scope *s, struct engine *e,
                                    const struct statement *statement,
                                    struct statement_target *target)
{
    enum hf_status status;

    *target = (struct statement_target){.index = false};
    pthread_rwlock_rdlock(&e->schema);
    status = look_at_table(s, e, statement, target);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- writes --------------------------------------------------------------------------------- */

struct hf_item hf__statement_key_item(struct hf_scope *s, const struct statement_key *key,
                                      const struct statement_found *found)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, HF_TYPE_M);

    if (found->hash.ptr) {
        hf__build_name(&buf, key->hash.name);
        hf__build_value(&buf, found->hash);
    }
    if (found->range.ptr) {
        hf__build_name(&buf, key->range.name);
        hf__build_value(&buf, found->range);
    }
    hf__build_close(&buf, open);
    return hf__build_item_from(&buf, 0);
}

static enum hf_return_values returns_of(enum statement_returns returns)
{
    static const enum hf_return_values values[] = {
        [RETURNS_NONE] = HF_RETURN_NONE,
        [RETURNS_ALL_OLD] = HF_RETURN_ALL_OLD,
        [RETURNS_MODIFIED_OLD] = HF_RETURN_UPDATED_OLD,
        [RETURNS_ALL_NEW] = HF_RETURN_ALL_NEW,
        [RETURNS_MODIFIED_NEW] = HF_RETURN_UPDATED_NEW,
    };

    return values[returns];
}

enum hf_status hf__statement_write(struct hf_scope *s, const struct statement *statement,
                                   const struct statement_target *target,
                                   const struct statement_found *found,
                                   const struct statement_wishes *wishes, enum write_kind *kind,
                                   struct prepared_write *write)
{
    *write = (struct prepared_write){.table = statement->table,
                                     .returns = returns_of(statement->returns),
                                     .return_capacity = wishes->capacity,
                                     .return_old_on_failure = wishes->old_on_failure};
    if (statement->kind == STATEMENT_INSERT) {
        *kind = WRITE_PUT;
        write->item = statement->item;
        write->size = hf_item_size(statement->item);
        write->return_old_on_failure = false;
        return hf__partiql_not_exists(s, target->key.hash.name, &write->condition);
    }
    write->key = hf__statement_key_item(s, &target->key, found);
    write->condition = statement->where;
    write->update = statement->update;
    *kind = statement->kind == STATEMENT_UPDATE   ? WRITE_UPDATE
            : statement->kind == STATEMENT_DELETE ? WRITE_DELETE
                                                  : WRITE_CHECK;
    if (statement->kind == STATEMENT_DELETE && statement->where)
        TRY(hf__partiql_unless_missing(s, statement, target->key.hash.name, &write->condition));
    return hf_item_check(s, write->key);
}

/* ---- one by itself -------------------------------------------------------------------------- */

static enum hf_status check_item_attr(struct hf_scope *s, const struct statement_key_attr *attr,
                                      struct hf_item item)
{
    struct hf_value value;

    if (!attr->name.ptr)
        return HF_OK;
    value = hf_item_get(item, attr->name);
    if (!value.ptr)
        return hf__fail(s, HF_INVALID, "Key attribute should be present in the item: Key %.*s",
                        HF_FMT(attr->name));
    return hf__partiql_check_type(s, attr, value);
}

/* The WHERE clause of a write names one item. */
static enum hf_status find_by_where(struct hf_scope *s, const struct statement *statement,
                                    const struct statement_key *key, struct statement_found *found)
{
    TRY(hf__partiql_find_key(s, statement, key, false, found));
    if (!found->whole)
        return hf__fail(s, HF_INVALID,
                        "Where clause does not contain a mandatory equality on all "
                        "key attributes");
    if (found->twice.ptr)
        return hf__fail(s, HF_INVALID,
                        "Multiple conditions on same key %.*s. Only single item "
                        "Update/Insert/Delete are supported",
                        HF_FMT(found->twice));
    TRY(hf__partiql_check_type(s, &key->hash, found->hash));
    return key->range.name.ptr ? hf__partiql_check_type(s, &key->range, found->range) : HF_OK;
}

enum hf_status hf__statement_find_item(struct hf_scope *s, const struct statement *statement,
                                       const struct statement_target *target,
                                       struct statement_found *found)
{
    *found = (struct statement_found){.whole = false};
    if (statement->kind != STATEMENT_INSERT)
        return find_by_where(s, statement, &target->key, found);
    TRY(check_item_attr(s, &target->key.hash, statement->item));
    return check_item_attr(s, &target->key.range, statement->item);
}

enum hf_status
hf__statement_change(struct hf_scope *s, struct engine *e, const struct statement *statement,
                     const struct statement_target *target, const struct statement_found *found,
                     const struct statement_wishes *wishes, struct write_answer *answer)
{
    struct prepared_write write;
    enum write_kind kind;
    enum hf_status status;

    TRY(hf__statement_write(s, statement, target, found, wishes, &kind, &write));
    status = hf__write_one(s, e, kind, &write, answer);
    if (status == HF_CONDITION && statement->kind == STATEMENT_INSERT)
        return hf__fail(s, HF_DUPLICATE, "Duplicate primary key exists in table");
    return status;
}
