/*
 * events/sweep/events_sweep_large.c: removing large appends: those that may go, and those that were
 * never finished.
 *
 * A large append (events_append_large.c) has its events in t.COMMIT, which may be more than a
 * transaction can remove. One that is visible is hidden first, by one transaction, and then removed
 * piece by piece; the head remembers that (`u`) until nothing is left. One that never became
 * visible is kept from becoming so, by replacing x/COMMIT by y/COMMIT, before anything of it goes.
 * Either way each piece is a transaction of its own, and after a crash the next sweep goes on with
 * what is there.
 *
 * The numbers in parentheses are those of events_sweep.c.
 */
#include "events/sweep/sweep.h"

#include <holdfast/batch.h>

_Static_assert(SWEEP_SOME * 4 <= HF_TX_ACTIONS_MAX, "an event, its id, its cause, its correlation");

/* ---- large appends -------------------------------------------------------------------------- */

static struct hf_str number_text(struct hf_scope *s, uint64_t number)
{
    return hf_scope_format(s, "%0*llu", EVENTS_NUMBER_LEN, (unsigned long long)number);
}

/* (4): which of the ids are those of the append now; others may take them at any time. */
static enum hf_status own_ids(const struct sweep *w, struct hf_str large,
                              const struct hf_stored_event *events, size_t len, bool *own)
{
    struct hf_get gets[SWEEP_SOME];
    struct hf_get_many_result got;

    assert(len > 0 && len <= SWEEP_SOME);
    for (size_t i = 0; i < len; i++)
        gets[i] =
            (struct hf_get){.table = w->store->table,
                            .key =
                                sweep_key(w->s, hf__pattern_join(w->s, HF_STR("i."), events[i].id),
                                          HF_STR("i"))};
    TRY(hf_scope_built(w->s));
    TRY(hf_get_many(w->s, w->store->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len; i++)
        own[i] = hf_str_equal(hf_value_str(hf_item_get(got.items[i], HF_STR("l"))), large);
    return HF_OK;
}

/* Some events of t.COMMIT, each with what belongs to it. */
static enum hf_status remove_staged(struct sweep *w, struct hf_str large,
                                    const struct hf_query_result *found, bool *again)
{
    struct hf_stored_event events[SWEEP_SOME];
    bool own[SWEEP_SOME];
    struct hf_tx *tx;

    TRY(hf_tx_new(w->s, w->store->db, &tx));
    for (size_t i = 0; i < found->items_len; i++)
        TRY(hf__events_item_view(w->s, found->items[i], (struct hf_event_stream_key){.id = {0}}, 1,
                                 &events[i]));
    TRY(own_ids(w, large, events, found->items_len, own));
    for (size_t i = 0; i < found->items_len; i++) {
        struct hf_item item = found->items[i];

        TRY(hf__sweep_delete(w, tx,
                             sweep_key(w->s, hf_value_str(hf_item_get(item, HF_STR("pk"))),
                                       hf_value_str(hf_item_get(item, HF_STR("sk")))),
                             HF_STR("pk")));
        if (!own[i])
            events[i].id = events[i].position; /* then there is none to remove */
        TRY(hf__sweep_belongings(w, tx, &events[i], large));
    }
    return hf__sweep_commit(w, tx, again);
}

/* Is any commit of these events there? One that is moved meanwhile is seen by the second look. */
static enum hf_status is_visible(const struct sweep *w, const struct hf_query_result *found,
                                 bool *visible)
{
    struct sweep_commits commits = {.len = 0};

    *visible = false;
    for (size_t i = 0; i < found->items_len; i++) {
        struct hf_str position = hf_value_str(hf_item_get(found->items[i], HF_STR("p")));

        if (!is_position(position) || !hf__sweep_add_commit(&commits, position))
            return hf_scope_fail(w->s, HF_CORRUPT, "an item of %.*s is damaged",
                                 HF_FMT(hf_value_str(hf_item_get(found->items[i], HF_STR("pk")))));
    }
    for (int look = 0; look < 2 && !*visible; look++) {
        TRY(hf__sweep_read_commits(w, &commits));
        for (size_t i = 0; i < 2 * commits.len; i++)
            *visible = *visible || commits.items[i].ptr;
    }
    return HF_OK;
}

/* All of t.COMMIT from a number to another. With `visible` it ends when the append is visible, and
 * says so. */
static enum hf_status remove_range(struct sweep *w, struct hf_str large, struct hf_str from,
                                   struct hf_str to, bool *visible, uint64_t *count)
{
    struct hf_str pk = hf__pattern_join(w->s, HF_STR("t."), large);
    int attempt = 0;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(w->s);
        struct hf_query_result found;
        bool again;

        TRY(hf__sweep_oldest(w, pk, from, to, &found));
        if (!found.items_len && !found.last.ptr)
            return HF_OK;
        if (found.items_len) {
            if (visible)
                TRY(is_visible(w, &found, visible));
            if (visible && *visible)
                return HF_OK;
            TRY(remove_staged(w, large, &found, &again));
            if (again)
                TRY(hf__sweep_wait(w, &attempt));
            else
                *count += found.items_len;
        }
        hf_scope_rewind(w->s, mark);
    }
}

_Static_assert(SWEEP_COMMITS_MAX > HF_EVENTS_APPEND_MAX / EVENTS_COMMIT_MAX + 1,
               "there is room for the commits of a large append");

/* The commits of a range, and the hash of its last event. */
static enum hf_status commits_of(struct sweep *w, const struct events_step *step,
                                 struct sweep_commits *commits, uint8_t hash[EVENTS_HASH],
                                 size_t *hash_len)
{
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    *hash_len = 0;
    TRY(hf__events_large_pages(w->s, w->store, step, &pages));
    while ((status = hf_pages_next_item(w->s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_stored_event event;

        status =
            hf__events_item_view(w->s, item, (struct hf_event_stream_key){.id = {0}}, 1, &event);
        if (status == HF_OK && !hf__sweep_add_commit(commits, event.position))
            status = hf_scope_fail(w->s, HF_CORRUPT, "append %.*s has too many commits",
                                   HF_FMT(step->large));
        if (status != HF_OK)
            break;
        *hash_len = event.hash.len;
        if (event.hash.len)
            memcpy(hash, event.hash.ptr, EVENTS_HASH);
    }
    hf_pages_free(pages);
    return status;
}

/* It leaves the global order, and the head says so. */
static enum hf_status large_hide(struct sweep *w, const struct sweep_stream *stream,
                                 const struct events_step *step, bool *again)
{
    struct sweep_commits commits = {.len = 0};
    struct hf_update_item head;
    uint8_t hash[EVENTS_HASH];
    struct hf_tx *tx;
    size_t hash_len;

    TRY(commits_of(w, step, &commits, hash, &hash_len));
    head = hf__sweep_head(w, stream, step->first + step->count, hf_bytes_of(hash, hash_len),
                          step->large);
    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    if (commits.len) {
        TRY(hf__sweep_read_commits(w, &commits));
        TRY(hf__sweep_tx_commits(w, tx, &commits, NULL, 0, again));
        if (*again)
            return HF_OK;
    }
    return hf__sweep_commit(w, tx, again);
}

/* What stands for it in the stream, and with that the end (2). */
static enum hf_status remove_stubs(struct sweep *w, const struct sweep_stream *stream,
                                   const struct events_step *step, bool *again)
{
    char first[EVENTS_VERSION_LEN + 1], last[EVENTS_VERSION_LEN + 1];
    struct hf_update_item head = {.table = w->store->table,
                                  .key = sweep_key(w->s, stream->pk, HF_STR("h")),
                                  .update = HF_STR("REMOVE #u"),
                                  .condition = HF_STR("#u = :u"),
                                  .names = HF_ITEM(w->s, HF_S("#u", HF_STR("u"))),
                                  .values = HF_ITEM(w->s, HF_S(":u", step->large))};
    struct hf_tx *tx;

    hf__events_version_text(step->first, first);
    hf__events_version_text(step->first + step->count - 1, last);
    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    TRY(hf__sweep_delete(w, tx, sweep_key(w->s, stream->pk, hf_str_of(first, EVENTS_VERSION_LEN)),
                         hf_str_of(NULL, 0)));
    if (step->count > 1)
        TRY(hf__sweep_delete(w, tx,
                             sweep_key(w->s, stream->pk, hf_str_of(last, EVENTS_VERSION_LEN)),
                             hf_str_of(NULL, 0)));
    return hf__sweep_commit(w, tx, again);
}

enum hf_status hf__sweep_large(struct sweep *w, struct sweep_stream *stream,
                               const struct events_step *step, bool *again)
{
    assert(step->large.len && step->count > 0);
    assert(step->first + step->count <= stream->first); /* all of it may go */
    *again = false;
    if (!hf_str_equal(position_str(&stream->unfinished), step->large)) {
        TRY(large_hide(w, stream, step, again));
        if (*again)
            return HF_OK;
        memcpy(stream->unfinished.text, step->large.ptr, HF_POSITION_LEN);
    }
    TRY(remove_range(w, step->large, number_text(w->s, step->number),
                     number_text(w->s, step->number + step->count - 1), NULL, &w->swept.events));
    return remove_stubs(w, stream, step, again);
}

/* ---- unfinished appends (3) ----------------------------------------------------------------- */

enum hf_status hf__events_give_up(struct hf_scope *s, struct hf_events *store, struct hf_str large)
{
    struct sweep w = {.s = s, .store = store};
    struct hf_put_item put = {.table = store->table,
                              .item = HF_ITEM(s, HF_S("pk", HF_STR("y")), HF_S("sk", large),
                                              HF_N("t", hf__env_wall_ms(&store->env)))};
    struct hf_tx *tx;
    int attempt = 0;
    bool there;

    if (!is_position(large))
        return hf_scope_fail(s, HF_CORRUPT, "event store %.*s: the append \"%.*s\" is damaged",
                             HF_FMT(store->table), HF_FMT(large));
    /* It may be visible, and its mark put once more by a request that was under way for long. */
    TRY(hf__events_is_there(s, store, large, &there));
    for (;;) {
        const struct hf_error *error;
        enum hf_status status;

        TRY(hf_tx_new(s, store->db, &tx));
        TRY(hf__sweep_delete(&w, tx, hf__events_begun_key(s, large), HF_STR("pk")));
        if (!there)
            TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put}));
        TRY(hf_scope_built(s));
        status = hf_tx_commit(s, tx, NULL);
        error = hf_scope_error(s);
        if (status == HF_TX_CANCELED && error->reasons_len &&
            hf_str_equal(error->reasons[0].code, HF_STR("ConditionalCheckFailed")))
            return HF_OK; /* it has become visible, or others gave it up */
        if (status != HF_TX_CANCELED && status != HF_TX_CONFLICT)
            return status;
        TRY(hf__sweep_wait(&w, &attempt));
    }
}

static enum hf_status given_up_remove(struct sweep *w, struct hf_str large, int64_t since_ms)
{
    struct hf_delete_item del = {.table = w->store->table,
                                 .key = sweep_key(w->s, HF_STR("y"), large)};
    bool visible = false; /* marks may come back with requests that were under way for long */

    TRY(remove_range(w, large, HF_STR("0"), HF_STR("A"), &visible, &w->swept.aside));
    if (!visible && since_ms >= w->before_ms)
        return HF_OK;
    TRY(hf_scope_built(w->s));
    return hf_delete_item(w->s, w->store->db, &del, NULL);
}

/* Each item of the partition "x" or "y". */
static enum hf_status each_unfinished(struct sweep *w, const char *pk)
{
    struct hf_query query = {.table = w->store->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(w->s, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(w->s, HF_S(":pk", hf_str_from(pk))),
                             .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(w->s));
    TRY(hf_pages_query(w->s, w->store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(w->s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(w->s);
        struct hf_str large = hf_value_str(hf_item_get(item, HF_STR("sk")));
        int64_t since_ms = INT64_MAX; /* its position is some time ahead */

        (void)hf_value_i64(hf_item_get(item, pk[0] == 'y' ? HF_STR("t") : HF_STR("at")), &since_ms);
        if (pk[0] == 'y')
            status = given_up_remove(w, large, since_ms);
        else if (since_ms < w->before_ms)
            status = hf__events_give_up(w->s, w->store, large);
        if (status != HF_OK)
            break;
        hf_scope_rewind(w->s, mark);
    }
    hf_pages_free(pages);
    return status;
}

enum hf_status hf__sweep_unfinished(struct sweep *w)
{
    TRY(each_unfinished(w, "x"));
    return each_unfinished(w, "y");
}
