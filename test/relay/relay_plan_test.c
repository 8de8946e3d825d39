/*
 * relay/relay_plan_test.c: who is to have which bucket.
 */
#include <stdio.h>

#include "relay/relay.h"
#include "test.h"

enum { BUCKETS = 64, MOST = 9 };

static void make_ids(struct test *t, struct pattern_id *ids, size_t len)
{
    for (size_t i = 0; i < len; i++)
        snprintf(ids[i].text, sizeof(ids[i].text), "%016llx%016llx",
                 (unsigned long long)test_random(t), (unsigned long long)i);
}

/* All get as many, or one more; there may be more relays than buckets. */
TEST(relay_plan, shares_are_fair)
{
    struct pattern_id ids[MOST];
    uint32_t plan[BUCKETS], loads[MOST];

    make_ids(t, ids, MOST);
    for (uint32_t len = 1; len <= MOST; len++)
        for (uint32_t buckets = 1; buckets <= BUCKETS; buckets++) {
            uint32_t counted[MOST] = {0};

            hf__member_plan(ids, len, plan, buckets, loads);
            for (uint32_t i = 0; i < buckets; i++) {
                CHECK(plan[i] < len);
                counted[plan[i]]++;
            }
            for (uint32_t i = 0; i < len; i++) {
                CHECK(counted[i] >= buckets / len && counted[i] <= (buckets + len - 1) / len);
                CHECK_INT(counted[i], loads[i]);
            }
        }
}

/* When one comes, few buckets move besides those that it gets; the same when one goes. */
TEST(relay_plan, few_move_when_one_comes_or_goes)
{
    uint32_t before[BUCKETS], after[BUCKETS], loads[MOST];
    unsigned moved = 0, needed = 0;

    for (int round = 0; round < 100; round++) {
        struct pattern_id ids[MOST];

        make_ids(t, ids, MOST);
        for (uint32_t len = 1; len < MOST; len++) {
            hf__member_plan(ids, len, before, BUCKETS, loads);
            hf__member_plan(ids, len + 1, after, BUCKETS, loads);
            for (uint32_t i = 0; i < BUCKETS; i++) {
                moved += before[i] != after[i];
                needed += after[i] == len;
            }
        }
    }
    CHECK(moved >= needed);
    CHECK(moved < needed * 2); /* about 1.5 times as many as have to; all would be 5 times */
}
