/*
 * events/store/events_heads.c: heads of streams: their item, and those that are remembered.
 *
 *     pk, sk   "s.STREAM", "h"
 *     v, p, h  version, position, hash of the last event; all are absent when there was none
 *     t        versions before this one are not read
 *     n, a     max_count; max_age_s
 *     x        "archived" or "deleted": nothing can be appended
 *
 * What is remembered may be out of date, as others append too. That does no harm: an append moves
 * the head on the condition that it still has the position that was seen, which no other state of
 * that stream has had or will have, and a refusal tells the head as it is.
 *
 * Remembered heads are a table with one slot for each hash; a later head of another stream takes
 * the slot over. One mutex guards all of it.
 */
#include "events/store/events.h"

#include "base/assert_held.h"

#include <time.h>

enum { GATES = 64, GATE_WAIT_MS = 2000 };

struct slot {
    uint64_t hash;
    char *pk; /* NULL: empty */
    size_t pk_len;
    uint64_t version;
    struct events_position position;
    uint8_t chain[EVENTS_HASH];
};

struct events_heads {
    pthread_mutex_t mutex;
    uint32_t len;
    struct slot slots[];
};

/* Gates of streams, by their hash. */
struct events_gates {
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t freed;
        bool taken; /* by whoever appends now */
    } list[GATES];
};

/* ---- keys ----------------------------------------------------------------------------------- */

enum hf_status hf__events_stream_pk(struct hf_scope *s, char kind,
                                    struct hf_event_stream_key stream, struct hf_str *pk)
{
    assert(kind == 's' || kind == 'n');
    *pk = hf_str_of(NULL, 0);
    if (!stream.domain.len)
        return hf_scope_fail(s, HF_INVALID, "the stream has no domain");
    if (stream.domain.len > HF_EVENTS_DOMAIN_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_EVENTS_DOMAIN_MAX, stream.domain.len),
                                   "the domain has %zu bytes, at most %d are allowed",
                                   stream.domain.len, HF_EVENTS_DOMAIN_MAX);
    if (stream.id.len > HF_EVENTS_ID_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENTS_ID_MAX, stream.id.len),
                                   "the stream id has %zu bytes, at most %d are allowed",
                                   stream.id.len, HF_EVENTS_ID_MAX);
    *pk = PATTERN_KEY(s, hf_str_of(&kind, 1), stream.domain, stream.id);
    TRY(hf_scope_built(s));
    assert(pk->len > 2 && pk->ptr[0] == kind && pk->ptr[1] == '.'); /* STREAM is what follows */
    if (pk->len > EVENTS_PK_MAX)
        return hf_scope_fail(
            s, HF_INVALID,
            "the key of stream \"%.*s...\" has %zu bytes, at most %d are allowed; a dot or a "
            "percent sign takes three",
            (int)(stream.domain.len < 20 ? stream.domain.len : 20), stream.domain.ptr, pk->len,
            EVENTS_PK_MAX);
    return HF_OK;
}

enum hf_status hf__events_stream_of(struct hf_scope *s, struct hf_str pk,
                                    struct hf_event_stream_key *stream)
{
    struct hf_str parts[3];

    TRY(hf__pattern_key_parts(s, pk, parts, ARRAY_LEN(parts)));
    *stream = (struct hf_event_stream_key){parts[1], parts[2]};
    return HF_OK;
}

struct hf_str hf__events_stream_text(struct hf_scope *s, struct hf_event_stream_key stream)
{
    return stream.id.len ? hf_scope_format(s, "%.*s/%.*s", HF_FMT(stream.domain), HF_FMT(stream.id))
                         : hf_scope_copy(s, stream.domain);
}

/* ---- the item ------------------------------------------------------------------------------- */

static bool number_of(struct hf_item item, struct hf_str name, uint64_t *number)
{
    struct hf_value value = hf_item_get(item, name);
    int64_t whole;

    if (!value.ptr)
        return true;
    if (!hf_value_i64(value, &whole) || whole < 0)
        return false;
    *number = (uint64_t)whole;
    return true;
}

enum hf_status hf__events_head_view(struct hf_scope *s, struct hf_item item,
                                    struct events_head *head)
{
    struct hf_str position = hf_value_str(hf_item_get(item, HF_STR("p")));
    struct hf_str state = hf_value_str(hf_item_get(item, HF_STR("x")));
    struct hf_bytes hash = hf_value_bytes(hf_item_get(item, HF_STR("h")));
    uint64_t max_age_s = 0;

    *head = (struct events_head){.version = 0};
    if (!item.ptr)
        return HF_OK;
    if (!number_of(item, HF_STR("v"), &head->version) ||
        !number_of(item, HF_STR("t"), &head->truncated) ||
        !number_of(item, HF_STR("n"), &head->max_count) ||
        !number_of(item, HF_STR("w"), &head->swept) || !number_of(item, HF_STR("a"), &max_age_s) ||
        max_age_s > UINT32_MAX || (head->version ? !is_position(position) : position.len != 0) ||
        (hash.len && hash.len != EVENTS_HASH))
        return hf_scope_fail(s, HF_CORRUPT, "the head of stream %.*s is damaged",
                             HF_FMT(hf_value_str(hf_item_get(item, HF_STR("pk")))));
    head->max_age_s = (uint32_t)max_age_s;
    if (position.len)
        memcpy(head->position.text, position.ptr, HF_POSITION_LEN);
    if (hash.len)
        memcpy(head->hash, hash.ptr, EVENTS_HASH);
    head->state = !state.len                                ? EVENTS_LIVE
                  : hf_str_equal(state, HF_STR("archived")) ? EVENTS_ARCHIVED
                                                            : EVENTS_DELETED;
    return HF_OK;
}

enum hf_status hf__events_head_read(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                    struct events_head *head)
{
    struct hf_item key = HF_ITEM(s, HF_S("pk", pk), HF_S("sk", HF_STR("h")));
    struct hf_item item;

    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    TRY(hf__events_head_view(s, item, head));
    hf__events_observe(store, position_str(&head->position));
    return HF_OK;
}

uint64_t hf__events_head_first(const struct events_head *head)
{
    uint64_t first = head->truncated ? head->truncated : 1;

    if (head->max_count && head->version >= head->max_count &&
        head->version - head->max_count + 1 > first)
        first = head->version - head->max_count + 1;
    return head->swept > first ? head->swept : first;
}

bool hf__events_head_expired(const struct hf_events *store, const struct events_head *head,
                             struct hf_str position)
{
    int64_t ms = 0;

    if (!head->max_age_s || !hf__events_position_read(position, &ms, NULL, NULL))
        return false;
    return ms < hf__env_wall_ms(&store->env) - (int64_t)head->max_age_s * 1000;
}

/* ---- remembering ---------------------------------------------------------------------------- */

enum hf_status hf__events_heads_new(struct hf_scope *s, struct hf_events *store, uint32_t slots)
{
    assert(slots > 0);
    store->heads =
        hf__env_zalloc(&store->env, sizeof(*store->heads) + slots * sizeof(store->heads->slots[0]));
    if (!store->heads)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an event store");
    store->heads->len = slots;
    pthread_mutex_init(&store->heads->mutex, NULL);
    return HF_OK;
}

static void slot_clear(struct hf_events *store, struct slot *slot)
{
    ASSERT_HELD(&store->heads->mutex);
    assert(slot->pk || !slot->version);
    hf__env_free(&store->env, slot->pk, slot->pk_len);
    *slot = (struct slot){.pk = NULL};
}

void hf__events_heads_clear(struct hf_events *store)
{
    pthread_mutex_lock(&store->heads->mutex);
    for (uint32_t i = 0; i < store->heads->len; i++)
        slot_clear(store, &store->heads->slots[i]);
    pthread_mutex_unlock(&store->heads->mutex);
}

void hf__events_heads_free(struct hf_events *store)
{
    if (!store->heads)
        return;
    hf__events_heads_clear(store);
    pthread_mutex_destroy(&store->heads->mutex);
    hf__env_free(&store->env, store->heads,
                 sizeof(*store->heads) + store->heads->len * sizeof(store->heads->slots[0]));
    store->heads = NULL;
}

static uint64_t hash_of(struct hf_str pk)
{
    return fnv_fold(fnv_add(FNV_BEGIN, pk.ptr, pk.len));
}

static struct slot *slot_of(struct events_heads *heads, uint64_t hash)
{
    ASSERT_HELD(&heads->mutex);
    return &heads->slots[hash % heads->len];
}

static bool slot_is_of(const struct slot *slot, uint64_t hash, struct hf_str pk)
{
    return slot->pk && slot->hash == hash && hf_str_equal(hf_str_of(slot->pk, slot->pk_len), pk);
}

bool hf__events_heads_find(struct hf_events *store, struct hf_str pk, struct events_head *head)
{
    uint64_t hash = hash_of(pk);
    const struct slot *slot;
    bool found;

    *head = (struct events_head){.version = 0};
    pthread_mutex_lock(&store->heads->mutex);
    slot = slot_of(store->heads, hash);
    found = slot_is_of(slot, hash, pk);
    if (found) {
        head->version = slot->version;
        head->position = slot->position;
        memcpy(head->hash, slot->chain, EVENTS_HASH);
        assert(head->version && head->position.text[0]);
    }
    pthread_mutex_unlock(&store->heads->mutex);
    return found;
}

/* Of two threads that come from one stream the one with the later head may come first. */
void hf__events_heads_keep(struct hf_events *store, struct hf_str pk,
                           const struct events_head *head)
{
    uint64_t hash = hash_of(pk);
    struct slot *slot;

    assert(pk.len && head->version && head->position.text[0] && head->state == EVENTS_LIVE);
    pthread_mutex_lock(&store->heads->mutex);
    slot = slot_of(store->heads, hash);
    if (!slot_is_of(slot, hash, pk)) {
        slot_clear(store, slot);
        slot->pk = store->env.alloc(NULL, 0, pk.len, store->env.user);
        if (slot->pk) {
            memcpy(slot->pk, pk.ptr, pk.len);
            slot->pk_len = pk.len;
            slot->hash = hash;
        }
    }
    if (slot->pk && head->version > slot->version) {
        slot->version = head->version;
        slot->position = head->position;
        memcpy(slot->chain, head->hash, EVENTS_HASH);
    }
    pthread_mutex_unlock(&store->heads->mutex);
}

void hf__events_heads_drop(struct hf_events *store, struct hf_str pk)
{
    uint64_t hash = hash_of(pk);
    struct slot *slot;

    pthread_mutex_lock(&store->heads->mutex);
    slot = slot_of(store->heads, hash);
    if (slot_is_of(slot, hash, pk))
        slot_clear(store, slot);
    pthread_mutex_unlock(&store->heads->mutex);
}

/* ---- gates ---------------------------------------------------------------------------------- */

enum hf_status hf__events_gates_new(struct hf_scope *s, struct hf_events *store)
{
    store->gates = hf__env_zalloc(&store->env, sizeof(*store->gates));
    if (!store->gates)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an event store");
    for (size_t i = 0; i < GATES; i++) {
        pthread_mutex_init(&store->gates->list[i].mutex, NULL);
        cond_monotonic_init(&store->gates->list[i].freed);
    }
    return HF_OK;
}

void hf__events_gates_free(struct hf_events *store)
{
    for (size_t i = 0; store->gates && i < GATES; i++) {
        pthread_cond_destroy(&store->gates->list[i].freed);
        pthread_mutex_destroy(&store->gates->list[i].mutex);
    }
    hf__env_free(&store->env, store->gates, sizeof(*store->gates));
}

void hf__events_gate_enter(struct hf_scope *s, struct hf_events *store, struct hf_str pk)
{
    size_t i = hash_of(pk) % GATES;
    pthread_mutex_t *mutex = &store->gates->list[i].mutex;
    int64_t wait_us = (int64_t)hf_scope_left_ms(s, GATE_WAIT_MS) * 1000;
    struct timespec until;
    int waited = 0;

    pthread_mutex_lock(mutex);
    if (store->gates->list[i].taken)
        until = monotonic_in_us(wait_us);
    while (store->gates->list[i].taken && waited == 0)
        waited = pthread_cond_timedwait(&store->gates->list[i].freed, mutex, &until);
    store->gates->list[i].taken = true;
    pthread_mutex_unlock(mutex);
}

void hf__events_gate_leave(struct hf_events *store, struct hf_str pk)
{
    size_t i = hash_of(pk) % GATES;

    pthread_mutex_lock(&store->gates->list[i].mutex);
    store->gates->list[i].taken = false;
    pthread_cond_signal(&store->gates->list[i].freed);
    pthread_mutex_unlock(&store->gates->list[i].mutex);
}
