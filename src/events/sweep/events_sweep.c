/*
 * events/sweep/events_sweep.c: removing what nobody reads any more.
 *
 * A Scan finds the heads. Of a stream that was truncated, limited or deleted the oldest events go,
 * some at a time, in one transaction with all that belongs to them: the event, its copy in the
 * global order (the commit goes, or is put back without it), its id, what it has in r.*; and the
 * head notes up to where (`w`) and the hash of the last one that went (`g`), from which
 * hf_events_verify() goes on.
 *
 *  (1) An event is there with all that belongs to it, or nothing of it is. Each transaction is on
 *      the condition that its events are there, and the commits where they were seen: what another
 *      sweep or an archive did meanwhile is looked at again.
 *  (2) The range of a large append goes as a whole, when all of it may go. First its commits
 *      go, and the head says that it went (`w`, `g`) and that t.COMMIT is still there (`u`); then
 *      the events, each with its id and r.*; in the end what stands for it in the stream, with
 *      `u`. So whoever comes after a crash finds where to go on.
 *  (3) An unfinished large append is abandoned first: x/COMMIT, without which it cannot become
 *      visible, is replaced by y/COMMIT in one transaction. An append that needs one of its ids
 *      does the same (events_append_ids.c). Then the events in t.COMMIT go. y/COMMIT stays for as
 *      long again, as a writer that was taken for dead may still put something there.
 *  (4) An id goes only if it is that of the append that is removed: another may have taken it.
 *  (5) What goes is hidden when it goes: the head is on the condition that it still says what hides
 *      it. A limit can be taken back; when it was, the head is read again.
 *
 * events_sweep_tx.c has the transactions, events_sweep_large.c has (2) and (3), and
 * events_sweep_blobs.c the blobs.
 */
#include "events/sweep/sweep.h"

enum {
    DAY_S = 24 * 60 * 60,
    EACH = 4, /* actions of one event: it, its id, its cause, its correlation */
    SOME_BYTES = 1500 * 1000
};

/* ---- the head ------------------------------------------------------------------------------- */

/* (5): versions before `next` are hidden by the end of the stream, by truncation, which never goes
 * back, or by limits, which can be changed. Values and names that are not used are no part of it.
 */
static struct hf_str hidden_by(const struct events_head *head, uint64_t next, struct hf_attr *names,
                               size_t *names_len, struct hf_attr *values, size_t *values_len)
{
    if (head->state == EVENTS_DELETED) {
        names[(*names_len)++] = (struct hf_attr)HF_S("#x", HF_STR("x"));
        values[(*values_len)++] = (struct hf_attr)HF_S(":x", HF_STR("deleted"));
        return HF_STR("#x = :x");
    }
    if (head->truncated >= next) {
        names[(*names_len)++] = (struct hf_attr)HF_S("#t", HF_STR("t"));
        return HF_STR("#t >= :w");
    }
    assert(head->max_age_s || head->max_count);
    if (head->max_age_s) {
        names[(*names_len)++] = (struct hf_attr)HF_S("#a", HF_STR("a"));
        values[(*values_len)++] = (struct hf_attr)HF_N(":a", head->max_age_s);
    }
    if (head->max_count) {
        names[(*names_len)++] = (struct hf_attr)HF_S("#n", HF_STR("n"));
        values[(*values_len)++] = (struct hf_attr)HF_N(":n", head->max_count);
    }
    return head->max_age_s && head->max_count ? HF_STR("#a = :a AND #n = :n")
           : head->max_age_s                  ? HF_STR("#a = :a")
                                              : HF_STR("#n = :n");
}

struct hf_update_item hf__sweep_head(const struct sweep *w, const struct sweep_stream *stream,
                                     uint64_t next, struct hf_bytes hash, struct hf_str large)
{
    struct hf_scope *s = w->s;
    struct hf_attr names[5] = {HF_S("#w", HF_STR("w"))}, values[5] = {HF_N(":w", next)};
    size_t names_len = 1, values_len = 1;
    struct hf_str hidden = hidden_by(&stream->head, next, names, &names_len, values, &values_len);

    if (hash.len) {
        names[names_len++] = (struct hf_attr)HF_S("#g", HF_STR("g"));
        values[values_len++] = (struct hf_attr)HF_B(":g", hash);
    }
    if (large.ptr) {
        names[names_len++] = (struct hf_attr)HF_S("#u", HF_STR("u"));
        values[values_len++] = (struct hf_attr)HF_S(":u", large);
    }
    assert(names_len <= ARRAY_LEN(names) && values_len <= ARRAY_LEN(values));
    return (struct hf_update_item){
        .table = w->store->table,
        .key = sweep_key(s, stream->pk, HF_STR("h")),
        .update = hf_scope_format(s, "SET #w = :w%s%s", hash.len ? ", #g = :g" : "",
                                  large.ptr ? ", #u = :u" : ""),
        .condition =
            hf_scope_format(s, "(attribute_not_exists(#w) OR #w < :w) AND %.*s", HF_FMT(hidden)),
        .names = hf_item_make(s, names, names_len),
        .values = hf_item_make(s, values, values_len)};
}

/* ---- events --------------------------------------------------------------------------------- */

static bool is_old(const struct sweep *w, struct hf_str position)
{
    int64_t ms;

    return hf__events_position_read(position, &ms, NULL, NULL) && ms < w->before_ms;
}

enum hf_status hf__sweep_oldest(const struct sweep *w, struct hf_str pk, struct hf_str from,
                                struct hf_str to, struct hf_query_result *result)
{
    struct hf_query query = {.table = w->store->table,
                             .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
                             .names = HF_ITEM(w->s, HF_S("#pk", HF_STR("pk")),
                                              HF_S("#sk", HF_STR("sk"))),
                             .values = HF_ITEM(w->s, HF_S(":from", from), HF_S(":pk", pk),
                                               HF_S(":to", to)),
                             .limit = SWEEP_SOME,
                             .consistent = HF_YES};

    TRY(hf_scope_built(w->s));
    TRY(hf_query(w->s, w->store->db, &query, result));
    if (result->items_len > SWEEP_SOME)
        return hf_scope_fail(w->s, HF_INTERNAL, "a page has %zu items, more than its limit",
                             result->items_len);
    return HF_OK;
}

/* Those at the beginning of the list that go now. *large: the first is one. */
static enum hf_status choose_events(const struct sweep *w, const struct sweep_stream *stream,
                                    const struct hf_query_result *found,
                                    struct hf_stored_event *events, size_t *len,
                                    struct sweep_commits *commits, struct events_step *large)
{
    size_t bytes = 0;

    *len = 0;
    *large = (struct events_step){.version = 0};
    for (size_t i = 0; i < found->items_len; i++) {
        struct events_step step;
        struct hf_stored_event *event = &events[*len];

        assert(*len <= i);
        TRY(hf__events_step_view(w->s, found->items[i], &step));
        if (step.first + step.count > stream->first ||
            !is_old(w, step.large.ptr ? step.large : step.position))
            return HF_OK;
        if (step.large.ptr) {
            if (!i)
                *large = step;
            return HF_OK;
        }
        bytes += hf_item_size(found->items[i]);
        if ((*len && bytes > SOME_BYTES) ||
            (*len + 1) * EACH + commits->len + 2 > HF_TX_ACTIONS_MAX) /* and its commit, the head */
            return HF_OK;
        TRY(hf__events_item_view(w->s, found->items[i], (struct hf_event_stream_key){.id = {0}},
                                 step.version, event));
        if (!hf__sweep_add_commit(commits, event->position))
            return HF_OK;
        ++*len;
    }
    return HF_OK;
}

static enum hf_status remove_events(struct sweep *w, const struct sweep_stream *stream,
                                    const struct hf_stored_event *events, size_t len,
                                    struct sweep_commits *commits, bool *again)
{
    struct hf_update_item head = hf__sweep_head(w, stream, events[len - 1].version + 1,
                                                events[len - 1].hash, hf_str_of(NULL, 0));
    struct hf_tx *tx;

    assert(len > 0 && len <= SWEEP_SOME && commits->len > 0 && commits->len <= len);
    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(hf__sweep_read_commits(w, commits));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    TRY(hf__sweep_tx_commits(w, tx, commits, events, len, again));
    if (*again)
        return HF_OK;
    for (size_t i = 0; i < len; i++) {
        char sk[EVENTS_VERSION_LEN + 1];

        hf__events_version_text(events[i].version, sk);
        TRY(hf__sweep_delete(w, tx, sweep_key(w->s, stream->pk, hf_str_of(sk, EVENTS_VERSION_LEN)),
                             HF_STR("pk")));
        TRY(hf__sweep_belongings(w, tx, &events[i], hf_str_of(NULL, 0)));
    }
    TRY(hf__sweep_commit(w, tx, again));
    if (!*again)
        w->swept.events += len;
    return HF_OK;
}

/* ---- streams -------------------------------------------------------------------------------- */

static enum hf_status sweep_some(struct sweep *w, struct sweep_stream *stream, bool *more,
                                 bool *again)
{
    struct hf_stored_event events[SWEEP_SOME];
    struct sweep_commits commits = {.len = 0};
    struct hf_query_result found;
    struct events_step large;
    size_t len;

    *more = *again = false;
    TRY(hf__sweep_oldest(w, stream->pk, HF_STR("0"), HF_STR("A"), &found));
    TRY(choose_events(w, stream, &found, events, &len, &commits, &large));
    *more = len || large.version;
    if (large.version)
        return hf__sweep_large(w, stream, &large, again);
    return len ? remove_events(w, stream, events, len, &commits, again) : HF_OK;
}

/* What the item of the head says. */
static enum hf_status head_view(const struct sweep *w, struct sweep_stream *stream,
                                struct hf_item item, struct events_swept *swept)
{
    TRY(hf__events_head_view(w->s, item, &stream->head));
    TRY(hf__events_swept_view(w->s, item, swept));
    stream->unfinished = (struct events_position){{0}};
    if (is_position(swept->unfinished))
        memcpy(stream->unfinished.text, swept->unfinished.ptr, HF_POSITION_LEN);
    stream->first = stream->head.version + 1;
    if (stream->head.state == EVENTS_DELETED)
        return HF_OK;
    return hf__events_first_readable(w->s, w->store, stream->pk, &stream->head, &stream->first);
}

/* (5) */
static enum hf_status look_again(const struct sweep *w, struct sweep_stream *stream)
{
    struct events_swept swept;
    struct hf_item item;

    TRY(hf__pattern_read(w->s, w->store->db, w->store->table,
                         sweep_key(w->s, stream->pk, HF_STR("h")), &item));
    return head_view(w, stream, item, &swept);
}

static enum hf_status sweep_stream(struct sweep *w, struct sweep_stream *stream)
{
    bool more = true, again;
    int attempt = 0;

    while (more) {
        struct hf_scope_mark mark = hf_scope_mark(w->s);

        TRY(sweep_some(w, stream, &more, &again));
        if (again) {
            TRY(hf__sweep_wait(w, &attempt));
            TRY(look_again(w, stream));
        } else {
            attempt = 0;
        }
        hf_scope_rewind(w->s, mark);
    }
    return HF_OK;
}

/* A deleted stream has no use for its snapshot. */
static enum hf_status remove_snapshot(const struct sweep *w, struct hf_event_stream_key stream)
{
    struct hf_delete_item del = {.table = w->store->table};
    struct hf_str pk;

    TRY(hf__events_stream_pk(w->s, 'n', stream, &pk));
    del.key = sweep_key(w->s, pk, HF_STR("n"));
    TRY(hf_scope_built(w->s));
    return hf_delete_item(w->s, w->store->db, &del, NULL);
}

static enum hf_status sweep_head(struct hf_scope *s, struct hf_events *store,
                                 const struct events_found *found, void *user)
{
    struct sweep *w = user;
    struct sweep_stream stream = {.pk = found->pk};
    struct events_swept swept;

    (void)s;
    (void)store;
    TRY(head_view(w, &stream, found->item, &swept));
    if (stream.first <= swept.first && !swept.unfinished.ptr)
        return HF_OK;
    if (found->head.state == EVENTS_DELETED)
        TRY(remove_snapshot(w, found->stream));
    return sweep_stream(w, &stream);
}

/* ---- all of it ------------------------------------------------------------------------------ */

enum hf_status hf_events_sweep(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                               struct hf_events_swept *swept)
{
    struct sweep w = {.s = s, .store = store};
    enum hf_status status;

    if (!older_s)
        older_s = DAY_S;
    w.before_ms = hf__env_wall_ms(&store->env) - (int64_t)older_s * 1000;
    status = hf__events_each_head(s, store, sweep_head, &w);
    if (status == HF_OK)
        status = hf__sweep_unfinished(&w);
    if (status == HF_OK)
        status = hf__events_sweep_blobs(s, store, older_s, &w.swept.blobs);
    if (swept)
        *swept = w.swept;
    return status;
}
