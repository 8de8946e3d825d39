/*
 * events/events_sweep.c: removing what nobody reads any more.
 *
 * A Scan finds the heads. Of a stream that was truncated, limited or deleted the oldest events go,
 * some at a time, in one transaction with all that belongs to them: the event, its copy in the
 * order of all (the commit goes, or is put back without it), its id, what it has in r.*; and the
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
 *  (3) What an append of several transactions has left aside is made harmless first: x/COMMIT,
 *      without which it cannot become visible, turns into y/COMMIT in one transaction. So does who
 *      finds one of its ids in his way (events_ids.c). Then what
 *      lies in t.COMMIT goes. y/COMMIT stays for as long again, as who was taken for dead may still
 *      put something there.
 *  (4) An id goes only if it is that of the append that is removed: another may have taken it.
 *  (5) What goes is hidden when it goes: the head is on the condition that it still says what hides
 *      it. A limit can be taken back; when it was, the head is read again.
 *
 * events_sweep_blobs.c has the blobs.
 */
#include "events/events.h"

#include <holdfast/batch.h>

enum {
    DAY_S = 24 * 60 * 60,
    SOME = 24, /* events of one transaction */
    EACH = 4,  /* actions of one event: it, its id, its cause, its correlation */
    COMMITS_MAX = 25,
    SOME_BYTES = 1500 * 1000,
    ATTEMPTS = 20,
    DELAY_MS = 20
};

struct sweep {
    struct hf_scope *s;
    struct hf_events *store;
    int64_t before_ms; /* what is younger stays */
    struct hf_events_swept swept;
};

/* A stream that is being swept. */
struct stream {
    struct hf_str pk;
    struct events_head head;           /* as it was seen */
    uint64_t first;                    /* that is read */
    struct events_position unfinished; /* COMMIT of a large append whose removal was begun */
};

/* ---- transactions --------------------------------------------------------------------------- */

static bool is_old(const struct sweep *w, struct hf_str position)
{
    int64_t ms;

    return hf__events_position_read(position, &ms, NULL, NULL) && ms < w->before_ms;
}

static struct hf_item key_of(struct hf_scope *s, struct hf_str pk, struct hf_str sk)
{
    return HF_ITEM(s, HF_S("pk", pk), HF_S("sk", sk));
}

/* Remove an item, on the condition that it has that attribute (absent: on none). */
static enum hf_status tx_delete(const struct sweep *w, struct hf_tx *tx, struct hf_item key,
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

/* Others may be at the same: *again says that it is to be looked at anew. */
static enum hf_status commit(const struct sweep *w, struct hf_tx *tx, bool *again)
{
    enum hf_status status;

    *again = false;
    TRY(hf_scope_built(w->s));
    status = hf_tx_commit(w->s, tx, NULL);
    *again = status == HF_TX_CANCELED || status == HF_TX_CONFLICT;
    return *again ? HF_OK : status;
}

static enum hf_status wait(const struct sweep *w, int *attempt)
{
    if (++*attempt == ATTEMPTS)
        return hf_scope_fail(
            w->s, HF_IN_USE,
            "the sweep was refused %d times by what others did; or something is missing, "
            "which hf_events_verify() tells",
            ATTEMPTS);
    return hf_scope_sleep_ms(w->s, hf__pattern_jitter_ms(&w->store->env, DELAY_MS));
}

/* The item of an id; `large`: if it is still that of this append (4). */
static enum hf_status tx_delete_id(const struct sweep *w, struct hf_tx *tx, struct hf_str id,
                                   struct hf_str large)
{
    struct hf_scope *s = w->s;
    struct hf_delete_item *del = hf_scope_alloc(s, sizeof(*del));

    if (!del)
        return hf_scope_built(s);
    *del = (struct hf_delete_item){.table = w->store->table,
                                   .key = key_of(s, hf__pattern_join(s, HF_STR("i."), id),
                                                 HF_STR("i"))};
    if (large.ptr) {
        del->condition = HF_STR("#l = :l");
        del->names = HF_ITEM(s, HF_S("#l", HF_STR("l")));
        del->values = HF_ITEM(s, HF_S(":l", large));
    }
    return hf_tx_add(s, tx, &(struct hf_transact_write){.del = del});
}

/* Its id, unless that is the position, and what it has in r.*. */
static enum hf_status tx_belongings(const struct sweep *w, struct hf_tx *tx,
                                    const struct hf_stored_event *event, struct hf_str large)
{
    struct hf_scope *s = w->s;

    if (!hf_str_equal(event->id, event->position))
        TRY(tx_delete_id(w, tx, event->id, large));
    if (event->causation.len)
        TRY(tx_delete(w, tx,
                      key_of(s, hf__pattern_join(s, HF_STR("r."), event->causation),
                             event->position),
                      hf_str_of(NULL, 0)));
    if (hf_str_equal(event->correlation, event->causation))
        return HF_OK;
    return tx_delete(w, tx,
                     key_of(s, hf__pattern_join(s, HF_STR("r."), event->correlation),
                            event->position),
                     hf_str_of(NULL, 0));
}

/* ---- commits -------------------------------------------------------------------------------- */

/* Commits of events that are to go, and where they are now. */
struct commits {
    struct events_position list[COMMITS_MAX];
    size_t len;
    const struct hf_item *items; /* first those of a.*, then those of z.* */
};

static bool add_commit(struct commits *commits, struct hf_str position)
{
    struct events_position base = {{0}};

    memcpy(base.text, position.ptr, HF_POSITION_LEN);
    hf__events_position_number(&base, 0);
    if (commits->len && memcmp(&base, &commits->list[commits->len - 1], sizeof(base)) == 0)
        return true;
    if (commits->len == COMMITS_MAX)
        return false;
    commits->list[commits->len++] = base;
    return true;
}

static enum hf_status read_commits(const struct sweep *w, struct commits *commits)
{
    struct hf_get gets[2 * COMMITS_MAX];
    struct hf_get_many_result got;

    for (size_t i = 0; i < 2 * commits->len; i++) {
        struct hf_str position = position_str(&commits->list[i % commits->len]);
        char kind = i < commits->len ? 'a' : 'z';

        gets[i] = (struct hf_get){.table = w->store->table,
                                  .key = key_of(w->s, hf__events_part_of(w->s, kind, position),
                                                position)};
    }
    TRY(hf_scope_built(w->s));
    TRY(hf_get_many(w->s, w->store->db, gets, 2 * commits->len,
                    HF_OPTIONS(hf_many_options, .consistent = true), &got));
    commits->items = got.items;
    return HF_OK;
}

/* Is it one of the events that go? It is named by the end of its position. */
static bool goes(struct hf_str name, struct hf_str base, const struct hf_stored_event *events,
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
static struct hf_item without(const struct sweep *w, struct hf_item item, struct hf_str base,
                              const struct hf_stored_event *events, size_t len)
{
    size_t count = hf_item_count(item), kept = 0, left = 0;
    struct hf_attr *attrs = hf_scope_alloc(w->s, (count + 1) * sizeof(*attrs));
    struct hf_item_walk walk = {0};

    while (attrs && hf_item_next(item, &walk)) {
        bool event = walk.name.len == 3 && walk.name.ptr[0] == 'x';

        if (event && goes(walk.name, base, events, len))
            continue;
        left += event;
        attrs[kept++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    }
    return left ? hf_item_make(w->s, attrs, kept) : (struct hf_item){NULL, 0};
}

/* (1): it goes, or is put back without those events, if it still has what it had. */
static enum hf_status tx_commit_item(const struct sweep *w, struct hf_tx *tx, struct hf_item item,
                                     const struct hf_stored_event *events, size_t len)
{
    struct hf_str base = hf_value_str(hf_item_get(item, HF_STR("sk")));
    struct hf_str has = hf__events_commit_mark(item);
    struct hf_item rest = without(w, item, base, events, len);
    struct hf_put_item *put;

    TRY(hf_scope_built(w->s));
    if (!rest.ptr)
        return tx_delete(w, tx, key_of(w->s, hf_value_str(hf_item_get(item, HF_STR("pk"))), base),
                         has);
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
static enum hf_status tx_commits(const struct sweep *w, struct hf_tx *tx,
                                 const struct commits *commits,
                                 const struct hf_stored_event *events, size_t len, bool *again)
{
    *again = false;
    for (size_t i = 0; i < commits->len; i++)
        *again = *again || (!commits->items[i].ptr && !commits->items[i + commits->len].ptr);
    for (size_t i = 0; i < 2 * commits->len && !*again; i++)
        if (commits->items[i].ptr)
            TRY(tx_commit_item(w, tx, commits->items[i], events, len));
    return HF_OK;
}

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

/* What is there begins behind that event. `large`: and its append is not wholly gone yet. */
static struct hf_update_item head_update(const struct sweep *w, const struct stream *stream,
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
    return (struct hf_update_item){
        .table = w->store->table,
        .key = key_of(s, stream->pk, HF_STR("h")),
        .update = hf_scope_format(s, "SET #w = :w%s%s", hash.len ? ", #g = :g" : "",
                                  large.ptr ? ", #u = :u" : ""),
        .condition =
            hf_scope_format(s, "(attribute_not_exists(#w) OR #w < :w) AND %.*s", HF_FMT(hidden)),
        .names = hf_item_make(s, names, names_len),
        .values = hf_item_make(s, values, values_len)};
}

/* ---- events --------------------------------------------------------------------------------- */

/* The oldest items of a partition. */
static enum hf_status oldest(const struct sweep *w, struct hf_str pk, struct hf_str from,
                             struct hf_str to, struct hf_query_result *result)
{
    struct hf_query query = {.table = w->store->table,
                             .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
                             .names = HF_ITEM(w->s, HF_S("#pk", HF_STR("pk")),
                                              HF_S("#sk", HF_STR("sk"))),
                             .values = HF_ITEM(w->s, HF_S(":from", from), HF_S(":pk", pk),
                                               HF_S(":to", to)),
                             .limit = SOME,
                             .consistent = HF_YES};

    TRY(hf_scope_built(w->s));
    return hf_query(w->s, w->store->db, &query, result);
}

/* Those at the beginning of the list that go now. *large: the first is one. */
static enum hf_status choose(const struct sweep *w, const struct stream *stream,
                             const struct hf_query_result *found, struct hf_stored_event *events,
                             size_t *len, struct commits *commits, struct events_step *large)
{
    size_t bytes = 0;

    *len = 0;
    *large = (struct events_step){.version = 0};
    for (size_t i = 0; i < found->items_len; i++) {
        struct events_step step;
        struct hf_stored_event *event = &events[*len];

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
        TRY(hf__events_item_view(w->s, found->items[i], (struct hf_stream_key){.id = {0}},
                                 step.version, event));
        if (!add_commit(commits, event->position))
            return HF_OK;
        ++*len;
    }
    return HF_OK;
}

static enum hf_status remove_events(struct sweep *w, const struct stream *stream,
                                    const struct hf_stored_event *events, size_t len,
                                    struct commits *commits, bool *again)
{
    struct hf_update_item head = head_update(w, stream, events[len - 1].version + 1,
                                             events[len - 1].hash, hf_str_of(NULL, 0));
    struct hf_tx *tx;

    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(read_commits(w, commits));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    TRY(tx_commits(w, tx, commits, events, len, again));
    if (*again)
        return HF_OK;
    for (size_t i = 0; i < len; i++) {
        char sk[EVENTS_VERSION_LEN + 1];

        hf__events_version_text(events[i].version, sk);
        TRY(tx_delete(w, tx, key_of(w->s, stream->pk, hf_str_of(sk, EVENTS_VERSION_LEN)),
                      HF_STR("pk")));
        TRY(tx_belongings(w, tx, &events[i], hf_str_of(NULL, 0)));
    }
    TRY(commit(w, tx, again));
    if (!*again)
        w->swept.events += len;
    return HF_OK;
}

/* ---- large appends -------------------------------------------------------------------------- */

static struct hf_str number_text(struct hf_scope *s, uint64_t number)
{
    return hf_scope_format(s, "%0*llu", EVENTS_NUMBER_LEN, (unsigned long long)number);
}

/* (4): which of the ids are those of the append now; others may take them at any time. */
static enum hf_status own_ids(const struct sweep *w, struct hf_str large,
                              const struct hf_stored_event *events, size_t len, bool *own)
{
    struct hf_get gets[SOME];
    struct hf_get_many_result got;

    for (size_t i = 0; i < len; i++)
        gets[i] =
            (struct hf_get){.table = w->store->table,
                            .key = key_of(w->s, hf__pattern_join(w->s, HF_STR("i."), events[i].id),
                                          HF_STR("i"))};
    TRY(hf_scope_built(w->s));
    TRY(hf_get_many(w->s, w->store->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len; i++)
        own[i] = hf_str_equal(hf_value_str(hf_item_get(got.items[i], HF_STR("l"))), large);
    return HF_OK;
}

/* Some events of t.COMMIT, each with what belongs to it. */
static enum hf_status remove_aside(struct sweep *w, struct hf_str large,
                                   const struct hf_query_result *found, bool *again)
{
    struct hf_stored_event events[SOME];
    bool own[SOME];
    struct hf_tx *tx;

    TRY(hf_tx_new(w->s, w->store->db, &tx));
    for (size_t i = 0; i < found->items_len; i++)
        TRY(hf__events_item_view(w->s, found->items[i], (struct hf_stream_key){.id = {0}}, 1,
                                 &events[i]));
    TRY(own_ids(w, large, events, found->items_len, own));
    for (size_t i = 0; i < found->items_len; i++) {
        struct hf_item item = found->items[i];

        TRY(tx_delete(w, tx,
                      key_of(w->s, hf_value_str(hf_item_get(item, HF_STR("pk"))),
                             hf_value_str(hf_item_get(item, HF_STR("sk")))),
                      HF_STR("pk")));
        if (!own[i])
            events[i].id = events[i].position; /* then there is none to remove */
        TRY(tx_belongings(w, tx, &events[i], large));
    }
    return commit(w, tx, again);
}

/* Is any commit of these events there? One that is moved meanwhile is seen by the second look. */
static enum hf_status is_visible(const struct sweep *w, const struct hf_query_result *found,
                                 bool *visible)
{
    struct commits commits = {.len = 0};

    *visible = false;
    for (size_t i = 0; i < found->items_len; i++) {
        struct hf_str position = hf_value_str(hf_item_get(found->items[i], HF_STR("p")));

        if (position.len != HF_POSITION_LEN || !add_commit(&commits, position))
            return hf_scope_fail(w->s, HF_CORRUPT, "an item of %.*s is damaged",
                                 HF_FMT(hf_value_str(hf_item_get(found->items[i], HF_STR("pk")))));
    }
    for (int look = 0; look < 2 && !*visible; look++) {
        TRY(read_commits(w, &commits));
        for (size_t i = 0; i < 2 * commits.len; i++)
            *visible = *visible || commits.items[i].ptr;
    }
    return HF_OK;
}

/* All of t.COMMIT from a number to another. With `visible` it ends when it turns out to be, and
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

        TRY(oldest(w, pk, from, to, &found));
        if (!found.items_len && !found.last.ptr)
            return HF_OK;
        if (found.items_len) {
            if (visible)
                TRY(is_visible(w, &found, visible));
            if (visible && *visible)
                return HF_OK;
            TRY(remove_aside(w, large, &found, &again));
            if (again)
                TRY(wait(w, &attempt));
            else
                *count += found.items_len;
        }
        hf_scope_rewind(w->s, mark);
    }
}

_Static_assert(COMMITS_MAX > HF_EVENTS_APPEND_MAX / EVENTS_COMMIT_MAX + 1,
               "there is room for the commits of a large append");

/* The commits of a range, and the hash of its last event. */
static enum hf_status commits_of(struct sweep *w, const struct events_step *step,
                                 struct commits *commits, uint8_t hash[EVENTS_HASH],
                                 size_t *hash_len)
{
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    *hash_len = 0;
    TRY(hf__events_large_pages(w->s, w->store, step, &pages));
    while ((status = hf_pages_next_item(w->s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_stored_event event;

        status = hf__events_item_view(w->s, item, (struct hf_stream_key){.id = {0}}, 1, &event);
        if (status == HF_OK && !add_commit(commits, event.position))
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

/* It leaves the order of all, and the head says so. */
static enum hf_status hide(struct sweep *w, const struct stream *stream,
                           const struct events_step *step, bool *again)
{
    struct commits commits = {.len = 0};
    struct hf_update_item head;
    uint8_t hash[EVENTS_HASH];
    struct hf_tx *tx;
    size_t hash_len;

    TRY(commits_of(w, step, &commits, hash, &hash_len));
    head =
        head_update(w, stream, step->first + step->count, hf_bytes_of(hash, hash_len), step->large);
    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    if (commits.len) {
        TRY(read_commits(w, &commits));
        TRY(tx_commits(w, tx, &commits, NULL, 0, again));
        if (*again)
            return HF_OK;
    }
    return commit(w, tx, again);
}

/* What stands for it in the stream, and with that the end (2). */
static enum hf_status remove_stubs(struct sweep *w, const struct stream *stream,
                                   const struct events_step *step, bool *again)
{
    char first[EVENTS_VERSION_LEN + 1], last[EVENTS_VERSION_LEN + 1];
    struct hf_update_item head = {.table = w->store->table,
                                  .key = key_of(w->s, stream->pk, HF_STR("h")),
                                  .update = HF_STR("REMOVE #u"),
                                  .condition = HF_STR("#u = :u"),
                                  .names = HF_ITEM(w->s, HF_S("#u", HF_STR("u"))),
                                  .values = HF_ITEM(w->s, HF_S(":u", step->large))};
    struct hf_tx *tx;

    hf__events_version_text(step->first, first);
    hf__events_version_text(step->first + step->count - 1, last);
    TRY(hf_tx_new(w->s, w->store->db, &tx));
    TRY(hf_tx_add(w->s, tx, &(struct hf_transact_write){.update = &head}));
    TRY(tx_delete(w, tx, key_of(w->s, stream->pk, hf_str_of(first, EVENTS_VERSION_LEN)),
                  hf_str_of(NULL, 0)));
    if (step->count > 1)
        TRY(tx_delete(w, tx, key_of(w->s, stream->pk, hf_str_of(last, EVENTS_VERSION_LEN)),
                      hf_str_of(NULL, 0)));
    return commit(w, tx, again);
}

/* (2) */
static enum hf_status remove_large(struct sweep *w, struct stream *stream,
                                   const struct events_step *step, bool *again)
{
    *again = false;
    if (!hf_str_equal(position_str(&stream->unfinished), step->large)) {
        TRY(hide(w, stream, step, again));
        if (*again)
            return HF_OK;
        memcpy(stream->unfinished.text, step->large.ptr, HF_POSITION_LEN);
    }
    TRY(remove_range(w, step->large, number_text(w->s, step->number),
                     number_text(w->s, step->number + step->count - 1), NULL, &w->swept.events));
    return remove_stubs(w, stream, step, again);
}

/* ---- streams -------------------------------------------------------------------------------- */

static enum hf_status sweep_some(struct sweep *w, struct stream *stream, bool *more, bool *again)
{
    struct hf_stored_event events[SOME];
    struct commits commits = {.len = 0};
    struct hf_query_result found;
    struct events_step large;
    size_t len;

    *more = *again = false;
    TRY(oldest(w, stream->pk, HF_STR("0"), HF_STR("A"), &found));
    TRY(choose(w, stream, &found, events, &len, &commits, &large));
    *more = len || large.version;
    if (large.version)
        return remove_large(w, stream, &large, again);
    return len ? remove_events(w, stream, events, len, &commits, again) : HF_OK;
}

/* What the item of the head says. */
static enum hf_status view(const struct sweep *w, struct stream *stream, struct hf_item item,
                           struct events_swept *swept)
{
    TRY(hf__events_head_view(w->s, item, &stream->head));
    TRY(hf__events_swept_view(w->s, item, swept));
    stream->unfinished = (struct events_position){{0}};
    if (swept->unfinished.len == HF_POSITION_LEN)
        memcpy(stream->unfinished.text, swept->unfinished.ptr, HF_POSITION_LEN);
    stream->first = stream->head.version + 1;
    if (stream->head.state == EVENTS_DELETED)
        return HF_OK;
    return hf__events_first_readable(w->s, w->store, stream->pk, &stream->head, &stream->first);
}

/* (5) */
static enum hf_status look_again(const struct sweep *w, struct stream *stream)
{
    struct events_swept swept;
    struct hf_item item;

    TRY(hf__pattern_read(w->s, w->store->db, w->store->table, key_of(w->s, stream->pk, HF_STR("h")),
                         &item));
    return view(w, stream, item, &swept);
}

static enum hf_status sweep_stream(struct sweep *w, struct stream *stream)
{
    bool more = true, again;
    int attempt = 0;

    while (more) {
        struct hf_scope_mark mark = hf_scope_mark(w->s);

        TRY(sweep_some(w, stream, &more, &again));
        if (again) {
            TRY(wait(w, &attempt));
            TRY(look_again(w, stream));
        } else {
            attempt = 0;
        }
        hf_scope_rewind(w->s, mark);
    }
    return HF_OK;
}

/* A deleted stream has no use for its snapshot. */
static enum hf_status remove_snapshot(const struct sweep *w, struct hf_stream_key stream)
{
    struct hf_delete_item del = {.table = w->store->table};
    struct hf_str pk;

    TRY(hf__events_stream_pk(w->s, 'n', stream, &pk));
    del.key = key_of(w->s, pk, HF_STR("n"));
    TRY(hf_scope_built(w->s));
    return hf_delete_item(w->s, w->store->db, &del, NULL);
}

static enum hf_status sweep_head(struct hf_scope *s, struct hf_events *store,
                                 struct hf_stream_key key, struct hf_str pk,
                                 const struct events_head *head, struct hf_item item, void *user)
{
    struct sweep *w = user;
    struct stream stream = {.pk = pk};
    struct events_swept swept;

    (void)s;
    (void)store;
    TRY(view(w, &stream, item, &swept));
    if (stream.first <= swept.first && !swept.unfinished.ptr)
        return HF_OK;
    if (head->state == EVENTS_DELETED)
        TRY(remove_snapshot(w, key));
    return sweep_stream(w, &stream);
}

/* ---- what was left aside (3) ---------------------------------------------------------------- */

enum hf_status hf__events_give_up(struct hf_scope *s, struct hf_events *store, struct hf_str large)
{
    struct sweep w = {.s = s, .store = store};
    struct hf_put_item put = {.table = store->table,
                              .item = HF_ITEM(s, HF_S("pk", HF_STR("y")), HF_S("sk", large),
                                              HF_N("t", env_wall_ms(&store->env)))};
    struct hf_tx *tx;
    int attempt = 0;
    bool there;

    /* It may be visible, and its mark put once more by a request that was under way for long. */
    TRY(hf__events_is_there(s, store, large, &there));
    for (;;) {
        const struct hf_error *error;
        enum hf_status status;

        TRY(hf_tx_new(s, store->db, &tx));
        TRY(tx_delete(&w, tx, hf__events_begun_key(s, large), HF_STR("pk")));
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
        TRY(wait(&w, &attempt));
    }
}

static enum hf_status clean_up(struct sweep *w, struct hf_str large, int64_t since_ms)
{
    struct hf_delete_item del = {.table = w->store->table, .key = key_of(w->s, HF_STR("y"), large)};
    bool visible = false; /* marks may come back with requests that were under way for long */

    TRY(remove_range(w, large, HF_STR("0"), HF_STR("A"), &visible, &w->swept.aside));
    if (!visible && since_ms >= w->before_ms)
        return HF_OK;
    TRY(hf_scope_built(w->s));
    return hf_delete_item(w->s, w->store->db, &del, NULL);
}

/* Each item of the partition "x" or "y". */
static enum hf_status each_aside(struct sweep *w, const char *pk)
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
            status = clean_up(w, large, since_ms);
        else if (since_ms < w->before_ms)
            status = hf__events_give_up(w->s, w->store, large);
        if (status != HF_OK)
            break;
        hf_scope_rewind(w->s, mark);
    }
    hf_pages_free(pages);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------ */

enum hf_status hf_events_sweep(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                               struct hf_events_swept *swept)
{
    struct sweep w = {.s = s, .store = store};
    enum hf_status status;

    if (!older_s)
        older_s = DAY_S;
    w.before_ms = env_wall_ms(&store->env) - (int64_t)older_s * 1000;
    status = hf__events_each_head(s, store, sweep_head, &w);
    if (status == HF_OK)
        status = each_aside(&w, "x");
    if (status == HF_OK)
        status = each_aside(&w, "y");
    if (status == HF_OK)
        status = hf__events_sweep_blobs(s, store, older_s, &w.swept.blobs);
    if (swept)
        *swept = w.swept;
    return status;
}
