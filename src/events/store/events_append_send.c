/*
 * events/store/events_append_send.c: the transaction of an append, and what becomes of it.
 * events_append.c has the order of its actions, and the numbers that stand in parentheses here.
 */
#include "events/store/append.h"

#include "base/assert_held.h"
#include "base/base32.h"

enum {
    CLOSED_MAX = 100, /* readers may close what we are about to use again and again */
    FIRST_DELAY_MS = 5,
    DELAY_MAX_MS = 500
};

void *hf__append_keep(struct hf_scope *s, const void *request, size_t size)
{
    void *copy = hf_scope_alloc(s, size);

    return copy ? memcpy(copy, request, size) : NULL;
}

static struct hf_str stream_of(const struct append_target *t)
{
    assert(t->pk.len > 2 && t->pk.ptr[0] == 's');
    return hf_str_of(t->pk.ptr + 2, t->pk.len - 2);
}

/* ---- actions -------------------------------------------------------------------------------- */

enum hf_status hf__append_add(struct appending *a, struct hf_transact_write action,
                              enum action_kind kind, size_t index)
{
    if (!action.check && !action.put && !action.del && !action.update)
        return hf_scope_built(a->s); /* its request could not be kept */
    assert(a->actions_len < HF_TX_ACTIONS_MAX);
    assert(!!action.check + !!action.put + !!action.del + !!action.update == 1);
    a->actions[a->actions_len] = action;
    a->what[a->actions_len++] = (struct append_action){kind, (uint32_t)index};
    return HF_OK;
}

/* Commits and ids are to be new. Events need no condition: their versions are behind the head. */
enum hf_status hf__append_add_put(struct appending *a, struct hf_item item, enum action_kind kind,
                                  size_t index)
{
    struct hf_put_item put = {.table = a->store->table, .item = item};

    if (kind == ACTION_COMMIT || kind == ACTION_ID) {
        put.condition = HF_STR("attribute_not_exists(#pk)");
        put.names = a->store->names_pk;
    }
    return hf__append_add(a, (struct hf_transact_write){.put = APPEND_KEEP(a->s, put)}, kind,
                          index);
}

static struct hf_item head_key(struct appending *a, const struct append_target *t)
{
    return HF_ITEM(a->s, HF_S("pk", t->pk), HF_S("sk", HF_STR("h")));
}

static struct hf_item values_of_head(struct appending *a, const struct append_target *t)
{
    struct hf_attr attrs[4];
    size_t len = 0;

    if (a->store->chain)
        attrs[len++] = (struct hf_attr)HF_B(":h", hf_bytes_of(t->next.hash, EVENTS_HASH));
    attrs[len++] = (struct hf_attr)HF_S(":p", position_str(&t->next.position));
    if (t->head.version)
        attrs[len++] = (struct hf_attr)HF_S(":s", position_str(&t->head.position));
    attrs[len++] = (struct hf_attr)HF_N(":v", t->next.version);
    return hf_item_make(a->s, attrs, len);
}

static struct hf_update_item head_update(struct appending *a, const struct append_target *t)
{
    return (struct hf_update_item){
        .table = a->store->table,
        .key = head_key(a, t),
        .update = a->store->chain ? HF_STR("SET #v = :v, #p = :p, #h = :h")
                                  : HF_STR("SET #v = :v, #p = :p"),
        .condition = t->head.version
                         ? HF_STR("#p = :s AND attribute_not_exists(#x)")
                         : HF_STR("attribute_not_exists(#p) AND attribute_not_exists(#x)"),
        .names = a->store->names_head,
        .values = values_of_head(a, t),
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

/* The stream gets no event: it is only to be as it was expected. */
static struct hf_condition_check head_check(struct appending *a, const struct append_target *t)
{
    struct hf_condition_check check = {.table = a->store->table,
                                       .key = head_key(a, t),
                                       .names = HF_ITEM(a->s, HF_S("#p", HF_STR("p")),
                                                        HF_S("#x", HF_STR("x"))),
                                       .returns_on_failure = HF_ON_FAILURE_ALL_OLD};

    if (t->head.version == 0) {
        check.condition = HF_STR("attribute_not_exists(#p) AND attribute_not_exists(#x)");
    } else if (t->append->expect == HF_EXPECT_EXISTS) {
        check.condition = HF_STR("attribute_exists(#p) AND attribute_not_exists(#x)");
    } else {
        check.condition = HF_STR("#p = :s AND attribute_not_exists(#x)");
        check.values = HF_ITEM(a->s, HF_S(":s", position_str(&t->head.position)));
    }
    return check;
}

bool hf__append_has_head(const struct append_target *t)
{
    return t->len || t->append->expect != HF_EXPECT_ANY;
}

enum hf_status hf__append_add_head(struct appending *a, size_t i)
{
    struct append_target *t = &a->targets[i];

    if (!hf__append_has_head(t))
        return HF_OK;
    if (t->len) {
        struct hf_update_item update = head_update(a, t);

        return hf__append_add(a, (struct hf_transact_write){.update = APPEND_KEEP(a->s, update)},
                              ACTION_HEAD, i);
    } else {
        struct hf_condition_check check = head_check(a, t);

        return hf__append_add(a, (struct hf_transact_write){.check = APPEND_KEEP(a->s, check)},
                              ACTION_HEAD, i);
    }
}

enum hf_status hf__append_add_marker(struct appending *a)
{
    struct hf_condition_check check;

    assert(a->commits_len > 0);
    check = hf__events_marker_check(a->s, a->store, position_str(&a->commits[0].position));

    return hf__append_add(a, (struct hf_transact_write){.check = APPEND_KEEP(a->s, check)},
                          ACTION_MARKER, 0);
}

/* The item of the global order; its attributes are in the order in which items keep them. */
static enum hf_status add_commit(struct appending *a, size_t i)
{
    const struct append_commit *commit = &a->commits[i];
    const struct append_target *t = commit->target;
    struct hf_str position = position_str(&commit->position);
    struct hf_attr *attrs = hf_scope_alloc(a->s, (commit->len + 5) * sizeof(*attrs));
    char *names = hf_scope_alloc(a->s, 3 * commit->len);
    size_t len = 0;

    TRY(hf_scope_built(a->s));
    attrs[len++] = (struct hf_attr)HF_S("d", t->append->stream.domain);
    if (t->append->stream.id.len)
        attrs[len++] = (struct hf_attr)HF_S("i", t->append->stream.id);
    attrs[len++] = (struct hf_attr)HF_S("pk", hf__events_part_of(a->s, 'a', position));
    attrs[len++] = (struct hf_attr)HF_S("sk", position);
    attrs[len++] = (struct hf_attr)HF_N("v", t->events[commit->first].event.version);
    for (size_t j = 0; j < commit->len; j++, names += 3) {
        names[0] = 'x';
        base32_write(names + 1, j, 2, BASE32_UPPER);
        attrs[len++] = (struct hf_attr){.name = hf_str_of(names, 3),
                                        .value = hf_item_value(t->events[commit->first + j].map)};
    }
    return hf__append_add_put(a, hf_item_make(a->s, attrs, len), ACTION_COMMIT, i);
}

static struct hf_item related_item(struct appending *a, const struct append_target *t,
                                   const struct append_event *p, struct hf_str id, int what,
                                   struct hf_str large, size_t number)
{
    struct hf_attr attrs[8];
    size_t len = 0;

    if (large.len) {
        attrs[len++] = (struct hf_attr)HF_S("l", large);
        attrs[len++] = (struct hf_attr)HF_N("n", number);
    }
    attrs[len++] = (struct hf_attr)HF_S("pk", hf__pattern_join(a->s, HF_STR("r."), id));
    attrs[len++] = (struct hf_attr)HF_S("s", stream_of(t));
    attrs[len++] = (struct hf_attr)HF_S("sk", p->event.position);
    attrs[len++] = (struct hf_attr)HF_N("v", p->event.version);
    attrs[len++] = (struct hf_attr)HF_N("w", what);
    return hf_item_make(a->s, attrs, len);
}

size_t hf__append_related(struct appending *a, const struct append_target *t,
                          const struct append_event *p, struct hf_str large, size_t number,
                          struct hf_item items[2])
{
    const struct hf_stored_event *e = &p->event;
    bool both = !p->own_correlation && hf_str_equal(e->causation, e->correlation);
    size_t len = 0;

    if (e->causation.len)
        items[len++] =
            related_item(a, t, p, e->causation,
                         both ? EVENTS_CAUSED | EVENTS_CORRELATED : EVENTS_CAUSED, large, number);
    if (!p->own_correlation && !both)
        items[len++] = related_item(a, t, p, e->correlation, EVENTS_CORRELATED, large, number);
    return len;
}

static enum hf_status add_event(struct appending *a, const struct append_target *t,
                                const struct append_event *p)
{
    struct hf_str none = {NULL, 0};
    size_t index = (size_t)(p - a->events), related_len;
    struct hf_item related[2];

    TRY(hf__append_add_put(a,
                           hf__events_item(a->s, t->pk, hf_str_of(p->sk, EVENTS_VERSION_LEN),
                                           p->event.position, p->map),
                           ACTION_EVENT, index));
    if (p->chosen)
        TRY(hf__append_add_put(a, hf__append_id_item(a, t, p, none, 0), ACTION_ID, index));
    related_len = hf__append_related(a, t, p, none, 0, related);
    for (size_t i = 0; i < related_len; i++)
        TRY(hf__append_add_put(a, related[i], ACTION_RELATED, index));
    return HF_OK;
}

size_t hf__append_actions_len(const struct appending *a)
{
    size_t len = a->o.with_len + a->events_len + a->chosen + a->related + a->commits_len +
                 (a->commits_len > 0);

    for (size_t i = 0; i < a->len; i++)
        len += hf__append_has_head(&a->targets[i]);
    return len;
}

enum hf_status hf__append_actions(struct appending *a)
{
    size_t len = hf__append_actions_len(a);

    if (DEV_CHECKS)
        hf__append_check(a);
    a->actions = hf_scope_alloc(a->s, (len + 1) * sizeof(*a->actions));
    a->what = hf_scope_alloc(a->s, (len + 1) * sizeof(*a->what));
    a->actions_len = 0;
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < a->o.with_len; i++)
        TRY(hf__append_add(a, a->o.with[i], ACTION_WITH, i));
    for (size_t i = 0; i < a->len; i++) {
        TRY(hf__append_add_head(a, i));
        for (size_t j = 0; j < a->targets[i].len; j++)
            TRY(add_event(a, &a->targets[i], &a->targets[i].events[j]));
    }
    for (size_t i = 0; i < a->commits_len; i++)
        TRY(add_commit(a, i));
    if (a->commits_len)
        TRY(hf__append_add_marker(a));
    assert(a->actions_len == len);
    return hf_scope_built(a->s);
}

/* ---- what became of it ---------------------------------------------------------------------- */

/* The reasons of a refusal, sorted by what they are about. */
struct refusal {
    bool done;   /* the commit is there (2) */
    bool begun;  /* a large append was given up by others */
    bool ids;    /* an id is taken */
    bool heads;  /* a stream has moved on */
    bool marker; /* the marker is missing or closed */
    bool with;   /* the caller's own conditions */
    bool busy;   /* others at the same time, or too many requests */
    bool throttled;
    const struct hf_cancel_reason *invalid;
    struct hf_item marker_item;
};

static bool is_code(const struct hf_cancel_reason *reason, const char *code)
{
    return hf_str_equal(reason->code, hf_str_from(code));
}

static void note_refused(const struct appending *a, size_t i, const struct hf_cancel_reason *reason,
                         struct refusal *r)
{
    switch (a->what[i].kind) {
    case ACTION_COMMIT:
        r->done = true;
        break;
    case ACTION_BEGUN:
        r->begun = true;
        break;
    case ACTION_ID:
        r->ids = true;
        break;
    case ACTION_HEAD:
        r->heads = true;
        break;
    case ACTION_MARKER:
        r->marker = true;
        r->marker_item = reason->item;
        break;
    case ACTION_WITH:
    case ACTION_EVENT:
    case ACTION_RELATED:
        r->with = true;
        break;
    }
}

static struct refusal read_refusal(const struct appending *a, const struct hf_error *error)
{
    struct refusal r = {.done = false};

    for (size_t i = 0; i < error->reasons_len && i < a->actions_len; i++) {
        const struct hf_cancel_reason *reason = &error->reasons[i];

        if (is_code(reason, "ConditionalCheckFailed"))
            note_refused(a, i, reason, &r);
        else if (is_code(reason, "TransactionConflict"))
            r.busy = true;
        else if (is_code(reason, "ThrottlingError") ||
                 is_code(reason, "ProvisionedThroughputExceeded"))
            r.busy = r.throttled = true;
        else if (!is_code(reason, "None") && !r.invalid)
            r.invalid = reason;
    }
    return r;
}

/* Heads as the refusal has them; those that it lacks are read. *stay: none has moved on, or
 * never will again. */
static enum hf_status learn_heads(struct appending *a, const struct hf_error *error, bool *stay)
{
    *stay = true;
    for (size_t i = 0; i < error->reasons_len && i < a->actions_len; i++) {
        struct append_target *t = &a->targets[a->what[i].index];
        struct hf_item item = error->reasons[i].item;
        struct events_position before;

        if (a->what[i].kind != ACTION_HEAD ||
            !is_code(&error->reasons[i], "ConditionalCheckFailed"))
            continue;
        if (!item.ptr)
            TRY(hf__pattern_read(a->s, a->store->db, a->store->table, head_key(a, t), &item));
        before = t->head.position;
        TRY(hf__append_learn(a, t, item));
        *stay = *stay && t->head.state == EVENTS_ARCHIVED &&
                memcmp(&before, &t->head.position, sizeof(before)) == 0;
    }
    return HF_OK;
}

/* *closed: it is, so what was sent cannot happen any more. Else it is open by now, as we or
 * somebody else has made it, and the same can be sent again: what was sent may still happen. */
static enum hf_status pass_marker(struct appending *a, struct hf_item item, bool *closed)
{
    struct hf_str position = position_str(&a->commits[0].position), upto;

    assert(a->commits_len > 0 && is_position(position));
    if (!item.ptr) {
        struct hf_condition_check check = hf__events_marker_check(a->s, a->store, position);

        TRY(hf_scope_built(a->s));
        TRY(hf__pattern_read(a->s, a->store->db, a->store->table, check.key, &item));
    }
    if (!item.ptr)
        return hf__events_marker_make(a->s, a->store, position, closed);
    upto = hf_value_str(hf_item_get(item, HF_STR("c")));
    hf__events_observe(a->store, upto);
    *closed = upto.len == HF_POSITION_LEN && memcmp(upto.ptr, position.ptr, HF_POSITION_LEN) >= 0;
    return HF_OK;
}

/* Has it happened? The commit is there then. After an ambiguous attempt it is looked for, in
 * another scope: that of the append has the reasons of the refusal. */
static enum hf_status has_happened(struct appending *a, const struct refusal *r, bool *there)
{
    uint32_t left_ms = hf_scope_left_ms(a->s, UINT32_MAX);
    enum hf_status status;
    struct hf_scope *s;

    *there = r->done;
    if (*there || !a->ambiguous || !a->commits_len)
        return HF_OK;
    s = hf_scope_new(hf_scope_env(a->s));
    if (!s)
        return hf_scope_fail(a->s, HF_NOMEM, "no memory to find out whether an append happened");
    if (left_ms != UINT32_MAX)
        hf_scope_timeout_ms(s, left_ms ? left_ms : 1);
    status = hf__events_is_there(s, a->store, position_str(&a->commits[0].position), there);
    if (status != HF_OK)
        status = hf_scope_fail_from(a->s, status, s);
    hf_scope_free(s);
    return status;
}

/* Nothing that trying again helps against. */
static enum hf_status fail_refused(struct appending *a, const struct hf_error *error,
                                   const struct refusal *r)
{
    if (r->begun)
        return hf_scope_fail(
            a->s, HF_TX_CONFLICT,
            "the append was abandoned: another append took its ids, or the sweep removed it");
    if (r->with || !r->invalid)
        return error->status;
    return hf_scope_fail(a->s, HF_INVALID, "%.*s: %.*s", HF_FMT(r->invalid->code),
                         HF_FMT(r->invalid->message));
}

/* It was canceled. *again: the same can be sent again, after a while. */
static enum hf_status refusal_judge(struct appending *a, enum append_verdict *verdict, bool *again)
{
    struct hf_error error = *hf_scope_error(a->s);
    struct refusal r = read_refusal(a, &error);
    bool there, repeated = false, closed = false, stay = false;

    TRY(has_happened(a, &r, &there));
    if (there) {
        *verdict = APPEND_DONE;
        return HF_OK;
    }
    *verdict = APPEND_RETRY;
    if (r.ids) {
        TRY(hf__append_look_for_ids(a, &repeated));
        if (repeated) {
            *verdict = APPEND_REPEATED;
            return HF_OK;
        }
        *again = !r.heads && !r.marker; /* they were of an append that never came to its end */
    }
    if ((r.with || r.begun) && !r.heads && !r.ids) /* before others take the place of the reasons */
        return fail_refused(a, &error, &r);
    if (r.heads)
        TRY(learn_heads(a, &error, &stay));
    if (r.marker) {
        a->ambiguous =
            a->ambiguous || !r.marker_item.ptr; /* a request that comes twice may find it */
        TRY(pass_marker(a, r.marker_item, &closed));
    }
    if (r.heads || closed) {
        a->moved += r.heads;
        a->closed += closed;
        a->may_still_happen = a->ambiguous && stay && !closed; /* (3) */
        a->ambiguous = false;
        return HF_OK;
    }
    if (!r.ids && !r.marker && !r.busy)
        return fail_refused(a, &error, &r);
    *again = true;
    return HF_OK;
}

static enum hf_status fail_busy(struct appending *a, uint32_t times)
{
    return hf_scope_fail(a->s, HF_TX_CONFLICT,
                         "stream \"%.*s\": other writers appended first, %u times",
                         HF_FMT(hf__events_stream_text(a->s, a->targets[0].append->stream)), times);
}

/* Longer and longer, but for the first time, when others were just a little faster. */
static enum hf_status attempt_wait(struct appending *a, uint32_t times)
{
    if (times <= 1)
        return HF_OK;
    return hf_scope_sleep_ms(a->s, hf__backoff_ms(&a->store->env, FIRST_DELAY_MS, DELAY_MAX_MS,
                                                  times + UINT64_C(1)));
}

enum hf_status hf__append_wait(struct appending *a)
{
    if (a->moved >= a->o.max_attempts || a->closed >= CLOSED_MAX)
        return fail_busy(a, a->moved + a->closed);
    return attempt_wait(a, a->moved);
}

/* It failed, and so it ends. */
static enum hf_status append_fail(struct appending *a, enum hf_status status)
{
    const struct hf_error *error = hf_scope_error(a->s);

    assert(status != HF_OK);
    if (status == HF_TX_CANCELED && error->reasons_len) {
        struct refusal r = read_refusal(a, error);

        if (!r.with && !r.invalid && r.throttled)
            status =
                hf_scope_fail(a->s, HF_THROTTLED, "stream \"%.*s\": too many requests",
                              HF_FMT(hf__events_stream_text(a->s, a->targets[0].append->stream)));
        else if (!r.with && !r.invalid && r.busy)
            status = fail_busy(a, a->o.max_attempts);
    } else if (error->status != status) {
        status = fail_busy(
            a, a->o.max_attempts); /* what was looked up since has taken the reasons' place */
    }
    return a->ambiguous ? hf_scope_doubt(a->s) : status;
}

enum hf_status hf__append_send(struct appending *a, enum append_verdict *verdict)
{
    /* Without a commit nothing would show that it has happened: (2) is by a token then. */
    const struct pattern_id token = hf__pattern_id_make(&a->store->env);
    const struct hf_transact_write_items request = {.actions = a->actions,
                                                    .actions_len = a->actions_len,
                                                    .token = a->commits_len ? (struct hf_str){0}
                                                                            : id_str(&token)};

    assert(a->actions_len > 0 && a->actions_len <= HF_TX_ACTIONS_MAX && a->o.max_attempts > 0);
    a->ambiguous = false;
    for (uint32_t attempt = 1;; attempt++) {
        enum hf_status status = hf_transact_write_items(a->s, a->store->db, &request, NULL);
        const struct hf_error *error = hf_scope_error(a->s);
        bool again = error->may_retry || error->may_have_happened || status == HF_TX_CONFLICT;

        *verdict = APPEND_DONE;
        if (status == HF_OK)
            return HF_OK;
        a->ambiguous = a->ambiguous || error->may_have_happened;
        if (status == HF_TX_CANCELED) {
            again = false;
            status = refusal_judge(a, verdict, &again);
            if (status == HF_OK && !again)
                return HF_OK;
            status = status == HF_OK ? HF_TX_CANCELED : status;
        }
        if (!again || attempt >= a->o.max_attempts)
            return append_fail(a, status);
        status = attempt_wait(a, attempt);
        if (status != HF_OK)
            return append_fail(a, status);
    }
}

void hf__append_results(struct appending *a)
{
    for (size_t i = 0; a->results && i < a->len; i++) {
        const struct append_target *t = &a->targets[i];
        struct hf_str *ids = (struct hf_str *)(uintptr_t)a->results[i].ids;

        assert(ids && t->next.version == t->head.version + t->len);
        a->results[i].first = t->len ? t->head.version + 1 : t->head.version;
        a->results[i].last = t->next.version;
        a->results[i].position = position_str(&t->next.position);
        for (size_t j = 0; j < t->len; j++)
            ids[j] = t->events[j].event.id;
    }
}

void hf__append_done(struct appending *a)
{
    for (size_t i = 0; i < a->len; i++)
        if (a->targets[i].len)
            hf__events_heads_keep(a->store, a->targets[i].pk, &a->targets[i].next);
    hf__append_results(a);
    if (!a->events_len)
        return;
    assert(a->commits_len > 0);
    hf__events_mark(a->store, position_str(&a->commits[0].position), true);
    hf__events_wake(a->store);
}
