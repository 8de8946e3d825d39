/*
 * counter/sequence.c: numbers one after the other, from a counter whose value is the last number
 * that was taken.
 *
 * A block of numbers is one add, which is counted once (counter.c), so no two have the same. What
 * is in memory when a process ends is lost, unless the sequence is closed and nobody has taken
 * numbers since: then the counter goes back, in one conditional write.
 *
 * Without gaps it takes a transaction: its action moves the counter from the value that was read to
 * the next, on condition that it is still the one that was read, together with whatever uses the
 * number.
 *
 *  (1) A number that was handed out is never handed out again: a block whose add is doubtful is not
 *      used, and numbers go back only if the counter is where our block ends.
 *  (2) A transaction carries its attempt id, as its token and as a request id in the counter. So
 *      if its answer got lost it is sent again as it is, and is done once also where tokens are not
 *      known.
 *  (3) One thread at a time asks for a block. The others look again after a moment; no mutex is
 *      held during a call.
 *  (4) The action is pinned to the revision that was read, as values come back when numbers do:
 *      what was given up as too late stays so, should it arrive after all.
 */
#include "counter/counter.h"

enum { ACTIONS_MAX = 100, SENDS_MAX = 5, FIRST_DELAY_MS = 20, WAIT_MS = 1 };

struct hf_sequence {
    struct hf_counters *counters;
    struct hf_scope *names; /* the key lives here */
    struct hf_counter_key key;
    uint32_t block;
    int64_t last;
    pthread_mutex_t mutex; /* guards all below */
    int64_t next, end;     /* what is left of our block; none when next is above end */
    bool asking;           /* one thread gets the next block */
};

/* ---- open and close ------------------------------------------------------------------------- */

static void sequence_free(struct hf_sequence *q)
{
    const struct hf_env *env = &q->counters->env;

    pthread_mutex_destroy(&q->mutex);
    hf_scope_free(q->names);
    hf__env_free(env, q, sizeof(*q));
}

static struct hf_str text_keep(struct hf_scope *names, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(names, text) : text;
}

static enum hf_status options_check(struct hf_scope *s, struct hf_counters *c,
                                    struct hf_counter_key key, const struct hf_sequence_options *o)
{
    struct counter_at at;

    TRY(hf__counter_at(s, c, key, 0, &at));
    if (c->shards > 1 || c->plain)
        return hf_scope_fail(s, HF_INVALID, "sequence %.*s: its counters %s", HF_FMT(key.id),
                             c->plain ? "are plain" : "have shards");
    if (o->block > HF_SEQUENCE_BLOCK_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_SEQUENCE_BLOCK_MAX, o->block),
                                   "sequence %.*s: a block has %d numbers at most", HF_FMT(key.id),
                                   HF_SEQUENCE_BLOCK_MAX);
    return HF_OK;
}

enum hf_status hf_sequence_open(struct hf_scope *s, struct hf_counters *c,
                                struct hf_counter_key key,
                                const struct hf_sequence_options *options,
                                struct hf_sequence **sequence)
{
    struct hf_sequence_options o;
    struct hf_sequence *q;

    call_begins(s);
    *sequence = NULL;
    OPTIONS_COPY(&o, options);
    TRY(options_check(s, c, key, &o));
    q = hf__env_zalloc(&c->env, sizeof(*q));
    if (!q)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a sequence");
    q->counters = c;
    q->block = o.block ? o.block : BLOCK_DEFAULT;
    q->last = o.last ? o.last : INT64_MAX;
    q->next = 1;
    pthread_mutex_init(&q->mutex, NULL);
    q->names = hf_scope_new(&c->env);
    if (q->names)
        q->key = (struct hf_counter_key){.id = text_keep(q->names, key.id),
                                         .partition = text_keep(q->names, key.partition),
                                         .space = text_keep(q->names, key.space)};
    if (!q->names || hf_scope_built(q->names) != HF_OK) {
        sequence_free(q);
        return hf_scope_fail(s, HF_NOMEM, "no memory for a sequence");
    }
    *sequence = q;
    return HF_OK;
}

/* (1) */
static enum hf_status give_back(struct hf_scope *s, struct hf_sequence *q)
{
    struct counter_change change = {.by = q->next - 1 - q->end, .low = q->end, .high = q->end};
    struct counter_at at;
    enum hf_status status;
    int64_t out;
    bool again;

    assert(q->next <= q->end && "there are numbers to give back");
    TRY(hf__counter_at(s, q->counters, q->key, 0, &at));
    status = hf__counter_change(s, q->counters, &at, change, &out, &again);
    return status == HF_LIMIT ? hf_scope_ok(s) : status;
}

enum hf_status hf_sequence_close(struct hf_scope *s, struct hf_sequence *q)
{
    enum hf_status status = HF_OK;

    call_begins(s);
    if (!q)
        return HF_OK;
    if (s && q->next <= q->end)
        status = give_back(s, q);
    sequence_free(q);
    return status;
}

/* ---- numbers in blocks ---------------------------------------------------------------------- */

static enum hf_status fail_ended(struct hf_scope *s, const struct hf_sequence *q, int64_t value)
{
    return hf_scope_fail(s, HF_LIMIT, "sequence %.*s is at %lld and ends at %lld",
                         HF_FMT(q->key.id), (long long)value, (long long)q->last);
}

/* `most` numbers, or `least` at least when the end is near: from *first to *end. */
static enum hf_status block_take(struct hf_scope *s, struct hf_sequence *q, int64_t least,
                                 int64_t most, int64_t *first, int64_t *end)
{
    struct hf_scope_mark memory = hf_scope_mark(s);
    struct counter_at at;
    int64_t count = most;

    assert(least > 0 && least <= most);
    TRY(hf__counter_at(s, q->counters, q->key, 0, &at));
    for (;;) {
        struct counter_change change = {.by = count, .low = INT64_MIN};
        enum hf_status status;
        int64_t value = 0;
        bool again;

        if (__builtin_sub_overflow(q->last, count, &change.high))
            return fail_ended(s, q, q->last);
        status = hf__counter_change(s, q->counters, &at, change, &value, &again);
        if (status == HF_OK) {
            *first = value - count + 1;
            *end = value;
            assert(*first <= *end && *end - *first < most);
            hf_scope_rewind(s, memory);
            return HF_OK;
        }
        if (status != HF_LIMIT || hf_scope_error(s)->may_have_happened)
            return status;
        if (value >= q->last || q->last - value < least)
            return fail_ended(s, q, value);
        count = q->last - value < count ? q->last - value : count;
    }
}

enum hf_status hf_sequence_next(struct hf_scope *s, struct hf_sequence *q, int64_t *number)
{
    int64_t first = 1, end = 0;
    enum hf_status status;

    call_begins(s);
    *number = 0;
    pthread_mutex_lock(&q->mutex);
    while (q->next > q->end && q->asking) { /* (3) */
        pthread_mutex_unlock(&q->mutex);
        TRY(hf_scope_sleep_ms(s, WAIT_MS));
        pthread_mutex_lock(&q->mutex);
    }
    if (q->next <= q->end) {
        *number = q->next++;
        pthread_mutex_unlock(&q->mutex);
        return HF_OK;
    }
    q->asking = true;
    pthread_mutex_unlock(&q->mutex);
    status = block_take(s, q, 1, q->block, &first, &end);
    pthread_mutex_lock(&q->mutex);
    assert(q->asking && q->next > q->end && "(3)");
    q->asking = false;
    if (status == HF_OK) {
        *number = first;
        q->next = first + (first < end);
        q->end = first < end ? end : first - 1;
    }
    pthread_mutex_unlock(&q->mutex);
    return status;
}

enum hf_status hf_sequence_take(struct hf_scope *s, struct hf_sequence *q, uint32_t count,
                                int64_t *first)
{
    int64_t end;

    *first = 0;
    if (count == 0)
        return hf_scope_fail(s, HF_INVALID, "sequence %.*s: the count is 0", HF_FMT(q->key.id));
    return block_take(s, q, count, count, first, &end);
}

/* ---- numbers in transactions ---------------------------------------------------------------- */

/* The action, made under `id` when that is there; *gone is when marks were dropped last. */
static enum hf_status action_of(struct hf_scope *s, struct hf_sequence *q, uint32_t count,
                                struct hf_str id, int64_t *first, struct hf_update_item *update,
                                int64_t *gone)
{
    struct hf_counters *c = q->counters;
    struct counter_change change = {.by = count, .mark = {.id = id, .request = id.ptr != NULL}};
    struct counter_drops drops = {.len = 0};
    struct counter_seen seen;
    struct counter_at at;
    struct hf_item item;

    if (count == 0)
        return hf_scope_fail(s, HF_INVALID, "sequence %.*s: the count is 0", HF_FMT(q->key.id));
    TRY(hf__counter_at(s, c, q->key, 0, &at));
    TRY(hf__pattern_read(s, c->db, c->table, at.key, &item));
    TRY(hf__counter_see(s, &at, item, (struct counter_mark){0}, &seen));
    if (seen.value > q->last || (uint64_t)q->last - (uint64_t)seen.value < count)
        return fail_ended(s, q, seen.value);
    hf__counter_drops(s, c, item, &drops);
    change.low = change.high = seen.value;
    change.pinned = true; /* (4) */
    change.rev = seen.rev;
    change.drops = &drops;
    *update = hf__counter_change_request(s, c, &at, &change);
    *first = seen.value + 1;
    *gone = seen.gone;
    return hf_scope_built(s);
}

enum hf_status hf_sequence_take_tx(struct hf_scope *s, struct hf_sequence *q, uint32_t count,
                                   int64_t *first, struct hf_transact_write *action)
{
    struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));
    int64_t gone;

    *first = 0;
    memset(action, 0, sizeof(*action));
    TRY(hf_scope_built(s));
    TRY(action_of(s, q, count, hf_str_of(NULL, 0), first, update, &gone));
    action->update = update;
    return HF_OK;
}

static bool is_code(const struct hf_error *error, size_t at, const char *code)
{
    return at < error->reasons_len && hf_str_equal(error->reasons[at].code, hf_str_from(code));
}

/* Canceled for no other reason than other transactions. */
static bool only_conflicts(const struct hf_error *error)
{
    for (size_t i = 0; i < error->reasons_len; i++)
        if (!is_code(error, i, "None") && !is_code(error, i, "TransactionConflict"))
            return false;
    return true;
}

/* (2): send it until it is known what became of it, or for the last time. A conflict says nothing
 * of what was sent before. */
static enum hf_status tx_send(struct hf_scope *s, struct hf_db *db,
                              const struct hf_transact_write_items *request, bool *doubtful)
{
    uint32_t delay_ms = FIRST_DELAY_MS;
    enum hf_status status;

    *doubtful = false;
    for (int attempt = 1;; attempt++) {
        status = hf_transact_write_items(s, db, request, NULL);
        if (status == HF_OK ||
            (status == HF_TX_CANCELED && !(*doubtful && only_conflicts(hf_scope_error(s)))))
            return status;
        *doubtful = *doubtful || hf_scope_error(s)->may_have_happened;
        if (!*doubtful || attempt == SENDS_MAX)
            return status;
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(hf_scope_env(s), delay_ms)));
        delay_ms *= 2;
    }
}

enum cancellation { CANCELED = 1, FASTER, DONE_BEFORE };

/* Why it was canceled; the sequence's action is the one at `mine`. */
static enum cancellation cancel_reason(struct hf_scope *s, struct hf_sequence *q, size_t mine,
                                       struct hf_str id, int64_t gone, bool doubtful)
{
    const struct hf_error *error = hf_scope_error(s);
    struct hf_counters *c = q->counters;
    struct counter_mark mark = {.id = id, .request = true};
    struct counter_seen seen;
    struct counter_at at;
    struct hf_item item;

    if (!is_code(error, mine, "ConditionalCheckFailed"))
        return !doubtful && only_conflicts(error) ? FASTER : CANCELED;
    if (!doubtful)
        return FASTER;
    item = error->reasons[mine].item;
    if (hf__counter_at(s, c, q->key, 0, &at) != HF_OK ||
        (!item.ptr && hf__pattern_read(s, c->db, c->table, at.key, &item) != HF_OK) ||
        hf__counter_see(s, &at, item, mark, &seen) != HF_OK)
        return CANCELED;
    if (seen.marked)
        return DONE_BEFORE;
    if (seen.gone == gone)
        return FASTER; /* (4): it will never be done */
    (void)hf_scope_fail(s, HF_EXPIRED,
                        "sequence %.*s has too many writers to know whether this was done",
                        HF_FMT(q->key.id));
    return CANCELED;
}

/* One try. *faster: another took numbers, or held an item of ours for a moment. */
static enum hf_status commit_once(struct hf_scope *s, struct hf_sequence *q, uint32_t count,
                                  hf_sequence_build_fn *build, void *user, int64_t *first,
                                  bool *faster)
{
    struct hf_transact_write *actions = hf_scope_alloc(s, ACTIONS_MAX * sizeof(*actions));
    struct pattern_id id = hf__pattern_id_make(&q->counters->env);
    struct hf_transact_write_items request = {.actions = actions, .token = id_str(&id)};
    struct hf_update_item update;
    enum cancellation why;
    enum hf_status status;
    bool doubtful;
    int64_t gone;
    size_t len = 0;

    TRY(hf_scope_built(s));
    memset(actions, 0, ACTIONS_MAX * sizeof(*actions));
    TRY(action_of(s, q, count, id_str(&id), first, &update, &gone));
    TRY(build(s, *first, actions, ACTIONS_MAX - 1, &len, user));
    if (len >= ACTIONS_MAX)
        return hf_scope_fail(s, HF_INVALID, "sequence %.*s: a transaction has %d actions at most",
                             HF_FMT(q->key.id), ACTIONS_MAX);
    actions[len].update = &update;
    request.actions_len = len + 1;
    TRY(hf_scope_built(s));
    status = tx_send(s, q->counters->db, &request, &doubtful);
    *faster = status == HF_TX_CONFLICT && !doubtful;
    if (status == HF_OK)
        return HF_OK;
    if (status != HF_TX_CANCELED)
        return doubtful ? hf_scope_doubt(s) : status;
    why = cancel_reason(s, q, len, id_str(&id), gone, doubtful);
    *faster = why == FASTER;
    if (why == DONE_BEFORE)
        return hf_scope_ok(s);
    if (why == FASTER)
        return status; /* to look at the item may have taken the scope's error */
    return doubtful ? hf_scope_doubt(s) : status;
}

enum hf_status hf_sequence_commit(struct hf_scope *s, struct hf_sequence *q, uint32_t count,
                                  hf_sequence_build_fn *build, void *user, int64_t *first)
{
    struct hf_scope_mark memory;
    bool supported;

    *first = 0;
    TRY(hf_db_supports(s, q->counters->db, HF_FEATURE_TRANSACTIONS, &supported));
    if (!supported)
        return hf_scope_fail(s, HF_UNSUPPORTED, "sequence %.*s: this database has no transactions",
                             HF_FMT(q->key.id));
    memory = hf_scope_mark(s);
    for (uint32_t round = 1;; round++) {
        bool faster = false;
        enum hf_status status = commit_once(s, q, count, build, user, first, &faster);

        if (status == HF_OK)
            return HF_OK;
        if (!faster) {
            *first = 0;
            return status;
        }
        hf_scope_rewind(s, memory);
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&q->counters->env, round < 8 ? 4 : 50)));
    }
}
