/*
 * test/fuzz/selftest/broken.c: a door that breaks on '!' as the first byte, for testing replay.c.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '!')
        abort();
    return 0;
}
