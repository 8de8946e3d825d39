/*
 * records/records.c: a table of records: opening it, and single records. records_item.c says how
 * they are stored, records_list.c lists them, processor.c works on them.
 *
 * What always holds:
 *
 *  (1) A record is unprocessed, processed or failed, and its place in the index says so. State and
 *      place change in one write of one item.
 *  (2) Fences only grow, also when a record is replaced. Should it be deleted, its successor begins
 *      at the time of day in milliseconds, which is above any fence that was reached by less than a
 *      claim a millisecond.
 *  (3) Nothing but a put makes a record: all else is conditional on it being there.
 *  (4) How many shards there are is written into the table once, and everybody goes by that. With
 *      two opinions, one would look in places where the other never puts anything.
 */
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include "records/records.h"

enum { REPLACE_ATTEMPTS = 20 };

/* ---- the table ------------------------------------------------------------------------------ */

/* (4) Write down how many shards there are, or read what others wrote: that is the table's mark. */
static enum hf_status agree_on_shards(struct hf_scope *s, struct hf_records *records,
                                      const struct hf_create_table *spec, uint32_t wanted,
                                      bool adopt)
{
    const struct record_key key = {HF_STR("holdfast:records"), HF_STR("shards")};
    struct hf_item where = hf__records_key(s, records, key), found;
    const struct hf_attr config[] = {HF_N("Shards", wanted ? wanted : HF_RECORDS_SHARDS),
                                     HF_N("Format", hf__kind_format(KIND_RECORDS)),
                                     HF_S("Kind", hf__kind_name(KIND_RECORDS))};
    struct hf_put_item put = {.table = records->table,
                              .item = hf_item_with(s, where, config, ARRAY_LEN(config)),
                              .condition = HF_STR("attribute_not_exists(#account)"),
                              .names = hf__records_names(s, records, "#account", NULL)};
    int64_t number;
    const struct kind_table of = {.db = records->db,
                                  .spec = spec,
                                  .kind = KIND_RECORDS,
                                  .adopt = adopt};
    enum hf_status status;

    TRY(hf__kind_read(s, &of, where, &found));
    if (!found.ptr) {
        status = hf__kind_put(s, &of, &(struct hf_transact_write){.put = &put}, where, &found);
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        if (status == HF_OK)
            found = put.item;
    }
    if (hf_item_get(found, HF_STR("Kind")).ptr) /* the first ones did not say what they are */
        TRY(hf__kind_check(s, records->table, KIND_RECORDS,
                           hf_value_str(hf_item_get(found, HF_STR("Kind"))),
                           hf_item_get(found, HF_STR("Format"))));
    if (!hf_value_i64(hf_item_get(found, HF_STR("Shards")), &number) || number < 1 ||
        number > HF_RECORDS_SHARDS_MAX)
        return hf_scope_fail(s, HF_CORRUPT, "table %.*s does not say how many shards it has",
                             HF_FMT(records->table));
    if (wanted && number != wanted)
        return hf_scope_fail(s, HF_INVALID, "table %.*s has %d shards, expected %u",
                             HF_FMT(records->table), (int)number, wanted);
    records->shards = (uint32_t)number;
    return hf_scope_ok(s);
}

static enum hf_status table_ensure(struct hf_scope *s, struct hf_records *records,
                                   const struct hf_records_options *o)
{
    const struct hf_attribute_definition attributes[] = {{records->account, HF_SCALAR_S},
                                                         {records->run_time, HF_SCALAR_S},
                                                         {records->shard, HF_SCALAR_S}};
    const struct hf_key_element key[] = {{records->account, HF_KEY_HASH},
                                         {records->run_time, HF_KEY_RANGE}};
    const struct hf_key_element index_key[] = {{records->shard, HF_KEY_HASH},
                                               {records->run_time, HF_KEY_RANGE}};
    const struct hf_projection keys_only = {.type = HF_PROJECT_KEYS_ONLY};
    const struct hf_index index = {.name = records->index,
                                   .key_schema = index_key,
                                   .key_schema_len = ARRAY_LEN(index_key),
                                   .projection = &keys_only};
    const struct hf_create_table spec = {.table = records->table,
                                         .attributes = attributes,
                                         .attributes_len = ARRAY_LEN(attributes),
                                         .key_schema = key,
                                         .key_schema_len = ARRAY_LEN(key),
                                         .global_indexes = &index,
                                         .global_indexes_len = 1};
    struct pattern_open how = {KIND_RECORDS, .no_create = o->no_create, .adopt = o->adopt,
                               .add_indexes = true};

    TRY(hf__pattern_table_begin(s, records->db, &spec, (struct hf_str){0}, &how));
    TRY(agree_on_shards(s, records, &spec, o->shards, o->adopt));
    return hf__pattern_table_end(s, records->db, &spec, (struct hf_str){0}, &how);
}

static const char *const own_names[] = {"Claim",   "Fence",  "Attempts", "Failures",  "NotBefore",
                                        "Failure", "DoneBy", "PutId",    "CreatedAt", "UpdatedAt",
                                        "Shards",  "Kind",   "Format"};
enum { OWN_TO_STRIP = 8 }; /* of these: what a put never takes from its record */
_Static_assert(OWN_TO_STRIP <= ARRAY_LEN(own_names), "the first ones of them");

static enum hf_status check_names(struct hf_scope *s, const struct hf_records *records)
{
    const struct hf_str names[] = {records->account, records->run_time, records->processed,
                                   records->shard};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool taken = false;

        for (size_t j = 0; j < i; j++)
            taken = taken || hf_str_equal(names[i], names[j]);
        for (size_t j = 0; j < ARRAY_LEN(own_names); j++)
            taken = taken || hf_str_equal(names[i], hf_str_from(own_names[j]));
        if (taken)
            return hf_scope_fail(s, HF_INVALID, "two attributes of records have the name \"%.*s\"",
                                 HF_FMT(names[i]));
    }
    return HF_OK;
}

static struct hf_str text_or(struct hf_records *records, struct hf_str given, const char *otherwise)
{
    return hf_scope_copy(records->names, given.len ? given : hf_str_from(otherwise));
}

static enum hf_status records_fill(struct hf_scope *s, struct hf_records *records,
                                   const struct hf_records_options *o)
{
    records->names = hf_scope_new(&records->env);
    if (!records->names)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of records");
    records->table = text_or(records, o->table, "Records");
    records->account = text_or(records, o->account, "AccountId");
    records->run_time = text_or(records, o->run_time, "RunTime");
    records->processed = text_or(records, o->processed, "Processed");
    records->index = text_or(records, o->index, "Processed");
    records->shard = text_or(records, o->shard, "ProcessedShard");
    records->index_processed = o->index_processed;
    if (hf_scope_built(records->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of records");
    if (o->shards > HF_RECORDS_SHARDS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_RECORDS_SHARDS_MAX, o->shards),
                                   "%u shards are more than %d", o->shards, HF_RECORDS_SHARDS_MAX);
    TRY(check_names(s, records));
    TRY(hf__records_texts(s, records));
    return table_ensure(s, records, o);
}

enum hf_status hf_records_open(struct hf_scope *s, struct hf_db *db,
                               const struct hf_records_options *options,
                               struct hf_records **records)
{
    struct hf_records_options o;
    struct hf_records *made;
    enum hf_status status;

    *records = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_records_open() was called without a database");
    made = hf__env_zalloc(hf_scope_env(s), sizeof(*made));
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of records");
    made->env = *hf_scope_env(s);
    made->db = db;
    status = records_fill(s, made, &o);
    if (status != HF_OK) {
        hf_records_close(made);
        return status;
    }
    *records = made;
    return HF_OK;
}

void hf_records_close(struct hf_records *records)
{
    struct hf_env env;

    if (!records)
        return;
    env = records->env;
    hf_scope_free(records->names);
    hf__env_free(&env, records, sizeof(*records));
}

/* ---- putting -------------------------------------------------------------------------------- */

static bool is_own(const struct hf_records *records, struct hf_str name)
{
    for (size_t i = 0; i < OWN_TO_STRIP; i++)
        if (hf_str_equal(name, hf_str_from(own_names[i])))
            return true;
    return hf_str_equal(name, records->shard);
}

/* The record without our attributes, which it has if it was read before. */
static struct hf_item record_strip(struct hf_scope *s, const struct hf_records *records,
                                   struct hf_item record)
{
    struct hf_attr *attrs = hf_scope_alloc(s, (hf_item_count(record) + 1) * sizeof(*attrs));
    struct hf_item_walk walk = {0};
    size_t len = 0;

    if (!attrs)
        return (struct hf_item){0};
    while (hf_item_next(record, &walk))
        if (!is_own(records, walk.name))
            attrs[len++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    return hf_item_make(s, attrs, len);
}

static enum hf_status check_key(struct hf_scope *s, struct record_key key)
{
    if (!key.account.len || !key.run_time.len)
        return hf_scope_fail(s, HF_INVALID, "a record needs an account and a run time");
    return HF_OK;
}

/* What a put is about. */
struct put_plan {
    struct record_key key;
    struct pattern_id id;
    struct hf_item record; /* stripped */
    bool processed;
};

static enum hf_status plan_put(struct hf_scope *s, const struct hf_records *records,
                               struct hf_item record, struct put_plan *plan)
{
    struct hf_value processed = hf_item_get(record, records->processed);
    int64_t number = 0;

    TRY(hf_item_check(s, record));
    plan->key.account = hf_value_str(hf_item_get(record, records->account));
    plan->key.run_time = hf_value_str(hf_item_get(record, records->run_time));
    TRY(check_key(s, plan->key));
    if (processed.ptr && (!hf_value_i64(processed, &number) || number < 0 || number > 1))
        return hf_scope_fail(s, HF_INVALID, "record %.*s, %.*s: %.*s is neither 0 nor 1",
                             HF_FMT(plan->key.account), HF_FMT(plan->key.run_time),
                             HF_FMT(records->processed));
    plan->processed = number == 1;
    plan->id = hf__pattern_id_make(&records->env);
    plan->record = record_strip(s, records, record);
    return hf_scope_built(s);
}

/* The item to be put, with a fence above `old`'s (2). */
static struct hf_item put_image(struct hf_scope *s, const struct hf_records *records,
                                const struct put_plan *plan, struct hf_item old)
{
    struct hf_value created = hf_item_get(plan->record, HF_STR("CreatedAt"));
    struct hf_str now = hf__records_time(s, records);
    int64_t fence = 0, first = hf__env_wall_ms(&records->env);
    struct hf_attr attrs[6];
    size_t len = 0;

    if (!hf_value_i64(hf_item_get(old, HF_STR("Fence")), &fence) || fence < 0)
        fence = first;
    if (!created.ptr)
        created = hf_item_get(old, HF_STR("CreatedAt"));
    attrs[len++] = (struct hf_attr)HF_N("Fence", fence + 1);
    attrs[len++] = (struct hf_attr)HF_S("PutId", hf_scope_copy(s, id_str(&plan->id)));
    attrs[len++] = (struct hf_attr)HF_S("UpdatedAt", now);
    attrs[len++] = created.ptr ? (struct hf_attr)HF_V("CreatedAt", created)
                               : (struct hf_attr)HF_S("CreatedAt", now);
    attrs[len++] = (struct hf_attr){.name = records->processed,
                                    .type = HF_TYPE_N,
                                    .number = plan->processed ? 1 : 0};
    if (!plan->processed || records->index_processed)
        attrs[len++] =
            (struct hf_attr){.name = records->shard,
                             .type = HF_TYPE_S,
                             .text = hf__records_place(s, records,
                                                       plan->processed ? HF_RECORD_PROCESSED
                                                                       : HF_RECORD_UNPROCESSED,
                                                       plan->key)};
    assert(len <= ARRAY_LEN(attrs) && fence >= 0 && "(2)");
    return hf_item_with(s, plan->record, attrs, len);
}

static struct hf_put_item insert_request(struct hf_scope *s, const struct hf_records *records,
                                         const struct put_plan *plan)
{
    return (struct hf_put_item){.table = records->table,
                                .item = put_image(s, records, plan, (struct hf_item){0}),
                                .condition = HF_STR("attribute_not_exists(#account)"),
                                .names = hf__records_names(s, records, "#account", NULL)};
}

/* In the place of `old`, if that is as it was: no put, reset or claim came in between. */
static struct hf_put_item replace_request(struct hf_scope *s, const struct hf_records *records,
                                          const struct put_plan *plan, struct hf_item old)
{
    struct hf_value fence = hf_item_get(old, HF_STR("Fence"));
    const char *same = "#fence = :fence", *none = "attribute_not_exists(#fence)";

    return (struct hf_put_item){.table = records->table,
                                .item = put_image(s, records, plan, old),
                                .condition = hf_str_from(fence.ptr ? same : none),
                                .names = hf__records_names(s, records, same, NULL),
                                .values = fence.ptr ? HF_ITEM(s, HF_V(":fence", fence))
                                                    : (struct hf_item){0}};
}

/* Another item than the one that was sent is there. Is it certain that ours never was? Anything
 * that came after ours has a higher fence. */
static bool was_never_put(struct hf_item sent, struct hf_item now)
{
    int64_t ours = 0, theirs = 0;

    if (!now.ptr)
        return false;
    (void)hf_value_i64(hf_item_get(sent, HF_STR("Fence")), &ours);
    return !hf_value_i64(hf_item_get(now, HF_STR("Fence")), &theirs) || theirs <= ours;
}

enum hf_status hf_records_put(struct hf_scope *s, struct hf_records *records, struct hf_item record,
                              const struct hf_record_put_options *options)
{
    struct hf_record_put_options o;
    struct hf_item where, old = {0};
    struct put_plan plan;

    OPTIONS_COPY(&o, options);
    TRY(plan_put(s, records, record, &plan));
    where = hf__records_key(s, records, plan.key);
    for (int attempt = 0; attempt < REPLACE_ATTEMPTS; attempt++) {
        struct hf_put_item put =
            old.ptr ? replace_request(s, records, &plan, old) : insert_request(s, records, &plan);
        enum hf_status status;

        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, records->db, &(struct hf_transact_write){.put = &put}, where,
                                   &old);
        if (status != HF_CONDITION)
            return status;
        if (hf_str_equal(hf__records_put_id(old), id_str(&plan.id)))
            return hf_scope_ok(s); /* it was done, and its answer got lost */
        if (hf_scope_error(s)->may_have_happened && !was_never_put(put.item, old)) {
            (void)hf_scope_fail(s, HF_IO,
                                "record %.*s, %.*s: an answer was lost, and as others have changed "
                                "the record since, it is not known whether it was put",
                                HF_FMT(plan.key.account), HF_FMT(plan.key.run_time));
            return hf_scope_doubt(s);
        }
        if (o.only_new && old.ptr)
            return hf_scope_fail(s, HF_DUPLICATE, "record %.*s, %.*s already exists",
                                 HF_FMT(plan.key.account), HF_FMT(plan.key.run_time));
    }
    return hf_scope_fail(s, HF_CONDITION,
                         "record %.*s, %.*s was not put: others kept changing it; try again",
                         HF_FMT(plan.key.account), HF_FMT(plan.key.run_time));
}

enum hf_status hf_records_put_tx(struct hf_scope *s, struct hf_records *records,
                                 struct hf_item record, struct hf_transact_write *action)
{
    struct hf_put_item *put = hf_scope_alloc(s, sizeof(*put));
    struct put_plan plan;

    call_begins(s);
    *action = (struct hf_transact_write){0};
    TRY(plan_put(s, records, record, &plan));
    if (!put)
        return hf_scope_built(s);
    *put = insert_request(s, records, &plan);
    action->put = put;
    return hf_scope_built(s);
}

enum hf_status hf_records_item(struct hf_scope *s, struct hf_records *records,
                               struct hf_item record, struct hf_item *item)
{
    struct put_plan plan;

    call_begins(s);
    *item = (struct hf_item){0};
    TRY(plan_put(s, records, record, &plan));
    *item = put_image(s, records, &plan, (struct hf_item){0});
    return hf_scope_built(s);
}

/* ---- one record ----------------------------------------------------------------------------- */

static enum hf_status fail_no_record(struct hf_scope *s, const struct hf_records *records,
                                     struct record_key key)
{
    return hf_scope_fail(s, HF_NOT_FOUND, "record %.*s, %.*s does not exist in table %.*s",
                         HF_FMT(key.account), HF_FMT(key.run_time), HF_FMT(records->table));
}

enum hf_status hf_records_get(struct hf_scope *s, struct hf_records *records, struct hf_str account,
                              struct hf_str run_time, struct hf_record_info *record)
{
    const struct record_key key = {account, run_time};
    struct hf_item item;

    *record = (struct hf_record_info){0};
    TRY(check_key(s, key));
    TRY(hf__pattern_read(s, records->db, records->table, hf__records_key(s, records, key), &item));
    if (!item.ptr)
        return fail_no_record(s, records, key);
    return hf__records_view(s, records, item, record);
}

static struct hf_update_item mark_request(struct hf_scope *s, const struct hf_records *records,
                                          struct record_key key)
{
    struct pattern_id id = hf__pattern_id_make(&records->env);
    struct hf_item values = HF_ITEM(s, HF_N(":one", 1), HF_S(":id", id_str(&id)),
                                    HF_S(":now", hf__records_time(s, records)));
    const struct hf_attr shard[] = {
        HF_S(":shard", hf__records_place(s, records, HF_RECORD_PROCESSED, key))};

    if (records->index_processed)
        values = hf_item_with(s, values, shard, 1);
    return hf__records_request(s, records, RECORD_MARK, key, values);
}

/* ---- changes by hand ------------------------------------------------------------------------ */

/*
 * To mark, to reset and to delete may be undone by others at once: by a reset, by a put. So what is
 * sent again after a lost answer must not do it to what came after. Each of these reads the record
 * and is conditional on its last put or reset being the same. When that is refused, the record was
 * put, reset, deleted or completed while we were at it, and ours counts as done just before.
 */
struct change {
    struct hf_records *records;
    struct record_key key;
    struct hf_item item; /* as it was read */
};

static enum hf_status change_begin(struct hf_scope *s, struct change *change)
{
    TRY(check_key(s, change->key));
    return hf__pattern_read(s, change->records->db, change->records->table,
                            hf__records_key(s, change->records, change->key), &change->item);
}

static enum hf_status change_send(struct hf_scope *s, struct change *change,
                                  const struct hf_transact_write *write, struct hf_item where)
{
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, change->records->db, write, where, &item);
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

#define UNTOUCHED "attribute_exists(#account) AND attribute_not_exists(#put_id)"
#define SAME "#put_id = :same"
#define NOT_PROCESSED " AND (attribute_not_exists(#processed) OR #processed <> :one)"

/* The condition that nobody has put or reset it since; of a mark, nor completed it. */
static const char *same_condition(struct hf_scope *s, const struct change *change, bool mark,
                                  struct hf_item *values)
{
    struct hf_value put_id = hf_item_get(change->item, HF_STR("PutId"));

    if (!put_id.ptr) /* another program made it */
        return mark ? UNTOUCHED NOT_PROCESSED : UNTOUCHED;
    *values = hf_item_with(s, *values, (const struct hf_attr[]){HF_V(":same", put_id)}, 1);
    return mark ? SAME NOT_PROCESSED : SAME;
}

/* The update of that kind, on that condition. */
static struct hf_update_item change_request(struct hf_scope *s, const struct change *change,
                                            enum record_request kind, struct hf_item values)
{
    const char *update = change->records->texts[kind].update.ptr;
    const char *condition = same_condition(s, change, kind == RECORD_MARK, &values);

    assert(change->item.ptr && "(3)");
    assert(kind == RECORD_MARK || kind == RECORD_RESET);
    return (struct hf_update_item){.table = change->records->table,
                                   .key = hf__records_key(s, change->records, change->key),
                                   .update = hf_str_from(update),
                                   .condition = hf_str_from(condition),
                                   .names =
                                       hf__records_names(s, change->records, update, condition),
                                   .values = values};
}

enum hf_status hf_records_mark(struct hf_scope *s, struct hf_records *records,
                               struct hf_str account, struct hf_str run_time)
{
    struct change change = {.records = records, .key = {account, run_time}};
    struct hf_update_item update;
    struct hf_record_info info;

    TRY(change_begin(s, &change));
    if (!change.item.ptr)
        return fail_no_record(s, records, change.key);
    TRY(hf__records_view(s, records, change.item, &info));
    if (info.state == HF_RECORD_PROCESSED)
        return HF_OK;
    update = mark_request(s, records, change.key);
    update = change_request(s, &change, RECORD_MARK, update.values);
    return change_send(s, &change, &(struct hf_transact_write){.update = &update}, update.key);
}

enum hf_status hf_records_mark_tx(struct hf_scope *s, struct hf_records *records,
                                  struct hf_str account, struct hf_str run_time,
                                  struct hf_transact_write *action)
{
    const struct record_key key = {account, run_time};
    struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));

    call_begins(s);
    *action = (struct hf_transact_write){0};
    TRY(check_key(s, key));
    if (!update)
        return hf_scope_built(s);
    *update = mark_request(s, records, key);
    action->update = update;
    return hf_scope_built(s);
}

struct hf_item hf__records_again_values(struct hf_scope *s, struct hf_records *records,
                                        struct record_key key, struct hf_str id)
{
    return HF_ITEM(s, HF_N(":zero", 0), HF_N(":one", 1), HF_S(":id", id),
                   HF_S(":now", hf__records_time(s, records)),
                   HF_N(":first", hf__env_wall_ms(&records->env)),
                   HF_S(":shard", hf__records_place(s, records, HF_RECORD_UNPROCESSED, key)));
}

enum hf_status hf_records_reset(struct hf_scope *s, struct hf_records *records,
                                struct hf_str account, struct hf_str run_time)
{
    struct change change = {.records = records, .key = {account, run_time}};
    struct pattern_id id = hf__pattern_id_make(&records->env);
    struct hf_update_item update;

    TRY(change_begin(s, &change));
    if (!change.item.ptr)
        return fail_no_record(s, records, change.key);
    update = change_request(s, &change, RECORD_RESET,
                            hf__records_again_values(s, records, change.key, id_str(&id)));
    return change_send(s, &change, &(struct hf_transact_write){.update = &update}, update.key);
}

/* Make a failed record unprocessed, once. HF_CONDITION: it is not a failed record. */
static enum hf_status record_retry(struct hf_scope *s, struct hf_records *records,
                                   struct record_key key)
{
    struct pattern_id id = hf__pattern_id_make(&records->env);
    const struct hf_attr failed[] = {
        HF_S(":failed", hf__records_place(s, records, HF_RECORD_FAILED, key))};
    struct hf_update_item update =
        hf__records_request(s, records, RECORD_AGAIN, key,
                            hf_item_with(s, hf__records_again_values(s, records, key, id_str(&id)),
                                         failed, 1));
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, records->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status == HF_CONDITION && hf_str_equal(hf__records_put_id(item), id_str(&id)))
        return hf_scope_ok(s);
    return status;
}

static enum hf_status retry_shard(struct hf_scope *s, struct hf_records *records, uint32_t shard,
                                  uint64_t limit, uint64_t *count)
{
    struct hf_query query =
        hf__records_shard_query(s, records, HF_RECORD_FAILED, shard, (struct hf_item){0});
    enum hf_status status = HF_OK;
    struct hf_pages *pages;
    struct hf_item item;

    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, records->db, &query, NULL, &pages));
    while (!limit || *count < limit) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = hf_pages_next_item(s, pages, &item);
        if (status != HF_OK || !item.ptr)
            break;
        status = record_retry(s, records, hf__records_key_of(records, item));
        if (status == HF_OK)
            ++*count;
        else if (status != HF_CONDITION)
            break;
        status = hf_scope_ok(s);
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

enum hf_status hf_records_retry_failed(struct hf_scope *s, struct hf_records *records,
                                       uint64_t limit, uint64_t *count)
{
    uint64_t changed = 0;
    enum hf_status status = hf_scope_ok(s);

    for (uint32_t i = 0; i < records->shards && status == HF_OK; i++)
        status = retry_shard(s, records, i, limit, &changed);
    if (count)
        *count = changed;
    return status;
}

enum hf_status hf_records_delete(struct hf_scope *s, struct hf_records *records,
                                 struct hf_str account, struct hf_str run_time)
{
    struct change change = {.records = records, .key = {account, run_time}};
    struct hf_delete_item del = {.table = records->table};
    const char *condition;

    TRY(change_begin(s, &change));
    if (!change.item.ptr)
        return HF_OK;
    condition = same_condition(s, &change, false, &del.values);
    del.key = hf__records_key(s, records, change.key);
    del.condition = hf_str_from(condition);
    del.names = hf__records_names(s, records, condition, NULL);
    return change_send(s, &change, &(struct hf_transact_write){.del = &del}, del.key);
}
