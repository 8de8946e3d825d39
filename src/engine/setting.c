/*
 * engine/setting.c: small named values of the database itself: the next id, the used
 * sequence numbers, the secret, whether it was closed cleanly.
 */
#include "engine/setting.h"
#include "base/buf.h"
#include "engine/layout.h"
#include "store/store.h"

static void setting_key(struct hf__buf *buf, const char *name)
{
    assert(name[0]);
    hf__buf_put_byte(buf, SPACE_SETTING);
    hf__buf_put_str(buf, hf_str_from(name));
}

void hf__setting_put(struct hf_scope *s, struct store_batch *batch, const char *name,
                     struct hf_bytes value)
{
    struct hf__buf key = {.scope = s};

    setting_key(&key, name);
    if (key.failed)
        batch->ops.failed = true;
    else
        hf__batch_put(batch, hf_bytes_of(key.ptr, key.len), value);
}

void hf__setting_delete(struct hf_scope *s, struct store_batch *batch, const char *name)
{
    struct hf__buf key = {.scope = s};

    setting_key(&key, name);
    if (key.failed)
        batch->ops.failed = true;
    else
        hf__batch_delete(batch, hf_bytes_of(key.ptr, key.len));
}

enum hf_status hf__setting_read(struct hf_scope *s, struct engine *e,
                                const struct hf__store_snapshot *snapshot, const char *name,
                                struct hf_bytes *value)
{
    struct hf__buf key = {.scope = s};

    setting_key(&key, name);
    if (key.failed)
        return hf__fail_nomem(s);
    return hf__store_get(s, e->store, snapshot, hf_bytes_of(key.ptr, key.len), value);
}

enum hf_status hf__setting_get(struct hf_scope *s, struct engine *e, const char *name,
                               struct hf_bytes *value)
{
    return hf__setting_read(s, e, NULL, name, value);
}
