/*
 * store/record_test.c: the bytes of a record of the journal, which versions before this one wrote
 * and later ones have to read.
 */
#include "store/record.h"

#include "test.h"

#include <string.h>

enum { LONG = 300, NUMBER = 0x0102 };

static const struct hf_bytes none = {NULL, 0};

/* A put in two parts, a delete, and an insert whose value has a length of two bytes. */
static void add_three(struct test *t, struct changes *changes, struct hf_scope *s, uint8_t *value)
{
    memset(value, 'v', LONG);
    hf__changes_init(changes, s, test_env(t));
    CHECK_OK(hf__changes_add(changes, CHANGE_PUT, hf_bytes_of("key", 3), hf_bytes_of("ab", 2),
                             hf_bytes_of("cdef", 4)));
    CHECK_OK(hf__changes_add(changes, CHANGE_DELETE, hf_bytes_of("gone", 4), none, none));
    CHECK_OK(hf__changes_add(changes, CHANGE_INSERT, hf_bytes_of("long", 4), none,
                             hf_bytes_of(value, LONG)));
}

TEST(store_record, has_the_bytes_it_always_had)
{
    static const char before[] = "\0\0\0\0\0\0\0\0\4\0\0\0"
                                 "\1\3key\6abcdef"
                                 "\0\4gone"
                                 "\1\4long\xac\2";
    static const char behind[] = "\1\0\10\0\0\0\0\0\0\1\2";
    const size_t len = sizeof(before) - 1 + LONG + sizeof(behind) - 1;
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct changes changes;
    uint8_t value[LONG], *record;

    add_three(t, &changes, s, value);
    CHECK_INT(len, changes.record_len);
    record = hf_scope_alloc(s, len + 1);
    record[len] = 0x5a;
    hf__changes_write(&changes, NUMBER, record);
    CHECK(memcmp(record, before, sizeof(before) - 1) == 0);
    CHECK(memcmp(record + sizeof(before) - 1, value, LONG) == 0);
    CHECK(memcmp(record + len - (sizeof(behind) - 1), behind, sizeof(behind) - 1) == 0);
    CHECK_INT(0x5a, record[len]);
    hf__changes_drop(&changes);
    hf_scope_free(s);
}

TEST(store_record, is_read_as_it_was_made)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct changes changes, again;
    uint64_t number = 0;
    uint8_t value[LONG], *record;
    bool good;

    add_three(t, &changes, s, value);
    record = hf_scope_alloc(s, changes.record_len);
    hf__changes_write(&changes, NUMBER, record);
    hf__changes_init(&again, s, test_env(t));
    CHECK_OK(hf__changes_read(&again, hf_bytes_of(record, changes.record_len), &number, &good));
    CHECK(good && number == NUMBER && again.len == changes.len);
    CHECK_INT(changes.record_len, again.record_len);
    for (size_t i = 0; i < again.len; i++) {
        const struct map_entry *a = changes.entries[i], *b = again.entries[i];

        CHECK(a->key_len == b->key_len && a->value_len == b->value_len && a->gone == b->gone);
        CHECK(memcmp(a->bytes, b->bytes, a->key_len + a->value_len) == 0);
    }
    hf__changes_drop(&again);
    for (size_t cut = 1; cut <= 11; cut++) { /* without its number it is none */
        hf__changes_init(&again, s, test_env(t));
        number = 0;
        CHECK_OK(hf__changes_read(&again, hf_bytes_of(record, changes.record_len - cut), &number,
                                  &good));
        CHECK(!good);
        hf__changes_drop(&again);
    }
    hf__changes_drop(&changes);
    hf_scope_free(s);
}
