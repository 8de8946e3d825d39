/* backup/moments_test.c: a restore to a moment is what the store held then. */
#include "help.h"

static void work(struct rig *rig, uint32_t changes)
{
    for (uint32_t i = 0; i < changes; i++) {
        rig_put(rig, (unsigned)test_random_below(rig->t, HELP_KEYS),
                (uint32_t)test_random_below(rig->t, 5) * (uint32_t)(i + 1));
        if (test_random_below(rig->t, 4) == 0)
            CHECK_OK(hf__ship_step(rig->s, rig->shipper, false));
        if (test_random_below(rig->t, 60) == 0) {
            rig_close(rig);
            test_advance_ms(rig->t, (int64_t)test_random_below(rig->t, 5000));
            rig_open(rig);
        }
    }
}

/* Any moment, with snapshots, restarts and pauses among the changes. */
TEST(backup_moments, a_restore_is_what_was_there)
{
    struct hf_backup_report report;
    struct hf_backup_info info;
    struct hf_backup *backup;
    struct rig rig;

    rig_begin(t, &rig);
    rig.o.snapshot_ms = 8000;
    rig_open(&rig);
    CHECK_OK(hf__ship_step(rig.s, rig.shipper, true));
    work(&rig, 300);
    CHECK_OK(hf__ship_step(rig.s, rig.shipper, true));
    CHECK_OK(rig_verify(&rig, &report));
    CHECK(report.changes > 0 && report.damages == 0);
    CHECK_OK(hf_backup_open(rig.s, rig.url, NULL, &backup));
    hf_backup_info(backup, &info);
    CHECK(info.snapshots > 1 && info.segments > 10 && info.newest_us > info.oldest_us);
    CHECK(info.newest_us >= rig.now.at_us);
    hf_backup_close(backup);
    for (uint32_t i = 0; i < test_times(60); i++)
        rig_check_moment(&rig,
                         info.oldest_us + (int64_t)test_random_below(
                                              t, (uint64_t)(info.newest_us - info.oldest_us) + 1));
    rig_check_moment(&rig, info.oldest_us);
    rig_check_moment(&rig, info.newest_us);
    rig_end(&rig);
}

TEST(backup_moments, outside_of_the_window)
{
    struct hf_backup_report report;
    const char *path;
    struct rig rig;

    rig_begin(t, &rig);
    rig_open(&rig);
    rig_put(&rig, 0, 1);
    CHECK_OK(hf__ship_step(rig.s, rig.shipper, true));
    CHECK_STATUS(HF_NOT_FOUND, rig_restore(&rig, 1, &path, &report));
    CHECK_STATUS(HF_NOT_FOUND, rig_restore(&rig, rig.now.at_us + 3600000000, &path, &report));
    CHECK_OK(rig_restore(&rig, 0, &path, &report));
    rig_end(&rig);
}
