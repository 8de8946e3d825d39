/*
 * records/processor_wait.c: records that are not to be begun yet: another works on them, or they
 * failed and wait for their next attempt.
 *
 * The index shows them all the time, and each look at one of them costs a call. So they are
 * remembered with the time of the next look, and with what was seen and since when: a claim whose
 * beat does not change for a lease has lost its owner.
 *
 *  (1) first_us is from after the same claim with the same beat was read for the first time since
 *      it was remembered. Forgetting one too many delays a take-over and nothing else.
 *  (2) There are at most WAITS_MAX; beyond that nothing is remembered, and those that are make room
 *      when they are done.
 */
#include "records/processor.h"

_Static_assert((WAITS_BUCKETS & (WAITS_BUCKETS - 1)) == 0, "a power of two");

struct wait_entry {
    struct wait_entry *next;
    uint64_t hash;
    uint64_t pass;
    int64_t due_us;
    struct wait_seen seen;
    size_t account_len, run_time_len;
    char text[];
};

static size_t entry_size(const struct wait_entry *entry)
{
    return sizeof(*entry) + entry->account_len + entry->run_time_len;
}

static bool is_of(const struct wait_entry *entry, uint64_t hash, struct record_key key)
{
    return entry->hash == hash && entry->account_len == key.account.len &&
           entry->run_time_len == key.run_time.len &&
           memcmp(entry->text, key.account.ptr, key.account.len) == 0 &&
           memcmp(entry->text + key.account.len, key.run_time.ptr, key.run_time.len) == 0;
}

static struct wait_entry *entry_find(const struct waits *waits, struct record_key key)
{
    uint64_t hash = hf__record_hash(key);
    struct wait_entry *entry = waits->buckets[hash % WAITS_BUCKETS];

    while (entry && !is_of(entry, hash, key))
        entry = entry->next;
    return entry;
}

static void entry_drop(struct waits *waits, struct wait_entry **link)
{
    struct wait_entry *entry = *link;

    assert(waits->len > 0);
    *link = entry->next;
    hf__env_free(waits->env, entry, entry_size(entry));
    waits->len--;
}

int64_t hf__waits_due_us(struct waits *waits, struct record_key key, uint64_t pass)
{
    struct wait_entry *entry = waits->len ? entry_find(waits, key) : NULL;

    if (!entry)
        return 0;
    entry->pass = pass;
    return entry->due_us;
}

bool hf__waits_seen(const struct waits *waits, struct record_key key, struct wait_seen *seen)
{
    const struct wait_entry *entry = waits->len ? entry_find(waits, key) : NULL;

    *seen = (struct wait_seen){.beat = 0};
    if (!entry)
        return false;
    *seen = entry->seen;
    return true;
}

static struct wait_entry *entry_add(struct waits *waits, struct record_key key)
{
    size_t size = sizeof(struct wait_entry) + key.account.len + key.run_time.len;
    struct wait_entry *entry, **bucket;

    if (waits->len >= WAITS_MAX)
        return NULL;
    entry = hf__env_zalloc(waits->env, size);
    if (!entry)
        return NULL;
    entry->hash = hf__record_hash(key);
    entry->account_len = key.account.len;
    entry->run_time_len = key.run_time.len;
    memcpy(entry->text, key.account.ptr, key.account.len);
    memcpy(entry->text + key.account.len, key.run_time.ptr, key.run_time.len);
    bucket = &waits->buckets[entry->hash % WAITS_BUCKETS];
    entry->next = *bucket;
    *bucket = entry;
    waits->len++;
    assert(waits->len <= WAITS_MAX && "(2)");
    return entry;
}

int64_t hf__waits_note(struct waits *waits, struct record_key key, struct hf_str id, uint64_t beat,
                       int64_t now_us, uint64_t pass)
{
    struct wait_entry *entry = entry_find(waits, key);
    size_t len = id.len < PATTERN_ID_LEN ? id.len : PATTERN_ID_LEN;

    if (!entry)
        entry = entry_add(waits, key);
    if (!entry)
        return now_us;
    if (!entry->seen.first_us || entry->seen.beat != beat ||
        !hf_str_equal(hf_str_from(entry->seen.id.text), hf_str_of(id.ptr, len))) {
        entry->seen = (struct wait_seen){.beat = beat, .first_us = now_us};
        if (len)
            memcpy(entry->seen.id.text, id.ptr, len);
    }
    entry->pass = pass;
    assert(entry->seen.first_us <= now_us && "(1)");
    return entry->seen.first_us;
}

void hf__waits_until(struct waits *waits, struct record_key key, int64_t due_us)
{
    struct wait_entry *entry = entry_find(waits, key);

    if (entry)
        entry->due_us = due_us;
}

void hf__waits_forget(struct waits *waits, struct record_key key)
{
    uint64_t hash;

    if (!waits->len)
        return;
    hash = hf__record_hash(key);
    for (struct wait_entry **link = &waits->buckets[hash % WAITS_BUCKETS]; *link;
         link = &(*link)->next)
        if (is_of(*link, hash, key)) {
            entry_drop(waits, link);
            return;
        }
}

void hf__waits_sweep(struct waits *waits, uint64_t pass)
{
    for (size_t i = 0; i < WAITS_BUCKETS && waits->len; i++)
        for (struct wait_entry **link = &waits->buckets[i]; *link;) {
            if ((*link)->pass < pass)
                entry_drop(waits, link);
            else
                link = &(*link)->next;
        }
}

int64_t hf__waits_first_us(const struct waits *waits)
{
    int64_t first_us = INT64_MAX;

    for (size_t i = 0; i < WAITS_BUCKETS && waits->len; i++)
        for (const struct wait_entry *entry = waits->buckets[i]; entry; entry = entry->next)
            first_us = entry->due_us < first_us ? entry->due_us : first_us;
    return first_us;
}

void hf__waits_free(struct waits *waits)
{
    hf__waits_sweep(waits, UINT64_MAX);
    assert(waits->len == 0);
}
