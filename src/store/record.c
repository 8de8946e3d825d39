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

enum {
    RECORD_HEAD = 12,
    NUMBER_BYTES = 8,
    RECORD_TAIL = 3 + NUMBER_BYTES, /* the put of the number */
    VARINT_MAX = 5
};

void hf__changes_init(struct changes *changes, struct hf_scope *s, const struct hf_env *env)
{
    changes->s = s;
    changes->env = env;
    changes->record = (struct hf__buf){.scope = s};
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

enum hf_status hf__changes_begin(struct changes *changes, size_t bytes)
{
    uint8_t *head = hf__buf_reserve(&changes->record, RECORD_HEAD + RECORD_TAIL + bytes);

    if (!head)
        return hf__fail_nomem(changes->s);
    memset(head, 0, RECORD_HEAD);
    changes->record.len = RECORD_HEAD;
    return HF_OK;
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

/* The entry alone: what is replayed has its record already. */
static enum hf_status add_entry(struct changes *changes, enum change_kind kind, struct hf_bytes key,
                                struct hf_bytes value)
{
    struct map_entry *entry = NULL;

    if (changes_grow(changes))
        entry = hf__map_entry_make(changes->env, key, value);
    if (!entry)
        return hf__fail_nomem(changes->s);
    entry->gone = kind == CHANGE_DELETE;
    entry->fresh = kind == CHANGE_INSERT;
    changes->entries[changes->len++] = entry;
    return HF_OK;
}

enum hf_status hf__changes_add(struct changes *changes, enum change_kind kind, struct hf_bytes key,
                               struct hf_bytes value)
{
    uint8_t *to =
        hf__buf_reserve(&changes->record, 1 + 2 * (size_t)VARINT_MAX + key.len + value.len);

    if (!to)
        return hf__fail_nomem(changes->s);
    *to++ = kind == CHANGE_DELETE ? CHANGE_DELETE : CHANGE_PUT;
    to = append_bytes(to, key);
    if (kind != CHANGE_DELETE)
        to = append_bytes(to, value);
    changes->record.len = (size_t)(to - changes->record.ptr);
    return add_entry(changes, kind, key, value);
}

enum hf_status hf__changes_end(struct changes *changes)
{
    uint8_t *to = hf__buf_reserve(&changes->record, RECORD_TAIL);

    if (!to || changes->len >= UINT32_MAX)
        return hf__fail_nomem(changes->s);
    memset(to, 0, RECORD_TAIL);
    to[0] = CHANGE_PUT;
    to[2] = NUMBER_BYTES;
    changes->record.len += RECORD_TAIL;
    store_u32le(changes->record.ptr + 8, (uint32_t)changes->len + 1);
    return HF_OK;
}

void hf__changes_number(struct changes *changes, uint64_t number)
{
    store_u64be(changes->record.ptr + changes->record.len - NUMBER_BYTES, number);
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

enum hf_status hf__changes_read(struct changes *changes, struct hf_bytes record, uint64_t *number,
                                bool *good)
{
    struct record_reader reader = {.at = record.ptr + RECORD_HEAD, .end = record.ptr + record.len};

    *good = record.len >= RECORD_HEAD;
    while (*good && reader.at < reader.end) {
        struct hf_bytes key, value = hf_bytes_of(NULL, 0);
        uint8_t kind = *reader.at++;

        *good = kind <= CHANGE_PUT && read_bytes(&reader, &key) &&
                (kind == CHANGE_DELETE || read_bytes(&reader, &value));
        if (!*good)
            break;
        if (key.len)
            TRY(add_entry(changes, kind, key, value));
        else if (value.len == NUMBER_BYTES)
            *number = load_u64be(value.ptr);
    }
    *good = *good && *number;
    return HF_OK;
}
