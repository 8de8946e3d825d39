/*
 * test/conformance/runner.c: plays the files. Each file is a test of its own for each kind of
 * database: "memory.query/order", "disk.query/order". The database is new and empty.
 *
 * A step that fails is reported and the next ones run nevertheless, as they mostly do not depend
 * on each other and one run should show all that is wrong. README.md describes the format.
 *
 *  (1) Nothing here knows the engine but world_exchange(), world_reopen() and the upkeep call. On
 *      "http" calls go through a socket to a server; on "client" and "prefix" through hf_connect()
 *      to such a server; on "endpoint" through hf_connect() to what endpoint.c says.
 *  (2) A file with an unknown member, or without steps, fails: a misspelt one must not pass.
 *  (3) Through a client goes only what a struct can say. A body that cannot be read into one, whose
 *      enums have no such member, or whose values are none ({}, numbers beyond the range, empty
 *      sets: the client itself refuses them), is skipped there.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client.h>

#include "../server/help.h"
#include "base/buf.h"
#include "endpoint.h"
#include "ops/fields.h"
#include "test.h"
#include "values.h"
#include "wire/wire.h"
#include "world.h"

enum { SHOWN_MAX = 1200, PAGES_MAX = 10000 };

/* On "prefix": what table names begin with behind the client, and in the messages of errors. */
#define PREFIX "of.conformance-"

enum kind { KIND_MEMORY, KIND_DISK, KIND_HTTP, KIND_CLIENT, KIND_PREFIX, KIND_ENDPOINT, KINDS };
static const char *const kind_names[] = {"memory", "disk", "http", "client", "prefix", "endpoint"};

struct file_test {
    struct test test; /* first: the runner of tests hands it back to us */
    char name[128];
    char path[512];
};

struct run {
    struct world world;
    enum kind kind;
    struct site site; /* but on memory and disk */
    struct line line; /* of http */
    struct hf_db *client;
    const char *name;
    const char *path;
    struct holes holes;
    size_t step;
    bool unsaid;  /* this step, by (3), and not for its values */
    bool differs; /* this step, on an endpoint */
    int failed;
};

static void show(const char *what, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;

    print_error("  %-9s %.*s%s\n", what, SHOWN_MAX, text ? text : "nothing",
                text && strlen(text) > SHOWN_MAX ? "..." : "");
    free(text);
}

static bool complain(struct run *r, const char *what)
{
    print_error("%s: step %zu: %s\n", r->path, r->step, what);
    r->failed++;
    return false;
}

/* A step ended otherwise than it must. */
static void report(struct run *r, const json_t *step, const char *why, const json_t *expected,
                   const json_t *got)
{
    if (r->kind == KIND_ENDPOINT) {
        endpoint_differs(r->name, r->step, step, why, expected, got);
        r->differs = true;
        return;
    }
    complain(r, why);
    show("asked", json_object_get(step, "request"));
    show("expected", expected);
    show("got", got);
}

/* ---- one call ------------------------------------------------------------------------------- */

static void connect_to(struct run *r)
{
    struct hf_scope *s = r->world.scope;
    struct hf_str url = hf_scope_format(s, "http://127.0.0.1:%u?retry=off%s", r->site.port,
                                        r->kind == KIND_PREFIX ? "&prefix=" PREFIX : "");
    const struct hf_client_options options = {.size = sizeof(options),
                                              .env = test_env(r->world.t),
                                              .no_aws_config = true};

    if (hf_connect(s, url, &options, &r->client) != HF_OK)
        fail_msg("%s", hf_scope_error_text(s));
}

static void serve_begin(struct run *r)
{
    if (r->kind < KIND_HTTP)
        return;
    site_serve(r->world.t, &r->site, r->world.db);
    if (r->kind == KIND_HTTP)
        line_open(&r->site, &r->line);
    else
        connect_to(r);
}

static void serve_end(struct run *r)
{
    if (r->kind < KIND_HTTP)
        return;
    if (r->kind == KIND_HTTP)
        line_close(&r->line);
    hf_db_close(r->client);
    r->client = NULL;
    site_close(&r->site);
}

/* What world_exchange() does, through a server. */
static bool http_exchange(struct run *r, const char *operation, struct hf_str body,
                          struct hf_str *answer)
{
    bool streams = hf__op_of_name(OP_STREAMS, hf_str_from(operation)) != NULL;
    struct hf__buf fields = {.scope = r->world.scope};
    struct hf_str request;

    hf__buf_format(&fields, "Host: localhost\r\n" JSON_1_0 SIGNED "X-Amz-Target: %s.%s\r\n",
                   streams ? "DynamoDBStreams_20120810" : "DynamoDB_20120810", operation);
    hf__buf_put_byte(&fields, 0);
    request = post_text(r->world.scope, (const char *)fields.ptr, body);
    line_send(&r->line, request.ptr, request.len);
    line_read(&r->line);
    *answer = r->line.body.len ? r->line.body : HF_STR("{}"); /* of TagResource and its kin */
    return r->line.status == 200;
}

/* (3) */
static bool fits_struct(struct run *r, const char *operation, struct hf_str body)
{
    struct hf_scope *s = r->world.scope;
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(operation));
    void *request;
    bool fits;

    if (!op)
        op = hf__op_of_name(OP_STREAMS, hf_str_from(operation));
    if (!op)
        return false;
    request = hf__scope_array(s, 1, op->request->size);
    fits = request && hf__wire_read(s, op->request, body, request) == HF_OK &&
           hf__scope_keep_text(s, HF_STR("")) == -1; /* it is the first one that is kept */
    r->unsaid = !fits;
    fits = fits && !hf__wire_poison(op->request, request).ptr;
    hf_scope_reset(s);
    return fits;
}

/* The text without the prefix, wherever it stands: messages of errors have it. */
static struct hf_str without_prefix(struct hf_scope *s, struct hf_str text)
{
    const struct hf_str prefix = HF_STR(PREFIX);
    struct hf__buf buf = {.scope = s};
    const char *found;

    while ((found = memmem(text.ptr, text.len, prefix.ptr, prefix.len)) != NULL) {
        hf__buf_put(&buf, text.ptr, (size_t)(found - text.ptr));
        text.len -= (size_t)(found - text.ptr) + prefix.len;
        text.ptr = found + prefix.len;
    }
    hf__buf_put_str(&buf, text);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

static bool client_exchange(struct run *r, const char *operation, struct hf_str body,
                            struct hf_str *answer)
{
    struct world through = r->world;
    bool good;

    through.db = r->client;
    if (r->kind == KIND_ENDPOINT)
        return endpoint_exchange(&through, operation, body, answer);
    good = world_exchange(&through, operation, body, answer) == HF_OK;
    if (r->kind == KIND_PREFIX && !good)
        *answer = without_prefix(through.scope, *answer);
    return good;
}

static bool exchange(struct run *r, const char *operation, struct hf_str body, bool *good,
                     json_t **answer)
{
    json_error_t error;
    struct hf_str text;

    hf_scope_reset(r->world.scope);
    if (r->kind >= KIND_CLIENT && !fits_struct(r, operation, body))
        return false;
    if (r->kind >= KIND_CLIENT)
        *good = client_exchange(r, operation, body, &text);
    else if (r->kind == KIND_HTTP)
        *good = http_exchange(r, operation, body, &text);
    else
        *good = world_exchange(&r->world, operation, body, &text) == HF_OK;
    *answer = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    return *answer || complain(r, "the answer is not JSON");
}

static bool exchange_json(struct run *r, const char *operation, const json_t *request, bool *good,
                          json_t **answer)
{
    char *text = json_dumps(request, JSON_COMPACT | JSON_ENCODE_ANY);
    bool done = text && exchange(r, operation, hf_str_from(text), good, answer);

    free(text);
    return done;
}

/* {"type", "message", ...} from the body of an error; what else is in it stays. */
static json_t *plain_error(json_t *body)
{
    json_t *plain = json_copy(body), *message = json_object_get(body, "message");
    const char *type = json_string_value(json_object_get(body, "__type"));
    const char *hash = type ? strchr(type, '#') : NULL;

    if (!message)
        message = json_object_get(body, "Message");
    if (message)
        json_object_set(plain, "message", message);
    json_object_del(plain, "Message");
    json_object_del(plain, "__type");
    json_object_set_new(plain, "type", json_string(hash ? hash + 1 : "none"));
    return plain;
}

/* Add a page to what the pages before gave. False when it was the last. */
static bool add_page(json_t *request, json_t *sum, const json_t *page)
{
    static const char *const counts[] = {"Count", "ScannedCount"};
    json_t *items = json_object_get(page, "Items"),
           *next = json_object_get(page, "LastEvaluatedKey");

    for (size_t i = 0; i < 2; i++)
        json_object_set_new(sum, counts[i],
                            json_integer(json_integer_value(json_object_get(sum, counts[i])) +
                                         json_integer_value(json_object_get(page, counts[i]))));
    json_object_set_new(sum, "Pages",
                        json_integer(json_integer_value(json_object_get(sum, "Pages")) + 1));
    if (items && !json_object_get(sum, "Items"))
        json_object_set_new(sum, "Items", json_array());
    if (items)
        json_array_extend(json_object_get(sum, "Items"), items);
    if (next)
        json_object_set(request, "ExclusiveStartKey", next);
    return next && json_integer_value(json_object_get(sum, "Pages")) < PAGES_MAX;
}

/* All pages of a Query or Scan as one answer. */
static bool exchange_pages(struct run *r, const char *operation, json_t *request, bool *good,
                           json_t **answer)
{
    json_t *sum = json_object(), *page = NULL;
    bool more = true;

    while (more) {
        if (!exchange_json(r, operation, request, good, &page)) {
            json_decref(sum);
            return false;
        }
        if (!*good) {
            json_decref(sum);
            *answer = page;
            return true;
        }
        more = add_page(request, sum, page);
        json_decref(page);
    }
    *answer = sum;
    return true;
}

static bool send_step(struct run *r, const json_t *step, const char *operation, bool *good,
                      json_t **answer)
{
    const json_t *raw = json_object_get(step, "raw");
    json_t *request = hf__holes_fill(&r->holes, raw ? raw : json_object_get(step, "request"));
    bool done;

    if (!request && r->kind == KIND_ENDPOINT) { /* it needs what an earlier step did not give */
        report(r, step, r->holes.why, NULL, NULL);
        return false;
    }
    if (!request)
        return complain(r, r->holes.why);
    if (raw)
        done = exchange(r, operation,
                        hf_str_of(json_string_value(request), json_string_length(request)), good,
                        answer);
    else if (json_is_true(json_object_get(step, "all_pages")))
        done = exchange_pages(r, operation, request, good, answer);
    else
        done = exchange_json(r, operation, request, good, answer);
    json_decref(request);
    return done;
}

/* Compare, and say what was asked and what came, the whole of it, if it is not as expected. */
static void judge(struct run *r, const json_t *step, const json_t *expected, const json_t *actual,
                  const json_t *whole)
{
    json_t *filled = hf__holes_fill(&r->holes, expected);

    if (!filled || !hf__holes_match(&r->holes, filled, actual)) {
        report(r, step, r->holes.why, expected, whole);
        if (r->kind == KIND_ENDPOINT) /* where much differs, later steps shall be judged, too */
            hf__holes_take(&r->holes, filled, actual);
    }
    json_decref(filled);
}

/* Behind a table's name with a prefix all else stands further on in a statement: "... at 1:9:3". */
static void cut_place(json_t *error)
{
    const char *message = json_string_value(json_object_get(error, "message"));
    size_t len = message ? strlen(message) : 0;
    size_t rest = len;

    while (rest > 0 && strchr("0123456789:", message[rest - 1]))
        rest--;
    if (rest < len && rest > 4 && strncmp(message + rest - 4, " at ", 4) == 0)
        json_object_set_new(error, "message", json_stringn(message, rest - 4));
}

static void run_call(struct run *r, const json_t *step)
{
    const char *operation = json_string_value(json_object_get(step, "call"));
    json_t *error = json_object_get(step, "error"), *response = json_object_get(step, "response");
    json_t *answer;
    bool good;

    r->unsaid = false;
    if (!send_step(r, step, operation, &good, &answer)) {
        if (r->unsaid && !error)
            complain(r, "it must succeed, and cannot be said with a struct");
        return;
    }
    if (good != !error)
        report(r, step, good ? "it succeeded" : "it failed", error ? error : response, answer);
    else if (error) {
        json_t *expected = json_copy(error), *actual = plain_error(answer);
        json_t *whole = json_copy(actual);

        if (!json_object_get(expected, "message"))
            json_object_del(actual, "message");
        if (r->kind == KIND_PREFIX) {
            cut_place(expected);
            cut_place(actual);
        }
        judge(r, step, expected, actual, whole);
        json_decref(whole);
        json_decref(expected);
        json_decref(actual);
    } else if (response)
        judge(r, step, response, answer, answer);
    json_decref(answer);
}

/* ---- other steps ---------------------------------------------------------------------------- */

static void run_check(struct run *r, const json_t *step)
{
    json_t *value = hf__holes_fill(&r->holes, json_object_get(step, "check"));

    if (value)
        judge(r, step, json_object_get(step, "is"), value, value);
    else
        report(r, step, r->holes.why, json_object_get(step, "is"), NULL);
    json_decref(value);
}

static void run_upkeep(struct run *r)
{
    struct hf_upkeep_report report;

    hf_scope_reset(r->world.scope);
    if (hf_engine_upkeep(r->world.scope, r->world.db, &report) != HF_OK)
        complain(r, hf_scope_error_text(r->world.scope));
}

static void reopen(struct run *r)
{
    serve_end(r);
    world_reopen(&r->world);
    serve_begin(r);
}

static bool is_among(const json_t *list, const char *name)
{
    const json_t *element;
    size_t i;

    json_array_foreach(list, i, element)
    {
        if (json_is_string(element) && strcmp(json_string_value(element), name) == 0)
            return true;
    }
    return false;
}

/* May the file, or step, run on this kind of database? "only" and "not" say which; else, all. */
static bool for_kind(const json_t *what, enum kind kind)
{
    const json_t *only = json_object_get(what, "only");

    return (!only || is_among(only, kind_names[kind == KIND_DISK ? KIND_DISK : KIND_MEMORY])) &&
           !is_among(json_object_get(what, "not"), kind_names[kind]);
}

/* (2) */
static bool known_members(struct run *r, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        bool found = false;

        for (size_t i = 0; known[i]; i++)
            found = found || strcmp(key, known[i]) == 0;
        if (!found)
            return complain(r, key);
    }
    return true;
}

static void run_step(struct run *r, const json_t *step)
{
    static const char *const members[] = {"about",      "call",   "request", "raw", "response",
                                          "error",      "times",  "check",   "is",  "all_pages",
                                          "advance_ms", "upkeep", "reopen",  "not", NULL};
    json_int_t times = json_integer_value(json_object_get(step, "times"));
    int failed = r->failed;

    if (!known_members(r, step, members) || !for_kind(step, r->kind))
        return;
    if (json_object_get(step, "advance_ms"))
        test_advance_ms(r->world.t, json_integer_value(json_object_get(step, "advance_ms")));
    else if (json_object_get(step, "upkeep"))
        run_upkeep(r);
    else if (json_object_get(step, "reopen"))
        reopen(r);
    else if (json_object_get(step, "check"))
        run_check(r, step);
    else if (!json_is_string(json_object_get(step, "call")))
        complain(r, "neither a call nor anything else that is known");
    else
        for (r->holes.turn = 0, r->differs = false;
             r->holes.turn < (times ? times : 1) && r->failed == failed && !r->differs;
             r->holes.turn++)
            run_call(r, step);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Some steps are done to the engine itself. */
static bool is_local(const json_t *steps)
{
    static const char *const members[] = {"advance_ms", "upkeep", "reopen"};
    const json_t *step;
    size_t i;

    json_array_foreach(steps, i, step)
    {
        for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++)
            if (json_object_get(step, members[m]))
                return true;
    }
    return false;
}

static void run_steps(struct run *r, const json_t *steps)
{
    const json_t *step;

    r->holes.saved = json_object();
    json_array_foreach(steps, r->step, step) run_step(r, step);
    json_decref(r->holes.saved);
}

static void run_here(struct run *r, struct test *t, const json_t *steps)
{
    r->world = world_open(t, r->kind == KIND_DISK ? "disk:" : "memory:");
    serve_begin(r);
    run_steps(r, steps);
    serve_end(r);
    hf_scope_reset(r->world.scope);
    world_close(&r->world);
}

static void run_there(struct run *r, struct test *t, const json_t *steps)
{
    r->world = (struct world){.t = t, .scope = hf_scope_new(test_env(t))};
    r->client = endpoint_open(t, r->world.scope);
    run_steps(r, steps);
    hf_db_close(r->client);
    hf_scope_free(r->world.scope);
}

static enum kind kind_of(const char *group)
{
    enum kind kind = KIND_MEMORY;

    while (strcmp(group, kind_names[kind]) != 0)
        kind++;
    return kind;
}

static void run_file(struct test *t)
{
    static const char *const members[] = {"about", "only", "not", "steps", NULL};
    const struct file_test *self = (const struct file_test *)t;
    struct run r = {.path = self->path, .name = self->name, .kind = kind_of(t->group)};
    json_error_t error;
    json_t *file = json_load_file(self->path, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    const json_t *steps = json_object_get(file, "steps");

    if (!file)
        fail_msg("%s:%d: %s", self->path, error.line, error.text);
    if (!json_is_string(json_object_get(file, "about")) || json_array_size(steps) == 0)
        complain(&r, "no steps, or not about anything");
    known_members(&r, file, members);
    if (for_kind(file, r.kind) && r.kind != KIND_ENDPOINT)
        run_here(&r, t, steps);
    else if (for_kind(file, r.kind) && !is_local(steps))
        run_there(&r, t, steps);
    json_decref(file);
    if (r.failed)
        fail_msg("%d steps failed", r.failed);
}

static void add_file(const char *kind, const char *folder, const char *file)
{
    struct file_test *self = calloc(1, sizeof(*self));
    size_t stem = strlen(file) - strlen(".json");

    if (!self)
        abort();
    snprintf(self->name, sizeof(self->name), "%s/%.*s", folder, (int)stem, file);
    snprintf(self->path, sizeof(self->path), "%s/%s/%s", CONFORMANCE_FILES, folder, file);
    self->test = (struct test){.group = kind, .name = self->name, .run = run_file};
    test_add(&self->test);
}

static bool is_json(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static int named_files(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_folder(const char *folder)
{
    const int kinds = endpoint_given() ? KINDS : KIND_ENDPOINT;
    struct dirent **entries;
    char path[512];
    int count;

    snprintf(path, sizeof(path), "%s/%s", CONFORMANCE_FILES, folder);
    count = scandir(path, &entries, named_files, alphasort);
    for (int k = 0; k < kinds; k++)
        for (int i = 0; i < count; i++)
            if (is_json(entries[i]))
                add_file(kind_names[k], folder, entries[i]->d_name);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
}

__attribute__((constructor)) static void add_all(void)
{
    struct dirent **entries;
    int count = scandir(CONFORMANCE_FILES, &entries, named_files, alphasort);

    for (int i = 0; i < count; i++) {
        add_folder(entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}
