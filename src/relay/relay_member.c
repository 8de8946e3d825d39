/*
 * relay/relay_member.c: which relays there are, and whose each bucket is.
 *
 * In partition "c" of the table:
 *
 *     sk       what
 *     m.RELAY  a relay: its beat, which it counts up with every heartbeat; its lease_ms; its owner,
 *              for people; `stopped` when it has ended; `opener` (opener.c); `only` if it does not
 *              deliver all events: (6)
 *     b.n      a bucket: `relay`, who has it (absent: nobody), and its fence; `window` since it was
 *              taken from one who ended without a word, until that is over: relay_suspect.c
 *
 * A heartbeat of a relay is one write of its own item, whatever it owns, and one consistent query
 * of the partition. From what it reads it computes a plan, the same as all who read the same: which
 * relay is to have which bucket. Then it does its own part: it releases what others are to have,
 * when nothing of it is under way any more, and takes what it is to have, when it is free or its
 * owner is silent for the owner's lease by our clock.
 *
 *  (1) Our lease ends for us before it ends for others: coord/lease.c. When it has ended, we are a
 *      new relay with a new id.
 *  (2) A bucket is taken by a write on the condition that its owner and fence are as they were
 *      read; the fence grows. It is released on the condition that it is ours, with our fence.
 *  (3) The item of a relay is there before it has a bucket. Buckets sort before relays, so an owner
 *      that is not there in the same answer is gone: an item is removed when it was silent for
 *      several leases, or is known to be one of the dead (opener.c).
 *  (4) A relay that has just come takes nothing before it has looked again after SETTLE_MS, and
 *      nobody takes anything later than half of that after he has looked. So those who come
 *      together know of each other before they take anything, and no write is refused while all
 *      are well.
 *  (5) The least relay that is alive removes what is left of others; nobody else does.
 *  (6) Those who deliver different parts of the events (`only`) cannot share buckets, as one would
 *      own what the other is to deliver. So the plan is made among those of one part, and whoever
 *      finds that one of another part has buckets, or comes before it where neither or both have,
 *      takes none and gives back what it has (yields), until that one has ended. By (4) two who
 *      come together agree on who is first; whatever they see, a bucket has one owner by (2).
 */
#include <holdfast/pages.h>

#include "coord/placeholders.h"
#include "relay/relay.h"

#include <stdio.h>

enum {
    SETTLE_MS = 100,
    IMPATIENT_MS = 1000, /* so often is looked while others are to release something to us */
    REMOVE_LEASES = 10,
    STOPPED_TTL_S = 3600,
    ENOUGH_MEMBERS = 8
};

static struct hf_str text_of(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_from(name)));
}

static uint64_t number_of(struct hf_item item, const char *name)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(item, hf_str_from(name)), &number);
    return number < 0 ? 0 : (uint64_t)number;
}

static void set_id(struct pattern_id *id, struct hf_str text)
{
    size_t len = text.len < PATTERN_ID_LEN ? text.len : PATTERN_ID_LEN;

    memset(id, 0, sizeof(*id));
    if (len)
        memcpy(id->text, text.ptr, len);
}

static int compare_ids(const struct pattern_id *a, const struct pattern_id *b)
{
    return memcmp(a->text, b->text, PATTERN_ID_LEN);
}

static bool is_me(const struct hf_relay *relay, const struct pattern_id *id)
{
    return compare_ids(&relay->id, id) == 0;
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* FNV-1a, with its bits mixed at the end: the highest decides. */
static uint64_t weight(uint32_t bucket, const struct pattern_id *id)
{
    uint64_t hash = fnv((FNV_BEGIN ^ bucket) * FNV_PRIME, id->text, PATTERN_ID_LEN);

    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

/*
 * Each bucket goes to whom it likes best among those who have room. Who comes or goes changes the
 * order of the others for no bucket, so few move besides those that have to.
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
            uint64_t w = weight(bucket, &ids[i]);

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

/* ---- requests ------------------------------------------------------------------------------- */

static struct hf_item member_key(const struct hf_relay *relay, const struct pattern_id *id)
{
    return hf__outbox_key_of(relay->keep, relay->outbox, HF_STR("c"),
                             hf_scope_format(relay->keep, "m.%s", id->text));
}

static struct hf_item row_key(const struct hf_relay *relay, uint32_t bucket)
{
    return hf__outbox_key_of(relay->keep, relay->outbox, HF_STR("c"),
                             hf_scope_format(relay->keep, "b.%03u", bucket));
}

/* Say that we live. For the first time, too: nobody else has our id. */
static enum hf_status send_beat(struct hf_relay *relay, bool first)
{
    struct hf_scope *s = relay->keep;
    uint64_t beat = relay->beat + 1;
    struct hf_item key = member_key(relay, &relay->id), item;
    struct hf_str opener = hf_db_opener(relay->outbox->db);
    struct holders h = {.s = s, .at = &relay->outbox->at};
    struct hf_update_item update = {.table = relay->outbox->table,
                                    .key = key,
                                    .update = HF_STR("SET #beat = :beat"),
                                    .condition = HF_STR("#beat < :beat AND "
                                                        "attribute_not_exists(#stopped)")};
    enum hf_status status;

    NAMES(&h, "#beat");
    VALUE(&h, HF_N(":beat", beat));
    if (first) {
        update.update = hf_scope_format(s,
                                        "SET #beat = :beat, #lease_ms = :lease, #owner = :owner"
                                        "%s%s",
                                        opener.len ? ", #opener = :opener" : "",
                                        relay->only_text.len ? ", #only = :only" : "");
        update.condition = HF_STR("attribute_not_exists(#pk)");
        NAMES(&h, "#lease_ms", "#owner", "#pk");
        VALUE(&h, HF_N(":lease", relay->o.lease_ms));
        VALUE(&h, HF_S(":owner", relay->o.owner));
        if (opener.len) {
            NAMES(&h, "#opener");
            VALUE(&h, HF_S(":opener", opener));
        }
        if (relay->only_text.len) {
            NAMES(&h, "#only");
            VALUE(&h, HF_S(":only", relay->only_text));
        }
    } else {
        NAMES(&h, "#stopped");
    }
    update.names = hf_item_make(s, h.names, h.names_len);
    update.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    if (status == HF_CONDITION)
        status =
            item.ptr && number_of(item, "beat") == beat && !hf_item_get(item, HF_STR("stopped")).ptr
                ? HF_OK
                : HF_LOST;
    if (status == HF_OK || hf_scope_error(s)->may_have_happened)
        relay->beat = beat;
    return status;
}

/* (2) From nobody, or from one who is gone. HF_CONDITION: somebody was faster. */
static enum hf_status send_take(struct hf_relay *relay, uint32_t bucket, uint32_t window)
{
    struct hf_scope *s = relay->keep;
    const struct relay_row *row = &relay->rows[bucket];
    struct hf_item key = row_key(relay, bucket), item;
    bool from = row->owner.text[0];
    struct hf_attr names[] = {HF_S("#relay", HF_STR("relay")), HF_S("#fence", HF_STR("fence")),
                              HF_S("#window", HF_STR("window"))};
    struct hf_attr values[5] = {HF_S(":me", id_str(&relay->id)), HF_N(":new", row->fence + 1)};
    size_t len = 2;
    struct hf_update_item update = {
        .table = relay->outbox->table,
        .key = key,
        .update = window ? HF_STR("SET #relay = :me, #fence = :new, #window = :window")
                         : HF_STR("SET #relay = :me, #fence = :new"),
        .condition = !row->there ? HF_STR("attribute_not_exists(#fence)")
                     : from      ? HF_STR("#relay = :from AND #fence = :fence")
                                 : HF_STR("attribute_not_exists(#relay) AND #fence = :fence"),
        .names = hf_item_make(s, names, window ? 3 : 2)};
    enum hf_status status;

    if (window)
        values[len++] = (struct hf_attr)HF_N(":window", window);
    if (row->there)
        values[len++] = (struct hf_attr)HF_N(":fence", row->fence);
    if (row->there && from)
        values[len++] = (struct hf_attr)HF_S(":from", hf_str_from(row->owner.text));
    update.values = hf_item_make(s, values, len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    if (status == HF_CONDITION && hf_str_equal(text_of(item, "relay"), id_str(&relay->id)) &&
        number_of(item, "fence") == row->fence + 1)
        return HF_OK;
    return status;
}

/* (2) Remove what `what` says of a bucket that is ours. HF_OK: it is removed, or not ours. */
static enum hf_status send_change(struct hf_relay *relay, uint32_t bucket, uint64_t fence,
                                  struct hf_str what, bool window)
{
    struct hf_scope *s = relay->keep;
    struct hf_item key = row_key(relay, bucket), item;
    struct hf_attr names[] = {HF_S("#relay", HF_STR("relay")), HF_S("#fence", HF_STR("fence")),
                              HF_S("#window", HF_STR("window"))};
    struct hf_update_item update = {.table = relay->outbox->table,
                                    .key = key,
                                    .update = what,
                                    .condition = HF_STR("#relay = :me AND #fence = :fence"),
                                    .names = hf_item_make(s, names, window ? 3 : 2),
                                    .values = HF_ITEM(s, HF_S(":me", id_str(&relay->id)),
                                                      HF_N(":fence", fence))};
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    return status == HF_CONDITION ? HF_OK : status;
}

/* (2) HF_OK: it is not ours any more. `over`: no suspects are left in it. */
static enum hf_status send_release(struct hf_relay *relay, uint32_t bucket, uint64_t fence,
                                   bool over)
{
    return send_change(relay, bucket, fence,
                       over ? HF_STR("REMOVE #relay, #window") : HF_STR("REMOVE #relay"), over);
}

/* We have ended, or are to be another one. */
static enum hf_status send_stopped(struct hf_relay *relay)
{
    struct hf_scope *s = relay->keep;
    struct hf_item key = member_key(relay, &relay->id), item;
    struct hf_update_item update = {
        .table = relay->outbox->table,
        .key = key,
        .update = HF_STR("SET #stopped = :true, #ttl = :ttl"),
        .condition = HF_STR("attribute_exists(#beat)"),
        .names = HF_ITEM(s, HF_S("#stopped", HF_STR("stopped")), HF_S("#beat", HF_STR("beat")),
                         HF_S("#ttl", relay->outbox->at.expires)),
        .values = HF_ITEM(s, HF_BOOL(":true", true),
                          HF_N(":ttl", hf__env_wall_ms(&relay->env) / 1000 + STOPPED_TTL_S))};
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    return status == HF_CONDITION ? HF_OK : status;
}

static enum hf_status send_remove(struct hf_relay *relay, const struct relay_member *member)
{
    struct hf_scope *s = relay->keep;
    struct hf_item key = member_key(relay, &member->id), item;
    struct hf_delete_item del = {.table = relay->outbox->table,
                                 .key = key,
                                 .condition = HF_STR("#beat = :beat"),
                                 .names = HF_ITEM(s, HF_S("#beat", HF_STR("beat"))),
                                 .values = HF_ITEM(s, HF_N(":beat", member->sight.beat))};

    TRY(hf_scope_built(s));
    return hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.del = &del}, key,
                             &item);
}

/* ---- looking -------------------------------------------------------------------------------- */

static struct relay_member *member_find(struct hf_relay *relay, const struct pattern_id *id)
{
    for (size_t i = 0; i < relay->members_len; i++)
        if (compare_ids(&relay->members[i].id, id) == 0)
            return &relay->members[i];
    return NULL;
}

/* In the order of ids. NULL: no memory. */
static struct relay_member *member_add(struct hf_relay *relay, const struct pattern_id *id)
{
    size_t at = relay->members_len, size = relay->members_size;

    if (at == size) {
        size_t larger = size ? size * 2 : ENOUGH_MEMBERS;
        struct relay_member *members =
            relay->env.alloc(relay->env.user, relay->members, size * sizeof(*members),
                             larger * sizeof(*members));

        if (!members)
            return NULL;
        relay->members = members;
        relay->members_size = larger;
    }
    while (at && compare_ids(&relay->members[at - 1].id, id) > 0) {
        relay->members[at] = relay->members[at - 1];
        at--;
    }
    relay->members[at] = (struct relay_member){.id = *id};
    relay->members_len++;
    return &relay->members[at];
}

static enum hf_status see_member(struct hf_relay *relay, struct hf_str sk, struct hf_item item)
{
    struct relay_member *member;
    struct pattern_id id;

    set_id(&id, hf_str_of(sk.ptr + 2, sk.len - 2));
    member = member_find(relay, &id);
    member = member ? member : member_add(relay, &id);
    if (!member)
        return hf_scope_fail(relay->keep, HF_NOMEM, "no memory for another relay");
    hf__watch_see(&member->sight, number_of(item, "beat"), relay_now_us(relay));
    member->lease_ms = (uint32_t)number_of(item, "lease_ms");
    member->stopped = hf_value_true(hf_item_get(item, HF_STR("stopped")));
    member->orphaned = hf__pattern_orphan(relay->outbox->db, text_of(item, "opener"));
    member->differs = !hf_str_equal(text_of(item, "only"), relay->only_text);
    snprintf(member->only, sizeof(member->only), "%.*s", HF_FMT(text_of(item, "only")));
    snprintf(member->owner, sizeof(member->owner), "%.*s", HF_FMT(text_of(item, "owner")));
    member->there = true;
    return HF_OK;
}

static void see_row(struct hf_relay *relay, struct hf_str sk, struct hf_item item)
{
    uint32_t bucket = 0;

    for (size_t i = 2; i < sk.len; i++)
        bucket = bucket * 10 + (uint32_t)(sk.ptr[i] - '0');
    if (bucket >= relay->outbox->buckets)
        return;
    relay->rows[bucket].there = true;
    relay->rows[bucket].fence = number_of(item, "fence");
    relay->rows[bucket].window = (uint32_t)number_of(item, "window");
    set_id(&relay->rows[bucket].owner, text_of(item, "relay"));
}

static bool begins(struct hf_str text, const char *with)
{
    return text.len > 2 && memcmp(text.ptr, with, 2) == 0;
}

/* One query of the partition; pages are followed. */
static enum hf_status look(struct hf_relay *relay)
{
    struct hf_scope *s = relay->keep;
    struct hf_query query = {.table = relay->outbox->table,
                             .key_condition = HF_STR("#pk = :c"),
                             .names = HF_ITEM(s, HF_S("#pk", relay->outbox->at.hash)),
                             .values = HF_ITEM(s, HF_S(":c", HF_STR("c"))),
                             .consistent = HF_YES};
    struct hf_pages *pages;
    enum hf_status status;
    struct hf_item item;

    memset(relay->rows, 0, relay->outbox->buckets * sizeof(*relay->rows));
    for (size_t i = 0; i < relay->members_len; i++)
        relay->members[i].there = false;
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, relay->outbox->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_str sk = sk_of(relay->outbox, item);

        if (begins(sk, "b."))
            see_row(relay, sk, item);
        else if (begins(sk, "m.") && (status = see_member(relay, sk, item)) != HF_OK)
            break;
    }
    hf_pages_free(pages);
    return status;
}

static bool is_alive(const struct hf_relay *relay, const struct relay_member *member,
                     int64_t now_us)
{
    return member && member->there && !member->stopped && !member->orphaned &&
           (is_me(relay, &member->id) ||
            hf__watch_silent_in(member->sight.since_us, member->lease_ms, now_us) > 0);
}

static void forget_members(struct hf_relay *relay)
{
    size_t len = 0;

    for (size_t i = 0; i < relay->members_len; i++)
        if (relay->members[i].there)
            relay->members[len++] = relay->members[i];
    relay->members_len = len;
}

/* relay->plan, by places in relay->members; false: we are not there ourselves, or no memory. */
static bool make_plan(struct hf_relay *relay, int64_t now_us)
{
    size_t len = 0, most = relay->members_len ? relay->members_len : 1;
    struct pattern_id *ids = hf_scope_alloc(relay->keep, most * sizeof(*ids));
    uint32_t *places = hf_scope_alloc(relay->keep, most * sizeof(*places));
    uint32_t *loads = hf_scope_alloc(relay->keep, most * sizeof(*loads));
    bool here = false;

    if (hf_scope_built(relay->keep) != HF_OK)
        return false;
    for (size_t i = 0; i < relay->members_len; i++) {
        if (relay->members[i].differs || !is_alive(relay, &relay->members[i], now_us))
            continue;
        here = here || is_me(relay, &relay->members[i].id);
        places[len] = (uint32_t)i;
        ids[len++] = relay->members[i].id;
    }
    if (!here)
        return false;
    hf__member_plan(ids, len, relay->plan, relay->outbox->buckets, loads);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        relay->plan[i] = places[relay->plan[i]];
    return true;
}

static bool has_buckets(const struct hf_relay *relay, const struct pattern_id *id)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        if (compare_ids(&relay->rows[i].owner, id) == 0)
            return true;
    return false;
}

/* (6) One for whom we have to make room; NULL: there is none. */
static const struct relay_member *first_of_others(const struct hf_relay *relay, int64_t now_us)
{
    bool ours = false, theirs;

    for (size_t i = 0; i < relay->members_len; i++) /* we, or one that delivers the same */
        ours = ours || (!relay->members[i].differs && is_alive(relay, &relay->members[i], now_us) &&
                        has_buckets(relay, &relay->members[i].id));
    for (size_t i = 0; i < relay->members_len; i++) {
        const struct relay_member *member = &relay->members[i];

        if (!member->differs || !is_alive(relay, member, now_us))
            continue;
        theirs = has_buckets(relay, &member->id);
        if (theirs == ours ? compare_ids(&member->id, &relay->id) < 0 : theirs)
            return member;
    }
    return NULL;
}

/* (6) The buckets are all that one's. */
static void yield_to(struct hf_relay *relay, const struct relay_member *first)
{
    bool news = !relay->yields;

    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        relay->plan[i] = (uint32_t)(first - relay->members);
    pthread_mutex_lock(&relay->mutex);
    relay->yields = true;
    pthread_mutex_unlock(&relay->mutex);
    if (!news)
        return;
    (void)hf_scope_fail(relay->keep, HF_LOCKED,
                        "relay %s delivers %s%s of this outbox, and this one %s%.*s: it waits "
                        "until that one has ended",
                        first->owner, first->only[0] ? "only " : "all", first->only,
                        relay->only_text.len ? "only " : "all", HF_FMT(relay->only_text));
    hf__relay_trouble(relay, relay->keep);
}

static bool is_mine(const struct hf_relay *relay, uint32_t bucket)
{
    return is_me(relay, &relay->members[relay->plan[bucket]].id);
}

/* ---- doing our part ------------------------------------------------------------------------- */

void hf__member_drop(struct hf_relay *relay)
{
    relay->lease.until_us = 0;
    relay->settled = false;
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->buckets[i];

        if (bucket->state == BUCKET_OTHERS)
            continue;
        bucket->state = BUCKET_OTHERS;
        bucket->life++;
        hf__bucket_forget(relay, bucket, true);
    }
}

/* Was it lost, or is it to be released? The mutex is held. */
static void compare_with_plan(struct hf_relay *relay, uint32_t number)
{
    struct relay_bucket *bucket = &relay->buckets[number];
    const struct relay_row *row = &relay->rows[number];

    if (bucket->state == BUCKET_OTHERS) {
        if (is_me(relay, &row->owner) && !is_mine(relay, number)) {
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
    } else if (bucket->state == BUCKET_OURS && !is_mine(relay, number)) {
        bucket->state = BUCKET_LEAVING;
        hf__bucket_forget(relay, bucket, false);
    }
}

static void taken(struct hf_relay *relay, uint32_t number, bool from_silent, uint32_t window)
{
    struct relay_bucket *bucket = &relay->buckets[number];

    pthread_mutex_lock(&relay->mutex);
    if (relay->lease.until_us && relay_now_us(relay) < relay->lease.until_us) {
        bucket->state = BUCKET_OURS;
        bucket->life++;
        bucket->fence = relay->rows[number].fence + 1;
        hf__read_reset(relay, bucket, relay_now_us(relay));
        hf__suspect_begin(relay, bucket, window);
        relay->metrics.taken_over += from_silent;
        hf__relay_signal(relay);
    }
    pthread_mutex_unlock(&relay->mutex);
}

/*
 * Take what is to be ours, until `until_us` (4). *missing: how many are to be ours and are not;
 * *soon_us: when the owner of one of them is silent for its lease.
 */
static enum hf_status take_all(struct hf_relay *relay, int64_t until_us, uint32_t *missing,
                               bool *more, int64_t *soon_us)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        const struct relay_row *row = &relay->rows[i];
        const struct relay_member *owner = member_find(relay, &row->owner);
        int64_t now_us = relay_now_us(relay);
        bool from_silent =
            row->owner.text[0] && !is_me(relay, &row->owner) && !(owner && owner->stopped);
        uint32_t window = from_silent ? hf__suspect_window(relay, row->window) : row->window;
        enum hf_status status;

        if (!is_mine(relay, i) || relay->buckets[i].state != BUCKET_OTHERS)
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
        status = send_take(relay, i, window);
        if (status == HF_OK) {
            taken(relay, i, from_silent, window);
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
static enum hf_status release_all(struct hf_relay *relay)
{
    bool waiting = false;

    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->buckets[i];
        bool busy, leaving;
        uint64_t life;

        pthread_mutex_lock(&relay->mutex);
        leaving = bucket->state == BUCKET_LEAVING;
        busy = bucket->running || bucket->noting || bucket->reading;
        life = bucket->life;
        pthread_mutex_unlock(&relay->mutex);
        if (leaving && !busy)
            TRY(send_release(relay, i, bucket->fence, false));
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
    relay->leaving = waiting;
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

/* Buckets that were taken from one who ended, and have no suspects left, are as all others. */
static enum hf_status forget_windows(struct hf_relay *relay)
{
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->buckets[i];
        uint64_t life;
        bool over;

        pthread_mutex_lock(&relay->mutex);
        over = bucket->window && hf__suspect_is_over(relay, bucket);
        life = bucket->life;
        pthread_mutex_unlock(&relay->mutex);
        if (!over)
            continue;
        TRY(send_change(relay, i, bucket->fence, HF_STR("REMOVE #window"), true));
        pthread_mutex_lock(&relay->mutex);
        if (bucket->life == life)
            bucket->window = bucket->careful = 0;
        pthread_mutex_unlock(&relay->mutex);
    }
    return HF_OK;
}

/* (5) */
static void remove_old(struct hf_relay *relay, int64_t now_us)
{
    for (size_t i = 0; i < relay->members_len; i++) {
        const struct relay_member *member = &relay->members[i];

        if (is_alive(relay, member, now_us)) {
            if (!is_me(relay, &member->id))
                return;
            break;
        }
    }
    for (size_t i = 0; i < relay->members_len; i++) {
        const struct relay_member *member = &relay->members[i];

        if (!is_alive(relay, member, now_us) &&
            (member->orphaned ||
             now_us - member->sight.since_us > (int64_t)member->lease_ms * 1000 * REMOVE_LEASES))
            (void)send_remove(relay, member);
    }
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* (1) */
static struct lease_terms terms_of(const struct hf_relay *relay)
{
    return (struct lease_terms){.lease_ms = relay->o.lease_ms,
                                .heartbeat_ms = relay->o.heartbeat_ms};
}

static int64_t settle_us(const struct hf_relay *relay)
{
    int64_t us = (int64_t)relay->o.heartbeat_ms * 250;

    return us < SETTLE_MS * 1000 ? us : SETTLE_MS * 1000;
}

/* Become a member, under a new id. */
static enum hf_status join(struct hf_relay *relay)
{
    int64_t sent_us;

    if (relay->beat) { /* we were one before: what it has left is free now */
        if (relay->joined) {
            (void)hf_scope_fail(relay->keep, HF_LOST, "the lease of this relay has ended");
            hf__relay_trouble(relay, relay->keep);
        }
        relay->joined = false;
        TRY(send_stopped(relay));
        relay->beat = 0;
    }
    relay->id = hf__pattern_id_make(&relay->env);
    sent_us = relay_now_us(relay);
    TRY(send_beat(relay, true));
    pthread_mutex_lock(&relay->mutex);
    hf__lease_take(&relay->lease, terms_of(relay), sent_us);
    pthread_mutex_unlock(&relay->mutex);
    relay->joined = true;
    relay->act_us = relay_now_us(relay) + settle_us(relay);
    relay->look_us = relay->act_us;
    return HF_OK;
}

static enum hf_status renew(struct hf_relay *relay)
{
    int64_t sent_us = relay_now_us(relay);
    enum hf_status status = send_beat(relay, false);

    if (status == HF_LOST) { /* others have seen our end */
        pthread_mutex_lock(&relay->mutex);
        hf__member_drop(relay);
        pthread_mutex_unlock(&relay->mutex);
        return HF_OK;
    }
    TRY(status);
    pthread_mutex_lock(&relay->mutex);
    if (!lease_is_over(&relay->lease, relay_now_us(relay)))
        hf__lease_renew(&relay->lease, terms_of(relay), sent_us);
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

/* Look, and do our part. */
static enum hf_status look_and_act(struct hf_relay *relay)
{
    int64_t asked_us, now_us, soon_us = INT64_MAX;
    const struct relay_member *first;
    uint32_t missing = 0;
    bool more = false;

    TRY(hf__outbox_take_mode(relay->keep, relay->outbox, false));
    asked_us = relay_now_us(relay);
    TRY(look(relay));
    now_us = relay_now_us(relay);
    forget_members(relay);
    if (!make_plan(relay, now_us))
        return hf_scope_fail(relay->keep, HF_LOST, "this relay is not among the others");
    first = first_of_others(relay, now_us);
    if (first)
        yield_to(relay, first);
    pthread_mutex_lock(&relay->mutex);
    relay->yields = first != NULL;
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        compare_with_plan(relay, i);
    pthread_mutex_unlock(&relay->mutex);
    TRY(release_all(relay));
    TRY(forget_windows(relay));
    TRY(take_all(relay, asked_us + settle_us(relay) / 2, &missing, &more, &soon_us));
    remove_old(relay, now_us);
    pthread_mutex_lock(&relay->mutex);
    relay->settled = !missing && !more && !first;
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
    now_us = relay_now_us(relay);
    relay->look_us = now_us + (int64_t)relay->o.heartbeat_ms * 1000;
    if ((missing || first) && relay->look_us > now_us + IMPATIENT_MS * 1000)
        relay->look_us = now_us + IMPATIENT_MS * 1000;
    if (soon_us < relay->look_us)
        relay->look_us = soon_us > now_us ? soon_us : now_us;
    if (more)
        relay->look_us = now_us;
    else if (!relay->o.dry_run)
        hf__outbox_find_strays(relay->keep, relay->outbox);
    return HF_OK;
}

static enum hf_status round_of(struct hf_relay *relay)
{
    int64_t now_us = relay_now_us(relay);
    bool dropped, away;

    pthread_mutex_lock(&relay->mutex);
    away = relay->away;
    pthread_mutex_unlock(&relay->mutex);
    if (away) { /* until what does not return has */
        relay->lease.due_us = relay->look_us = now_us + (int64_t)relay->o.heartbeat_ms * 1000;
        return relay->beat ? hf__member_leave(relay, relay->o.lease_ms / 2) : HF_OK;
    }
    pthread_mutex_lock(&relay->mutex);
    if (relay->lease.until_us && now_us >= relay->lease.until_us)
        hf__member_drop(relay);
    dropped = !relay->lease.until_us;
    pthread_mutex_unlock(&relay->mutex);
    if (dropped)
        return join(relay);
    if (now_us >= relay->lease.due_us)
        TRY(renew(relay));
    if (now_us >= relay->look_us)
        return look_and_act(relay);
    return relay->leaving ? release_all(relay) : HF_OK;
}

int64_t hf__member_keep(struct hf_relay *relay)
{
    int64_t now_us, next_us;
    enum hf_status status;

    hf__relay_begin(relay, relay->keep, relay->o.lease_ms / 2);
    status = round_of(relay);
    hf__relay_consumed(relay, relay->keep);
    if (status != HF_OK) {
        hf__relay_trouble(relay, relay->keep);
        return (int64_t)hf__lease_retry_ms(relay->o.heartbeat_ms) * 1000;
    }
    now_us = relay_now_us(relay);
    next_us = relay->lease.due_us < relay->look_us ? relay->lease.due_us : relay->look_us;
    return next_us > now_us ? next_us - now_us : 0;
}

/* ---- leaving -------------------------------------------------------------------------------- */

enum hf_status hf__member_leave(struct hf_relay *relay, uint32_t timeout_ms)
{
    enum hf_status first = HF_OK, status;

    if (!relay->beat)
        return HF_OK;
    hf__relay_begin(relay, relay->keep, timeout_ms);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->buckets[i];
        bool over;

        if (bucket->state == BUCKET_OTHERS)
            continue;
        pthread_mutex_lock(&relay->mutex);
        over = bucket->window && hf__suspect_is_over(relay, bucket);
        pthread_mutex_unlock(&relay->mutex);
        if (first == HF_OK)
            first = send_release(relay, i, bucket->fence, over);
        pthread_mutex_lock(&relay->mutex);
        bucket->state = BUCKET_OTHERS;
        bucket->life++;
        hf__bucket_forget(relay, bucket, true);
        pthread_mutex_unlock(&relay->mutex);
    }
    pthread_mutex_lock(&relay->mutex);
    hf__member_drop(relay);
    pthread_mutex_unlock(&relay->mutex);
    status = send_stopped(relay);
    if (status == HF_OK)
        relay->beat = 0;
    relay->joined = false;
    hf__relay_consumed(relay, relay->keep);
    return first == HF_OK ? status : first;
}
