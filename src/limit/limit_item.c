/*
 * limit/limit_item.c: how limits are stored, what an item allows, and the requests that change
 * it. Nothing is sent here.
 *
 *     name      S  the key; it and expires may be named otherwise
 *     last      S  the id of the latest write, whatever it was
 *     version   N  how many writes there were
 *     window    S  the id of the write that began the window
 *     context   M  what came with the first one of the window; may be absent
 *     refunds   M  ids of what was given back in the window, with the slice it was in
 *     expires   N  time to live in seconds
 *     start_ms  N  windows: when it began
 *     count     N  windows: how many were counted in it
 *     locked_ms N  windows: until when it is or was locked
 *     lockouts  N  windows: how many in a row
 *     head      N  sliding: the slice that is counted in, as a multiple of width_ms since 1970
 *     width_ms  N  sliding: the length of a slice
 *     sum       N  sliding: of all slices
 *     slices    M  sliding: how many in each, by its number; those that are over are dropped when
 *                  the head moves
 *     tat_us    N  rate: when the last one that was counted would have been due (GCRA's theoretical
 *                  arrival time)
 *
 *  (1) start_ms, head and tat_us (but for refunds) only grow while an item lives: they are the
 *      name's clock. Each write compares them with the caller's clock in its condition, and a
 *      caller that is behind counts where they are.
 *  (2) A write that counts has its limit in the condition. So the database decides, one by one.
 *  (3) Where a whole state is replaced (slide, lock) the condition is that last and version are
 *      those it was computed from. One alone would not do: a write that comes again has the same
 *      id, and an item that was cleared counts from one again.
 *  (4) A write that comes again is refused as long as it is the last one. After others it may count
 *      once more: less is allowed then, never more. A refund that comes again is refused always.
 *  (5) Any window_ms has parts of slices + 1 slices at most, so as many are summed up, and a sum
 *      within the limit means that every window is.
 */
#include <stdlib.h>

#include "coord/placeholders.h"
#include "limit/limit.h"

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_i64(struct hf_item item, const char *name, bool *there, int64_t *out)
{
    struct hf_value value = hf_item_get(item, hf_str_from(name));

    *out = 0;
    if (there)
        *there = value.ptr != NULL;
    return !value.ptr || (hf_value_i64(value, out) && *out >= 0);
}

enum hf_status hf__limit_view(struct hf_scope *s, struct hf_str table, struct hf_str name,
                              struct hf_item item, struct limit_view *view)
{
    *view = (struct limit_view){.there = item.ptr != NULL};
    if (!item.ptr)
        return HF_OK;
    view->last = hf_value_str(hf_item_get(item, HF_STR("last")));
    view->window = hf_value_str(hf_item_get(item, HF_STR("window")));
    view->context = hf_value_item(hf_item_get(item, HF_STR("context")));
    view->slices = hf_value_item(hf_item_get(item, HF_STR("slices")));
    view->refunds = hf_value_item(hf_item_get(item, HF_STR("refunds")));
    if (!view->last.ptr || !view->window.ptr || !read_i64(item, "version", NULL, &view->version) ||
        !read_i64(item, "start_ms", &view->has_window, &view->start_ms) ||
        !read_i64(item, "count", NULL, &view->count) ||
        !read_i64(item, "locked_ms", NULL, &view->locked_ms) ||
        !read_i64(item, "lockouts", NULL, &view->lockouts) ||
        !read_i64(item, "head", &view->has_slices, &view->head) ||
        !read_i64(item, "width_ms", NULL, &view->width_ms) ||
        !read_i64(item, "sum", NULL, &view->sum) ||
        !read_i64(item, "tat_us", &view->has_tat, &view->tat_us) ||
        (view->has_slices && view->width_ms == 0))
        return hf_scope_fail(s, HF_CORRUPT, "item %.*s of table %.*s is not a limit", HF_FMT(name),
                             HF_FMT(table));
    return HF_OK;
}

int64_t hf__limit_mark(const struct limit_view *view, enum hf_limit_kind kind)
{
    return kind == HF_LIMIT_RATE      ? view->tat_us
           : kind == HF_LIMIT_SLIDING ? view->head
                                      : view->start_ms;
}

/* ---- deciding ------------------------------------------------------------------------------- */

static int64_t now_ms(const struct limit_ask *ask)
{
    return ask->now_us / 1000;
}

/* Rounded up: slower than asked for by less than a microsecond each, and never faster. */
static int64_t interval_us(const struct hf_limit_rule *rule)
{
    assert(rule->limit > 0);
    return ((int64_t)rule->window_ms * 1000 + rule->limit - 1) / rule->limit;
}

int64_t hf__limit_rest_us(const struct hf_limit_rule *rule)
{
    int64_t rest_us;

    return __builtin_mul_overflow((int64_t)rule->burst, interval_us(rule), &rest_us) ? INT64_MAX
                                                                                     : rest_us;
}

static int64_t width_ms(const struct hf_limit_rule *rule)
{
    assert(rule->slices > 0 && rule->slices <= HF_LIMIT_SLICES_MAX);
    return ((int64_t)rule->window_ms + rule->slices - 1) / rule->slices;
}

/* When a window that begins now begins. */
static int64_t new_start_ms(const struct limit_ask *ask)
{
    int64_t now = now_ms(ask);

    return ask->rule.kind == HF_LIMIT_FIXED ? now - now % ask->rule.window_ms : now;
}

/* The sum of the slices that count when `head` is the latest. (5) */
static int64_t live_sum(const struct limit_ask *ask, const struct limit_view *view, int64_t head)
{
    struct hf_item_walk walk = {0};
    int64_t sum = 0;

    /* Of another rule, whose slices cannot be told apart: all of it counts until it is over. */
    if (view->width_ms != width_ms(&ask->rule))
        return (view->head + 1) * view->width_ms + ask->rule.window_ms <=
                       head * width_ms(&ask->rule)
                   ? 0
                   : view->sum;
    while (hf_item_next(view->slices, &walk)) {
        char text[24] = "";
        int64_t count;

        if (walk.name.len >= sizeof(text) || !hf_value_i64(walk.value, &count))
            continue;
        memcpy(text, walk.name.ptr, walk.name.len);
        if (strtoll(text, NULL, 10) >= head - ask->rule.slices)
            sum += count;
    }
    return sum;
}

static int64_t head_of(const struct limit_ask *ask, const struct limit_view *view)
{
    int64_t width = width_ms(&ask->rule), head = now_ms(ask) / width;

    if (view->has_slices && view->width_ms == width && view->head > head)
        return view->head; /* (1) */
    return head;
}

static enum limit_step window_step(const struct limit_ask *ask, const struct limit_view *view)
{
    if (view->locked_ms > now_ms(ask))
        return LIMIT_DENY;
    if (!view->has_window || view->start_ms + ask->rule.window_ms <= new_start_ms(ask) ||
        (ask->rule.kind == HF_LIMIT_FIXED && view->start_ms < new_start_ms(ask)))
        return LIMIT_NEW;
    if (view->count + ask->cost <= ask->rule.limit)
        return LIMIT_WITHIN;
    return ask->rule.lockout_ms ? LIMIT_LOCK : LIMIT_DENY;
}

static enum limit_step slide_step(const struct limit_ask *ask, const struct limit_view *view)
{
    int64_t head = head_of(ask, view);

    if (live_sum(ask, view, head) + ask->cost > ask->rule.limit)
        return LIMIT_DENY;
    if (!view->there)
        return LIMIT_NEW;
    return view->has_slices && view->head == head && view->width_ms == width_ms(&ask->rule) &&
                   view->sum + ask->cost <= ask->rule.limit
               ? LIMIT_WITHIN
               : LIMIT_SLIDE;
}

static enum limit_step rate_step(const struct limit_ask *ask, const struct limit_view *view)
{
    int64_t interval = interval_us(&ask->rule);

    if (!view->has_tat || view->tat_us <= ask->now_us)
        return LIMIT_NEW;
    return view->tat_us + ask->cost * interval - ask->now_us <= ask->rule.burst * interval
               ? LIMIT_WITHIN
               : LIMIT_DENY;
}

enum limit_step hf__limit_step(const struct limit_ask *ask, const struct limit_view *view)
{
    switch (ask->rule.kind) {
    case HF_LIMIT_SLIDING:
        return slide_step(ask, view);
    case HF_LIMIT_RATE:
        return rate_step(ask, view);
    default:
        return window_step(ask, view);
    }
}

/* ---- verdicts ------------------------------------------------------------------------------- */

static uint32_t from_us(int64_t us)
{
    return us <= 0 ? 0 : us / 1000 >= UINT32_MAX ? UINT32_MAX : (uint32_t)((us + 999) / 1000);
}

static void fill_window(const struct limit_ask *ask, const struct limit_view *view,
                        struct hf_limit_verdict *v)
{
    int64_t end_ms = view->start_ms + ask->rule.window_ms;
    bool open = view->has_window && end_ms > now_ms(ask);
    int64_t used = open ? view->count : 0;

    v->locked = view->locked_ms > now_ms(ask);
    v->used = (uint64_t)used;
    v->left = v->locked || used > ask->rule.limit ? 0 : (uint64_t)(ask->rule.limit - used);
    v->lockouts = view->lockouts > UINT32_MAX ? UINT32_MAX : (uint32_t)view->lockouts;
    v->at_us = (view->start_ms > now_ms(ask) ? view->start_ms : now_ms(ask)) * 1000;
    v->reset_ms = v->locked ? from_us((view->locked_ms - now_ms(ask)) * 1000)
                  : used    ? from_us((end_ms - now_ms(ask)) * 1000)
                            : 0;
    v->retry_ms = v->allowed ? 0 : v->reset_ms;
}

/* When enough slices are over for this one, and when all are. */
static void fill_slices(const struct limit_ask *ask, const struct limit_view *view,
                        struct hf_limit_verdict *v)
{
    int64_t width = width_ms(&ask->rule), head = head_of(ask, view);
    int64_t used = live_sum(ask, view, head), last = head;

    v->used = (uint64_t)used;
    v->left = used > ask->rule.limit ? 0 : (uint64_t)(ask->rule.limit - used);
    v->at_us = head * width * 1000;
    while (used && live_sum(ask, view, last + 1) > 0 && last < head + ask->rule.slices)
        last++;
    v->reset_ms = used ? from_us((last + 1) * width * 1000 - ask->now_us) : 0;
    if (v->allowed)
        return;
    last = head;
    while (live_sum(ask, view, last) + ask->cost > ask->rule.limit &&
           last <= head + ask->rule.slices)
        last++;
    v->retry_ms = from_us(last * width * 1000 - ask->now_us);
}

static void fill_rate(const struct limit_ask *ask, const struct limit_view *view,
                      struct hf_limit_verdict *v)
{
    int64_t interval = interval_us(&ask->rule), burst_us = ask->rule.burst * interval;
    int64_t ahead_us = view->tat_us > ask->now_us ? view->tat_us - ask->now_us : 0;

    v->used = (uint64_t)((ahead_us + interval - 1) / interval);
    v->left = ahead_us > burst_us ? 0 : (uint64_t)((burst_us - ahead_us) / interval);
    assert(v->left <= ask->rule.burst);
    v->at_us = ask->now_us;
    v->reset_ms = from_us(ahead_us);
    v->retry_ms = v->allowed ? 0 : from_us(ahead_us + ask->cost * interval - burst_us);
}

void hf__limit_fill_verdict(const struct limit_ask *ask, const struct limit_view *view,
                            bool allowed, struct hf_limit_verdict *verdict)
{
    *verdict = (struct hf_limit_verdict){.allowed = allowed,
                                         .context = view->context,
                                         .window = view->window,
                                         .cost = ask->cost};
    if (ask->rule.kind == HF_LIMIT_SLIDING)
        fill_slices(ask, view, verdict);
    else if (ask->rule.kind == HF_LIMIT_RATE)
        fill_rate(ask, view, verdict);
    else
        fill_window(ask, view, verdict);
}

/* ---- requests ------------------------------------------------------------------------------- */

struct hf_item hf__limit_key(struct hf_scope *s, const struct pattern_at *at, struct hf_str name)
{
    const struct hf_attr key = {.name = at->hash, .type = HF_TYPE_S, .text = name};

    return hf_item_make(s, &key, 1);
}

static struct hf_update_item update_of(struct holders *h, const struct limit_ask *ask,
                                       struct hf_str update, struct hf_str condition)
{
    return (struct hf_update_item){
        .table = ask->at->table,
        .key = hf__limit_key(h->s, ask->at, ask->name),
        .update = update,
        .condition = condition,
        .names = hf_item_make(h->s, h->names, h->names_len),
        .values = hf_item_make(h->s, h->values, h->values_len),
        .returns = HF_RETURN_ALL_NEW,
    };
}

#define WRITE "#last = :id, #version = if_not_exists(#version, :zero) + :one"
#define UNCHANGED "#last = :seen AND #version = :version"

/* The state that a request was computed from. */
static void seen_values(struct holders *h, const struct limit_view *view)
{
    VALUE(h, HF_S(":seen", view->last));
    VALUE(h, HF_N(":version", view->version));
}

/* What every write has: its id, and as the case may be a new window with its context. */
static const char *write_begin(struct holders *h, const struct limit_ask *ask, bool new_window)
{
    NAMES(h, "#last", "#version");
    VALUE(h, HF_S(":id", ask->id));
    VALUE(h, HF_N(":zero", 0));
    VALUE(h, HF_N(":one", 1));
    if (!new_window)
        return WRITE;
    holders_name(h, HF_STR("#expires"), ask->at->expires);
    NAMES(h, "#window", "#refunds", "#context");
    VALUE(h, HF_V(":none", hf_item_value(hf_item_make(h->s, NULL, 0))));
    if (ask->context.ptr)
        VALUE(h, HF_M(":context", ask->context));
    return ask->context.ptr ? WRITE ", #window = :id, #refunds = :none, #context = :context, "
                                    "#expires = :expires"
                            : WRITE ", #window = :id, #refunds = :none, #expires = :expires";
}

static void expires_value(struct holders *h, const struct limit_ask *ask, int64_t end_ms)
{
    VALUE(h, HF_N(":expires", (end_ms + ask->rule.lockout_max_ms) / 1000 + LIMIT_TTL_MARGIN_S));
}

#define NOT_AGAIN "(attribute_not_exists(#last) OR #last <> :id)"
#define NOT_LOCKED "(attribute_not_exists(#locked_ms) OR #locked_ms <= :now)"

static struct hf_update_item window_request(struct hf_scope *s, const struct limit_ask *ask,
                                            enum limit_step step)
{
    struct holders h = {.s = s};
    const char *common = write_begin(&h, ask, step == LIMIT_NEW);
    int64_t start_ms = new_start_ms(ask);
    /* Windows that began up to here are over. */
    int64_t over_ms =
        ask->rule.kind == HF_LIMIT_FIXED ? start_ms - 1 : start_ms - ask->rule.window_ms;

    assert(step == LIMIT_NEW || step == LIMIT_WITHIN);
    assert(ask->cost > 0 && ask->cost <= ask->rule.limit && "(2)");
    NAMES(&h, "#start_ms", "#count", "#locked_ms");
    VALUE(&h, HF_N(":over", over_ms));
    VALUE(&h, HF_N(":now", now_ms(ask)));
    VALUE(&h, HF_N(":cost", ask->cost));
    if (step == LIMIT_WITHIN) {
        VALUE(&h, HF_N(":room", (int64_t)ask->rule.limit - ask->cost));
        return update_of(&h, ask, hf_scope_format(s, "SET #count = #count + :cost, %s", common),
                         HF_STR("#start_ms > :over AND #count <= :room AND " NOT_AGAIN
                                " AND " NOT_LOCKED));
    }
    VALUE(&h, HF_N(":start", start_ms));
    expires_value(&h, ask, start_ms + ask->rule.window_ms);
    return update_of(&h, ask,
                     hf_scope_format(s, "SET #start_ms = :start, #count = :cost, %s%s", common,
                                     ask->context.ptr ? "" : " REMOVE #context"),
                     HF_STR("(attribute_not_exists(#start_ms) OR #start_ms <= :over) AND " NOT_AGAIN
                            " AND " NOT_LOCKED));
}

static struct hf_update_item lock_request(struct hf_scope *s, const struct limit_ask *ask,
                                          const struct limit_view *view)
{
    const struct hf_limit_rule *rule = &ask->rule;
    struct holders h = {.s = s};
    int64_t now = now_ms(ask), delay_ms = rule->lockout_ms, lockouts = 1, until_ms;

    if (view->lockouts && now < view->locked_ms + rule->lockout_max_ms)
        lockouts += view->lockouts;
    for (int64_t i = 1; i < lockouts && delay_ms < rule->lockout_max_ms; i++)
        delay_ms *= 2;
    until_ms = now + (delay_ms < rule->lockout_max_ms ? delay_ms : rule->lockout_max_ms);
    assert(until_ms > now && until_ms <= now + rule->lockout_max_ms);
    holders_name(&h, HF_STR("#expires"), ask->at->expires);
    NAMES(&h, "#last", "#version", "#window", "#refunds", "#start_ms", "#count", "#locked_ms",
          "#lockouts");
    VALUE(&h, HF_S(":id", ask->id));
    VALUE(&h, HF_N(":zero", 0));
    VALUE(&h, HF_N(":one", 1));
    VALUE(&h, HF_V(":none", hf_item_value(hf_item_make(s, NULL, 0))));
    VALUE(&h, HF_N(":until", until_ms));
    VALUE(&h, HF_N(":lockouts", lockouts));
    seen_values(&h, view);
    expires_value(&h, ask, until_ms + rule->window_ms);
    return update_of(&h, ask,
                     HF_STR("SET " WRITE ", #window = :id, #refunds = :none, #count = :zero, "
                            "#start_ms = :until, #locked_ms = :until, #lockouts = :lockouts, "
                            "#expires = :expires"),
                     HF_STR(UNCHANGED));
}

/* One more in the slice that is the head. */
static struct hf_update_item slice_request(struct hf_scope *s, const struct limit_ask *ask,
                                           const struct limit_view *view)
{
    struct holders h = {.s = s};

    assert(view->has_slices && view->width_ms == width_ms(&ask->rule));
    (void)write_begin(&h, ask, false);
    NAMES(&h, "#slices", "#sum", "#head", "#width_ms");
    holders_name(&h, HF_STR("#i"), hf_scope_format(s, "%lld", (long long)view->head));
    VALUE(&h, HF_N(":cost", ask->cost));
    VALUE(&h, HF_N(":room", (int64_t)ask->rule.limit - ask->cost));
    VALUE(&h, HF_N(":head", view->head));
    VALUE(&h, HF_N(":width", width_ms(&ask->rule)));
    return update_of(&h, ask,
                     HF_STR("SET #slices.#i = if_not_exists(#slices.#i, :zero) + :cost, "
                            "#sum = #sum + :cost, " WRITE),
                     HF_STR("#head = :head AND #width_ms = :width AND #sum <= :room AND "
                            "#last <> :id"));
}

/* The entries of a map of slices (by name) or refunds (by value) whose slice still counts. */
static struct hf_item live_entries(struct hf_scope *s, struct hf_item map, bool by_name,
                                   int64_t first)
{
    struct hf_attr *attrs = hf_scope_alloc(s, (hf_item_count(map) + 1) * sizeof(*attrs));
    struct hf_item_walk walk = {0};
    size_t len = 0;

    while (attrs && hf_item_next(map, &walk)) {
        char text[24] = "";
        int64_t slice = 0;

        if (by_name && walk.name.len < sizeof(text)) {
            memcpy(text, walk.name.ptr, walk.name.len);
            slice = strtoll(text, NULL, 10);
        } else if (!by_name) {
            (void)hf_value_i64(walk.value, &slice);
        }
        if (slice >= first)
            attrs[len++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    }
    return hf_item_make(s, attrs, len);
}

/* (3) All slices again: those that are over are gone, and one more is in the head. */
static struct hf_update_item slide_request(struct hf_scope *s, const struct limit_ask *ask,
                                           const struct limit_view *view)
{
    int64_t width = width_ms(&ask->rule), head = head_of(ask, view);
    int64_t sum = live_sum(ask, view, head), before = 0;
    struct hf_item slices, refunds;
    struct holders h = {.s = s};
    struct hf_attr own;
    bool fresh = sum == 0;
    const char *common = write_begin(&h, ask, fresh);

    assert((!view->has_slices || view->width_ms != width || head >= view->head) && "(1)");
    assert(sum + ask->cost <= ask->rule.limit && "(5)");
    if (view->width_ms == width) {
        slices = live_entries(s, view->slices, true, head - ask->rule.slices);
        refunds = live_entries(s, view->refunds, false, head - ask->rule.slices);
    } else {
        before = sum; /* of another rule, or of none */
        slices = refunds = hf_item_make(s, NULL, 0);
    }
    own = (struct hf_attr)HF_N("", before + ask->cost);
    own.name = hf_scope_format(s, "%lld", (long long)head);
    if (view->width_ms == width) {
        int64_t here = 0;

        (void)hf_value_i64(hf_item_get(slices, own.name), &here);
        own.number += here;
    }
    slices = hf_item_with(s, slices, &own, 1);
    NAMES(&h, "#slices", "#sum", "#head", "#width_ms");
    VALUE(&h, HF_M(":slices", slices));
    VALUE(&h, HF_N(":sum", sum + ask->cost));
    VALUE(&h, HF_N(":head", head));
    VALUE(&h, HF_N(":width", width));
    expires_value(&h, ask, (head + ask->rule.slices + 2) * width);
    if (!fresh) {
        holders_name(&h, HF_STR("#expires"), ask->at->expires);
        NAMES(&h, "#refunds");
        VALUE(&h, HF_M(":refunds", refunds));
    }
    if (view->there)
        seen_values(&h, view);
    return update_of(
        &h, ask,
        hf_scope_format(
            s, "SET #slices = :slices, #sum = :sum, #head = :head, #width_ms = :width, %s%s",
            common,
            fresh ? (ask->context.ptr ? "" : " REMOVE #context")
                  : ", #expires = :expires, #refunds = :refunds"),
        view->there ? HF_STR(UNCHANGED) : HF_STR("attribute_not_exists(#last)"));
}

static struct hf_update_item rate_request(struct hf_scope *s, const struct limit_ask *ask,
                                          enum limit_step step)
{
    struct holders h = {.s = s};
    const char *common = write_begin(&h, ask, step == LIMIT_NEW);
    int64_t interval = interval_us(&ask->rule), due_us = ask->cost * interval;
    int64_t burst_us = ask->rule.burst * interval;

    assert(step == LIMIT_NEW || step == LIMIT_WITHIN);
    assert(due_us <= burst_us && "(2)");
    NAMES(&h, "#tat_us");
    VALUE(&h, HF_N(":now", ask->now_us));
    expires_value(&h, ask, (ask->now_us + burst_us) / 1000);
    if (step == LIMIT_WITHIN) {
        holders_name(&h, HF_STR("#expires"), ask->at->expires);
        VALUE(&h, HF_N(":due", due_us));
        VALUE(&h, HF_N(":latest", ask->now_us + burst_us - due_us));
        return update_of(&h, ask,
                         hf_scope_format(s, "SET #tat_us = #tat_us + :due, #expires = :expires, %s",
                                         common),
                         HF_STR("#tat_us > :now AND #tat_us <= :latest AND #last <> :id"));
    }
    VALUE(&h, HF_N(":tat", ask->now_us + due_us));
    return update_of(&h, ask,
                     hf_scope_format(s, "SET #tat_us = :tat, %s%s", common,
                                     ask->context.ptr ? "" : " REMOVE #context"),
                     HF_STR("(attribute_not_exists(#tat_us) OR #tat_us <= :now) AND " NOT_AGAIN));
}

struct hf_update_item hf__limit_request(struct hf_scope *s, const struct limit_ask *ask,
                                        const struct limit_view *view, enum limit_step step)
{
    assert(step != LIMIT_DENY);
    if (step == LIMIT_LOCK)
        return lock_request(s, ask, view);
    if (ask->rule.kind == HF_LIMIT_RATE)
        return rate_request(s, ask, step);
    if (ask->rule.kind != HF_LIMIT_SLIDING)
        return window_request(s, ask, step);
    return step == LIMIT_WITHIN ? slice_request(s, ask, view) : slide_request(s, ask, view);
}

struct hf_update_item hf__limit_refund_request(struct hf_scope *s, const struct limit_ask *ask,
                                               const struct hf_limit_verdict *verdict)
{
    struct holders h = {.s = s};
    int64_t slice = verdict->at_us / 1000 / (width_ms(&ask->rule) ? width_ms(&ask->rule) : 1);
    const char *update, *condition;

    (void)write_begin(&h, ask, false);
    NAMES(&h, "#window", "#refunds");
    holders_name(&h, HF_STR("#id"), verdict->id);
    VALUE(&h, HF_S(":window", verdict->window));
    VALUE(&h, HF_N(":most", HF_LIMIT_REFUNDS_MAX));
    VALUE(&h, HF_N(":slice", slice));
    if (ask->rule.kind == HF_LIMIT_RATE) {
        NAMES(&h, "#tat_us");
        VALUE(&h, HF_N(":cost", verdict->cost * interval_us(&ask->rule)));
        update = "#tat_us = #tat_us - :cost";
        condition = "#tat_us >= :cost";
    } else if (ask->rule.kind == HF_LIMIT_SLIDING) {
        NAMES(&h, "#sum", "#slices", "#width_ms");
        holders_name(&h, HF_STR("#i"), hf_scope_format(s, "%lld", (long long)slice));
        VALUE(&h, HF_N(":cost", verdict->cost));
        VALUE(&h, HF_N(":width", width_ms(&ask->rule)));
        update = "#sum = #sum - :cost, #slices.#i = #slices.#i - :cost";
        condition = "#slices.#i >= :cost AND #width_ms = :width";
    } else {
        NAMES(&h, "#count");
        VALUE(&h, HF_N(":cost", verdict->cost));
        update = "#count = #count - :cost";
        condition = "#count >= :cost";
    }
    return update_of(&h, ask,
                     hf_scope_format(s, "SET " WRITE ", #refunds.#id = :slice, %s", update),
                     hf_scope_format(s,
                                     "#window = :window AND attribute_not_exists(#refunds.#id) AND "
                                     "size(#refunds) < :most AND %s",
                                     condition));
}
