/*
 * engine/write/batch_write.c: BatchWriteItem. DynamoDB promises nothing about the writes of a batch
 * together; here they are one change set, so one record of the journal and one sync, all or
 * nothing.
 */
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/write.h"
#include "ops/prepare.h"
#include "store/store.h"

struct batch_write {
    const struct hf_batch_write_item *request;
    struct hf_batch_write_item_result *result;
    struct change *changes; /* in the order of the request */
    struct hf_item *keys;   /* put items or keys, likewise */
    size_t len;
    size_t sizes[BATCH_WRITE_MAX]; /* of the put items */
    struct table **tables;         /* of the request's tables */
};

static struct hf_item write_target(const struct hf_write_request *write)
{
    return write->put ? write->put->item : write->del->key;
}

static enum hf_status check_one(struct hf_scope *s, const struct table *table,
                                const struct hf_write_request *write)
{
    if (!write->put)
        return hf__schema_check_key(s, table, write->del->key);
    TRY(hf__schema_check_batch_put(s, table, write->put->item));
    return hf__schema_check_indexes(s, table, write->put->item, NULL, (struct hf_item){NULL, 0});
}

/* Find tables, check every entry, and refuse two writes to one item, also of a table that is named
 * twice (as it is, and by its ARN); nothing is latched yet. */
static enum hf_status check_all(struct hf_scope *s, struct engine *e, struct batch_write *b,
                                struct latch_set *latches)
{
    for (size_t i = 0; i < b->request->tables_len; i++) {
        const struct hf_table_writes *writes = &b->request->tables[i];
        struct table *table;

        TRY(hf__catalog_item_table(s, e, writes->table, &table));
        TRY(hf__fence_check(s, e, table));
        b->tables[i] = table;
        for (size_t j = 0; j < writes->writes_len; j++) {
            const struct hf_write_request *write = &writes->writes[j];
            struct hf_item key;

            TRY(check_one(s, table, write));
            key = hf__schema_key_item(s, &table->key, write_target(write));
            TRY(hf_item_check(s, key));
            for (size_t k = 0; k < b->len; k++)
                if (b->changes[k].table == table && hf_item_equal(b->keys[k], key))
                    return hf__fail(s, HF_INVALID,
                                    "Provided list of item keys contains duplicates");
            b->keys[b->len] = key;
            b->changes[b->len] = (struct change){.table = table};
            if (write->put)
                b->changes[b->len].after = (struct row){write->put->item, b->sizes[b->len]};
            TRY(hf__change_key(s, &b->changes[b->len], key));
            hf__latch_want(latches, hf__stored_latch(b->changes[b->len].key));
            b->len++;
        }
    }
    return HF_OK;
}

static enum hf_status fill_answer(struct hf_scope *s, struct batch_write *b)
{
    size_t tables = b->request->tables_len;
    struct hf_capacity *capacity = hf__scope_array(s, tables, sizeof(*capacity));
    struct hf_table_metrics *metrics = hf__scope_array(s, tables, sizeof(*metrics));
    size_t at = 0;

    if (!capacity || !metrics)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < tables; i++) {
        size_t writes = b->request->tables[i].writes_len;
        struct usage usage = {.table = b->tables[i], .named = b->request->tables[i].table};
        struct hf_collection_metrics *list = hf__scope_array(s, writes, sizeof(*list));
        const struct hf_capacity *used;
        size_t len = 0;

        if (!list)
            return hf__fail_nomem(s);
        for (size_t j = 0; j < writes; j++, at++) {
            const struct hf_collection_metrics *one =
                hf__collection_metrics(s, b->tables[i], b->request->return_metrics, b->keys[at]);

            hf__usage_add_change(&usage, &b->changes[at], 1.0);
            if (one)
                list[len++] = *one;
        }
        if (len)
            metrics[b->result->metrics_len++] =
                (struct hf_table_metrics){.table = hf_scope_copy(s, b->request->tables[i].table),
                                          .metrics = list,
                                          .metrics_len = len};
        used = hf__usage_capacity(s, &usage, b->request->return_capacity);
        if (used)
            capacity[b->result->capacity_len++] = *used;
    }
    assert(at == b->len);
    b->result->capacity = b->result->capacity_len ? capacity : NULL;
    b->result->metrics = b->result->metrics_len ? metrics : NULL;
    return HF_OK;
}

static enum hf_status write_latched(struct hf_scope *s, struct engine *e, struct batch_write *b,
                                    uint64_t *ticket)
{
    struct change_set set;

    TRY(hf__change_set(s, b->len, &set));
    /* Read everything first: a batch grows in place if nothing else is allocated meanwhile. */
    for (size_t i = 0; i < b->len; i++)
        TRY(hf__change_read(s, e, &b->changes[i]));
    for (size_t i = 0; i < b->len; i++)
        TRY(hf__change_add(s, e, &set, &b->changes[i]));
    TRY(fill_answer(s, b)); /* so that nothing can fail once it is applied */
    return hf__change_apply(s, e, &set, ticket);
}

static enum hf_status write_locked(struct hf_scope *s, struct engine *e, struct batch_write *b,
                                   uint64_t *ticket)
{
    struct latch_set latches;
    enum hf_status status;
    size_t count = 0;

    ASSERT_SCHEMA_HELD(e);
    for (size_t i = 0; i < b->request->tables_len; i++)
        count += b->request->tables[i].writes_len;
    b->changes = hf__scope_array(s, count, sizeof(*b->changes));
    b->keys = hf__scope_array(s, count, sizeof(*b->keys));
    b->tables = hf__scope_array(s, b->request->tables_len, sizeof(*b->tables));
    if (!b->changes || !b->keys || !b->tables)
        return hf__fail_nomem(s);
    TRY(hf__latch_set(s, count, &latches));
    TRY(check_all(s, e, b, &latches));
    assert(b->len == count);
    TRY(hf__latch_all_patient(s, e, &latches));
    status = write_latched(s, e, b, ticket);
    if (status == HF_OK && *ticket == 0)
        *ticket = hf__store_written(e->store);
    hf__unlatch_all(e, &latches, status == HF_OK ? *ticket : 0);
    return status;
}

enum hf_status hf__engine_batch_write_item(struct hf_scope *s, struct engine *e,
                                           const struct hf_batch_write_item *request,
                                           struct hf_batch_write_item_result *result)
{
    struct batch_write b = {.request = request, .result = result};
    enum hf_status status;
    uint64_t ticket = 0;

    TRY(hf__prepare_batch_write_item(s, request, b.sizes));
    pthread_rwlock_rdlock(&e->schema);
    status = write_locked(s, e, &b, &ticket);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, ticket) : status;
}
