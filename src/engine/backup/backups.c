/*
 * engine/backup/backups.c: which backups there are; making, describing, listing and deleting them.
 *
 * A backup has a record, which says what it is of, and a copy of the table's items, under an id of
 * its own. It is CREATING until maintenance has copied them all (backup_copy.c), AVAILABLE then. It
 * belongs to no table: when its table goes, it stays.
 *
 *  (1) A backup holds the state of its table at one moment between two writes, created_us: that of
 *      the call that made it, or, if the database was closed or put back (snapshot.c) before the
 *      copy was done, one after that.
 *  (2) AVAILABLE is shown only when the whole copy is durable, and stays so.
 *  (3) While it is CREATING, or a table is being filled from it, it cannot be deleted.
 *  (4) Every copy belongs to a backup, or is recorded as to be erased.
 */
#include "engine/backup/backups.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/counts.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/maintenance/maintenance.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "ops/fields.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "wire/wire.h"

/* ---- how a backup is stored ----------------------------------------------------------------- */

#define AT(type, member) (uint16_t) offsetof(struct type, member)

static const struct field record_list[] = {
    {.name = "Id", .kind = FIELD_INT, .at = AT(backup_record, id)},
    {.name = "CopyId", .kind = FIELD_INT, .at = AT(backup_record, copy_id)},
    {.name = "TableId", .kind = FIELD_INT, .at = AT(backup_record, table_id)},
    {.name = "Arn", .kind = FIELD_STR, .at = AT(backup_record, arn)},
    {.name = "Name", .kind = FIELD_STR, .at = AT(backup_record, name)},
    {.name = "Created", .kind = FIELD_INT, .at = AT(backup_record, created_us)},
    {.name = "Creating", .kind = FIELD_FLAG, .at = AT(backup_record, creating)},
    {.name = "Items",
     .kind = FIELD_INT,
     .at = AT(backup_record, items),
     .rules = FIELD_ALWAYS | FIELD_LONG},
    {.name = "Bytes",
     .kind = FIELD_INT,
     .at = AT(backup_record, bytes),
     .rules = FIELD_ALWAYS | FIELD_LONG},
    {.name = "Table",
     .kind = FIELD_STRUCT,
     .at = AT(backup_record, table),
     .sub = &hf__table_description_fields},
    {.name = "TtlAttribute", .kind = FIELD_STR, .at = AT(backup_record, ttl_attribute)},
};
static const struct fields record_fields = {"Backup", record_list, ARRAY_LEN(record_list),
                                            sizeof(struct backup_record)};

static void record_key(uint8_t key[PREFIX_LEN], int64_t id)
{
    key[0] = SPACE_BACKUP;
    store_u32be(key + 1, (uint32_t)id);
}

void hf__backup_put_record(struct hf_scope *s, struct store_batch *batch,
                           const struct backup_record *record)
{
    struct hf__buf json = {.scope = s};
    uint8_t key[PREFIX_LEN];

    record_key(key, record->id);
    hf__wire_write(&json, &record_fields, record);
    if (json.failed)
        batch->ops.failed = true;
    else
        hf__batch_put(batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(json.ptr, json.len));
}

/* ---- backups in memory ---------------------------------------------------------------------- */

static void backup_free(struct engine *e, struct backup *backup)
{
    if (!backup)
        return;
    if (backup->snapshot)
        hf__store_snapshot_close(e->store, backup->snapshot);
    hf__buf_free(&backup->from);
    hf_scope_free(backup->memory);
}

/* Is the record valid? If not, it is damaged. */
static bool backup_fill(struct backup *backup)
{
    const struct backup_record *record = &backup->record;
    struct table_arn parts;

    return record->id > 0 && record->id < UINT32_MAX && record->copy_id > 0 &&
           record->copy_id < UINT32_MAX && record->table_id > 0 && record->table_id < UINT32_MAX &&
           record->items >= 0 && record->bytes >= 0 && record->table && record->table->name.ptr &&
           record->arn.ptr && hf__arn_split_backup(record->arn, &parts, &backup->tail);
}

/* A backup in memory of its own, copied from a record by encoding and decoding it. */
static enum hf_status backup_new(struct hf_scope *s, struct engine *e,
                                 const struct backup_record *record, struct backup **out)
{
    struct hf_scope *memory = hf_scope_new(&e->env);
    struct backup *backup = memory ? hf__scope_array(memory, 1, sizeof(*backup)) : NULL;
    struct hf__buf json = {.scope = memory};
    enum hf_status status;

    if (!backup)
        goto no_memory;
    backup->memory = memory;
    backup->from = (struct hf__buf){.env = &e->env};
    hf__wire_write(&json, &record_fields, record);
    if (json.failed)
        goto no_memory;
    status = hf__wire_read(memory, &record_fields, hf_str_of((const char *)json.ptr, json.len),
                           &backup->record);
    if (status == HF_NOMEM)
        goto no_memory;
    if (status != HF_OK || !backup_fill(backup)) {
        hf_scope_free(memory);
        return hf__fail(s, HF_CORRUPT, "The record of a backup is damaged");
    }
    *out = backup;
    return HF_OK;
no_memory:
    hf_scope_free(memory);
    return hf__fail_nomem(s);
}

static enum hf_status backups_reserve(struct hf_scope *s, struct engine *e)
{
    struct backups *backups = &e->backups;
    size_t cap = backups->cap ? backups->cap * 2 : 8;
    struct backup **list;

    if (backups->len < backups->cap)
        return HF_OK;
    list =
        hf__env_resize(&e->env, backups->list, backups->cap * sizeof(*list), cap * sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    backups->list = list;
    backups->cap = cap;
    return HF_OK;
}

/* The place of a tail in the list, or where it would be inserted. */
static size_t backups_find_place(const struct backups *backups, struct hf_str tail)
{
    size_t low = 0;
    size_t high = backups->len;

    while (low < high) {
        size_t middle = (low + high) / 2;
        struct hf_str there = backups->list[middle]->tail;

        if (bytes_compare(there.ptr, there.len, tail.ptr, tail.len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The list is in the order of tails, and every backup in it is valid. */
static void backups_check(const struct backups *backups)
{
    assert(backups->len <= backups->cap);
    for (size_t i = 0; i < backups->len; i++) {
        const struct backup *backup = backups->list[i];

        assert(backup->memory && backup->tail.len > 0 && backup->record.table);
        assert(backup->record.id > 0 && backup->record.copy_id > 0);
        assert(!backup->snapshot || backup->record.creating == HF_YES);
        assert(i == 0 ||
               bytes_compare(backups->list[i - 1]->tail.ptr, backups->list[i - 1]->tail.len,
                             backup->tail.ptr, backup->tail.len) <= 0);
    }
}

static void backups_add(struct backups *backups, struct backup *backup)
{
    size_t at = backups_find_place(backups, backup->tail);

    assert(backups->len < backups->cap);
    memmove(backups->list + at + 1, backups->list + at,
            (backups->len - at) * sizeof(*backups->list));
    backups->list[at] = backup;
    backups->len++;
    if (DEV_CHECKS)
        backups_check(backups);
}

static struct backup *find_by_tail(const struct backups *backups, struct hf_str tail)
{
    size_t at = backups_find_place(backups, tail);

    return at < backups->len && hf_str_equal(backups->list[at]->tail, tail) ? backups->list[at]
                                                                            : NULL;
}

struct backup *hf__backup_by_id(struct engine *e, int64_t id)
{
    for (size_t i = 0; i < e->backups.len; i++)
        if (e->backups.list[i]->record.id == id)
            return e->backups.list[i];
    return NULL;
}

struct table *hf__backup_target(struct engine *e, const struct backup *backup)
{
    for (size_t i = 0; i < e->catalog.len; i++)
        if (e->catalog.tables[i]->record.restore_from == backup->record.id)
            return e->catalog.tables[i];
    return NULL;
}

/* The parts of a backup's ARN in a request; the backup need not exist. */
static enum hf_status split_arn(struct hf_scope *s, const struct engine *e, struct hf_str arn,
                                struct table_arn *parts, struct hf_str *tail)
{
    if (!hf__arn_split_backup(arn, parts, tail))
        return hf__fail(s, HF_INVALID, "Invalid Backup ARN");
    if (!hf_str_equal(parts->account, e->account))
        return hf__fail(s, HF_DENIED, "Access is denied");
    return HF_OK;
}

enum hf_status hf__backup_find(struct hf_scope *s, struct engine *e, struct hf_str arn,
                               struct backup **backup)
{
    struct table_arn parts;
    struct hf_str tail;

    ASSERT_SCHEMA_HELD(e);
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    TRY(split_arn(s, e, arn, &parts, &tail));
    *backup = find_by_tail(&e->backups, tail);
    if (!*backup || !hf_str_equal((*backup)->record.arn, arn))
        return hf__fail_as(s, HF_NOT_FOUND, "BackupNotFoundException", "Backup not found: %.*s",
                           HF_FMT(arn));
    return HF_OK;
}

/* ---- loading -------------------------------------------------------------------------------- */

static enum hf_status load_one(struct hf_scope *s, struct engine *e, struct hf_bytes json)
{
    struct backup_record record = {.id = 0};
    struct hf_str text = hf_scope_copy(s, hf_str_of((const char *)json.ptr, json.len));
    struct backup *backup;

    if (!text.ptr)
        return hf__fail_nomem(s);
    if (hf__wire_read(s, &record_fields, text, &record) != HF_OK)
        return hf_scope_error(s)->status == HF_NOMEM
                   ? HF_NOMEM
                   : hf__fail(s, HF_CORRUPT, "The record of a backup is damaged");
    TRY(backups_reserve(s, e));
    TRY(backup_new(s, e, &record, &backup));
    backups_add(&e->backups, backup);
    return HF_OK;
}

enum hf_status hf__backups_load(struct hf_scope *s, struct engine *e)
{
    static const uint8_t lower[] = {SPACE_BACKUP};
    static const uint8_t upper[] = {SPACE_BACKUP + 1};
    const struct store_range range = {.lower = {lower, 1}, .upper = {upper, 1}};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    enum hf_status status;
    bool found = true;

    TRY(hf__store_iter_open(s, e->store, e->opened, &range, &iter));
    do {
        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = load_one(s, e, value);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

void hf__backups_free(struct engine *e)
{
    struct backups *backups = &e->backups;

    for (size_t i = 0; i < backups->len; i++)
        backup_free(e, backups->list[i]);
    hf__env_free(&e->env, backups->list, backups->cap * sizeof(*backups->list));
}

/* ---- describing ----------------------------------------------------------------------------- */

static struct hf_backup_details details_of(const struct backup_record *record)
{
    return (struct hf_backup_details){
        .arn = record->arn,
        .name = record->name,
        .size_bytes = record->bytes,
        .status = record->creating == HF_YES ? HF_BACKUP_CREATING : HF_BACKUP_AVAILABLE,
        .type = HF_BACKUP_USER,
        .created_us = record->created_us,
    };
}

static struct hf_throughput units_of(const struct hf_throughput_description *d)
{
    return d ? (struct hf_throughput){d->read_units, d->write_units} : (struct hf_throughput){0, 0};
}

static enum hf_status source_indexes(struct hf_scope *s, const struct hf_index_description *from,
                                     size_t len, bool local, const struct hf_source_index **out)
{
    struct hf_source_index *list = hf__scope_array(s, len, sizeof(*list));
    struct hf_throughput *units = hf__scope_array(s, len, sizeof(*units));

    if (!list || !units)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        units[i] = units_of(from[i].throughput);
        list[i] = (struct hf_source_index){.name = from[i].name,
                                           .key_schema = from[i].key_schema,
                                           .key_schema_len = from[i].key_schema_len,
                                           .projection = from[i].projection,
                                           .throughput = local ? NULL : &units[i],
                                           .on_demand_throughput = from[i].on_demand_throughput};
    }
    *out = len ? list : NULL;
    return HF_OK;
}

/* A description in the scope, which points at nothing that the lock guards. */
static enum hf_status describe_backup(struct hf_scope *s, const struct backup_record *record,
                                      enum hf_backup_status status,
                                      const struct hf_backup_description **out)
{
    const struct fields *fields = hf__op(HF_OP_DESCRIBE_BACKUP)->response;
    const struct hf_table_description *d = record->table;
    struct hf_backup_details details = details_of(record);
    struct hf_throughput units = units_of(d->throughput);
    struct hf_source_table table = {
        .name = d->name,
        .id = d->id,
        .arn = d->arn,
        .size_bytes = record->bytes,
        .key_schema = d->key_schema,
        .key_schema_len = d->key_schema_len,
        .created_us = d->created_us,
        .throughput = &units,
        .on_demand_throughput = d->on_demand_throughput,
        .item_count = record->items,
        .billing = d->billing ? d->billing->billing : HF_BILLING_PROVISIONED,
    };
    struct hf_ttl_description ttl = {.status = HF_TTL_ENABLED, .attribute = record->ttl_attribute};
    struct hf_source_features features = {
        .local_indexes_len = d->local_indexes_len,
        .global_indexes_len = d->global_indexes_len,
        .stream = d->stream,
        .ttl = record->ttl_attribute.ptr ? &ttl : NULL,
        .sse = d->sse,
    };
    struct hf_backup_description whole = {.details = &details,
                                          .table = &table,
                                          .features = &features};
    struct hf_describe_backup_result result = {.backup = &whole};
    struct hf_describe_backup_result copy = {.backup = NULL};
    struct hf__buf json = {.scope = s};

    if (status)
        details.status = status;
    TRY(source_indexes(s, d->local_indexes, d->local_indexes_len, true, &features.local_indexes));
    TRY(source_indexes(s, d->global_indexes, d->global_indexes_len, false,
                       &features.global_indexes));
    hf__wire_write(&json, fields, &result);
    if (json.failed)
        return hf__fail_nomem(s);
    TRY(hf__wire_read(s, fields, hf_str_of((const char *)json.ptr, json.len), &copy));
    *out = copy.backup;
    return HF_OK;
}

enum hf_status hf__engine_describe_backup(struct hf_scope *s, struct engine *e,
                                          const struct hf_describe_backup *request,
                                          struct hf_describe_backup_result *result)
{
    struct backup *backup;
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_BACKUP, request));
    pthread_rwlock_rdlock(&e->schema);
    status = hf__backup_find(s, e, request->arn, &backup);
    if (status == HF_OK)
        status = describe_backup(s, &backup->record, 0, &result->backup);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- listing -------------------------------------------------------------------------------- */

enum { LIST_BACKUPS_MAX = 100 };

static bool is_wanted(const struct hf_list_backups *request, const struct backup_record *record)
{
    if (request->type && request->type != HF_BACKUP_USER && request->type != HF_BACKUP_ALL)
        return false;
    if (request->table.ptr &&
        !hf_str_equal(hf__ops_table_name(request->table), record->table->name))
        return false;
    return (!request->from_us || record->created_us >= request->from_us) &&
           (!request->until_us || record->created_us < request->until_us);
}

static void summarize_backup(struct hf_scope *s, const struct backup_record *record,
                             struct hf_backup_summary *out)
{
    struct hf_backup_details details = details_of(record);

    *out = (struct hf_backup_summary){
        .table = hf_scope_copy(s, record->table->name),
        .table_id = hf_scope_copy(s, record->table->id),
        .table_arn = hf_scope_copy(s, record->table->arn),
        .arn = hf_scope_copy(s, record->arn),
        .name = hf_scope_copy(s, record->name),
        .created_us = details.created_us,
        .status = details.status,
        .type = details.type,
        .size_bytes = details.size_bytes,
    };
}

static enum hf_status list_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_list_backups *request,
                                  struct hf_list_backups_result *result)
{
    size_t limit = request->limit ? (size_t)request->limit : LIST_BACKUPS_MAX;
    struct hf_backup_summary *list = hf__scope_array(s, limit, sizeof(*list));
    struct hf_str start = {NULL, 0};
    struct table_arn parts;
    size_t at = 0;

    if (!list)
        return hf__fail_nomem(s);
    if (request->start_arn.ptr) { /* start behind its place, even if it does not exist */
        TRY(split_arn(s, e, request->start_arn, &parts, &start));
        at = backups_find_place(&e->backups, start);
        at += find_by_tail(&e->backups, start) != NULL;
    }
    for (; at < e->backups.len; at++) {
        const struct backup_record *record = &e->backups.list[at]->record;

        if (!is_wanted(request, record))
            continue;
        if (result->backups_len == limit) {
            result->last_arn = list[limit - 1].arn;
            break;
        }
        summarize_backup(s, record, &list[result->backups_len++]);
    }
    result->backups = list;
    return HF_OK;
}

enum hf_status hf__engine_list_backups(struct hf_scope *s, struct engine *e,
                                       const struct hf_list_backups *request,
                                       struct hf_list_backups_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_list_backups(s, request));
    pthread_rwlock_rdlock(&e->schema);
    status = list_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* ---- making --------------------------------------------------------------------------------- */

/* A unique tail: the present time in milliseconds and a random number. */
static struct hf_str new_arn(struct hf_scope *s, struct engine *e, struct hf_str table,
                             int64_t created_us)
{
    struct table_arn parts;
    struct hf_str arn, tail;
    uint8_t random[4];

    do {
        hf__env_random(&e->env, random, sizeof(random));
        arn = hf_scope_format(s, "%.*s/backup/%014lld-%08x", HF_FMT(table),
                              (long long)(created_us / 1000), load_u32be(random));
    } while (arn.ptr && hf__arn_split_backup(arn, &parts, &tail) &&
             find_by_tail(&e->backups, tail));
    return arn;
}

static int64_t count_shown(atomic_llong *value)
{
    long long count = atomic_load(value);

    return count > 0 ? count : 0;
}

/* Record and snapshot belong to one moment: the schema lock is held for writing, so nobody writes.
 */
static enum hf_status make_locked(struct hf_scope *s, struct engine *e,
                                  const struct hf_create_backup *request, struct store_batch *batch,
                                  struct backup **made)
{
    struct backup_record record;
    struct table *table;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__catalog_backup_table(s, e, request->table, &table));
    TRY(backups_reserve(s, e));
    record = (struct backup_record){
        .id = hf__catalog_new_id(s, e, batch),
        .copy_id = hf__catalog_new_id(s, e, batch),
        .table_id = table->id,
        .name = request->name,
        .created_us = hf__env_wall_us(&e->env) / 1000 * 1000,
        .creating = HF_YES,
        .items = count_shown(&table->counts->table.items),
        .bytes = count_shown(&table->counts->table.bytes),
        .table = table->record.description,
        .ttl_attribute = table->record.ttl_attribute,
    };
    record.arn = new_arn(s, e, table->record.description->arn, record.created_us);
    if (!record.arn.ptr)
        return hf__fail_nomem(s);
    hf__backup_put_record(s, batch, &record);
    TRY(backup_new(s, e, &record, made));
    return hf__store_snapshot_open(s, e->store, &(*made)->snapshot);
}

static enum hf_status create_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_create_backup *request,
                                    struct hf_create_backup_result *result)
{
    struct store_batch batch = {.ops = {.scope = s}};
    const struct hf_backup_description *described = NULL;
    struct backup *backup = NULL;
    enum hf_status status = make_locked(s, e, request, &batch, &backup);

    if (status == HF_OK)
        status = describe_backup(s, &backup->record, 0, &described);
    if (status == HF_OK)
        status = hf__catalog_commit(s, e, &batch);
    if (status != HF_OK) {
        backup_free(e, backup);
        return status;
    }
    backups_add(&e->backups, backup);
    result->details = described->details;
    return HF_OK;
}

enum hf_status hf__engine_create_backup(struct hf_scope *s, struct engine *e,
                                        const struct hf_create_backup *request,
                                        struct hf_create_backup_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_CREATE_BACKUP, request));
    TRY(hf__counts_refresh(s, e, request->table));
    hf__schema_lock(e);
    status = create_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK)
        return status;
    hf__engine_maintenance_wake(e);
    return hf__engine_wait_durable(s, e, hf__store_written(e->store));
}

/* ---- deleting ------------------------------------------------------------------------------- */

static enum hf_status delete_locked(struct hf_scope *s, struct engine *e, struct hf_str arn,
                                    struct hf_delete_backup_result *result)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct backups *backups = &e->backups;
    struct backup *backup;
    uint8_t key[PREFIX_LEN];
    size_t at;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__backup_find(s, e, arn, &backup));
    if (backup->record.creating == HF_YES)
        return hf__fail_as(s, HF_IN_USE, "BackupInUseException", "Backup is being created: %.*s",
                           HF_FMT(arn));
    if (hf__backup_target(e, backup))
        return hf__fail_as(s, HF_IN_USE, "BackupInUseException",
                           "Backup is being used to restore table: %.*s", HF_FMT(arn));
    TRY(describe_backup(s, &backup->record, HF_BACKUP_DELETED, &result->backup));
    record_key(key, backup->record.id);
    hf__batch_delete(&batch, hf_bytes_of(key, sizeof(key)));
    hf__erase_later(&batch, SPACE_COPY, (uint32_t)backup->record.copy_id);
    TRY(hf__catalog_commit(s, e, &batch));
    at = backups_find_place(backups, backup->tail);
    assert(at < backups->len && backups->list[at] == backup && !backup->snapshot);
    memmove(backups->list + at, backups->list + at + 1,
            (backups->len - at - 1) * sizeof(*backups->list));
    backups->len--;
    backup_free(e, backup);
    if (DEV_CHECKS)
        backups_check(backups);
    return HF_OK;
}

enum hf_status hf__engine_delete_backup(struct hf_scope *s, struct engine *e,
                                        const struct hf_delete_backup *request,
                                        struct hf_delete_backup_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_DELETE_BACKUP, request));
    hf__schema_lock(e);
    status = delete_locked(s, e, request->arn, result);
    pthread_rwlock_unlock(&e->schema);
    return status == HF_OK ? hf__engine_wait_durable(s, e, hf__store_written(e->store)) : status;
}
