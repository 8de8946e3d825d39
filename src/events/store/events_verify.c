/*
 * events/store/events_verify.c: is everything as it was written?
 *
 * Of each stream all events are read that are physically there, those that are hidden too, and
 * their hashes computed again, from what the sweep has noted in the head (`w`, `g`) to the head
 * itself. Each event is compared with its copy in the global order, and its blob is read. When all
 * streams are verified the global order is walked as well, to find what is there and in no stream.
 *
 *  (1) An event that was changed, left out, put in or moved shows: its hash, the version of the
 *      next one, or the head does not fit. Whoever could change all hashes from there on would
 *      still have to change the head; so a hash of the head that is kept elsewhere
 *      (hf_event_stream_info.hash) makes the whole stream certain.
 *  (2) Others may append, truncate, sweep and archive meanwhile. Events behind the head as it was
 *      read are not looked at; and what does not fit is looked at again, as long as the head says
 *      that somebody swept or moved the stream since.
 */
#include "events/store/events.h"

#include <holdfast/batch.h>

enum { RETRIES = 10, LOOKS = 3, BATCH = 100, PROGRESS = 200 };

struct verify {
    struct hf_scope *s;
    struct hf_events *store;
    struct hf_events_verified *out;
    struct hf_events_verify_options o;
    uint64_t ordered;  /* events that were looked at in the global order */
    bool in_order;     /* we are at those */
    uint64_t reported; /* events of the last report */
};

/* So many more events were looked at. Tells now and then, and in the end. */
static enum hf_status report_progress(struct verify *v, bool ends)
{
    uint64_t done = v->out->events + v->ordered;
    uint64_t total = v->in_order ? 2 * v->out->events : 0;

    if (!v->o.on_progress || (!ends && done - v->reported < PROGRESS))
        return HF_OK;
    v->reported = done;
    /* Others may append and sweep meanwhile. */
    return v->o.on_progress(done, total && total < done ? done : total, v->o.user);
}

/* One stream on its way. */
struct chain {
    struct verify *v;
    struct hf_event_stream_key stream;
    const struct events_head *head;
    uint64_t next;             /* the version that has to come */
    uint8_t hash[EVENTS_HASH]; /* of the one before */
    struct events_position position;
    struct events_position base; /* of the commit that was read last */
    struct hf_scope *kept;       /* its memory */
    struct events_commit commit;
};

static enum hf_status fail_version(struct chain *c, uint64_t version, const char *what)
{
    struct hf_scope *s = c->v->s;

    c->v->out->bad = (struct hf_event_stream_key){hf_scope_copy(s, c->stream.domain),
                                                  hf_scope_copy(s, c->stream.id)};
    c->v->out->bad_version = version;
    return hf_scope_fail(s, HF_CORRUPT, "stream \"%.*s\", version %llu: %s",
                         HF_FMT(hf__events_stream_text(s, c->stream)), (unsigned long long)version,
                         what);
}

/* ---- the copy in the global order ----------------------------------------------------------- */

/* Read the commit of that position, unless it is the one that was read last. It may be moved while
 * we look. */
static enum hf_status read_commit(struct chain *c, const struct hf_stored_event *event)
{
    struct hf_scope *s = c->kept;
    struct events_position base = {{0}};
    struct hf_item item = {NULL, 0};

    memcpy(base.text, event->position.ptr, HF_POSITION_LEN);
    hf__events_position_number(&base, 0);
    if (memcmp(&base, &c->base, sizeof(base)) == 0)
        return HF_OK;
    hf_scope_reset(s);
    c->base = (struct events_position){{0}};
    for (int i = 0; i < 2 * LOOKS && !item.ptr; i++) {
        struct hf_item key =
            HF_ITEM(s, HF_S("pk", hf__events_part_of(s, i % 2 ? 'z' : 'a', position_str(&base))),
                    HF_S("sk", position_str(&base)));

        TRY(hf_scope_built(s));
        TRY(hf__pattern_read(s, c->v->store->db, c->v->store->table, key, &item));
    }
    if (!item.ptr)
        return fail_version(c, event->version, "it is not in the global order");
    TRY(hf__events_commit_view(s, item, &c->commit));
    c->base = base;
    return HF_OK;
}

/* `map` is the event as its stream has it; `number` that in t.COMMIT, when it was a large append.
 */
static enum hf_status check_copy(struct chain *c, const struct hf_stored_event *event,
                                 struct hf_value map, struct hf_str large, uint32_t number)
{
    char name[3] = {'x', event->position.ptr[HF_POSITION_LEN - 2],
                    event->position.ptr[HF_POSITION_LEN - 1]};
    const struct events_commit *commit = &c->commit;
    uint32_t in_commit = 0;
    enum hf_status status;

    status = read_commit(c, event);
    if (status != HF_OK && c->kept != c->v->s && hf_scope_error(c->kept)->status == status)
        return hf_scope_fail_from(c->v->s, status, c->kept);
    if (status != HF_OK)
        return status;
    hf__events_position_read(event->position, NULL, NULL, &in_commit);
    if (!hf_str_equal(commit->stream.domain, c->stream.domain) ||
        !hf_str_equal(commit->stream.id, c->stream.id) ||
        commit->version + in_commit != event->version)
        return fail_version(c, event->version,
                            "the global order has another event at its position");
    if (large.ptr ? !hf_str_equal(commit->large, large) ||
                        commit->large_from + in_commit != number || in_commit >= commit->count
                  : !hf_value_equal(hf_item_get(commit->item, hf_str_of(name, 3)), map))
        return fail_version(c, event->version, "its copy in the global order differs");
    return HF_OK;
}

/* ---- a stream ------------------------------------------------------------------------------- */

static enum hf_status check_blob(struct chain *c, const struct hf_stored_event *event)
{
    struct hf_scope *s = c->v->s;
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_bytes bytes;
    enum hf_status status;

    if (!event->blob.len)
        return HF_OK;
    if (!c->v->store->blobs)
        return hf_scope_fail(
            s, HF_INVALID,
            "events have payloads in a blob store, and the event store was opened without one");
    status = hf_blob_get(s, c->v->store->blobs, event->blob, &bytes);
    if (status == HF_NOT_FOUND)
        return fail_version(c, event->version, "its payload is not in the blob store");
    if (status == HF_CORRUPT)
        return fail_version(c, event->version, "its payload in the blob store is damaged");
    if (status == HF_OK)
        hf_scope_rewind(s, mark);
    return status;
}

/* (1) */
static enum hf_status check_event(struct chain *c, const struct hf_stored_event *event,
                                  struct hf_value map, struct hf_str large, uint32_t number)
{
    uint8_t content[EVENTS_HASH], hash[EVENTS_HASH];

    assert(c->next > 0 && is_position(event->position));
    if (event->version != c->next)
        return fail_version(c, c->next, "it is missing");
    hf__events_content(event, content);
    hf__events_chain(event, content, c->hash, hash);
    if (event->hash.len != EVENTS_HASH || memcmp(hash, event->hash.ptr, EVENTS_HASH) != 0)
        return fail_version(c, event->version, "its hash does not match its content");
    if (c->position.text[0] && memcmp(event->position.ptr, c->position.text, HF_POSITION_LEN) <= 0)
        return fail_version(c, event->version,
                            "its position is not behind that of the version before");
    TRY(check_copy(c, event, map, large, number));
    TRY(check_blob(c, event));
    memcpy(c->hash, hash, EVENTS_HASH);
    memcpy(c->position.text, event->position.ptr, HF_POSITION_LEN);
    c->next++;
    c->v->out->events++;
    return report_progress(c->v, false);
}

static enum hf_status check_large(struct chain *c, const struct events_step *step)
{
    struct hf_scope *s = c->v->s;
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;
    uint64_t at = 0;

    TRY(hf__events_large_pages(s, c->v->store, step, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_stored_event event;
        uint32_t number;

        if (!hf__events_large_number(item, &number) || number != step->number + at)
            status = fail_version(c, step->first + at, "it is missing");
        else
            status = hf__events_item_view(s, item, c->stream, step->first + at, &event);
        if (status == HF_OK)
            status = check_event(c, &event, hf_item_get(item, HF_STR("e")), step->large, number);
        if (status != HF_OK)
            break;
        at++;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    if (status == HF_OK && at != step->count)
        return fail_version(c, step->first + at, "it is missing");
    return status;
}

static enum hf_status check_step(struct hf_scope *s, struct hf_events *store,
                                 const struct events_step *step, void *user)
{
    struct chain *c = user;
    struct hf_stored_event event;

    (void)store;
    if (step->first > c->head->version) /* (2) */
        return (enum hf_status)EVENTS_STEP_ENOUGH;
    if (step->large.ptr)
        return check_large(c, step);
    TRY(hf__events_item_view(s, step->item, c->stream, step->version, &event));
    return check_event(c, &event, hf_item_get(step->item, HF_STR("e")), hf_str_of(NULL, 0), 0);
}

static enum hf_status check_once(struct verify *v, struct hf_event_stream_key stream,
                                 struct hf_str pk, const struct events_head *head,
                                 struct hf_item item)
{
    struct chain c = {.v = v, .stream = stream, .head = head};
    struct events_swept swept;
    enum hf_status status;

    TRY(hf__events_swept_view(v->s, item, &swept));
    c.next = swept.first;
    memcpy(c.hash, swept.hash, EVENTS_HASH);
    c.kept = hf_scope_new(&v->store->env);
    if (!c.kept)
        return hf_scope_fail(v->s, HF_NOMEM, "no memory to verify a stream");
    status = hf__events_steps(v->s, v->store, pk, c.next, check_step, &c);
    if (status == HF_OK && c.next <= head->version)
        status = fail_version(&c, c.next, "it is missing");
    if (status == HF_OK &&
        (memcmp(c.hash, head->hash, EVENTS_HASH) != 0 ||
         (c.position.text[0] && memcmp(&c.position, &head->position, sizeof(c.position)) != 0)))
        status =
            fail_version(&c, head->version, "the head of the stream does not match its last event");
    hf_scope_free(c.kept);
    return status;
}

/* What the sweep and the archive say in a head. */
static bool is_moved(struct hf_item one, struct hf_item other)
{
    static const char *const names[] = {"k", "u", "w", "x", "y"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!hf_value_equal(hf_item_get(one, hf_str_from(names[i])),
                            hf_item_get(other, hf_str_from(names[i]))))
            return true;
    return false;
}

/* (2) */
static enum hf_status check_stream(struct hf_scope *s, struct hf_events *store,
                                   const struct events_found *found, void *user)
{
    struct verify *v = user;
    uint64_t before = v->out->events;
    struct events_head now = found->head;
    struct hf_item item = found->item;

    for (int retry = 0;; retry++) {
        enum hf_status status = check_once(v, found->stream, found->pk, &now, item);
        struct hf_str text = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));
        struct hf_item again;

        if (status == HF_OK)
            v->out->streams += now.version != 0;
        if (status != HF_CORRUPT || retry == RETRIES)
            return status;
        TRY(hf__pattern_read(s, store->db, store->table,
                             HF_ITEM(s, HF_S("pk", found->pk), HF_S("sk", HF_STR("h"))), &again));
        if (!is_moved(item, again))
            return hf_scope_fail(s, HF_CORRUPT, "%.*s", HF_FMT(text));
        TRY(hf__events_head_view(s, again, &now));
        item = again;
        v->out->events = before;
        v->reported = v->reported < before ? v->reported : before;
        v->out->bad = (struct hf_event_stream_key){.id = {NULL, 0}};
        v->out->bad_version = 0;
    }
}

/* ---- the global order against the streams --------------------------------------------------- */

static enum hf_status fail_stray(struct verify *v, const struct events_commit *commit,
                                 uint64_t version)
{
    struct chain c = {.v = v, .stream = commit->stream};

    return fail_version(&c, version, "it is in the global order, but not in its stream");
}

/* Is the commit still there? What was swept or moved meanwhile is no mistake. */
static enum hf_status is_there(struct verify *v, struct hf_item commit, bool *there)
{
    struct hf_scope *s = v->s;
    struct hf_item item;

    TRY(hf__pattern_read(s, v->store->db, v->store->table,
                         HF_ITEM(s, HF_S("pk", hf_value_str(hf_item_get(commit, HF_STR("pk")))),
                                 HF_S("sk", hf_value_str(hf_item_get(commit, HF_STR("sk"))))),
                         &item));
    *there = item.ptr && hf_item_equal(item, commit);
    return HF_OK;
}

static enum hf_status check_large_commit(struct verify *v, const struct events_commit *commit,
                                         bool *fits)
{
    char from[EVENTS_VERSION_LEN + 1];
    struct hf_query_result result;
    struct events_step step;
    struct hf_query query;
    struct hf_str pk;

    *fits = false;
    hf__events_version_text(commit->version, from);
    TRY(hf__events_stream_pk(v->s, 's', commit->stream, &pk));
    query = (struct hf_query){.table = v->store->table,
                              .key_condition = HF_STR("#pk = :pk AND #sk BETWEEN :from AND :to"),
                              .names = HF_ITEM(v->s, HF_S("#pk", HF_STR("pk")),
                                               HF_S("#sk", HF_STR("sk"))),
                              .values =
                                  HF_ITEM(v->s, HF_S(":from", hf_str_of(from, EVENTS_VERSION_LEN)),
                                          HF_S(":pk", pk), HF_S(":to", HF_STR("A"))),
                              .limit = 1,
                              .consistent = HF_YES};
    TRY(hf_scope_built(v->s));
    TRY(hf_query(v->s, v->store->db, &query, &result));
    if (!result.items_len)
        return HF_OK;
    TRY(hf__events_step_view(v->s, result.items[0], &step));
    *fits = hf_str_equal(step.large, commit->large) && step.first <= commit->version &&
            commit->version + commit->count <= step.first + step.count &&
            step.number + (commit->version - step.first) == commit->large_from;
    return HF_OK;
}

/* Some events of a commit: each is in its stream, the same. */
static enum hf_status check_events(struct verify *v, const struct events_commit *commit,
                                   const struct hf_stored_event *events, size_t len,
                                   uint64_t *missing)
{
    struct hf_get gets[BATCH];
    struct hf_get_many_result got;
    struct hf_str pk;

    assert(len > 0 && len <= BATCH);
    *missing = 0;
    TRY(hf__events_stream_pk(v->s, 's', commit->stream, &pk));
    for (size_t i = 0; i < len; i++) {
        char sk[EVENTS_VERSION_LEN + 1];

        hf__events_version_text(events[i].version, sk);
        gets[i] = (struct hf_get){.table = v->store->table,
                                  .key = HF_ITEM(v->s, HF_S("pk", pk),
                                                 HF_S("sk", hf_str_of(sk, EVENTS_VERSION_LEN)))};
    }
    TRY(hf_scope_built(v->s));
    TRY(hf_get_many(v->s, v->store->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len && !*missing; i++)
        if (!hf_str_equal(hf_value_str(hf_item_get(got.items[i], HF_STR("p"))), events[i].position))
            *missing = events[i].version;
    return HF_OK;
}

static enum hf_status check_commit(struct verify *v, struct hf_item item)
{
    struct hf_stored_event events[BATCH];
    struct events_run run = {.events = events, .cap = BATCH};
    struct events_commit commit;
    uint64_t missing = 0;
    bool fits, there;

    TRY(hf__events_commit_view(v->s, item, &commit));
    if (commit.large.ptr) {
        TRY(check_large_commit(v, &commit, &fits));
        missing = fits ? 0 : commit.version;
        v->ordered += commit.count;
    } else {
        do {
            run.from = run.next;
            TRY(hf__events_commit_events(v->s, v->store, &commit, &run));
            if (run.len)
                TRY(check_events(v, &commit, events, run.len, &missing));
            v->ordered += run.len;
        } while (run.next && !missing);
    }
    if (!missing)
        return report_progress(v, false);
    TRY(is_there(v, item, &there));
    return there ? fail_stray(v, &commit, missing) : HF_OK;
}

static enum hf_status check_part(struct verify *v, struct hf_str part)
{
    struct hf_query query = {.table = v->store->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(v->s, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(v->s, HF_S(":pk", part)),
                             .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(v->s));
    TRY(hf_pages_query(v->s, v->store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(v->s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(v->s);

        status = check_commit(v, item);
        if (status != HF_OK)
            break;
        hf_scope_rewind(v->s, mark);
    }
    hf_pages_free(pages);
    return status;
}

static enum hf_status check_day(struct verify *v, struct hf_str day)
{
    for (uint32_t shard = 0; shard < v->store->shards; shard++) {
        struct hf_scope_mark mark = hf_scope_mark(v->s);

        TRY(check_part(v, hf__events_part(v->s, 'a', day, shard)));
        TRY(check_part(v, hf__events_part(v->s, 'z', day, shard)));
        hf_scope_rewind(v->s, mark);
    }
    return HF_OK;
}

static enum hf_status check_order(struct verify *v)
{
    struct hf_query query = {.table = v->store->table,
                             .key_condition = HF_STR("#pk = :d AND #sk < :to"),
                             .names = HF_ITEM(v->s, HF_S("#pk", HF_STR("pk")),
                                              HF_S("#sk", HF_STR("sk"))),
                             .values = HF_ITEM(v->s, HF_S(":d", HF_STR("d")),
                                               HF_S(":to", HF_STR("A"))), /* days, not "closed" */
                             .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(v->s));
    TRY(hf_pages_query(v->s, v->store->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(v->s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_str day = hf_value_str(hf_item_get(item, HF_STR("sk")));

        status =
            hf__events_is_day(day) ? check_day(v, day) : hf__events_fail_day(v->s, v->store, day);
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------ */

enum hf_status hf_events_verify(struct hf_scope *s, struct hf_events *store,
                                const struct hf_event_stream_key *stream,
                                const struct hf_events_verify_options *options,
                                struct hf_events_verified *verified)
{
    struct hf_events_verified unused;
    struct verify v = {.s = s, .store = store, .out = verified ? verified : &unused};
    struct events_found found;

    OPTIONS_COPY(&v.o, options);
    *v.out = (struct hf_events_verified){.streams = 0};
    if (!store->chain)
        return hf_scope_fail(s, HF_UNSUPPORTED, "event store %.*s was made without a chain",
                             HF_FMT(store->table));
    if (!stream) {
        TRY(hf__events_each_head(s, store, check_stream, &v));
        v.in_order = true;
        TRY(check_order(&v));
        return report_progress(&v, true);
    }
    found = (struct events_found){.stream = *stream};
    TRY(hf__events_stream_pk(s, 's', *stream, &found.pk));
    TRY(hf__pattern_read(s, store->db, store->table,
                         HF_ITEM(s, HF_S("pk", found.pk), HF_S("sk", HF_STR("h"))), &found.item));
    TRY(hf__events_head_view(s, found.item, &found.head));
    if (!found.item.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "stream \"%.*s\" does not exist",
                             HF_FMT(hf__events_stream_text(s, *stream)));
    TRY(check_stream(s, store, &found, &v));
    return report_progress(&v, true);
}
