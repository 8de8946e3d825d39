/*
 * store/golden/make.c: makes a directory of the format of the version that it is built with, for
 * script/golden. Half of what golden.h has is in tables, half is in the log; the store is then
 * closed, or the process ends as if it had been killed.
 *
 *     make DIRECTORY closed|killed
 */
#include "base/base.h"

#include "../golden.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    /* Without syncs files of the log are not filled ahead, and stay small. */
    struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = 256 * 1024};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__store *store;

    if (argc != 3)
        return 2;
    for (unsigned n = 1; n <= GOLDEN_BATCHES; n++) {
        if (n % GOLDEN_HALF == 1 &&
            hf__store_open_disk(s, NULL, hf_str_from(argv[1]), &options, &store) != HF_OK)
            break;
        if (golden_write(s, store, n) != HF_OK)
            break;
        if (n == GOLDEN_BATCHES && strcmp(argv[2], "killed") == 0)
            _exit(0);
        if (n % GOLDEN_HALF == 0)
            hf__store_close(store);
    }
    if (hf_scope_error(s)->status)
        fprintf(stderr, "make: %s\n", hf_scope_error_text(s));
    return hf_scope_error(s)->status ? 1 : 0;
}
