/* coord/watch_test.c: (n) is an invariant of coord/watch.c. */
#include "coord/watch.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

static struct hf_str id_of(char *room, int number)
{
    snprintf(room, WATCH_ID_LEN + 1, "%032x", (unsigned)number * 2654435761u);
    return hf_str_of(room, WATCH_ID_LEN);
}

TEST(watch, the_same_beat_is_seen_since_the_first_time)
{
    struct watch_sight sight = {0};

    CHECK_INT(0, hf__watch_see(&sight, 7, 0)); /* 0 is a time like any other */
    CHECK_INT(0, hf__watch_see(&sight, 7, 500));
    CHECK_INT(900, hf__watch_see(&sight, 8, 900));
    CHECK_INT(900, hf__watch_see(&sight, 8, 2000));
    CHECK_INT(2500, hf__watch_see(&sight, 7, 2500)); /* a lower one is another, too */
}

TEST(watch, silence_is_measured_by_the_lease)
{
    CHECK_INT(1000000, hf__watch_silent_in(5, 1000, 5));
    CHECK_INT(1, hf__watch_silent_in(5, 1000, 1000004));
    CHECK_INT(0, hf__watch_silent_in(5, 1000, 1000005));
    CHECK_INT(0, hf__watch_silent_in(5, 1000, INT64_MAX / 2));
    CHECK_INT(0, hf__watch_silent_in(5, 0, 5));
}

TEST(watch, every_holder_has_its_own_beat)
{
    struct watch watch = {.env = test_env(t)};
    char room[WATCH_ID_LEN + 1];

    for (int i = 0; i < 1000; i++)
        CHECK_INT(i, hf__watch_holder(&watch, id_of(room, i), 1, i));
    for (int i = 0; i < 1000; i++)
        CHECK_INT(i, hf__watch_holder(&watch, id_of(room, i), 1, 2000));
    CHECK_INT(3000, hf__watch_holder(&watch, id_of(room, 5), 2, 3000));
    CHECK_INT(6, hf__watch_holder(&watch, id_of(room, 6), 1, 3000));
    hf__watch_free(&watch);
}

/* An id of another program may have any length. */
TEST(watch, ids_of_any_length)
{
    struct watch watch = {.env = test_env(t)};
    char long_id[2 * WATCH_ID_LEN];

    memset(long_id, 'x', sizeof(long_id));
    CHECK_INT(1, hf__watch_holder(&watch, (struct hf_str){0}, 1, 1));
    CHECK_INT(1, hf__watch_holder(&watch, (struct hf_str){0}, 1, 2));
    CHECK_INT(3, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 3));
    CHECK_INT(4, hf__watch_holder(&watch, hf_str_of(long_id, sizeof(long_id)), 1, 4));
    CHECK_INT(4, hf__watch_holder(&watch, hf_str_of(long_id, sizeof(long_id)), 1, 5));
    CHECK_INT(3, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 6));
    hf__watch_free(&watch);
}

/* Ten thousand that are looked at all the time are all remembered. */
TEST(watch, those_who_are_looked_at_stay)
{
    struct watch watch = {.env = test_env(t)};
    char room[WATCH_ID_LEN + 1];
    int forgotten = 0;

    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 10000; i++)
            forgotten += hf__watch_holder(&watch, id_of(room, i), 1, round * 1000000) != 0;
    CHECK_INT(0, forgotten);
    hf__watch_free(&watch);
}

/* (2) Memory is bounded, whoever comes. */
TEST(watch, memory_is_bounded)
{
    struct watch watch = {.env = test_env(t)};
    char room[WATCH_ID_LEN + 1];
    size_t slots = 0;

    for (int i = 0; i < 2 * WATCH_SETS * WATCH_WAYS_MAX; i++)
        hf__watch_holder(&watch, id_of(room, i), 1, i);
    for (size_t i = 0; i < WATCH_SETS; i++) {
        CHECK(watch.sets[i].len <= WATCH_WAYS_MAX);
        slots += watch.sets[i].len;
    }
    CHECK(slots <= (size_t)WATCH_SETS * WATCH_WAYS_MAX);
    hf__watch_free(&watch);
}

/* Where holders come and go slowly, sets do not grow. */
TEST(watch, the_old_make_room)
{
    struct watch watch = {.env = test_env(t)};
    char room[WATCH_ID_LEN + 1];

    for (int i = 0; i < 20000; i++)
        hf__watch_holder(&watch, id_of(room, i), 1, (int64_t)i * WATCH_FRESH_MS * 1000);
    for (size_t i = 0; i < WATCH_SETS; i++)
        CHECK(watch.sets[i].len <= WATCH_WAYS);
    hf__watch_free(&watch);
}

/* (2) Without memory watching starts again with each look, and with memory it goes on. */
TEST(watch, without_memory_it_delays)
{
    struct watch watch = {.env = test_env(t)};

    t->fail_at = -(int64_t)(t->allocs + 1);
    CHECK_INT(10, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 10));
    CHECK_INT(20, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 20));
    t->fail_at = 0;
    CHECK_INT(30, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 30));
    CHECK_INT(30, hf__watch_holder(&watch, hf_str_of("a", 1), 1, 40));
    hf__watch_free(&watch);
}
