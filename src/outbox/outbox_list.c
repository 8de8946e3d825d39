/*
 * outbox/outbox_list.c: looking at events.
 *
 *  (1) A cursor is a seq, which names its bucket: pending events are listed bucket by bucket,
 *      from the cursor on; dead letters and the history by seq alone, over all buckets at once. A
 *      cursor can be kept and used by another process.
 *  (2) All pages are read, consistently. A limit counts the events that are returned; there is a
 *      `next` when there are more.
 *  (3) An expired event is never seen, whether the database has removed it or not.
 *  (4) Counting takes the memory of one page, however many events there are.
 *  (5) Newest first, urgent events are sorted by the time of their emission like all others: a bucket
 *      needs two scans then, and a cursor stands for its time in both. Oldest first, as functions
 *      need it that change all events of a list, urgent events come before the others, and a bucket
 *      is one scan.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

#include <stdlib.h>

enum {
    LIMIT = 100,
    CAUSES_MAX = 100, /* different ones that are reported; the rest is one of them */
    EXAMPLE_MAX = 256,
    SK_MAX = 1024
};

/* ---- scans ---------------------------------------------------------------------------------- */

/* What is listed. */
struct plan {
    struct hf_outbox *outbox;
    struct hf_event_list_options o;
    struct outbox_only only;
    uint32_t bucket; /* that all of it is in; UINT32_MAX: any */
    const char *partition;
    enum hf_outbox_state state;
    int64_t now_us;
    int64_t page;
    bool backward;
};

/* Reads the events of a bucket, or of its urgent or other half, one by one. */
struct scan {
    struct hf_query query;
    struct hf_query_result result;
    size_t at; /* in the result */
    bool asked;
    struct hf_outbox_event head; /* ref is absent at the end */
};

static struct hf_str filter_of(struct holders *h, const struct plan *p)
{
    struct hf_str filter = hf__outbox_only_filter(h, &p->only);
    struct {
        bool wanted;
        const char *name;
        struct hf_str text;
        struct hf_attr value;
    } all[] = {
        {p->state == HF_OUTBOX_FAILED && p->o.cause.len, "#cause", HF_STR("#cause = :cause"),
         HF_S(":cause", p->o.cause)},
        {p->state == HF_OUTBOX_PUBLISHED, "#ttl", HF_STR("#ttl > :now"),
         HF_N(":now", p->now_us / 1000000)}, /* (3) */
        {p->state == HF_OUTBOX_PUBLISHED && p->o.from_us, "#ended", HF_STR("#ended >= :from"),
         HF_N(":from", p->o.from_us)},
        {p->state == HF_OUTBOX_PUBLISHED && p->o.to_us, "#ended", HF_STR("#ended < :to"),
         HF_N(":to", p->o.to_us)},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!all[i].wanted)
            continue;
        NAMES(h, all[i].name); /* one that comes twice is the same */
        holders_value(h, all[i].value);
        filter = hf__outbox_and(h->s, filter, all[i].text);
    }
    return filter;
}

/* (5) Where a scan backward begins: at the cursor, or at the end of the urgent or of all events. */
static struct hf_str scan_end(struct hf_scope *s, bool urgent, struct hf_str after)
{
    char to[OUTBOX_SEQ_LEN + 1];

    if (!after.len)
        return urgent ? HF_STR(OUTBOX_URGENT_END) : HF_STR("zzzzzzzzzzzzzzzzzzzzzzzzzz");
    hf__outbox_seq_among(after, urgent, to);
    return hf_scope_copy(s, hf_str_from(to));
}

/* Events of that bucket behind `after` (absent: from the beginning); backward only the urgent ones, or
 * only the others. */
static struct hf_query scan_query(struct hf_scope *s, const struct plan *p, uint32_t bucket,
                                  bool urgent, struct hf_str after)
{
    struct holders h = {.s = s, .at = &p->outbox->at};
    struct hf_query query = {.table = p->outbox->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .forward = p->backward ? HF_NO : HF_YES,
                             .limit = p->page,
                             .consistent = HF_YES};
    char last[OUTBOX_SEQ_LEN + 1];

    NAMES(&h, "#pk");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, p->partition, bucket)));
    if (p->state == HF_OUTBOX_PENDING && !p->o.not_due_too) {
        hf__outbox_seq_floor(p->now_us / 1000 + OUTBOX_SKEW_MS + 1, last);
        query.key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :after AND :last");
        VALUE(&h, HF_S(":last", hf_scope_copy(s, hf_str_from(last))));
        VALUE(&h, HF_S(":after", after.len ? after : HF_STR("0")));
    } else if (p->backward) {
        query.key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :first AND :after");
        VALUE(&h, HF_S(":first", urgent ? HF_STR("0") : HF_STR(OUTBOX_URGENT_END)));
        VALUE(&h, HF_S(":after", scan_end(s, urgent, after)));
    } else if (after.len) {
        query.key_condition = HF_STR("#pk = :pk AND #sk > :after");
        VALUE(&h, HF_S(":after", after));
    }
    if (query.key_condition.len > HF_STR("#pk = :pk").len)
        NAMES(&h, "#sk");
    query.filter = filter_of(&h, p);
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    return query;
}

static bool is_wanted(const struct plan *p, const struct hf_outbox_event *event)
{
    if (hf_str_equal(event->ref, p->o.after))
        return false; /* BETWEEN has it, too */
    return p->state != HF_OUTBOX_PENDING || p->o.not_due_too ||
           (!hf__outbox_is_early(event, p->now_us) &&
            (p->o.retrying_too || event->next_us <= p->now_us));
}

void hf__outbox_log_skipped(struct hf_scope *s, const struct hf_outbox *outbox)
{
    if (outbox->env.log)
        outbox->env.log(HF_LOG_ERROR, hf_str_from(hf_scope_error_text(s)), outbox->env.user);
}

/* Move the head to the next event. */
static enum hf_status scan_next(struct hf_scope *s, const struct plan *p, struct scan *scan)
{
    for (;;) {
        assert(scan->at <= scan->result.items_len);
        while (scan->at < scan->result.items_len) {
            struct hf_item item = scan->result.items[scan->at++];

            if (hf__outbox_view(s, p->outbox, item, &scan->head) != HF_OK)
                hf__outbox_log_skipped(s, p->outbox);
            else if (is_wanted(p, &scan->head))
                return HF_OK;
        }
        scan->head.ref = hf_str_of(NULL, 0);
        if (scan->asked && !scan->query.start.ptr)
            return HF_OK;
        TRY(hf_query(s, p->outbox->db, &scan->query, &scan->result)); /* (2) */
        scan->query.start = scan->result.last;
        scan->query.limit = OUTBOX_PAGE; /* after a first page that may be small */
        scan->asked = true;
        scan->at = 0;
    }
}

static enum hf_status scan_open(struct hf_scope *s, const struct plan *p, uint32_t bucket,
                                bool urgent, struct hf_str after, struct scan *scan)
{
    *scan = (struct scan){.query = scan_query(s, p, bucket, urgent, after)};
    TRY(hf_scope_built(s));
    return scan_next(s, p, scan);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* A list that grows in the scope. */
struct gathered {
    struct hf_outbox_event *events;
    size_t len, cap;
};

static enum hf_status gathered_add(struct hf_scope *s, struct gathered *all,
                                   const struct hf_outbox_event *event)
{
    void *events = all->events;

    TRY(hf__pattern_grow(s, &events, all->len, &all->cap, sizeof(*event)));
    all->events = events;
    assert(all->len < all->cap);
    all->events[all->len++] = *event;
    return HF_OK;
}

/* Add the head of a scan to the list; *full: the list is full, and there is more. */
static enum hf_status scan_take(struct hf_scope *s, const struct plan *p, struct scan *scan,
                                struct gathered *all, bool *full)
{
    assert(all->len <= p->o.limit && scan->head.ref.len);
    *full = all->len == p->o.limit;
    if (*full)
        return HF_OK;
    TRY(gathered_add(s, all, &scan->head));
    return scan_next(s, p, scan);
}

static bool is_asked(const struct plan *p, uint32_t bucket)
{
    return p->bucket == UINT32_MAX || p->bucket == bucket;
}

/* (1) Bucket by bucket. */
static enum hf_status list_by_bucket(struct hf_scope *s, const struct plan *p,
                                     const struct outbox_place *from, struct gathered *all,
                                     bool *full)
{
    for (uint32_t bucket = from->bucket; bucket < p->outbox->buckets && !*full; bucket++) {
        struct hf_str after = bucket == from->bucket ? p->o.after : hf_str_of(NULL, 0);
        struct scan scan;

        if (!is_asked(p, bucket))
            continue;
        TRY(scan_open(s, p, bucket, false, after, &scan));
        while (scan.head.ref.len && !*full)
            TRY(scan_take(s, p, &scan, all, full));
    }
    return HF_OK;
}

static bool is_before(const struct plan *p, const struct scan *a, const struct scan *b)
{
    char one[OUTBOX_SEQ_LEN + 1], other[OUTBOX_SEQ_LEN + 1];

    assert(a->head.ref.len == OUTBOX_SEQ_LEN && b->head.ref.len == OUTBOX_SEQ_LEN);
    if (!p->backward)
        return memcmp(a->head.ref.ptr, b->head.ref.ptr, OUTBOX_SEQ_LEN) < 0;
    hf__outbox_seq_among(a->head.ref, false, one); /* (5) */
    hf__outbox_seq_among(b->head.ref, false, other);
    return memcmp(one, other, OUTBOX_SEQ_LEN) > 0;
}

/* (1) By seq, over all buckets. (5) */
static enum hf_status list_by_seq(struct hf_scope *s, const struct plan *p, struct gathered *all,
                                  bool *full)
{
    uint32_t per_bucket = p->backward ? 2 : 1, len = p->outbox->buckets * per_bucket;
    struct scan *scans = hf_scope_alloc(s, len * sizeof(*scans));

    TRY(hf_scope_built(s));
    memset(scans, 0, len * sizeof(*scans));
    for (uint32_t i = 0; i < len; i++)
        if (is_asked(p, i / per_bucket))
            TRY(scan_open(s, p, i / per_bucket, i % per_bucket, p->o.after, &scans[i]));
    while (!*full) {
        struct scan *first = NULL;

        for (uint32_t i = 0; i < len; i++)
            if (scans[i].head.ref.len && (!first || is_before(p, &scans[i], first)))
                first = &scans[i];
        if (!first)
            break;
        TRY(scan_take(s, p, first, all, full));
    }
    return HF_OK;
}

static enum hf_status events_list(struct hf_scope *s, struct hf_outbox *outbox,
                                  enum hf_outbox_state state,
                                  const struct hf_event_list_options *options,
                                  struct hf_event_list *list, struct gathered *all)
{
    struct plan p = {.outbox = outbox,
                     .state = state,
                     .partition = state == HF_OUTBOX_PENDING  ? "p"
                                  : state == HF_OUTBOX_FAILED ? "f"
                                                              : "h",
                     .now_us = outbox->env.wall_us(outbox->env.user)};
    struct outbox_place from = {.bucket = 0};
    bool full = false;

    *all = (struct gathered){0};
    *list = (struct hf_event_list){0};
    OPTIONS_COPY(&p.o, options);
    p.only = (struct outbox_only){.type = p.o.type, .key = p.o.key, .tenant = p.o.tenant};
    TRY(hf__outbox_only_check(s, &p.only));
    p.bucket = hf__outbox_only_bucket(outbox, &p.only);
    p.o.limit = p.o.limit ? p.o.limit : LIMIT;
    p.backward = state != HF_OUTBOX_PENDING && !p.o.oldest_first;
    p.page = state == HF_OUTBOX_PENDING ? (int64_t)p.o.limit + 1
                                        : 2 * (int64_t)p.o.limit / outbox->buckets + 2;
    p.page = p.page < OUTBOX_PAGE ? p.page : OUTBOX_PAGE;
    assert(p.page > 0);
    if (p.o.after.len && !hf__outbox_place_read(outbox, p.o.after, &from))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" is not a position in a list of events",
                             HF_FMT(p.o.after));
    TRY(state == HF_OUTBOX_PENDING ? list_by_bucket(s, &p, &from, all, &full)
                                   : list_by_seq(s, &p, all, &full));
    list->events = all->events;
    list->events_len = all->len;
    assert(!full || all->len == p.o.limit);
    if (full)
        list->next = all->events[all->len - 1].ref;
    return hf_scope_ok(s);
}

/* The same with the payloads that are in the blob store. */
static enum hf_status list_whole(struct hf_scope *s, struct hf_outbox *outbox,
                                 enum hf_outbox_state state,
                                 const struct hf_event_list_options *options,
                                 struct hf_event_list *events)
{
    struct hf_event_list_options o;
    struct gathered all;

    OPTIONS_COPY(&o, options);
    TRY(events_list(s, outbox, state, &o, events, &all));
    if (!o.no_payload)
        hf__outbox_fetch(s, outbox, all.events, all.len);
    return HF_OK;
}

enum hf_status hf_outbox_pending(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event_list_options *options,
                                 struct hf_event_list *events)
{
    return list_whole(s, outbox, HF_OUTBOX_PENDING, options, events);
}

enum hf_status hf__outbox_failed(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event_list_options *options,
                                 struct hf_event_list *events)
{
    return events_list(s, outbox, HF_OUTBOX_FAILED, options, events, &(struct gathered){0});
}

enum hf_status hf__outbox_history(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_event_list_options *options,
                                  struct hf_event_list *events)
{
    return events_list(s, outbox, HF_OUTBOX_PUBLISHED, options, events, &(struct gathered){0});
}

enum hf_status hf_outbox_failed(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_event_list_options *options,
                                struct hf_event_list *events)
{
    return list_whole(s, outbox, HF_OUTBOX_FAILED, options, events);
}

enum hf_status hf_outbox_history(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event_list_options *options,
                                 struct hf_event_list *events)
{
    return list_whole(s, outbox, HF_OUTBOX_PUBLISHED, options, events);
}

/* ---- one ------------------------------------------------------------------------------------ */

/* The place of the event with an id that its emitter chose: an item has it. */
static enum hf_status place_of(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str id,
                               struct outbox_place *place, bool *found)
{
    struct hf_item key =
        hf__outbox_key_of(s, outbox, hf__pattern_join(s, HF_STR("i."), id), HF_STR("i"));
    struct hf_item item;

    *found = false;
    TRY(hf_scope_built(s));
    TRY(hf__pattern_read(s, outbox->db, outbox->table, key, &item));
    *found = item.ptr &&
             hf__outbox_place_read(outbox, hf_value_str(hf_item_get(item, HF_STR("seq"))), place);
    return HF_OK;
}

/* Look for an event in all partitions; twice, as it may move meanwhile. */
static enum hf_status event_find_at(struct hf_scope *s, struct hf_outbox *outbox,
                                    const struct outbox_place *place, struct hf_outbox_event *event)
{
    static const char *const partitions[] = {"p", "f", "h", "p", "f", "h"};

    for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
        struct hf_item item,
            key = hf__outbox_key(s, outbox, partitions[i], place->bucket, place_seq(place));
        int64_t ttl;

        TRY(hf_scope_built(s));
        TRY(hf__pattern_read(s, outbox->db, outbox->table, key, &item));
        if (!item.ptr)
            continue;
        if (hf_value_i64(hf_item_get(item, outbox->at.expires), &ttl) &&
            ttl <= hf__env_wall_ms(&outbox->env) / 1000)
            continue; /* (3) */
        return hf__outbox_view(s, outbox, item, event);
    }
    return HF_OK;
}

enum hf_status hf_outbox_get(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str id,
                             struct hf_outbox_event *event)
{
    TRY(hf__outbox_get(s, outbox, id, event));
    hf__outbox_fetch(s, outbox, event, 1);
    return HF_OK;
}

enum hf_status hf__outbox_get(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str id,
                              struct hf_outbox_event *event)
{
    struct outbox_place place;
    bool found;

    *event = (struct hf_outbox_event){.state = (enum hf_outbox_state)0};
    if (!id.len || id.len > HF_EVENT_TEXT_MAX)
        return hf_scope_fail(s, HF_INVALID, "an id has 1 to %d bytes, not %zu", HF_EVENT_TEXT_MAX,
                             id.len);
    if (hf__outbox_place_read(outbox, id, &place))
        TRY(event_find_at(s, outbox, &place, event));
    if (!event->item.ptr) {
        TRY(place_of(s, outbox, id, &place, &found));
        if (found)
            TRY(event_find_at(s, outbox, &place, event));
    }
    if (!event->item.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no event %.*s in %.*s", HF_FMT(id),
                             HF_FMT(outbox->table));
    return hf_scope_ok(s);
}

/* ---- counting ------------------------------------------------------------------------------- */

/* Failures of one kind, in memory of a fixed size (4). */
struct kind {
    uint64_t count;
    size_t cause_len, example_len;
    char cause[OUTBOX_CAUSE_MAX];
    char example[EXAMPLE_MAX];
};

struct tally {
    struct hf_outbox *outbox;
    struct hf_outbox_stats *stats;
    struct outbox_only only;
    bool part; /* only some events are counted */
    struct kind *kinds;
    size_t kinds_len;
    int64_t now_us;
    uint64_t limit, left;
};

static void count_pending(struct tally *t, const struct hf_outbox_event *event)
{
    bool early = hf__outbox_is_early(event, t->now_us);
    int64_t waits_ms = t->now_us / 1000 - hf__outbox_due_ms(event);

    t->stats->pending++;
    t->stats->scheduled += early;
    t->stats->retrying += event->attempts > 0;
    t->stats->urgent += event->event.urgent;
    if (early || event->next_us > t->now_us)
        return;
    t->stats->due++;
    if (waits_ms > t->stats->oldest_due_ms)
        t->stats->oldest_due_ms = waits_ms;
}

static size_t text_copy_cut(char *to, size_t max, struct hf_str text)
{
    size_t len = text.len < max ? text.len : max;

    while (len < text.len && len && ((uint8_t)text.ptr[len] & 0xC0) == 0x80)
        len--;
    if (len)
        memcpy(to, text.ptr, len);
    return len;
}

static void count_failed(struct tally *t, const struct hf_outbox_event *event)
{
    int64_t since_ms = event->ended_us ? (t->now_us - event->ended_us) / 1000 : 0;
    struct hf_str cause = event->cause.len ? event->cause : HF_STR("unknown");
    size_t i = 0;

    t->stats->failed++;
    if (since_ms > t->stats->oldest_failed_ms)
        t->stats->oldest_failed_ms = since_ms;
    if (cause.len > OUTBOX_CAUSE_MAX)
        cause.len = OUTBOX_CAUSE_MAX;
    while (i < t->kinds_len &&
           !hf_str_equal(hf_str_of(t->kinds[i].cause, t->kinds[i].cause_len), cause))
        i++;
    if (i == t->kinds_len) {
        if (t->kinds_len == CAUSES_MAX) {
            i = CAUSES_MAX - 1;
            t->kinds[i].cause_len =
                text_copy_cut(t->kinds[i].cause, OUTBOX_CAUSE_MAX, HF_STR("other causes"));
        } else {
            t->kinds_len++;
            t->kinds[i].cause_len = text_copy_cut(t->kinds[i].cause, OUTBOX_CAUSE_MAX, cause);
            t->kinds[i].example_len =
                text_copy_cut(t->kinds[i].example, EXAMPLE_MAX, event->error_text);
        }
    }
    t->kinds[i].count++;
}

static struct hf_query count_query(struct hf_scope *s, const struct tally *t, const char *partition,
                                   uint32_t bucket, struct hf_str after)
{
    struct holders h = {.s = s, .at = &t->outbox->at};
    bool history = partition[0] == 'h';
    struct hf_query query = {.table = t->outbox->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .consistent = HF_YES,
                             .limit = t->limit && t->left < OUTBOX_PAGE ? (int64_t)t->left : 0};

    NAMES(&h, "#pk");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, partition, bucket)));
    if (history) {
        NAMES(&h, "#ttl");
        VALUE(&h, HF_N(":now", t->now_us / 1000000));
        query.filter = HF_STR("#ttl > :now"); /* (3) */
        query.select = HF_SELECT_COUNT;
    } else {
        NAMES(&h, "#sk", "#type", "#time", "#due", "#urgent", "#attempts", "#next", "#ended",
              "#cause", "#error_text");
        query.projection = HF_STR("#pk, #sk, #type, #time, #due, #urgent, #attempts, #next, "
                                  "#ended, #cause, #error_text");
    }
    query.filter = hf__outbox_and(s, query.filter, hf__outbox_only_filter(&h, &t->only));
    if (t->limit && !query.limit)
        query.limit = OUTBOX_PAGE;
    if (after.len)
        query.start = hf__outbox_key(s, t->outbox, partition, bucket, after);
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    return query;
}

static void count_page(struct hf_scope *s, struct tally *t, const struct hf_query_result *page)
{
    for (size_t i = 0; i < page->items_len; i++) {
        struct hf_outbox_event event;

        if (hf__outbox_view(s, t->outbox, page->items[i], &event) != HF_OK)
            t->stats->unreadable += !t->part;
        else if (event.state == HF_OUTBOX_PENDING)
            count_pending(t, &event);
        else
            count_failed(t, &event);
    }
}

/* Count one partition of one bucket, or as much of it as the limit allows. */
static enum hf_status count_bucket(struct hf_scope *s, struct tally *t, const char *partition,
                                   uint32_t bucket)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    char after[SK_MAX + 1];
    size_t after_len = 0;

    do {
        struct hf_query query = count_query(s, t, partition, bucket, hf_str_of(after, after_len));
        struct hf_query_result page;
        struct hf_str last;

        if (t->limit && !t->left) {
            t->stats->whole = false;
            break;
        }
        TRY(hf_scope_built(s));
        TRY(hf_query(s, t->outbox->db, &query, &page));
        t->left -= t->limit ? (uint64_t)page.scanned_count : 0;
        if (partition[0] == 'h')
            t->stats->published += (uint64_t)page.count;
        count_page(s, t, &page);
        last = sk_of(t->outbox, page.last);
        after_len = text_copy_cut(after, SK_MAX, last);
        hf_scope_rewind(s, mark);
    } while (after_len);
    return HF_OK;
}

static int more_frequent(const void *a, const void *b)
{
    uint64_t one = ((const struct kind *)a)->count, other = ((const struct kind *)b)->count;

    return one < other ? 1 : one > other ? -1 : 0;
}

static enum hf_status causes_report(struct hf_scope *s, struct tally *t)
{
    struct hf_outbox_cause *causes = hf_scope_alloc(s, (t->kinds_len + 1) * sizeof(*causes));

    TRY(hf_scope_built(s));
    qsort(t->kinds, t->kinds_len, sizeof(*t->kinds), more_frequent);
    for (size_t i = 0; i < t->kinds_len; i++)
        causes[i] =
            (struct hf_outbox_cause){.cause = hf_str_of(t->kinds[i].cause, t->kinds[i].cause_len),
                                     .example =
                                         hf_str_of(t->kinds[i].example, t->kinds[i].example_len),
                                     .count = t->kinds[i].count};
    t->stats->causes = causes;
    t->stats->causes_len = t->kinds_len;
    return HF_OK;
}

/* Count each partition of each bucket that may have such events. */
static enum hf_status count_all(struct hf_scope *s, struct tally *t)
{
    uint32_t bucket = hf__outbox_only_bucket(t->outbox, &t->only);
    uint32_t from = bucket == UINT32_MAX ? 0 : bucket;
    uint32_t to = bucket == UINT32_MAX ? t->outbox->buckets : bucket + 1;

    for (uint32_t i = from; i < to; i++) {
        uint64_t before = t->stats->pending;

        TRY(count_bucket(s, t, "p", i));
        if (t->stats->pending - before > t->stats->fullest)
            t->stats->fullest = t->stats->pending - before;
    }
    for (uint32_t i = from; i < to; i++)
        TRY(count_bucket(s, t, "f", i));
    for (uint32_t i = from; i < to; i++)
        TRY(count_bucket(s, t, "h", i));
    return causes_report(s, t);
}

static enum hf_status events_count(struct hf_scope *s, struct hf_outbox *outbox, uint64_t limit,
                                   const struct outbox_only *only, struct hf_outbox_stats *stats)
{
    struct tally t = {.outbox = outbox,
                      .stats = stats,
                      .only = *only,
                      .part = only->type.len || only->key.len || only->tenant.len,
                      .kinds = hf_scope_alloc(s, CAUSES_MAX * sizeof(*t.kinds)),
                      .now_us = outbox->env.wall_us(outbox->env.user),
                      .limit = limit,
                      .left = limit};

    *stats = (struct hf_outbox_stats){.whole = true};
    TRY(hf_scope_built(s));
    TRY(hf__outbox_only_check(s, only));
    memset(t.kinds, 0, CAUSES_MAX * sizeof(*t.kinds));
    TRY(count_all(s, &t));
    return hf_scope_ok(s);
}

enum hf_status hf_outbox_stats(struct hf_scope *s, struct hf_outbox *outbox, uint64_t limit,
                               struct hf_outbox_stats *stats)
{
    return events_count(s, outbox, limit, &(struct outbox_only){.type = {NULL, 0}}, stats);
}

enum hf_status hf_outbox_stats_of(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_event_list_options *options,
                                  struct hf_outbox_stats *stats)
{
    struct hf_event_list_options o;

    OPTIONS_COPY(&o, options);
    return events_count(s, outbox, o.limit,
                        &(struct outbox_only){.type = o.type, .key = o.key, .tenant = o.tenant},
                        stats);
}
