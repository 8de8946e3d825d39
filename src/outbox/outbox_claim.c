/*
 * outbox/outbox_claim.c: claims on single events, for competing workers: taking them.
 *
 * A claim is four attributes of an event that waits: owner (for people), token (an id of this
 * claim), lease (until when, by the owner's clock) and fence, which grows with every claim and
 * stays when the claim has ended; and opener (opener.c), which means nothing without a token. What
 * always holds:
 *
 *  (1) A claim is taken with the fence that was seen in its condition, so of many who read the
 *      same event one wins, and a request that arrives late takes nothing.
 *  (2) The lease is counted from its own write, not from when a batch was begun, and a claim is
 *      taken over only if that lease, as it was seen, has ended by more than the skew, or is one
 *      of the dead (opener.c).
 *  (3) Completing, failing, extending and releasing, which are in outbox_claimed.c, have the token and
 *      the fence of the claim in their condition.
 *  (4) A claim that was taken over is a failed attempt: an event that kills its workers becomes a dead
 *      letter in the end, with a text that says so.
 *  (5) Workers begin at random buckets, and leave a bucket where others claim until they have looked
 *      at all buckets, so that they rarely meet. All due events are found: pages of which others
 *      have claimed everything are passed.
 *  (6) A claim that may have been written, but cannot be returned to the caller, is undone: with the
 *      fence that it has or would have had, so that a late request cannot write it. Otherwise it
 *      would lock the event for a lease, and count as an attempt that nobody made.
 *  (7) Relays claim more than they handle at once, and count attempts themselves when they begin
 *      (`ahead`). When a relay ends, it is not known which of its events were begun: they are
 *      suspects, and no attempt is counted. Suspects are counted when they begin: relay_suspect.c.
 *  (8) After a claim that saw no event at all, the next one first asks for all buckets at once which
 *      of them have events (hf__outbox_look()), and reads only those.
 */
#include "outbox/outbox_claim.h"
#include "coord/placeholders.h"

enum {
    LIMIT = 50,
    SKEW_MS = 1000,
    MAX_ATTEMPTS = 5,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 30000,
    REFUSALS = 2, /* in a row, after which a bucket is left to others for now */
    ROUNDS = 3,
    SMALL_PAGE = 10,
    TAKE_BACK_MS = 1000
};

/* A call that claims events: one, or many. */
struct claiming {
    struct hf_outbox *outbox;
    struct hf_claim_options o;
    struct outbox_only only;
    bool ahead; /* (7) */
    struct hf_claimed_event *events;
    size_t len, cap;
    uint64_t refused, unsure;
    uint64_t seen;                                    /* events that were read */
    uint64_t left[(HF_OUTBOX_BUCKETS_MAX + 63) / 64]; /* buckets that were left to others (5) */
    uint64_t bare[(HF_OUTBOX_BUCKETS_MAX + 63) / 64]; /* buckets without events (8) */
};

/* ---- options -------------------------------------------------------------------------------- */

enum hf_status hf__outbox_claim_options(struct hf_scope *s, const struct hf_claim_options *options,
                                        struct hf_claim_options *o)
{
    OPTIONS_COPY(o, options);
    o->limit = o->limit ? o->limit : LIMIT;
    o->lease_ms = o->lease_ms ? o->lease_ms : OUTBOX_LEASE_MS;
    o->skew_ms = o->skew_ms ? o->skew_ms : o->lease_ms > SKEW_MS ? SKEW_MS : o->lease_ms / 2;
    o->max_attempts = o->max_attempts ? o->max_attempts : MAX_ATTEMPTS;
    o->backoff_ms = o->backoff_ms ? o->backoff_ms : BACKOFF_MS;
    o->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : BACKOFF_MAX_MS;
    if (o->skew_ms >= o->lease_ms)
        return hf_scope_fail(s, HF_INVALID, "a skew of %u ms is not less than the lease of %u ms",
                             o->skew_ms, o->lease_ms);
    if (o->owner.len > HF_EVENT_TEXT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX, o->owner.len),
                                   "the owner has %zu bytes, more than %d", o->owner.len,
                                   HF_EVENT_TEXT_MAX);
    o->owner = hf__pattern_owner(s, o->owner);
    return hf_scope_built(s);
}

/* ---- the requests --------------------------------------------------------------------------- */

static bool is_orphan(const struct hf_outbox *outbox, struct hf_item item)
{
    return hf__pattern_is_orphan(outbox->db, hf_value_str(hf_item_get(item, HF_STR("opener"))));
}

/* "It is as it was seen": unclaimed, or claimed by one whose lease has ended (1) (2). */
static struct hf_str seen_condition(struct holders *h, const struct hf_outbox_event *event,
                                    int64_t now_us)
{
    struct hf_str token = claim_token(event->item);
    int64_t fence = claim_fence(event->item);

    NAMES(h, "#pk", "#token", "#fence");
    if (fence)
        VALUE(h, HF_N(":seen", fence));
    if (token.len) {
        NAMES(h, "#lease");
        VALUE(h, HF_S(":held", token));
        VALUE(h, HF_N(":until", event->lease_us));
        return HF_STR("attribute_exists(#pk) AND #token = :held AND #lease = :until AND "
                      "#fence = :seen");
    }
    NAMES(h, "#next");
    VALUE(h, HF_N(":now", now_us));
    return fence ? HF_STR("attribute_exists(#pk) AND attribute_not_exists(#token) AND "
                          "#fence = :seen AND (attribute_not_exists(#next) OR #next <= :now)")
                 : HF_STR("attribute_exists(#pk) AND attribute_not_exists(#token) AND "
                          "attribute_not_exists(#fence) AND (attribute_not_exists(#next) OR "
                          "#next <= :now)");
}

/* (4) The failure of an event whose claim has expired. */
static struct outbox_failure silent_failure(struct hf_scope *s, const struct hf_outbox_event *event)
{
    struct hf_str text =
        hf_scope_format(s, "\"%.*s\" claimed it and did not finish within its lease",
                        HF_FMT(event->owner));
    struct hf_error error = {.status = HF_TIMEOUT, .message = text};

    return hf__outbox_failure(s, &error);
}

/* (7) Was it claimed by a relay, which counts its attempts itself? */
static bool is_ahead(const struct hf_outbox_event *event)
{
    return hf_value_true(hf_item_get(event->item, HF_STR("ahead")));
}

bool hf__outbox_is_suspect(const struct hf_outbox_event *event)
{
    return event->crashes || hf_value_true(hf_item_get(event->item, HF_STR("suspect")));
}

/* (4) What a takeover records of the old claim: an attempt, or (7) a suspect. */
static struct hf_str taken_over(struct hf_scope *s, const struct hf_outbox_event *event,
                                int64_t now_us, struct holders *h)
{
    struct outbox_failure failure;

    if (is_ahead(event)) {
        NAMES(h, "#suspect");
        VALUE(h, HF_BOOL(":suspect", true));
        return HF_STR(", #suspect = :suspect");
    }
    failure = silent_failure(s, event);
    NAMES(h, "#attempts", "#tried", "#error", "#error_text", "#cause");
    VALUE(h, HF_N(":attempts", event->attempts + UINT64_C(1)));
    VALUE(h, HF_N(":tried", event->lease_us < now_us ? event->lease_us : now_us));
    VALUE(h, HF_S(":error", failure.name));
    VALUE(h, HF_S(":text", failure.text));
    VALUE(h, HF_S(":cause", failure.cause));
    return HF_STR(", #attempts = :attempts, #tried = :tried, #error = :error, "
                  "#error_text = :text, #cause = :cause");
}

static struct hf_update_item claim_request(struct hf_scope *s, const struct claiming *c,
                                           const struct hf_outbox_event *event, struct hf_str token)
{
    const struct hf_outbox *outbox = c->outbox;
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_str opener = hf_db_opener(outbox->db);
    int64_t now_us = claim_now_us(outbox); /* (2) */
    struct hf_update_item update = {.table = outbox->table,
                                    .key =
                                        hf__outbox_key(s, outbox, "p", event->bucket, event->ref),
                                    .returns = HF_RETURN_ALL_NEW};
    const bool ahead = c->ahead, forget_ahead = !ahead && is_ahead(event);
    struct hf_str left = {0};

    update.condition = seen_condition(&h, event, now_us);
    NAMES(&h, "#owner", "#lease", "#opener");
    if (opener.len)
        VALUE(&h, HF_S(":opener", opener));
    VALUE(&h, HF_S(":owner", c->o.owner));
    VALUE(&h, HF_S(":token", token));
    VALUE(&h, HF_N(":lease", now_us + (int64_t)c->o.lease_ms * 1000));
    VALUE(&h, HF_N(":fence", claim_fence(event->item) + 1));
    if (claim_token(event->item).len)
        left = taken_over(s, event, now_us, &h);
    if (ahead || forget_ahead)
        NAMES(&h, "#ahead");
    if (ahead)
        VALUE(&h, HF_BOOL(":ahead", true));
    update.update = hf_scope_format(s,
                                    "SET #owner = :owner, #token = :token, #lease = :lease, "
                                    "#fence = :fence%.*s%s%s%s",
                                    HF_FMT(left), ahead ? ", #ahead = :ahead" : "",
                                    opener.len ? ", #opener = :opener" : " REMOVE #opener",
                                    !forget_ahead ? ""
                                    : opener.len  ? " REMOVE #ahead"
                                                  : ", #ahead");
    update.names = hf_item_make(s, h.names, h.names_len);
    update.values = hf_item_make(s, h.values, h.values_len);
    return update;
}

/* ---- claiming ------------------------------------------------------------------------------- */

static bool is_over(const struct hf_outbox *outbox, const struct hf_outbox_event *event,
                    const struct hf_claim_options *o, int64_t now_us)
{
    return event->lease_us + (int64_t)o->skew_ms * 1000 < now_us || is_orphan(outbox, event->item);
}

/* Read the item of an event that was claimed. */
static enum hf_status claim_read(struct hf_scope *s, const struct hf_outbox *outbox,
                                 struct hf_item item, struct hf_claimed_event *event)
{
    TRY(hf__outbox_view(s, outbox, item, &event->event));
    event->token = claim_token(item);
    event->fence = (uint64_t)claim_fence(item);
    return hf_scope_ok(s);
}

/* (4) Make a dead letter of an event that was begun too often. HF_CONDITION: it has changed. */
static enum hf_status event_exhaust(struct hf_scope *s, struct hf_outbox *outbox,
                                    const struct hf_outbox_event *event)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct outbox_failure failure = silent_failure(s, event);
    const struct outbox_last_try last = {.id = id_str(&id),
                                         .attempts = event->attempts + UINT64_C(1),
                                         .failure = &failure,
                                         .now_us = claim_now_us(outbox)};
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref)};

    del.condition = seen_condition(&h, event, 0);
    del.names = hf_item_make(s, h.names, h.names_len);
    del.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    return hf__outbox_make_dead_letter(s, outbox, &del,
                                       hf__outbox_failed_item(s, outbox, event, &last), last.id);
}

/* The same with an event that has no room for a claim: docs/emitting.md. */
static enum hf_status event_refuse(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_outbox_event *event)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_error error = {.status = HF_LIMIT,
                             .message = hf_scope_format(
                                 s, "it has %zu bytes, and only %d or fewer leave room for a claim",
                                 hf_item_size(event->item), HF_EVENT_SIZE_MAX)};
    struct outbox_failure failure = hf__outbox_failure(s, &error);
    const struct outbox_last_try last = {.id = id_str(&id),
                                         .attempts = event->attempts,
                                         .failure = &failure,
                                         .now_us = claim_now_us(outbox)};
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref)};

    del.condition = seen_condition(&h, event, last.now_us);
    del.names = hf_item_make(s, h.names, h.names_len);
    del.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    return hf__outbox_make_dead_letter(s, outbox, &del,
                                       hf__outbox_failed_item(s, outbox, event, &last), last.id);
}

static struct hf_update_item take_back_request(struct hf_scope *s, const struct hf_outbox *outbox,
                                               const struct hf_outbox_event *seen,
                                               struct hf_str token)
{
    struct holders h = {.s = s, .at = &outbox->at};
    int64_t fence = claim_fence(seen->item);
    struct hf_update_item update = {
        .table = outbox->table,
        .key = hf__outbox_key(s, outbox, "p", seen->bucket, seen->ref),
        .update = HF_STR("SET #fence = :fence, #let = :token REMOVE #owner, #token, #lease"),
        .condition = HF_STR("#token = :token AND #fence = :fence")};

    NAMES(&h, "#token", "#fence", "#let", "#owner", "#lease");
    VALUE(&h, HF_S(":token", token));
    VALUE(&h, HF_N(":fence", fence + 1));
    if (!claim_token(seen->item).len) { /* another worker's expired claim stays as it is */
        NAMES(&h, "#pk");
        update.condition =
            fence ? HF_STR("(#token = :token AND #fence = :fence) OR "
                           "(attribute_exists(#pk) AND attribute_not_exists(#token) AND "
                           "#fence = :seen)")
                  : HF_STR("(#token = :token AND #fence = :fence) OR "
                           "(attribute_exists(#pk) AND attribute_not_exists(#token) AND "
                           "attribute_not_exists(#fence))");
        if (fence)
            VALUE(&h, HF_N(":seen", fence));
    }
    update.names = hf_item_make(s, h.names, h.names_len);
    update.values = hf_item_make(s, h.values, h.values_len);
    return update;
}

/* (6) True: the event is not claimed by us, and will not be. It has a scope of its own, as the
 * caller's deadline may have passed. */
static bool take_back(struct hf_outbox *outbox, const struct hf_outbox_event *seen,
                      struct hf_str token)
{
    struct hf_scope *s = hf_scope_new(&outbox->env);
    struct hf_update_item update;
    struct hf_item found;
    enum hf_status status;
    bool sure;

    if (!s)
        return false;
    hf_scope_timeout_ms(s, TAKE_BACK_MS);
    update = take_back_request(s, outbox, seen, token);
    status = hf_scope_built(s);
    if (status == HF_OK)
        status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                                   update.key, &found);
    sure = status == HF_OK ||
           (status == HF_CONDITION && (!found.ptr || claim_fence(found) > claim_fence(seen->item)));
    hf_scope_free(s);
    if (sure)
        hf__outbox_wake(outbox, seen->bucket, false);
    return sure;
}

/* (6) The event may be claimed by us, but the claim cannot be returned. */
static enum hf_status claim_undo(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_outbox_event *seen, struct hf_str token)
{
    struct hf_error error = *hf_scope_error(s);

    if (take_back(outbox, seen, token))
        return hf_scope_fail(s, error.status, "%.*s", HF_FMT(error.message));
    (void)hf_scope_fail(s, error.status, "event %.*s may be claimed until its lease ends: %.*s",
                        HF_FMT(seen->event.id), HF_FMT(error.message));
    return hf_scope_doubt(s);
}

/* Claim an event that is due and free. *got: it is ours. HF_CONDITION: another worker was first. */
static enum hf_status event_claim(struct hf_scope *s, const struct claiming *c,
                                  const struct hf_outbox_event *seen,
                                  struct hf_claimed_event *event, bool *got)
{
    struct hf_outbox *outbox = c->outbox;
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_update_item update;
    struct hf_item item;
    enum hf_status status;

    *got = false;
    if (claim_token(seen->item).len && !is_ahead(seen) &&
        seen->attempts + UINT64_C(1) >= c->o.max_attempts)
        return event_exhaust(s, outbox, seen);
    if (!hf__outbox_has_room(s, outbox, seen->item))
        return event_refuse(s, outbox, seen);
    update = claim_request(s, c, seen, id_str(&id));
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status == HF_CONDITION && hf_str_equal(claim_token(item), id_str(&id)))
        status = HF_OK; /* its answer got lost */
    if (status == HF_CONDITION || (status != HF_OK && !hf_scope_error(s)->may_have_happened))
        return status;
    if (status != HF_OK || claim_read(s, outbox, item, event) != HF_OK)
        return claim_undo(s, outbox, seen, id_str(&id));
    assert(event->token.len && event->event.ref.len == OUTBOX_SEQ_LEN);
    *got = true;
    return HF_OK;
}

static bool bit_of(const uint64_t *bits, uint32_t number)
{
    assert(number < HF_OUTBOX_BUCKETS_MAX);
    return bits[number / 64] >> number % 64 & 1;
}

static void bit_set(uint64_t *bits, uint32_t number)
{
    assert(number < HF_OUTBOX_BUCKETS_MAX);
    bits[number / 64] |= UINT64_C(1) << number % 64;
}

static enum hf_status claims_reserve(struct hf_scope *s, struct claiming *c)
{
    size_t cap = c->cap ? c->cap * 2 : 16;
    struct hf_claimed_event *moved;

    if (c->len < c->cap)
        return HF_OK;
    moved = hf_scope_alloc(s, cap * sizeof(*moved));
    if (!moved)
        return hf_scope_built(s);
    if (c->len)
        memcpy(moved, c->events, c->len * sizeof(*moved));
    c->events = moved;
    c->cap = cap;
    assert(c->len < c->cap);
    return HF_OK;
}

/* Events of a bucket that are due, and free or with an expired claim. */
static struct hf_query free_query(struct hf_scope *s, const struct claiming *c, uint32_t bucket,
                                  int64_t now_us)
{
    struct holders h = {.s = s, .at = &c->outbox->at};
    struct hf_str opener = hf_db_opener(c->outbox->db);
    const char *orphans = "";
    struct hf_str filter;
    char to[OUTBOX_SEQ_LEN + 1];
    size_t wanted = c->o.limit - c->len;

    assert(bucket < c->outbox->buckets && c->len < c->o.limit);
    hf__outbox_seq_floor(now_us / 1000 + OUTBOX_SKEW_MS + 1, to);
    NAMES(&h, "#pk", "#sk", "#next", "#lease");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, "p", bucket)));
    VALUE(&h, HF_S(":to", hf_scope_copy(s, hf_str_from(to))));
    VALUE(&h, HF_N(":now", now_us));
    VALUE(&h, HF_N(":over", now_us - (int64_t)c->o.skew_ms * 1000));
    if (opener.len) {
        orphans = " OR (attribute_exists(#opener) AND #opener <> :opener)";
        NAMES(&h, "#opener");
        VALUE(&h, HF_S(":opener", opener));
    }
    filter = hf_scope_format(s,
                             "(attribute_not_exists(#next) OR #next <= :now) AND "
                             "(attribute_not_exists(#lease) OR #lease < :over%s)",
                             orphans);
    filter = hf__outbox_and(s, filter, hf__outbox_only_filter(&h, &c->only));
    return (struct hf_query){.table = c->outbox->table,
                             .key_condition = HF_STR("#pk = :pk AND #sk < :to"),
                             .filter = filter,
                             .names = hf_item_make(s, h.names, h.names_len),
                             .values = hf_item_make(s, h.values, h.values_len),
                             .limit = wanted < SMALL_PAGE    ? SMALL_PAGE
                                      : wanted < OUTBOX_PAGE ? (int64_t)wanted
                                                             : OUTBOX_PAGE,
                             .consistent = HF_YES};
}

/* Claim events of a page. *away: others claim here, so leave the bucket. */
static enum hf_status claim_page(struct hf_scope *s, struct claiming *c,
                                 const struct hf_query_result *page, bool patient, bool *away)
{
    uint32_t in_a_row = 0;

    for (size_t i = 0; i < page->items_len && c->len < c->o.limit; i++) {
        struct hf_outbox_event seen;
        enum hf_status status;
        bool got;

        status = hf__outbox_view(s, c->outbox, page->items[i], &seen);
        if (status == HF_CORRUPT) {
            hf__outbox_reject(s, c->outbox, page->items[i]);
            continue;
        }
        TRY(status);
        if (hf__outbox_is_early(&seen, claim_now_us(c->outbox)))
            continue;
        TRY(claims_reserve(s, c));
        status = event_claim(s, c, &seen, &c->events[c->len], &got);
        if (status != HF_OK && status != HF_CONDITION) {
            c->unsure += hf_scope_error(s)->may_have_happened;
            return status;
        }
        assert(!got || status == HF_OK);
        c->len += got;
        c->refused += status == HF_CONDITION;
        in_a_row = status == HF_CONDITION ? in_a_row + 1 : 0;
        *away = !patient && in_a_row == REFUSALS;
        if (*away)
            return HF_OK;
    }
    assert(c->len <= c->o.limit && c->len <= c->cap);
    return HF_OK;
}

static enum hf_status claim_bucket(struct hf_scope *s, struct claiming *c, uint32_t bucket,
                                   bool patient)
{
    struct hf_query query = free_query(s, c, bucket, claim_now_us(c->outbox));
    bool away = false;

    TRY(hf_scope_built(s));
    do {
        struct hf_query_result page;

        TRY(hf_query(s, c->outbox->db, &query, &page));
        c->seen += (uint64_t)page.scanned_count;
        TRY(claim_page(s, c, &page, patient, &away));
        query.start = page.last;
        query.limit = OUTBOX_PAGE;
    } while (query.start.ptr && c->len < c->o.limit && !away);
    if (away)
        bit_set(c->left, bucket);
    return HF_OK;
}

/* (8) Buckets of which nothing is known are read. */
static void look_first(struct hf_scope *s, struct claiming *c)
{
    struct hf_outbox *outbox = c->outbox;
    int64_t now_ms = claim_now_us(outbox) / 1000;

    for (uint32_t from = 0; from < outbox->buckets; from += OUTBOX_LOOK_MAX) {
        uint32_t numbers[OUTBOX_LOOK_MAX];
        bool shown[OUTBOX_LOOK_MAX];
        struct outbox_looking look = {.buckets = numbers, .shown = shown};
        size_t len = 0;

        while (len < OUTBOX_LOOK_MAX && from + len < outbox->buckets) {
            numbers[len] = from + (uint32_t)len;
            len++;
        }
        look.len = len;
        if (hf__outbox_look(s, outbox, &look, now_ms, OUTBOX_SKEW_MS) != HF_OK || !look.whole)
            return;
        for (size_t i = 0; i < len; i++)
            if (!shown[i])
                bit_set(c->bare, numbers[i]);
    }
}

/* (8) Did the last claim see no event? */
static bool looks_first(struct hf_outbox *outbox)
{
    bool looks;

    pthread_mutex_lock(&outbox->mutex);
    looks = outbox->claims_bare;
    pthread_mutex_unlock(&outbox->mutex);
    return looks;
}

/* (5) */
static enum hf_status claim_all(struct hf_scope *s, struct claiming *c)
{
    uint32_t buckets = c->outbox->buckets, first;
    uint32_t only = hf__outbox_only_bucket(c->outbox, &c->only);

    if (only != UINT32_MAX)
        return claim_bucket(s, c, only, true);
    if (looks_first(c->outbox))
        look_first(s, c);
    hf__env_random(&c->outbox->env, &first, sizeof(first));
    assert(buckets && buckets <= HF_OUTBOX_BUCKETS_MAX);
    first %= buckets;
    for (uint32_t i = 0; i < 2 * buckets && c->len < c->o.limit; i++) {
        uint32_t bucket = (first + i) % buckets;
        bool again = i >= buckets;

        if (again ? bit_of(c->left, bucket) : !bit_of(c->bare, bucket))
            TRY(claim_bucket(s, c, bucket, again));
    }
    pthread_mutex_lock(&c->outbox->mutex);
    c->outbox->claims_bare = !c->seen;
    pthread_mutex_unlock(&c->outbox->mutex);
    return HF_OK;
}

static enum hf_status events_claim(struct hf_scope *s, struct claiming *c,
                                   const struct hf_claim_options *options,
                                   struct hf_claim_list *list)
{
    enum hf_status status;

    *list = (struct hf_claim_list){0};
    TRY(hf__outbox_claim_options(s, options, &c->o));
    c->only = (struct outbox_only){.type = c->o.type, .key = c->o.key, .tenant = c->o.tenant};
    TRY(hf__outbox_only_check(s, &c->only));
    TRY(hf__outbox_take_mode(s, c->outbox, true));
    hf__outbox_find_strays(s, c->outbox);
    status = claim_all(s, c);
    *list = (struct hf_claim_list){.events = c->events,
                                   .events_len = c->len,
                                   .refused = c->refused,
                                   .unsure = c->unsure};
    if (status != HF_OK && !c->len)
        return status;
    return hf_scope_ok(s); /* what was claimed is not given up for an error */
}

enum hf_status hf__outbox_claim(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_claim_options *options, struct hf_claim_list *list)
{
    struct claiming c = {.outbox = outbox, .ahead = true};

    return events_claim(s, &c, options, list);
}

enum hf_status hf_outbox_claim(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_claim_options *options, struct hf_claim_list *list)
{
    struct claiming c = {.outbox = outbox};

    TRY(events_claim(s, &c, options, list));
    for (size_t i = 0; i < c.len; i++)
        hf__outbox_fetch(s, outbox, &c.events[i].event, 1);
    return HF_OK;
}

enum hf_status hf_outbox_claim_one(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str id,
                                   const struct hf_claim_options *options,
                                   struct hf_claimed_event *event)
{
    struct claiming c = {.outbox = outbox};

    *event = (struct hf_claimed_event){.fence = 0};
    TRY(hf__outbox_claim_options(s, options, &c.o));
    TRY(hf__outbox_take_mode(s, outbox, true));
    for (int round = 0; round < ROUNDS; round++) {
        int64_t now_us = claim_now_us(outbox);
        struct hf_outbox_event seen;
        enum hf_status status;
        bool got;

        TRY(hf__outbox_get(s, outbox, id, &seen));
        if (seen.state != HF_OUTBOX_PENDING)
            return hf_scope_fail(s, HF_NOT_FOUND, "event %.*s %s", HF_FMT(id),
                                 seen.state == HF_OUTBOX_FAILED ? "is a dead letter"
                                                                : "was published");
        if (hf__outbox_is_early(&seen, now_us) || seen.next_us > now_us)
            return hf_scope_fail(s, HF_CONDITION, "event %.*s is not due yet", HF_FMT(id));
        if (claim_token(seen.item).len && !is_over(outbox, &seen, &c.o, now_us))
            return hf_scope_fail(s, HF_LOCKED, "event %.*s is claimed by %.*s", HF_FMT(id),
                                 HF_FMT(seen.owner));
        status = event_claim(s, &c, &seen, event, &got);
        if (status == HF_OK && got)
            hf__outbox_fetch(s, outbox, &event->event, 1);
        if (status != HF_CONDITION && (status != HF_OK || got))
            return status;
    }
    return hf_scope_fail(s, HF_LOCKED, "event %.*s is claimed by others", HF_FMT(id));
}
