/*
 * engine/maintenance/check.c: deep verification: is everything that is stored well-formed, and does
 * it agree with everything else?
 *
 * The whole check looks at one snapshot, and at the tables and streams as they are in it: so it
 * takes no lock, and nobody waits for it. It goes over every key once; of an item it asks for the
 * entries that it should have, of an entry for the item that it belongs to. So missing, stray and
 * stale entries are all found. Items of backups are checked by themselves and counted.
 *
 * Before that the store reads every block of every table for its checksum: so everything is read
 * twice. How much that is can be estimated only, by the sizes of the files at first and by what the
 * first reading came to afterwards.
 */
#include "base/buf.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/maintenance/ttl.h"
#include "engine/read/read.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/token.h"
#include "model/value.h"
#include "store/store.h"

struct checking {
    struct hf_scope *s; /* for one key at a time */
    struct engine *e;   /* not the live engine, but a view of the snapshot */
    struct hf__store_snapshot *snapshot;
    struct hf_check_report *report;
    struct hf_scope *caller; /* gets the text of the first problem */
    uint64_t numbers_end;    /* no stream record has this number or a higher one */
    struct backup *backup;   /* the backup whose copy is being checked; NULL: none yet */
    struct table *copied;    /* the key schema of its items, and nothing else */
    const struct hf_check_options *options;
    struct hf_check_progress progress;
    uint64_t in_memory;     /* bytes that are not in table files yet, roughly */
    uint64_t reported_keys; /* the progress at its last report */
    uint64_t reported_bytes;
};

static void report_problem(struct checking *c, struct hf_bytes key, const char *what)
{
    struct hf__buf text = {.scope = c->caller};

    if (c->report->problems++ > 0)
        return;
    hf__buf_format(&text, "%s (key", what);
    for (size_t i = 0; i < key.len && i < 64; i++)
        hf__buf_format(&text, "%s%02x", i ? "" : " ", key.ptr[i]);
    hf__buf_format(&text, ")");
    c->report->first_problem = text.failed ? hf_str_from("no memory to describe the problem")
                                           : hf_str_of((const char *)text.ptr, text.len);
}

static struct table *table_by_id(struct engine *e, uint32_t id)
{
    for (size_t i = 0; i < e->catalog.len; i++)
        if (e->catalog.tables[i]->id == id)
            return e->catalog.tables[i];
    return NULL;
}

static struct index *index_by_id(struct engine *e, uint32_t id, struct table **table)
{
    for (size_t i = 0; i < e->catalog.len; i++) {
        *table = e->catalog.tables[i];
        for (size_t j = 0; j < (*table)->indexes_len; j++)
            if ((*table)->indexes[j].id == id)
                return &(*table)->indexes[j];
    }
    return NULL;
}

static struct table *table_by_ttl_id(struct engine *e, uint32_t id)
{
    for (size_t i = 0; i < e->catalog.len; i++)
        if (e->catalog.tables[i]->ttl_id == id)
            return e->catalog.tables[i];
    return NULL;
}

/* ---- progress ------------------------------------------------------------------------------- */

static enum hf_status report_progress(struct checking *c)
{
    enum hf_status status;

    if (c->progress.about_bytes < c->progress.bytes)
        c->progress.about_bytes = c->progress.bytes;
    c->reported_keys = c->progress.keys;
    c->reported_bytes = c->progress.bytes;
    if (!c->options->on_progress)
        return HF_OK;
    status = c->options->on_progress(&c->progress, c->options->user);
    if (status != HF_OK)
        hf__fail(c->caller, status, "The check was stopped by its on_progress callback");
    return status;
}

/* A store_watch: the store has verified so many more bytes. */
static enum hf_status on_verified(struct hf_scope *s, uint64_t bytes, void *user)
{
    struct checking *c = user;

    (void)s;
    c->progress.bytes += bytes;
    return report_progress(c);
}

static enum hf_status count_compared(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    c->progress.keys++;
    c->progress.bytes += key.len + value.len;
    if (c->progress.keys - c->reported_keys < STORE_WATCH_KEYS &&
        c->progress.bytes - c->reported_bytes < STORE_WATCH_BYTES)
        return HF_OK;
    return report_progress(c);
}

static enum hf_status verify_store(struct checking *c, struct hf__store *store)
{
    const struct store_watch watch = {.on_bytes = on_verified, .user = c};
    struct store_stats stats;

    hf__store_stats(store, &stats);
    c->in_memory = stats.data_bytes - stats.table_bytes;
    c->progress.about_bytes = stats.table_bytes + stats.data_bytes;
    TRY(report_progress(c));
    TRY(hf__store_verify(c->caller, store, &watch));
    c->progress.about_bytes = 2 * c->progress.bytes + c->in_memory;
    return HF_OK;
}

/* ---- what it looks up ----------------------------------------------------------------------- */

/* A key without an owner is no problem if its erasure is recorded. */
static enum hf_status belongs_nowhere(struct checking *c, struct hf_bytes key, const char *what)
{
    bool pending = false;

    if (key.len > PREFIX_LEN)
        TRY(hf__erase_is_pending(c->s, c->e, c->snapshot, key.ptr[0], load_u32be(key.ptr + 1),
                                 &pending));
    if (!pending)
        report_problem(c, key, what);
    return HF_OK;
}

/* The stored row: its outline, its inside, and the size in front of it. */
static bool good_row(struct checking *c, struct hf_bytes stored, struct row *row)
{
    return hf__row_decode(c->s, stored, row) == HF_OK &&
           hf__item_valid(row->item.ptr, row->item.len) && hf_item_size(row->item) == row->size;
}

static bool same_bytes(const struct hf__buf *buf, struct hf_bytes bytes)
{
    return !buf->failed && bytes_compare(buf->ptr, buf->len, bytes.ptr, bytes.len) == 0;
}

/* ---- items ---------------------------------------------------------------------------------- */

static enum hf_status check_entry_of(struct checking *c, struct table *table, struct index *index,
                                     struct hf_bytes key, const struct row *row)
{
    struct hf__buf entry_key = {.scope = c->s};
    struct hf_item projected;
    struct hf_bytes stored;
    struct row entry;

    if (!hf__index_key(&entry_key, table, index, row->item))
        return HF_OK;
    projected = hf__index_project(c->s, table, index, row->item);
    TRY(hf_item_check(c->s, projected));
    TRY(hf__store_get(c->s, c->e->store, c->snapshot, hf_bytes_of(entry_key.ptr, entry_key.len),
                      &stored));
    if (!stored.ptr && index->building)
        return HF_OK;
    if (!stored.ptr)
        report_problem(c, key, "an item has no entry in an index");
    else if (!good_row(c, stored, &entry) || !hf_item_equal(entry.item, projected))
        report_problem(c, key, "an index entry differs from its item");
    return HF_OK;
}

static enum hf_status check_expiry_of(struct checking *c, struct table *table, struct hf_bytes key,
                                      const struct row *row)
{
    struct hf__buf expiry_key = {.scope = c->s};
    struct hf_bytes stored;
    uint64_t expiry;

    if (!table->ttl_attribute.ptr || !hf__ttl_expiry(table->ttl_attribute, row->item, &expiry))
        return HF_OK;
    hf__ttl_key(&expiry_key, table, expiry, row->item);
    if (expiry_key.failed)
        return hf__fail_nomem(c->s);
    TRY(hf__store_get(c->s, c->e->store, c->snapshot, hf_bytes_of(expiry_key.ptr, expiry_key.len),
                      &stored));
    if (!stored.ptr && table->record.ttl_building != HF_YES)
        report_problem(c, key, "an item has no expiry entry");
    return HF_OK;
}

static enum hf_status check_item(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    struct table *table = key.len > PREFIX_LEN ? table_by_id(c->e, load_u32be(key.ptr + 1)) : NULL;
    struct hf__buf own = {.scope = c->s};
    struct row row;

    c->report->items++;
    if (!table)
        return belongs_nowhere(c, key, "an item belongs to no table");
    if (!good_row(c, value, &row)) {
        report_problem(c, key, "an item is damaged");
        return HF_OK;
    }
    if (hf__schema_check_put(c->s, table, row.item) != HF_OK) {
        report_problem(c, key, "an item lacks its key");
        return HF_OK;
    }
    hf__row_key(&own, table, row.item);
    if (!same_bytes(&own, key))
        report_problem(c, key, "an item is stored under a wrong key");
    for (size_t i = 0; i < table->indexes_len; i++)
        TRY(check_entry_of(c, table, &table->indexes[i], key, &row));
    return check_expiry_of(c, table, key, &row);
}

/* Can the key of the item that an entry leads to be read? If the item is damaged, that is reported
 * when the item itself is checked. */
static bool usable_row(struct checking *c, const struct table *table, const struct row *row)
{
    return hf__item_valid(row->item.ptr, row->item.len) &&
           hf__schema_check_put(c->s, table, row->item) == HF_OK;
}

/* ---- entries -------------------------------------------------------------------------------- */

static enum hf_status check_index_entry(struct checking *c, struct hf_bytes key,
                                        struct hf_bytes value)
{
    struct table *table = NULL;
    struct index *index =
        key.len > PREFIX_LEN ? index_by_id(c->e, load_u32be(key.ptr + 1), &table) : NULL;
    struct hf__buf own = {.scope = c->s};
    struct row entry;
    struct row row;

    c->report->index_entries++;
    if (!index)
        return belongs_nowhere(c, key, "an index entry belongs to no index");
    if (!good_row(c, value, &entry) || hf__schema_check_put(c->s, table, entry.item) != HF_OK) {
        report_problem(c, key, "an index entry is damaged");
        return HF_OK;
    }
    TRY(hf__read_key(c->s, c->e, table, c->snapshot, entry.item, &row));
    if (!row.item.ptr || !usable_row(c, table, &row) ||
        !hf__index_key(&own, table, index, row.item) || !same_bytes(&own, key))
        report_problem(c, key, "an index entry has no item");
    return HF_OK;
}

static enum hf_status check_expiry_entry(struct checking *c, struct hf_bytes key)
{
    struct table *table =
        key.len > PREFIX_LEN + 8 ? table_by_ttl_id(c->e, load_u32be(key.ptr + 1)) : NULL;
    struct hf__buf row_key = {.scope = c->s};
    struct row row;
    uint64_t expiry;

    c->report->expiry_entries++;
    if (!table)
        return belongs_nowhere(c, key, "an expiry entry belongs to no table");
    hf__stored_key_prefix(&row_key, SPACE_ITEM, table->id);
    hf__buf_put(&row_key, key.ptr + PREFIX_LEN + 8, key.len - PREFIX_LEN - 8);
    if (row_key.failed)
        return hf__fail_nomem(c->s);
    TRY(hf__row_read(c->s, c->e, c->snapshot, hf_bytes_of(row_key.ptr, row_key.len), &row));
    if (!row.item.ptr || !usable_row(c, table, &row) ||
        !hf__ttl_expiry(table->ttl_attribute, row.item, &expiry) ||
        expiry != load_u64be(key.ptr + PREFIX_LEN))
        report_problem(c, key, "an expiry entry has no item");
    return HF_OK;
}

static enum hf_status check_record(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    struct stream *stream =
        key.len == RECORD_KEY ? hf__stream_by_id(c->e, load_u32be(key.ptr + 1)) : NULL;
    struct record_head head;

    c->report->stream_records++;
    if (!stream)
        return belongs_nowhere(c, key, "a stream record belongs to no stream");
    if (load_u16be(key.ptr + 5) >= stream->record.shards_len)
        report_problem(c, key, "a stream record belongs to no shard");
    else if (!hf__stream_record_head_get(value, &head) ||
             !hf__item_valid(value.ptr + RECORD_HEAD, head.keys_len) ||
             (head.new_len &&
              !hf__item_valid(value.ptr + RECORD_HEAD + head.keys_len, head.new_len)) ||
             (head.old_len &&
              !hf__item_valid(value.ptr + RECORD_HEAD + head.keys_len + head.new_len,
                              head.old_len)))
        report_problem(c, key, "a stream record is damaged");
    else if (load_u64be(key.ptr + 7) >= c->numbers_end)
        report_problem(c, key, "a stream record has a sequence number that was never assigned");
    return HF_OK;
}

static enum hf_status check_token(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    struct hf__buf age = {.scope = c->s};
    struct hf_bytes stored;

    c->report->tokens++;
    if (value.len < TOKEN_HEAD || (value.len - TOKEN_HEAD) % TOKEN_SIZE != 0) {
        report_problem(c, key, "a token is damaged");
        return HF_OK;
    }
    hf__buf_put_byte(&age, SPACE_TOKEN_AGE);
    hf__buf_put(&age, value.ptr, 8);
    hf__buf_put(&age, key.ptr + 1, key.len - 1);
    if (age.failed)
        return hf__fail_nomem(c->s);
    TRY(hf__store_get(c->s, c->e->store, c->snapshot, hf_bytes_of(age.ptr, age.len), &stored));
    if (!stored.ptr)
        report_problem(c, key, "a token has no age");
    return HF_OK;
}

/* ---- backups -------------------------------------------------------------------------------- */

static struct backup *backup_by_copy(struct engine *e, uint32_t id)
{
    for (size_t i = 0; i < e->backups.len; i++)
        if (e->backups.list[i]->record.copy_id == (int64_t)id)
            return e->backups.list[i];
    return NULL;
}

/* The keys of one copy are adjacent: begin with the next copy. */
static enum hf_status open_copy_of(struct checking *c, struct backup *backup)
{
    struct hf_table_description plain = *backup->record.table;
    const struct table_record record = {.description = &plain, .id = backup->record.table_id};

    if (c->backup == backup)
        return HF_OK;
    hf__table_free(c->e, c->copied, true);
    c->copied = NULL;
    c->backup = NULL;
    plain.local_indexes_len = plain.global_indexes_len = 0;
    plain.local_indexes = plain.global_indexes = NULL;
    TRY(hf__table_new(c->s, c->e, &record, NULL, &c->copied));
    c->backup = backup;
    return HF_OK;
}

static enum hf_status check_copy(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    struct backup *backup =
        key.len > PREFIX_LEN ? backup_by_copy(c->e, load_u32be(key.ptr + 1)) : NULL;
    struct hf__buf own = {.scope = c->s};
    struct row row;

    c->report->backup_items++;
    if (!backup)
        return belongs_nowhere(c, key, "an item of a backup belongs to no backup");
    TRY(open_copy_of(c, backup));
    if (!good_row(c, value, &row) || hf__schema_check_put(c->s, c->copied, row.item) != HF_OK) {
        report_problem(c, key, "an item in a backup is damaged");
        return HF_OK;
    }
    hf__stored_key_prefix(&own, SPACE_COPY, (uint32_t)backup->record.copy_id);
    hf__stored_key_parts(&own, &c->copied->key, row.item);
    if (!same_bytes(&own, key))
        report_problem(c, key, "an item in a backup is stored under a wrong key");
    backup->items++;
    backup->bytes += (int64_t)row.size;
    return HF_OK;
}

/* After all items: a backup that is AVAILABLE must have all of its items. */
static void check_backups(struct checking *c)
{
    for (size_t i = 0; i < c->e->backups.len; i++) {
        const struct backup *backup = c->e->backups.list[i];
        uint8_t key[PREFIX_LEN] = {SPACE_BACKUP};

        store_u32be(key + 1, (uint32_t)backup->record.id);
        c->report->backups++;
        if (backup->record.creating != HF_YES &&
            (backup->items != backup->record.items || backup->bytes != backup->record.bytes))
            report_problem(c, hf_bytes_of(key, sizeof(key)),
                           "a backup has a wrong number of items");
    }
    for (size_t i = 0; i < c->e->catalog.len; i++) {
        const struct table *table = c->e->catalog.tables[i];

        if (table->record.restore_from && !hf__backup_by_id(c->e, table->record.restore_from))
            report_problem(c, hf_bytes_of(table->name.ptr, table->name.len),
                           "a table is being restored from a backup that does not exist");
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static enum hf_status check_one(struct checking *c, struct hf_bytes key, struct hf_bytes value)
{
    switch (key.ptr[0]) {
    case SPACE_SETTING:
    case SPACE_STREAM:
    case SPACE_ERASE:
    case SPACE_BACKUP:
    case SPACE_TOKEN_AGE:
        return HF_OK;
    case SPACE_TABLE:
        c->report->tables++;
        return HF_OK;
    case SPACE_ITEM:
        return check_item(c, key, value);
    case SPACE_INDEX:
        return check_index_entry(c, key, value);
    case SPACE_COPY:
        return check_copy(c, key, value);
    case SPACE_RECORD:
        return check_record(c, key, value);
    case SPACE_EXPIRY:
        return check_expiry_entry(c, key);
    case SPACE_TOKEN:
        return check_token(c, key, value);
    default:
        report_problem(c, key, "a key has an unknown kind");
        return HF_OK;
    }
}

static enum hf_status check_all(struct checking *c)
{
    const struct store_range all = {.lower = {NULL, 0}};
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    TRY(hf__store_iter_open(c->caller, c->e->store, c->snapshot, &all, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__scope_alive(c->caller);
        if (status == HF_OK)
            status = hf__store_iter_next(c->caller, iter, &found, &key, &value);
        if (status == HF_OK && found) {
            status = check_one(c, key, value);
            if (status != HF_OK)
                (void)hf_scope_fail_from(c->caller, status, c->s);
            else
                status = count_compared(c, key, value);
            hf_scope_reset(c->s);
        }
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

/* A view is an engine with only those members that reading needs. */
static enum hf_status view_open(struct hf_scope *s, struct engine *e,
                                struct hf__store_snapshot *snapshot, struct engine **view)
{
    *view = hf__env_alloc(&e->env, sizeof(**view));
    if (!*view)
        return hf__fail_nomem(s);
    memset(*view, 0, sizeof(**view));
    (*view)->env = e->env;
    (*view)->store = e->store;
    (*view)->opened = snapshot;
    TRY(hf__streams_load(s, *view));
    TRY(hf__backups_load(s, *view));
    return hf__catalog_load(s, *view);
}

static void view_close(struct engine *e, struct engine *view)
{
    if (!view)
        return;
    hf__backups_free(view);
    hf__catalog_free(view);
    hf__streams_free(view);
    hf__env_free(&e->env, view, sizeof(*view));
}

static enum hf_status check_snapshot(struct engine *e, struct checking *c)
{
    enum hf_status status;

    c->s = hf_scope_new(&e->env);
    if (!c->s)
        return hf__fail_nomem(c->caller);
    pthread_mutex_lock(&e->sequencer.lock);
    c->numbers_end = e->sequencer.next;
    pthread_mutex_unlock(&e->sequencer.lock);
    status = view_open(c->caller, e, c->snapshot, &c->e);
    if (status == HF_OK)
        status = check_all(c);
    if (status == HF_OK) {
        check_backups(c);
        c->progress.about_bytes = c->progress.bytes;
        status = report_progress(c);
    }
    hf__table_free(e, c->copied, true);
    view_close(e, c->e);
    hf_scope_free(c->s);
    return status;
}

static struct hf_check_options fill_options(const struct hf_check_options *options)
{
    struct hf_check_options o = {.size = sizeof(o)};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    return o;
}

enum hf_status hf_engine_check_with(struct hf_scope *s, struct hf_db *db,
                                    const struct hf_check_options *options,
                                    struct hf_check_report *report)
{
    struct engine *e = hf__engine_of(db);
    struct hf_check_options o = fill_options(options);
    struct hf_check_report ignored;
    struct checking c = {.report = report ? report : &ignored, .caller = s, .options = &o};
    enum hf_status status;

    report = c.report;
    memset(report, 0, sizeof(*report));
    hf__scope_error_clear(s);
    if (!e)
        return hf__fail(s, HF_UNSUPPORTED, "hf_engine_check() is for embedded databases only");
    TRY(hf__scope_alive(s)); /* before the files are read, which takes long */
    TRY(verify_store(&c, e->store));
    TRY(hf__store_snapshot_open(s, e->store, &c.snapshot));
    status = check_snapshot(e, &c);
    hf__store_snapshot_close(e->store, c.snapshot);
    if (status == HF_OK && report->problems)
        return hf__fail(s, HF_CORRUPT, "%llu problems, the first: %.*s",
                        (unsigned long long)report->problems, HF_FMT(report->first_problem));
    return status;
}

enum hf_status hf_engine_check(struct hf_scope *s, struct hf_db *db, struct hf_check_report *report)
{
    return hf_engine_check_with(s, db, NULL, report);
}
