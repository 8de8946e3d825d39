/*
 * relay/relay_look.c: one request for all buckets in which nothing is expected.
 *
 * An empty bucket has to be swept every poll_ms too, as another process may have emitted into it.
 * Instead of a query for each bucket, one statement asks for all: which have an event that is due?
 * Those are swept at once.
 *
 *  (1) A look reads what a sweep would: from the start of the bucket up to what is due soon, and
 *      consistently. So a bucket that it shows to be empty counts as swept.
 *  (2) It only says where to read, so it does no harm whatever is done with these buckets
 *      meanwhile. One look runs at a time, and a bucket that is woken is not waited for.
 *  (3) A bucket where something stays that is not for us, or not due yet, is swept by itself until
 *      a sweep shows it to be empty.
 *  (4) Where statements are unknown or not allowed, or the answer is not whole, each bucket is
 *      swept by itself, and a look is tried again after OUTBOX_LOOK_AGAIN_MS.
 */
#include "relay/relay.h"

enum { LOOK_MIN = 2 };

bool hf__look_is_for(const struct hf_relay *relay, const struct relay_bucket *bucket,
                     int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    return bucket->bare && bucket->state == BUCKET_OURS && hf__relay_read_is_for(relay, bucket) &&
           bucket->whole && !bucket->more && !bucket->woken && !bucket->urgent.woken &&
           !bucket->reading && !bucket->sweeping && !bucket->held && !bucket->skipping &&
           bucket->not_before_us <= now_us;
}

bool hf__look_may(const struct hf_relay *relay, const struct relay_bucket *bucket, int64_t now_us)
{
    uint32_t count = 0;

    ASSERT_RELAY_HELD(relay);
    if (relay->reader.looking || relay->reader.look_again_us > now_us ||
        !hf__look_is_for(relay, bucket, now_us))
        return false;
    for (uint32_t i = 0; i < relay->outbox->buckets && count < LOOK_MIN; i++)
        count += hf__look_is_for(relay, &relay->reader.buckets[i], now_us);
    return count == LOOK_MIN;
}

/* A look at these buckets. */
struct look {
    uint32_t numbers[OUTBOX_LOOK_MAX];
    uint64_t lives[OUTBOX_LOOK_MAX];
    bool shown[OUTBOX_LOOK_MAX];
    size_t len;
    bool far; /* up to what those emit whose clocks are far ahead */
};

/* From the one that is first due on. */
static void look_plan(struct hf_relay *relay, struct look *look, int64_t now_us)
{
    uint32_t buckets = relay->outbox->buckets, first = 0;

    ASSERT_RELAY_HELD(relay);
    look->len = 0;
    look->far = false;
    for (uint32_t i = 1; i < buckets; i++)
        if (hf__look_is_for(relay, &relay->reader.buckets[i], now_us) &&
            (!hf__look_is_for(relay, &relay->reader.buckets[first], now_us) ||
             relay->reader.buckets[i].sweep_us < relay->reader.buckets[first].sweep_us))
            first = i;
    for (uint32_t i = 0; i < buckets && look->len < OUTBOX_LOOK_MAX; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[(first + i) % buckets];

        if (!hf__look_is_for(relay, bucket, now_us))
            continue;
        look->numbers[look->len] = bucket->number;
        look->lives[look->len++] = bucket->life;
        look->far = look->far || bucket->far_us <= now_us;
    }
}

/* `asked_us` is from before the look. */
static void look_take(struct hf_relay *relay, const struct look *look, int64_t asked_us)
{
    ASSERT_RELAY_HELD(relay);
    for (size_t i = 0; i < look->len; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[look->numbers[i]];

        if (bucket->life != look->lives[i] || bucket->state != BUCKET_OURS)
            continue;
        bucket->bare = !look->shown[i]; /* (3) */
        bucket->sweep_us = look->shown[i] ? 0 : asked_us + (int64_t)relay->o.poll_ms * 1000;
        if (look->far && !look->shown[i])
            bucket->far_us = asked_us + RELAY_FAR_MS * INT64_C(1000);
    }
}

void hf__look_run(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;
    int64_t now_ms = relay->env.wall_us(relay->env.user) / 1000, asked_us = relay_now_us(relay);
    enum hf_status status = HF_OK;
    struct look look;
    struct outbox_looking asked;

    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    pthread_mutex_lock(&relay->mutex);
    look_plan(relay, &look, asked_us);
    pthread_mutex_unlock(&relay->mutex);
    asked = (struct outbox_looking){.buckets = look.numbers,
                                    .len = look.len,
                                    .shown = look.shown,
                                    .whole = true};
    if (look.len) /* all may have been woken or lost since it was chosen */
        status = hf__outbox_look(worker->io, relay->outbox, &asked,
                                 now_ms + hf__relay_read_ahead_ms(relay),
                                 look.far ? OUTBOX_SKEW_MS : RELAY_SKEW_MS);
    hf__relay_consumed(relay, worker->io);
    pthread_mutex_lock(&relay->mutex);
    if (status == HF_OK)
        look_take(relay, &look, asked_us);
    if (status != HF_OK || !asked.whole) /* (4) */
        relay->reader.look_again_us = relay_now_us(relay) + OUTBOX_LOOK_AGAIN_MS * INT64_C(1000);
    relay->reader.looking = false;
    relay->metrics.reads++;
    pthread_cond_broadcast(&relay->idle_cond);
    hf__relay_signal(relay);
    pthread_mutex_unlock(&relay->mutex);
}
