/*
 * test/fuzz/fuzz_snapshot.c: files of snapshots, and putting back what is in them.
 *
 * The first byte says what the rest is:
 *
 *     r   the bytes of a file, as they are
 *     e   edits of the snapshot of a small database with tables, indexes, a stream, expiry entries,
 *         and a backup. An edit is: what to do, which entry, where, how many bytes, and these. The
 *         file is written with its checksums then, so that what is behind those is reached.
 *
 *  - A file is loaded, or refused as HF_CORRUPT or HF_FORMAT with a sentence.
 *  - What was loaded is restored, or refused as HF_CORRUPT, and then nothing has changed.
 *  - A database that was restored answers: whatever is in it, no call ends the process.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "compares.h"
#include "engine/backup/snapshot.h"
#include "files.h"
#include "requests.h"

enum {
    FILE_MAX = 256 * 1024,
    ENTRIES_MAX = 128,
    EDITS_MAX = 8,
    HEAD_BYTES = 72,
    BLOCK_HEAD_BYTES = 16,
    TRAILER_BYTES = 24,
    CHECK_EVERY = 4
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct machine m;
static int file;
static char file_path[64];

/* The snapshot that is edited. */
static struct entry {
    uint8_t bytes[4096];
    size_t key_len, value_len;
} originals[ENTRIES_MAX], entries[ENTRIES_MAX];
static size_t originals_len, entries_len;
static uint64_t next_id, sequence;

static void open_all(void)
{
    struct hf_create_backup create = {.table = HF_STR("users"), .name = HF_STR("one")};
    struct hf_engine_snapshot *snapshot;
    struct snapshot_cursor cursor = {NULL, 0};
    struct hf_bytes key, value;

    file = memfd_create("snapshot", MFD_CLOEXEC);
    MUST(file >= 0);
    snprintf(file_path, sizeof(file_path), "/proc/self/fd/%d", file);
    machine_open(&m, NULL);
    MUST(hf_create_backup(m.s, m.db, &create, NULL) == HF_OK);
    MUST(hf_engine_upkeep(m.s, m.db, NULL) == HF_OK);
    MUST(hf_engine_snapshot_take(m.s, m.db, &snapshot) == HF_OK);
    next_id = snapshot->next_id;
    sequence = snapshot->sequence;
    cursor.block = snapshot->first;
    while (hf__snapshot_next(&cursor, &key, &value)) {
        struct entry *entry = &originals[originals_len++];

        MUST(originals_len < ENTRIES_MAX - EDITS_MAX && key.len + value.len < 2048);
        entry->key_len = key.len;
        entry->value_len = value.len;
        memcpy(entry->bytes, key.ptr, key.len);
        memcpy(entry->bytes + key.len, value.ptr, value.len);
    }
    hf_engine_snapshot_free(snapshot);
    machine_end(&m);
}

static void edit(struct input *input)
{
    unsigned what = input_byte(input) % 6, at = input_byte(input), where = input_pair(input) % 2048;
    unsigned most = input_byte(input);
    struct entry *entry = entries_len ? &entries[at % entries_len] : NULL;
    size_t len;
    const uint8_t *bytes = input_bytes(input, most, &len);

    if (!entry)
        return;
    switch (what) {
    case 0: /* some bytes of it are others, of the key or the value */
        if (where + len <= entry->key_len + entry->value_len && len)
            memcpy(entry->bytes + where, bytes, len);
        break;
    case 1: /* its value is another */
        entry->value_len = len;
        if (len)
            memcpy(entry->bytes + entry->key_len, bytes, len);
        break;
    case 2: /* it is missing */
        entries_len--;
        memmove(entry, entry + 1, (size_t)(entries + entries_len - entry) * sizeof(*entry));
        break;
    case 3: /* it is there twice, and the second key ends with these bytes */
        memmove(entry + 1, entry, (size_t)(entries + entries_len - entry) * sizeof(*entry));
        entries_len++;
        entry++;
        memmove(entry->bytes + entry->key_len + len, entry->bytes + entry->key_len,
                entry->value_len);
        if (len)
            memcpy(entry->bytes + entry->key_len, bytes, len);
        entry->key_len += len;
        break;
    case 4: /* its value ends somewhere else */
        entry->value_len = where % (entry->value_len + 1);
        break;
    case 5: /* the numbers in the head */
        next_id = at & 1 ? where : where | UINT64_C(0xFFFF0000);
        sequence = len > 0 ? bytes[0] : UINT64_MAX;
        break;
    }
}

static uint64_t chained(uint64_t chain, const uint8_t *sum)
{
    return XXH3_64bits_withSeed(sum, 8, chain);
}

/* The file of `entries`: its head, one block, its trailer. */
static size_t write_entries(uint8_t *to)
{
    uint8_t *block = to + HEAD_BYTES, *at = block + BLOCK_HEAD_BYTES, *trailer;
    uint64_t chain;
    size_t len;

    for (size_t i = 0; i < entries_len; i++) {
        size_t both = entries[i].key_len + entries[i].value_len;

        store_u32le(at, (uint32_t)entries[i].key_len);
        store_u32le(at + 4, (uint32_t)entries[i].value_len);
        memcpy(at + 8, entries[i].bytes, both);
        at += 8 + both;
    }
    len = (size_t)(at - block) - BLOCK_HEAD_BYTES;
    memset(to, 0, HEAD_BYTES);
    memcpy(to, "hf-snap\n", 8);
    store_u32le(to + 8, 1);
    store_u64le(to + 24, next_id);
    store_u64le(to + 32, sequence);
    store_u64le(to + 40, entries_len);
    store_u64le(to + 48, len);
    store_u64le(to + 56, 1);
    store_u64le(to + 64, XXH3_64bits(to, 64));
    chain = chained(0, to + 64);
    store_u32le(block + 8, (uint32_t)len);
    store_u32le(block + 12, (uint32_t)entries_len);
    store_u64le(block, XXH3_64bits_withSeed(block + BLOCK_HEAD_BYTES, len,
                                            XXH3_64bits_withSeed(block + 8, 8, 0)));
    chain = chained(chain, block);
    trailer = at;
    memcpy(trailer, "hf-snap.", 8);
    store_u64le(trailer + 8, (uint64_t)(trailer + TRAILER_BYTES - to));
    store_u64le(trailer + 16, chain);
    return (size_t)(trailer + TRAILER_BYTES - to);
}

/* Ask for everything; whatever the answers are. */
static void use(struct hf_scope *s, struct hf_db *db)
{
    static const char *const names[] = {"users", "orders", "blobs"};
    struct hf_list_streams_result streams;
    struct hf_list_backups_result backups;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct hf_describe_table describe = {.table = hf_str_from(names[i])};
        struct hf_describe_table_result described;
        struct hf_scan scan = {.table = hf_str_from(names[i])};
        struct hf_scan_result scanned;
        struct hf_put_item put = {.table = hf_str_from(names[i]),
                                  .item = HF_ITEM(s, HF_S("pk", HF_STR("new")), HF_N("sk", 1),
                                                  HF_S("g", HF_STR("x")))};

        (void)!hf_describe_table(s, db, &describe, &described);
        (void)!hf_scan(s, db, &scan, &scanned);
        (void)!hf_put_item(s, db, &put, NULL);
    }
    (void)!hf_list_streams(s, db, &(struct hf_list_streams){.limit = 0}, &streams);
    (void)!hf_list_backups(s, db, &(struct hf_list_backups){.limit = 0}, &backups);
    (void)!hf_engine_upkeep(s, db, NULL);
    (void)!hf_engine_check(s, db, NULL);
}

static void restore(struct hf_engine_snapshot *snapshot, bool check)
{
    enum hf_status status = hf_engine_snapshot_restore(m.s, m.db, snapshot);

    if (status == HF_OK) {
        hf_scope_reset(m.s);
        use(m.s, m.db);
    } else {
        MUST(status == HF_CORRUPT && hf_scope_error_text(m.s)[0]);
        MUST(!check || hf_engine_check(m.s, m.db, NULL) == HF_OK);
    }
    machine_end(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[FILE_MAX + ENTRIES_MAX * 4096];
    struct input input = {data, size};
    struct hf_engine_snapshot *snapshot;
    enum hf_status status;
    size_t len;

    compares_begin(data, size);
    if (!m.db)
        open_all();
    if (input_byte(&input) == 'e') {
        memcpy(entries, originals, sizeof(entries[0]) * originals_len);
        entries_len = originals_len;
        for (int i = 0; i < EDITS_MAX && input.left > 0; i++)
            edit(&input);
        len = write_entries(bytes);
    } else {
        const uint8_t *raw = input_bytes(&input, FILE_MAX, &len);

        if (len)
            memcpy(bytes, raw, len);
    }
    MUST(ftruncate(file, 0) == 0 && pwrite(file, bytes, len, 0) == (ssize_t)len);
    status = hf_engine_snapshot_load(m.s, hf_str_from(file_path), &snapshot);
    if (status == HF_OK) {
        restore(snapshot, one_in(CHECK_EVERY, data, size));
        hf_engine_snapshot_free(snapshot);
    } else {
        MUST((status == HF_CORRUPT || status == HF_FORMAT) && hf_scope_error_text(m.s)[0]);
    }
    hf_scope_reset(m.s);
    return 0;
}
