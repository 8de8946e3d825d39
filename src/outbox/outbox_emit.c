/*
 * outbox/outbox_emit.c: storing events.
 *
 *  (1) All events are checked before anything is sent: if one is invalid, none is stored.
 *  (2) One event is one put. Nobody else has its seq, so a refusal is our own doing, by a
 *      request whose answer got lost or that arrived twice; unless another event is there,
 *      which is as good as impossible.
 *  (3) Several are one transaction with one token, so that sending it again does nothing.
 *  (4) An id that the caller chose is an item of its own in the same transaction, and shows who
 *      made it. Where there are no transactions the id and the time give the event its place,
 *      so a repetition meets the event itself.
 *  (5) Wakers are called after it is known that the events are stored.
 *  (6) Large payloads are put into the blob store after (1), and before an event that has one is
 *      sent.
 *  (7) An id that was reserved is the place that the event gets. When the event has changed so that
 *      it belongs elsewhere the id stays, as one that the caller chose.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

enum { SEQ_ATTEMPTS = 3 };

/* An event on its way. */
struct emission {
    const struct hf_event *event;
    struct outbox_place place;
    struct pattern_id put; /* who emits it, for (4) */
    struct hf_item item;
    struct hf_str id;
    struct hf_str blob; /* its payload; absent: in the item */
    bool chosen;        /* by the caller */
    bool placed;        /* (7): its place is known, */
    bool reserved;      /* and is its id */
};

/* ---- (5) ------------------------------------------------------------------------------------ */

/* Which buckets got something. */
struct woken {
    struct hf_outbox *outbox;
    uint64_t buckets[2][(HF_OUTBOX_BUCKETS_MAX + 63) / 64]; /* [1]: urgent ones */
};

static void woken_add(struct woken *woken, const struct emission *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert(list[i].place.bucket < woken->outbox->buckets);
        woken->buckets[list[i].event->urgent][list[i].place.bucket / 64] |=
            UINT64_C(1) << list[i].place.bucket % 64;
    }
}

static void relays_wake(void *user)
{
    struct woken *woken = user;

    for (uint32_t i = 0; i < woken->outbox->buckets; i++)
        for (int urgent = 1; urgent >= 0; urgent--)
            if (woken->buckets[urgent][i / 64] >> i % 64 & 1)
                hf__outbox_wake(woken->outbox, i, urgent);
}

/* ---- what is to be sent --------------------------------------------------------------------- */

static enum hf_status place_it(struct hf_scope *s, struct hf_outbox *outbox, struct emission *e,
                               size_t number)
{
    struct hf_str key = hf__outbox_event_key(e->event);
    int64_t due_us = e->event->due_us ? e->event->due_us : e->event->time_us;

    assert(!e->placed || e->place.bucket < outbox->buckets);
    assert(!e->reserved || (e->placed && !e->chosen));
    if (e->placed && (!e->chosen || outbox->transactions))
        return HF_OK;
    if (!e->chosen || outbox->transactions) {
        hf__outbox_place_make(outbox, e->event->due_us / 1000, e->event->urgent,
                              key.len ? hf__outbox_bucket(outbox, key) : UINT32_MAX, &e->place);
        return HF_OK;
    }
    if (!e->event->time_us)
        return hf_scope_fail(s, HF_INVALID,
                             "event %zu (%.*s) has an id, and so has to have its time: this "
                             "database has no transactions",
                             number, HF_FMT(e->event->type));
    hf__outbox_place_of_id(outbox, e->event->id, key, due_us / 1000, e->event->urgent, &e->place);
    return HF_OK;
}

/* The place is known. */
static enum hf_status build_it(struct hf_scope *s, struct hf_outbox *outbox, struct emission *e,
                               size_t number)
{
    bool alone = e->chosen && !outbox->transactions;
    struct hf_event event = *e->event;
    struct outbox_draft draft = {.event = &event,
                                 .number = number,
                                 .place = &e->place,
                                 .blob = e->blob};

    e->id = hf_scope_copy(s, e->chosen ? e->event->id : place_seq(&e->place));
    if (e->reserved)
        event.id = hf_str_of(NULL, 0); /* the place says it */
    if (alone)
        draft.put = id_str(&e->put);
    return hf__outbox_image(s, outbox, &draft, &e->item);
}

/* Does it go to the blob store? Then it has a digest from now on, for its size. */
static enum hf_status payload_weigh(struct hf_scope *s, struct hf_outbox *outbox,
                                    struct emission *e, size_t number)
{
    static const char digits[HF_BLOB_DIGEST_LEN] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    struct hf_event bare = *e->event;
    struct outbox_draft draft = {.event = &bare,
                                 .number = number,
                                 .place = &e->place,
                                 .blob = e->blob};
    struct hf_item item;

    if (!hf__outbox_is_large(outbox, e->event) || bare.payload.len <= HF_BLOB_DIGEST_LEN)
        return HF_OK;
    assert(outbox->blobs);
    bare.payload = hf_bytes_of(NULL, 0);
    TRY(hf__outbox_image(s, outbox, &draft, &item));
    if (hf_item_size(item) + HF_STR("payload").len + e->event->payload.len > outbox->blob_over)
        e->blob = hf_str_of(digits, sizeof(digits));
    return HF_OK;
}

/* (6) */
static enum hf_status put_blobs(struct hf_scope *s, struct hf_outbox *outbox, struct emission *list,
                                size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!list[i].blob.len)
            continue;
        assert(outbox->blobs);
        TRY(hf_blob_put(s, outbox->blobs, list[i].event->payload, &list[i].blob));
        TRY(build_it(s, outbox, &list[i], i + 1));
    }
    return HF_OK;
}

/* (1) */
static enum hf_status emissions_prepare(struct hf_scope *s, struct hf_outbox *outbox,
                                        const struct hf_event *events, const struct hf_str *places,
                                        size_t len, struct emission **list)
{
    struct emission *all = *list = hf_scope_alloc(s, (len + 1) * sizeof(*all));
    bool placed = places != NULL; /* behind one that gets its place now all do: that is the order */

    if (!all)
        return hf_scope_built(s);
    for (size_t i = 0; i < len; i++) {
        all[i] = (struct emission){.event = &events[i], .chosen = events[i].id.len > 0};
        placed = placed && hf__outbox_place_read(outbox, places[i], &all[i].place) &&
                 hf__outbox_place_fits(outbox, &all[i].place, &events[i]); /* (7) */
        all[i].placed = placed;
        all[i].reserved = placed && hf_str_equal(events[i].id, places[i]);
        all[i].chosen &= !all[i].reserved;
        if (all[i].chosen)
            all[i].put = hf__pattern_id_make(&outbox->env);
        TRY(hf__outbox_check(s, &events[i], i + 1));
        TRY(place_it(s, outbox, &all[i], i + 1));
        TRY(payload_weigh(s, outbox, &all[i], i + 1));
        TRY(build_it(s, outbox, &all[i], i + 1));
    }
    TRY(put_blobs(s, outbox, all, len));
    return hf_scope_built(s);
}

/* Atomic forms: no id twice. */
static enum hf_status check_ids(struct hf_scope *s, const struct emission *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; list[i].chosen && j < i; j++)
            if (list[j].chosen && hf_str_equal(list[i].id, list[j].id))
                return hf_scope_fail(s, HF_DUPLICATE, "events %zu and %zu have the same id, %.*s",
                                     j + 1, i + 1, HF_FMT(list[i].id));
    return HF_OK;
}

static struct hf_put_item event_put(struct hf_scope *s, const struct hf_outbox *outbox,
                                    const struct emission *e)
{
    return (struct hf_put_item){.table = outbox->table,
                                .item = e->item,
                                .condition = HF_STR("attribute_not_exists(#pk)"),
                                .names = HF_ITEM(s, HF_S("#pk", outbox->at.hash))};
}

/* (4) The item that takes the id. */
static struct hf_put_item id_put(struct hf_scope *s, const struct hf_outbox *outbox,
                                 const struct emission *e)
{
    int64_t now_s = hf__env_wall_ms(&outbox->env) / 1000;
    int64_t due_s = e->event->due_us / 1000000;
    const struct hf_attr more[] = {HF_S("seq", place_seq(&e->place)), HF_S("put", id_str(&e->put)),
                                   ttl_attr(outbox,
                                            (due_s > now_s ? due_s : now_s) + outbox->unique_s)};
    struct hf_item key =
        hf__outbox_key_of(s, outbox, hf__pattern_join(s, HF_STR("i."), e->id), HF_STR("i"));

    return (struct hf_put_item){.table = outbox->table,
                                .item = hf_item_with(s, key, more, ARRAY_LEN(more)),
                                .condition = HF_STR("attribute_not_exists(#pk) OR #ttl < :now"),
                                .names = HF_ITEM(s, HF_S("#pk", outbox->at.hash),
                                                 HF_S("#ttl", outbox->at.expires)),
                                .values = HF_ITEM(s, HF_N(":now", now_s)),
                                .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

/* The actions that emit it: one, or two. */
static enum hf_status add_actions(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct emission *e, struct hf_transact_write *actions,
                                  size_t *len)
{
    struct hf_put_item *puts = hf_scope_alloc(s, 2 * sizeof(*puts));

    if (!puts)
        return hf_scope_built(s);
    puts[0] = event_put(s, outbox, e);
    actions[(*len)++] = (struct hf_transact_write){.put = &puts[0]};
    if (e->chosen && outbox->transactions) {
        puts[1] = id_put(s, outbox, e);
        actions[(*len)++] = (struct hf_transact_write){.put = &puts[1]};
    }
    return hf_scope_built(s);
}

static size_t action_count(const struct hf_outbox *outbox, const struct emission *list, size_t len)
{
    size_t count = len;

    for (size_t i = 0; outbox->transactions && i < len; i++)
        count += list[i].chosen;
    return count;
}

/* ---- sending -------------------------------------------------------------------------------- */

static enum hf_status fail_duplicate(struct hf_scope *s, const struct emission *e)
{
    return hf_scope_fail(s, HF_DUPLICATE, "an event with the id %.*s was emitted before",
                         HF_FMT(e->id));
}

/* Is it what we have put, whatever was noted in it since? */
static bool is_ours(const struct emission *e, struct hf_item found)
{
    struct hf_item_walk walk = {0};

    while (found.ptr && hf_item_next(e->item, &walk))
        if (!hf_value_equal(walk.value, hf_item_get(found, walk.name)))
            return false;
    return true;
}

/* (2) */
static enum hf_status send_put(struct hf_scope *s, struct hf_outbox *outbox, struct emission *e)
{
    for (int attempt = 1;; attempt++) {
        struct hf_put_item put = event_put(s, outbox, e);
        struct hf_item found,
            key = hf__outbox_key(s, outbox, "p", e->place.bucket, place_seq(&e->place));
        enum hf_status status;

        TRY(hf_scope_built(s));
        status =
            hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.put = &put}, key, &found);
        if (status == HF_CONDITION && is_ours(e, found))
            return hf_scope_ok(s);
        if (status != HF_CONDITION || attempt == SEQ_ATTEMPTS)
            return status;
        hf__outbox_place_make(outbox, e->event->due_us / 1000, e->event->urgent, e->place.bucket,
                              &e->place);
        TRY(build_it(s, outbox, e, 1));
    }
}

/* (4) without transactions. An event that has moved on is looked for before. */
static enum hf_status send_chosen(struct hf_scope *s, struct hf_outbox *outbox, struct emission *e)
{
    static const char *const partitions[] = {"f", "h"};
    struct hf_put_item put = event_put(s, outbox, e);
    struct hf_write where = {.table = outbox->table, .put = id_put(s, outbox, e).item};
    struct hf_item found;
    enum hf_status status;

    for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
        struct hf_item key =
            hf__outbox_key(s, outbox, partitions[i], e->place.bucket, place_seq(&e->place));

        TRY(hf_scope_built(s));
        TRY(hf__pattern_read(s, outbox->db, outbox->table, key, &found));
        if (found.ptr)
            return fail_duplicate(s, e);
    }
    TRY(hf_scope_built(s));
    TRY(hf__outbox_write_many(s, outbox, &where, 1)); /* by which it is found */
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.put = &put},
                          hf__outbox_key(s, outbox, "p", e->place.bucket, place_seq(&e->place)),
                          &found);
    if (status != HF_CONDITION)
        return status;
    if (hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("put"))), id_str(&e->put)))
        return hf_scope_ok(s);
    return fail_duplicate(s, e);
}

/* The transaction was canceled: because it had happened before, or as an id is taken. */
static enum hf_status fail_canceled(struct hf_scope *s, const struct hf_outbox *outbox,
                                    const struct emission *list, size_t len)
{
    const struct hf_error *error = hf_scope_error(s);
    size_t action = 0;

    for (size_t i = 0; i < len; i++) {
        const struct hf_cancel_reason *reason;

        action++;
        if (!list[i].chosen || !outbox->transactions || action >= error->reasons_len)
            continue;
        reason = &error->reasons[action++];
        if (!hf_str_equal(reason->code, HF_STR("ConditionalCheckFailed")))
            continue;
        if (hf_str_equal(hf_value_str(hf_item_get(reason->item, HF_STR("put"))),
                         id_str(&list[i].put)))
            return hf_scope_ok(s);
        return fail_duplicate(s, &list[i]);
    }
    if (error->may_have_happened && error->reasons_len &&
        hf_str_equal(error->reasons[0].code, HF_STR("ConditionalCheckFailed")))
        return hf_scope_ok(s); /* (2) */
    return error->status;
}

/* (3) */
static enum hf_status send_together(struct hf_scope *s, struct hf_outbox *outbox,
                                    const struct emission *list, size_t len)
{
    size_t count = action_count(outbox, list, len), actions_len = 0, bytes = 0;
    struct hf_transact_write *actions;
    enum hf_status status;

    if (!outbox->transactions)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "this database has no transactions, so %zu events cannot be stored "
                             "together",
                             len);
    if (count > HF_TX_ACTIONS_MAX)
        return hf_scope_fail_limit(
            s, HF_LIMIT, HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, count),
            "%zu events, of which %zu have ids of their own, are more than the %d "
            "actions of a transaction",
            len, count - len, HF_TX_ACTIONS_MAX);
    for (size_t i = 0; i < len; i++)
        bytes += hf_item_size(list[i].item);
    if (bytes > HF_TX_BYTES_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_TX_BYTES_MAX, bytes),
                                   "%zu events have %zu bytes, more than the %d of a transaction",
                                   len, bytes, HF_TX_BYTES_MAX);
    TRY(check_ids(s, list, len));
    actions = hf_scope_alloc(s, count * sizeof(*actions));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++)
        TRY(add_actions(s, outbox, &list[i], actions, &actions_len));
    status = hf__outbox_transact(s, outbox, actions, actions_len);
    return status == HF_TX_CANCELED ? fail_canceled(s, outbox, list, len) : status;
}

static enum hf_status send_one(struct hf_scope *s, struct hf_outbox *outbox, struct emission *e)
{
    if (!e->chosen)
        return send_put(s, outbox, e);
    return outbox->transactions ? send_together(s, outbox, e, 1) : send_chosen(s, outbox, e);
}

/* Those with ids one by one, the others in batches. A repeated id does not stop the others. */
static enum hf_status send_each(struct hf_scope *s, struct hf_outbox *outbox, struct emission *list,
                                size_t len)
{
    struct hf_write *writes = hf_scope_alloc(s, (len + 1) * sizeof(*writes));
    const struct emission *repeated = NULL;
    size_t writes_len = 0;

    if (!writes)
        return hf_scope_built(s);
    for (size_t i = 0; i < len; i++)
        if (!list[i].chosen)
            writes[writes_len++] = (struct hf_write){.table = outbox->table, .put = list[i].item};
    if (writes_len)
        TRY(hf__outbox_write_many(s, outbox, writes, writes_len));
    for (size_t i = 0; i < len; i++) {
        enum hf_status status = list[i].chosen ? send_one(s, outbox, &list[i]) : HF_OK;

        if (status == HF_DUPLICATE)
            repeated = repeated ? repeated : &list[i];
        else if (status != HF_OK)
            return status;
    }
    return repeated ? fail_duplicate(s, repeated) : HF_OK;
}

/* ---- emitting ------------------------------------------------------------------------------- */

static void ids_report(const struct hf_emit_options *o, const struct emission *list, size_t len)
{
    for (size_t i = 0; o->ids && i < len; i++)
        o->ids[i] = list[i].id;
}

static enum hf_status emit_now(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_event *events, const struct hf_str *places,
                               size_t len, const struct hf_emit_options *o)
{
    struct woken woken = {.outbox = outbox};
    struct emission *list;
    enum hf_status status;

    if (len > HF_OUTBOX_EMIT_MAX && !o->each_alone)
        return hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_OUTBOX_EMIT_MAX, len),
                                   "%zu events are more than the %d that are stored together", len,
                                   HF_OUTBOX_EMIT_MAX);
    TRY(emissions_prepare(s, outbox, events, places, len, &list));
    status = len == 1        ? send_one(s, outbox, &list[0])
             : o->each_alone ? send_each(s, outbox, list, len)
                             : send_together(s, outbox, list, len);
    ids_report(o, list, len);
    if (status == HF_OK || o->each_alone) {
        woken_add(&woken, list, len);
        relays_wake(&woken);
    }
    return status;
}

static enum hf_status emit_into(struct hf_scope *s, struct hf_outbox *outbox, struct hf_tx *tx,
                                const struct hf_event *events, const struct hf_str *places,
                                size_t len, const struct hf_emit_options *o)
{
    struct hf_transact_write *actions;
    size_t actions_len = 0, count;
    struct emission *list;
    struct woken *woken;

    if (hf_tx_db(tx) != outbox->db)
        return hf_scope_fail(s, HF_INVALID, "the transaction is one of another database than %.*s",
                             HF_FMT(outbox->table));
    if (len > hf_tx_room(tx))
        return hf_scope_fail_limit(s, HF_LIMIT,
                                   HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, hf_tx_len(tx) + len),
                                   "%zu events are more than a transaction with %zu actions "
                                   "has room for: it may have %d",
                                   len, hf_tx_len(tx), HF_TX_ACTIONS_MAX);
    TRY(emissions_prepare(s, outbox, events, places, len, &list));
    TRY(check_ids(s, list, len));
    count = action_count(outbox, list, len);
    if (count > hf_tx_room(tx))
        return hf_scope_fail_limit(
            s, HF_LIMIT, HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, hf_tx_len(tx) + count),
            "%zu events, of which %zu have ids of their own, are more "
            "than a transaction with %zu actions has room for: it may have %d",
            len, count - len, hf_tx_len(tx), HF_TX_ACTIONS_MAX);
    actions = hf_scope_alloc(s, count * sizeof(*actions));
    woken = hf_scope_alloc(s, sizeof(*woken));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++)
        TRY(add_actions(s, outbox, &list[i], actions, &actions_len));
    for (size_t i = 0; i < actions_len; i++)
        TRY(hf_tx_add(s, tx, &actions[i]));
    ids_report(o, list, len);
    *woken = (struct woken){.outbox = outbox};
    woken_add(woken, list, len);
    return hf_tx_on_commit(s, tx, relays_wake, woken);
}

static enum hf_status events_emit(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_event *events, const struct hf_str *places,
                                  size_t len, const struct hf_emit_options *options)
{
    struct hf_scope_mark mark;
    struct hf_emit_options o;
    struct hf_tx *tx;

    OPTIONS_COPY(&o, options);
    if (!len)
        return hf_scope_ok(s);
    tx = o.join_tx ? hf_scope_tx(s) : NULL;
    if (tx && hf_tx_db(tx) == outbox->db)
        return emit_into(s, outbox, tx, events, places, len, &o);
    mark = hf_scope_mark(s);
    TRY(emit_now(s, outbox, events, places, len, &o));
    if (!o.ids)
        hf_scope_rewind(s, mark);
    return HF_OK;
}

enum hf_status hf_outbox_emit(struct hf_scope *s, struct hf_outbox *outbox,
                              const struct hf_event *events, size_t len,
                              const struct hf_emit_options *options)
{
    call_begins(s);
    return events_emit(s, outbox, events, NULL, len, options);
}

enum hf_status hf_outbox_emit_into(struct hf_scope *s, struct hf_outbox *outbox, struct hf_tx *tx,
                                   const struct hf_event *events, size_t len,
                                   const struct hf_emit_options *options)
{
    struct hf_emit_options o;

    call_begins(s);
    OPTIONS_COPY(&o, options);
    if (!len)
        return hf_scope_ok(s);
    return emit_into(s, outbox, tx, events, NULL, len, &o);
}

struct hf_str hf__outbox_reserve(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event *event)
{
    struct hf_str key = hf__outbox_event_key(event);
    struct outbox_place place;

    hf__outbox_place_make(outbox, event->due_us / 1000, event->urgent,
                          key.len ? hf__outbox_bucket(outbox, key) : UINT32_MAX, &place);
    return hf_scope_copy(s, place_seq(&place));
}

enum hf_status hf__outbox_emit_reserved(struct hf_scope *s, struct hf_outbox *outbox,
                                        struct hf_tx *tx, const struct hf_event *events,
                                        const struct hf_str *places, size_t len)
{
    static const struct hf_emit_options none = {.size = sizeof(none)};

    return tx ? emit_into(s, outbox, tx, events, places, len, &none)
              : events_emit(s, outbox, events, places, len, &none);
}

enum hf_status hf_outbox_emit_tx(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event *event, struct hf_transact_write *action,
                                 struct hf_str *id)
{
    struct emission *e;
    size_t len = 0;

    call_begins(s);
    *action = (struct hf_transact_write){0};
    if (id)
        *id = hf_str_of(NULL, 0);
    if (event->id.len)
        return hf_scope_fail(s, HF_INVALID,
                             "an event with an id of its own is two actions: see "
                             "hf_outbox_emit_into()");
    TRY(emissions_prepare(s, outbox, event, NULL, 1, &e));
    TRY(add_actions(s, outbox, e, action, &len));
    if (id)
        *id = e->id;
    return HF_OK;
}
