/*
 * events/store/events_reader.c: reading all events in their order. events_order_close.c closes what
 * lies behind.
 *
 * The global order is kept in parts: a day has a part for each shard, a.DAY.SHARD, with commits
 * sorted by position; those of archived streams are in z.DAY.SHARD. A reader is on one day at a
 * time. It merges the parts of that day, commit by commit: commits do not interleave, as the
 * positions of one differ in their last two characters alone.
 *
 *     day      where it is; `final` when nothing can be appended to it any more
 *     bound    up to here all shards of the day were closed before what is at hand was read
 *     range    what is read now: behind the last range, up to the bound
 *
 * When all up to the bound was handed out it looks for the newest commit of each shard, closes all
 * of them up to the greatest of these, and reads on from where it was up to there. When there is
 * none but a later day is there, it closes its day for good, reads what is left, and moves on.
 *
 * Closing refuses appends that are under way and have taken their position already: they have to
 * try again. So a reader leaves alone what is younger than settle_ms as long as there is something
 * older, and otherwise waits for so long, once, before it closes. In a steady flow of appends whose
 * clocks agree nobody is refused, and what a reader sees is settle_ms old. Nothing but speed rests
 * on clocks here, where a query sees a transaction as a whole or not at all, as with our engine. A
 * service whose queries may see one item of a transaction and not the other yet (Amazon's do, for
 * the moment in which it takes effect) needs that moment to be shorter than settle_ms: there it is
 * to be some hundred milliseconds.
 *
 * What always holds:
 *
 *  (1) An event is handed out only when all shards of its day are closed at its position or behind,
 *      by a write, or a consistent read, that came before the query which found the event; and when
 *      every earlier day is closed for good.
 *  (2) A reader that fails can be called again: it goes on behind the last event it handed out.
 *  (3) The memory of a reader is one page of each part, one page of what is handed out, and some
 *      megabytes of payloads and of events of large appends.
 *  (4) With archived streams a.DAY.SHARD and z.DAY.SHARD are read one after the other, and commits
 *      move between them. What goes the way that we read is seen once or twice; what goes the other
 *      way may be missed, so moves that way are counted (events_archive.c): when one has happened
 *      since we began with the range, nothing of what was read is handed out, and all that is left
 *      of the range is read again, the other way round. So neither many archives nor many
 *      unarchives hold a reader up; only both at once do.
 */
#include "events/store/order_close.h"

#include "base/assert_held.h"

#include <holdfast/pages.h>

enum {
    LIMIT = 1000,
    LIMIT_MAX = 10000,
    SETTLE_MS = 5,
    FIRST_PAGE = 8,  /* commits of each part in the first page, so that it comes fast */
    PAGE_ALL = 8192, /* commits of all parts at hand at most */
    LARGE_CHUNK = 64,
    FETCHED_MAX = 8 * 1024 * 1024, /* bytes of payloads and large events in one page, about */
    MOVED_DELAY_MS = 10,
    MOVED_ATTEMPTS = 100
};

struct part {
    char kind;
    uint32_t shard;
    struct hf_pages *pages; /* NULL: not begun, or read to `to` */
    uint32_t page;          /* commits of each */
    struct events_position to;
    struct events_position last; /* the range was read up to here; "": not begun */
    const struct hf_item *items; /* the page at hand */
    size_t items_len, at;
    struct events_commit commit; /* items[at], when it was viewed in this step */
    bool has_commit;
    uint32_t number; /* of its next event */
};

struct hf_events_reader {
    struct hf_env env;
    struct hf_events *store;
    struct hf_scope *kept;  /* texts of the options */
    struct hf_scope *extra; /* of what is handed out and is not in a page */
    struct hf_str domain, type;
    bool type_prefix, archived, no_payload;
    uint32_t limit, settle_ms;
    struct events_position position; /* the last event that was looked at; "": none */
    struct events_position until;    /* "": no end */
    struct day day;
    bool final;                   /* of the day */
    struct events_position bound; /* the day is closed up to there */
    struct events_position from;  /* the range: behind that, */
    struct events_position to;    /* up to that */
    bool in_range;                /* not all of the range was handed out */
    struct events_moves moves;    /* before the range was begun, (4) */
    bool has_moves;               /* these are known */
    bool back;                    /* archived parts are read first */
    uint32_t page;                /* commits of a page */
    struct part *parts;
    size_t parts_len;
    struct hf_stored_event *out;
};

/* What always holds between two calls of the reader. */
static void reader_check(const struct hf_events_reader *r)
{
    const size_t shards = r->store->shards;

    assert(r->limit > 0 && r->limit <= LIMIT_MAX && r->page > 0);
    assert(r->parts_len == (r->archived ? 2 : 1) * shards);
    assert(!r->final || r->day.text[0]);
    assert(!r->in_range || (r->day.text[0] && r->to.text[0]));
    assert(!position_is_before(&r->bound, &r->to)); /* nothing is read that is not closed */
    for (size_t i = 0; i < r->parts_len; i++) {
        const struct part *part = &r->parts[i];

        assert(part->kind == (i < shards ? 'a' : 'z') && part->shard == i % shards);
        assert(part->at <= part->items_len && (part->items || !part->items_len));
        assert(!part->has_commit || part->at < part->items_len);
    }
}

/* ---- a range -------------------------------------------------------------------------------- */

static void part_leave(struct part *part)
{
    hf_pages_free(part->pages);
    *part = (struct part){.kind = part->kind, .shard = part->shard};
}

/* Read behind what was handed out, up to the new bound. A bound is the position of a commit, and a
 * reader may begin in the middle of just that one. */
static void range_begin(struct hf_events_reader *r, const struct events_position *bound)
{
    struct events_position first = r->position;

    if (first.text[0])
        hf__events_position_number(&first, 0);
    for (size_t i = 0; i < r->parts_len; i++)
        part_leave(&r->parts[i]);
    r->from = r->position;
    r->bound = *bound;
    r->to = r->until.text[0] && position_is_before(&r->until, bound) ? r->until : *bound;
    r->in_range = r->to.text[0] && !position_is_before(&r->to, &first);
    r->has_moves = false;
    assert(!position_is_before(&r->bound, &r->to));
}

/* The first key that may be in a range: commits whose first event is before `from` may have events
 * behind it; what was read is not read again. */
static struct hf_str part_from(struct hf_scope *s, const struct hf_events_reader *r,
                               const struct part *part)
{
    struct events_position first = r->from;

    if (part->last.text[0])
        return hf_scope_format(s, "%s0", part->last.text);
    if (!first.text[0])
        return HF_STR("0");
    hf__events_position_number(&first, 0);
    return hf_scope_copy(s, position_str(&first));
}

static enum hf_status part_begin(struct hf_scope *s, struct hf_events_reader *r, struct part *part,
                                 const struct events_position *to)
{
    struct hf_query query = {
        .table = r->store->table,
        .key_condition = HF_STR("#pk = :part AND #sk BETWEEN :from AND :to"),
        .names = HF_ITEM(s, HF_S("#pk", HF_STR("pk")), HF_S("#sk", HF_STR("sk"))),
        .values =
            HF_ITEM(s, HF_S(":part", hf__events_part(s, part->kind, day_str(&r->day), part->shard)),
                    HF_S(":from", part_from(s, r, part)), HF_S(":to", position_str(to))),
        .limit = r->page,
        .consistent = HF_YES};

    TRY(hf_scope_built(s));
    part->page = r->page;
    part->to = *to;
    return hf_pages_query(s, r->store->db, &query, NULL, &part->pages);
}

/* The next page of a part, up to that position; none: it was read up to there. */
static enum hf_status part_read(struct hf_scope *s, struct hf_events_reader *r, struct part *part,
                                const struct events_position *to)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_page page;

    assert(!part->has_commit && part->at == part->items_len); /* the page at hand is used up */
    part->items = NULL;
    part->items_len = part->at = 0;
    if (part->pages && part->page != r->page) { /* pages may be larger now */
        hf_pages_free(part->pages);
        part->pages = NULL;
        if (!position_is_before(&part->last, to))
            return HF_OK;
    }
    if (!part->pages)
        TRY(part_begin(s, r, part, to));
    TRY(hf_pages_next(s, part->pages, &page));
    hf_scope_rewind(s, mark);
    if (page.found && page.len) {
        part->items = page.items;
        part->items_len = page.len;
        part->last = position_of(hf_value_str(hf_item_get(page.items[page.len - 1], HF_STR("sk"))));
    } else {
        part->last = part->to;
        hf_pages_free(part->pages);
        part->pages = NULL;
    }
    return HF_OK;
}

/* The next commit of the page at hand. */
static enum hf_status part_view(struct hf_scope *s, struct hf_events_reader *r, struct part *part)
{
    enum hf_status status;

    assert(!part->has_commit && part->at < part->items_len);
    status = hf__events_commit_view(r->extra, part->items[part->at], &part->commit);
    if (status != HF_OK)
        return hf_scope_fail_from(s, status, r->extra);
    part->has_commit = true;
    return HF_OK;
}

/* Have a commit of the part at hand, unless there is none up to that position. */
static enum hf_status part_fill(struct hf_scope *s, struct hf_events_reader *r, struct part *part,
                                const struct events_position *to)
{
    while (!part->has_commit) {
        if (part->at < part->items_len) {
            TRY(part_view(s, r, part));
        } else if (part->pages || position_is_before(&part->last, to)) {
            TRY(part_read(s, r, part, to));
        } else {
            break;
        }
    }
    return HF_OK;
}

/*
 * All parts, those of one kind first. One of the other kind is read only up to where that of the
 * same shard was read before, so what leaves that one meanwhile shows there. (4)
 */
static enum hf_status range_fill(struct hf_scope *s, struct hf_events_reader *r)
{
    const size_t shards = r->store->shards;

    for (size_t i = 0; i < r->parts_len; i++) {
        struct part *part = &r->parts[r->back ? (i + shards) % r->parts_len : i];
        const struct part *before =
            i >= shards ? &r->parts[r->back ? part->shard + shards : part->shard] : NULL;

        TRY(part_fill(s, r, part, before && before->has_commit ? &before->last : &r->to));
    }
    return HF_OK;
}

/* (4) */
static enum hf_status range_read(struct hf_scope *s, struct hf_events_reader *r)
{
    struct events_moves now;

    if (!r->archived)
        return range_fill(s, r);
    for (int attempt = 1; attempt <= MOVED_ATTEMPTS; attempt++) {
        if (!r->has_moves)
            TRY(hf__events_moves(s, r->store, &r->moves));
        r->has_moves = true;
        TRY(range_fill(s, r));
        TRY(hf__events_moves(s, r->store, &now));
        if (r->back ? now.in == r->moves.in : now.out == r->moves.out)
            return HF_OK;
        range_begin(r, &r->bound);
        r->back = !r->back;
        if (attempt > 2)
            TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&r->env, MOVED_DELAY_MS)));
    }
    return hf_scope_fail(
        s, HF_IN_USE,
        "streams of \"%.*s\" are archived and unarchived too often to be read in order; try again",
        HF_FMT(r->store->table));
}

/* ---- handing out ---------------------------------------------------------------------------- */

static bool is_wanted(const struct hf_events_reader *r, const struct hf_stored_event *event)
{
    if (r->domain.len && !hf_str_equal(r->domain, event->stream.domain))
        return false;
    if (r->type_prefix)
        return event->type.len >= r->type.len &&
               memcmp(event->type.ptr, r->type.ptr, r->type.len) == 0;
    return !r->type.ptr || hf_str_equal(r->type, event->type);
}

/* The payload of one that has it in the blob store; its size is added to what was fetched. */
static enum hf_status payload_fetch(struct hf_scope *s, struct hf_events_reader *r,
                                    struct hf_stored_event *event, size_t *fetched)
{
    enum hf_status status;

    if (!event->blob.ptr || r->no_payload)
        return HF_OK;
    status = hf__events_payloads(r->extra, r->store, event, 1);
    if (status != HF_OK)
        return hf_scope_fail_from(s, status, r->extra);
    *fetched += event->payload.len;
    return HF_OK;
}

/* Go on behind that commit. */
static void part_step(struct part *part)
{
    assert(part->has_commit && part->at < part->items_len);
    part->at++;
    part->number = 0;
    part->has_commit = false;
}

/* Is the commit of another domain than is asked for? Then it is passed over unread. */
static bool commit_pass_over(struct hf_events_reader *r, struct part *part)
{
    struct events_position last = position_of(part->commit.position);

    if (!r->domain.len || hf_str_equal(r->domain, part->commit.stream.domain))
        return false;
    hf__events_position_number(&last, EVENTS_COMMIT_MAX - 1);
    if (r->until.text[0] && position_is_before(&r->until, &last))
        return false;
    if (position_is_before(&r->position, &last))
        r->position = last;
    return true;
}

/*
 * Take of these events, which follow each other, those that are wanted. run->next is the number of
 * the event to go on with afterwards. (2): with a failure those before it were taken.
 */
static enum hf_status events_take(struct hf_scope *s, struct hf_events_reader *r,
                                  struct events_run *run, size_t *len, size_t *fetched)
{
    struct hf_stored_event *out = run->events;

    assert(out == r->out + *len && run->len <= r->limit - *len);
    for (size_t i = 0; i < run->len; i++) {
        struct events_position position = position_of(out[i].position);

        if (*fetched > FETCHED_MAX) { /* (3) */
            (void)hf__events_position_read(out[i].position, NULL, NULL, &run->next);
            return HF_OK;
        }
        if (!position_is_before(&r->position, &position))
            continue;
        if (r->until.text[0] && position_is_before(&r->until, &position)) {
            run->next = 0;
            return HF_OK;
        }
        if (is_wanted(r, &out[i])) {
            enum hf_status status = payload_fetch(s, r, &out[i], fetched);

            if (status != HF_OK) {
                (void)hf__events_position_read(out[i].position, NULL, NULL, &run->next);
                return status;
            }
            if (&out[i] != &r->out[*len])
                r->out[*len] = out[i];
            ++*len;
        }
        r->position = position;
    }
    return HF_OK;
}

/* Events of the commit at hand, as many as there is room for. */
static enum hf_status commit_emit(struct hf_scope *s, struct hf_events_reader *r, struct part *part,
                                  size_t *len, size_t *fetched)
{
    struct hf_stored_event *out = r->out + *len;
    bool large = part->commit.large.ptr != NULL;
    struct events_run run = {.from = part->number, .events = out, .cap = r->limit - *len};
    size_t bytes = 0;
    enum hf_status status;

    assert(part->has_commit && *len < r->limit);
    if (commit_pass_over(r, part)) {
        part_step(part);
        return HF_OK;
    }
    if (large && run.cap > LARGE_CHUNK)
        run.cap = LARGE_CHUNK;
    status = hf__events_commit_events(r->extra, r->store, &part->commit, &run);
    if (status != HF_OK)
        return hf_scope_fail_from(s, status, r->extra);
    for (size_t i = 0; large && i < run.len; i++) /* those that are not wanted, too */
        bytes += out[i].payload.len;
    assert(run.len <= run.cap);
    status = events_take(s, r, &run, len, fetched);
    *fetched += bytes;
    part->number = run.next;
    if (status == HF_OK && !run.next)
        part_step(part);
    return status;
}

/* The part with the least commit at hand; NULL: none, or a part has to be read first. */
static struct part *part_least(struct hf_events_reader *r)
{
    struct part *found = NULL;

    for (size_t i = 0; i < r->parts_len; i++) {
        struct part *part = &r->parts[i];

        if (!part->has_commit && part->at < part->items_len)
            return NULL;
        if (!part->has_commit && part->pages)
            return NULL;
        if (part->has_commit && (!found || memcmp(part->commit.position.ptr,
                                                  found->commit.position.ptr, HF_POSITION_LEN) < 0))
            found = part;
    }
    return found;
}

/* ---- moving on ------------------------------------------------------------------------------ */

/*
 * Up to where to close next: the newest commit behind the bound that no append of now is likely to
 * come before. "": there is none.
 */
static enum hf_status choose_commit(struct hf_scope *s, struct hf_events_reader *r,
                                    struct events_position *to)
{
    struct hf_events *store = r->store;
    int64_t settled_ms = hf__env_wall_ms(&r->env) - r->settle_ms, newest_ms = 0;
    struct events_position settled, older;

    TRY(hf__events_newest_of(s, store, day_str(&r->day), r->archived, &r->bound, &r->until, to));
    if (!to->text[0])
        return HF_OK;
    (void)hf__events_position_read(position_str(to), &newest_ms, NULL, NULL);
    if (newest_ms <= settled_ms)
        return HF_OK;
    settled = hf__events_position_floor(settled_ms + 1);
    if (position_is_before(&r->bound, &settled)) {
        TRY(hf__events_newest_of(s, store, day_str(&r->day), r->archived, &r->bound, &settled,
                                 &older));
        if (older.text[0]) {
            *to = older;
            return HF_OK;
        }
    }
    if (newest_ms - settled_ms < r->settle_ms)
        return hf_scope_sleep_ms(s, (uint32_t)(newest_ms - settled_ms));
    return hf_scope_sleep_ms(s, r->settle_ms); /* a clock is ahead of ours */
}

/* The same, as the last position that commit may have: a reader may have begun in the middle of it.
 */
static enum hf_status choose_bound(struct hf_scope *s, struct hf_events_reader *r,
                                   struct events_position *to)
{
    TRY(choose_commit(s, r, to));
    if (to->text[0])
        hf__events_position_number(to, EVENTS_COMMIT_MAX - 1);
    return HF_OK;
}

/* The day that follows; none: `day` is "". */
static enum hf_status day_next(struct hf_scope *s, struct hf_events_reader *r, struct day *day)
{
    char from[EVENTS_DAY_LEN + 2] = "0";
    struct day again;
    int64_t ms;

    if (r->day.text[0]) {
        memcpy(from, r->day.text, EVENTS_DAY_LEN);
        memcpy(from + EVENTS_DAY_LEN, "0", 2);
    } else if (hf__events_position_read(position_str(&r->position), &ms, NULL, NULL)) {
        hf__events_day(ms, from);
    }
    TRY(hf__events_day_find(s, r->store, hf_str_of(from, strlen(from)), false, &again));
    do {
        *day = again;
        if (!day->text[0])
            return HF_OK;
        if (!day->closed)
            TRY(hf__events_close_before(s, r->store, day_str(day)));
        TRY(hf__events_day_find(s, r->store, hf_str_of(from, strlen(from)), false, &again));
    } while (strcmp(again.text, day->text) != 0);
    *day = again;
    return HF_OK;
}

static enum hf_status day_enter(struct hf_scope *s, struct hf_events_reader *r,
                                const struct day *day)
{
    struct events_position bound = {0};

    if (day->closed)
        bound = hf__events_day_end(day_str(day));
    else
        TRY(hf__events_close_upto(s, r->store, day_str(day), &bound, &bound));
    r->day = *day;
    r->final = day->closed;
    range_begin(r, &bound);
    return HF_OK;
}

/* All up to the bound was handed out: find more. */
static enum hf_status reader_advance(struct hf_scope *s, struct hf_events_reader *r, bool *moved)
{
    struct events_position to;
    struct day later;

    assert(!r->in_range);
    *moved = false;
    if (r->until.text[0] && !position_is_before(&r->bound, &r->until))
        return HF_OK;
    if (r->day.text[0] && !r->final) {
        TRY(choose_bound(s, r, &to));
        if (to.text[0]) {
            TRY(hf__events_close_upto(s, r->store, day_str(&r->day), &to, &to));
            range_begin(r, &to);
            *moved = true;
            return HF_OK;
        }
    }
    TRY(day_next(s, r, &later)); /* closes ours */
    if (!later.text[0])
        return HF_OK;
    if (r->day.text[0] && !r->final) {
        r->final = true;
        to = hf__events_day_end(day_str(&r->day));
        range_begin(r, &to);
    } else {
        TRY(day_enter(s, r, &later));
    }
    *moved = true;
    return HF_OK;
}

/* ---- the reader ----------------------------------------------------------------------------- */

enum hf_status hf__events_reader_step(struct hf_scope *s, struct hf_events_reader *r,
                                      const struct hf_stored_event **events, size_t *len,
                                      bool *more)
{
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    struct part *part;
    size_t fetched = 0;

    *events = r->out;
    *len = 0;
    *more = true;
    hf_scope_reset(r->extra);
    if (left_ms != UINT32_MAX)
        hf_scope_timeout_ms(r->extra, left_ms ? left_ms : 1);
    for (size_t i = 0; i < r->parts_len; i++)
        r->parts[i].has_commit = false;
    if (DEV_CHECKS)
        reader_check(r);
    if (!r->in_range)
        return reader_advance(s, r, more);
    TRY(range_read(s, r));
    while (*len < r->limit && fetched <= FETCHED_MAX && (part = part_least(r)) != NULL) {
        enum hf_status status = commit_emit(s, r, part, len, &fetched);

        /* What was handed out is in the pages at hand: none is read before the next call. */
        if (status == HF_OK && !part->has_commit && part->at < part->items_len)
            status = part_view(s, r, part);
        if (status != HF_OK)
            return *len ? HF_OK : status; /* (2): the next call fails again */
    }
    r->page = (uint32_t)(PAGE_ALL / r->parts_len);
    r->in_range = false;
    for (size_t i = 0; i < r->parts_len && !r->in_range; i++)
        r->in_range = r->parts[i].at < r->parts[i].items_len || r->parts[i].pages ||
                      position_is_before(&r->parts[i].last, &r->to);
    assert(*len <= r->limit);
    if (DEV_CHECKS)
        reader_check(r);
    return HF_OK;
}

enum hf_status hf_events_reader_next(struct hf_scope *s, struct hf_events_reader *r,
                                     const struct hf_stored_event **events, size_t *len)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    bool more = true;

    call_begins(s);
    *events = NULL;
    *len = 0;
    do {
        hf_scope_rewind(s, mark);
        TRY(hf__events_reader_step(s, r, events, len, &more));
    } while (!*len && more);
    return call_ends(s, HF_OK);
}

void hf__events_reader_payloads(struct hf_events_reader *r, bool fetch)
{
    r->no_payload = !fetch;
}

struct hf_str hf_events_reader_position(const struct hf_events_reader *r)
{
    return r->position.text[0] ? position_str(&r->position) : (struct hf_str){0};
}

void hf_events_reader_close(struct hf_events_reader *r)
{
    struct hf_env env;

    if (!r)
        return;
    env = r->env;
    for (size_t i = 0; r->parts && i < r->parts_len; i++)
        hf_pages_free(r->parts[i].pages);
    hf__env_free(&env, r->parts, r->parts_len * sizeof(*r->parts));
    hf__env_free(&env, r->out, r->limit * sizeof(*r->out));
    hf_scope_free(r->extra);
    hf_scope_free(r->kept);
    hf__env_free(&env, r, sizeof(*r));
}

/* The greatest position before that time. */
static struct events_position before_time(int64_t us)
{
    int64_t ms = us > 0 ? (us + 999) / 1000 : 0;
    struct events_position position = {0};

    if (!ms)
        return position;
    position = hf__events_position_floor(ms - 1);
    memcpy(position.text + HF_POSITION_LEN - 16, "ZZZZ1ZZZZZZZZZZZ", 16);
    return position;
}

static enum hf_status check_options(struct hf_scope *s, const struct hf_events_all_options *o)
{
    if (o->after.ptr && !hf__events_position_read(o->after, NULL, NULL, NULL))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" (after) is not a position", HF_FMT(o->after));
    if (o->until.ptr && !hf__events_position_read(o->until, NULL, NULL, NULL))
        return hf_scope_fail(s, HF_INVALID, "\"%.*s\" (until) is not a position", HF_FMT(o->until));
    if (o->after.ptr && o->from_us)
        return hf_scope_fail(
            s, HF_INVALID,
            "a reader begins behind a position (after) or at a time (from_us), not both");
    if (o->from_us < 0)
        return hf_scope_fail(s, HF_INVALID, "a reader cannot begin before 1970");
    return HF_OK;
}

static void set_type(struct hf_events_reader *r, struct hf_str type)
{
    if (!type.ptr)
        return;
    r->type_prefix = type.len && type.ptr[type.len - 1] == '*';
    type.len -= r->type_prefix;
    r->type = hf_scope_copy(r->kept, type);
}

enum hf_status hf_events_reader_open(struct hf_scope *s, struct hf_events *store,
                                     const struct hf_events_all_options *options,
                                     struct hf_events_reader **reader)
{
    struct hf_events_all_options o;
    struct hf_events_reader *r;

    call_begins(s);
    *reader = NULL;
    OPTIONS_COPY(&o, options);
    TRY(check_options(s, &o));
    r = hf__env_zalloc(&store->env, sizeof(*r));
    if (!r)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a reader of events");
    r->env = store->env;
    r->store = store;
    r->limit = !o.limit ? LIMIT : o.limit < LIMIT_MAX ? o.limit : LIMIT_MAX;
    r->parts_len = (o.archived ? 2 : 1) * (size_t)store->shards;
    r->kept = hf_scope_new(&store->env);
    r->extra = hf_scope_new(&store->env);
    r->parts = hf__env_zalloc(&store->env, r->parts_len * sizeof(*r->parts));
    r->out = hf__env_zalloc(&store->env, r->limit * sizeof(*r->out));
    if (r->kept && r->extra && r->parts && r->out) {
        r->domain = o.domain.len ? hf_scope_copy(r->kept, o.domain) : (struct hf_str){0};
        set_type(r, o.type);
    }
    if (!r->kept || !r->extra || !r->parts || !r->out || hf_scope_built(r->kept) != HF_OK) {
        hf_events_reader_close(r);
        return hf_scope_fail(s, HF_NOMEM, "no memory for a reader of events");
    }
    r->archived = o.archived;
    r->no_payload = o.no_payload;
    r->settle_ms = o.settle_ms ? o.settle_ms : SETTLE_MS;
    r->page = FIRST_PAGE;
    r->position = o.from_us ? before_time(o.from_us) : position_of(o.after);
    r->until = position_of(o.until);
    for (size_t i = 0; i < r->parts_len; i++) {
        r->parts[i].kind = i < store->shards ? 'a' : 'z';
        r->parts[i].shard = (uint32_t)(i % store->shards);
    }
    *reader = r;
    return HF_OK;
}
