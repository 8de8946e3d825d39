/*
 * server/console/tail.c: see tail.h. A record has what is needed to write a line about it later, and no
 * memory of its own.
 */
#include "server/console/tail.h"

#include <pthread.h>

#include "db/call_info.h"
#include "ops/fields.h"
#include "server/console/hot.h"
#include "server/private.h"
#include "wire/wire.h"

struct tail_record {
    int64_t wall_us;
    uint64_t took_ns;
    const struct op *op;
    enum hf_status status;
    const char *exception; /* of one that failed: its name on the wire */
    struct call_units units;
    int64_t scanned, returned; /* items of a Query or Scan; -1: it is none */
    struct hot_subject subject;
    char id[REQUEST_ID];
};

struct tail {
    _Atomic uint64_t dropped; /* so far; only its own thread adds */
    atomic_bool full;
    pthread_mutex_t lock; /* guards the rest */
    size_t len;
    uint64_t told; /* of `dropped` */
    struct tail_record records[TAIL_RECORDS];
};

struct tail *hf__tail_new(struct hf_scope *s, size_t len)
{
    struct tail *tails = hf__scope_array(s, len, sizeof(*tails));

    for (size_t i = 0; tails && i < len; i++)
        pthread_mutex_init(&tails[i].lock, NULL);
    return tails;
}

struct tail *hf__tail_thread(struct tail *tails, size_t number)
{
    return tails ? tails + number : NULL;
}

void hf__tail_free(struct tail *tails, size_t len)
{
    for (size_t i = 0; tails && i < len; i++)
        pthread_mutex_destroy(&tails[i].lock);
}

/* How many items a page was made of, and has. */
static void count_items(struct tail_record *record, const void *response)
{
    const struct hf_query_result *query = response;
    const struct hf_scan_result *scan = response;

    record->scanned = record->returned = -1;
    if (response && record->op->op == HF_OP_QUERY) {
        record->scanned = query->scanned_count;
        record->returned = query->count;
    } else if (response && record->op->op == HF_OP_SCAN) {
        record->scanned = scan->scanned_count;
        record->returned = scan->count;
    }
}

/* What the answer calls it, without the name space. */
static const char *exception_name(const struct hf_error *error)
{
    const char *type = hf__wire_type_of(error), *mark = strchr(type, '#');

    return mark ? mark + 1 : type;
}

void hf__tail_call(struct answer *answer, const struct op *op, const void *request,
                   const void *response, enum hf_status status, uint64_t took_ns)
{
    struct context *context = answer->context;
    struct tail *tail = context->tail;
    struct tail_record *record;

    if (atomic_load_explicit(&tail->full, memory_order_relaxed)) { /* the usual case under load */
        uint64_t dropped = atomic_load_explicit(&tail->dropped, memory_order_relaxed);

        atomic_store_explicit(&tail->dropped, dropped + 1, memory_order_relaxed);
        return;
    }
    pthread_mutex_lock(&tail->lock);
    assert(tail->len < TAIL_RECORDS);
    record = &tail->records[tail->len++];
    if (tail->len == TAIL_RECORDS)
        atomic_store_explicit(&tail->full, true, memory_order_relaxed);
    record->wall_us = hf__env_wall_us(&context->server->env);
    record->took_ns = took_ns;
    record->op = op;
    record->status = status;
    record->exception = status == HF_OK ? NULL : exception_name(hf_scope_error(context->scope));
    record->units = (struct call_units){0, 0};
    if (response)
        record->units = hf__db_call_units(op->op, request, response);
    count_items(record, response);
    hf__hot_subject(context->hot, context->scope, op, request, &record->subject);
    memcpy(record->id, context->request_id, REQUEST_ID);
    pthread_mutex_unlock(&tail->lock);
}

static void write_record(struct hf__buf *out, const struct tail_record *record)
{
    const struct hot_subject *subject = &record->subject;

    hf__buf_format(out,
                   "event: request\ndata: {\"time_us\":%lld,\"operation\":\"%.*s\",\"ms\":%.3f,"
                   "\"status\":%d,\"id\":\"%.*s\"",
                   (long long)record->wall_us, HF_FMT(record->op->name),
                   (double)record->took_ns / 1e6,
                   record->status == HF_OK ? 200 : hf__call_status(record->status), REQUEST_ID,
                   record->id);
    if (record->exception)
        hf__buf_format(out, ",\"error\":\"%s\"", record->exception);
    if (subject->table_len) {
        hf__buf_put_str(out, HF_STR(",\"table\":"));
        hf__wire_write_str(out, hf_str_of(subject->table, subject->table_len));
    }
    if (subject->key_len) {
        hf__buf_put_str(out, HF_STR(",\"key\":"));
        hf__wire_write_str(out, hf_str_of(subject->key, subject->key_len));
    }
    if (subject->more)
        hf__buf_put_str(out, HF_STR(",\"more\":true"));
    if (record->units.read > 0)
        hf__buf_format(out, ",\"read_units\":%.1f", record->units.read);
    if (record->units.write > 0)
        hf__buf_format(out, ",\"write_units\":%.1f", record->units.write);
    if (record->scanned >= 0)
        hf__buf_format(out, ",\"scanned\":%lld,\"returned\":%lld", (long long)record->scanned,
                       (long long)record->returned);
    hf__buf_put_str(out, HF_STR("}\n\n"));
}

uint64_t hf__tail_take(struct server *server, struct hf__buf *out, uint64_t *len)
{
    uint64_t dropped = 0;

    *len = 0;
    for (size_t i = 0; i < server->loops_len + server->options.workers; i++) {
        struct tail *tail = &server->tails[i];
        uint64_t all;

        pthread_mutex_lock(&tail->lock);
        for (size_t at = 0; at < tail->len; at++)
            write_record(out, &tail->records[at]);
        *len += tail->len;
        tail->len = 0;
        atomic_store_explicit(&tail->full, false, memory_order_relaxed);
        all = atomic_load_explicit(&tail->dropped, memory_order_relaxed);
        dropped += all - tail->told;
        tail->told = all;
        pthread_mutex_unlock(&tail->lock);
    }
    return dropped;
}
