/*
 * events/sweep/events_sweep_tx.c: the transactions by which a sweep removes events: what belongs to
 * an event, and its copy in the global order.
 *
 * An event is in its stream, once more in a commit of a.DAY.SHARD or z.DAY.SHARD, and it may have
 * an id (i.ID) and be listed under its cause and its correlation (r.ID). A commit has several
 * events, of which some may go and others stay: then it is put back without the first ones, on the
 * condition that it still begins with what it began with. An archive may move it meanwhile, from
 * the part that is looked at last to the one that was looked at first: so both parts are read, and
 * what is in neither is looked for again.
 *
 * The numbers in parentheses are those of events_sweep.c.
 */
#include "events/sweep/sweep.h"

#include <holdfast/batch.h>

enum { ATTEMPTS = 20, DELAY_MS = 20 };

/* ---- transactions --------------------------------------------------------------------------- */

enum hf_status hf__sweep_delete(const struct sweep *w, struct hf_tx *tx, struct hf_item key,
                                struct hf_str attribute)
{
    struct hf_delete_item *del = hf_scope_alloc(w->s, sizeof(*del));

    if (!del)
        return hf_scope_built(w->s);
    *del = (struct hf_delete_item){.table = w->store->table, .key = key};
    if (attribute.ptr) {
        del->condition = HF_STR("attribute_exists(#has)");
        del->names = HF_ITEM(w->s, HF_S("#has", attribute));
    }
    return hf_tx_add(w->s, tx, &(struct hf_transact_write){.del = del});
}

enum hf_status hf__sweep_commit(const struct sweep *w, struct hf_tx *tx, bool *again)
{
    enum hf_status status;

    *again = false;
    TRY(hf_scope_built(w->s));
    status = hf_tx_commit(w->s, tx, NULL);
    *again = status == HF_TX_CANCELED || status == HF_TX_CONFLICT;
    return *again ? HF_OK : status;
}

enum hf_status hf__sweep_wait(const struct sweep *w, int *attempt)
{
    if (++*attempt == ATTEMPTS)
        return hf_scope_fail(
            w->s, HF_IN_USE,
            "the sweep was refused %d times by concurrent changes, or something is missing: run "
            "hf_events_verify()",
            ATTEMPTS);
    return hf_scope_sleep_ms(w->s, hf__backoff_jitter_ms(&w->store->env, DELAY_MS));
}

/* The item of an id; `large`: if it is still that of this append (4). */
static enum hf_status delete_id(const struct sweep *w, struct hf_tx *tx, struct hf_str id,
                                struct hf_str large)
{
    struct hf_scope *s = w->s;
    struct hf_delete_item *del = hf_scope_alloc(s, sizeof(*del));

    if (!del)
        return hf_scope_built(s);
    *del = (struct hf_delete_item){.table = w->store->table,
                                   .key = sweep_key(s, hf__pattern_join(s, HF_STR("i."), id),
                                                    HF_STR("i"))};
    if (large.ptr) {
        del->condition = HF_STR("#l = :l");
        del->names = HF_ITEM(s, HF_S("#l", HF_STR("l")));
        del->values = HF_ITEM(s, HF_S(":l", large));
    }
    return hf_tx_add(s, tx, &(struct hf_transact_write){.del = del});
}

enum hf_status hf__sweep_belongings(const struct sweep *w, struct hf_tx *tx,
                                    const struct hf_stored_event *event, struct hf_str large)
{
    struct hf_scope *s = w->s;

    if (!hf_str_equal(event->id, event->position))
        TRY(delete_id(w, tx, event->id, large));
    if (event->causation.len)
        TRY(hf__sweep_delete(w, tx,
                             sweep_key(s, hf__pattern_join(s, HF_STR("r."), event->causation),
                                       event->position),
                             hf_str_of(NULL, 0)));
    if (hf_str_equal(event->correlation, event->causation))
        return HF_OK;
    return hf__sweep_delete(w, tx,
                            sweep_key(s, hf__pattern_join(s, HF_STR("r."), event->correlation),
                                      event->position),
                            hf_str_of(NULL, 0));
}

/* ---- commits -------------------------------------------------------------------------------- */

bool hf__sweep_add_commit(struct sweep_commits *commits, struct hf_str position)
{
    struct events_position base = {{0}};

    assert(position.len == HF_POSITION_LEN && commits->len <= SWEEP_COMMITS_MAX);
    memcpy(base.text, position.ptr, HF_POSITION_LEN);
    hf__events_position_number(&base, 0);
    if (commits->len && memcmp(&base, &commits->list[commits->len - 1], sizeof(base)) == 0)
        return true;
    if (commits->len == SWEEP_COMMITS_MAX)
        return false;
    commits->list[commits->len++] = base;
    return true;
}

enum hf_status hf__sweep_read_commits(const struct sweep *w, struct sweep_commits *commits)
{
    struct hf_get gets[2 * SWEEP_COMMITS_MAX];
    struct hf_get_many_result got;

    assert(commits->len > 0);
    for (size_t i = 0; i < 2 * commits->len; i++) {
        struct hf_str position = position_str(&commits->list[i % commits->len]);
        char kind = i < commits->len ? 'a' : 'z';

        gets[i] = (struct hf_get){.table = w->store->table,
                                  .key = sweep_key(w->s, hf__events_part_of(w->s, kind, position),
                                                   position)};
    }
    TRY(hf_scope_built(w->s));
    TRY(hf_get_many(w->s, w->store->db, gets, 2 * commits->len,
                    HF_OPTIONS(hf_many_options, .consistent = true), &got));
    commits->items = got.items;
    return HF_OK;
}

/* Is it one of the events that go? It is named by the end of its position. */
static bool is_swept(struct hf_str name, struct hf_str base, const struct hf_stored_event *events,
                     size_t len)
{
    const size_t end = HF_POSITION_LEN - 2;

    for (size_t i = 0; i < len; i++)
        if (memcmp(events[i].position.ptr, base.ptr, end) == 0 &&
            memcmp(events[i].position.ptr + end, name.ptr + 1, 2) == 0)
            return true;
    return false;
}

/* The commit without its events that go; absent: there are no others. */
static struct hf_item commit_without(const struct sweep *w, struct hf_item item, struct hf_str base,
                                     const struct hf_stored_event *events, size_t len)
{
    size_t count = hf_item_count(item), kept = 0, left = 0;
    struct hf_attr *attrs = hf_scope_alloc(w->s, (count + 1) * sizeof(*attrs));
    struct hf_item_walk walk = {0};

    while (attrs && hf_item_next(item, &walk)) {
        bool event = walk.name.len == 3 && walk.name.ptr[0] == 'x';

        if (event && is_swept(walk.name, base, events, len))
            continue;
        left += event;
        attrs[kept++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    }
    return left ? hf_item_make(w->s, attrs, kept) : (struct hf_item){NULL, 0};
}

/* (1): it goes, or is put back without those events, if it still has what it had. */
static enum hf_status commit_take_out(const struct sweep *w, struct hf_tx *tx, struct hf_item item,
                                      const struct hf_stored_event *events, size_t len)
{
    struct hf_str base = hf_value_str(hf_item_get(item, HF_STR("sk")));
    struct hf_str has = hf__events_commit_mark(item);
    struct hf_item rest = commit_without(w, item, base, events, len);
    struct hf_put_item *put;

    TRY(hf_scope_built(w->s));
    if (!rest.ptr)
        return hf__sweep_delete(
            w, tx, sweep_key(w->s, hf_value_str(hf_item_get(item, HF_STR("pk"))), base), has);
    put = hf_scope_alloc(w->s, sizeof(*put));
    if (!put)
        return hf_scope_built(w->s);
    *put = (struct hf_put_item){.table = w->store->table,
                                .item = rest,
                                .condition = HF_STR("attribute_exists(#has)"),
                                .names = HF_ITEM(w->s, HF_S("#has", has))};
    return hf_tx_add(w->s, tx, &(struct hf_transact_write){.put = put});
}

/* An event that is there has its commit in one of the two parts (1). In neither: it was moved from
 * the part that was read last to the one that was read first, or events went meanwhile; *again says
 * so. */
enum hf_status hf__sweep_tx_commits(const struct sweep *w, struct hf_tx *tx,
                                    const struct sweep_commits *commits,
                                    const struct hf_stored_event *events, size_t len, bool *again)
{
    assert(commits->len > 0 && commits->items); /* they were read */
    *again = false;
    for (size_t i = 0; i < commits->len; i++)
        *again = *again || (!commits->items[i].ptr && !commits->items[i + commits->len].ptr);
    for (size_t i = 0; i < 2 * commits->len && !*again; i++)
        if (commits->items[i].ptr)
            TRY(commit_take_out(w, tx, commits->items[i], events, len));
    return HF_OK;
}
