/* coord/lease_test.c: (n) is an invariant of coord/lease.c. */
#include "coord/lease.h"
#include "coord/watch.h"

#include "test.h"

static const struct lease_terms terms = {.lease_ms = 20000, .heartbeat_ms = 5000};

/*
 * The proof of lease.c, tried out: a holder renews now and then, its requests and a watcher's
 * readings take some time, and their clocks run at speeds that differ by up to a hundredth. At no
 * moment does the watcher take over while the holder counts on its lease.
 */
struct race {
    int64_t lease_us;
    int64_t holder_ppm; /* how many millionths the clock of each runs faster than true time */
    int64_t watcher_ppm;
    int64_t stored_us; /* from sending a renewal until it is stored, in true time */
    int64_t read_us;   /* from then until a watcher has read it */
    int64_t start_us;  /* of the holder's clock */
};

static int64_t clock_at(int64_t start_us, int64_t ppm, int64_t true_us)
{
    return start_us + true_us + true_us * ppm / 1000000;
}

/* The true time in which a clock shows at least `us`. */
static int64_t true_at(int64_t start_us, int64_t ppm, int64_t us)
{
    int64_t true_us = (us - start_us) * 1000000 / (1000000 + ppm);

    while (clock_at(start_us, ppm, true_us) < us)
        true_us++;
    return true_us;
}

static bool holder_stops_first(const struct race *race)
{
    int64_t sent_us = clock_at(race->start_us, race->holder_ppm, 0);
    int64_t until_us = hf__lease_until(sent_us, (uint32_t)(race->lease_us / 1000));
    int64_t stops_us = true_at(race->start_us, race->holder_ppm, until_us);
    int64_t seen_us = clock_at(0, race->watcher_ppm, race->stored_us + race->read_us);
    int64_t over_us =
        seen_us + hf__watch_silent_in(seen_us, (uint32_t)(race->lease_us / 1000), seen_us);

    return stops_us <= true_at(0, race->watcher_ppm, over_us);
}

/* (1) (2) */
TEST(lease, the_holder_stops_first)
{
    static const int64_t leases_ms[] = {1, 2, 50, 99, 100, 101, 1000, 20000, 3600000, UINT32_MAX};
    static const int64_t delays_us[] = {0, 1, 999, 1000, 2500000};
    /* Millionths that the watcher's clock runs faster than the holder's: up to 1 %. */
    static const int64_t faster_ppm[] = {-10000, -500, 0, 500, 5000, 10000};

    for (size_t l = 0; l < sizeof(leases_ms) / sizeof(leases_ms[0]); l++)
        for (size_t d = 0; d < 25; d++)
            for (size_t p = 0; p < sizeof(faster_ppm) / sizeof(faster_ppm[0]); p++) {
                struct race race = {.lease_us = leases_ms[l] * 1000,
                                    .watcher_ppm = faster_ppm[p],
                                    .stored_us = delays_us[d / 5],
                                    .read_us = delays_us[d % 5],
                                    .start_us = (int64_t)d * 123457};

                CHECK(holder_stops_first(&race));
                race.watcher_ppm = 0;
                race.holder_ppm = -faster_ppm[p] * 99 / 100; /* slower by so much */
                CHECK(holder_stops_first(&race));
            }
}

/* The test above can fail: with a clock that differs by more than the margin it does. */
TEST(lease, a_clock_beyond_the_margin_is_seen)
{
    struct race race = {.lease_us = 20000000, .watcher_ppm = 12000};

    CHECK(!holder_stops_first(&race));
}

TEST(lease, it_is_counted_from_the_sending)
{
    struct lease lease = {0};

    hf__lease_take(&lease, terms, 1000000);
    CHECK_INT(1000000 + 19800000, lease.until_us);
    CHECK_INT(1000000 + 5000000, lease.due_us);
    CHECK(!lease_is_over(&lease, 20799999));
    CHECK(lease_is_over(&lease, 20800000));
    CHECK_INT(1, lease_left_us(&lease, 20799999));
    CHECK_INT(0, lease_left_us(&lease, 20800000));
    CHECK_INT(0, lease_left_us(&lease, INT64_MAX));
}

/* (3) */
TEST(lease, of_two_renewals_the_later_counts)
{
    struct lease lease = {0};

    hf__lease_take(&lease, terms, 0);
    hf__lease_renew(&lease, terms, 5000000);
    hf__lease_renew(&lease, terms, 4000000); /* sent before, answered after */
    CHECK_INT(5000000 + 19800000, lease.until_us);
}

/* (4) */
TEST(lease, a_failed_renewal_is_tried_again_soon)
{
    struct lease lease = {0};

    CHECK_INT(LEASE_RETRY_MIN_MS, hf__lease_retry_ms(0));
    CHECK_INT(LEASE_RETRY_MIN_MS, hf__lease_retry_ms(4 * LEASE_RETRY_MIN_MS));
    CHECK_INT(LEASE_RETRY_MIN_MS + 1, hf__lease_retry_ms(4 * (LEASE_RETRY_MIN_MS + 1)));
    CHECK_INT(LEASE_RETRY_MAX_MS, hf__lease_retry_ms(4 * LEASE_RETRY_MAX_MS));
    CHECK_INT(LEASE_RETRY_MAX_MS, hf__lease_retry_ms(UINT32_MAX));
    hf__lease_take(&lease, terms, 0);
    hf__lease_retry(&lease, terms, 5000000);
    CHECK_INT(6000000, lease.due_us);
    CHECK_INT(19800000, lease.until_us);
}

/* (5) */
TEST(lease, a_doubtful_renewal_only_shortens)
{
    struct lease lease = {0};

    hf__lease_take(&lease, terms, 0);
    hf__lease_doubt(&lease, 60000, 1000000);
    CHECK_INT(19800000, lease.until_us);
    hf__lease_doubt(&lease, 1000, 1000000);
    CHECK_INT(1990000, lease.until_us);
}

TEST(lease, a_heartbeat_is_a_quarter_of_it)
{
    CHECK_INT(5000, hf__lease_heartbeat_ms(20000));
    CHECK_INT(251, hf__lease_heartbeat_ms(1001));
    CHECK_INT(1, hf__lease_heartbeat_ms(3));
    CHECK_INT(1, hf__lease_heartbeat_ms(0));
    CHECK_INT(1u << 30, hf__lease_heartbeat_ms(UINT32_MAX));
}
