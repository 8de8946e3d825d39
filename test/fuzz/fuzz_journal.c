/*
 * test/fuzz/fuzz_journal.c: store/journal_read.c and record.c on any files.
 *
 * The first byte says what the rest is:
 *
 *     r   the bytes of one segment, as they are
 *     s   durable, based, then segments: number, first change, how many records, then for each of
 *         them how far its change is from what it should be, durable, a byte of faults, length, and
 *         bytes. These are written with their checksums, so that what is behind those is reached.
 *
 *  - A journal is read, or refused as HF_CORRUPT with a sentence that names the directory.
 *  - Of one that is read, every change from `based` to the last is replayed once, and none that was
 *    durable is missing.
 *  - A record is one or is none; no length in it is trusted.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "files.h"
#include "store/journal_form.h"
#include "store/record.h"

enum {
    SEGMENTS_MAX = 4,
    RECORDS_MAX = 12,
    BODY_MAX = 300,
    WRONG_HASH = 1,
    WRONG_SEGMENT = 2,
    GAP = 4,
    STORE_ID = 7
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;
static struct hf_env env;

static enum hf_status count_replay(struct hf_scope *s, void *user, struct hf_bytes record)
{
    struct changes changes;
    uint64_t number;
    bool good;

    (void)user;
    replayed++;
    hf__changes_init(&changes, s, &env);
    MUST(hf__changes_read(&changes, record, &number, &good) == HF_OK);
    hf__changes_drop(&changes);
    return HF_OK;
}

/* Write one segment; returns its length. */
static void write_segment(struct input *input, uint64_t number, const char *name)
{
    uint8_t head[JOURNAL_HEAD], body[JOURNAL_RECORD_HEAD + BODY_MAX + JOURNAL_ALIGN];
    uint64_t change = input_byte(input) % 16;
    unsigned records = input_byte(input) % RECORDS_MAX;
    size_t at = JOURNAL_START;

    memcpy(head, journal_magic, sizeof(journal_magic));
    store_u64le(head + 8, number);
    store_u64le(head + 16, change);
    store_u64le(head + 24, STORE_ID);
    store_u64le(head + 32, 0);
    store_u64le(head + 40, XXH3_64bits(head, 40));
    files_write(name, 0, head, sizeof(head));
    for (unsigned i = 0; i < records; i++, change++) {
        unsigned faults, most;
        size_t len, whole;
        const uint8_t *bytes;

        memset(body, 0, sizeof(body));
        store_u64le(body + 8, change + (uint64_t)(int64_t)(int8_t)input_byte(input));
        store_u64le(body + 16, input_byte(input) % 32);
        faults = input_byte(input);
        most = input_byte(input);
        bytes = input_bytes(input, most, &len);
        if (len)
            memcpy(body + JOURNAL_RECORD_HEAD, bytes, len);
        store_u32le(body + 24, (uint32_t)most);
        store_u32le(body + 28, (uint32_t)number + (faults & WRONG_SEGMENT ? 1 : 0));
        whole = journal_record_size(most);
        store_u64le(body, XXH3_64bits_withSeed(body + 8, whole - 8, number) +
                              (faults & WRONG_HASH ? 1 : 0));
        files_write(name, at, body, whole);
        at += whole + (faults & GAP ? JOURNAL_ALIGN : 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    char names[SEGMENTS_MAX][JOURNAL_NAME];
    struct journal_marks marks = {.id = STORE_ID};
    struct journal_reading reading = {.path = files_directory(),
                                      .marks = &marks,
                                      .replay = count_replay};
    struct journal_found found;
    struct hf_scope *s = hf_scope_new(NULL);
    size_t len = 0;
    enum hf_status status;

    env = hf__env_fill(NULL);
    reading.env = &env;
    replayed = 0;
    if (input_byte(&input) == 's') {
        uint64_t number = 0;

        marks.durable = input_byte(&input) % 32;
        marks.based = input_byte(&input) % 32;
        for (; len < SEGMENTS_MAX && input.left > 0; len++) {
            number += 1 + input_byte(&input) % 3;
            hf__journal_name(number, names[len]);
            write_segment(&input, number, names[len]);
        }
    } else {
        hf__journal_name(1, names[len]);
        files_write(names[len++], 0, input.at, input.left);
    }
    reading.dir = open(reading.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST(s && reading.dir >= 0);
    status = hf__journal_read(s, &reading, &found);
    if (status == HF_OK) {
        MUST(found.last >= marks.durable && found.last >= marks.based);
        MUST(replayed == found.last - marks.based);
    } else {
        MUST(status == HF_CORRUPT && strstr(hf_scope_error_text(s), reading.path));
    }
    close(reading.dir);
    for (size_t i = 0; i < len; i++)
        files_remove(names[i]);
    hf_scope_free(s);
    return 0;
}
