/*
 * test/fuzz/fuzz_mark.c: store/store_dir.c and marks.c on any files HOLDFAST and durable.
 *
 * The first byte has flags: the directory has db/CURRENT, the format file is what follows up to a
 * newline (otherwise that of this version), the slots of the durable record get right checksums.
 * All the rest is the durable record.
 *
 *  - A directory is opened, or refused with a sentence that names it.
 *  - What was opened can be noted further, and is found so the next time.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "files.h"
#include "store/store_dir.h"

enum {
    HAS_DATABASE = 1,
    FORMAT_GIVEN = 2,
    CHECKSUMS = 4,
    RECORD_MAX = 1024,
    SLOT_AT = 512,
    SLOT_SUM = 88
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_files(struct input *input)
{
    char format[32];
    uint8_t record[RECORD_MAX] = {0};
    unsigned flags = input_byte(input);
    int format_len =
        snprintf(format, sizeof(format), "holdfast store format %d\n", STORE_DIR_FORMAT);
    const uint8_t *bytes;
    size_t len;

    if (flags & FORMAT_GIVEN) {
        const uint8_t *end = input->left ? memchr(input->at, '\n', input->left) : NULL;

        bytes = input_bytes(input, end ? (size_t)(end - input->at) + 1 : 16, &len);
        files_write("store/HOLDFAST", 0, len ? (const void *)bytes : "", len);
    } else {
        files_write("store/HOLDFAST", 0, format, (size_t)format_len);
    }
    if (flags & HAS_DATABASE)
        files_write("store/db/CURRENT", 0, "MANIFEST-000001\n", 16);
    bytes = input_bytes(input, sizeof(record), &len);
    if (len)
        memcpy(record, bytes, len);
    for (size_t i = 0; flags & CHECKSUMS && i < 2; i++) {
        uint8_t *slot = record + i * SLOT_AT;

        memcpy(slot, "hfmarks3", 8);
        store_u64be(slot + SLOT_SUM, XXH3_64bits(slot, SLOT_SUM));
        len = sizeof(record);
    }
    files_write("store/durable", 0, record, len);
}

static enum hf_status open_store_dir(struct hf_scope *s, const struct hf_env *env,
                                     struct hf_str path, struct store_dir *store_dir)
{
    enum hf_status status;

    TRY(hf__store_dir_open(s, env, path, false, false, store_dir));
    status = hf__marks_open(s, store_dir);
    if (status != HF_OK)
        hf__store_dir_close(store_dir);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[200];
    struct input input = {data, size};
    struct hf_env env = hf__env_fill(NULL);
    struct hf_scope *s = hf_scope_new(NULL);
    struct store_dir store_dir;
    enum hf_status status;

    if (!path[0]) {
        char inner[220];

        snprintf(path, sizeof(path), "%s/store", files_directory());
        snprintf(inner, sizeof(inner), "%s/db", path);
        MUST(mkdir(path, 0700) == 0 && mkdir(inner, 0700) == 0);
    }
    write_files(&input);
    MUST(s);
    status = open_store_dir(s, &env, hf_str_from(path), &store_dir);
    if (status == HF_OK &&
        (store_dir.format != STORE_DIR_FORMAT || store_dir.sequence == UINT64_MAX ||
         store_dir.marks.durable == UINT64_MAX)) {
        hf__store_dir_close(&store_dir); /* what is noted has another form, or no number is left */
    } else if (status == HF_OK) {
        struct store_marks marks = store_dir.marks;

        marks.durable++;
        MUST(hf__marks_note(&store_dir, marks));
        hf__store_dir_close(&store_dir);
        MUST(open_store_dir(s, &env, hf_str_from(path), &store_dir) == HF_OK);
        MUST(memcmp(&marks, &store_dir.marks, sizeof(marks)) == 0);
        hf__store_dir_close(&store_dir);
    } else {
        MUST(status == HF_CORRUPT || status == HF_FORMAT || status == HF_INVALID);
        MUST(strstr(hf_scope_error_text(s), path));
    }
    files_remove("store/HOLDFAST");
    files_remove("store/HOLDFAST.new");
    files_remove("store/durable");
    files_remove("store/db/CURRENT");
    hf_scope_free(s);
    return 0;
}
