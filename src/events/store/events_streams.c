/*
 * events/store/events_streams.c: what is said about a stream as a whole: info, truncation, limits,
 * the end; and walking over a stream, and over all streams.
 *
 * All of it is in the stream's head (events_heads.c), in attributes that appends do not touch, and
 * beside those:
 *
 *     w, g   versions before w were swept, or never were here; g is the hash of the last of them
 *     u      COMMIT of a large append that the sweep has begun to remove, and not ended
 *     k, y   of the archive (events_archive.c)
 *
 *  (1) Every change is one conditional update of the head that changes nothing when it is repeated,
 *      so answers that get lost do no harm.
 *  (2) A stream that is archived or deleted has `x`, and every append is on the condition that it
 *      has not. From the update on that sets it there are no new events; so a walk over the stream
 *      meets all there will ever be.
 *
 * There is no list of streams. It would be one more item to write with the first event of each; and
 * a program that wants all streams is about to read much more than that. hf_events_streams() is a
 * Scan of the table for heads, which costs as much as reading all events does.
 */
#include "events/store/events.h"

#include <holdfast/pages.h>

/* ---- heads ---------------------------------------------------------------------------------- */

static struct hf_item head_key(struct hf_scope *s, struct hf_str pk)
{
    return HF_ITEM(s, HF_S("pk", pk), HF_S("sk", HF_STR("h")));
}

enum hf_status hf__events_swept_view(struct hf_scope *s, struct hf_item item,
                                     struct events_swept *swept)
{
    struct hf_bytes hash = hf_value_bytes(hf_item_get(item, HF_STR("g")));
    int64_t first = 1;

    *swept = (struct events_swept){.first = 1};
    if (hf_item_get(item, HF_STR("w")).ptr &&
        (!hf_value_i64(hf_item_get(item, HF_STR("w")), &first) || first < 1))
        return hf_scope_fail(s, HF_CORRUPT, "the head of stream %.*s is damaged",
                             HF_FMT(hf_value_str(hf_item_get(item, HF_STR("pk")))));
    swept->first = (uint64_t)first;
    swept->unfinished = hf_value_str(hf_item_get(item, HF_STR("u")));
    if (hash.len == EVENTS_HASH)
        memcpy(swept->hash, hash.ptr, EVENTS_HASH);
    return HF_OK;
}

static enum hf_status fail_none(struct hf_scope *s, struct hf_event_stream_key stream)
{
    return hf_scope_fail(s, HF_NOT_FOUND, "stream \"%.*s\" does not exist",
                         HF_FMT(hf__events_stream_text(s, stream)));
}

static enum hf_status fail_deleted(struct hf_scope *s, struct hf_event_stream_key stream)
{
    return hf_scope_fail(s, HF_DELETED, "stream \"%.*s\" was deleted",
                         HF_FMT(hf__events_stream_text(s, stream)));
}

/* An update of a head (1). HF_CONDITION with the item as it is; then what is wrong with it is the
 * caller's to say. */
static enum hf_status head_change(struct hf_scope *s, struct hf_events *store,
                                  struct hf_update_item *update, struct hf_str pk,
                                  struct hf_item *item)
{
    update->table = store->table;
    update->key = head_key(s, pk);
    TRY(hf_scope_built(s));
    return hf__pattern_write(s, store->db, &(struct hf_transact_write){.update = update},
                             update->key, item);
}

/* Why a change of a stream that is to be there was refused, if it is not or was deleted. */
static enum hf_status check_refusal(struct hf_scope *s, struct hf_event_stream_key stream,
                                    struct hf_item item, struct events_head *head)
{
    TRY(hf__events_head_view(s, item, head));
    if (head->state == EVENTS_DELETED)
        return fail_deleted(s, stream);
    return head->version ? HF_OK : fail_none(s, stream);
}

/* ---- info ----------------------------------------------------------------------------------- */

struct search {
    const struct events_head *head;
    uint64_t first;
};

/* Events of a large append have its time. */
static enum hf_status look_at_age(struct hf_scope *s, struct hf_events *store,
                                  const struct events_step *step, void *user)
{
    struct search *search = user;

    (void)s;
    if (!hf__events_head_expired(store, search->head,
                                 step->large.ptr ? step->large : step->position)) {
        if (step->first > search->first)
            search->first = step->first;
        return (enum hf_status)EVENTS_STEP_ENOUGH;
    }
    search->first = step->first + step->count;
    return HF_OK;
}

enum hf_status hf__events_first_readable(struct hf_scope *s, struct hf_events *store,
                                         struct hf_str pk, const struct events_head *head,
                                         uint64_t *first)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct search search = {.head = head};
    enum hf_status status = HF_OK;

    *first = hf__events_head_first(head);
    if (!head->max_age_s || *first > head->version)
        return HF_OK;
    if (hf__events_head_expired(store, head, position_str(&head->position)))
        *first = head->version + 1;
    else
        status = hf__events_steps(s, store, pk, *first, look_at_age, &search);
    if (status != HF_OK)
        return status;
    hf_scope_rewind(s, mark);
    if (search.first > *first)
        *first = search.first;
    return HF_OK;
}

static enum hf_status info_of(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                              const struct events_head *head, struct hf_event_stream_info *info)
{
    *info = (struct hf_event_stream_info){.version = head->version,
                                          .max_age_s = head->max_age_s,
                                          .max_count = head->max_count,
                                          .archived = head->state == EVENTS_ARCHIVED,
                                          .deleted = head->state == EVENTS_DELETED};
    if (head->version)
        info->position = hf_scope_copy(s, position_str(&head->position));
    if (store->chain && head->version) {
        struct hf_str hash =
            hf_scope_copy(s, hf_str_of((const char *)head->hash, sizeof(head->hash)));

        info->hash = hf_bytes_of(hash.ptr, hash.len);
    }
    TRY(hf_scope_built(s));
    if (head->state == EVENTS_DELETED) {
        info->first = head->version + 1;
        return HF_OK;
    }
    return hf__events_first_readable(s, store, pk, head, &info->first);
}

enum hf_status hf_events_stream_info(struct hf_scope *s, struct hf_events *store,
                                     struct hf_event_stream_key stream,
                                     struct hf_event_stream_info *info)
{
    struct events_head head;
    struct hf_str pk;

    *info = (struct hf_event_stream_info){.version = 0};
    TRY(hf__events_stream_pk(s, 's', stream, &pk));
    TRY(hf__events_head_read(s, store, pk, &head));
    if (!head.version && head.state != EVENTS_DELETED)
        return fail_none(s, stream);
    return info_of(s, store, pk, &head, info);
}

/* ---- truncation, limits, the end ------------------------------------------------------------ */

enum hf_status hf_events_truncate(struct hf_scope *s, struct hf_events *store,
                                  struct hf_event_stream_key stream, uint64_t before)
{
    struct hf_update_item update = {
        .update = HF_STR("SET #t = :before"),
        .condition = HF_STR("#v >= :last AND (attribute_not_exists(#t) OR #t < :before) AND "
                            "(attribute_not_exists(#x) OR #x <> :deleted)"),
        .names =
            HF_ITEM(s, HF_S("#t", HF_STR("t")), HF_S("#v", HF_STR("v")), HF_S("#x", HF_STR("x"))),
        .values = HF_ITEM(s, HF_N(":before", before), HF_S(":deleted", HF_STR("deleted")),
                          HF_N(":last", before ? before - 1 : 0))};
    struct events_head head;
    struct hf_item item;
    enum hf_status status;
    struct hf_str pk;

    TRY(hf__events_stream_pk(s, 's', stream, &pk));
    if (before > INT64_MAX)
        return hf_scope_fail(s, HF_INVALID, "invalid version %llu", (unsigned long long)before);
    status = head_change(s, store, &update, pk, &item);
    if (status != HF_CONDITION)
        return status;
    TRY(check_refusal(s, stream, item, &head));
    if (before > head.version + 1)
        return hf_scope_fail(s, HF_INVALID,
                             "stream \"%.*s\" is at version %llu and cannot be truncated before "
                             "version %llu",
                             HF_FMT(hf__events_stream_text(s, stream)),
                             (unsigned long long)head.version, (unsigned long long)before);
    return call_ends(s, HF_OK); /* it was so already, or more of it was */
}

enum hf_status hf_events_limit_stream(struct hf_scope *s, struct hf_events *store,
                                      struct hf_event_stream_key stream, uint32_t max_age_s,
                                      uint64_t max_count)
{
    struct hf_update_item update = {
        .update = max_age_s && max_count ? HF_STR("SET #a = :a, #n = :n")
                  : max_age_s            ? HF_STR("SET #a = :a REMOVE #n")
                  : max_count            ? HF_STR("SET #n = :n REMOVE #a")
                                         : HF_STR("REMOVE #a, #n"),
        .condition = HF_STR("attribute_exists(#v) AND "
                            "(attribute_not_exists(#x) OR #x <> :deleted)"),
        .names = HF_ITEM(s, HF_S("#a", HF_STR("a")), HF_S("#n", HF_STR("n")),
                         HF_S("#v", HF_STR("v")), HF_S("#x", HF_STR("x"))),
        .values = HF_ITEM(s, HF_S(":deleted", HF_STR("deleted")))};
    struct hf_attr values[2];
    struct events_head head;
    struct hf_item item;
    enum hf_status status;
    struct hf_str pk;
    size_t len = 0;

    TRY(hf__events_stream_pk(s, 's', stream, &pk));
    if (max_count > INT64_MAX)
        return hf_scope_fail(s, HF_INVALID, "a limit of %llu events is too large",
                             (unsigned long long)max_count);
    if (max_age_s)
        values[len++] = (struct hf_attr)HF_N(":a", max_age_s);
    if (max_count)
        values[len++] = (struct hf_attr)HF_N(":n", max_count);
    if (len)
        update.values = hf_item_with(s, update.values, values, len);
    status = head_change(s, store, &update, pk, &item);
    if (status != HF_CONDITION)
        return status;
    TRY(check_refusal(s, stream, item, &head));
    return hf_scope_fail(s, HF_CORRUPT, "the head of stream \"%.*s\" refused its limits",
                         HF_FMT(hf__events_stream_text(s, stream)));
}

enum hf_status hf__events_unexpected(struct hf_scope *s, struct hf_event_stream_key stream,
                                     enum hf_expect expect, uint64_t version, uint64_t actual)
{
    struct hf_str name = hf__events_stream_text(s, stream);

    TRY(hf_scope_built(s));
    if (expect == HF_EXPECT_EXISTS)
        return hf_scope_fail(s, HF_CONDITION, "stream \"%.*s\" does not exist", HF_FMT(name));
    if (expect == HF_EXPECT_NONE || !version)
        return hf_scope_fail(s, HF_CONDITION, "stream \"%.*s\" already exists (version %llu)",
                             HF_FMT(name), (unsigned long long)actual);
    if (!actual)
        return hf_scope_fail(s, HF_CONDITION, "stream \"%.*s\" is empty, expected version %llu",
                             HF_FMT(name), (unsigned long long)version);
    return hf_scope_fail(s, HF_CONDITION,
                         "stream \"%.*s\" is at version %llu, expected version %llu", HF_FMT(name),
                         (unsigned long long)actual, (unsigned long long)version);
}

enum hf_status hf_events_tombstone(struct hf_scope *s, struct hf_events *store,
                                   struct hf_event_stream_key stream, enum hf_expect expect,
                                   uint64_t version)
{
    bool none = expect == HF_EXPECT_NONE || (expect == HF_EXPECT_VERSION && !version);
    struct hf_update_item update = {.update = HF_STR("SET #x = :deleted REMOVE #y"),
                                    .condition = none ? HF_STR("attribute_not_exists(#v)")
                                                 : expect == HF_EXPECT_EXISTS
                                                     ? HF_STR("attribute_exists(#v)")
                                                 : expect == HF_EXPECT_VERSION ? HF_STR("#v = :v")
                                                                               : hf_str_of(NULL, 0),
                                    .values = HF_ITEM(s, HF_S(":deleted", HF_STR("deleted")))};
    struct events_head head;
    struct hf_item item;
    enum hf_status status;
    struct hf_str pk;

    TRY(hf__events_stream_pk(s, 's', stream, &pk));
    if ((unsigned)expect > HF_EXPECT_VERSION)
        return hf_scope_fail(s, HF_INVALID, "stream \"%.*s\": invalid expectation %d",
                             HF_FMT(hf__events_stream_text(s, stream)), (int)expect);
    if (version > INT64_MAX)
        return hf_scope_fail(s, HF_INVALID, "invalid version %llu", (unsigned long long)version);
    update.names =
        update.condition.ptr
            ? HF_ITEM(s, HF_S("#v", HF_STR("v")), HF_S("#x", HF_STR("x")), HF_S("#y", HF_STR("y")))
            : HF_ITEM(s, HF_S("#x", HF_STR("x")), HF_S("#y", HF_STR("y")));
    if (expect == HF_EXPECT_VERSION && version)
        update.values = hf_item_with(s, update.values, &(struct hf_attr)HF_N(":v", version), 1);
    hf__events_heads_drop(store, pk);
    status = head_change(s, store, &update, pk, &item);
    if (status != HF_CONDITION)
        return status;
    TRY(hf__events_head_view(s, item, &head));
    if (head.state == EVENTS_DELETED)
        return HF_OK; /* (1) */
    return hf__events_unexpected(s, stream, expect, version, head.version);
}

/* A stream whose first events are elsewhere, or nowhere any more. */
enum hf_status hf__events_begin_at(struct hf_scope *s, struct hf_events *store,
                                   struct hf_event_stream_key stream, uint64_t first)
{
    struct events_position position = hf__events_position_make(store, 0, 1);
    struct hf_put_item put = {.table = store->table,
                              .condition = HF_STR("attribute_not_exists(#pk)"),
                              .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")))};
    enum hf_status status;
    struct hf_item item;
    struct hf_str pk;

    assert(first > 1 && first <= EVENTS_VERSION_MAX);
    TRY(hf__events_stream_pk(s, 's', stream, &pk));
    put.item =
        HF_ITEM(s, HF_S("p", position_str(&position)), HF_S("pk", pk), HF_S("sk", HF_STR("h")),
                HF_N("t", first), HF_N("v", first - 1), HF_N("w", first));
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, store->db, &(struct hf_transact_write){.put = &put},
                               head_key(s, pk), &item);
    return status == HF_CONDITION ? HF_OK : status;
}

/* ---- walking over a stream ------------------------------------------------------------------ */

bool hf__events_version_read(struct hf_str sk, uint64_t *version)
{
    *version = 0;
    if (sk.len != EVENTS_VERSION_LEN)
        return false;
    for (size_t i = 0; i < sk.len; i++) {
        if (sk.ptr[i] < '0' || sk.ptr[i] > '9')
            return false;
        *version = *version * 10 + (uint64_t)(sk.ptr[i] - '0');
    }
    return *version > 0;
}

static enum hf_status bad_step(struct hf_scope *s, struct hf_item item)
{
    return hf_scope_fail(s, HF_CORRUPT, "the item %.*s of %.*s is damaged",
                         HF_FMT(hf_value_str(hf_item_get(item, HF_STR("sk")))),
                         HF_FMT(hf_value_str(hf_item_get(item, HF_STR("pk")))));
}

enum hf_status hf__events_step_view(struct hf_scope *s, struct hf_item item,
                                    struct events_step *step)
{
    struct hf_str sk = hf_value_str(hf_item_get(item, HF_STR("sk")));
    int64_t first, count, number;

    *step = (struct events_step){.item = item,
                                 .large = hf_value_str(hf_item_get(item, HF_STR("l"))),
                                 .position = hf_value_str(hf_item_get(item, HF_STR("p")))};
    if (!hf__events_version_read(sk, &step->version))
        return bad_step(s, item);
    step->first = step->version;
    step->count = 1;
    if (!step->large.ptr)
        return is_position(step->position) ? HF_OK : bad_step(s, item);
    if (!is_position(step->large) || !hf_value_i64(hf_item_get(item, HF_STR("f")), &first) ||
        !hf_value_i64(hf_item_get(item, HF_STR("n")), &count) ||
        !hf_value_i64(hf_item_get(item, HF_STR("o")), &number) || first < 1 || count < 1 ||
        number < 0 || number > HF_EVENTS_APPEND_MAX || count > HF_EVENTS_APPEND_MAX)
        return bad_step(s, item);
    step->first = (uint64_t)first;
    step->count = (uint64_t)count;
    step->number = (uint32_t)number;
    return HF_OK;
}

enum hf_status hf__events_steps(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                uint64_t from, events_step_fn *fn, void *user)
{
    char sk[EVENTS_VERSION_LEN + 1];
    struct hf_query query;
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;
    uint64_t next = 0; /* what lies before it was met */

    assert(from > 0 && pk.len > 2 && pk.ptr[0] == 's');
    hf__events_version_text(from, sk);
    query =
        (struct hf_query){.table = store->table,
                          .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
                          .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
                          .values = HF_ITEM(s, HF_S(":from", hf_str_of(sk, EVENTS_VERSION_LEN)),
                                            HF_S(":pk", pk), HF_S(":to", HF_STR("A"))),
                          .consistent = HF_YES};
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct events_step step;

        status = hf__events_step_view(s, item, &step);
        if (status == HF_OK && step.version >= next) {
            assert(step.count > 0);
            next = step.first + step.count;
            status = fn(s, store, &step, user);
        }
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return (int)status == EVENTS_STEP_ENOUGH ? HF_OK : status;
}

enum hf_status hf__events_large_pages(struct hf_scope *s, struct hf_events *store,
                                      const struct events_step *step, struct hf_pages **pages)
{
    struct hf_query query = {
        .table = store->table,
        .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
        .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
        .values =
            HF_ITEM(s,
                    HF_S(":from", hf_scope_format(s, "%0*lu", EVENTS_NUMBER_LEN,
                                                  (unsigned long)step->number)),
                    HF_S(":pk", hf__pattern_join(s, HF_STR("t."), step->large)),
                    HF_S(":to", hf_scope_format(s, "%0*lu", EVENTS_NUMBER_LEN,
                                                (unsigned long)(step->number + step->count - 1)))),
        .consistent = HF_YES};

    assert(step->large.len && step->count > 0);
    TRY(hf_scope_built(s));
    return hf_pages_query(s, store->db, &query, NULL, pages);
}

/* ---- the list ------------------------------------------------------------------------------- */

enum hf_status hf__events_each_head(struct hf_scope *s, struct hf_events *store, events_head_fn *fn,
                                    void *user)
{
    struct hf_scan scan = {.table = store->table,
                           .filter = HF_STR("#sk = :h"),
                           .names = HF_ITEM(s, HF_S("#sk", HF_STR("sk"))),
                           .values = HF_ITEM(s, HF_S(":h", HF_STR("h"))),
                           .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_scan(s, store->db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct events_found found = {.pk = hf_value_str(hf_item_get(item, HF_STR("pk"))),
                                     .item = item};

        status = hf__events_stream_of(s, found.pk, &found.stream);
        if (status == HF_OK)
            status = hf__events_head_view(s, item, &found.head);
        if (status == HF_OK)
            status = fn(s, store, &found, user);
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

struct listing {
    struct hf_str domain;
    hf_events_stream_fn *fn;
    void *user;
};

static enum hf_status list_one(struct hf_scope *s, struct hf_events *store,
                               const struct events_found *found, void *user)
{
    const struct listing *listing = user;
    struct hf_event_stream_info info;

    if (listing->domain.len && !hf_str_equal(listing->domain, found->stream.domain))
        return HF_OK;
    TRY(info_of(s, store, found->pk, &found->head, &info));
    return listing->fn(s, found->stream, &info, listing->user);
}

enum hf_status hf_events_streams(struct hf_scope *s, struct hf_events *store, struct hf_str domain,
                                 hf_events_stream_fn *fn, void *user)
{
    struct listing listing = {.domain = domain, .fn = fn, .user = user};

    return hf__events_each_head(s, store, list_one, &listing);
}
