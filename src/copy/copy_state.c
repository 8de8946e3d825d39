/*
 * copy/copy_state.c: how far a copy is: a table beside the target.
 *
 * The table "holdfast.copy" has, for each table of the target that is copied to, the items
 *
 *     pk   "copy." and the name of the target's table
 *     sk   "job"           which table of the source this is, and in which state
 *          "segment.N"     the key behind which it goes on, how many items it has copied; done
 *          "shard.ID"      the last record of the source's stream that was applied; done
 *          "conflict.HASH" the key of an item that somebody else has written
 *
 *  (1) Every item has the id of the run that it belongs to (`owner`), and every write is conditional on
 *      it. A process that is started later writes its id into all of them, and reads what it gets
 *      back. From then on the former one is refused, and ends with HF_LOST. Nobody waits for a
 *      lease to end. What the former one has in flight at that moment is a batch of items at most:
 *      the comparison would show it.
 *  (2) A position is written when what is before it is in the target, and durable there.
 *  (3) Writing the same again changes nothing, so a lost answer is no question.
 *  (4) A job belongs to one table of the source, known by its id. A table that was deleted and made
 *      again is another one.
 */
#include "copy/private.h"

#include "coord/placeholders.h"

#include <holdfast/pages.h>

#include <string.h>

static const char *const state_names[] = {
    [HF_COPY_NEW] = "new",       [HF_COPY_ITEMS] = "items",
    [HF_COPY_COPIED] = "copied", [HF_COPY_FOLLOWING] = "following",
    [HF_COPY_FENCED] = "fenced", [HF_COPY_CUT_OVER] = "cut over"};
_Static_assert(ARRAY_LEN(state_names) == HF_COPY_CUT_OVER + 1, "every state has a name");

static struct hf_item row_key(struct hf_scope *s, const struct copy_table *t, struct hf_str sk)
{
    return HF_ITEM(s, HF_S("pk", t->pk), HF_S("sk", sk));
}

static struct hf_str text_in(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_from(name)));
}

static uint64_t number_in(struct hf_item item, const char *name)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(item, hf_str_from(name)), &number);
    return number > 0 ? (uint64_t)number : 0;
}

static bool truth_in(struct hf_item item, const char *name)
{
    return hf_value_true(hf_item_get(item, hf_str_from(name)));
}

static enum hf_status copy_lost(struct hf_scope *s, const struct copy_table *t)
{
    return hf_scope_fail(s, HF_LOST,
                         "the copy of table %.*s was started again by another process, and goes on "
                         "there",
                         HF_FMT(t->source));
}

/* ---- the table ------------------------------------------------------------------------------ */

static enum hf_status state_table(struct hf_scope *s, struct hf_copy *c)
{
    static const struct hf_attribute_definition attributes[] = {{{"pk", 2}, HF_SCALAR_S},
                                                                {{"sk", 2}, HF_SCALAR_S}};
    static const struct hf_key_element keys[] = {{{"pk", 2}, HF_KEY_HASH},
                                                 {{"sk", 2}, HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = COPY_STATE_TABLE,
                                         .attributes = attributes,
                                         .attributes_len = ARRAY_LEN(attributes),
                                         .key_schema = keys,
                                         .key_schema_len = ARRAY_LEN(keys)};

    if (c->state_ready)
        return HF_OK;
    TRY(hf__pattern_table(s, c->target, &spec, (struct hf_str){0}, false));
    TRY(hf__kind_open(s,
                      &(struct kind_table){.db = c->target, .spec = &spec, .kind = KIND_COPIES}));
    c->state_ready = true;
    return HF_OK;
}

/* ---- one item ------------------------------------------------------------------------------- */

/* (1) The item as it is then; made if it is not there. */
static enum hf_status row_take(struct hf_scope *s, struct copy_table *t, struct hf_str sk,
                               struct hf_item *row)
{
    struct holders h = {.s = s};
    struct hf_update_item update;

    NAMES(&h, "#owner");
    VALUE(&h, HF_S(":me", id_str(&t->copy->run)));
    update = (struct hf_update_item){.table = COPY_STATE_TABLE,
                                     .key = row_key(s, t, sk),
                                     .update = HF_STR("SET #owner = :me"),
                                     .names = hf_item_make(s, h.names, h.names_len),
                                     .values = hf_item_make(s, h.values, h.values_len),
                                     .returns = HF_RETURN_ALL_NEW};
    TRY(hf_scope_built(s));
    return hf__pattern_write(s, t->copy->target, &(struct hf_transact_write){.update = &update},
                             update.key, row);
}

/* (1) (3) `row` is all but the key and the owner. */
static enum hf_status row_put(struct hf_scope *s, const struct copy_table *t, struct hf_str sk,
                              struct hf_item row, const char *condition)
{
    const struct hf_attr own[] = {HF_S("pk", t->pk), HF_S("sk", sk),
                                  HF_S("owner", id_str(&t->copy->run))};
    struct holders h = {.s = s};
    struct hf_put_item put;
    struct hf_item there;
    enum hf_status status;

    NAMES(&h, "#owner");
    VALUE(&h, HF_S(":me", id_str(&t->copy->run)));
    put = (struct hf_put_item){.table = COPY_STATE_TABLE,
                               .item = hf_item_with(s, row, own, ARRAY_LEN(own)),
                               .condition = hf_str_from(condition),
                               .names = hf_item_make(s, h.names, h.names_len),
                               .values = hf_item_make(s, h.values, h.values_len)};
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, t->copy->target, &(struct hf_transact_write){.put = &put},
                               row_key(s, t, sk), &there);
    return status == HF_CONDITION ? copy_lost(s, t) : status;
}

static enum hf_status row_save(struct hf_scope *s, const struct copy_table *t, struct hf_str sk,
                               struct hf_item row)
{
    return row_put(s, t, sk, row, "#owner = :me");
}

static enum hf_status row_remove(struct hf_scope *s, const struct copy_table *t, struct hf_str sk)
{
    struct hf_delete_item del = {.table = COPY_STATE_TABLE, .key = row_key(s, t, sk)};

    return hf_delete_item(s, t->copy->target, &del, NULL);
}

/* ---- the job -------------------------------------------------------------------------------- */

static struct hf_item job_row(struct hf_scope *s, const struct copy_table *t)
{
    const struct hf_copy *c = t->copy;

    return HF_ITEM(s, HF_S("source", c->o.source_name.ptr ? c->o.source_name : HF_STR("")),
                   HF_S("source_table", t->source), HF_S("source_id", t->source_id),
                   HF_S("state", hf_str_from(state_names[t->state])),
                   HF_N("segments", t->segments_len), HF_BOOL("made_table", t->made_table),
                   HF_BOOL("made_stream", t->made_stream), HF_BOOL("following", t->following),
                   HF_BOOL("positioned", t->positioned), HF_BOOL("clear", t->clear),
                   HF_S("stream", t->stream.ptr ? t->stream : HF_STR("")),
                   HF_N("written", hf__env_wall_ms(&c->env)));
}

static enum hf_status job_read(struct hf_scope *s, struct copy_table *t, struct hf_item row)
{
    struct hf_str state = text_in(row, "state"), stream = text_in(row, "stream");
    uint64_t segments = number_in(row, "segments");

    t->state = 0;
    for (size_t i = HF_COPY_NEW; i < ARRAY_LEN(state_names); i++)
        if (hf_str_equal(state, hf_str_from(state_names[i])))
            t->state = (enum hf_copy_state)i;
    if (!t->state || segments < 1 || segments > HF_COPY_SEGMENTS_MAX)
        return hf_scope_fail(s, HF_CORRUPT, "table %.*s: the item %.*s, job is damaged",
                             HF_FMT(COPY_STATE_TABLE), HF_FMT(t->pk));
    t->begun = true;
    t->made_table = truth_in(row, "made_table");
    t->made_stream = truth_in(row, "made_stream");
    t->following = truth_in(row, "following");
    t->positioned = truth_in(row, "positioned");
    t->clear = truth_in(row, "clear");
    if (t->following && stream.len)
        TRY(hf__copy_text_set(s, t->copy, &t->stream, stream));
    if (t->segments_len != segments)
        return hf__copy_segments_make(s, t, (uint32_t)segments);
    return HF_OK;
}

/* (4) */
static bool is_ours(const struct copy_table *t, struct hf_item job)
{
    return hf_str_equal(text_in(job, "source_id"), t->source_id);
}

static enum hf_status segment_read(struct hf_scope *s, struct copy_table *t, uint64_t number,
                                   struct hf_item row)
{
    struct copy_segment *segment;

    if (number >= t->segments_len)
        return HF_OK;
    segment = &t->segments[number];
    segment->done = truth_in(row, "done");
    segment->items = number_in(row, "items");
    segment->bytes = number_in(row, "bytes");
    return hf__copy_item_set(s, t->copy, &segment->position,
                             hf_value_item(hf_item_get(row, HF_STR("position"))));
}

static enum hf_status shard_read(struct hf_scope *s, struct copy_table *t, struct hf_item row)
{
    struct hf_str sequence = text_in(row, "sequence"), parent = text_in(row, "parent");
    struct copy_shard *shard;

    TRY(hf__copy_shard_add(s, t, text_in(row, "shard"), parent.len ? parent : (struct hf_str){0},
                           &shard));
    shard->done = truth_in(row, "done");
    shard->read_ms = (int64_t)number_in(row, "read");
    return sequence.len ? hf__copy_text_set(s, t->copy, &shard->sequence, sequence) : HF_OK;
}

/* All items of the job, one after the other. */
typedef enum hf_status row_fn(struct hf_scope *s, struct copy_table *t, struct hf_item row);

static enum hf_status rows_each(struct hf_scope *s, struct copy_table *t, row_fn *each)
{
    struct hf_query query = {.table = COPY_STATE_TABLE,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(s, HF_S(":pk", t->pk)),
                             .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item row = {0};
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, t->copy->target, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &row)) == HF_OK && row.ptr)
        if ((status = each(s, t, row)) != HF_OK)
            break;
    hf_pages_free(pages);
    return status;
}

/* ---- looking -------------------------------------------------------------------------------- */

static bool row_is(struct hf_item row, const char *kind, struct hf_str *rest)
{
    struct hf_str sk = text_in(row, "sk");
    size_t len = strlen(kind);

    if (sk.len < len || memcmp(sk.ptr, kind, len) != 0)
        return false;
    *rest = hf_str_of(sk.ptr + len, sk.len - len);
    return true;
}

static uint64_t digits_read(struct hf_str text)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len; i++)
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    return number;
}

static enum hf_status row_look(struct hf_scope *s, struct copy_table *t, struct hf_item row)
{
    struct hf_str rest;

    if (row_is(row, "segment.", &rest))
        return segment_read(s, t, digits_read(rest), row);
    if (row_is(row, "conflict.", &rest))
        t->conflicts++;
    return HF_OK;
}

enum hf_status hf__copy_state_look(struct hf_scope *s, struct copy_table *t)
{
    struct hf_item job = {0};
    enum hf_status status =
        hf__pattern_read(s, t->copy->target, COPY_STATE_TABLE, row_key(s, t, HF_STR("job")), &job);

    t->state = HF_COPY_NEW;
    if (status == HF_NOT_FOUND)
        return hf_scope_ok(s);
    TRY(status);
    t->known = job.ptr != NULL;
    if (!job.ptr)
        return HF_OK;
    if (!is_ours(t, job)) {
        if (t->copy->o.restart)
            return HF_OK;
        return hf_scope_fail(
            s, HF_INVALID,
            "table %.*s of the target is of another copy, from table %.*s%s%.*s; to copy this one in "
            "its place, restart it, which removes what is there",
            HF_FMT(t->target), HF_FMT(text_in(job, "source_table")),
            text_in(job, "source").len ? " of " : "", HF_FMT(text_in(job, "source")));
    }
    TRY(job_read(s, t, job));
    t->conflicts = 0;
    return rows_each(s, t, row_look);
}

/* ---- claiming ------------------------------------------------------------------------------- */

static enum hf_status row_claim(struct hf_scope *s, struct copy_table *t, struct hf_item row)
{
    struct hf_str rest;
    struct hf_item now;

    if (row_is(row, "shard.", &rest)) {
        TRY(row_take(s, t, text_in(row, "sk"), &now));
        return shard_read(s, t, now);
    }
    if (row_is(row, "conflict.", &rest)) {
        struct hf_item key = hf_value_item(hf_item_get(row, HF_STR("key")));

        TRY(hf__pattern_read(s, t->copy->target, t->target, key, &now));
        return hf__copy_suspect_add(s, t, key, now, true);
    }
    return HF_OK;
}

static struct hf_str segment_sk(struct hf_scope *s, uint32_t number)
{
    return hf_scope_format(s, "segment.%02u", number);
}

/* (1) Also those that are not there yet, so that another process cannot make them. */
static enum hf_status segments_claim(struct hf_scope *s, struct copy_table *t)
{
    struct hf_item row;

    for (uint32_t i = 0; i < t->segments_len; i++) {
        TRY(row_take(s, t, segment_sk(s, i), &row));
        TRY(segment_read(s, t, i, row));
    }
    return HF_OK;
}

enum hf_status hf__copy_shard_take(struct hf_scope *s, struct copy_table *t, struct hf_str id,
                                   struct hf_str parent)
{
    struct hf_item row;
    struct copy_shard *shard;
    struct hf_str sk = hf_scope_format(s, "shard.%.*s", HF_FMT(id));

    TRY(row_take(s, t, sk, &row));
    if (text_in(row, "shard").len)
        return shard_read(s, t, row);
    TRY(hf__copy_shard_add(s, t, id, parent, &shard));
    shard->read_ms = hf__env_wall_ms(&t->copy->env);
    return hf__copy_shard_save(s, t, shard);
}

static enum hf_status job_begin(struct hf_scope *s, struct copy_table *t)
{
    t->following = t->copy->o.follow;
    t->positioned = false;
    t->state = HF_COPY_NEW;
    if (!t->segments)
        TRY(hf__copy_segments_make(s, t, t->copy->o.segments));
    TRY(row_put(s, t, HF_STR("job"), job_row(s, t),
                "attribute_not_exists(#owner) OR #owner = :me"));
    t->begun = true;
    return HF_OK;
}

static enum hf_status row_forget(struct hf_scope *s, struct copy_table *t, struct hf_item row)
{
    struct hf_str rest;

    return row_is(row, "job", &rest) ? HF_OK : row_remove(s, t, text_in(row, "sk"));
}

enum hf_status hf__copy_state_forget(struct hf_scope *s, struct copy_table *t)
{
    hf__copy_suspects_free(t);
    hf__copy_shards_free(t);
    t->conflicts = 0;
    t->positioned = false;
    t->state = HF_COPY_NEW;
    t->gap = false;
    t->caught_up = false;
    t->clear = true;
    TRY(hf__copy_segments_make(s, t, t->copy->o.segments));
    TRY(hf__copy_state_save(s, t, HF_COPY_NEW));
    return rows_each(s, t, row_forget);
}

enum hf_status hf__copy_state_claim(struct hf_scope *s, struct copy_table *t)
{
    struct hf_item job = {0};

    if (t->claimed)
        return HF_OK;
    TRY(state_table(s, t->copy));
    TRY(hf__pattern_read(s, t->copy->target, COPY_STATE_TABLE, row_key(s, t, HF_STR("job")), &job));
    if (job.ptr && !is_ours(t, job) && !t->restart)
        return hf_scope_fail(s, HF_INVALID, "table %.*s of the target is of another copy now",
                             HF_FMT(t->target));
    if (!job.ptr) {
        TRY(job_begin(s, t));
    } else {
        TRY(row_take(s, t, HF_STR("job"), &job));
        if (t->restart) {
            t->made_table = truth_in(job, "made_table");
            t->made_stream = is_ours(t, job) && truth_in(job, "made_stream");
            t->following = t->copy->o.follow;
            TRY(hf__copy_state_forget(s, t));
            t->begun = true;
        } else {
            TRY(job_read(s, t, job));
        }
    }
    TRY(segments_claim(s, t));
    hf__copy_shards_free(t);
    hf__copy_suspects_free(t);
    t->conflicts = 0;
    TRY(rows_each(s, t, row_claim));
    t->claimed = true;
    return HF_OK;
}

/* ---- saving --------------------------------------------------------------------------------- */

enum hf_status hf__copy_state_save(struct hf_scope *s, struct copy_table *t,
                                   enum hf_copy_state state)
{
    t->state = state;
    return row_save(s, t, HF_STR("job"), job_row(s, t));
}

enum hf_status hf__copy_segment_save(struct hf_scope *s, const struct copy_segment *segment)
{
    struct hf_item row = HF_ITEM(s, HF_N("items", segment->items), HF_N("bytes", segment->bytes),
                                 HF_BOOL("done", segment->done));
    const struct hf_attr position[] = {HF_M("position", segment->position)};

    if (segment->position.ptr)
        row = hf_item_with(s, row, position, 1);
    return row_save(s, segment->table, segment_sk(s, segment->number), row);
}

enum hf_status hf__copy_shard_save(struct hf_scope *s, struct copy_table *t,
                                   struct copy_shard *shard)
{
    struct hf_item row =
        HF_ITEM(s, HF_S("shard", shard->id),
                HF_S("parent", shard->parent.ptr ? shard->parent : HF_STR("")),
                HF_S("sequence", shard->sequence.ptr ? shard->sequence : HF_STR("")),
                HF_BOOL("done", shard->done), HF_N("read", shard->read_ms));

    TRY(row_save(s, t, hf_scope_format(s, "shard.%.*s", HF_FMT(shard->id)), row));
    shard->dirty = false;
    shard->saved_us = hf__env_elapsed_us(&t->copy->env);
    return HF_OK;
}

enum hf_status hf__copy_conflict_save(struct hf_scope *s, struct copy_table *t,
                                      struct copy_suspect *suspect, bool there)
{
    struct hf_str sk = hf_scope_format(s, "conflict.%016llx", (unsigned long long)suspect->hash);

    if (!there)
        TRY(row_remove(s, t, sk));
    else /* whoever has found it */
        TRY(row_put(s, t, sk, HF_ITEM(s, HF_M("key", suspect->key)),
                    "attribute_not_exists(#owner) OR #owner = :me OR #owner <> :me"));
    suspect->stored = there;
    return HF_OK;
}
