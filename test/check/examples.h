/*
 * test/check/examples.h: what the examples of the headers and of README.md take for granted.
 */
#include <holdfast/aggregate.h>
#include <holdfast/base.h>
#include <holdfast/batch.h>
#include <holdfast/bind.h>
#include <holdfast/blob.h>
#include <holdfast/bus.h>
#include <holdfast/check.h>
#include <holdfast/client.h>
#include <holdfast/copy.h>
#include <holdfast/counter.h>
#include <holdfast/db.h>
#include <holdfast/engine.h>
#include <holdfast/env.h>
#include <holdfast/events.h>
#include <holdfast/faults.h>
#include <holdfast/fence.h>
#include <holdfast/flow.h>
#include <holdfast/item.h>
#include <holdfast/keys.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/metrics.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/pages.h>
#include <holdfast/prefix.h>
#include <holdfast/records.h>
#include <holdfast/relay.h>
#include <holdfast/retry.h>
#include <holdfast/scope.h>
#include <holdfast/server.h>
#include <holdfast/set.h>
#include <holdfast/sink.h>
#include <holdfast/streams.h>
#include <holdfast/subscribe.h>
#include <holdfast/table.h>
#include <holdfast/trace.h>
#include <holdfast/tx.h>

#include <stdio.h>
#include <stdlib.h>

/* Everywhere: a scope, a database, and the rest of a program. */
extern struct hf_scope *s;
extern struct hf_db *db, *inner;
extern struct hf_events *store;
extern struct hf_outbox *outbox;
int complain(const char *text);

#if defined(EXAMPLE_aggregate)
extern struct hf_bytes json;
extern struct hf_handled handled;
int64_t amount_of(const struct hf_stored_event *event);
#elif defined(EXAMPLE_batch)
extern struct hf_str ann, ben;
void note_undone(const struct hf_write *write);
#elif defined(EXAMPLE_blob)
extern struct hf_bytes payload;
#elif defined(EXAMPLE_bus)
extern struct hf_str id;
#elif defined(EXAMPLE_copy)
extern struct hf_db *source, *target;
#elif defined(EXAMPLE_counter)
extern struct hf_counters *counters;
extern struct hf_sequence *tickets;
extern int64_t number;
#elif defined(EXAMPLE_db)
extern struct hf_str id;
void use(struct hf_item item);
#elif defined(EXAMPLE_events)
extern struct hf_bytes json;
#elif defined(EXAMPLE_flow)
extern struct hf_bytes json;
extern struct hf_flows *runtime;
extern struct hf_flow_result result;
extern const struct hf_aggregate stock;
hf_flow_fn has_lines, is_there, add_to_list, reserve_stock, send_mail, cancel_order, give_back;
#elif defined(EXAMPLE_item)
extern struct hf_str new_tag, eu;
extern struct hf_item item;
void use(struct hf_str name, struct hf_value value);
#elif defined(EXAMPLE_keys)
extern int64_t logins;
#elif defined(EXAMPLE_kv)
extern struct hf_kv *kv;
extern struct hf_kv_key key;
extern struct hf_put_item invoice;
extern struct hf_value paid;
void use(struct hf_value value);
#elif defined(EXAMPLE_limit)
bool reset_password(const char *user);
#elif defined(EXAMPLE_lock)
extern struct hf_lock *lock;
extern struct hf_put_item invoice;
void send_invoice(int number, uint64_t fence);
#elif defined(EXAMPLE_once)
extern struct user {
    int number;
} ann;
struct hf_str send_mail(void *user);
void use(struct hf_item result);
#elif defined(EXAMPLE_outbox)
extern struct hf_put_item order;
extern struct hf_str order_id;
extern struct hf_bytes json;
#elif defined(EXAMPLE_pages)
extern struct hf_query request;
extern enum hf_status status;
void use(struct hf_item item);
#elif defined(EXAMPLE_prefix)
extern struct hf_db *account;
extern struct hf_item key;
extern struct hf_get_item_result got;
#elif defined(EXAMPLE_records)
bool send_bill(struct hf_str account, struct hf_item item);
#elif defined(EXAMPLE_relay)
extern struct hf_sink *sink;
#elif defined(EXAMPLE_scope)
extern struct job {
    int number;
} job;
bool next_job(struct job *job);
enum hf_status work(struct hf_scope *s, const struct job *job);
#elif defined(EXAMPLE_set)
extern struct hf_kv *kv;
extern struct hf_kv_key key;
#elif defined(EXAMPLE_subscribe)
extern struct hf_append append;
extern struct hf_tx *tx;
hf_project_fn totals;
#elif defined(EXAMPLE_tx)
extern struct order {
    struct hf_put_item put;
    struct hf_event event;
    struct hf_outbox *outbox;
} order;
#elif defined(EXAMPLE_README)
extern struct hf_bytes json;
extern struct hf_put_item order;
#endif
