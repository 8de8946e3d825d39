/*
 * events/store/events_append_tx.c: an append as a part of the caller's transaction.
 *
 * Its actions are those of an append of its own (events_append.c), without anybody to send them
 * again: the transaction is the caller's, and is built again by the caller, or by hf_tx_run().
 *
 *  (1) Heads are read, not remembered, and ids are looked for, so what can be known before makes
 *      the append fail and not the commit.
 *  (2) No item can be in a transaction twice. A later append of the same transaction goes to the
 *      same part of the global order, behind the earlier one, and needs no check of its own then:
 *      a marker that is open at a position is open behind it. A stream can be appended to once.
 *  (3) The marker is made, if it is missing, before the transaction is; unless it is known that it
 *      was there, as it does not go.
 *  (4) When others were faster, hf_tx_run() builds the transaction again.
 */
#include "events/store/append.h"

/* What an append has put into a transaction. */
struct joined {
    struct hf_events *store;
    struct events_position position; /* of its first commit; none: it had no events */
    struct hf_str *pks;              /* of its streams, those that are only checked too */
    struct events_head *heads;       /* as they will be */
    struct append_action *what;      /* of its actions */
    size_t len;
};

/* ---- the end of the transaction ------------------------------------------------------------- */

static void on_committed(void *user)
{
    struct joined *joined = user;

    for (size_t i = 0; i < joined->len; i++)
        if (joined->heads[i].version)
            hf__events_heads_keep(joined->store, joined->pks[i], &joined->heads[i]);
    if (!joined->position.text[0])
        return;
    assert(is_position(position_str(&joined->position)));
    hf__events_mark(joined->store, position_str(&joined->position), true);
    hf__events_wake(joined->store);
}

/* (4) Heads will be read again; a closed marker has the position up to which it is closed. Ids and
 * what the caller wanted besides are not ours to change. */
static bool on_refused(const struct hf_cancel_reason *reasons, size_t len, void *user)
{
    struct joined *joined = user;

    for (size_t i = 0; i < len; i++) {
        if (!hf_str_equal(reasons[i].code, HF_STR("ConditionalCheckFailed")))
            continue;
        if (joined->what[i].kind == ACTION_MARKER) {
            hf__events_mark(joined->store, position_str(&joined->position), false);
            hf__events_observe(joined->store,
                               hf_value_str(hf_item_get(reasons[i].item, HF_STR("c"))));
        } else if (joined->what[i].kind != ACTION_HEAD && joined->what[i].kind != ACTION_ID) {
            return false;
        }
    }
    return true;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* `checked`: the transaction has the check of the marker already. */
static enum hf_status check_room(struct appending *a, const struct hf_tx *tx, bool checked)
{
    if (hf__append_actions_len(a) <= hf_tx_room(tx) + (checked && a->commits_len) &&
        a->bytes <= EVENTS_TX_BYTES)
        return HF_OK;
    return hf_scope_fail_limit(
        a->s, HF_LIMIT,
        HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, hf_tx_len(tx) + hf__append_actions_len(a)),
        "%zu events with %zu bytes take %zu actions and do not fit into a transaction that has "
        "%zu already: at most %d actions and %d bytes are allowed",
        a->events_len, a->bytes, hf__append_actions_len(a), hf_tx_len(tx), HF_TX_ACTIONS_MAX,
        EVENTS_TX_BYTES);
}

/* (2) Which streams are in it already; *before is its last append with events. */
static enum hf_status look_at_tx(struct appending *a, const struct hf_tx *tx,
                                 const struct joined **before)
{
    const struct joined *joined = NULL;

    *before = NULL;
    while ((joined = hf__tx_joined(tx, on_committed, joined)) != NULL) {
        if (joined->store != a->store)
            continue;
        for (size_t i = 0; i < joined->len; i++)
            for (size_t j = 0; j < a->len; j++)
                if (hf_str_equal(joined->pks[i], a->targets[j].pk))
                    return hf_scope_fail(
                        a->s, HF_INVALID,
                        "stream \"%.*s\" is already part of this transaction; append to it only "
                        "once",
                        HF_FMT(hf__events_stream_text(a->s, a->targets[j].append->stream)));
        if (joined->position.text[0])
            *before = joined;
    }
    return HF_OK;
}

/* (3) *position is in a part of the order that has a marker, and that is open there. */
static enum hf_status open_marker(struct appending *a, struct events_position *position)
{
    for (int attempt = 0;; attempt++) {
        struct hf_condition_check check;
        struct hf_item item;
        bool over;

        *position = hf__events_position_make(a->store, a->shard, (uint32_t)a->commits_len);
        if (hf__events_marked(a->store, position_str(position)))
            return HF_OK; /* if it is closed there, that shows in the end (4) */
        check = hf__events_marker_check(a->s, a->store, position_str(position));
        TRY(hf_scope_built(a->s));
        TRY(hf__pattern_read(a->s, a->store->db, a->store->table, check.key, &item));
        if (item.ptr) {
            struct hf_str closed = hf_value_str(hf_item_get(item, HF_STR("c")));

            if (closed.len < HF_POSITION_LEN ||
                memcmp(closed.ptr, position->text, HF_POSITION_LEN) < 0)
                return HF_OK;
            hf__events_observe(a->store, closed);
        } else {
            TRY(hf__events_marker_make(a->s, a->store, position_str(position), &over));
            if (!over)
                return HF_OK;
        }
        if (attempt == 10)
            return hf_scope_fail(
                a->s, HF_TX_CONFLICT,
                "readers closed the global order each time before the events could be appended; "
                "try again");
    }
}

static bool is_same_part(struct appending *a, const struct events_position *one,
                         const struct events_position *other)
{
    return hf_str_equal(hf__events_part_of(a->s, 'm', position_str(one)),
                        hf__events_part_of(a->s, 'm', position_str(other)));
}

/* Where the events will be; *checked: the transaction has a check of that marker. */
static enum hf_status tx_place(struct appending *a, const struct joined *before, bool *checked)
{
    struct events_position base = {.text = ""};
    uint32_t shard;

    *checked = false;
    if (a->commits_len && before) {
        assert(before->store == a->store && is_position(position_str(&before->position)));
        hf__events_position_read(position_str(&before->position), NULL, &shard, NULL);
        a->shard = shard;
        hf__events_observe(a->store, position_str(&before->position));
        base = hf__events_position_make(a->store, shard, (uint32_t)a->commits_len);
        *checked = is_same_part(a, &before->position, &base);
    }
    if (a->commits_len && !*checked)
        TRY(open_marker(a, &base));
    hf__append_place(a, &base);
    for (size_t i = 0; i < a->events_len; i++)
        TRY(hf__append_map(a, &a->events[i]));
    return HF_OK;
}

static struct joined *keep_joined(struct appending *a)
{
    struct joined *joined = hf_scope_alloc(a->s, sizeof(*joined));
    struct hf_str *pks = hf_scope_alloc(a->s, a->len * sizeof(*pks));
    struct events_head *heads = hf_scope_alloc(a->s, a->len * sizeof(*heads));

    if (!joined || !pks || !heads)
        return NULL;
    *joined = (struct joined){
        .store = a->store, .pks = pks, .heads = heads, .what = a->what, .len = a->len};
    if (a->commits_len)
        joined->position = a->commits[0].position;
    for (size_t i = 0; i < a->len; i++) {
        pks[i] = a->targets[i].pk;
        heads[i] = a->targets[i].next;
    }
    return joined;
}

static enum hf_status tx_join(struct appending *a, struct hf_tx *tx)
{
    const struct joined *before;
    struct joined *joined;
    bool repeated, checked;

    TRY(look_at_tx(a, tx, &before));
    TRY(check_room(a, tx, before != NULL));
    TRY(hf__append_heads(a, false, &repeated)); /* (1) */
    if (a->chosen && !repeated)
        TRY(hf__append_look_for_ids(a, &repeated));
    if (repeated)
        return HF_OK;
    TRY(hf__append_blobs(a));
    TRY(tx_place(a, before, &checked));
    TRY(check_room(a, tx, checked));
    TRY(hf__append_actions(a));
    assert(!checked || a->what[a->actions_len - 1].kind == ACTION_MARKER);
    if (checked)
        a->actions_len--; /* the marker's is the last one (2) */
    joined = keep_joined(a);
    TRY(hf_scope_built(a->s));
    TRY(hf__tx_join(a->s, tx, a->actions, a->actions_len, on_committed, on_refused, joined));
    hf__append_results(a);
    return HF_OK;
}

enum hf_status hf__append_join(struct appending *a, struct hf_tx *tx)
{
    uint32_t taken =
        hf__events_shard_take(a->store); /* a->shard may become that of an earlier one */
    enum hf_status status;

    a->shard = taken;
    status = tx_join(a, tx);
    hf__events_shard_give(a->store, taken);
    return status;
}
