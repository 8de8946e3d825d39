/*
 * outbox/outbox_place_test.c: buckets and seqs of events. (n) is an invariant of outbox_place.c.
 */
#include <pthread.h>
#include <string.h>

#include "outbox/outbox.h"
#include "test.h"

/* (2) Frozen: who changes the hash loses the order of what is stored. */
TEST(outbox_place, the_hash_is_frozen)
{
    struct hf_outbox outbox = {.buckets = 1000};

    CHECK_INT(921, hf__outbox_bucket(&outbox, HF_STR("ann")));
    CHECK_INT(832, hf__outbox_bucket(&outbox, HF_STR("order/4711")));
    outbox.buckets = 16;
    CHECK_INT(1, hf__outbox_bucket(&outbox, HF_STR("ann")));
}

TEST(outbox_place, keys_spread_over_the_buckets)
{
    struct hf_outbox outbox = {.buckets = 16};
    struct hf_scope *s = hf_scope_new(test_env(t));
    int counts[16] = {0};

    for (int i = 0; i < 16000; i++)
        counts[hf__outbox_bucket(&outbox, hf_scope_format(s, "order-%d", i))]++;
    for (int i = 0; i < 16; i++)
        CHECK(counts[i] > 800 && counts[i] < 1200);
    hf_scope_free(s);
}

/* (1) Seqs grow, whatever the clock does, and name their bucket. */
TEST(outbox_place, seqs_only_grow)
{
    struct hf_outbox outbox = {.env = *test_env(t), .buckets = 1000};
    struct outbox_place last = {0}, place, back;

    pthread_mutex_init(&outbox.mutex, NULL);
    for (int i = 0; i < 5000; i++) {
        test_advance_ms(t, (int64_t)test_random_below(t, 3));
        if (i % 1000 == 999)
            t->wall_us -= 10000000;
        hf__outbox_place_make(&outbox, 0, false, 77, &place);
        CHECK_INT(OUTBOX_SEQ_LEN, strlen(place.seq));
        CHECK(strcmp(place.seq, last.seq) > 0);
        CHECK(hf__outbox_place_read(&outbox, place_seq(&place), &back));
        CHECK_INT(77, back.bucket);
        last = place;
    }
    t->wall_us -= (int64_t)3600 * 1000000; /* too far: nobody wants to wait for an hour */
    hf__outbox_place_make(&outbox, 0, false, 77, &place);
    CHECK(strcmp(place.seq, last.seq) < 0);
    /* Those that are due at the same time are in their order, too. */
    hf__outbox_place_make(&outbox, INT64_C(1800000000000), false, 77, &last);
    test_advance_ms(t, 5000);
    hf__outbox_place_make(&outbox, INT64_C(1800000000000), false, 77, &place);
    CHECK(strcmp(place.seq, last.seq) > 0);
    pthread_mutex_destroy(&outbox.mutex);
}

/* Urgent ones are before all others, and in their order. */
TEST(outbox_place, urgent_places_come_first)
{
    struct hf_outbox outbox = {.env = *test_env(t), .buckets = 8};
    struct outbox_place usual, urgent, next;
    char end[OUTBOX_SEQ_LEN + 1];

    pthread_mutex_init(&outbox.mutex, NULL);
    hf__outbox_seq_floor(OUTBOX_URGENT_MS, end);
    CHECK_INT(0, strncmp(end, OUTBOX_URGENT_END "000000", strlen(OUTBOX_URGENT_END) + 6));
    CHECK(!is_urgent_seq(end));
    hf__outbox_seq_floor(OUTBOX_URGENT_MS - 1, end);
    CHECK(is_urgent_seq(end));
    hf__outbox_place_make(&outbox, 0, false, 7, &usual);
    test_advance_ms(t, 5);
    hf__outbox_place_make(&outbox, 0, true, 7, &urgent);
    hf__outbox_place_make(&outbox, 0, true, 7, &next);
    CHECK(!is_urgent_seq(usual.seq) && is_urgent_seq(urgent.seq));
    CHECK(strcmp(urgent.seq, usual.seq) < 0 && strcmp(urgent.seq, next.seq) < 0);
    CHECK(hf__outbox_place_fits(&outbox, &urgent, &(struct hf_event){.urgent = true}));
    CHECK(!hf__outbox_place_fits(&outbox, &urgent, &(struct hf_event){.urgent = false}));
    CHECK(!hf__outbox_place_fits(&outbox, &usual, &(struct hf_event){.urgent = true}));
    pthread_mutex_destroy(&outbox.mutex);
}

TEST(outbox_place, what_is_no_seq)
{
    struct hf_outbox outbox = {.buckets = 2};
    struct outbox_place place;

    CHECK(hf__outbox_place_read(&outbox, HF_STR("01kdvv9c0001abcdefgh012345"), &place));
    CHECK_INT(1, place.bucket);
    CHECK(!hf__outbox_place_read(&outbox, HF_STR("01kdvv9c0002abcdefgh012345"), &place));
    CHECK(!hf__outbox_place_read(&outbox, HF_STR("01KDVV9C0001abcdefgh012345"), &place));
    CHECK(!hf__outbox_place_read(&outbox, HF_STR("01kdvv9c0001abcdefgh01234"), &place));
    CHECK(!hf__outbox_place_read(&outbox, HF_STR("01kdvv9c0001abcdefgh01234i"), &place));
    CHECK(!hf__outbox_place_read(&outbox, HF_STR(""), &place));
}
