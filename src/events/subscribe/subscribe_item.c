/*
 * events/subscribe/subscribe_item.c: how a subscription is stored, and the requests that change it.
 *
 *     pk q.NAME, sk q
 *     k    checkpoint: a position, or the version of a stream as 16 digits; absent: at the start
 *     n    events that were handled up to there
 *     t    when k was written, by the clock of the writer
 *     h    the token of the holder of the lease; absent: nobody
 *     o    the label of the holder, for diagnostics
 *     p    through which opening of a directory (coord/opener.c); may be absent
 *     b    replaced by each sign of life
 *     l    the length of the lease, in milliseconds
 *     f    a number that grows by one whenever the lease changes hands
 *     r    a rebuild was requested; ra from behind there
 *     e    why it gave up
 *     w    how many events are handled with care; c how many processes have ended with the event at
 *          ca: subscribe_suspect.c
 *
 *  (1) Every write names the token in its condition, so a stale holder's are refused; and none
 *      moves the checkpoint while a rebuild is pending.
 *  (2) The checkpoint moves forward only, under one token: a request that is done late, or twice,
 *      cannot take it back. A rebuild changes the token.
 *  (3) A transaction moves it from where it was: its effects and the move happen once.
 */
#include "events/subscribe/subscribe.h"

enum hf_status hf__sub_pk(struct hf_scope *s, struct hf_str name, struct hf_str *pk)
{
    if (!name.len || name.len > HF_SUBSCRIPTION_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_SUBSCRIPTION_NAME_MAX, name.len),
                                   "the name of a subscription has 1 to %d bytes, not %zu",
                                   HF_SUBSCRIPTION_NAME_MAX, name.len);
    *pk = PATTERN_KEY(s, HF_STR("q"), name);
    TRY(hf_scope_built(s));
    assert(pk->len > 2 && pk->ptr[0] == 'q' && pk->ptr[1] == '.');
    return HF_OK;
}

static uint64_t attr_number(struct hf_item item, const char *name)
{
    int64_t value = 0;

    (void)hf_value_i64(hf_item_get(item, hf_str_of(name, strlen(name))), &value);
    return value > 0 ? (uint64_t)value : 0;
}

static struct hf_str attr_text(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_of(name, strlen(name))));
}

void hf__sub_view(struct hf_item item, struct sub_item *view)
{
    *view = (struct sub_item){
        .found = item.ptr != NULL,
        .holder = attr_text(item, "h"),
        .owner = attr_text(item, "o"),
        .opener = attr_text(item, "p"),
        .beat = attr_text(item, "b"),
        .lease_ms = (uint32_t)attr_number(item, "l"),
        .fence = attr_number(item, "f"),
        .at = checkpoint_of(attr_text(item, "k")),
        .handled = attr_number(item, "n"),
        .moved_us = (int64_t)attr_number(item, "t"),
        .rebuild = attr_text(item, "r"),
        .rebuild_after = attr_text(item, "ra"),
        .failure = attr_text(item, "e"),
        .window = (uint32_t)attr_number(item, "w"),
        .crashes = (uint32_t)attr_number(item, "c"),
        .crash_at = checkpoint_of(attr_text(item, "ca")),
    };
}

static struct hf_item key_of(struct hf_scope *s, struct hf_str pk)
{
    return HF_ITEM(s, HF_S("pk", pk), HF_S("sk", HF_STR("q")));
}

enum hf_status hf__sub_read(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            struct sub_item *view)
{
    struct hf_item key = key_of(s, pk), item;

    TRY(hf_scope_built(s));
    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    hf__sub_view(item, view);
    return HF_OK;
}

/* Send an update until it is known what became of it. HF_CONDITION: `view` is what is there. */
static enum hf_status update_send(struct hf_scope *s, struct hf_events *store,
                                  const struct hf_update_item *update, struct sub_item *view)
{
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, store->db, &(struct hf_transact_write){.update = update},
                               update->key, &item);
    hf__sub_view(item, view);
    return status;
}

static struct hf_str new_beat(struct hf_scope *s)
{
    struct pattern_id id = hf__pattern_id_make(hf_scope_env(s));

    return hf_scope_copy(s, id_str(&id));
}

/* What a refusal means to the holder of that token. */
static enum hf_status check_refusal(struct hf_scope *s, struct hf_str token,
                                    const struct sub_item *view)
{
    if (!view->holder.ptr || !hf_str_equal(view->holder, token))
        return hf_scope_fail(s, HF_LOST, "another process has taken over the subscription");
    if (view->rebuild.ptr)
        return hf_scope_fail(s, HF_IN_USE, "the subscription is to be rebuilt");
    return HF_OK;
}

/* ---- the lease ------------------------------------------------------------------------------ */

enum hf_status hf__sub_take(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            const struct sub_item *seen, const struct sub_taker *taker,
                            struct sub_item *view)
{
    struct hf_str opener = hf_db_opener(store->db);
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = hf_scope_format(s,
                                  "SET #h = :me, #o = :owner, #b = :beat, #l = :lease%s%s "
                                  "REMOVE #e%s ADD #f :one",
                                  opener.len ? ", #p = :opener" : "",
                                  taker->window ? ", #w = :window" : "", opener.len ? "" : ", #p"),
        .condition =
            seen ? HF_STR("#h = :holder AND #b = :seen") : HF_STR("attribute_not_exists(#h)"),
        .names = HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#o", HF_STR("o")),
                         HF_S("#b", HF_STR("b")), HF_S("#l", HF_STR("l")), HF_S("#f", HF_STR("f")),
                         HF_S("#e", HF_STR("e")), HF_S("#p", HF_STR("p"))),
        .returns = HF_RETURN_ALL_NEW,
    };
    struct hf_item values =
        HF_ITEM(s, HF_S(":me", taker->token), HF_S(":owner", taker->owner),
                HF_S(":beat", new_beat(s)), HF_N(":lease", taker->lease_ms), HF_N(":one", 1));
    enum hf_status status;

    if (opener.len)
        values = hf_item_with(s, values, (const struct hf_attr[]){HF_S(":opener", opener)}, 1);
    if (seen)
        values = hf_item_with(s, values,
                              (const struct hf_attr[]){HF_S(":holder", seen->holder),
                                                       HF_S(":seen", seen->beat)},
                              2);
    if (taker->window) {
        update.names =
            hf_item_with(s, update.names, (const struct hf_attr[]){HF_S("#w", HF_STR("w"))}, 1);
        values =
            hf_item_with(s, values, (const struct hf_attr[]){HF_N(":window", taker->window)}, 1);
    }
    assert(taker->token.len && taker->lease_ms && (!seen || seen->holder.ptr));
    update.values = values;
    status = update_send(s, store, &update, view);
    if (status == HF_CONDITION && view->holder.ptr && hf_str_equal(view->holder, taker->token))
        return HF_OK;
    if (status == HF_CONDITION)
        return hf_scope_fail(s, HF_LOCKED, "the subscription is held by \"%.*s\"",
                             HF_FMT(view->owner));
    return status;
}

enum hf_status hf__sub_renew(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             struct hf_str token)
{
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = HF_STR("SET #b = :beat"),
        .condition = HF_STR("#h = :me"),
        .names = HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#b", HF_STR("b"))),
        .values = HF_ITEM(s, HF_S(":me", token), HF_S(":beat", new_beat(s))),
        .returns = HF_RETURN_ALL_NEW,
    };
    struct sub_item view;
    enum hf_status status = update_send(s, store, &update, &view);

    if (status != HF_OK && status != HF_CONDITION)
        return status;
    return check_refusal(s, token, &view);
}

enum hf_status hf__sub_release(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               struct hf_str token, struct hf_str failure)
{
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = failure.len ? HF_STR("SET #e = :failure REMOVE #h, #o, #b, #l, #p, #c, #ca")
                              : HF_STR("REMOVE #h, #o, #b, #l, #p"),
        .condition = HF_STR("#h = :me"),
        .names = HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#o", HF_STR("o")),
                         HF_S("#b", HF_STR("b")), HF_S("#l", HF_STR("l")), HF_S("#p", HF_STR("p"))),
        .values = HF_ITEM(s, HF_S(":me", token)),
    };
    struct sub_item view;
    enum hf_status status;

    if (failure.len) {
        update.names =
            hf_item_with(s, update.names,
                         (const struct hf_attr[]){HF_S("#e", HF_STR("e")), HF_S("#c", HF_STR("c")),
                                                  HF_S("#ca", HF_STR("ca"))},
                         3);
        update.values =
            hf_item_with(s, update.values, (const struct hf_attr[]){HF_S(":failure", failure)}, 1);
    }
    status = update_send(s, store, &update, &view);
    return status == HF_CONDITION ? HF_OK : status; /* it is not ours in any case */
}

enum hf_status hf__sub_guard(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             struct hf_str token, bool rebuilding, struct hf_tx *tx)
{
    struct hf_condition_check check = {
        .table = store->table,
        .key = key_of(s, pk),
        .condition = rebuilding ? HF_STR("#h = :me AND attribute_exists(#r)")
                                : HF_STR("#h = :me AND attribute_not_exists(#r)"),
        .names = HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#r", HF_STR("r"))),
        .values = HF_ITEM(s, HF_S(":me", token)),
    };

    assert(token.len);
    TRY(hf_scope_built(s));
    return hf_tx_add(s, tx, &(struct hf_transact_write){.check = &check});
}

/* ---- the checkpoint ------------------------------------------------------------------------- */

static struct hf_item move_names(struct hf_scope *s, const struct sub_move *move)
{
    const struct hf_attr names[] = {HF_S("#h", HF_STR("h")), HF_S("#b", HF_STR("b")),
                                    HF_S("#k", HF_STR("k")), HF_S("#n", HF_STR("n")),
                                    HF_S("#t", HF_STR("t")), HF_S("#r", HF_STR("r")),
                                    HF_S("#c", HF_STR("c")), HF_S("#ca", HF_STR("ca")),
                                    HF_S("#w", HF_STR("w"))};

    return hf_item_make(s, names,
                        move->forget == FORGET_WINDOW  ? 9
                        : move->forget == FORGET_COUNT ? 8
                                                       : 6);
}

static struct hf_item move_values(struct hf_scope *s, const struct sub_move *move)
{
    return HF_ITEM(s, HF_S(":me", move->token), HF_S(":beat", new_beat(s)),
                   HF_S(":to", checkpoint_str(&move->to)), HF_N(":n", move->handled),
                   HF_N(":t", hf_scope_env(s)->wall_us(hf_scope_env(s)->user)));
}

#define MOVE "SET #k = :to, #n = :n, #t = :t, #b = :beat"

static struct hf_str move_update(const struct sub_move *move)
{
    return move->forget == FORGET_WINDOW  ? HF_STR(MOVE " REMOVE #c, #ca, #w")
           : move->forget == FORGET_COUNT ? HF_STR(MOVE " REMOVE #c, #ca")
                                          : HF_STR(MOVE);
}

/* Has that move happened, going by what is there? */
static bool is_moved(const struct sub_item *view, const struct sub_move *move)
{
    return view->holder.ptr && hf_str_equal(view->holder, move->token) && !view->rebuild.ptr &&
           strcmp(view->at.text, move->to.text) == 0;
}

/* (1) (2) */
enum hf_status hf__sub_move(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            const struct sub_move *move)
{
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = move_update(move),
        .condition = HF_STR("#h = :me AND attribute_not_exists(#r) AND (attribute_not_exists(#k) "
                            "OR #k < :to)"),
        .names = move_names(s, move),
        .values = move_values(s, move),
    };
    struct sub_item view;
    enum hf_status status;

    assert(move->token.len && move->to.text[0]);
    status = update_send(s, store, &update, &view);
    if (status != HF_CONDITION || is_moved(&view, move))
        return status == HF_CONDITION ? HF_OK : status;
    TRY(check_refusal(s, move->token, &view));
    return hf_scope_fail(s, HF_LOST, "the checkpoint is already at \"%s\"", view.at.text);
}

/* (3) */
enum hf_status hf__sub_move_tx(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               const struct sub_move *move, struct hf_tx *tx)
{
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = move_update(move),
        .condition = move->from.text[0]
                         ? HF_STR("#h = :me AND attribute_not_exists(#r) AND #k = :from")
                         : HF_STR("#h = :me AND attribute_not_exists(#r) AND "
                                  "attribute_not_exists(#k)"),
        .names = move_names(s, move),
        .values = move_values(s, move),
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD,
    };

    assert(move->token.len && move->to.text[0]);
    if (move->from.text[0])
        update.values =
            hf_item_with(s, update.values,
                         (const struct hf_attr[]){HF_S(":from", checkpoint_str(&move->from))}, 1);
    TRY(hf_scope_built(s));
    return hf_tx_add(s, tx, &(struct hf_transact_write){.update = &update});
}

enum hf_status hf__sub_move_failed(struct hf_scope *s, size_t action, const struct sub_move *move)
{
    const struct hf_error *error = hf_scope_error(s);
    const struct hf_cancel_reason *reason;
    struct sub_item view;

    if (error->status != HF_TX_CANCELED || action >= error->reasons_len)
        return error->status;
    reason = &error->reasons[action];
    if (hf_str_equal(reason->code, HF_STR("ConditionalCheckFailed"))) {
        hf__sub_view(reason->item, &view);
        if (is_moved(&view, move))
            return HF_OK;
        TRY(check_refusal(s, move->token, &view));
        return hf_scope_fail(s, HF_LOST, "the checkpoint was moved to \"%s\"", view.at.text);
    }
    for (size_t i = 0; i < error->reasons_len; i++)
        if (hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict")))
            return HF_TX_CONFLICT;
    return error->status;
}

enum hf_status hf__sub_count(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             const struct sub_move *move, const struct checkpoint *at,
                             uint32_t crashes)
{
    bool moves = strcmp(move->from.text, move->to.text) != 0;
    const struct hf_attr names[] = {HF_S("#c", HF_STR("c")), HF_S("#ca", HF_STR("ca"))};
    const struct hf_attr counts[] = {HF_N(":c", crashes), HF_S(":ca", checkpoint_str(at))};
    struct hf_item values = moves
                                ? move_values(s, move)
                                : HF_ITEM(s, HF_S(":me", move->token), HF_S(":beat", new_beat(s)));
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .condition = move->to.text[0] ? HF_STR("#h = :me AND attribute_not_exists(#r) AND "
                                               "(attribute_not_exists(#k) OR #k <= :to)")
                                      : HF_STR("#h = :me AND attribute_not_exists(#r) AND "
                                               "attribute_not_exists(#k)"),
        .update = moves     ? HF_STR(MOVE ", #c = :c, #ca = :ca")
                  : crashes ? HF_STR("SET #b = :beat, #c = :c, #ca = :ca")
                            : HF_STR("SET #b = :beat REMOVE #c, #ca"),
        .names = moves ? move_names(s, move)
                       : HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#b", HF_STR("b")),
                                 HF_S("#k", HF_STR("k")), HF_S("#r", HF_STR("r"))),
    };
    struct sub_item view;
    enum hf_status status;

    assert(move->forget == FORGET_NOTHING && (crashes || !moves));
    if (crashes)
        values = hf_item_with(s, values, counts, 2);
    if (!moves && move->to.text[0])
        values = hf_item_with(s, values,
                              (const struct hf_attr[]){HF_S(":to", checkpoint_str(&move->to))}, 1);
    update.names = hf_item_with(s, update.names, names, 2);
    update.values = values;
    status = update_send(s, store, &update, &view);
    if (status != HF_CONDITION)
        return status;
    TRY(check_refusal(s, move->token, &view));
    return hf_scope_fail(s, HF_LOST, "the checkpoint is already at \"%s\"", view.at.text);
}

enum hf_status hf__sub_rebuild(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               const struct sub_item *view, const struct checkpoint *at,
                               struct hf_str token, struct hf_str fresh)
{
    struct hf_update_item update = {
        .table = store->table,
        .key = key_of(s, pk),
        .update = HF_STR("SET #h = :fresh, #n = :zero, #k = :at REMOVE #r, #ra, #e, #c, #ca, #w"),
        .condition = HF_STR("#h = :me AND #r = :rebuild"),
        .names =
            HF_ITEM(s, HF_S("#h", HF_STR("h")), HF_S("#n", HF_STR("n")), HF_S("#k", HF_STR("k")),
                    HF_S("#r", HF_STR("r")), HF_S("#ra", HF_STR("ra")), HF_S("#e", HF_STR("e")),
                    HF_S("#c", HF_STR("c")), HF_S("#ca", HF_STR("ca")), HF_S("#w", HF_STR("w"))),
        .values =
            HF_ITEM(s, HF_S(":me", token), HF_S(":fresh", fresh), HF_S(":rebuild", view->rebuild),
                    HF_S(":at", checkpoint_str(at)), HF_N(":zero", 0)),
    };
    struct sub_item now;
    enum hf_status status = update_send(s, store, &update, &now);

    if (status != HF_CONDITION)
        return status;
    if (now.holder.ptr && hf_str_equal(now.holder, fresh))
        return HF_OK;
    if (now.holder.ptr && hf_str_equal(now.holder, token))
        return hf_scope_fail(s, HF_IN_USE, "another rebuild was requested");
    return hf_scope_fail(s, HF_LOST, "another process has taken over the subscription");
}

/* ---- for everybody -------------------------------------------------------------------------- */

enum hf_status hf_subscription_info(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                                    struct hf_subscription_info *info)
{
    struct hf_parked_list parked = {0};
    struct hf_str pk, after = {0};
    struct sub_item view;

    *info = (struct hf_subscription_info){0};
    TRY(hf__sub_pk(s, name, &pk));
    TRY(hf__sub_read(s, store, pk, &view));
    if (!view.found)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no subscription \"%.*s\"", HF_FMT(name));
    *info =
        (struct hf_subscription_info){.name = name,
                                      .checkpoint = view.at.text[0]
                                                        ? hf_scope_copy(s, checkpoint_str(&view.at))
                                                        : (struct hf_str){0},
                                      .owner = view.owner,
                                      .fence = view.fence,
                                      .handled = view.handled,
                                      .moved_us = view.moved_us,
                                      .rebuild = view.rebuild.ptr != NULL,
                                      .failure = view.failure};
    TRY(hf_scope_built(s));
    do {
        TRY(hf_subscription_parked(s, store, name, after, 1000, &parked));
        info->parked += parked.events_len;
        after = parked.next;
    } while (after.ptr);
    return HF_OK;
}

bool hf__sub_is_version(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len && text.len <= EVENTS_VERSION_LEN;
}

/* Versions are for those of a stream, positions for those of all: its checkpoint, if there is one,
 * shows which it is. Without one the rebuild finds out. */
static enum hf_status check_kind(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                 struct hf_str after)
{
    struct sub_item view;
    bool of_stream;

    if (!after.len)
        return HF_OK;
    TRY(hf__sub_read(s, store, pk, &view));
    of_stream = hf__sub_is_version(checkpoint_str(&view.at));
    if (!view.at.text[0] || hf__sub_is_version(after) == of_stream)
        return HF_OK;
    return hf_scope_fail(s, HF_INVALID,
                         "\"%.*s\" is not a %s, as the checkpoint of the subscription is",
                         HF_FMT(after), of_stream ? "version" : "position");
}

enum hf_status hf_subscription_rebuild(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str name, struct hf_str after)
{
    struct hf_update_item update = {
        .table = store->table,
        .update =
            after.len ? HF_STR("SET #r = :id, #ra = :after") : HF_STR("SET #r = :id REMOVE #ra"),
        .condition = HF_STR("attribute_exists(#pk)"),
        .names = HF_ITEM(s, HF_S("#r", HF_STR("r")), HF_S("#ra", HF_STR("ra")),
                         HF_S("#pk", HF_STR("pk"))),
    };
    struct hf_str pk;
    struct sub_item view;
    enum hf_status status;

    if (after.len && !hf__events_position_read(after, NULL, NULL, NULL) &&
        !hf__sub_is_version(after))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" is neither a position nor a version",
                             HF_FMT(after));
    TRY(hf__sub_pk(s, name, &pk));
    TRY(check_kind(s, store, pk, after));
    update.key = key_of(s, pk);
    update.values = after.len ? HF_ITEM(s, HF_S(":id", new_beat(s)), HF_S(":after", after))
                              : HF_ITEM(s, HF_S(":id", new_beat(s)));
    status = update_send(s, store, &update, &view);
    if (status == HF_CONDITION)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no subscription \"%.*s\"", HF_FMT(name));
    return status;
}

enum hf_status hf_subscription_forget(struct hf_scope *s, struct hf_events *store,
                                      struct hf_str name)
{
    struct hf_delete_item del = {.table = store->table};
    struct hf_str pk;
    struct hf_item item;

    TRY(hf__sub_pk(s, name, &pk));
    TRY(hf__parked_clear(s, store, pk, (struct hf_str){0}));
    del.key = key_of(s, pk);
    TRY(hf_scope_built(s));
    return hf__pattern_write(s, store->db, &(struct hf_transact_write){.del = &del}, del.key,
                             &item);
}
