/* store/verify_test.c: verifying a store while it works. */
#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"
#include "test.h"

enum { WRITES = 15000 };

struct churn {
    struct test *t;
    struct hf__store *store;
    atomic_bool stop; /* it is to end, or has ended */
    bool failed;
};

/* Write over the same keys again and again, so that files come and go. */
static void *churn_thread(void *arg)
{
    struct churn *c = arg;
    struct hf_scope *s = hf_scope_new(test_env(c->t));
    static const uint8_t value[4000];
    const uint32_t writes = test_times(WRITES);

    for (uint32_t i = 0; s && !c->failed && i < writes && !atomic_load(&c->stop); i++) {
        uint8_t key[4] = {0, 0, (uint8_t)(i >> 4), (uint8_t)(i * 7)};
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;

        hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(value, sizeof(value)));
        c->failed = hf__store_write(s, c->store, &batch, &ticket) != HF_OK;
        hf_scope_reset(s);
    }
    c->failed = c->failed || !s;
    hf_scope_free(s);
    atomic_store(&c->stop, true);
    return NULL;
}

/* A file that a compaction has just replaced is not a damaged one. */
TEST(store_verify, compactions_beside_it_are_no_damage)
{
    const struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = 64 * 1024};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct churn churn = {.t = t};
    pthread_t thread;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(test_directory(t)), &options,
                                 &churn.store));
    CHECK(pthread_create(&thread, NULL, churn_thread, &churn) == 0);
    for (int i = 0; !atomic_load(&churn.stop); i++) {
        enum hf_status status = hf__store_verify(s, churn.store, NULL);

        if (status != HF_OK) {
            atomic_store(&churn.stop, true);
            pthread_join(thread, NULL);
            fail_msg("round %d: %s", i, hf_scope_error_text(s));
        }
        hf_scope_reset(s);
    }
    pthread_join(thread, NULL);
    CHECK(!churn.failed);
    hf__store_close(churn.store);
    hf_scope_free(s);
}
