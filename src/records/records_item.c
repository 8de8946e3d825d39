/*
 * records/records_item.c: how a record is stored, and the requests that change it. Nothing is sent
 * here. The first four names are options; the rest of the item is its owner's.
 *
 *     AccountId       S  hash key
 *     RunTime         S  range key
 *     Processed       N  0 or 1
 *     ProcessedShard  S  "unprocessed.N" or "failed.N": hash key of the index, whose range key is
 *                        RunTime. Absent when it is processed, or "processed.N" if asked for
 *     CreatedAt       S  when it was put first, and
 *     UpdatedAt       S  when it was put, failed or completed last: for people
 *     PutId           S  of the last put or reset
 *     Fence           N  grows by one with every claim, put and reset; begins at the time of day
 *     Claim           M  while it is being worked on: id, owner, beat, lease_ms, at; opener
 *                        (opener.c)
 *     Attempts        N  how often it was claimed
 *     Failures        N  how often an attempt failed
 *     NotBefore       N  time of day in ms before which it is not tried again
 *     Failure         M  of the last one: id of the claim, status, text, at
 *     DoneBy          S  the id of the claim that completed it
 *
 *  (1) An id belongs to one claim, and Fence to one claim at most: what ends a claim names both. So
 *      a request that comes late or twice finds the claim gone, even if the claim itself came
 *      twice.
 *  (2) Beats of a claim only grow, so none is seen twice.
 *  (3) DoneBy is set only by the write that removes the claim of that id.
 *  (4) The index has keys only: a claim, a beat, a failure cost no write there.
 *  (5) The shard of a record is a function of its key, the same in every version.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "records/records.h"

enum { ERROR_TEXT_MAX = 1000 };

#define SET_ATTEMPT                                                                                \
    "SET #claim = :claim, #fence = if_not_exists(#fence, :first) + :one, "                         \
    "#attempts = if_not_exists(#attempts, :zero) + :one REMOVE #after"
#define MAY_BEGIN "#shard = :shard AND (attribute_not_exists(#attempts) OR #attempts < :max)"
#define SEEN "#claim.#id = :seen AND #claim.#beat = :beat"
#define MINE "#claim.#id = :id AND #fence = :fence"
#define SET_FAILURE                                                                                \
    "SET #failures = if_not_exists(#failures, :zero) + :one, #failure = :failure, "                \
    "#updated = :now, "
#define SET_EXHAUSTED                                                                              \
    "SET #shard = :failed, #failure = :failure, #updated = :now REMOVE #claim, #after"
#define SET_DONE "SET #processed = :one, #done_by = :id, #updated = :now"
#define SET_AGAIN                                                                                  \
    "SET #processed = :zero, #shard = :shard, #put_id = :id, #updated = :now, "                    \
    "#fence = if_not_exists(#fence, :first) + :one "                                               \
    "REMOVE #claim, #after, #failure, #attempts, #failures, #done_by"
#define NOT_YET "attribute_exists(#account) AND (attribute_not_exists(#put_id) OR #put_id <> :id)"

static const struct {
    const char *update, *condition;
} requests[RECORD_REQUESTS] = {
    [RECORD_CLAIM] = {SET_ATTEMPT, MAY_BEGIN " AND attribute_not_exists(#claim)"
                                             " AND (attribute_not_exists(#after) OR #after <= "
                                             ":now)"},
    [RECORD_TAKE_OVER] = {SET_ATTEMPT, MAY_BEGIN " AND " SEEN},
    [RECORD_BEAT] = {"SET #claim.#beat = :beat", MINE " AND #claim.#beat < :beat"},
    [RECORD_COMPLETE] = {SET_DONE " REMOVE #shard, #claim, #after, #failure", MINE},
    [RECORD_RETRY] = {SET_FAILURE "#after = :after REMOVE #claim", MINE},
    [RECORD_FAIL] = {SET_FAILURE "#shard = :failed REMOVE #claim, #after", MINE},
    [RECORD_RELEASE] = {"SET #attempts = #attempts - :one REMOVE #claim", MINE},
    [RECORD_EXHAUST] = {SET_EXHAUSTED,
                        "#shard = :shard AND #attempts >= :max AND attribute_not_exists(#claim)"},
    [RECORD_EXHAUST_OVER] = {SET_EXHAUSTED, "#shard = :shard AND #attempts >= :max AND " SEEN},
    [RECORD_REJECT] = {"SET #processed = :zero, #shard = :failed, #failure = :failure, "
                       "#updated = :now, #fence = :first REMOVE #claim, #after, #attempts, "
                       "#failures",
                       "#shard = :shard"},
    [RECORD_MARK] = {SET_DONE " REMOVE #shard, #claim, #after, #failure",
                     "attribute_exists(#account) AND (attribute_not_exists(#processed) OR "
                     "#processed <> :one)"},
    [RECORD_RESET] = {SET_AGAIN, NOT_YET},
    [RECORD_AGAIN] = {SET_AGAIN, "#shard = :failed AND " NOT_YET},
    [RECORD_ADOPT] = {SET_AGAIN,
                      "#processed = :zero AND attribute_not_exists(#shard) AND " NOT_YET},
    [RECORD_ADOPT_DONE] = {"SET #shard = :shard",
                           "#processed = :one AND attribute_not_exists(#shard)"},
};

/* With index_processed: what is processed moves to another part of the index. */
#define DONE_AND_KEPT SET_DONE ", #shard = :shard REMOVE #claim, #after, #failure"

/* ---- texts ---------------------------------------------------------------------------------- */

static struct hf_str attribute_of(const struct hf_records *records, struct hf_str placeholder)
{
    const struct {
        const char *placeholder;
        struct hf_str name;
    } all[] = {
        {"#account", records->account},     {"#run_time", records->run_time},
        {"#processed", records->processed}, {"#shard", records->shard},
        {"#claim", HF_STR("Claim")},        {"#id", HF_STR("id")},
        {"#beat", HF_STR("beat")},          {"#fence", HF_STR("Fence")},
        {"#attempts", HF_STR("Attempts")},  {"#failures", HF_STR("Failures")},
        {"#failure", HF_STR("Failure")},    {"#after", HF_STR("NotBefore")},
        {"#done_by", HF_STR("DoneBy")},     {"#updated", HF_STR("UpdatedAt")},
        {"#put_id", HF_STR("PutId")},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (hf_str_equal(hf_str_from(all[i].placeholder), placeholder))
            return all[i].name;
    assert(false && "a placeholder without an attribute");
    return hf_str_of(NULL, 0);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static size_t add_names(const struct hf_records *records, const char *text, struct hf_attr *names,
                        size_t room)
{
    size_t len = 0;

    for (const char *at = text; at && (at = strchr(at, '#')) != NULL;) {
        size_t size = 1;

        while (is_word(at[size]))
            size++;
        assert(len < room && size > 1);
        names[len] = (struct hf_attr){.name = hf_str_of(at, size), .type = HF_TYPE_S};
        names[len].text = attribute_of(records, names[len].name);
        len++;
        at += size;
    }
    return len;
}

struct hf_item hf__records_names(struct hf_scope *s, const struct hf_records *records,
                                 const char *text, const char *more)
{
    struct hf_attr names[48]; /* one may come more than once: the last counts, all are the same */
    size_t len = add_names(records, text, names, ARRAY_LEN(names));

    len += add_names(records, more, names + len, ARRAY_LEN(names) - len);
    return hf_item_make(s, names, len);
}

enum hf_status hf__records_texts(struct hf_scope *s, struct hf_records *records)
{
    for (size_t i = 0; i < RECORD_REQUESTS; i++) {
        bool done = i == RECORD_COMPLETE || i == RECORD_MARK;
        const char *update = done && records->index_processed ? DONE_AND_KEPT : requests[i].update;
        struct hf_item names =
            hf__records_names(records->names, records, update, requests[i].condition);

        records->texts[i] =
            (struct record_text){hf_str_from(update), hf_str_from(requests[i].condition), names};
        if (hf_item_check(s, names) != HF_OK)
            return hf_scope_error(s)->status;
    }
    return HF_OK;
}

struct hf_update_item hf__records_request(struct hf_scope *s, const struct hf_records *records,
                                          enum record_request kind, struct record_key key,
                                          struct hf_item values)
{
    assert(kind < RECORD_REQUESTS && records->texts[kind].update.len);
    return (struct hf_update_item){
        .table = records->table,
        .key = hf__records_key(s, records, key),
        .update = records->texts[kind].update,
        .condition = records->texts[kind].condition,
        .names = records->texts[kind].names,
        .values = values,
    };
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* (5) FNV-1a of the account, a zero and the run time. */
uint64_t hf__record_hash(struct record_key key)
{
    uint64_t hash = fnv_add(FNV_BEGIN, key.account.ptr, key.account.len) * FNV_PRIME;

    hash = fnv_add(hash, key.run_time.ptr, key.run_time.len);
    return fnv_fold(hash);
}

uint32_t hf__records_shard(struct record_key key, uint32_t shards)
{
    assert(shards > 0 && shards <= HF_RECORDS_SHARDS_MAX);
    return (uint32_t)(hf__record_hash(key) % shards);
}

struct hf_str hf__records_shard_text(struct hf_scope *s, enum hf_record_state state, uint32_t shard)
{
    const char *name = state == HF_RECORD_UNPROCESSED ? "unprocessed"
                       : state == HF_RECORD_PROCESSED ? "processed"
                                                      : "failed";

    assert(state >= HF_RECORD_UNPROCESSED && state <= HF_RECORD_FAILED);
    return hf_scope_format(s, "%s.%" PRIu32, name, shard);
}

struct hf_str hf__records_place(struct hf_scope *s, const struct hf_records *records,
                                enum hf_record_state state, struct record_key key)
{
    return hf__records_shard_text(s, state, hf__records_shard(key, records->shards));
}

struct hf_item hf__records_key(struct hf_scope *s, const struct hf_records *records,
                               struct record_key key)
{
    const struct hf_attr attrs[] = {
        {.name = records->account, .type = HF_TYPE_S, .text = key.account},
        {.name = records->run_time, .type = HF_TYPE_S, .text = key.run_time},
    };

    return hf_item_make(s, attrs, ARRAY_LEN(attrs));
}

struct hf_str hf__records_time(struct hf_scope *s, const struct hf_records *records)
{
    int64_t ms = hf__env_wall_ms(&records->env);
    time_t seconds = (time_t)(ms / 1000);
    struct tm at = {0};

    gmtime_r(&seconds, &at);
    return hf_scope_format(s, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", at.tm_year + 1900,
                           at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec,
                           (int)(ms % 1000));
}

struct hf_item hf__records_failure(struct hf_scope *s, const struct hf_records *records,
                                   struct hf_str token, enum hf_status status, struct hf_str text)
{
    return HF_ITEM(s, HF_S("id", token), HF_S("status", hf_str_from(hf_status_name(status))),
                   HF_S("text", hf__pattern_text(s, text, ERROR_TEXT_MAX)),
                   HF_S("at", hf__records_time(s, records)));
}

/* ---- reading -------------------------------------------------------------------------------- */

static struct hf_value attribute_get(struct hf_item item, const char *name)
{
    return hf_item_get(item, hf_str_from(name));
}

/* 0 when it is absent; false when it is not a number from 0 on. */
static bool read_u64(struct hf_value value, uint64_t *out)
{
    int64_t number = 0;

    *out = 0;
    if (!value.ptr)
        return true;
    if (!hf_value_i64(value, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

static enum hf_status status_named(struct hf_str name)
{
    for (int i = 0; i < 256; i++)
        if (hf_str_equal(name, hf_str_from(hf_status_name((enum hf_status)i))))
            return (enum hf_status)i;
    return HF_INTERNAL;
}

static void read_failure(struct hf_item item, struct hf_record_info *info)
{
    struct hf_value failure = attribute_get(item, "Failure");

    if (!failure.ptr)
        return;
    info->error = status_named(hf_value_str(hf_value_get(failure, HF_STR("status"))));
    info->error_text = hf_value_str(hf_value_get(failure, HF_STR("text")));
}

static bool begins_with(struct hf_str text, struct hf_str prefix)
{
    return text.len >= prefix.len && hf_str_equal(hf_str_of(text.ptr, prefix.len), prefix);
}

enum hf_status hf__records_view(struct hf_scope *s, const struct hf_records *records,
                                struct hf_item item, struct hf_record_info *info)
{
    struct hf_str shard = hf_value_str(hf_item_get(item, records->shard));
    struct hf_value claim = attribute_get(item, "Claim");
    uint64_t processed, attempts, failures;

    *info = (struct hf_record_info){.item = item};
    if (!item.ptr)
        return HF_OK;
    info->account = hf_value_str(hf_item_get(item, records->account));
    info->run_time = hf_value_str(hf_item_get(item, records->run_time));
    if (!read_u64(hf_item_get(item, records->processed), &processed) || processed > 1 ||
        !read_u64(attribute_get(item, "Fence"), &info->fence) ||
        !read_u64(attribute_get(item, "Attempts"), &attempts) ||
        !read_u64(attribute_get(item, "Failures"), &failures))
        return hf_scope_fail(s, HF_CORRUPT,
                             "the item \"%.*s\", \"%.*s\" of table %.*s is not a record",
                             HF_FMT(info->account), HF_FMT(info->run_time), HF_FMT(records->table));
    info->state = processed                               ? HF_RECORD_PROCESSED
                  : begins_with(shard, HF_STR("failed.")) ? HF_RECORD_FAILED
                                                          : HF_RECORD_UNPROCESSED;
    info->attempts = (uint32_t)attempts;
    info->failures = (uint32_t)failures;
    info->owner = hf_value_str(hf_value_get(claim, HF_STR("owner")));
    info->token = hf_value_str(hf_value_get(claim, HF_STR("id")));
    info->done_by = hf_value_str(attribute_get(item, "DoneBy"));
    read_failure(item, info);
    return HF_OK;
}

uint64_t hf__records_beat(struct hf_item item)
{
    uint64_t beat;

    return read_u64(hf_value_get(attribute_get(item, "Claim"), HF_STR("beat")), &beat) ? beat : 0;
}

uint32_t hf__records_lease_ms(struct hf_item item)
{
    uint64_t lease_ms;

    if (!read_u64(hf_value_get(attribute_get(item, "Claim"), HF_STR("lease_ms")), &lease_ms) ||
        lease_ms > UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t)lease_ms;
}

int64_t hf__records_after_ms(struct hf_item item)
{
    uint64_t after_ms;

    return read_u64(attribute_get(item, "NotBefore"), &after_ms) ? (int64_t)after_ms : 0;
}

struct hf_str hf__records_failed_by(struct hf_item item)
{
    return hf_value_str(hf_value_get(attribute_get(item, "Failure"), HF_STR("id")));
}

struct hf_str hf__records_put_id(struct hf_item item)
{
    return hf_value_str(attribute_get(item, "PutId"));
}
