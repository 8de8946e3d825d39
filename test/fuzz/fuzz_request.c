/*
 * test/fuzz/fuzz_request.c: whole requests, one after the other, to an engine in memory.
 *
 * Whatever comes: every answer is one that a client of that operation may see, and is JSON; and in
 * the end the database is in order. test/lib/requests.h has the form of the input.
 */
#include <stdio.h>
#include <stdlib.h>

#include "requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine m;
    const uint8_t *line;
    size_t len;

    machine_open(&m, "memory:");
    machine_begin(&m);
    for (int i = 0; i < REQUESTS_MAX && next_line(&data, &size, &line, &len); i++) {
        enum hf_status status;

        machine_do(&m, line, len, &status);
        hf_scope_reset(m.s);
    }
    if (hf_engine_check(m.s, m.db, NULL) != HF_OK) {
        fprintf(stderr, "check: %s\n", hf_scope_error_text(m.s));
        abort();
    }
    machine_close(&m);
    return 0;
}
