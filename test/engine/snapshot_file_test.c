/*
 * engine/snapshot_file_test.c: snapshots as files, whole and damaged; (n) is an invariant of snapshot.c.
 */
#include "snapshot_states.h"

#include <sys/stat.h>

#include <xxhash.h>

struct image {
    uint8_t *bytes;
    size_t len;
};

static struct image read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct image image;
    struct stat info;

    CHECK(file && stat(path, &info) == 0);
    image.len = (size_t)info.st_size;
    image.bytes = malloc(image.len);
    CHECK(image.bytes && fread(image.bytes, 1, image.len, file) == image.len);
    fclose(file);
    return image;
}

static void write_image(const char *path, const uint8_t *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    CHECK(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

static struct hf_str path_in(struct world *w, const char *directory, const char *name)
{
    return hf_scope_format(w->scope, "%s/%s", directory, name);
}

TEST(snapshot, a_file_brings_everything_back)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "fixture");
    struct hf_engine_snapshot_size was, is;
    struct hf_engine_snapshot *fresh, *loaded;
    char *before;

    fill(&w);
    for (int i = 0; i < 3; i++) { /* several blocks, one of them for a single entry */
        char *long_text = calloc(1, 300001);

        memset(long_text, 'x', 300000);
        CHECK(!is_error(callf(&w, "PutItem",
                              "{'TableName':'goes','Item':{'pk':{'S':'%d'},'x':{'S':"
                              "'%s'}}}",
                              i, long_text)));
        free(long_text);
    }
    before = dump(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path)); /* over the other */
    hf_engine_snapshot_size(fresh, &was);
    hf_engine_snapshot_free(fresh);
    mess_up(&w);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &loaded));
    hf_engine_snapshot_size(loaded, &is);
    CHECK(memcmp(&was, &is, sizeof(was)) == 0);
    restore(&w, loaded);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(loaded);
    free(before);
    world_close(&w);
}

TEST(snapshot, an_empty_database_in_a_file)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "empty");
    struct hf_engine_snapshot *empty = take(&w);
    char *before = dump(&w);

    CHECK_OK(hf_engine_snapshot_save(w.scope, empty, path));
    hf_engine_snapshot_free(empty);
    fill(&w);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &empty));
    restore(&w, empty);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(empty);
    free(before);
    world_close(&w);
}

TEST(snapshot, a_damaged_file_is_refused)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "damaged");
    struct hf_engine_snapshot *fresh;
    struct image image;

    fill(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    hf_engine_snapshot_free(fresh);
    image = read_image(path.ptr);
    for (size_t i = 0; i < image.len; i++) {
        uint8_t flip = (uint8_t)(1 << (i % 8));

        image.bytes[i] ^= flip;
        write_image(path.ptr, image.bytes, image.len);
        image.bytes[i] ^= flip;
        if (hf_engine_snapshot_load(w.scope, path, &fresh) != HF_CORRUPT || fresh)
            fail_msg("a flipped bit in byte %zu gives: %s", i, hf_scope_error_text(w.scope));
        write_image(path.ptr, image.bytes, i);
        if (hf_engine_snapshot_load(w.scope, path, &fresh) != HF_CORRUPT || fresh)
            fail_msg("cut to %zu bytes it gives: %s", i, hf_scope_error_text(w.scope));
    }
    image.bytes = realloc(image.bytes, image.len + 1);
    image.bytes[image.len] = 0;
    write_image(path.ptr, image.bytes, image.len + 1);
    CHECK_STATUS(HF_CORRUPT, hf_engine_snapshot_load(w.scope, path, &fresh));
    write_image(path.ptr, image.bytes, image.len);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &fresh));
    hf_engine_snapshot_free(fresh);
    free(image.bytes);
    world_close(&w);
}

static void check_refused(struct world *w, struct hf_str path, const struct image *image,
                          size_t len, const char *what, size_t at)
{
    struct hf_engine_snapshot *snapshot;

    write_image(path.ptr, image->bytes, len);
    if (hf_engine_snapshot_load(w->scope, path, &snapshot) != HF_CORRUPT || snapshot)
        fail_msg("%s %zu gives: %s", what, at, hf_scope_error_text(w->scope));
    CHECK(strstr(hf_scope_error_text(w->scope), path.ptr));
}

/* P6, of a file that is small enough to try everything; and it is for its owner alone. */
TEST(snapshot, every_bit_of_a_small_file)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "small");
    struct hf_engine_snapshot *snapshot;
    mode_t before = umask(0);
    struct image image;
    struct stat info;

    world_ok(&w, "CreateTable", PK_TABLE("small", STREAM_OF("KEYS_ONLY")));
    world_ok(&w, "PutItem", "{'TableName':'small','Item':{'pk':{'S':'a'}}}");
    snapshot = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, snapshot, path));
    hf_engine_snapshot_free(snapshot);
    umask(before);
    CHECK(stat(path.ptr, &info) == 0 && (info.st_mode & 0777) == 0600);
    image = read_image(path.ptr);
    for (size_t i = 0; i < 8 * image.len; i++) {
        image.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        check_refused(&w, path, &image, image.len, "a flip of bit", i);
        image.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = image.len; i-- > 0;) {
        bool was_zero = image.bytes[i] == 0;

        check_refused(&w, path, &image, i, "a cut at byte", i);
        image.bytes[i] = 0;
        if (!was_zero)
            check_refused(&w, path, &image, image.len, "zeros from byte", i);
    }
    free(image.bytes);
    world_close(&w);
}

static void seal_head(uint8_t *head)
{
    uint64_t hash = XXH3_64bits(head, 64);

    memcpy(head + 64, &hash, sizeof(hash)); /* tests run on little-endian machines */
}

TEST(snapshot, a_newer_file_and_no_file)
{
    struct world w = world_open(t, "memory:");
    const char *directory = test_directory(t);
    struct hf_str path = path_in(&w, directory, "newer");
    struct hf_engine_snapshot *snapshot = take(&w);
    struct image image;

    CHECK_OK(hf_engine_snapshot_save(w.scope, snapshot, path));
    CHECK_STATUS(HF_IO,
                 hf_engine_snapshot_save(w.scope, snapshot, path_in(&w, directory, "none/newer")));
    hf_engine_snapshot_free(snapshot);
    image = read_image(path.ptr);
    image.bytes[8] = 2;
    seal_head(image.bytes);
    write_image(path.ptr, image.bytes, image.len);
    CHECK_STATUS(HF_FORMAT, hf_engine_snapshot_load(w.scope, path, &snapshot));
    image.bytes[8] = 1;
    memset(image.bytes + 56, 0xff, 8); /* blocks without end */
    seal_head(image.bytes);
    write_image(path.ptr, image.bytes, image.len);
    CHECK_STATUS(HF_CORRUPT, hf_engine_snapshot_load(w.scope, path, &snapshot));
    CHECK_STATUS(HF_IO,
                 hf_engine_snapshot_load(w.scope, path_in(&w, directory, "gone"), &snapshot));
    CHECK_STATUS(HF_IO, hf_engine_snapshot_load(w.scope, hf_str_from(directory), &snapshot));
    CHECK(snapshot == NULL);
    free(image.bytes);
    world_close(&w);
}

/* Give the checksums of a file with one block the values that they should have. */
static void seal(struct image *image)
{
    uint8_t *block = image->bytes + 72;
    uint32_t len;
    uint64_t hash, chain = 0;

    seal_head(image->bytes);
    memcpy(&len, block + 8, sizeof(len));
    hash = XXH3_64bits_withSeed(block + 16, len, XXH3_64bits_withSeed(block + 8, 8, 0));
    memcpy(block, &hash, sizeof(hash));
    chain = XXH3_64bits_withSeed(image->bytes + 64, 8, chain);
    chain = XXH3_64bits_withSeed(block, 8, chain);
    memcpy(image->bytes + image->len - 8, &chain, sizeof(chain));
}

/* Files whose checksums are right and whose entries are not: nothing is promised of what they
 * give, but it is an answer, and what can be restored can be taken away again. */
TEST(snapshot, a_file_that_was_made_wrong_does_no_harm)
{
    struct world w = world_open(t, "memory:");
    struct hf_str path = path_in(&w, test_directory(t), "wrong");
    struct hf_engine_snapshot *fresh, *wrong;
    unsigned loaded = 0, restored = 0;
    struct image image;
    char *before;

    fill(&w);
    world_ok(&w, "CreateBackup", "{'TableName':'all','BackupName':'backup'}");
    upkeep(&w);
    before = dump(&w);
    fresh = take(&w);
    CHECK_OK(hf_engine_snapshot_save(w.scope, fresh, path));
    image = read_image(path.ptr);
    seal(&image); /* changes nothing */
    write_image(path.ptr, image.bytes, image.len);
    CHECK_OK(hf_engine_snapshot_load(w.scope, path, &wrong));
    hf_engine_snapshot_free(wrong);
    for (int i = 0; i < 1500; i++) {
        size_t at = 72 + 16 + test_random_below(t, image.len - 72 - 16 - 24);
        uint8_t was = image.bytes[at];

        image.bytes[at] = (uint8_t)test_random(t);
        seal(&image);
        write_image(path.ptr, image.bytes, image.len);
        image.bytes[at] = was;
        if (hf_engine_snapshot_load(w.scope, path, &wrong) != HF_OK) {
            CHECK_INT(HF_CORRUPT, hf_scope_error(w.scope)->status);
            continue;
        }
        loaded++;
        if (hf_engine_snapshot_restore(w.scope, w.db, wrong) == HF_OK) {
            restored++;
            world_call(&w, "Scan", "{'TableName':'all'}");
            world_call(&w, "Scan", "{'TableName':'all','IndexName':'global'}");
            if (hf_engine_check(w.scope, w.db, NULL) != HF_OK)
                CHECK_INT(HF_CORRUPT, hf_scope_error(w.scope)->status);
            restore(&w, fresh);
        }
        hf_engine_snapshot_free(wrong);
    }
    CHECK(loaded > 0 && restored > 0);
    CHECK_DUMP(&w, before);
    hf_engine_snapshot_free(fresh);
    free(before);
    free(image.bytes);
    world_close(&w);
}
