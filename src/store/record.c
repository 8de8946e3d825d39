/*
 * store/record.c: records of the journal. They have the form of RocksDB's batches, which once wrote
 * them:
 *
 *     u64 0, u32le count, then for each change
 *         1 byte    1: put, 0: delete
 *         bytes     the key: its length as a varint, and itself
 *         bytes     the value, of a put
 *
 * The last change of a record is a put of its number to the empty key, which is ours.
 *
 * What is read was verified by its checksum, and may all the same be anything: no length is
 * trusted.
 */
#include "store/record.h"

#include "store/store.h"

enum {
    RECORD_HEAD = 12,
    NUMBER_BYTES = 8,
    RECORD_TAIL = 3 + NUMBER_BYTES, /* the put of the number */
    VARINT_MAX = 5
};

_Static_assert(RECORD_HEAD == 8 + 4, "u64 0, u32le count");
_Static_assert(NUMBER_BYTES == sizeof(uint64_t) && NUMBER_BYTES < 0x80, "its length is one byte");
_Static_assert(7 * VARINT_MAX >= 32, "a varint has every length of 32 bits");

void hf__changes_init(struct changes *changes, struct hf_scope *s, const struct hf_env *env)
{
    assert(s && env);
    changes->s = s;
    changes->env = env;
    changes->record_len = RECORD_HEAD + RECORD_TAIL;
    changes->entries = changes->few;
    changes->len = 0;
    changes->cap = CHANGES_INLINE;
}

void hf__changes_drop(struct changes *changes)
{
    for (size_t i = 0; i < changes->len; i++)
        hf__map_entry_drop(changes->env, changes->entries[i]);
    changes->len = 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static size_t varint_size(size_t value)
{
    size_t size = 1;

    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

static uint8_t *append_varint(uint8_t *to, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *append_bytes(uint8_t *to, struct hf_bytes bytes)
{
    to = append_varint(to, bytes.len);
    if (bytes.len)
        memcpy(to, bytes.ptr, bytes.len);
    return to + bytes.len;
}

static bool changes_grow(struct changes *changes)
{
    struct map_entry **more;

    assert(changes->len <= changes->cap);
    if (changes->len < changes->cap)
        return true;
    more = hf_scope_alloc(changes->s, 2 * changes->cap * sizeof(more[0]));
    if (!more)
        return false;
    memcpy(more, changes->entries, changes->len * sizeof(more[0]));
    changes->entries = more;
    changes->cap *= 2;
    return true;
}

enum hf_status hf__changes_add(struct changes *changes, enum change_kind kind, struct hf_bytes key,
                               struct hf_bytes head, struct hf_bytes body)
{
    size_t value_len = head.len + body.len;
    struct map_entry *entry = NULL;

    assert(key.len && (kind != CHANGE_DELETE || value_len == 0));
    if (changes_grow(changes))
        entry = hf__map_entry_make(changes->env, key, head, body);
    if (!entry)
        return hf__fail_nomem(changes->s);
    entry->gone = kind == CHANGE_DELETE;
    entry->fresh = kind == CHANGE_INSERT;
    changes->entries[changes->len++] = entry;
    changes->record_len += 1 + varint_size(key.len) + key.len;
    if (kind != CHANGE_DELETE)
        changes->record_len += varint_size(value_len) + value_len;
    return HF_OK;
}

void hf__changes_write(const struct changes *changes, uint64_t number, uint8_t *to)
{
    const uint8_t *end = to + changes->record_len;

    assert(number && changes->len < UINT32_MAX);
    memset(to, 0, 8);
    store_u32le(to + 8, (uint32_t)changes->len + 1);
    to += RECORD_HEAD;
    for (size_t i = 0; i < changes->len; i++) {
        const struct map_entry *entry = changes->entries[i];

        *to++ = entry->gone ? CHANGE_DELETE : CHANGE_PUT;
        to = append_bytes(to, map_key(entry));
        if (!entry->gone)
            to = append_bytes(to, map_value(entry));
    }
    *to++ = CHANGE_PUT;
    *to++ = 0; /* the empty key */
    *to++ = NUMBER_BYTES;
    store_u64be(to, number);
    assert(to + NUMBER_BYTES == end);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct record_reader {
    const uint8_t *at;
    const uint8_t *end;
};

static bool read_bytes(struct record_reader *reader, struct hf_bytes *bytes)
{
    uint64_t len = 0;

    for (int shift = 0;; shift += 7) {
        if (reader->at == reader->end || shift >= 7 * VARINT_MAX)
            return false;
        len |= (uint64_t)(*reader->at & 0x7f) << shift;
        if (!(*reader->at++ & 0x80))
            break;
    }
    if (len > (uint64_t)(reader->end - reader->at))
        return false;
    *bytes = hf_bytes_of(reader->at, (size_t)len);
    reader->at += len;
    return true;
}

enum hf_status hf__changes_walk(struct hf_scope *s, struct hf_bytes record, record_change_fn *fn,
                                void *user, uint64_t *number, bool *good)
{
    struct record_reader reader = {.at = record.ptr + RECORD_HEAD, .end = record.ptr + record.len};

    *number = 0;
    *good = record.len >= RECORD_HEAD;
    while (*good && reader.at < reader.end) {
        struct hf_bytes key, value = hf_bytes_of(NULL, 0);
        uint8_t kind = *reader.at++;

        *good = kind <= CHANGE_PUT && read_bytes(&reader, &key) &&
                (kind == CHANGE_DELETE || read_bytes(&reader, &value));
        if (!*good)
            break;
        if (key.len)
            TRY(fn(s, kind, key, value, user));
        else if (value.len == NUMBER_BYTES)
            *number = load_u64be(value.ptr);
    }
    *good = *good && *number;
    return HF_OK;
}

static enum hf_status add_entry(struct hf_scope *s, enum change_kind kind, struct hf_bytes key,
                                struct hf_bytes value, void *user)
{
    (void)s;
    return hf__changes_add(user, kind, key, hf_bytes_of(NULL, 0), value);
}

enum hf_status hf__changes_read(struct changes *changes, struct hf_bytes record, uint64_t *number,
                                bool *good)
{
    return hf__changes_walk(changes->s, record, add_entry, changes, number, good);
}

/* ---- as a batch ------------------------------------------------------------------------------ */

static enum hf_status add_op(struct hf_scope *s, enum change_kind kind, struct hf_bytes key,
                             struct hf_bytes value, void *user)
{
    struct store_batch *batch = user;

    if (kind == CHANGE_PUT)
        hf__batch_put_parts(batch, key, hf_bytes_of(NULL, 0), value, false);
    else
        hf__batch_delete(batch, key);
    return batch->ops.failed ? hf__fail_nomem(s) : HF_OK;
}

enum hf_status hf__batch_add_change(struct hf_scope *s, struct store_batch *batch, uint64_t ticket,
                                    struct hf_bytes record)
{
    uint64_t number;
    bool good;

    TRY(hf__changes_walk(s, record, add_op, batch, &number, &good));
    if (good && number == ticket)
        return HF_OK;
    return hf__fail(s, HF_CORRUPT, "The record of change %llu is invalid",
                    (unsigned long long)ticket);
}
