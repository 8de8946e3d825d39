/*
 * test/fuzz/fuzz_stores.c: the same requests to an engine in memory and to one on disk give the
 * same answers, byte by byte. test/lib/requests.h has the form of the input.
 *
 * Both stores live as long as the program, as opening one on disk takes long; after each input they
 * are as they were.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compares.h"
#include "requests.h"

enum { CHECK_EVERY = 16 };

static struct machine memory, disk;
static char directory[100];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void close_all(void)
{
    machine_close(&memory);
    machine_close(&disk);
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_all(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[120];

    snprintf(directory, sizeof(directory), "%.60s/holdfast-stores-XXXXXX", tmp ? tmp : "/tmp");
    MUST(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
    machine_open(&memory, NULL);
    machine_open(&disk, path);
    atexit(close_all);
}

static void must_be_in_order(struct machine *m)
{
    if (hf_engine_check(m->s, m->db, NULL) != HF_OK) {
        fprintf(stderr, "check: %s\n", hf_scope_error_text(m->s));
        abort();
    }
    hf_scope_reset(m->s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool check = one_in(CHECK_EVERY, data, size);
    const uint8_t *line;
    size_t len;

    compares_begin(data, size);
    if (!memory.db)
        open_all();
    for (int i = 0; i < REQUESTS_MAX && next_line(&data, &size, &line, &len); i++) {
        enum hf_status status_a, status_b;
        struct hf_str a = machine_do(&memory, line, len, &status_a);
        struct hf_str b = machine_do(&disk, line, len, &status_b);

        if (status_a != status_b || !hf_str_equal(a, b)) {
            fprintf(stderr, "%.*s\nmemory: %s %.*s\ndisk:   %s %.*s\n", (int)len,
                    (const char *)line, hf_status_name(status_a), HF_FMT(a),
                    hf_status_name(status_b), HF_FMT(b));
            abort();
        }
        hf_scope_reset(memory.s);
        hf_scope_reset(disk.s);
    }
    if (check && machine_changed(&disk))
        must_be_in_order(&disk);
    machine_end(&memory);
    machine_end(&disk);
    return 0;
}
