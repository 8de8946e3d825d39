/*
 * limit/limit.c: how often something may be done: deciding, with one write where that is
 * possible.
 *
 * An update cannot branch: to count in a window that is open and to begin another are two requests.
 * Which one it is to be is guessed from where the name's window was when this table saw it last (a
 * hint), or that there is none. A wrong guess is refused, the refusal brings the item, and from
 * then on nothing is guessed. What an item allows, and the requests, are in limit_item.c.
 *
 *  (1) Allowed means that a write was done whose condition held the limit. No read, hint or verdict
 *      of ours allows anything.
 *  (2) The ids of a call's writes begin alike. If the refusal shows one of them as the last one, it
 *      was done. Each is another, as one may become the id of a window.
 *  (3) Denied means that an item was seen which allows no more; and nothing was counted, unless an
 *      answer was lost.
 *  (4) What removes an item names the window that it removes, so a request that comes late removes
 *      no other.
 */
#include "limit/limit.h"

#include <stdio.h>

enum {
    ROUNDS = 30, /* two digits in an id */
    ROUNDS_WITHOUT_REST = 4,
    REST_MS = 10,
    REACH_FIRST_MS = 20, /* the first pause between two attempts to reach the database */
    REACH_MOST_MS = 500, /* the longest one */
    WRITE_ID_SIZE = PATTERN_ID_LEN + 4
};

/* ---- the table ------------------------------------------------------------------------------ */

static void table_free(struct hf_limit_table *limits)
{
    struct hf_env env = limits->env;

    pthread_mutex_destroy(&limits->mutex);
    hf_scope_free(limits->names);
    hf__env_free(&env, limits, sizeof(*limits));
}

static struct hf_limit_table *table_new(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_limit_table_options *o)
{
    struct hf_limit_table *limits = hf__env_zalloc(hf_scope_env(s), sizeof(*limits));

    if (!limits)
        return NULL;
    limits->env = *hf_scope_env(s);
    limits->db = db;
    pthread_mutex_init(&limits->mutex, NULL);
    limits->names = hf_scope_new(&limits->env);
    if (limits->names) {
        limits->at.table = hf_scope_copy(limits->names, o->table.len ? o->table : HF_STR("limits"));
        limits->at.hash = name_or(limits->names, o->hash_attribute, "name");
        limits->at.expires = name_or(limits->names, o->expires_attribute, PATTERN_EXPIRES);
    }
    if (!limits->names || hf_scope_built(limits->names) != HF_OK) {
        table_free(limits);
        return NULL;
    }
    return limits;
}

static enum hf_status table_ensure(struct hf_scope *s, struct hf_db *db,
                                   const struct pattern_at *at,
                                   const struct hf_limit_table_options *o)
{
    static const char *const own[] = {"context",   "count",   "head",     "last",     "lockouts",
                                      "locked_ms", "refunds", "slices",   "start_ms", "sum",
                                      "tat_us",    "version", "width_ms", "window",   NULL};
    struct hf_attribute_definition attribute = {at->hash, HF_SCALAR_S};
    struct hf_key_element key = {at->hash, HF_KEY_HASH};
    struct hf_create_table spec = {.table = at->table,
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};
    struct pattern_open how = {KIND_LIMITS, .no_create = o->no_create, .adopt = o->adopt};

    TRY(hf__pattern_names(s, at, own));
    TRY(hf__pattern_table_begin(s, db, &spec, at->expires, &how));
    TRY(hf__kind_open_at(
        s, &(struct kind_table){.db = db, .spec = &spec, .kind = KIND_LIMITS, .adopt = o->adopt},
        at->expires));
    return hf__pattern_table_end(s, db, &spec, at->expires, &how);
}

enum hf_status hf_limit_table_open(struct hf_scope *s, struct hf_db *db,
                                   const struct hf_limit_table_options *options,
                                   struct hf_limit_table **limits)
{
    struct hf_limit_table_options o;
    struct hf_limit_table *made;
    enum hf_status status;

    *limits = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_limit_table_open() was called without a database");
    made = table_new(s, db, &o);
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of limits");
    status = table_ensure(s, db, &made->at, &o);
    if (status != HF_OK) {
        table_free(made);
        return status;
    }
    *limits = made;
    return HF_OK;
}

void hf_limit_table_close(struct hf_limit_table *limits)
{
    if (limits)
        table_free(limits);
}

/* ---- hints ---------------------------------------------------------------------------------- */

_Static_assert((LIMIT_HINTS & (LIMIT_HINTS - 1)) == 0, "a power of two");
_Static_assert(ROUNDS <= 100, "two digits in an id");

static uint64_t hash_of(const struct limit_ask *ask)
{
    uint64_t hash = fnv_add(FNV_BEGIN ^ (uint64_t)ask->rule.kind, ask->name.ptr, ask->name.len);

    return hash ? hash : 1;
}

/* The item as it may be; nothing when we do not know. */
static void view_guess(struct hf_limit_table *limits, const struct limit_ask *ask,
                       struct limit_view *view)
{
    uint64_t hash = hash_of(ask);
    struct limit_hint hint;

    *view = (struct limit_view){0};
    pthread_mutex_lock(&limits->mutex);
    hint = limits->hints[hash & (LIMIT_HINTS - 1)];
    pthread_mutex_unlock(&limits->mutex);
    if (hint.hash != hash)
        return;
    view->has_window = view->has_slices = view->has_tat = view->there = true;
    view->start_ms = view->head = view->tat_us = hint.mark;
    view->width_ms = hint.width_ms;
}

static void hint_save(struct hf_limit_table *limits, const struct limit_ask *ask,
                      const struct limit_view *view)
{
    uint64_t hash = hash_of(ask);

    pthread_mutex_lock(&limits->mutex);
    limits->hints[hash & (LIMIT_HINTS - 1)] =
        (struct limit_hint){.hash = view->there ? hash : 0,
                            .mark = hf__limit_mark(view, ask->rule.kind),
                            .width_ms = view->width_ms};
    pthread_mutex_unlock(&limits->mutex);
}

/* ---- what is asked for ---------------------------------------------------------------------- */

static enum hf_status check_rule(struct hf_scope *s, struct limit_ask *ask)
{
    struct hf_limit_rule *rule = &ask->rule;
    uint32_t most;

    rule->kind = rule->kind ? rule->kind : HF_LIMIT_ATTEMPTS;
    rule->burst = rule->burst ? rule->burst : rule->limit;
    rule->slices = rule->slices                     ? rule->slices
                   : rule->window_ms < LIMIT_SLICES ? rule->window_ms
                                                    : LIMIT_SLICES;
    if (rule->lockout_ms && !rule->lockout_max_ms)
        rule->lockout_max_ms = rule->lockout_ms > UINT32_MAX / LIMIT_LOCKOUT_GROWS
                                   ? UINT32_MAX
                                   : rule->lockout_ms * LIMIT_LOCKOUT_GROWS;
    most = rule->kind == HF_LIMIT_RATE ? rule->burst : rule->limit;
    if (rule->kind > HF_LIMIT_RATE)
        return hf_scope_fail(s, HF_INVALID, "limit %.*s: invalid kind %d", HF_FMT(ask->name),
                             (int)rule->kind);
    if (rule->limit < 1 || rule->limit > HF_LIMIT_MOST || rule->burst > HF_LIMIT_MOST ||
        rule->window_ms < 1)
        return hf_scope_fail(s, HF_INVALID, "limit %.*s: invalid rule: %u in %u ms",
                             HF_FMT(ask->name), rule->limit, rule->window_ms);
    if (rule->slices > HF_LIMIT_SLICES_MAX || rule->slices > rule->window_ms)
        return hf_scope_fail(s, HF_INVALID, "limit %.*s: invalid rule: %u slices of %u ms",
                             HF_FMT(ask->name), rule->slices, rule->window_ms);
    if (rule->lockout_ms > rule->lockout_max_ms ||
        (rule->lockout_max_ms && rule->kind != HF_LIMIT_ATTEMPTS && rule->kind != HF_LIMIT_FIXED))
        return hf_scope_fail(
            s, HF_INVALID,
            "limit %.*s: invalid lockout: lockout_ms is at most lockout_max_ms, and both are "
            "for HF_LIMIT_ATTEMPTS and HF_LIMIT_FIXED",
            HF_FMT(ask->name));
    if (rule->kind == HF_LIMIT_RATE && hf__limit_rest_us(rule) > LIMIT_REST_MAX_US)
        return hf_scope_fail(
            s, HF_INVALID,
            "limit %.*s: a burst of %u at %u in %u ms takes more than 100 years to "
            "refill",
            HF_FMT(ask->name), rule->burst, rule->limit, rule->window_ms);
    if (ask->cost > most)
        return hf_scope_fail(s, HF_INVALID, "limit %.*s: a cost of %u is more than %u",
                             HF_FMT(ask->name), ask->cost, most);
    return HF_OK;
}

static enum hf_status check_name(struct hf_scope *s, struct hf_str name)
{
    if (name.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a limit needs a name");
    if (hf__kind_is_mark(name))
        return hf_scope_fail(s, HF_INVALID,
                             "a limit cannot be named \"%.*s\": the table's mark has that name",
                             HF_FMT(name));
    if (name.len > HF_LIMIT_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_LIMIT_NAME_MAX, name.len),
                                   "limit %.32s...: a name of %zu bytes is longer than %d",
                                   name.ptr, name.len, HF_LIMIT_NAME_MAX);
    return HF_OK;
}

static enum hf_status ask_for(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                              const struct hf_limit_rule *rule, const struct hf_limit_options *o,
                              const struct pattern_id *id, struct limit_ask *ask)
{
    *ask = (struct limit_ask){.at = &limits->at,
                              .name = name,
                              .id = id_str(id),
                              .rule = *rule,
                              .cost = o->cost ? o->cost : 1,
                              .context = o->context,
                              .now_us = limits->env.wall_us(limits->env.user)};
    TRY(check_name(s, name));
    TRY(check_rule(s, ask));
    if (!o->context.ptr)
        return HF_OK;
    TRY(hf_item_check(s, o->context));
    if (hf_item_size(o->context) > HF_LIMIT_CONTEXT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_LIMIT_CONTEXT_MAX, hf_item_size(o->context)),
                                   "limit %.*s: a context of %zu bytes is larger than %d",
                                   HF_FMT(name), hf_item_size(o->context), HF_LIMIT_CONTEXT_MAX);
    return HF_OK;
}

/* ---- taking --------------------------------------------------------------------------------- */

static enum hf_status fail_denied(struct hf_scope *s, const struct limit_ask *ask,
                                  const struct hf_limit_verdict *verdict)
{
    if (verdict->locked)
        return hf_scope_fail(s, HF_LIMIT, "limit %.*s is locked out; try again in %u ms",
                             HF_FMT(ask->name), verdict->retry_ms);
    return hf_scope_fail(s, HF_LIMIT, "limit %.*s is reached (%u in %u ms); try again in %u ms",
                         HF_FMT(ask->name), ask->rule.limit, ask->rule.window_ms,
                         verdict->retry_ms);
}

/*
 * The database was not reached: HF_OK when it is time to try again, before the deadline. Without
 * one it is not tried again, as nothing would say when to give up.
 */
static enum hf_status try_again(struct hf_scope *s, const struct hf_limit_table *limits,
                                enum hf_status status, struct backoff *backoff)
{
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    uint32_t ms = hf__backoff_jitter_ms(&limits->env, hf__backoff_next_ms(backoff));

    if (status == HF_CANCELED || status == HF_NOMEM || !hf_scope_error(s)->may_retry ||
        left_ms == UINT32_MAX || left_ms <= 2)
        return status;
    TRY(hf_scope_sleep_ms(s, ms < left_ms - 1 ? ms : left_ms - 1));
    backoff->failures++;
    return HF_OK;
}

/* A request that is sent until the database was reached, as it is: (2) says what became of it. */
static enum hf_status send_until_reached(struct hf_scope *s, struct hf_limit_table *limits,
                                         const struct hf_update_item *update, struct hf_item *item)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct backoff backoff = {.first_ms = REACH_FIRST_MS, .max_ms = REACH_MOST_MS};
    bool doubtful = false;

    for (;;) {
        enum hf_status status =
            hf__pattern_write(s, limits->db, &(struct hf_transact_write){.update = update},
                              update->key, item);

        if (status == HF_OK || status == HF_CONDITION)
            return status;
        doubtful = doubtful || hf_scope_error(s)->may_have_happened;
        status = try_again(s, limits, status, &backoff);
        if (status != HF_OK)
            return doubtful ? hf_scope_doubt(s) : status;
        hf_scope_rewind(s, mark);
    }
}

/* What is stored for the name; the same for a read. */
static enum hf_status read_until_reached(struct hf_scope *s, struct hf_limit_table *limits,
                                         const struct limit_ask *ask, struct hf_item *item)
{
    struct hf_item key = hf__limit_key(s, ask->at, ask->name);
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct backoff backoff = {.first_ms = REACH_FIRST_MS, .max_ms = REACH_MOST_MS};

    for (;;) {
        enum hf_status status = hf__pattern_read(s, limits->db, limits->at.table, key, item);

        if (status == HF_OK)
            return HF_OK;
        TRY(try_again(s, limits, status, &backoff));
        hf_scope_rewind(s, mark);
    }
}

/* Send one step, and look at what is there then. HF_OK: it was done. */
static enum hf_status step_send(struct hf_scope *s, struct hf_limit_table *limits,
                                const struct limit_ask *ask, enum limit_step step,
                                struct limit_view *view)
{
    struct hf_update_item update = hf__limit_request(s, ask, view, step);
    struct hf_item item;
    enum hf_status status;

    assert(step != LIMIT_DENY && "(3) what is denied is not written");
    TRY(hf_scope_built(s));
    status = send_until_reached(s, limits, &update, &item);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    TRY(hf__limit_view(s, limits->at.table, ask->name, item, view));
    hint_save(limits, ask, view);
    if (status == HF_CONDITION && view->last.len == ask->id.len &&
        memcmp(view->last.ptr, ask->id.ptr, PATTERN_ID_LEN) == 0)
        return HF_OK; /* (2) */
    return status;
}

/* The id of a call's nth write. */
static struct hf_str write_id(char text[WRITE_ID_SIZE], const struct pattern_id *id, int nth)
{
    int len = snprintf(text, WRITE_ID_SIZE, "%s.%02d", id->text, nth);

    assert(nth >= 0 && len == WRITE_ID_SIZE - 1);
    return hf_str_of(text, (size_t)len);
}

/* Begin a lockout; somebody else's change comes first. HF_OK: it has begun. */
static enum hf_status lockout_begin(struct hf_scope *s, struct hf_limit_table *limits,
                                    struct limit_ask ask, struct limit_view *view)
{
    struct pattern_id id = hf__pattern_id_make(&limits->env);
    char text[WRITE_ID_SIZE];

    assert(ask.rule.lockout_ms > 0 && view->there);
    ask.id = write_id(text, &id, 0); /* the other one means that something was counted */
    return step_send(s, limits, &ask, LIMIT_LOCK, view);
}

static enum hf_status limit_take(struct hf_scope *s, struct hf_limit_table *limits,
                                 struct limit_ask *ask, const struct pattern_id *id,
                                 struct hf_limit_verdict *verdict)
{
    char text[WRITE_ID_SIZE];
    struct limit_view view;
    bool known = false;

    view_guess(limits, ask, &view);
    for (int round = 0; round < ROUNDS; round++) {
        enum limit_step step = hf__limit_step(ask, &view);
        enum hf_status status;

        if (!known && step != LIMIT_WITHIN && step != LIMIT_NEW) {
            struct hf_item item;

            TRY(read_until_reached(s, limits, ask, &item));
            TRY(hf__limit_view(s, limits->at.table, ask->name, item, &view));
            known = true;
            continue;
        }
        if (step == LIMIT_DENY) {
            hf__limit_fill_verdict(ask, &view, false, verdict);
            return fail_denied(s, ask, verdict);
        }
        if (step == LIMIT_LOCK) {
            status = lockout_begin(s, limits, *ask, &view);
        } else {
            ask->id = write_id(text, id, round);
            status = step_send(s, limits, ask, step, &view);
            if (status == HF_OK) {
                hf__limit_fill_verdict(ask, &view, true, verdict);
                verdict->id = view.last;
                return hf_scope_ok(s);
            }
        }
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        known = true;
        if (round >= ROUNDS_WITHOUT_REST)
            TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&limits->env, REST_MS)));
        ask->now_us = limits->env.wall_us(limits->env.user);
    }
    return hf_scope_fail(s, HF_IN_USE, "limit %.*s: too many callers at once; try again",
                         HF_FMT(ask->name));
}

/* A failure that says nothing about the limit. */
static bool is_unreached(const struct hf_scope *s, enum hf_status status)
{
    return status == HF_IO || status == HF_TIMEOUT || status == HF_INTERNAL ||
           status == HF_IN_USE || status == HF_THROTTLED || status == HF_STOPPED ||
           status == HF_NO_SPACE || status == HF_DENIED || hf_scope_error(s)->may_retry;
}

/* The deadline of the scope, brought forward by reach_ms, and as it was. */
struct bound {
    bool set;
    uint32_t left_ms;
    int64_t began_us;
};

static struct bound bound_begin(struct hf_scope *s, const struct hf_limit_table *limits,
                                uint32_t reach_ms)
{
    struct bound bound = {.left_ms = hf_scope_left_ms(s, UINT32_MAX),
                          .began_us = hf__env_elapsed_us(&limits->env)};

    bound.set = reach_ms && reach_ms < bound.left_ms;
    if (bound.set)
        hf_scope_timeout_ms(s, reach_ms);
    return bound;
}

static void bound_end(struct hf_scope *s, const struct hf_limit_table *limits,
                      const struct bound *bound)
{
    int64_t rest_ms = bound->left_ms - (hf__env_elapsed_us(&limits->env) - bound->began_us) / 1000;

    /* 0 is no deadline at all: one that has passed stays one. */
    if (bound->set)
        hf_scope_timeout_ms(s, bound->left_ms == UINT32_MAX ? 0
                               : rest_ms > 0                ? (uint32_t)rest_ms
                                                            : 1);
}

/* Nobody could be asked, and it is to be allowed then. */
static bool fails_open(struct hf_scope *s, const struct hf_limit_options *o, enum hf_status status)
{
    return o->fail_open && status != HF_OK && status != HF_LIMIT && is_unreached(s, status);
}

static enum hf_status allow_unreached(struct hf_scope *s, const struct limit_ask *ask,
                                      struct hf_limit_verdict *verdict)
{
    *verdict = (struct hf_limit_verdict){.allowed = true, .unreached = true, .cost = ask->cost};
    return hf_scope_ok(s);
}

enum hf_status hf_limit_take(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                             const struct hf_limit_rule *rule,
                             const struct hf_limit_options *options,
                             struct hf_limit_verdict *verdict)
{
    struct pattern_id id = hf__pattern_id_make(&limits->env);
    struct hf_limit_options o;
    enum hf_status status;
    struct limit_ask ask;
    struct bound bound;

    *verdict = (struct hf_limit_verdict){0};
    OPTIONS_COPY(&o, options);
    TRY(ask_for(s, limits, name, rule, &o, &id, &ask));
    bound = bound_begin(s, limits, o.reach_ms);
    status = limit_take(s, limits, &ask, &id, verdict);
    bound_end(s, limits, &bound);
    return fails_open(s, &o, status) ? allow_unreached(s, &ask, verdict) : status;
}

/* ---- looking -------------------------------------------------------------------------------- */

static enum hf_status view_read(struct hf_scope *s, struct hf_limit_table *limits,
                                const struct limit_ask *ask, uint32_t reach_ms,
                                struct limit_view *view)
{
    struct bound bound = bound_begin(s, limits, reach_ms);
    struct hf_item item;
    enum hf_status status = read_until_reached(s, limits, ask, &item);

    bound_end(s, limits, &bound);
    TRY(status);
    TRY(hf__limit_view(s, limits->at.table, ask->name, item, view));
    hint_save(limits, ask, view);
    return call_ends(s, HF_OK);
}

enum hf_status hf_limit_peek(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                             const struct hf_limit_rule *rule,
                             const struct hf_limit_options *options,
                             struct hf_limit_verdict *verdict)
{
    struct pattern_id id = hf__pattern_id_make(&limits->env);
    struct hf_limit_options o;
    struct limit_view view;
    struct limit_ask ask;
    enum hf_status status;
    enum limit_step step;

    *verdict = (struct hf_limit_verdict){0};
    OPTIONS_COPY(&o, options);
    TRY(ask_for(s, limits, name, rule, &o, &id, &ask));
    status = view_read(s, limits, &ask, o.reach_ms, &view);
    if (fails_open(s, &o, status))
        return allow_unreached(s, &ask, verdict);
    TRY(status);
    step = hf__limit_step(&ask, &view);
    hf__limit_fill_verdict(&ask, &view, step != LIMIT_DENY && step != LIMIT_LOCK, verdict);
    return HF_OK;
}

enum hf_status hf_limit_take_tx(struct hf_scope *s, struct hf_limit_table *limits,
                                struct hf_str name, const struct hf_limit_rule *rule,
                                const struct hf_limit_options *options,
                                struct hf_transact_write *action, struct hf_limit_verdict *verdict)
{
    struct pattern_id id = hf__pattern_id_make(&limits->env);
    struct hf_update_item *update;
    struct hf_limit_options o;
    struct limit_view view;
    struct limit_ask ask;
    enum limit_step step;

    memset(action, 0, sizeof(*action));
    *verdict = (struct hf_limit_verdict){0};
    OPTIONS_COPY(&o, options);
    TRY(ask_for(s, limits, name, rule, &o, &id, &ask));
    TRY(view_read(s, limits, &ask, o.reach_ms, &view));
    step = hf__limit_step(&ask, &view);
    if (step == LIMIT_DENY || step == LIMIT_LOCK) {
        hf__limit_fill_verdict(&ask, &view, false, verdict);
        return fail_denied(s, &ask, verdict);
    }
    update = hf_scope_alloc(s, sizeof(*update));
    TRY(hf_scope_built(s));
    *update = hf__limit_request(s, &ask, &view, step);
    update->table = hf_scope_copy(s, update->table);
    update->returns = 0;
    hf__limit_fill_verdict(&ask, &view, true, verdict);
    verdict->id = hf_scope_copy(s, ask.id);
    /* What begins a window gives it this one's id. */
    if (step == LIMIT_NEW || !verdict->window.ptr)
        verdict->window = verdict->id;
    verdict->used = step == LIMIT_NEW ? ask.cost : verdict->used + ask.cost;
    verdict->left = verdict->left > ask.cost ? verdict->left - ask.cost : 0;
    action->update = update;
    return hf_scope_built(s);
}

/* ---- giving back ---------------------------------------------------------------------------- */

enum hf_status hf_limit_refund(struct hf_scope *s, struct hf_limit_table *limits,
                               struct hf_str name, const struct hf_limit_rule *rule,
                               const struct hf_limit_verdict *verdict)
{
    struct pattern_id id = hf__pattern_id_make(&limits->env);
    struct hf_limit_options o = {.cost = verdict->cost};
    struct hf_update_item update;
    struct limit_view view;
    struct limit_ask ask;
    struct hf_item item;
    enum hf_status status;

    TRY(ask_for(s, limits, name, rule, &o, &id, &ask));
    if (!verdict->allowed || !verdict->id.len || !verdict->window.len)
        return hf_scope_fail(s, HF_INVALID,
                             "limit %.*s: nothing was counted that could be refunded",
                             HF_FMT(name));
    update = hf__limit_refund_request(s, &ask, verdict);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, limits->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status != HF_CONDITION)
        return status;
    TRY(hf__limit_view(s, limits->at.table, name, item, &view));
    if (view.there && hf_str_equal(view.window, verdict->window)) {
        if (hf_item_get(view.refunds, verdict->id).ptr) /* before, or by an answer that was lost */
            return hf_scope_ok(s);
        if (hf_item_count(view.refunds) >= HF_LIMIT_REFUNDS_MAX)
            return hf_scope_fail_limit(
                s, HF_LIMIT, HF_ERROR_LIMIT(HF_LIMIT_REFUNDS_MAX, hf_item_count(view.refunds) + 1),
                "limit %.*s: there were %d refunds already", HF_FMT(name), HF_LIMIT_REFUNDS_MAX);
    }
    return hf_scope_fail(s, HF_EXPIRED, "limit %.*s: too late for a refund: the window is over",
                         HF_FMT(name));
}

enum hf_status hf_limit_clear(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                              const struct hf_limit_verdict *verdict)
{
    struct hf_str window = verdict ? verdict->window : hf_str_of(NULL, 0);
    struct hf_delete_item del = {.table = limits->at.table,
                                 .condition = HF_STR("#window = :window")};
    struct hf_item item;
    enum hf_status status;

    TRY(check_name(s, name));
    for (int round = 0; round < ROUNDS; round++) {
        if (!verdict) {
            TRY(hf__pattern_read(s, limits->db, limits->at.table,
                                 hf__limit_key(s, &limits->at, name), &item));
            window = hf_value_str(hf_item_get(item, HF_STR("window")));
        }
        if (!window.len) /* nothing there, or it was not counted */
            return hf_scope_ok(s);
        del.key = hf__limit_key(s, &limits->at, name);
        del.names = HF_ITEM(s, HF_S("#window", HF_STR("window")));
        del.values = HF_ITEM(s, HF_S(":window", window));
        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, limits->db, &(struct hf_transact_write){.del = &del}, del.key,
                                   &item);
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        if (status == HF_OK || verdict || !item.ptr)
            return hf_scope_ok(s);
    }
    return hf_scope_fail(s, HF_IN_USE, "limit %.*s: too many callers at once; try again",
                         HF_FMT(name));
}
