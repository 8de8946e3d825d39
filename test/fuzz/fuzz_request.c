/*
 * test/fuzz/fuzz_request.c: whole requests, one after the other, to an engine in memory.
 *
 * Whatever comes: every answer is one that a client of that operation may see, and is JSON; and in
 * the end, after one input in CHECK_EVERY, the database is in order. test/lib/requests.h has the
 * form of the input.
 *
 * The database lives as long as the program; after each input it is as it was.
 */
#include <stdio.h>
#include <stdlib.h>

#include "compares.h"
#include "requests.h"

enum { CHECK_EVERY = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machine m;
    bool check = one_in(CHECK_EVERY, data, size);
    const uint8_t *line;
    size_t len;

    compares_begin(data, size);
    if (!m.db)
        machine_open(&m, NULL);
    for (int i = 0; i < REQUESTS_MAX && next_line(&data, &size, &line, &len); i++) {
        enum hf_status status;

        machine_do(&m, line, len, &status);
        hf_scope_reset(m.s);
    }
    if (check && machine_changed(&m) && hf_engine_check(m.s, m.db, NULL) != HF_OK) {
        fprintf(stderr, "check: %s\n", hf_scope_error_text(m.s));
        abort();
    }
    machine_end(&m);
    return 0;
}
