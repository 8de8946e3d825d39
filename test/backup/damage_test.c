/* backup/damage_test.c: whatever is damaged, cut, missing or swapped is found and named. */
#include "help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECTS_MAX = 64, BYTES_MAX = 65536 };

struct object {
    const char *name, *path;
    uint8_t bytes[BYTES_MAX];
    size_t len;
};

struct place {
    struct rig rig;
    struct object *list;
    size_t len;
};

static void object_read(struct object *object)
{
    int fd = open(object->path, O_RDONLY);
    ssize_t len = read(fd, object->bytes, sizeof(object->bytes));

    CHECK(fd >= 0 && len > 0 && len < BYTES_MAX);
    object->len = (size_t)len;
    close(fd);
}

static void object_write(const struct object *object, const void *bytes, size_t len)
{
    int fd = open(object->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    close(fd);
}

static void heal(const struct object *object)
{
    object_write(object, object->bytes, object->len);
}

/* Two epochs, two snapshots and some segments, in good order. */
static void place_begin(struct test *t, struct place *p)
{
    const char *names[OBJECTS_MAX];
    struct hf_backup_report report;

    rig_begin(t, &p->rig);
    p->rig.o.snapshot_ms = 1000;
    for (int run = 0; run < 2; run++) {
        rig_open(&p->rig);
        for (uint32_t i = 1; i < 5; i++) {
            test_advance_ms(t, 700);
            rig_put(&p->rig, i, i);
            CHECK_OK(hf__ship_step(p->rig.s, p->rig.shipper, false));
            CHECK_OK(hf__ship_step(p->rig.s, p->rig.shipper, false));
        }
        rig_close(&p->rig);
    }
    CHECK_OK(rig_verify(&p->rig, &report));
    CHECK(report.changes >= 6 && report.entries >= 4);
    p->list = calloc(OBJECTS_MAX, sizeof(*p->list));
    p->len = rig_objects(&p->rig, names, OBJECTS_MAX);
    CHECK(p->list && p->len > 8 && p->len < OBJECTS_MAX);
    for (size_t i = 0; i < p->len; i++) {
        p->list[i].name = names[i];
        p->list[i].path = hf_scope_format(p->rig.s, "%s/%s", p->rig.place, names[i]).ptr;
        object_read(&p->list[i]);
    }
}

static void place_end(struct place *p)
{
    free(p->list);
    rig_end(&p->rig);
}

static bool is_old_manifest(const struct place *p, const struct object *object)
{
    const struct object *other;

    if (strncmp(object->name, "manifest/", 9) != 0)
        return false;
    for (other = p->list; other < p->list + p->len; other++)
        if (strncmp(other->name, "manifest/", 9) == 0 && strcmp(other->name, object->name) > 0)
            return true;
    return false;
}

/* It is found, and its name is in the message. */
static void check_found(struct place *p, const struct object *object)
{
    struct hf__mark mark = hf__scope_mark(p->rig.s);
    enum hf_status status = rig_verify(&p->rig, NULL);
    const char *text = hf_scope_error_text(p->rig.s);
    char number[32];

    if (is_old_manifest(p, object)) { /* nobody reads it any more */
        CHECK(status == HF_OK);
        return;
    }
    CHECK(status == HF_CORRUPT || status == HF_FORMAT || status == HF_DENIED ||
          status == HF_NOT_FOUND);
    snprintf(number, sizeof(number), "%.21s", object->name); /* a missing one: folder, epoch, seq */
    if (strncmp(object->name, "manifest/", 9) != 0)
        CHECK(strstr(text, number));
    hf__scope_rewind(p->rig.s, mark);
}

TEST(backup_damage, any_bit_that_flips)
{
    struct place p;

    place_begin(t, &p);
    for (size_t i = 0; i < p.len; i++) {
        struct object *object = &p.list[i];

        for (size_t at = 0; at < object->len; at++) {
            uint8_t bit = (uint8_t)(1u << test_random_below(t, 8));

            object->bytes[at] ^= bit;
            heal(object);
            check_found(&p, object);
            object->bytes[at] ^= bit;
        }
        heal(object);
    }
    CHECK_OK(rig_verify(&p.rig, NULL));
    place_end(&p);
}

TEST(backup_damage, any_cut)
{
    struct place p;

    place_begin(t, &p);
    for (size_t i = 0; i < p.len; i++) {
        for (size_t len = 0; len < p.list[i].len; len += 1 + (size_t)test_random_below(t, 20)) {
            object_write(&p.list[i], p.list[i].bytes, len);
            check_found(&p, &p.list[i]);
        }
        heal(&p.list[i]);
    }
    place_end(&p);
}

TEST(backup_damage, any_that_is_missing_or_another_one)
{
    struct place p;

    place_begin(t, &p);
    for (size_t i = 0; i < p.len; i++) {
        bool newest =
            strncmp(p.list[i].name, "manifest/", 9) == 0 && !is_old_manifest(&p, &p.list[i]);

        CHECK(unlink(p.list[i].path) == 0);
        if (!newest) /* without it, the one before it is the newest */
            check_found(&p, &p.list[i]);
        heal(&p.list[i]);
        for (size_t j = 0; j < p.len; j++) {
            if (j == i)
                continue;
            object_write(&p.list[i], p.list[j].bytes, p.list[j].len);
            check_found(&p, &p.list[i]);
        }
        heal(&p.list[i]);
    }
    CHECK_OK(rig_verify(&p.rig, NULL));
    place_end(&p);
}

/* Every object that a restore needs is looked at by it, too, and nothing is left of a failed one. */
TEST(backup_damage, a_restore_uses_nothing_that_is_damaged)
{
    struct hf_backup_report report;
    struct hf_backup_info info;
    struct hf_backup *backup;
    const char *path;
    size_t failed = 0;
    struct place p;
    struct stat st;

    place_begin(t, &p);
    CHECK_OK(hf_backup_open(p.rig.s, p.rig.url, NULL, &backup));
    hf_backup_info(backup, &info);
    hf_backup_close(backup);
    for (size_t i = 0; i < p.len; i++) {
        size_t at = (size_t)test_random_below(t, p.list[i].len);
        int64_t at_us =
            info.oldest_us +
            (int64_t)test_random_below(t, (uint64_t)(info.newest_us - info.oldest_us) + 1);
        enum hf_status status;

        p.list[i].bytes[at] ^= 1;
        heal(&p.list[i]);
        status = rig_restore(&p.rig, at_us, &path, &report);
        if (status == HF_OK) {
            uint32_t values[HELP_KEYS];

            rig_read(&p.rig, path, values);
            CHECK(memcmp(values, rig_moment(&p.rig, at_us)->values, sizeof(values)) == 0);
        } else {
            CHECK(status == HF_CORRUPT || status == HF_FORMAT);
            CHECK(stat(path, &st) != 0 && errno == ENOENT);
            failed++;
        }
        p.list[i].bytes[at] ^= 1;
        heal(&p.list[i]);
    }
    CHECK(failed >= 2); /* the format and the manifest, whatever the moment */
    place_end(&p);
}
