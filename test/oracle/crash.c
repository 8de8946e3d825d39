/* oracle/crash.c: killing a database that lives in memory. */
#include "crash.h"

#include "engine/engine.h"
#include "store/store.h"

void crash_world(struct world *w)
{
    struct hf_scope *s = hf_scope_new(test_env(w->t));
    struct store_batch batch = {.ops = {.scope = s}};
    const struct store_range all = {.fill_cache = false};
    struct hf__store *store, *old = hf__engine_of(w->db)->store;
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    uint64_t ticket;
    bool found = true;

    CHECK_OK(hf__store_iter_open(s, old, NULL, &all, &iter));
    while (found) {
        CHECK_OK(hf__store_iter_next(s, iter, &found, &key, &value));
        if (found)
            hf__batch_put(&batch, key, value);
    }
    hf__store_iter_close(iter);
    CHECK_OK(hf__store_open_memory(s, test_env(w->t), &store));
    CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    hf_db_close(w->db);
    CHECK_OK(hf__engine_open_on(s, store, &w->options, &w->db));
    hf_scope_free(s);
}
