/*
 * events/store/events_position.c: positions, the days and shards that they are in, and the markers
 * that say up to where those are closed.
 *
 * A position is 26 characters of Crockford's base 32, in upper case: to others it is a ULID.
 *
 *     10  milliseconds since 1970
 *      4  a count
 *      2  the shard
 *      8  random, the same for all commits of an append
 *      2  the number of the event in its commit
 *
 * Time and count together are the clock of a store, one number of 64 bits: the greater one of the
 * time of day and of one more than what was given out or seen last.
 *
 *  (1) No two positions of one store have the same time and count, and later ones have greater; but
 *      for those that are taken ahead of time, for appends that take long, which are random enough.
 *  (2) All commits of an append have the same time, and so the same day: one marker is checked.
 *  (3) A marker is made only while its day may still come, in one transaction with d/DAY, so a
 *      reader that lists days sees every day that has a marker.
 */
#include "events/store/events.h"

#include "base/base32.h"

enum {
    TIME_DIGITS = 10,
    COUNT_DIGITS = 4,
    SHARD_DIGITS = 2,
    RANDOM_DIGITS = 8,
    NUMBER_DIGITS = 2,
    COUNT_BITS = 5 * COUNT_DIGITS,
    MARKER_ATTEMPTS = 20,
    MARKER_DELAY_MS = 10
};

_Static_assert(TIME_DIGITS + COUNT_DIGITS + SHARD_DIGITS + RANDOM_DIGITS + NUMBER_DIGITS ==
                   HF_POSITION_LEN,
               "position");
_Static_assert(EVENTS_COMMIT_MAX == 1 << 5 * NUMBER_DIGITS, "numbers");
_Static_assert(HF_EVENTS_SHARDS_MAX <= 64, "a bit each in `busy`");

#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define TIME_MAX (INT64_C(1) << (63 - COUNT_BITS)) /* the year 2248 */
#define DAY_MS INT64_C(86400000)

/* ---- texts ---------------------------------------------------------------------------------- */

static char *write_digits(char *to, uint64_t number, int digits)
{
    return base32_write(to, number, digits, BASE32_UPPER);
}

static bool read_digits(const char *from, int digits, uint64_t *number)
{
    return base32_read(from, digits, BASE32_UPPER, number);
}

static struct events_position write_position(uint64_t clock, uint32_t shard, uint64_t random)
{
    struct events_position position;
    char *to = write_digits(position.text, clock >> COUNT_BITS, TIME_DIGITS);

    assert(shard < HF_EVENTS_SHARDS_MAX);
    to = write_digits(to, clock & COUNT_MASK, COUNT_DIGITS);
    to = write_digits(to, shard, SHARD_DIGITS);
    to = write_digits(to, random, RANDOM_DIGITS);
    to = write_digits(to, 0, NUMBER_DIGITS);
    *to = '\0';
    assert(to == position.text + HF_POSITION_LEN);
    return position;
}

static bool read_clock(struct hf_str position, uint64_t *clock)
{
    uint64_t ms, count;

    if (position.len != HF_POSITION_LEN || !read_digits(position.ptr, TIME_DIGITS, &ms) ||
        !read_digits(position.ptr + TIME_DIGITS, COUNT_DIGITS, &count) || ms >= (uint64_t)TIME_MAX)
        return false;
    *clock = ms << COUNT_BITS | count;
    return true;
}

bool hf__events_position_read(struct hf_str position, int64_t *ms, uint32_t *shard,
                              uint32_t *number)
{
    uint64_t clock, in_shard, random, of_event;
    const char *rest;

    if (!read_clock(position, &clock))
        return false;
    rest = position.ptr + TIME_DIGITS + COUNT_DIGITS;
    if (!read_digits(rest, SHARD_DIGITS, &in_shard) ||
        !read_digits(rest + SHARD_DIGITS, RANDOM_DIGITS, &random) ||
        !read_digits(rest + SHARD_DIGITS + RANDOM_DIGITS, NUMBER_DIGITS, &of_event) ||
        in_shard >= HF_EVENTS_SHARDS_MAX)
        return false;
    if (ms)
        *ms = (int64_t)(clock >> COUNT_BITS);
    if (shard)
        *shard = (uint32_t)in_shard;
    if (number)
        *number = (uint32_t)of_event;
    return true;
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* (1) (2) */
static uint64_t take_clock(struct hf_events *store, uint32_t count)
{
    int64_t now_ms = hf__env_wall_ms(&store->env);
    uint64_t now = now_ms > 0 && now_ms < TIME_MAX ? (uint64_t)now_ms << COUNT_BITS : 0;
    uint64_t last = atomic_load(&store->clock), next;

    assert(count >= 1 && count <= COUNT_MASK);
    do {
        next = now > last ? now : last + 1;
        if ((next & COUNT_MASK) + count - 1 > COUNT_MASK)
            next = (next | COUNT_MASK) + 1;
    } while (!atomic_compare_exchange_weak(&store->clock, &last, next + count - 1));
    return next;
}

struct events_position hf__events_position_make(struct hf_events *store, uint32_t shard,
                                                uint32_t count)
{
    uint64_t random;

    store->env.random(&random, sizeof(random), store->env.user);
    return write_position(take_clock(store, count), shard, random);
}

struct events_position hf__events_position_ahead(struct hf_events *store, uint32_t shard,
                                                 uint32_t count, uint32_t ahead_ms,
                                                 struct hf_str after)
{
    int64_t ms = hf__env_wall_ms(&store->env) + ahead_ms;
    uint64_t clock = (uint64_t)(ms > 0 && ms < TIME_MAX ? ms : 0) << COUNT_BITS;
    uint64_t seen = atomic_load(&store->clock), of_after, random;

    assert(count >= 1 && count <= COUNT_MASK);
    clock = clock > seen ? clock : seen + 1;
    if (read_clock(after, &of_after) && of_after >= clock)
        clock = of_after + 1;
    if ((clock & COUNT_MASK) + count - 1 > COUNT_MASK)
        clock = (clock | COUNT_MASK) + 1; /* (2) */
    store->env.random(&random, sizeof(random), store->env.user);
    return write_position(clock, shard, random);
}

struct events_position hf__events_position_later(const struct events_position *base, uint32_t more)
{
    struct events_position later = *base;
    uint64_t count = 0;
    bool read = read_digits(base->text + TIME_DIGITS, COUNT_DIGITS, &count);

    assert(read && count + more <= COUNT_MASK);
    (void)read;
    write_digits(later.text + TIME_DIGITS, count + more, COUNT_DIGITS);
    return later;
}

void hf__events_position_number(struct events_position *position, uint32_t number)
{
    assert(number < EVENTS_COMMIT_MAX && position->text[0]);
    write_digits(position->text + HF_POSITION_LEN - NUMBER_DIGITS, number, NUMBER_DIGITS);
}

void hf__events_observe(struct hf_events *store, struct hf_str position)
{
    uint64_t last = atomic_load(&store->clock), seen;

    if (!read_clock(position, &seen))
        return;
    while (seen > last && !atomic_compare_exchange_weak(&store->clock, &last, seen))
        ;
}

struct events_position hf__events_position_floor(int64_t ms)
{
    int64_t in = ms < TIME_MAX ? ms : TIME_MAX - 1; /* behind all there is */

    return write_position(in > 0 ? (uint64_t)in << COUNT_BITS : 0, 0, 0);
}

/* ---- days and parts ------------------------------------------------------------------------- */

static char *write_number(char *to, int64_t number, int digits)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    return to + digits;
}

/* Days since 1970 to the calendar: years begin in March, so that a leap day is the last one; 400
 * years have 146097 days. */
void hf__events_day(int64_t ms, char day[EVENTS_DAY_LEN + 1])
{
    int64_t days = (ms > 0 ? ms : 0) / DAY_MS + 719468; /* since March 1st of the year 0 */
    int64_t era = days / 146097, of_era = days % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* 0: March */
    char *to = day;

    to = write_number(to, era * 400 + year + (month >= 10), 4);
    to = write_number(to, month < 10 ? month + 3 : month - 9, 2);
    to = write_number(to, of_year - (153 * month + 2) / 5 + 1, 2);
    *to = '\0';
}

static int64_t read_number(const char *from, int digits)
{
    int64_t number = 0;

    for (int i = 0; i < digits; i++)
        number = number * 10 + (from[i] - '0');
    return number;
}

bool hf__events_day_begin(struct hf_str day, int64_t *ms)
{
    char again[EVENTS_DAY_LEN + 1];
    int64_t year, month, of_year;

    if (day.len != EVENTS_DAY_LEN)
        return false;
    for (size_t i = 0; i < day.len; i++)
        if (day.ptr[i] < '0' || day.ptr[i] > '9')
            return false;
    month = read_number(day.ptr + 4, 2);
    year = read_number(day.ptr, 4) - (month <= 2);
    month = month > 2 ? month - 3 : month + 9;
    of_year = (153 * month + 2) / 5 + read_number(day.ptr + 6, 2) - 1;
    *ms = (365 * year + year / 4 - year / 100 + year / 400 + of_year - 719468) * DAY_MS;
    hf__events_day(*ms, again);
    return memcmp(again, day.ptr, EVENTS_DAY_LEN) == 0; /* no February 30th, nor before 1970 */
}

bool hf__events_is_day(struct hf_str day)
{
    int64_t ms;

    return hf__events_day_begin(day, &ms);
}

enum hf_status hf__events_fail_day(struct hf_scope *s, const struct hf_events *store,
                                   struct hf_str day)
{
    return hf_scope_fail(s, HF_CORRUPT,
                         "event store %.*s: \"%.*s\" in the list of days is not a day",
                         HF_FMT(store->table), HF_FMT(day));
}

struct hf_str hf__events_part(struct hf_scope *s, char kind, struct hf_str day, uint32_t shard)
{
    char *text = hf_scope_alloc(s, EVENTS_PART_LEN + 1);

    assert(kind == 'a' || kind == 'z' || kind == 'm');
    assert(day.len == EVENTS_DAY_LEN && shard < HF_EVENTS_SHARDS_MAX);
    if (!text)
        return hf_str_of(NULL, 0);
    text[0] = kind;
    text[1] = '.';
    memcpy(text + 2, day.ptr, EVENTS_DAY_LEN);
    text[2 + EVENTS_DAY_LEN] = '.';
    *write_number(text + 3 + EVENTS_DAY_LEN, shard, 2) = '\0';
    return hf_str_of(text, EVENTS_PART_LEN);
}

struct hf_str hf__events_part_of(struct hf_scope *s, char kind, struct hf_str position)
{
    char day[EVENTS_DAY_LEN + 1];
    uint32_t shard = 0;
    int64_t ms = 0;
    bool read = hf__events_position_read(position, &ms, &shard, NULL);

    assert(read);
    (void)read;
    hf__events_day(ms, day);
    return hf__events_part(s, kind, hf_str_of(day, EVENTS_DAY_LEN), shard);
}

/* ---- shards --------------------------------------------------------------------------------- */

uint32_t hf__events_shard_take(struct hf_events *store)
{
    uint32_t first = atomic_fetch_add(&store->next_shard, 1) % store->shards;

    for (uint32_t i = 0; i < store->shards; i++) {
        uint32_t shard = (first + i) % store->shards;
        uint64_t bit = UINT64_C(1) << shard;

        if (!(atomic_fetch_or(&store->busy, bit) & bit))
            return shard;
    }
    return first; /* all are in use: then it is one of those, and whoever is first gives it back */
}

void hf__events_shard_give(struct hf_events *store, uint32_t shard)
{
    assert(shard < store->shards);
    atomic_fetch_and(&store->busy, ~(UINT64_C(1) << shard));
}

/* ---- markers -------------------------------------------------------------------------------- */

static uint32_t day_number(struct hf_str position, uint32_t *shard)
{
    int64_t ms = 0;
    bool read = hf__events_position_read(position, &ms, shard, NULL);

    assert(read);
    (void)read;
    return (uint32_t)(ms / DAY_MS);
}

bool hf__events_marked(const struct hf_events *store, struct hf_str position)
{
    uint32_t shard, day = day_number(position, &shard);

    return atomic_load(&store->marked[shard]) == day;
}

void hf__events_mark(struct hf_events *store, struct hf_str position, bool there)
{
    uint32_t shard, day = day_number(position, &shard);

    atomic_store(&store->marked[shard], there ? day : 0);
}

static struct hf_item marker_key(struct hf_scope *s, struct hf_str position)
{
    return HF_ITEM(s, HF_S("pk", hf__events_part_of(s, 'm', position)), HF_S("sk", HF_STR("m")));
}

struct hf_condition_check hf__events_marker_check(struct hf_scope *s, struct hf_events *store,
                                                  struct hf_str position)
{
    return (struct hf_condition_check){.table = store->table,
                                       .key = marker_key(s, position),
                                       .condition = HF_STR("#c < :p"),
                                       .names = store->names_marker,
                                       .values = HF_ITEM(s, HF_S(":p", position)),
                                       .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

/* What became of an attempt to make one. The day is over: go on behind that. */
static enum hf_status marker_refused(struct hf_scope *s, struct hf_events *store, bool *again,
                                     bool *over)
{
    const struct hf_error *error = hf_scope_error(s);
    struct events_position floor;
    struct hf_str upto;
    int64_t ms;

    *again = true;
    for (size_t i = 0; i < error->reasons_len && i < 2; i++) {
        if (!hf_str_equal(error->reasons[i].code, HF_STR("ConditionalCheckFailed")))
            continue;
        *again = false;
        if (i == 1)
            return HF_OK; /* somebody else made it */
        upto = hf_value_str(hf_item_get(error->reasons[0].item, HF_STR("u")));
        if (!upto.len) {
            struct hf_item closed;

            TRY(hf__pattern_read(s, store->db, store->table,
                                 HF_ITEM(s, HF_S("pk", HF_STR("d")), HF_S("sk", HF_STR("closed"))),
                                 &closed));
            upto = hf_value_str(hf_item_get(closed, HF_STR("u")));
        }
        if (!hf__events_day_begin(upto, &ms))
            return hf__events_fail_day(s, store, upto);
        floor = hf__events_position_floor(ms);
        hf__events_observe(store, position_str(&floor));
        *over = true;
        return HF_OK;
    }
    return HF_OK;
}

/* (3) */
static enum hf_status marker_send(struct hf_scope *s, struct hf_events *store,
                                  struct hf_str position, struct hf_str day)
{
    struct hf_condition_check check = {.table = store->table,
                                       .key = HF_ITEM(s, HF_S("pk", HF_STR("d")),
                                                      HF_S("sk", HF_STR("closed"))),
                                       .condition =
                                           HF_STR("attribute_not_exists(#u) OR #u <= :day"),
                                       .names = HF_ITEM(s, HF_S("#u", HF_STR("u"))),
                                       .values = HF_ITEM(s, HF_S(":day", day)),
                                       .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
    struct hf_put_item marker = {.table = store->table,
                                 .item = hf_item_with(s, marker_key(s, position),
                                                      &(struct hf_attr)HF_S("c", HF_STR("0")), 1),
                                 .condition = HF_STR("attribute_not_exists(#pk)"),
                                 .names = store->names_pk};
    struct hf_update_item named = {.table = store->table,
                                   .key = HF_ITEM(s, HF_S("pk", HF_STR("d")), HF_S("sk", day)),
                                   .update = HF_STR("SET #f = :one"),
                                   .names = HF_ITEM(s, HF_S("#f", HF_STR("f"))),
                                   .values = HF_ITEM(s, HF_N(":one", 1))};
    const struct hf_transact_write actions[] = {{.check = &check},
                                                {.put = &marker},
                                                {.update = &named}};

    TRY(hf_scope_built(s));
    return hf_transact_write_items(s, store->db,
                                   &(struct hf_transact_write_items){.actions = actions,
                                                                     .actions_len =
                                                                         ARRAY_LEN(actions)},
                                   NULL);
}

enum hf_status hf__events_marker_make(struct hf_scope *s, struct hf_events *store,
                                      struct hf_str position, bool *over)
{
    char day[EVENTS_DAY_LEN + 1];
    int64_t ms = 0;

    assert(is_position(position));
    *over = false;
    hf__events_position_read(position, &ms, NULL, NULL);
    hf__events_day(ms, day);
    for (int attempt = 1;; attempt++) {
        enum hf_status status = marker_send(s, store, position, hf_str_of(day, EVENTS_DAY_LEN));
        const struct hf_error *error = hf_scope_error(s);
        bool again = error->may_have_happened || error->may_retry || status == HF_TX_CONFLICT;

        if (status == HF_TX_CANCELED) {
            TRY(marker_refused(s, store, &again, over));
            if (!again)
                return HF_OK;
        }
        if (status == HF_OK || !again || attempt == MARKER_ATTEMPTS)
            return status;
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&store->env, MARKER_DELAY_MS)));
    }
}
