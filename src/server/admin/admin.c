/*
 * server/admin/admin.c: /_holdfast/: what users' tests need of a server, offered only with --admin; and
 * check and top, which are always offered.
 *
 *     GET    /_holdfast/          what can be asked here, the clock and the faults
 *     GET    /_holdfast/clock     the clock of the database
 *     PUT    /_holdfast/clock     {"advance_s": 3600}, {"now_s": 1900000000} or {"reset": true}
 *     POST   /_holdfast/upkeep    do now what is due: expire items, trim streams, build indexes
 *     GET    /_holdfast/faults    the faults that are set, and how often each has struck
 *     PUT    /_holdfast/faults    {"faults": [{"kind": "throttle", "operation": "PutItem", ...}]}
 *     DELETE /_holdfast/faults    none
 *     ...    /_holdfast/snapshots take everything, put it back: admin_snapshots.c
 *     ...    /_holdfast/check     verify everything: checker.h
 *     GET    /_holdfast/top       hot tables and partitions, the largest items: hot.h
 *
 * Requests and answers are JSON, read and written by the same walker as DynamoDB's. With keys these
 * requests have to be signed as all others.
 */
#include "server/admin/admin.h"

#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include "ops/table.h"
#include "server/console/hot.h"
#include "server/private.h"
#include "wire/wire.h"

#define PREFIX "/_holdfast"

/* ---- what travels --------------------------------------------------------------------------- */

ENUM(fault_kinds, "[throttle, conflict, unprocessed, error, lost_answer, latency, lost_request]",
     "throttle", "conflict", "unprocessed", "error", "lost_answer", "latency", "lost_request");

struct wire_fault {
    int kind;
    struct hf_str operation;
    struct hf_str table;
    double probability;
    int64_t skip;
    int64_t count;
    int64_t latency_ms;
    int64_t struck;
};
#define T wire_fault
static const struct field fault_list[] = {
    ENUMERATED("kind", kind, fault_kinds),
    STR("operation", operation),
    STR("table", table),
    DOUBLE("probability", probability),
    INT("skip", skip, LONG),
    INT("count", count, LONG),
    INT("latency_ms", latency_ms, LONG),
    INT("struck", struck, LONG_ALWAYS),
};
static TABLE(fault, "Fault");
#undef T

struct faults_body {
    const struct wire_fault *faults;
    size_t faults_len;
};
#define T faults_body
static const struct field faults_list[] = {STRUCTS("faults", faults, fault, ALWAYS)};
static TABLE(faults, "Faults");
#undef T

struct clock_request {
    int64_t advance_s;
    int64_t now_s;
    enum hf_flag reset;
};
#define T clock_request
static const struct field clock_request_list[] = {INT("advance_s", advance_s, LONG),
                                                  INT("now_s", now_s, LONG), FLAG("reset", reset)};
static TABLE(clock_request, "Clock");
#undef T

struct clock_answer {
    int64_t now;
    int64_t offset_s;
};
#define T clock_answer
static const struct field clock_answer_list[] = {TIME("now", now),
                                                 INT("offset_s", offset_s, LONG_ALWAYS)};
static TABLE(clock_answer, "Clock");
#undef T

struct upkeep_answer {
    int64_t expired_items;
    int64_t trimmed_records;
    int64_t dropped_tokens;
    int64_t indexed_items;
    int64_t erased_keys;
    int64_t backed_up_items;
    int64_t restored_items;
};
#define T upkeep_answer
static const struct field upkeep_answer_list[] = {
    INT("expired_items", expired_items, LONG_ALWAYS),
    INT("trimmed_records", trimmed_records, LONG_ALWAYS),
    INT("dropped_tokens", dropped_tokens, LONG_ALWAYS),
    INT("indexed_items", indexed_items, LONG_ALWAYS),
    INT("erased_keys", erased_keys, LONG_ALWAYS),
    INT("backed_up_items", backed_up_items, LONG_ALWAYS),
    INT("restored_items", restored_items, LONG_ALWAYS)};
static TABLE(upkeep_answer, "Upkeep");
#undef T

struct overview {
    struct hf_str version;
    const struct clock_answer *clock;
    const struct wire_fault *faults;
    size_t faults_len;
    const struct hf_str *paths;
    size_t paths_len;
};
#define T overview
static const struct field overview_list[] = {STR("version", version),
                                             STRUCT("clock", clock, clock_answer),
                                             STRUCTS("faults", faults, fault, ALWAYS),
                                             STRS("paths", paths)};
static TABLE(overview, "Overview");
#undef T

/* ---- answers -------------------------------------------------------------------------------- */

void hf__admin_answer(struct answer *answer, const struct fields *fields, const void *body)
{
    struct hf__buf *out = hf__answer_begin(answer);

    hf__wire_write(out, fields, body);
    hf__buf_put_byte(out, '\n');
    hf__answer_end(answer, 200);
}

void hf__admin_error(struct answer *answer, int status, struct hf_str message)
{
    struct hf__buf *out = hf__answer_begin(answer);

    hf__buf_put_str(out, HF_STR("{\"error\":"));
    hf__wire_write_str(out, message);
    hf__buf_put_str(out, HF_STR("}\n"));
    hf__answer_end(answer, status);
}

void hf__admin_failure(struct answer *answer, enum hf_status status)
{
    const struct hf_error *error = hf_scope_error(answer->context->scope);
    bool callers = status == HF_INVALID || status == HF_SERIALIZATION || status == HF_NOT_FOUND ||
                   status == HF_LIMIT;
    struct hf_str message = error->message;

    if (message.len == 0)
        message = HF_STR("the body is not JSON");
    hf__admin_error(answer, callers ? 400 : 500, message);
}

/* The body as that struct, zeroed before. An empty body is an empty object. */
static bool read_body(struct answer *answer, struct hf_bytes body, const struct fields *fields,
                      void *to)
{
    struct hf_str json = body.len ? hf_str_of((const char *)body.ptr, body.len) : HF_STR("{}");
    enum hf_status status = hf__wire_read(answer->context->scope, fields, json, to);

    if (status != HF_OK)
        hf__admin_failure(answer, status);
    return status == HF_OK;
}

/* ---- the clock ------------------------------------------------------------------------------ */

enum { ADVANCE_MAX_S = INT32_MAX };             /* of one move, either way: 68 years */
#define TIME_MAX_S (2 * (int64_t)ADVANCE_MAX_S) /* of where it may get: from 1970 to 2106 */

static struct clock_answer clock_now(struct server *server)
{
    int64_t offset = server->options.clock ? atomic_load(&server->options.clock->offset_us) : 0;

    return (struct clock_answer){.now = hf__env_wall_us(&server->env) + offset,
                                 .offset_s = offset / 1000000};
}

static void get_clock(struct answer *answer, const struct admin_request *request)
{
    struct clock_answer now = clock_now(answer->context->server);

    (void)request;
    hf__admin_answer(answer, &clock_answer, &now);
}

/* The requested offset of the clock, given the present one. False: the time is out of range. */
static bool move_clock(const struct clock_request *asked, int64_t wall_us, int64_t *offset)
{
    int64_t now_us;

    if (asked->now_s < 0 || asked->now_s > TIME_MAX_S || asked->advance_s > ADVANCE_MAX_S ||
        asked->advance_s < -(int64_t)ADVANCE_MAX_S)
        return false;
    if (asked->reset)
        *offset = 0;
    else if (asked->now_s)
        *offset = asked->now_s * 1000000 - wall_us;
    else
        *offset += asked->advance_s * 1000000;
    now_us = wall_us + *offset;
    return now_us >= 0 && now_us / 1000000 <= TIME_MAX_S;
}

static void put_clock(struct answer *answer, const struct admin_request *request)
{
    struct server *server = answer->context->server;
    struct clock_request asked = {0};
    int64_t before, after;

    if (!read_body(answer, request->body, &clock_request, &asked))
        return;
    if ((asked.advance_s != 0) + (asked.now_s != 0) + (asked.reset == HF_YES) != 1) {
        hf__admin_error(answer, 400, HF_STR("specify exactly one of advance_s, now_s and reset"));
        return;
    }
    before = atomic_load(&server->options.clock->offset_us);
    do { /* another loop may be moving it, too */
        after = before;
        if (!move_clock(&asked, hf__env_wall_us(&server->env), &after)) {
            hf__admin_error(answer, 400, HF_STR("the time is out of range"));
            return;
        }
    } while (!atomic_compare_exchange_weak(&server->options.clock->offset_us, &before, after));
    get_clock(answer, request);
}

/* ---- upkeep --------------------------------------------------------------------------------- */

static void post_upkeep(struct answer *answer, const struct admin_request *request)
{
    struct context *context = answer->context;
    struct hf_upkeep_report report;
    enum hf_status status = hf_engine_upkeep(context->scope, context->server->engine, &report);
    struct upkeep_answer result;

    (void)request;
    if (status != HF_OK) {
        hf__admin_failure(answer, status);
        return;
    }
    result = (struct upkeep_answer){.expired_items = (int64_t)report.expired_items,
                                    .trimmed_records = (int64_t)report.trimmed_records,
                                    .dropped_tokens = (int64_t)report.dropped_tokens,
                                    .indexed_items = (int64_t)report.indexed_items,
                                    .erased_keys = (int64_t)report.erased_keys,
                                    .backed_up_items = (int64_t)report.backed_up_items,
                                    .restored_items = (int64_t)report.restored_items};
    hf__admin_answer(answer, &upkeep_answer, &result);
}

/* ---- faults --------------------------------------------------------------------------------- */

static enum hf_status read_faults(struct context *context, struct faults_body *body)
{
    const struct hf_fault *set;
    struct wire_fault *result;
    size_t len;

    TRY(hf_faulty_get(context->scope, context->server->db, &set, &len));
    result = hf__scope_array(context->scope, len ? len : 1, sizeof(*result));
    if (!result)
        return hf__fail_nomem(context->scope);
    for (size_t i = 0; i < len; i++)
        result[i] = (struct wire_fault){.kind = (int)set[i].kind,
                                        .operation = set[i].operation,
                                        .table = set[i].table,
                                        .probability = set[i].probability,
                                        .skip = set[i].skip,
                                        .count = set[i].count,
                                        .latency_ms = set[i].latency_ms,
                                        .struck = (int64_t)set[i].struck};
    for (size_t i = 0; i < len; i++) {
        if (result[i].operation.len == 0)
            result[i].operation = (struct hf_str){0};
        if (result[i].table.len == 0)
            result[i].table = (struct hf_str){0};
    }
    *body = (struct faults_body){result, len};
    return HF_OK;
}

static void get_faults(struct answer *answer, const struct admin_request *request)
{
    struct faults_body result;
    enum hf_status status = read_faults(answer->context, &result);

    (void)request;
    if (status == HF_OK)
        hf__admin_answer(answer, &faults, &result);
    else
        hf__admin_failure(answer, status);
}

static bool fits_u32(int64_t number)
{
    return number == HF_ZERO || (number >= 0 && number <= UINT32_MAX);
}

static uint32_t as_u32(int64_t number)
{
    return number == HF_ZERO ? 0 : (uint32_t)number;
}

static enum hf_status set_faults(struct context *context, const struct faults_body *asked)
{
    struct hf_scope *s = context->scope;
    struct hf_fault *list = hf__scope_array(s, asked->faults_len + 1, sizeof(*list));

    if (!list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < asked->faults_len; i++) {
        const struct wire_fault *f = &asked->faults[i];

        if (f->kind <= 0)
            return hf__fail(s, HF_INVALID, "fault %zu: kind must be one of %s", i,
                            fault_kinds.printed);
        if (!fits_u32(f->skip) || !fits_u32(f->count) || !fits_u32(f->latency_ms))
            return hf__fail(s, HF_INVALID, "fault %zu: a number is negative or too large", i);
        list[i] = (struct hf_fault){.kind = (enum hf_fault_kind)f->kind,
                                    .operation = f->operation,
                                    .table = f->table,
                                    .probability = f->probability,
                                    .skip = as_u32(f->skip),
                                    .count = as_u32(f->count),
                                    .latency_ms = as_u32(f->latency_ms)};
    }
    return hf_faulty_set(s, context->server->db, list, asked->faults_len);
}

static void put_faults(struct answer *answer, const struct admin_request *request)
{
    struct faults_body asked = {0};
    enum hf_status status;

    if (!read_body(answer, request->body, &faults, &asked))
        return;
    if (!asked.faults) {
        hf__admin_error(answer, 400, HF_STR("specify the list \"faults\" (empty: no faults)"));
        return;
    }
    status = set_faults(answer->context, &asked);
    if (status == HF_OK)
        get_faults(answer, request);
    else
        hf__admin_failure(answer, status);
}

static void delete_faults(struct answer *answer, const struct admin_request *request)
{
    static const struct faults_body none;
    enum hf_status status = set_faults(answer->context, &none);

    if (status == HF_OK)
        get_faults(answer, request);
    else
        hf__admin_failure(answer, status);
}

/* ---- paths ---------------------------------------------------------------------------------- */

static void get_overview(struct answer *answer, const struct admin_request *request);

static const struct admin_path {
    const char *method;
    const char *path;
    void (*run)(struct answer *answer, const struct admin_request *request);
} paths[] = {
    {"GET", PREFIX "/", get_overview},
    {"GET", PREFIX "/clock", get_clock},
    {"PUT", PREFIX "/clock", put_clock},
    {"POST", PREFIX "/upkeep", post_upkeep},
    {"GET", PREFIX "/faults", get_faults},
    {"PUT", PREFIX "/faults", put_faults},
    {"DELETE", PREFIX "/faults", delete_faults},
    {"GET", PREFIX "/snapshots", hf__admin_snapshots_list},
    {"PUT", PREFIX "/snapshots/NAME", hf__admin_snapshots_take},
    {"POST", PREFIX "/snapshots/NAME/restore", hf__admin_snapshots_restore},
    {"DELETE", PREFIX "/snapshots/NAME", hf__admin_snapshots_delete},
    {"GET", CHECKS_PATH, hf__admin_check_get},
    {"POST", CHECKS_PATH, hf__admin_check_post},
    {"GET", HOT_PATH, hf__admin_top},
};

/* Is it that path? NAME in the pattern stands for whatever is there between two slashes. */
static bool path_matches(const char *pattern, struct hf_str path, struct hf_str *name)
{
    const char *part = strstr(pattern, "NAME");
    size_t before = part ? (size_t)(part - pattern) : strlen(pattern);
    struct hf_str rest = part ? hf_str_from(part + 4) : HF_STR("");
    const char *slash;
    struct hf_str tail;

    *name = HF_STR("");
    if (path.len < before || memcmp(path.ptr, pattern, before) != 0)
        return false;
    tail = hf_str_of(path.ptr + before, path.len - before);
    if (part) {
        slash = memchr(tail.ptr, '/', tail.len);
        *name = hf_str_of(tail.ptr, slash ? (size_t)(slash - tail.ptr) : tail.len);
        tail = hf_str_of(tail.ptr + name->len, tail.len - name->len);
    }
    return hf_str_equal(tail, rest);
}

static void get_overview(struct answer *answer, const struct admin_request *request)
{
    struct context *context = answer->context;
    struct clock_answer now = clock_now(context->server);
    struct hf_str names[ARRAY_LEN(paths)];
    struct overview result = {.version = hf_str_from(hf_version()), .clock = &now, .paths = names};
    struct faults_body set;
    enum hf_status status = read_faults(context, &set);

    (void)request;
    if (status != HF_OK) {
        hf__admin_failure(answer, status);
        return;
    }
    result.faults = set.faults;
    result.faults_len = set.faults_len;
    result.paths_len = ARRAY_LEN(paths);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        names[i] = hf_scope_format(context->scope, "%s %s", paths[i].method, paths[i].path);
    hf__admin_answer(answer, &overview, &result);
}

bool hf__admin_path(const struct server *server, struct hf_str path)
{
    size_t len = sizeof(PREFIX) - 1;

    if (hf_str_equal(path, HF_STR(CHECKS_PATH)) || hf_str_equal(path, HF_STR(HOT_PATH)))
        return true;
    return server->options.admin && path.len >= len && memcmp(path.ptr, PREFIX, len) == 0 &&
           (path.len == len || path.ptr[len] == '/');
}

/* Signed like everything else, where keys are. */
static bool is_admitted(struct answer *answer, struct hf_bytes body)
{
    struct context *context = answer->context;
    struct auth_refusal refusal;

    if (context->server->options.keys_len == 0 ||
        hf__auth_check(context->scope, context->auth, answer->head, body,
                       hf__env_wall_us(&context->server->env) / 1000000, &refusal))
        return true;
    hf__admin_error(answer, refusal.status, refusal.message);
    return false;
}

void hf__admin_handle(struct answer *answer, struct hf_bytes body)
{
    const struct http_head *head = answer->head;
    struct admin_request request = {.body = body};
    bool known = false;

    answer->type = hf__type_json;
    answer->no_crc = true;
    if (!is_admitted(answer, body))
        return;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (!path_matches(paths[i].path, head->path, &request.name))
            continue;
        known = true;
        if (hf_str_equal(head->method, hf_str_from(paths[i].method))) {
            paths[i].run(answer, &request);
            return;
        }
    }
    if (known)
        hf__admin_error(
            answer, 405,
            hf_str_equal(head->path, HF_STR(CHECKS_PATH))
                ? HF_STR("this path supports GET and POST")
            : hf_str_equal(head->path, HF_STR(HOT_PATH))
                ? HF_STR("this path supports GET")
                : HF_STR("this path does not support the method; GET /_holdfast/ lists paths and "
                         "methods"));
    else
        hf__admin_error(answer, 404, HF_STR("no such path; GET /_holdfast/ lists all paths"));
}
