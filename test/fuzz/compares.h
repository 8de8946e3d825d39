/*
 * test/fuzz/compares.h: what fuzz targets of a whole database share, see compares.c.
 */
#ifndef HF_TEST_FUZZ_COMPARES_H
#define HF_TEST_FUZZ_COMPARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Call this first: are the comparisons of this input shown to libFuzzer? */
void compares_begin(const uint8_t *data, size_t size);

/* True for one input in `every`, and for the same ones each time. */
bool one_in(unsigned every, const uint8_t *data, size_t size);

#endif
