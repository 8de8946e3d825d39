/*
 * backup/manifest.c: the manifest as bytes, see manifest.h.
 */
#include "backup/manifest.h"

enum {
    FIXED = MANIFEST_TOKEN + 4 * 8 + FORM_HASH + 8 + 1,
    EPOCH = 4 * 8 + 1 + FORM_HASH,
    SNAPSHOT = 7 * 8 + FORM_HASH
};

const struct backup_epoch *hf__chain_epoch_of(const struct manifest *m, uint64_t seq)
{
    for (size_t i = manifest_epochs(m); i-- > 0;)
        if (manifest_epoch(m, i)->first_seq <= seq)
            return manifest_epoch(m, i);
    return NULL;
}

const struct backup_epoch *hf__chain_break_behind(const struct manifest *m, uint64_t epoch)
{
    for (size_t i = 0; i < manifest_epochs(m); i++)
        if (manifest_epoch(m, i)->epoch > epoch && !manifest_epoch(m, i)->joined)
            return manifest_epoch(m, i);
    return NULL;
}

bool hf__chain_has_base(const struct manifest *m)
{
    size_t len = manifest_snapshots(m);

    return len && !hf__chain_break_behind(m, manifest_snapshot(m, len - 1)->epoch);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_u64(struct hf__buf *to, uint64_t number)
{
    uint8_t bytes[8];

    store_u64le(bytes, number);
    hf__buf_put(to, bytes, sizeof(bytes));
}

static void put_u32(struct hf__buf *to, size_t number)
{
    uint8_t bytes[4];

    assert(number <= UINT32_MAX);
    store_u32le(bytes, (uint32_t)number);
    hf__buf_put(to, bytes, sizeof(bytes));
}

static void put_epoch(struct hf__buf *to, const struct backup_epoch *e)
{
    put_u64(to, e->epoch);
    put_u64(to, e->first_seq);
    put_u64(to, e->base);
    put_u64(to, (uint64_t)e->time_us);
    hf__buf_put_byte(to, e->joined);
    hf__buf_put(to, e->before, FORM_HASH);
}

static void put_snapshot(struct hf__buf *to, const struct backup_snapshot *p)
{
    put_u64(to, p->epoch);
    put_u64(to, p->seq);
    put_u64(to, p->last);
    put_u64(to, (uint64_t)p->time_us);
    put_u64(to, p->parts);
    put_u64(to, p->entries);
    put_u64(to, p->bytes);
    hf__buf_put(to, p->hash, FORM_HASH);
}

enum hf_status hf__chain_manifest_make(struct hf_scope *s, const struct form *form,
                                       const struct manifest *m, struct hf_bytes *object)
{
    struct form_head head = {.kind = FORM_MANIFEST,
                             .id = m->id,
                             .epoch = m->epoch,
                             .to_us = m->to_us};
    struct hf__buf to = {.scope = s};
    uint8_t hash[FORM_HASH];

    hf__form_begin(&to);
    hf__buf_put(&to, m->token, MANIFEST_TOKEN);
    put_u64(&to, m->tail.seq);
    put_u64(&to, (uint64_t)m->tail.to_us);
    put_u64(&to, m->tail.last);
    put_u64(&to, m->tail.check);
    hf__buf_put(&to, m->tail.hash, FORM_HASH);
    put_u64(&to, m->floor);
    hf__buf_put_byte(&to, m->closed);
    put_u32(&to, manifest_epochs(m));
    for (size_t i = 0; i < manifest_epochs(m); i++)
        put_epoch(&to, manifest_epoch(m, i));
    put_u32(&to, manifest_snapshots(m));
    for (size_t i = 0; i < manifest_snapshots(m); i++)
        put_snapshot(&to, manifest_snapshot(m, i));
    TRY(hf__form_end(s, form, &head, &to, hash));
    *object = hf_bytes_of(to.ptr, to.len);
    return HF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const uint8_t *bytes_take(struct hf_bytes *from, size_t len)
{
    const uint8_t *taken = from->ptr;

    if (len > from->len)
        return NULL;
    *from = hf_bytes_of(from->ptr + len, from->len - len);
    return taken;
}

static uint64_t number_at(const uint8_t *bytes, size_t i)
{
    return load_u64le(bytes + 8 * i);
}

static void read_fixed(const uint8_t *b, struct manifest *m)
{
    memcpy(m->token, b, MANIFEST_TOKEN);
    b += MANIFEST_TOKEN;
    m->tail = (struct backup_tail){.seq = number_at(b, 0),
                                   .to_us = (int64_t)number_at(b, 1),
                                   .last = number_at(b, 2),
                                   .check = number_at(b, 3)};
    memcpy(m->tail.hash, b + 4 * 8, FORM_HASH);
    b += 4 * 8 + FORM_HASH;
    m->floor = number_at(b, 0);
    m->closed = b[8] != 0;
}

static bool read_epochs(struct hf_bytes *from, struct manifest *m)
{
    const uint8_t *b = bytes_take(from, 4);
    uint32_t len = b ? load_u32le(b) : 0;
    uint64_t before = 0, seq = 0;

    if (!b || !len) /* it has itself at least */
        return false;
    for (uint32_t i = 0; i < len; i++) {
        struct backup_epoch e;

        b = bytes_take(from, EPOCH);
        if (!b)
            return false;
        e = (struct backup_epoch){.epoch = number_at(b, 0),
                                  .first_seq = number_at(b, 1),
                                  .base = number_at(b, 2),
                                  .time_us = (int64_t)number_at(b, 3),
                                  .joined = b[32] != 0};
        memcpy(e.before, b + 33, FORM_HASH);
        if (e.epoch <= before || e.first_seq < seq || !e.first_seq)
            return false;
        before = e.epoch;
        seq = e.first_seq;
        hf__buf_put(&m->epochs, &e, sizeof(e));
    }
    return before == m->epoch;
}

static bool read_snapshots(struct hf_bytes *from, struct manifest *m)
{
    const uint8_t *b = bytes_take(from, 4);
    uint32_t len = b ? load_u32le(b) : 0;

    if (!b)
        return false;
    for (uint32_t i = 0; i < len; i++) {
        struct backup_snapshot p;

        b = bytes_take(from, SNAPSHOT);
        if (!b)
            return false;
        p = (struct backup_snapshot){.epoch = number_at(b, 0),
                                     .seq = number_at(b, 1),
                                     .last = number_at(b, 2),
                                     .time_us = (int64_t)number_at(b, 3),
                                     .parts = number_at(b, 4),
                                     .entries = number_at(b, 5),
                                     .bytes = number_at(b, 6)};
        memcpy(p.hash, b + 7 * 8, FORM_HASH);
        if (p.epoch > m->epoch || p.time_us < 0 || !p.parts || p.parts > UINT32_MAX)
            return false;
        hf__buf_put(&m->snapshots, &p, sizeof(p));
    }
    return from->len == 0;
}

enum hf_status hf__chain_manifest_read(struct hf_scope *s, const struct form *form,
                                       struct hf_str name, struct hf_bytes object,
                                       struct manifest *m)
{
    struct form_head head;
    struct hf_bytes payload;
    uint8_t hash[FORM_HASH];
    const uint8_t *fixed;
    bool good;

    TRY(hf__form_read(s, form, name, object, &head, &payload, hash));
    *m = (struct manifest){.id = head.id,
                           .epoch = head.epoch,
                           .to_us = head.to_us,
                           .epochs = {.scope = s},
                           .snapshots = {.scope = s}};
    fixed = head.kind == FORM_MANIFEST ? bytes_take(&payload, FIXED) : NULL;
    if (fixed)
        read_fixed(fixed, m);
    good = fixed && read_epochs(&payload, m) && read_snapshots(&payload, m);
    if (m->epochs.failed || m->snapshots.failed)
        return hf__fail_nomem(s);
    return good ? HF_OK
                : hf__fail(s, HF_CORRUPT, "%.*s is damaged: it is no valid manifest", HF_FMT(name));
}
