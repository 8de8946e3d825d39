/*
 * coord/opener_test.c: whose leases end at once: those of a process that had the same directory
 * open and was killed; and whose do not: everybody else's.
 *
 * A child is this program again, with its orders in the environment. It takes one of everything
 * that is leased, for a minute, tells so on a pipe, and waits to be killed, in the middle of what it
 * handles. Its parent then tries to get each.
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/events.h>
#include <holdfast/faults.h>
#include <holdfast/lock.h>
#include <holdfast/metrics.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/prefix.h>
#include <holdfast/records.h>
#include <holdfast/relay.h>
#include <holdfast/retry.h>
#include <holdfast/sink.h>
#include <holdfast/streams.h>
#include <holdfast/subscribe.h>
#include <holdfast/table.h>
#include <holdfast/trace.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relay_kit.h"
#include "rig.h"

enum {
    LEASE_MS = 60000,
    SOON_MS = 3000, /* machines that run tests are busy; a twentieth of the lease in any case */
    HANDLERS = 4
};

static enum hf_status open_url(struct hf_scope *s, struct hf_str url, struct hf_db **db)
{
    if (url.len > 4 && memcmp(url.ptr, "http", 4) == 0)
        return hf_connect(s, url, HF_OPTIONS(hf_client_options, .no_aws_config = true), db);
    return hf_open(s, url, HF_OPTIONS(hf_engine_options, .sync = HF_SYNC_NONE), db);
}

/* ---- what there is to be leased ------------------------------------------------------------- */

/* All patterns on one database. */
struct all {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_lock_table *locks;
    struct hf_once_table *onces;
    struct hf_outbox *relayed, *claimed;
    struct hf_records *records;
    struct hf_events *store;
};

static enum hf_status make_items(struct hf_scope *s, struct hf_db *db)
{
    struct hf_attribute_definition attribute = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_stream_spec stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_AND_OLD_IMAGES};
    struct hf_create_table spec = {.table = HF_STR("items"),
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1,
                                   .stream = &stream};

    return hf_table_ensure(s, db, &spec, NULL);
}

static void all_open(struct all *a, struct hf_db *db)
{
    a->s = hf_scope_new(NULL);
    a->db = db;
    CHECK_OK(hf_lock_table_open(a->s, db, NULL, &a->locks));
    CHECK_OK(hf_once_table_open(a->s, db, NULL, &a->onces));
    CHECK_OK(hf_outbox_open(a->s, db,
                            HF_OPTIONS(hf_outbox_options, .table = HF_STR("relayed"), .buckets = 2),
                            &a->relayed));
    CHECK_OK(hf_outbox_open(a->s, db,
                            HF_OPTIONS(hf_outbox_options, .table = HF_STR("claimed"), .buckets = 2),
                            &a->claimed));
    CHECK_OK(hf_records_open(a->s, db, NULL, &a->records));
    CHECK_OK(hf_events_open(a->s, db, NULL, &a->store));
    CHECK_OK(make_items(a->s, db));
}

static void all_close(struct all *a)
{
    hf_events_close(a->store);
    hf_records_close(a->records);
    hf_outbox_close(a->claimed);
    hf_outbox_close(a->relayed);
    hf_once_table_close(a->onces);
    hf_lock_table_close(a->locks);
    hf_scope_free(a->s);
}

static void all_fill(struct all *a)
{
    struct hf_event event = {.type = HF_STR("t"), .payload = hf_bytes_of("1", 1)};
    struct hf_new_event appended = {.type = HF_STR("t")};
    struct hf_append append = {.stream = {HF_STR("d"), HF_STR("1")},
                               .events = &appended,
                               .events_len = 1};
    struct hf_put_item put = {.table = HF_STR("items"),
                              .item = HF_ITEM(a->s, HF_S("id", HF_STR("1")))};

    CHECK_OK(hf_outbox_emit(a->s, a->relayed, &event, 1, NULL));
    CHECK_OK(hf_outbox_emit(a->s, a->claimed, &event, 1, NULL));
    CHECK_OK(
        hf_records_put(a->s, a->records,
                       HF_ITEM(a->s, HF_S("AccountId", HF_STR("a")), HF_S("RunTime", HF_STR("1"))),
                       NULL));
    CHECK_OK(hf_events_append(a->s, a->store, &append, 1, NULL, NULL));
    CHECK_OK(hf_put_item(a->s, a->db, &put, NULL));
}

/* ---- the child ------------------------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int handling;

/* A handler that never returns. */
static _Noreturn enum hf_status stay(void)
{
    pthread_mutex_lock(&mutex);
    handling++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&mutex);
    for (;;)
        pause();
}

static enum hf_status stay_sink(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    (void)s, (void)self, (void)deliveries, (void)len;
    return stay();
}

static enum hf_status stay_record(struct hf_scope *s, const struct hf_record_info *record,
                                  void *user)
{
    (void)s, (void)record, (void)user;
    return stay();
}

static enum hf_status stay_event(struct hf_scope *s, const struct hf_stored_event *event,
                                 void *user)
{
    (void)s, (void)event, (void)user;
    return stay();
}

static enum hf_status stay_change(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                  void *user)
{
    (void)s, (void)changes, (void)len, (void)user;
    return stay();
}

static void *run_processor(void *all)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_processor *processor;

    CHECK_OK(hf_processor_open(s, ((struct all *)all)->records,
                               HF_OPTIONS(hf_processor_options, .lease_ms = LEASE_MS), &processor));
    (void)!hf_processor_run(s, processor, stay_record, NULL, NULL);
    return NULL;
}

static void *run_consumer(void *all)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_consumer *consumer;

    CHECK_OK(
        hf_consumer_open(s, ((struct all *)all)->db, HF_STR("items"),
                         HF_OPTIONS(hf_consumer_options, .name = HF_STR("c"), .lease_ms = LEASE_MS),
                         &consumer));
    (void)!hf_consumer_run(s, consumer, stay_change, NULL);
    return NULL;
}

static void hold_all(struct all *a)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops), .name = "stay", .send = stay_sink};
    struct hf_subscription *subscription;
    struct hf_once_record record;
    struct hf_claim_list claims;
    struct hf_relay *relay;
    struct hf_sink *sink;
    struct hf_lock *lock;
    struct hf_once *once;
    pthread_t threads[2];

    CHECK_OK(hf_lock_try(a->s, a->locks, HF_STR("job"),
                         HF_OPTIONS(hf_lock_options, .lease_ms = LEASE_MS), &lock));
    CHECK_OK(hf_once_try(a->s, a->onces, HF_STR("u"), HF_STR("k"),
                         HF_OPTIONS(hf_once_options, .timeout_ms = LEASE_MS), &once, &record));
    CHECK_OK(hf_outbox_claim(a->s, a->claimed, HF_OPTIONS(hf_claim_options, .lease_ms = LEASE_MS),
                             &claims));
    CHECK_INT(1, claims.events_len);
    CHECK_OK(hf_sink_new(a->s, &ops, NULL, &sink));
    CHECK_OK(hf_relay_open(a->s, a->relayed, sink,
                           HF_OPTIONS(hf_relay_options, .lease_ms = LEASE_MS), &relay));
    CHECK_OK(hf_relay_start(a->s, relay));
    CHECK_OK(
        hf_subscribe(a->s, a->store, HF_STR("s"),
                     HF_OPTIONS(hf_subscribe_options, .each = stay_event, .lease_ms = LEASE_MS),
                     &subscription));
    CHECK_OK(hf_subscription_start(a->s, subscription));
    CHECK_INT(0, pthread_create(&threads[0], NULL, run_processor, a));
    CHECK_INT(0, pthread_create(&threads[1], NULL, run_consumer, a));
    pthread_mutex_lock(&mutex);
    while (handling < HANDLERS)
        pthread_cond_wait(&arrived, &mutex);
    pthread_mutex_unlock(&mutex);
}

CHILD(holder)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct all all;
    struct hf_db *db;

    if (open_url(s, hf_str_from(args[0]), &db) != HF_OK) {
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        return 2;
    }
    all_open(&all, db);
    all_fill(&all);
    hold_all(&all);
    if (write(STDOUT_FILENO, "x", 1) != 1)
        return 3;
    for (;;)
        pause();
}

/* A child that has everything, and is killed. */
static void hold_and_die(struct hf_str url)
{
    int out;
    pid_t pid = test_child("holder", (const char *[]){url.ptr, NULL}, &out);
    char byte;

    CHECK_INT(1, read(out, &byte, 1));
    close(out);
    CHECK_INT(0, kill(pid, SIGKILL));
    CHECK_INT(pid, waitpid(pid, NULL, 0));
}

/* ---- getting each --------------------------------------------------------------------------- */

static enum hf_status count_record(struct hf_scope *s, const struct hf_record_info *record,
                                   void *user)
{
    (void)s, (void)record;
    ++*(int *)user;
    return HF_OK;
}

static enum hf_status count_event(struct hf_scope *s, const struct hf_stored_event *event,
                                  void *user)
{
    (void)s, (void)event;
    ++*(int *)user;
    return HF_OK;
}

static enum hf_status count_change(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                   void *user)
{
    (void)s, (void)changes;
    *(int *)user += (int)len;
    return HF_OK;
}

static void lock_and_once(struct all *a, bool free)
{
    enum hf_status expected = free ? HF_OK : HF_LOCKED;
    struct hf_once_record record;
    struct hf_lock_info before;
    struct hf_lock *lock;
    struct hf_once *once;

    CHECK_OK(hf_lock_inspect(a->s, a->locks, HF_STR("job"), &before));
    CHECK_STATUS(expected, hf_lock_try(a->s, a->locks, HF_STR("job"), NULL, &lock));
    if (lock)
        CHECK(hf_lock_fence(lock) > before.fence);
    CHECK_OK(hf_lock_release(a->s, lock));
    CHECK_STATUS(expected,
                 hf_once_try(a->s, a->onces, HF_STR("u"), HF_STR("k"), NULL, &once, &record));
    if (once)
        CHECK_INT(2, record.tries);
    hf_once_close(once);
}

/* `free`: the relay that had its buckets is known to be gone. */
static void relay_and_claim(struct all *a, bool free)
{
    struct ear *ear = ear_open(a->s, 0, false);
    struct hf_claim_list claims;
    struct hf_relay_metrics metrics;
    struct hf_relay *relay;

    CHECK_OK(hf_relay_open(a->s, a->relayed, ear->sink, NULL, &relay));
    hf_scope_timeout_ms(a->s, free ? SOON_MS : 700);
    CHECK_STATUS(free ? HF_OK : HF_TIMEOUT, hf_relay_drain(a->s, relay, NULL));
    hf_scope_timeout_ms(a->s, 0);
    CHECK_INT(free, ear_len(ear));
    hf_relay_metrics(relay, &metrics);
    /* Of two buckets; the child may have been killed before it had the second. */
    CHECK(free ? metrics.taken_over == 1 || metrics.taken_over == 2 : metrics.taken_over == 0);
    hf_relay_close(relay);
    ear_close(ear);
    CHECK_OK(hf_outbox_claim(a->s, a->claimed, NULL, &claims));
    CHECK_INT(free, claims.events_len);
    if (!free)
        return;
    CHECK_INT(1, claims.events[0].event.attempts);
    CHECK_OK(hf_outbox_published(a->s, a->claimed, &claims.events[0]));
}

static void record_and_event(struct all *a, bool free)
{
    struct hf_subscription *subscription;
    struct hf_processor *processor;
    int records = 0, events = 0;

    CHECK_OK(hf_processor_open(a->s, a->records,
                               HF_OPTIONS(hf_processor_options, .leave_claimed = true),
                               &processor));
    hf_scope_timeout_ms(a->s, SOON_MS);
    CHECK_OK(hf_processor_run(a->s, processor, count_record, &records, NULL));
    CHECK_INT(free, records);
    hf_processor_close(processor);
    CHECK_OK(hf_subscribe(a->s, a->store, HF_STR("s"),
                          HF_OPTIONS(hf_subscribe_options, .each = count_event, .user = &events),
                          &subscription));
    hf_scope_timeout_ms(a->s, SOON_MS);
    CHECK_STATUS(free ? HF_OK : HF_LOCKED, hf_subscription_drain(a->s, subscription, NULL));
    hf_scope_timeout_ms(a->s, 0);
    CHECK_INT(free, events);
    if (free)
        CHECK_INT(2, hf_subscription_fence(subscription));
    hf_subscription_close(subscription);
}

static void change(struct all *a, bool free)
{
    struct hf_consumer *consumer;
    int changes = 0;

    CHECK_OK(
        hf_consumer_open(a->s, a->db, HF_STR("items"),
                         HF_OPTIONS(hf_consumer_options, .name = HF_STR("c"), .until_end = true),
                         &consumer));
    hf_scope_timeout_ms(a->s, SOON_MS);
    CHECK_OK(hf_consumer_run(a->s, consumer, count_change, &changes));
    hf_scope_timeout_ms(a->s, 0);
    CHECK_INT(free, changes);
    hf_consumer_close(consumer);
}

static void get_all(struct hf_db *db, bool free)
{
    struct all all;

    all_open(&all, db);
    lock_and_once(&all, free);
    relay_and_claim(&all, free);
    record_and_event(&all, free);
    change(&all, free);
    all_close(&all);
}

/* ---- the tests ------------------------------------------------------------------------------ */

TEST(opener, leases_of_a_killed_process_end_at_once_on_its_directory)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str url = hf_scope_format(s, "embedded:%s/db", test_quick_directory(t));
    struct hf_db *db;

    hold_and_die(url);
    CHECK_OK(open_url(s, url, &db));
    get_all(db, true);
    CHECK_OK(hf_engine_check(s, db, NULL));
    hf_db_close(db);
    hf_scope_free(s);
}

/* Who came over the network is not known to be gone, also where its server's directory is read. */
TEST(opener, leases_of_clients_of_a_server_last)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct rig rig;
    struct hf_db *client;

    rig_open(&rig);
    hold_and_die(rig_url(&rig, s));
    get_all(rig.truth.db, false);
    CHECK_OK(open_url(s, rig_url(&rig, s), &client));
    get_all(client, false);
    hf_db_close(client);
    rig_close(&rig);
    hf_scope_free(s);
}

/* Make the lock's holder one of another opening. */
static void move_to_another_opening(struct hf_scope *s, struct hf_db *db, const char *id)
{
    struct hf_update_item update = {.table = HF_STR("locks"),
                                    .key = HF_ITEM(s, HF_S("name", HF_STR("job"))),
                                    .update = HF_STR("SET #h.#opener = :other"),
                                    .names = HF_ITEM(s, HF_S("#h", hf_scope_format(s, "h:%s", id)),
                                                     HF_S("#opener", HF_STR("opener"))),
                                    .values =
                                        HF_ITEM(s, HF_S(":other", HF_STR("0123456789abcdef")))};

    CHECK_OK(hf_update_item(s, db, &update, NULL));
}

/* A client does not know which opening its server has: to it, every lease lasts. A holder in the
 * same opening keeps what it has. */
TEST(opener, only_who_has_the_directory_open_knows_who_is_gone)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_lock_table *ours, *theirs;
    struct hf_lock *held, *taken;
    struct hf_lock_info info;
    struct hf_db *client;
    struct rig rig;

    rig_open(&rig);
    CHECK_OK(open_url(s, rig_url(&rig, s), &client));
    CHECK_OK(hf_lock_table_open(s, rig.truth.db, NULL, &ours));
    CHECK_OK(hf_lock_table_open(s, client, NULL, &theirs));
    CHECK_OK(hf_lock_try(s, ours, HF_STR("job"), NULL, &held));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, ours, HF_STR("job"), NULL, &taken));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, theirs, HF_STR("job"), NULL, &taken));
    CHECK_OK(hf_lock_inspect(s, ours, HF_STR("job"), &info));
    move_to_another_opening(s, rig.truth.db,
                            hf_scope_format(s, "%.*s", HF_FMT(info.holders[0].id)).ptr);
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, theirs, HF_STR("job"), NULL, &taken));
    CHECK_OK(hf_lock_try(s, ours, HF_STR("job"), NULL, &taken));
    CHECK(hf_lock_fence(taken) > hf_lock_fence(held));
    CHECK_OK(hf_lock_release(s, taken));
    CHECK_STATUS(HF_LOST, hf_lock_release(s, held));
    hf_lock_table_close(theirs);
    hf_lock_table_close(ours);
    hf_db_close(client);
    rig_close(&rig);
    hf_scope_free(s);
}

/* Wrappers hand it on; each opening of a directory has another, and the network has none. */
TEST(opener, wrappers_hand_on_the_opening)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str url = hf_scope_format(s, "embedded:%s/db", test_quick_directory(t)), first;
    struct hf_db *db, *client;
    struct rig rig;

    CHECK_OK(open_url(s, url, &db));
    first = hf_scope_copy(s, hf_db_opener(db));
    CHECK_INT(16, first.len);
    CHECK_OK(hf_faulty_open(s, db, &db));
    CHECK_OK(hf_retry_open(s, db, NULL, &db));
    CHECK_OK(hf_prefix_open(s, db, HF_STR("p-"), &db));
    CHECK_OK(hf_trace_open(s, db, NULL, &db));
    CHECK_OK(hf_metrics_open(s, db, NULL, &db));
    CHECK(hf_str_equal(first, hf_db_opener(db)));
    hf_db_close(db);
    CHECK_OK(open_url(s, url, &db));
    CHECK(!hf_str_equal(first, hf_db_opener(db)));
    hf_db_close(db);
    rig_open(&rig);
    CHECK_INT(16, hf_db_opener(rig.truth.db).len);
    CHECK_OK(open_url(s, rig_url(&rig, s), &client));
    CHECK_INT(0, hf_db_opener(client).len);
    CHECK_INT(0, hf_db_opener(NULL).len);
    hf_db_close(client);
    rig_close(&rig);
    hf_scope_free(s);
}
