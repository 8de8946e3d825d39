/*
 * server/gate.c: a database whose syncs wait until a test lets them go on.
 */
#include "gate.h"

#include <unistd.h>

static enum hf_status gated_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct gated *gated = (struct gated *)db;
    enum hf_status status = gated->inner->calls->call(s, gated->inner, op, request, response);
    unsigned delay_ms = atomic_load(&gated->delay_ms);

    atomic_fetch_add(&gated->calls, 1);
    while (atomic_load(&gated->held))
        sleep_ms(1);
    if (delay_ms)
        hf__scope_defer_delay(s, delay_ms);
    return status;
}

static enum hf_status gated_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct gated *gated = (struct gated *)db;
    unsigned syncs = atomic_fetch_add(&gated->syncs, 1), sync_us = atomic_load(&gated->sync_us);

    if (sync_us)
        usleep(syncs * 7919 % sync_us);
    pthread_mutex_lock(&gated->lock);
    gated->waiting++;
    pthread_cond_broadcast(&gated->moved);
    while (gated->closed && gated->passes == 0)
        pthread_cond_wait(&gated->moved, &gated->lock);
    gated->passes -= gated->passes > 0;
    gated->waiting--;
    pthread_mutex_unlock(&gated->lock);
    if (atomic_load(&gated->fails))
        return hf__fail(s, HF_IO, "the disk says no");
    return gated->inner->calls->sync(s, gated->inner, ticket);
}

static void gated_close(struct hf_db *db)
{
    (void)db;
}

void gate_set(struct gated *gated, bool closed)
{
    pthread_mutex_lock(&gated->lock);
    gated->closed = closed;
    pthread_cond_broadcast(&gated->moved);
    pthread_mutex_unlock(&gated->lock);
}

void gate_let_one_pass(struct gated *gated)
{
    pthread_mutex_lock(&gated->lock);
    gated->passes++;
    pthread_cond_broadcast(&gated->moved);
    pthread_mutex_unlock(&gated->lock);
}

void gate_wait(struct gated *gated, unsigned count)
{
    pthread_mutex_lock(&gated->lock);
    while (gated->waiting != count)
        pthread_cond_wait(&gated->moved, &gated->lock);
    pthread_mutex_unlock(&gated->lock);
}

void gate_site(struct test *t, struct gated *gated, struct site *site,
               const struct server_options *options)
{
    static const struct db_calls calls = {.call = gated_call,
                                          .sync = gated_sync,
                                          .close = gated_close};
    struct hf_engine_options engine = {.size = sizeof(engine),
                                       .env = test_env(t),
                                       .no_upkeep_thread = true};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__store *memory;

    memset(gated, 0, sizeof(*gated));
    gated->db.calls = &calls;
    pthread_mutex_init(&gated->lock, NULL);
    pthread_cond_init(&gated->moved, NULL);
    CHECK_OK(hf__store_open_memory(s, test_env(t), &memory));
    CHECK_OK(hf__store_open_with_faults(s, test_env(t), memory, &gated->faults, &gated->store));
    CHECK_OK(hf__engine_open_on(s, gated->store, &engine, &gated->inner));
    make_table(s, gated->inner);
    CHECK_OK(hf_put_item(s, gated->inner,
                         &(struct hf_put_item){.table = HF_STR("tab"),
                                               .item = HF_ITEM(s, HF_S("pk", HF_STR("old")))},
                         NULL));
    hf_scope_free(s);
    site_serve_with(t, site, &gated->db, options);
}

void gate_close(struct gated *gated, struct site *site)
{
    gate_set(gated, false);
    site_close(site);
    hf_db_close(gated->inner);
    pthread_cond_destroy(&gated->moved);
    pthread_mutex_destroy(&gated->lock);
}

void send_put(struct line *c, const char *pk)
{
    char json[96];

    snprintf(json, sizeof(json), "{'TableName':'tab','Item':{'pk':{'S':'%s'}}}", pk);
    line_call(c, "PutItem", json);
}

void send_get(struct line *c, const char *pk)
{
    char json[128];

    snprintf(json, sizeof(json),
             "{'TableName':'tab','Key':{'pk':{'S':'%s'}},'ConsistentRead':true}", pk);
    line_call(c, "GetItem", json);
}

bool is_silent(struct line *c)
{
    return !line_ends(c, 60) && c->in_len == 0 && !c->ended;
}
