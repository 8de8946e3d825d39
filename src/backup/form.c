/*
 * backup/form.c: objects of a backup, made and read: form.h has how they lie.
 *
 * What is read may be anything: it was kept by others. Nothing in it is used before the hash at its
 * end was compared, and no length is trusted after that either.
 */
#include "backup/form.h"

#include <stdio.h>

static const char magic[8] = {'h', 'f', 'b', 'a', 'c', 'k', 'u', 'p'};

enum { VERSION = 1, STEP_MARK = 1, STEP_CHANGE = 2 };

_Static_assert(FORM_HEAD == 136 + 8, "the last member of the head is at 136");

/* ---- names ---------------------------------------------------------------------------------- */

void hf__form_name(const struct form_head *head, char name[FORM_NAME])
{
    int len = 0;

    if (head->kind == FORM_MANIFEST)
        len = snprintf(name, FORM_NAME, "manifest/%08llx", (unsigned long long)head->epoch);
    else if (head->kind == FORM_LOG)
        len = snprintf(name, FORM_NAME, "log/%08llx-%012llx-%016llx-%016llx",
                       (unsigned long long)head->epoch, (unsigned long long)head->seq,
                       (unsigned long long)head->last, (unsigned long long)head->to_us);
    else
        len = snprintf(name, FORM_NAME, "snapshot/%08llx-%012llx-%016llx-%08llx",
                       (unsigned long long)head->epoch, (unsigned long long)head->seq,
                       (unsigned long long)head->last, (unsigned long long)head->part);
    assert(len > 0 && len < FORM_NAME);
}

static bool read_hex(struct hf_str *text, size_t digits, uint64_t *number)
{
    *number = 0;
    if (text->len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_digit(text->ptr[i]);

        if (digit < 0)
            return false;
        *number = *number << 4 | (uint64_t)digit;
    }
    *text = hf_str_of(text->ptr + digits, text->len - digits);
    if (text->len && text->ptr[0] == '-')
        *text = hf_str_of(text->ptr + 1, text->len - 1);
    return true;
}

bool hf__form_name_read(struct hf_str name, struct form_head *head)
{
    char again[FORM_NAME];
    uint64_t time = 0;
    struct hf_str rest;
    bool good = false;

    *head = (struct form_head){.kind = FORM_MANIFEST};
    if (str_after(name, HF_STR("manifest/"), &rest)) {
        good = read_hex(&rest, 8, &head->epoch);
    } else if (str_after(name, HF_STR("log/"), &rest)) {
        head->kind = FORM_LOG;
        good = read_hex(&rest, 8, &head->epoch) && read_hex(&rest, 12, &head->seq) &&
               read_hex(&rest, 16, &head->last) && read_hex(&rest, 16, &time);
    } else if (str_after(name, HF_STR("snapshot/"), &rest)) {
        head->kind = FORM_SNAPSHOT;
        good = read_hex(&rest, 8, &head->epoch) && read_hex(&rest, 12, &head->seq) &&
               read_hex(&rest, 16, &head->last) && read_hex(&rest, 8, &head->part);
    }
    if (!good || time > INT64_MAX)
        return false;
    head->to_us = (int64_t)time;
    hf__form_name(head, again);
    return str_is(name, again);
}

/* ---- objects -------------------------------------------------------------------------------- */

void hf__form_begin(struct hf__buf *object)
{
    static const uint8_t room[FORM_HEAD];

    object->len = 0;
    hf__buf_put(object, room, sizeof(room));
}

static void head_write(const struct form_head *head, uint64_t payload, uint8_t *to)
{
    memcpy(to, magic, sizeof(magic));
    to[8] = VERSION;
    to[9] = (uint8_t)head->kind;
    to[10] = head->sealed;
    memset(to + 11, 0, 5);
    store_u64le(to + 16, head->id);
    store_u64le(to + 24, head->epoch);
    store_u64le(to + 32, head->seq);
    store_u64le(to + 40, head->part);
    store_u64le(to + 48, head->first);
    store_u64le(to + 56, head->last);
    store_u64le(to + 64, (uint64_t)head->from_us);
    store_u64le(to + 72, (uint64_t)head->to_us);
    memcpy(to + 80, head->before, FORM_HASH);
    store_u64le(to + 112, payload);
    store_u32le(to + 132, 0);
    store_u64le(to + 136, head->check);
}

static void head_read(const uint8_t *from, struct form_head *head)
{
    *head = (struct form_head){.kind = (enum form_kind)from[9],
                               .sealed = from[10] == 1,
                               .id = load_u64le(from + 16),
                               .epoch = load_u64le(from + 24),
                               .seq = load_u64le(from + 32),
                               .part = load_u64le(from + 40),
                               .first = load_u64le(from + 48),
                               .last = load_u64le(from + 56),
                               .from_us = (int64_t)load_u64le(from + 64),
                               .to_us = (int64_t)load_u64le(from + 72),
                               .check = load_u64le(from + 136)};
    memcpy(head->before, from + 80, FORM_HASH);
}

enum hf_status hf__form_end(struct hf_scope *s, const struct form *form, struct form_head *head,
                            struct hf__buf *object, uint8_t hash[FORM_HASH])
{
    uint8_t nonce[SEAL_NONCE] = {0}, tag[SEAL_TAG];
    size_t len;

    if (object->failed) {
        object->failed = false;
        return hf__fail_nomem(s);
    }
    assert(object->len >= FORM_HEAD);
    head->sealed = form->seal != NULL;
    len = object->len - FORM_HEAD;
    head_write(head, len + (head->sealed ? SEAL_TAG : 0), object->ptr);
    if (head->sealed)
        hf__env_random(&form->env, nonce, sizeof(nonce));
    memcpy(object->ptr + 120, nonce, sizeof(nonce));
    if (head->sealed) {
        TRY(hf__seal_lock(s, form->seal, nonce, hf_bytes_of(object->ptr, FORM_HEAD),
                          object->ptr + FORM_HEAD, len, tag));
        hf__buf_put(object, tag, sizeof(tag));
    }
    if (!object->failed)
        hf__sha256(form->signer, object->ptr, object->len, hash);
    hf__buf_put(object, hash, FORM_HASH);
    if (!object->failed)
        return HF_OK;
    object->failed = false;
    return hf__fail_nomem(s);
}

static enum hf_status fail_damaged(struct hf_scope *s, struct hf_str name, const char *what)
{
    return hf__fail(s, HF_CORRUPT, "%.*s is damaged: %s", HF_FMT(name), what);
}

/* The hash and the plain parts of the head. */
static enum hf_status check_plain(struct hf_scope *s, const struct form *form, struct hf_str name,
                                  struct hf_bytes object, uint8_t hash[FORM_HASH])
{
    if (object.len < FORM_HEAD + FORM_HASH)
        return fail_damaged(s, name, "it is cut short");
    hf__sha256(form->signer, object.ptr, object.len - FORM_HASH, hash);
    if (memcmp(hash, object.ptr + object.len - FORM_HASH, FORM_HASH) != 0)
        return fail_damaged(s, name, "its checksum does not match");
    if (memcmp(object.ptr, magic, sizeof(magic)) != 0)
        return fail_damaged(s, name, "it is no object of a backup");
    if (object.ptr[8] != VERSION)
        return hf__fail(s, HF_FORMAT, "%.*s was written by a newer version", HF_FMT(name));
    if (load_u64le(object.ptr + 112) != object.len - FORM_HEAD - FORM_HASH)
        return fail_damaged(s, name, "its length is another one");
    return HF_OK;
}

/* Does an object belong where it was found? */
static bool is_named(struct hf_str name, const struct form_head *head)
{
    char right[FORM_NAME];

    if (head->kind < FORM_MANIFEST || head->kind > FORM_SNAPSHOT || head->to_us < 0 ||
        head->epoch > UINT32_MAX || head->part > UINT32_MAX || head->seq >> 48)
        return false;
    hf__form_name(head, right);
    return str_is(name, right);
}

enum hf_status hf__form_read(struct hf_scope *s, const struct form *form, struct hf_str name,
                             struct hf_bytes object, struct form_head *head,
                             struct hf_bytes *payload, uint8_t hash[FORM_HASH])
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)object.ptr; /* it was read into memory of the caller's */
    size_t len;

    TRY(check_plain(s, form, name, object, hash));
    head_read(object.ptr, head);
    if (!is_named(name, head))
        return fail_damaged(s, name, "it is another object, under a wrong name");
    len = object.len - FORM_HEAD - FORM_HASH;
    if (head->sealed) {
        if (!form->seal)
            return hf__fail(s, HF_DENIED, "%.*s is encrypted: a key file is needed", HF_FMT(name));
        if (len < SEAL_TAG)
            return fail_damaged(s, name, "it is cut short");
        len -= SEAL_TAG;
        if (hf__seal_unlock(s, form->seal, object.ptr + 120, hf_bytes_of(object.ptr, FORM_HEAD),
                            bytes + FORM_HEAD, len, bytes + FORM_HEAD + len) != HF_OK)
            return hf_scope_error(s)->status == HF_DENIED
                       ? hf__fail(s, HF_DENIED,
                                  "%.*s cannot be decrypted: the key file has another key",
                                  HF_FMT(name))
                       : hf_scope_error(s)->status;
    } else if (form->seal) { /* or anybody could put plain objects in the place of ours */
        return hf__fail(s, HF_DENIED, "%.*s is not encrypted, although a key was given",
                        HF_FMT(name));
    }
    *payload = hf_bytes_of(object.ptr + FORM_HEAD, len);
    return HF_OK;
}

/* ---- payloads ------------------------------------------------------------------------------- */

void hf__form_put_mark(struct hf__buf *object, int64_t time_us, uint64_t change)
{
    uint8_t mark[FORM_MARK] = {STEP_MARK};

    store_u64le(mark + 1, (uint64_t)time_us);
    store_u64le(mark + 9, change);
    hf__buf_put(object, mark, sizeof(mark));
}

void hf__form_put_change(struct hf__buf *object, uint64_t change, struct hf_bytes record)
{
    uint8_t head[FORM_CHANGE] = {STEP_CHANGE};

    assert(record.len <= UINT32_MAX);
    store_u64le(head + 1, change);
    store_u32le(head + 9, (uint32_t)record.len);
    hf__buf_put(object, head, sizeof(head));
    hf__buf_put(object, record.ptr, record.len);
}

void hf__form_put_entry(struct hf__buf *object, struct hf_bytes key, struct hf_bytes value)
{
    uint8_t head[FORM_ENTRY];

    assert(key.len <= UINT32_MAX && value.len <= UINT32_MAX);
    store_u32le(head, (uint32_t)key.len);
    store_u32le(head + 4, (uint32_t)value.len);
    hf__buf_put(object, head, sizeof(head));
    hf__buf_put(object, key.ptr, key.len);
    hf__buf_put(object, value.ptr, value.len);
}

static struct hf_bytes bytes_take(struct hf_bytes *from, size_t len)
{
    struct hf_bytes taken = hf_bytes_of(from->ptr, len);

    assert(len <= from->len);
    *from = hf_bytes_of(from->ptr + len, from->len - len);
    return taken;
}

bool hf__form_step(struct hf_bytes *payload, struct form_step *step, bool *good)
{
    size_t len;

    *good = true;
    if (payload->len == 0)
        return false;
    *step = (struct form_step){.is_mark = payload->ptr[0] == STEP_MARK};
    *good = payload->len >= (step->is_mark ? (size_t)FORM_MARK : (size_t)FORM_CHANGE) &&
            (step->is_mark || payload->ptr[0] == STEP_CHANGE);
    if (!*good)
        return false;
    if (step->is_mark) {
        step->time_us = (int64_t)load_u64le(payload->ptr + 1);
        step->change = load_u64le(payload->ptr + 9);
        bytes_take(payload, FORM_MARK);
        return true;
    }
    step->change = load_u64le(payload->ptr + 1);
    len = load_u32le(payload->ptr + 9);
    bytes_take(payload, FORM_CHANGE);
    *good = len <= payload->len;
    if (*good)
        step->record = bytes_take(payload, len);
    return *good;
}

bool hf__form_entry(struct hf_bytes *payload, struct hf_bytes *key, struct hf_bytes *value,
                    bool *good)
{
    size_t key_len, value_len;

    *good = true;
    if (payload->len == 0)
        return false;
    *good = payload->len >= FORM_ENTRY;
    if (!*good)
        return false;
    key_len = load_u32le(payload->ptr);
    value_len = load_u32le(payload->ptr + 4);
    bytes_take(payload, FORM_ENTRY);
    *good = key_len > 0 && key_len <= payload->len && value_len <= payload->len - key_len;
    if (!*good)
        return false;
    *key = bytes_take(payload, key_len);
    *value = bytes_take(payload, value_len);
    return true;
}
