/*
 * test/fuzz/fuzz_bind.c: methods of the seam for other languages, by name and JSON, one a line, on a
 * database in memory.
 *
 * Whatever comes: the answer is one whole JSON value, that of a failure has its code, and arguments
 * that are refused have changed nothing.
 *
 * Left out is what would reach out of the process: blob stores and sinks are opened by URL.
 */
#include <holdfast/bind.h>
#include <holdfast/engine.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "compares.h"
#include "wire/wire.h"

enum { CALLS_MAX = 8, CALL_MS = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool reaches_out(struct hf_str method)
{
    struct hf_str rest;

    return str_after(method, HF_STR("blob."), &rest) || str_is(method, "relay.start") ||
           str_is(method, "outbox.open");
}

static void complain(struct hf_str method, struct hf_str result, const char *what)
{
    fprintf(stderr, "%.*s: %s: %.*s\n", HF_FMT(method), what, HF_FMT(result));
    abort();
}

static void call_line(struct hf_scope *s, struct hf_bind *bind, struct hf_str line)
{
    struct hf_str method = str_cut(&line, ' '), result;
    enum hf_status status;

    if (reaches_out(method))
        return;
    hf_scope_timeout_ms(s, CALL_MS);
    status = hf_bind_call(s, bind, method, line, &result);
    if (!result.ptr || !hf__wire_json_valid(result))
        complain(method, result, "the answer is not JSON");
    if (status != HF_OK && !strstr(result.ptr, "\"code\":\"HF_"))
        complain(method, result, "the error has no code");
    if ((status == HF_OK) != (hf_scope_error(s)->status == HF_OK))
        complain(method, result, "status and error differ");
    hf_scope_reset(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_str text = hf_str_of((const char *)data, size);
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_bind *bind;
    struct hf_db *db;

    compares_begin(data, size);
    if (!s ||
        hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                &db) != HF_OK ||
        hf_bind_open(s, db, HF_OPTIONS(hf_bind_options, .own_db = true), &bind) != HF_OK)
        abort();
    for (int i = 0; i < CALLS_MAX && text.len; i++)
        call_line(s, bind, str_cut(&text, '\n'));
    hf_bind_close(bind);
    hf_scope_free(s);
    return 0;
}
