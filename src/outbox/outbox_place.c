/*
 * outbox/outbox_place.c: where events are stored: buckets, seqs, keys; when they are due.
 *
 * The seq of an event is 26 digits of base 32 (Crockford's, in lower case, so that they sort as
 * bytes do): 10 of the time when it is due, in milliseconds since 1970; 2 of its bucket; 8 of a
 * number that this process counts up from a random start; 6 that are random. What always holds:
 *
 *  (1) Of two events of one outbox handle that are due at the same time, or both at once, the one
 *      that was emitted later has the greater seq; also when the clock steps back, by up to
 *      OUTBOX_SKEW_MS. When it steps back by more the seqs go back with it, as events would otherwise
 *      be due only when the clock is where it was.
 *  (2) The bucket is that of the key, by a hash that is the same forever.
 *
 * Only an event that was scheduled by its caller has the attribute `due`. One that has none is due
 * at once, whatever its seq says, within OUTBOX_SKEW_MS: so a clock that is a little ahead delays
 * nothing.
 *
 * What is urgent has its place among the urgent ones and the attribute `urgent`. It is due at once,
 * so it is never early, and its time is that of its place and OUTBOX_URGENT_MS. A place among them
 * without the attribute is one of a time before 2020; the attribute in another place means nothing.
 */
#include "outbox/outbox.h"

#include <inttypes.h>

#include "base/base32.h"

enum { TIME_DIGITS = 10, BUCKET_DIGITS = 2, COUNT_DIGITS = 8, RANDOM_DIGITS = 6 };

_Static_assert(TIME_DIGITS + BUCKET_DIGITS + COUNT_DIGITS + RANDOM_DIGITS == OUTBOX_SEQ_LEN, "seq");
_Static_assert(HF_OUTBOX_BUCKETS_MAX <= 32 * 32, "a bucket has two digits");
_Static_assert(HF_OUTBOX_BUCKETS_MAX <= 1000, "a bucket has three digits in a pk");
_Static_assert(sizeof(OUTBOX_URGENT_END) - 1 == TIME_DIGITS, "it is compared as a time");
_Static_assert(OUTBOX_DUE_MAX_MS == (INT64_C(1) << (5 * TIME_DIGITS)) - 1, "a time has ten digits");

#define COUNT_MAX ((UINT64_C(1) << (5 * COUNT_DIGITS)) - 1)

/* ---- digits --------------------------------------------------------------------------------- */

static char *write_digits(char *to, uint64_t number, int digits)
{
    return base32_write(to, number, digits, BASE32_LOWER);
}

static bool read_digits(const char *from, int digits, uint64_t *number)
{
    return base32_read(from, digits, BASE32_LOWER, number);
}

static int64_t clamp_ms(int64_t ms)
{
    return ms < 0 ? 0 : ms > OUTBOX_DUE_MAX_MS ? OUTBOX_DUE_MAX_MS : ms;
}

static void write_seq(struct outbox_place *place, int64_t ms, uint64_t count, uint64_t random)
{
    char *to = write_digits(place->seq, (uint64_t)clamp_ms(ms), TIME_DIGITS);

    to = write_digits(to, place->bucket, BUCKET_DIGITS);
    to = write_digits(to, count, COUNT_DIGITS);
    to = write_digits(to, random, RANDOM_DIGITS);
    *to = '\0';
    assert(to == place->seq + OUTBOX_SEQ_LEN);
}

void hf__outbox_seq_floor(int64_t due_ms, char seq[OUTBOX_SEQ_LEN + 1])
{
    struct outbox_place place = {.bucket = 0};

    write_seq(&place, due_ms, 0, 0);
    memcpy(seq, place.seq, OUTBOX_SEQ_LEN + 1);
}

/* ---- places --------------------------------------------------------------------------------- */

static uint64_t hash_of(struct hf_str text, uint64_t begin)
{
    return fnv_fold(fnv_add(begin, text.ptr, text.len));
}

/* (2) */
uint32_t hf__outbox_bucket(const struct hf_outbox *outbox, struct hf_str key)
{
    assert(outbox->buckets && outbox->buckets <= HF_OUTBOX_BUCKETS_MAX);
    return (uint32_t)(hash_of(key, FNV_BEGIN) % outbox->buckets);
}

static int64_t shift_ms(bool urgent)
{
    return urgent ? OUTBOX_URGENT_MS : 0;
}

void hf__outbox_place_make(struct hf_outbox *outbox, int64_t due_ms, bool urgent, uint32_t bucket,
                           struct outbox_place *place)
{
    int64_t now_ms = hf__env_wall_ms(&outbox->env), ms;
    uint32_t bits[2];
    uint64_t count;

    assert(bucket == UINT32_MAX || bucket < outbox->buckets);
    hf__env_random(&outbox->env, bits, sizeof(bits));
    pthread_mutex_lock(&outbox->mutex);
    if (outbox->last_ms < now_ms || outbox->last_ms - now_ms > OUTBOX_SKEW_MS)
        outbox->last_ms = now_ms; /* (1) */
    if (outbox->last_count == COUNT_MAX) {
        outbox->last_count = 0;
        outbox->last_ms++;
    }
    count = ++outbox->last_count;
    assert(count <= COUNT_MAX);
    ms = outbox->last_ms;
    pthread_mutex_unlock(&outbox->mutex);
    place->bucket = bucket == UINT32_MAX ? bits[1] % outbox->buckets : bucket;
    write_seq(place, (due_ms > ms ? due_ms : ms) - shift_ms(urgent), count, bits[0]);
}

void hf__outbox_place_of_id(const struct hf_outbox *outbox, struct hf_str id, struct hf_str key,
                            int64_t due_ms, bool urgent, struct outbox_place *place)
{
    place->bucket = hf__outbox_bucket(outbox, key.len ? key : id);
    write_seq(place, due_ms - shift_ms(urgent), hash_of(id, FNV_BEGIN),
              hash_of(id, 0x9E3779B97F4A7C15u));
}

static int64_t seq_ms(const char *seq)
{
    uint64_t ms;

    return read_digits(seq, TIME_DIGITS, &ms) ? (int64_t)ms : 0;
}

void hf__outbox_seq_among(struct hf_str seq, bool urgent, char to[OUTBOX_SEQ_LEN + 1])
{
    int64_t ms = seq_ms(seq.ptr) + shift_ms(is_urgent_seq(seq.ptr)) - shift_ms(urgent);

    assert(seq.len == OUTBOX_SEQ_LEN);
    memcpy(to, seq.ptr, OUTBOX_SEQ_LEN);
    write_digits(to, (uint64_t)clamp_ms(ms), TIME_DIGITS);
    to[OUTBOX_SEQ_LEN] = '\0';
}

bool hf__outbox_place_read(const struct hf_outbox *outbox, struct hf_str seq,
                           struct outbox_place *place)
{
    uint64_t number, bucket;

    if (seq.len != OUTBOX_SEQ_LEN || !read_digits(seq.ptr, TIME_DIGITS, &number) ||
        !read_digits(seq.ptr + TIME_DIGITS, BUCKET_DIGITS, &bucket) || bucket >= outbox->buckets ||
        !read_digits(seq.ptr + TIME_DIGITS + BUCKET_DIGITS, COUNT_DIGITS, &number) ||
        !read_digits(seq.ptr + OUTBOX_SEQ_LEN - RANDOM_DIGITS, RANDOM_DIGITS, &number))
        return false;
    place->bucket = (uint32_t)bucket;
    memcpy(place->seq, seq.ptr, OUTBOX_SEQ_LEN);
    place->seq[OUTBOX_SEQ_LEN] = '\0';
    return true;
}

bool hf__outbox_seq_bucket(struct hf_str seq, uint32_t *bucket)
{
    uint64_t number;

    *bucket = 0;
    if (seq.len != OUTBOX_SEQ_LEN || !read_digits(seq.ptr + TIME_DIGITS, BUCKET_DIGITS, &number))
        return false;
    assert(number < 32 * 32);
    *bucket = (uint32_t)number;
    return true;
}

bool hf__outbox_place_fits(const struct hf_outbox *outbox, const struct outbox_place *place,
                           const struct hf_event *event)
{
    struct hf_str key = hf__outbox_event_key(event);
    int64_t place_ms = seq_ms(place->seq) + shift_ms(event->urgent), due_ms = event->due_us / 1000;
    int64_t now_ms = hf__env_wall_ms(&outbox->env);

    if ((key.len && hf__outbox_bucket(outbox, key) != place->bucket) ||
        event->urgent != is_urgent_seq(place->seq))
        return false;
    return place_ms == due_ms || (due_ms < place_ms && place_ms <= now_ms + OUTBOX_SKEW_MS);
}

int64_t hf__outbox_due_ms(const struct hf_outbox_event *event)
{
    if (event->ref.len != OUTBOX_SEQ_LEN)
        return 0;
    return seq_ms(event->ref.ptr) + shift_ms(event->event.urgent);
}

bool hf__outbox_is_early(const struct hf_outbox_event *event, int64_t now_us)
{
    if (event->event.due_us)
        return event->event.due_us > now_us;
    if (event->event.urgent)
        return false;
    return hf__outbox_due_ms(event) - OUTBOX_SKEW_MS > now_us / 1000;
}

/* ---- keys ----------------------------------------------------------------------------------- */

struct hf_str hf__outbox_pk(struct hf_scope *s, const char *partition, uint32_t bucket)
{
    assert(partition[0] && !partition[1]);
    return hf_scope_format(s, "%s.%03" PRIu32, partition, bucket);
}

struct hf_item hf__outbox_key_of(struct hf_scope *s, const struct hf_outbox *outbox,
                                 struct hf_str pk, struct hf_str sk)
{
    const struct hf_attr key[] = {outbox_key_attr(outbox->at.hash, pk),
                                  outbox_key_attr(outbox->at.sort, sk)};

    return hf_item_make(s, key, ARRAY_LEN(key));
}

struct hf_item hf__outbox_key(struct hf_scope *s, const struct hf_outbox *outbox,
                              const char *partition, uint32_t bucket, struct hf_str seq)
{
    return hf__outbox_key_of(s, outbox, hf__outbox_pk(s, partition, bucket), seq);
}
