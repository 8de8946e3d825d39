/*
 * test/fuzz/fuzz_backup.c: backup/form.c and manifest.c on any objects.
 *
 * The first byte says what the rest is:
 *
 *     r   an object, as it is
 *     1 2 3   kind of an object: the rest is its head without magic, hash and length, then its
 *             payload. Its length and its hash are corrected, so that what is behind them is reached.
 *
 *  - An object is read, or refused with a sentence that begins with its name.
 *  - Steps and entries of a payload lie in it, one behind the other.
 *  - A manifest that is read has itself among its epochs, and its lists are in order.
 */
#include <string.h>

#include "backup/chain.h"
#include "files.h"

enum { OBJECT_MAX_BYTES = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_payload(const struct form_head *head, struct hf_bytes payload)
{
    const uint8_t *end = payload.ptr + payload.len;
    struct hf_bytes key, value;
    struct form_step step;
    bool good;

    if (head->kind == FORM_LOG)
        while (hf__form_step(&payload, &step, &good)) {
            MUST(good && payload.ptr + payload.len == end);
            MUST(step.is_mark || step.record.ptr + step.record.len == payload.ptr);
        }
    else
        while (hf__form_entry(&payload, &key, &value, &good)) {
            MUST(good && key.len > 0 && payload.ptr + payload.len == end);
            MUST(key.ptr + key.len == value.ptr && value.ptr + value.len == payload.ptr);
        }
    MUST(!good || payload.len == 0);
}

static void check_manifest(struct hf_scope *s, const struct form *form, struct hf_str name,
                           struct hf_bytes object)
{
    struct manifest m;
    uint64_t before = 0;

    if (hf__chain_manifest_read(s, form, name, object, &m) != HF_OK)
        return;
    MUST(manifest_epochs(&m) > 0);
    for (size_t i = 0; i < manifest_epochs(&m); i++) {
        MUST(manifest_epoch(&m, i)->epoch > before);
        before = manifest_epoch(&m, i)->epoch;
    }
    MUST(before == m.epoch);
    for (size_t i = 0; i < manifest_snapshots(&m); i++)
        MUST(manifest_snapshot(&m, i)->parts > 0);
}

/* Correct what nobody could guess. */
static void object_mend(const struct form *form, uint8_t kind, uint8_t *object, size_t len)
{
    memcpy(object, "hfbackup", 8);
    object[8] = 1;
    object[9] = kind;
    store_u64le(object + 112, len - FORM_HEAD - FORM_HASH);
    hf__sha256(form->signer, object, len - FORM_HASH, object + len - FORM_HASH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_env env = hf__env_fill(NULL);
    struct hf_scope *s = hf_scope_new(NULL);
    struct form form = {.env = env};
    uint8_t object[OBJECT_MAX_BYTES + FORM_HASH] = {0};
    uint8_t hash[FORM_HASH];
    char name[FORM_NAME] = "log/1";
    struct hf_bytes payload;
    struct form_head head;
    bool mended = size > 1 && data[0] >= '1' && data[0] <= '3';
    size_t len;

    MUST(s && hf__signer_new(s, &env, &form.signer) == HF_OK);
    if (size < 1 || size > OBJECT_MAX_BYTES)
        size = 0;
    len = size ? size - 1 : 0;
    if (len)
        memcpy(object, data + 1, len);
    if (mended) {
        len = (len < FORM_HEAD ? FORM_HEAD : len) + FORM_HASH;
        object_mend(&form, (uint8_t)(data[0] - '0'), object, len);
        head = (struct form_head){.kind = (enum form_kind)(data[0] - '0'),
                                  .epoch = load_u64le(object + 24) & UINT32_MAX,
                                  .seq = load_u64le(object + 32) & 0xffffffffffff,
                                  .part = load_u64le(object + 40) & UINT32_MAX,
                                  .last = load_u64le(object + 56),
                                  .to_us = (int64_t)load_u64le(object + 72)};
        hf__form_name(&head, name);
    }
    if (mended && data[0] == '1') {
        check_manifest(s, &form, hf_str_from(name), hf_bytes_of(object, len));
    } else if (hf__form_read(s, &form, hf_str_from(name), hf_bytes_of(object, len), &head, &payload,
                             hash) == HF_OK) {
        check_payload(&head, payload);
    } else {
        MUST(strncmp(hf_scope_error_text(s), name, strlen(name)) == 0);
    }
    hf__signer_free(form.signer);
    hf_scope_free(s);
    return 0;
}
