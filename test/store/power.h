/*
 * store/power.h: what this program hands to the system, for who wants to know: power_test.c builds
 * from it what a loss of power may leave. The calls themselves are disk_test.c's and
 * power_test.c's.
 */
#ifndef HF_TEST_STORE_POWER_H
#define HF_TEST_STORE_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Around a write and power_wrote(): a sync that begins meanwhile waits, so that what a write has
 * done is recorded before a sync that covers it. */
void power_write_begins(void);
void power_write_ends(void);

/* Bytes that were written to a file; at -1 they end where the file's position is now. */
void power_wrote(int fd, const void *bytes, size_t len, int64_t at);

/* Before a sync, and after it went well. */
size_t power_sync_begins(void);
void power_synced(int fd, size_t began);

/* Nobody waits for the disk while states are made and looked at. */
bool power_skips_syncs(void);
void power_skip_syncs(bool skip);

#endif
