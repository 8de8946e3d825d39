/*
 * events/store/events_append_large.c: appends that are larger than a transaction, and how their
 * events are read.
 *
 * All events are staged first, under the position of the first one, COMMIT:
 *
 *     x/COMMIT           `at` (milliseconds since 1970) and `n`: so many events are being staged
 *     t.COMMIT/NUMBER    each event, as it would be in its stream; NUMBER counts through all
 *                        streams
 *     r.*, i.*           what relates to them, and their ids, with `l` and `n` to say where they
 *                        are
 *
 * One transaction makes them visible: it moves the heads, puts a commit for each thousand events
 * into the global order, and two stubs into each stream, and removes x/COMMIT, on the condition
 * that it is there. What the caller wants to happen together with the append is a part of it.
 * events.h says how the stubs look.
 *
 *  (1) Nobody sees a part: staged events are seen through a commit or a stub only. A reader that
 *      finds one by its id, or by what relates to it, asks whether the commit is there.
 *  (2) The request that removes x/COMMIT decides: that of its append, or that which abandons it (by
 *      the sweep, or by an append that needs an id which an unfinished one has taken). What was
 *      abandoned cannot become visible.
 *  (3) The position is taken some time ahead, as staging events takes a while, and a position that
 *      readers have closed meanwhile would be refused, with all that was staged for it. This does
 *      not move the clock of the store; it moves those of other stores once they see the position.
 *  (4) An attempt that cannot succeed is abandoned: x/COMMIT is replaced by y/COMMIT, by which the
 *      sweep finds the staged events, and removes them with their ids and r.*.
 *  (5) x/COMMIT is put only while its append is neither visible nor given up: a request that comes
 *      twice, the second time when all is done, would have the sweep remove what is visible.
 */
#include "events/store/append.h"

#include <holdfast/batch.h>

enum {
    CHUNK_EVENTS = 100,
    CHUNK_BYTES = 1000 * 1000,
    AHEAD_MS = 1000, /* and one for each event; four times as much each time */
    IDS_ATTEMPTS = 10,
    IDS_DELAY_MS = 10
};

/* ---- keys and items ------------------------------------------------------------------------- */

static void number_text(uint32_t number, char text[EVENTS_NUMBER_LEN])
{
    for (int i = EVENTS_NUMBER_LEN - 1; i >= 0; i--, number /= 10)
        text[i] = (char)('0' + number % 10);
    assert(number == 0); /* it has no more digits */
}

static struct hf_str staged_pk(struct hf_scope *s, struct hf_str large)
{
    return hf__pattern_join(s, HF_STR("t."), large);
}

struct hf_item hf__events_large_key(struct hf_scope *s, struct hf_str large, uint32_t number)
{
    char sk[EVENTS_NUMBER_LEN];

    number_text(number, sk);
    return HF_ITEM(s, HF_S("pk", staged_pk(s, large)), HF_S("sk", hf_str_of(sk, sizeof(sk))));
}

struct hf_item hf__events_begun_key(struct hf_scope *s, struct hf_str large)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("x")), HF_S("sk", large));
}

static bool number_in(struct hf_item item, struct hf_str name, uint64_t max, uint64_t *out)
{
    int64_t number;

    if (!hf_value_i64(hf_item_get(item, name), &number) || number < 0 || (uint64_t)number > max)
        return false;
    *out = (uint64_t)number;
    return true;
}

bool hf__events_stub_view(struct hf_item item, struct events_stub *stub)
{
    uint64_t number;

    *stub = (struct events_stub){.large = hf_value_str(hf_item_get(item, HF_STR("l")))};
    if (!is_position(stub->large) ||
        !number_in(item, HF_STR("f"), INT64_MAX - HF_EVENTS_APPEND_MAX, &stub->first) ||
        !number_in(item, HF_STR("n"), HF_EVENTS_APPEND_MAX, &stub->count) ||
        !number_in(item, HF_STR("o"), HF_EVENTS_APPEND_MAX, &number) || !stub->count)
        return false;
    stub->number = (uint32_t)number;
    return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

bool hf__events_large_number(struct hf_item item, uint32_t *number)
{
    struct hf_str sk = hf_value_str(hf_item_get(item, HF_STR("sk")));

    *number = 0;
    for (size_t i = 0; i < sk.len; i++) {
        if (sk.ptr[i] < '0' || sk.ptr[i] > '9')
            return false;
        *number = *number * 10 + (uint32_t)(sk.ptr[i] - '0');
    }
    return sk.len == EVENTS_NUMBER_LEN;
}

enum hf_status hf__events_large_page(struct hf_scope *s, struct hf_events *store,
                                     const struct events_large_range *range,
                                     struct hf_query_result *page)
{
    char low[EVENTS_NUMBER_LEN], high[EVENTS_NUMBER_LEN];
    struct hf_query query = {.table = store->table,
                             .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :low AND :high"),
                             .names =
                                 HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
                             .limit = (int64_t)range->limit,
                             .forward = range->backward ? HF_NO : HF_YES,
                             .consistent = HF_YES};

    number_text(range->from, low);
    number_text(range->to, high);
    query.values =
        HF_ITEM(s, HF_S(":high", hf_str_of(high, sizeof(high))),
                HF_S(":low", hf_str_of(low, sizeof(low))), HF_S(":pk", staged_pk(s, range->large)));
    do {
        TRY(hf_scope_built(s));
        TRY(hf_query(s, store->db, &query, page));
        query.start = page->last;
    } while (!page->items_len && query.start.ptr);
    return HF_OK;
}

enum hf_status hf__events_large_events(struct hf_scope *s, struct hf_events *store,
                                       const struct events_commit *commit, struct events_run *run)
{
    const struct events_large_range range = {.large = commit->large,
                                             .from = commit->large_from + run->from,
                                             .to = commit->large_from + commit->count - 1,
                                             .limit = run->cap};
    struct hf_query_result page;
    uint32_t number = 0;

    assert(commit->large.len && run->cap > 0 && run->len == 0);
    if (run->from >= commit->count)
        return HF_OK;
    TRY(hf__events_large_page(s, store, &range, &page));
    for (size_t i = 0; i < page.items_len && run->len < run->cap; i++) {
        if (!hf__events_large_number(page.items[i], &number))
            return hf_scope_fail(s, HF_CORRUPT, "an item of append %.*s is damaged",
                                 HF_FMT(commit->large));
        number -= commit->large_from;
        TRY(hf__events_item_view(s, page.items[i], commit->stream, commit->version + number,
                                 &run->events[run->len]));
        run->len++;
    }
    if (run->len && (page.last.ptr || run->len < page.items_len) && number + 1 < commit->count)
        run->next = number + 1;
    return HF_OK;
}

/* ---- staging -------------------------------------------------------------------------------- */

static enum hf_status write_all(struct appending *a, const struct hf_write *writes, size_t len)
{
    return hf_write_many(a->s, a->store->db, writes, len, NULL, NULL);
}

/* (5) */
static struct hf_condition_check is_not_there(struct appending *a, struct hf_item key)
{
    return (struct hf_condition_check){.table = a->store->table,
                                       .key = key,
                                       .condition = HF_STR("attribute_not_exists(#pk)"),
                                       .names = a->store->names_pk};
}

static enum hf_status put_begun(struct appending *a)
{
    struct hf_put_item put = {.table = a->store->table,
                              .item = HF_ITEM(a->s, HF_N("at", hf__env_wall_ms(&a->store->env)),
                                              HF_N("n", a->events_len), HF_S("pk", HF_STR("x")),
                                              HF_S("sk", a->begun))};
    struct hf_condition_check commit =
        is_not_there(a, HF_ITEM(a->s, HF_S("pk", hf__events_part_of(a->s, 'a', a->begun)),
                                HF_S("sk", a->begun)));
    struct hf_condition_check archived =
        is_not_there(a, HF_ITEM(a->s, HF_S("pk", hf__events_part_of(a->s, 'z', a->begun)),
                                HF_S("sk", a->begun)));
    struct hf_condition_check given_up =
        is_not_there(a, HF_ITEM(a->s, HF_S("pk", HF_STR("y")), HF_S("sk", a->begun)));
    const struct hf_transact_write actions[] = {{.put = &put},
                                                {.check = &commit},
                                                {.check = &archived},
                                                {.check = &given_up}};

    TRY(hf_scope_built(a->s));
    return hf_transact_write_items(a->s, a->store->db,
                                   &(struct hf_transact_write_items){.actions = actions,
                                                                     .actions_len =
                                                                         ARRAY_LEN(actions)},
                                   NULL);
}

/* The items of some events, and what relates to them; *len is how many events those are. */
static enum hf_status put_chunk(struct appending *a, const struct append_target *t, size_t first,
                                size_t *len)
{
    struct hf_write *writes = hf_scope_alloc(a->s, 3 * CHUNK_EVENTS * sizeof(*writes));
    struct hf_str pk = staged_pk(a->s, a->begun);
    size_t bytes = 0, writes_len = 0;

    TRY(hf_scope_built(a->s));
    for (*len = 0; first + *len < t->len && *len < CHUNK_EVENTS && bytes < CHUNK_BYTES; ++*len) {
        struct append_event *p = &t->events[first + *len];
        size_t number = (size_t)(p - a->events), related_len;
        struct hf_item related[2];
        char sk[EVENTS_NUMBER_LEN];

        number_text((uint32_t)number, sk);
        TRY(hf__append_map(a, p));
        writes[writes_len++] =
            (struct hf_write){.table = a->store->table,
                              .put = hf__events_item(a->s, pk, hf_str_of(sk, sizeof(sk)),
                                                     p->event.position, p->map)};
        related_len = hf__append_related(a, t, p, a->begun, number, related);
        for (size_t i = 0; i < related_len; i++)
            writes[writes_len++] = (struct hf_write){.table = a->store->table, .put = related[i]};
        bytes += p->size;
    }
    assert(*len > 0 && writes_len <= (size_t)3 * CHUNK_EVENTS);
    TRY(hf_scope_built(a->s));
    return write_all(a, writes, writes_len);
}

static enum hf_status stage_events(struct appending *a)
{
    struct hf_scope_mark mark = hf_scope_mark(a->s);

    for (size_t i = 0; i < a->len; i++)
        for (size_t first = 0, len; first < a->targets[i].len; first += len) {
            TRY(put_chunk(a, &a->targets[i], first, &len));
            hf_scope_rewind(a->s, mark);
        }
    return HF_OK;
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* The puts of ids of events from `first` on; what an earlier attempt of this call has left is
 * written over. */
static enum hf_status id_actions(struct appending *a, size_t *first,
                                 struct hf_transact_write *actions, size_t *len)
{
    struct hf_str before = a->begun_before.len ? a->begun_before : a->begun;

    for (*len = 0; *first < a->events_len && *len < HF_TX_ACTIONS_MAX; ++*first) {
        const struct append_event *p = &a->events[*first];
        const struct append_target *t = a->targets;
        struct hf_put_item put = {
            .table = a->store->table,
            .condition = HF_STR("attribute_not_exists(#pk) OR #l = :l OR #l = :o"),
            .names = HF_ITEM(a->s, HF_S("#l", HF_STR("l")), HF_S("#pk", HF_STR("pk"))),
            .values = HF_ITEM(a->s, HF_S(":l", a->begun), HF_S(":o", before))};

        if (!p->chosen)
            continue;
        while (p >= t->events + t->len)
            t++;
        assert(t < a->targets + a->len);
        put.item = hf__append_id_item(a, t, p, a->begun, *first);
        actions[(*len)++] = (struct hf_transact_write){.put = APPEND_KEEP(a->s, put)};
    }
    return hf_scope_built(a->s);
}

static bool is_refused(const struct hf_error *error)
{
    for (size_t i = 0; i < error->reasons_len; i++)
        if (hf_str_equal(error->reasons[i].code, HF_STR("ConditionalCheckFailed")))
            return true;
    return false;
}

static enum hf_status send_ids(struct appending *a, const struct hf_transact_write *actions,
                               size_t len, bool *repeated)
{
    const struct hf_transact_write_items request = {.actions = actions, .actions_len = len};

    *repeated = false;
    for (int attempt = 1;; attempt++) {
        enum hf_status status = hf_transact_write_items(a->s, a->store->db, &request, NULL);
        const struct hf_error *error = hf_scope_error(a->s);

        if (status == HF_OK)
            return HF_OK;
        if (status == HF_TX_CANCELED && is_refused(error)) {
            TRY(hf__append_look_for_ids(a, repeated));
            if (*repeated)
                return HF_OK;
        } else if (status != HF_TX_CANCELED && !error->may_retry && !error->may_have_happened) {
            return status;
        }
        if (attempt == IDS_ATTEMPTS)
            return hf_scope_fail(a->s, HF_TX_CONFLICT,
                                 "other writers are appending events with the same ids");
        TRY(hf_scope_sleep_ms(a->s, hf__backoff_jitter_ms(&a->store->env,
                                                          IDS_DELAY_MS * (uint32_t)attempt)));
    }
}

static enum hf_status put_ids(struct appending *a, bool *repeated)
{
    struct hf_transact_write *actions = hf_scope_alloc(a->s, HF_TX_ACTIONS_MAX * sizeof(*actions));
    struct hf_scope_mark mark = hf_scope_mark(a->s);
    size_t first = 0, len;

    *repeated = false;
    TRY(hf_scope_built(a->s));
    while (first < a->events_len && !*repeated) {
        TRY(id_actions(a, &first, actions, &len));
        if (len)
            TRY(send_ids(a, actions, len, repeated));
        if (!*repeated)
            hf_scope_rewind(a->s, mark);
    }
    return HF_OK;
}

/* ---- making it visible ---------------------------------------------------------------------- */

static enum hf_status add_begun(struct appending *a)
{
    struct hf_delete_item del = {.table = a->store->table,
                                 .key = hf__events_begun_key(a->s, a->begun),
                                 .condition = HF_STR("attribute_exists(#pk)"),
                                 .names = a->store->names_pk};

    return hf__append_add(a, (struct hf_transact_write){.del = APPEND_KEEP(a->s, del)},
                          ACTION_BEGUN, 0);
}

/* What stands for the events in their stream, under their first and under their last version. */
static enum hf_status add_stubs(struct appending *a, const struct append_target *t)
{
    const struct append_event *ends[] = {&t->events[0], &t->events[t->len - 1]};
    size_t number = (size_t)(t->events - a->events);

    assert(t->len > 0 && ends[1]->event.version == t->head.version + t->len);
    for (size_t i = 0; i < (t->len > 1 ? 2 : 1); i++)
        TRY(hf__append_add_put(a,
                               HF_ITEM(a->s, HF_N("f", t->head.version + 1), HF_S("l", a->begun),
                                       HF_N("n", t->len), HF_N("o", number), HF_S("pk", t->pk),
                                       HF_S("sk", hf_str_of(ends[i]->sk, EVENTS_VERSION_LEN))),
                               ACTION_EVENT, number));
    return HF_OK;
}

static enum hf_status add_large_commit(struct appending *a, size_t i)
{
    const struct append_commit *commit = &a->commits[i];
    const struct append_target *t = commit->target;
    struct hf_str position = position_str(&commit->position);
    struct hf_attr attrs[8];
    size_t len = 0;

    attrs[len++] = (struct hf_attr)HF_S("d", t->append->stream.domain);
    if (t->append->stream.id.len)
        attrs[len++] = (struct hf_attr)HF_S("i", t->append->stream.id);
    attrs[len++] = (struct hf_attr)HF_S("l", a->begun);
    attrs[len++] = (struct hf_attr)HF_N("n", commit->len);
    attrs[len++] = (struct hf_attr)HF_N("o", (size_t)(t->events - a->events) + commit->first);
    attrs[len++] = (struct hf_attr)HF_S("pk", hf__events_part_of(a->s, 'a', position));
    attrs[len++] = (struct hf_attr)HF_S("sk", position);
    attrs[len++] = (struct hf_attr)HF_N("v", t->events[commit->first].event.version);
    assert(len <= ARRAY_LEN(attrs));
    return hf__append_add_put(a, hf_item_make(a->s, attrs, len), ACTION_COMMIT, i);
}

_Static_assert(3 * HF_EVENTS_STREAMS_MAX + HF_EVENTS_STREAMS_MAX +
                       HF_EVENTS_APPEND_MAX / EVENTS_COMMIT_MAX + 2 <=
                   HF_TX_ACTIONS_MAX,
               "what makes the largest append visible is one transaction");

/* How many actions make it visible; the commits are known. */
static size_t last_actions_len(const struct appending *a)
{
    size_t len = a->o.with_len + a->commits_len + 2; /* x/COMMIT, the marker */

    for (size_t i = 0; i < a->len; i++)
        len +=
            hf__append_has_head(&a->targets[i]) + (a->targets[i].len > 1 ? 2 : a->targets[i].len);
    return len;
}

static enum hf_status last_actions(struct appending *a)
{
    assert(last_actions_len(a) <= HF_TX_ACTIONS_MAX);
    a->actions = hf_scope_alloc(a->s, HF_TX_ACTIONS_MAX * sizeof(*a->actions));
    a->what = hf_scope_alloc(a->s, HF_TX_ACTIONS_MAX * sizeof(*a->what));
    a->actions_len = 0;
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->o.with_len; i++)
        TRY(hf__append_add(a, a->o.with[i], ACTION_WITH, i));
    TRY(add_begun(a));
    for (size_t i = 0; i < a->len; i++) {
        TRY(hf__append_add_head(a, i));
        if (a->targets[i].len)
            TRY(add_stubs(a, &a->targets[i]));
    }
    for (size_t i = 0; i < a->commits_len; i++)
        TRY(add_large_commit(a, i));
    TRY(hf__append_add_marker(a));
    assert(a->actions_len == last_actions_len(a));
    return hf_scope_built(a->s);
}

/* ---- the whole ------------------------------------------------------------------------------ */

bool hf__append_is_large(const struct appending *a)
{
    return hf__append_actions_len(a) > HF_TX_ACTIONS_MAX || a->bytes > EVENTS_TX_BYTES;
}

/* (3) */
static void place_ahead(struct appending *a, uint32_t attempt)
{
    uint32_t ahead_ms = (AHEAD_MS + (uint32_t)a->events_len) << 2 * (attempt < 4 ? attempt : 4);
    struct hf_str after = {NULL, 0};
    struct events_position base;

    for (size_t i = 0; i < a->len; i++) {
        struct hf_str position = position_str(&a->targets[i].head.position);

        if (position.len && (!after.len || memcmp(position.ptr, after.ptr, HF_POSITION_LEN) > 0))
            after = position;
    }
    base = hf__events_position_ahead(a->store, a->shard, (uint32_t)a->commits_len, ahead_ms, after);
    hf__append_place(a, &base);
}

/* (4) The scope's error is not touched, and its deadline does not matter. When it does not succeed
 * the sweep finds it by x/COMMIT. Without that it cannot become visible any more, whatever is still
 * under way. */
static void give_up(struct appending *a)
{
    struct hf_scope *s = hf_scope_new(&a->store->env);
    enum hf_status status = s ? hf__events_give_up(s, a->store, a->begun) : HF_NOMEM;
    bool there = true; /* it may have become visible in between */

    if (a->may_still_happen && status == HF_OK &&
        hf__events_is_there(s, a->store, a->begun, &there) == HF_OK)
        a->may_still_happen = there;
    hf_scope_free(s);
}

static enum hf_status try_large(struct appending *a, enum append_verdict *verdict)
{
    bool repeated = false;

    TRY(put_begun(a));
    TRY(stage_events(a));
    if (a->chosen)
        TRY(put_ids(a, &repeated));
    if (repeated) {
        *verdict = APPEND_REPEATED;
        return HF_OK;
    }
    TRY(last_actions(a));
    return hf__append_send(a, verdict);
}

/* Ids that are there already are found before anything is staged. */
static enum hf_status prepare_large(struct appending *a, bool *repeated)
{
    *repeated = false;
    TRY(hf__append_divide(a, false));
    if (last_actions_len(a) > HF_TX_ACTIONS_MAX)
        return hf_scope_fail_limit(
            a->s, HF_LIMIT, HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, last_actions_len(a)),
            "%zu events with %zu bytes do not fit into one transaction; what makes them visible "
            "takes %zu actions, so of the other %zu at most %zu can be part of the append",
            a->events_len, a->bytes, last_actions_len(a) - a->o.with_len, a->o.with_len,
            HF_TX_ACTIONS_MAX - (last_actions_len(a) - a->o.with_len));
    return a->chosen ? hf__append_look_for_ids(a, repeated) : HF_OK;
}

enum hf_status hf__append_large(struct appending *a)
{
    struct events_position begun[2];
    struct hf_scope_mark mark;
    bool repeated;

    assert(hf__append_is_large(a) && a->events_len > 0);
    TRY(prepare_large(a, &repeated));
    if (repeated)
        return HF_OK;
    mark = hf_scope_mark(a->s);
    for (uint32_t attempt = 0;; attempt++) {
        enum append_verdict verdict = APPEND_RETRY;
        enum hf_status status;

        TRY(hf__append_heads(a, attempt == 0, &repeated));
        if (repeated)
            return HF_OK;
        TRY(hf__append_blobs(a));
        place_ahead(a, attempt);
        begun[attempt % 2] = a->commits[0].position;
        a->begun_before = a->begun;
        a->begun = position_str(&begun[attempt % 2]);
        status = try_large(a, &verdict);
        if (status == HF_OK && verdict == APPEND_DONE) {
            hf__append_done(a);
            return HF_OK;
        }
        if (status == HF_OK || !a->ambiguous)
            give_up(a);
        if (status != HF_OK || verdict == APPEND_REPEATED)
            return status;
        TRY(hf__append_wait(a));
        hf_scope_rewind(a->s, mark);
    }
}
