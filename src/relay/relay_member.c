/*
 * relay/relay_member.c: which relays there are, and whose each bucket is.
 *
 * relay_member_item.c has the items of relays and buckets.
 *
 * A heartbeat of a relay is one write of its own item, however many buckets it owns, and one consistent
 * query of the partition. From the answer it computes a plan, which relay should own which bucket; all
 * relays that read the same make the same plan. Then it does its own part: it releases buckets that
 * others should own, when none of their events runs any more, and takes buckets that it should own,
 * when they are free or their owner is silent for the owner's lease by our clock.
 *
 *  (1) Our lease ends for us before it ends for others: coord/lease.c. When it has ended, we are a
 *      new relay with a new id.
 *  (2) A bucket is taken by a write on the condition that its owner and fence are as they were
 *      read; the fence grows. It is released on the condition that it is ours, with our fence.
 *  (3) The item of a relay is there before it has a bucket. Buckets sort before relays, so an owner
 *      that is not there in the same answer is gone: an item is removed when it was silent for
 *      several leases, or is known to be one of the dead (opener.c).
 *  (4) A new relay takes nothing before it has read the members again after JOIN_WAIT_MS, and no relay
 *      takes anything later than half of that after it has read them. So relays that start together
 *      know of each other before they take anything, and no write is refused while all are well.
 *  (5) Only the live relay with the least id removes the items of relays that have ended.
 *  (6) Relays that deliver different parts of the events (`only`) cannot share buckets, as one would
 *      own events that the other should deliver. So a plan is made among the relays of one part. If a
 *      relay of another part has buckets, or comes before us where neither or both have, we take none
 *      and release those that we have (yield), until that relay has ended. By (4) two relays that
 *      start together agree on which is first; whatever they read, a bucket has one owner by (2).
 */
#include "relay/relay.h"

enum {
    JOIN_WAIT_MS = 100,
    IMPATIENT_MS = 1000, /* so often is looked while others are to release something to us */
    REMOVE_LEASES = 10
};

static bool is_me(const struct hf_relay *relay, const struct pattern_id *id)
{
    return compare_ids(&relay->members.id, id) == 0;
}

void hf__members_check(const struct hf_relay *relay)
{
    bool ours = false;

    ASSERT_RELAY_HELD(relay);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        ours = ours || relay->reader.buckets[i].state == BUCKET_OURS;
    assert(!ours || relay->members.lease.until_us || relay->o.dry_run);
    assert(!ours || !relay->o.competing);
}

/* Assert that the list is sorted, and that the plan is about it. For the heartbeat thread. */
static void plan_check(const struct hf_relay *relay)
{
    const struct relay_members *members = &relay->members;

    assert(members->len <= members->size);
    for (size_t i = 1; i < members->len; i++)
        assert(compare_ids(&members->list[i - 1].id, &members->list[i].id) < 0);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        assert(members->plan[i] < members->len);
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* FNV-1a, with its bits mixed at the end: the highest decides. */
static uint64_t bucket_weight(uint32_t bucket, const struct pattern_id *id)
{
    uint64_t hash = fnv_add((FNV_BEGIN ^ bucket) * FNV_PRIME, id->text, PATTERN_ID_LEN);

    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

/*
 * Rendezvous hashing: each bucket ranks all relays, and goes to the first one that has room. A
 * relay that joins or leaves does not change how a bucket ranks the others, so few buckets move
 * that do not have to.
 */
void hf__member_plan(const struct pattern_id *ids, size_t ids_len, uint32_t *plan, uint32_t buckets,
                     uint32_t *loads)
{
    uint32_t share = buckets / (uint32_t)ids_len, extra = buckets % (uint32_t)ids_len;

    memset(loads, 0, ids_len * sizeof(*loads));
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        uint64_t best_weight = 0;
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < ids_len; i++) {
            uint64_t w = bucket_weight(bucket, &ids[i]);

            if (loads[i] >= share + (extra ? 1 : 0))
                continue;
            if (best == SIZE_MAX || w > best_weight) {
                best = i;
                best_weight = w;
            }
        }
        assert(best != SIZE_MAX);
        if (loads[best]++ == share)
            extra--;
        plan[bucket] = (uint32_t)best;
    }
}

static bool is_alive(const struct hf_relay *relay, const struct relay_member *member,
                     int64_t now_us)
{
    return member && member->there && !member->stopped && !member->orphaned &&
           (is_me(relay, &member->id) ||
            hf__watch_silent_in(member->sight.since_us, member->lease_ms, now_us) > 0);
}

static void members_forget(struct hf_relay *relay)
{
    size_t len = 0;

    for (size_t i = 0; i < relay->members.len; i++)
        if (relay->members.list[i].there)
            relay->members.list[len++] = relay->members.list[i];
    relay->members.len = len;
}

/* The plan, by places in the list; false: we are not there ourselves, or no memory. */
static bool plan_make(struct hf_relay *relay, int64_t now_us)
{
    size_t len = 0, most = relay->members.len ? relay->members.len : 1;
    struct pattern_id *ids = hf_scope_alloc(relay->heartbeat.scope, most * sizeof(*ids));
    uint32_t *places = hf_scope_alloc(relay->heartbeat.scope, most * sizeof(*places));
    uint32_t *loads = hf_scope_alloc(relay->heartbeat.scope, most * sizeof(*loads));
    bool here = false;

    if (hf_scope_built(relay->heartbeat.scope) != HF_OK)
        return false;
    for (size_t i = 0; i < relay->members.len; i++) {
        if (relay->members.list[i].differs || !is_alive(relay, &relay->members.list[i], now_us))
            continue;
        here = here || is_me(relay, &relay->members.list[i].id);
        places[len] = (uint32_t)i;
        ids[len++] = relay->members.list[i].id;
    }
    if (!here)
        return false;
    hf__member_plan(ids, len, relay->members.plan, relay->outbox->buckets, loads);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        relay->members.plan[i] = places[relay->members.plan[i]];
    return true;
}

static bool has_buckets(const struct hf_relay *relay, const struct pattern_id *id)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        if (compare_ids(&relay->members.rows[i].owner, id) == 0)
            return true;
    return false;
}

/* (6) One for whom we have to make room; NULL: there is none. */
static const struct relay_member *first_of_others(const struct hf_relay *relay, int64_t now_us)
{
    bool ours = false, theirs;

    for (size_t i = 0; i < relay->members.len; i++) /* we, or one that delivers the same */
        ours = ours || (!relay->members.list[i].differs &&
                        is_alive(relay, &relay->members.list[i], now_us) &&
                        has_buckets(relay, &relay->members.list[i].id));
    for (size_t i = 0; i < relay->members.len; i++) {
        const struct relay_member *member = &relay->members.list[i];

        if (!member->differs || !is_alive(relay, member, now_us))
            continue;
        theirs = has_buckets(relay, &member->id);
        if (theirs == ours ? compare_ids(&member->id, &relay->members.id) < 0 : theirs)
            return member;
    }
    return NULL;
}

/* (6) The buckets are all that one's. */
static void member_yield_to(struct hf_relay *relay, const struct relay_member *first)
{
    bool news = !relay->members.yields;

    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        relay->members.plan[i] = (uint32_t)(first - relay->members.list);
    pthread_mutex_lock(&relay->mutex);
    relay->members.yields = true;
    pthread_mutex_unlock(&relay->mutex);
    if (!news)
        return;
    (void)hf_scope_fail(relay->heartbeat.scope, HF_LOCKED,
                        "relay %s delivers %s%s of this outbox, and this one %s%.*s: it waits "
                        "until that one has ended",
                        first->owner, first->only[0] ? "only " : "all", first->only,
                        relay->only_text.len ? "only " : "all", HF_FMT(relay->only_text));
    hf__relay_report_error(relay, relay->heartbeat.scope);
}

static bool bucket_is_mine(const struct hf_relay *relay, uint32_t bucket)
{
    return is_me(relay, &relay->members.list[relay->members.plan[bucket]].id);
}

/* ---- doing our part ------------------------------------------------------------------------- */

void hf__member_drop(struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    relay->members.lease.until_us = 0;
    relay->members.complete = false;
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[i];

        if (bucket->state == BUCKET_OTHERS)
            continue;
        bucket->state = BUCKET_OTHERS;
        bucket->life++;
        hf__bucket_forget(relay, bucket, true);
    }
}

/* Was it lost, or is it to be released? */
static void compare_with_plan(struct hf_relay *relay, uint32_t number)
{
    struct relay_bucket *bucket = &relay->reader.buckets[number];
    const struct relay_row *row = &relay->members.rows[number];

    ASSERT_RELAY_HELD(relay);
    if (bucket->state == BUCKET_OTHERS) {
        if (is_me(relay, &row->owner) && !bucket_is_mine(relay, number)) {
            bucket->state = BUCKET_LEAVING; /* it was taken after all, and is another's by now */
            bucket->fence = row->fence;
            bucket->life++;
        }
        return;
    }
    if (!is_me(relay, &row->owner) || row->fence != bucket->fence) {
        bucket->state = BUCKET_OTHERS; /* somebody thought that we are gone */
        bucket->life++;
        hf__bucket_forget(relay, bucket, true);
    } else if (bucket->state == BUCKET_OURS && !bucket_is_mine(relay, number)) {
        bucket->state = BUCKET_LEAVING;
        hf__bucket_forget(relay, bucket, false);
    }
}

static void bucket_taken(struct hf_relay *relay, uint32_t number, bool from_silent, uint32_t window)
{
    struct relay_bucket *bucket = &relay->reader.buckets[number];

    pthread_mutex_lock(&relay->mutex);
    if (relay->members.lease.until_us && relay_now_us(relay) < relay->members.lease.until_us) {
        bucket->state = BUCKET_OURS;
        bucket->life++;
        bucket->fence = relay->members.rows[number].fence + 1;
        hf__relay_read_reset(relay, bucket, relay_now_us(relay));
        hf__suspect_begin(relay, bucket, window);
        relay->metrics.taken_over += from_silent;
        hf__relay_signal(relay);
    }
    pthread_mutex_unlock(&relay->mutex);
}

/*
 * Take the buckets that the plan gives us, until `until_us` (4). *missing: how many of them we do
 * not have; *soon_us: when the lease of the owner of one of them ends.
 */
static enum hf_status buckets_take(struct hf_relay *relay, int64_t until_us, uint32_t *missing,
                                   bool *more, int64_t *soon_us)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        const struct relay_row *row = &relay->members.rows[i];
        const struct relay_member *owner = hf__member_find(relay, &row->owner);
        int64_t now_us = relay_now_us(relay);
        bool from_silent =
            row->owner.text[0] && !is_me(relay, &row->owner) && !(owner && owner->stopped);
        uint32_t window = from_silent ? hf__suspect_window(relay, row->window) : row->window;
        enum hf_status status;

        if (!bucket_is_mine(relay, i) || relay->reader.buckets[i].state != BUCKET_OTHERS)
            continue;
        ++*missing;
        if (!is_me(relay, &row->owner) && is_alive(relay, owner, now_us)) {
            int64_t silent_us =
                now_us + hf__watch_silent_in(owner->sight.since_us, owner->lease_ms, now_us);

            *soon_us = silent_us < *soon_us ? silent_us : *soon_us;
            continue;
        }
        if (now_us >= until_us) {
            *more = true;
            return HF_OK;
        }
        status = hf__member_send_take(relay, i, window);
        if (status == HF_OK) {
            bucket_taken(relay, i, from_silent, window);
            --*missing;
        } else if (status == HF_CONDITION) {
            pthread_mutex_lock(&relay->mutex);
            relay->metrics.refused++;
            pthread_mutex_unlock(&relay->mutex);
        } else {
            return status;
        }
    }
    return HF_OK;
}

/* Release what is to leave and has nothing under way. */
static enum hf_status buckets_release(struct hf_relay *relay)
{
    bool waiting = false;

    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[i];
        bool busy, leaving;
        uint64_t life;

        pthread_mutex_lock(&relay->mutex);
        leaving = bucket->state == BUCKET_LEAVING;
        busy = bucket->running || bucket->noting || bucket->reading;
        life = bucket->life;
        pthread_mutex_unlock(&relay->mutex);
        if (leaving && !busy)
            TRY(hf__member_send_release(relay, i, bucket->fence, false));
        waiting = waiting || (leaving && busy);
        if (!leaving || busy)
            continue;
        pthread_mutex_lock(&relay->mutex);
        if (bucket->life == life) {
            bucket->state = BUCKET_OTHERS;
            bucket->life++;
        }
        pthread_mutex_unlock(&relay->mutex);
    }
    pthread_mutex_lock(&relay->mutex);
    relay->members.leaving = waiting;
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

/* Buckets that were taken over from a relay that ended, and have no suspects left, need no more
 * care. */
static enum hf_status windows_forget(struct hf_relay *relay)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[i];
        uint64_t life;
        bool over;

        pthread_mutex_lock(&relay->mutex);
        over = bucket->window && hf__suspect_is_over(relay, bucket);
        life = bucket->life;
        pthread_mutex_unlock(&relay->mutex);
        if (!over)
            continue;
        TRY(hf__member_send_window(relay, i, bucket->fence));
        pthread_mutex_lock(&relay->mutex);
        if (bucket->life == life)
            bucket->window = bucket->careful = 0;
        pthread_mutex_unlock(&relay->mutex);
    }
    return HF_OK;
}

/* (5) */
static void members_remove_old(struct hf_relay *relay, int64_t now_us)
{
    for (size_t i = 0; i < relay->members.len; i++) {
        const struct relay_member *member = &relay->members.list[i];

        if (is_alive(relay, member, now_us)) {
            if (!is_me(relay, &member->id))
                return;
            break;
        }
    }
    for (size_t i = 0; i < relay->members.len; i++) {
        const struct relay_member *member = &relay->members.list[i];

        if (!is_alive(relay, member, now_us) &&
            (member->orphaned ||
             now_us - member->sight.since_us > (int64_t)member->lease_ms * 1000 * REMOVE_LEASES))
            (void)hf__member_send_remove(relay, member);
    }
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* (1) */
static struct lease_terms terms_of(const struct hf_relay *relay)
{
    return (struct lease_terms){.lease_ms = relay->o.lease_ms,
                                .heartbeat_ms = relay->o.heartbeat_ms};
}

static int64_t join_wait_us(const struct hf_relay *relay)
{
    int64_t us = (int64_t)relay->o.heartbeat_ms * 250;

    return us < JOIN_WAIT_MS * 1000 ? us : JOIN_WAIT_MS * 1000;
}

/* Become a member, under a new id. */
static enum hf_status member_join(struct hf_relay *relay)
{
    int64_t sent_us;

    if (relay->members.beat) { /* we were one before: what it has left is free now */
        if (relay->members.joined) {
            (void)hf_scope_fail(relay->heartbeat.scope, HF_LOST,
                                "the lease of this relay has ended");
            hf__relay_report_error(relay, relay->heartbeat.scope);
        }
        relay->members.joined = false;
        TRY(hf__member_send_stopped(relay));
        relay->members.beat = 0;
    }
    relay->members.id = hf__pattern_id_make(&relay->env);
    sent_us = relay_now_us(relay);
    TRY(hf__member_send_beat(relay, true));
    pthread_mutex_lock(&relay->mutex);
    hf__lease_take(&relay->members.lease, terms_of(relay), sent_us);
    pthread_mutex_unlock(&relay->mutex);
    relay->members.joined = true;
    relay->members.look_us = relay_now_us(relay) + join_wait_us(relay);
    return HF_OK;
}

static enum hf_status member_renew(struct hf_relay *relay)
{
    int64_t sent_us = relay_now_us(relay);
    enum hf_status status = hf__member_send_beat(relay, false);

    if (status == HF_LOST) { /* others have seen our end */
        pthread_mutex_lock(&relay->mutex);
        hf__member_drop(relay);
        pthread_mutex_unlock(&relay->mutex);
        return HF_OK;
    }
    TRY(status);
    pthread_mutex_lock(&relay->mutex);
    if (!lease_is_over(&relay->members.lease, relay_now_us(relay)))
        hf__lease_renew(&relay->members.lease, terms_of(relay), sent_us);
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

/* Look, and do our part. */
static enum hf_status members_look_and_act(struct hf_relay *relay)
{
    int64_t asked_us, now_us, soon_us = INT64_MAX;
    const struct relay_member *first;
    uint32_t missing = 0;
    bool more = false;

    TRY(hf__outbox_take_mode(relay->heartbeat.scope, relay->outbox, false));
    asked_us = relay_now_us(relay);
    TRY(hf__member_read_all(relay));
    now_us = relay_now_us(relay);
    members_forget(relay);
    if (!plan_make(relay, now_us))
        return hf_scope_fail(relay->heartbeat.scope, HF_LOST,
                             "this relay is not among the members any more");
    first = first_of_others(relay, now_us);
    if (first)
        member_yield_to(relay, first);
    if (DEV_CHECKS)
        plan_check(relay);
    pthread_mutex_lock(&relay->mutex);
    relay->members.yields = first != NULL;
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        compare_with_plan(relay, i);
    pthread_mutex_unlock(&relay->mutex);
    TRY(buckets_release(relay));
    TRY(windows_forget(relay));
    TRY(buckets_take(relay, asked_us + join_wait_us(relay) / 2, &missing, &more, &soon_us));
    members_remove_old(relay, now_us);
    pthread_mutex_lock(&relay->mutex);
    relay->members.complete = !missing && !more && !first;
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
    now_us = relay_now_us(relay);
    relay->members.look_us = now_us + (int64_t)relay->o.heartbeat_ms * 1000;
    if ((missing || first) && relay->members.look_us > now_us + IMPATIENT_MS * 1000)
        relay->members.look_us = now_us + IMPATIENT_MS * 1000;
    if (soon_us < relay->members.look_us)
        relay->members.look_us = soon_us > now_us ? soon_us : now_us;
    if (more)
        relay->members.look_us = now_us;
    else if (!relay->o.dry_run)
        hf__outbox_find_strays(relay->heartbeat.scope, relay->outbox);
    return HF_OK;
}

static enum hf_status member_round(struct hf_relay *relay)
{
    int64_t now_us = relay_now_us(relay);
    bool dropped, away;

    pthread_mutex_lock(&relay->mutex);
    away = relay->sender.has_left;
    pthread_mutex_unlock(&relay->mutex);
    if (away) { /* until what does not return has */
        relay->members.lease.due_us = relay->members.look_us =
            now_us + (int64_t)relay->o.heartbeat_ms * 1000;
        return relay->members.beat ? hf__member_leave(relay, relay->o.lease_ms / 2) : HF_OK;
    }
    pthread_mutex_lock(&relay->mutex);
    if (relay->members.lease.until_us && now_us >= relay->members.lease.until_us)
        hf__member_drop(relay);
    dropped = !relay->members.lease.until_us;
    pthread_mutex_unlock(&relay->mutex);
    if (dropped)
        return member_join(relay);
    if (now_us >= relay->members.lease.due_us)
        TRY(member_renew(relay));
    if (now_us >= relay->members.look_us)
        return members_look_and_act(relay);
    return relay->members.leaving ? buckets_release(relay) : HF_OK;
}

int64_t hf__member_step(struct hf_relay *relay)
{
    int64_t now_us, next_us;
    enum hf_status status;

    hf__relay_begin(relay, relay->heartbeat.scope, relay->o.lease_ms / 2);
    status = member_round(relay);
    hf__relay_consumed(relay, relay->heartbeat.scope);
    if (status != HF_OK) {
        hf__relay_report_error(relay, relay->heartbeat.scope);
        return (int64_t)hf__lease_retry_ms(relay->o.heartbeat_ms) * 1000;
    }
    now_us = relay_now_us(relay);
    next_us = relay->members.lease.due_us < relay->members.look_us ? relay->members.lease.due_us
                                                                   : relay->members.look_us;
    return next_us > now_us ? next_us - now_us : 0;
}

/* ---- leaving -------------------------------------------------------------------------------- */

enum hf_status hf__member_leave(struct hf_relay *relay, uint32_t timeout_ms)
{
    enum hf_status first = HF_OK, status;

    if (!relay->members.beat)
        return HF_OK;
    hf__relay_begin(relay, relay->heartbeat.scope, timeout_ms);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[i];
        bool over;

        if (bucket->state == BUCKET_OTHERS)
            continue;
        pthread_mutex_lock(&relay->mutex);
        over = bucket->window && hf__suspect_is_over(relay, bucket);
        pthread_mutex_unlock(&relay->mutex);
        if (first == HF_OK)
            first = hf__member_send_release(relay, i, bucket->fence, over);
        pthread_mutex_lock(&relay->mutex);
        bucket->state = BUCKET_OTHERS;
        bucket->life++;
        hf__bucket_forget(relay, bucket, true);
        pthread_mutex_unlock(&relay->mutex);
    }
    pthread_mutex_lock(&relay->mutex);
    hf__member_drop(relay);
    pthread_mutex_unlock(&relay->mutex);
    status = hf__member_send_stopped(relay);
    if (status == HF_OK)
        relay->members.beat = 0;
    relay->members.joined = false;
    hf__relay_consumed(relay, relay->heartbeat.scope);
    return first == HF_OK ? status : first;
}
