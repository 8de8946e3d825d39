/*
 * test/lib/world.c: databases for tests, and operations as JSON.
 *
 * Expected answers are compared as texts: the writer's order of members is fixed, and items come
 * with their attributes in the order of names.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "ops/fields.h"
#include "wire/wire.h"

static void open_db(struct world *w)
{
    if (hf_open(w->scope, hf_str_from(w->url), &w->options, &w->db) != HF_OK)
        fail_msg("cannot open %s: %s", w->url, hf_scope_error_text(w->scope));
}

struct world world_open(struct test *t, const char *kind)
{
    static char urls[64][96];
    static size_t used;
    struct world w = {.t = t,
                      .scope = hf_scope_new(test_env(t)),
                      .url = kind,
                      .options = {.size = sizeof(struct hf_engine_options),
                                  .env = test_env(t),
                                  .no_upkeep_thread = true}};

    if (strcmp(kind, "disk:") == 0) {
        w.url = urls[used];
        snprintf(urls[used], sizeof(urls[used]), "embedded:%s/db", test_directory(t));
        used = (used + 1) % 64;
        w.options.sync = HF_SYNC_NONE;
    }
    open_db(&w);
    return w;
}

void world_reopen(struct world *w)
{
    hf_db_close(w->db);
    hf_scope_reset(w->scope);
    open_db(w);
}

void world_close(struct world *w)
{
    struct hf_check_report report;

    if (hf_engine_check(w->scope, w->db, &report) != HF_OK)
        fail_msg("check: %s", hf_scope_error_text(w->scope));
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

struct hf_str world_json(struct world *w, const char *text)
{
    struct hf_str copy = hf_scope_copy(w->scope, hf_str_from(text));
    struct hf__buf buf = {.scope = w->scope};

    for (size_t i = 0; i < copy.len; i++)
        hf__buf_put_byte(&buf, (uint8_t)(copy.ptr[i] == '\'' ? '"' : copy.ptr[i]));
    hf__buf_put_byte(&buf, 0);
    return hf_str_of((const char *)buf.ptr, copy.len);
}

static const struct op *op_of(const char *name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(name));

    if (!op)
        op = hf__op_of_name(OP_STREAMS, hf_str_from(name));
    if (!op)
        fail_msg("no operation %s", name);
    return op;
}

enum hf_status world_exchange(struct world *w, const char *operation, struct hf_str body,
                              struct hf_str *answer)
{
    const struct op *op = op_of(operation);
    void *request = hf_scope_alloc(w->scope, op->request->size);
    void *response = hf_scope_alloc(w->scope, op->response->size);
    struct hf__buf buf = {.scope = w->scope};
    enum hf_status status;

    memset(request, 0, op->request->size);
    status = hf__wire_read(w->scope, op->request, body, request);
    if (status == HF_OK)
        status = hf_db_call(w->scope, w->db, op->op, request, response);
    if (status == HF_OK)
        hf__wire_write(&buf, op->response, response);
    else
        hf__wire_write_error(&buf, hf_scope_error(w->scope));
    if (buf.failed)
        fail_msg("no memory");
    *answer = hf_str_of((const char *)buf.ptr, buf.len);
    return status;
}

static enum hf_status call(struct world *w, const char *operation, const char *json,
                           struct hf_str *answer)
{
    return world_exchange(w, operation, world_json(w, json), answer);
}

struct hf_str world_call(struct world *w, const char *operation, const char *json)
{
    struct hf_str answer;

    (void)call(w, operation, json, &answer);
    return answer;
}

struct hf_str world_ok(struct world *w, const char *operation, const char *json)
{
    struct hf_str answer;

    if (call(w, operation, json, &answer) != HF_OK)
        fail_msg("%s: %.*s", operation, HF_FMT(answer));
    return answer;
}

void world_check(struct world *w, const char *expected, const char *operation, const char *json,
                 const char *file, int line)
{
    struct hf_str answer = world_call(w, operation, json);

    test_check_str(world_json(w, expected), answer, operation, file, line);
}

void world_check_fails(struct world *w, const char *exception, const char *message,
                       const char *operation, const char *json, const char *file, int line)
{
    const struct hf_error *error;
    struct hf_str answer;
    const char *wire = "";

    if (call(w, operation, json, &answer) == HF_OK) {
        print_error("%s succeeded: %.*s\n", operation, HF_FMT(answer));
        _fail(file, line);
    }
    error = hf_scope_error(w->scope);
    wire = strchr(hf__wire_type_of(error), '#');
    test_check_str(hf_str_from(exception), hf_str_from(wire ? wire + 1 : ""), "exception", file,
                   line);
    test_check_str(hf_str_from(message), error->message, "message", file, line);
}
