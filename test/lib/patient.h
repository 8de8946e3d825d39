/*
 * test/lib/patient.h: a clock for tests with threads and leases in real time.
 *
 * Such a test says "this holder renews its lease of 800 ms while others watch". By the system's clock it
 * fails when the machine is too busy to let the holder run for 800 ms, which is no defect. This clock goes
 * with the system's while every processor lets a thread run within some milliseconds, and slower while one
 * does not: a stall of a second counts as some milliseconds. So a lease lasts for hundreds of chances to
 * renew it, however slow the machine is, and on a quiet one the test takes as long as it says.
 *
 *     struct hf_scope *s = hf_scope_new(patient_begin());
 *     ... open databases and patterns with s; wait by patient_sleep_ms() ...
 *     patient_end();
 *
 * For the limit after which a test gives up take the system's clock, and half a minute or more.
 */
#ifndef HF_TEST_LIB_PATIENT_H
#define HF_TEST_LIB_PATIENT_H

#include <holdfast/env.h>

#include <stdint.h>

/* Start the clock. The env is the system's but for its clocks; any thread may use it until the end, and
 * nobody after that. */
const struct hf_env *patient_begin(void);
void patient_end(void);

/* The elapsed clock of that env. */
int64_t patient_now_us(void);

/* Return when the clock is so much later. */
void patient_sleep_ms(int64_t ms);

#endif
