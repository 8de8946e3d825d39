/*
 * bench/lib_count.c: counting allocations and memory.
 *
 * malloc() and its kin are defined here, so that the program's own win over the C library's for
 * everything in the process, RocksDB included; they count and hand over. free() stays the C
 * library's: it is its memory. Counts are per thread, so counting costs next to nothing, and a
 * thread's difference is what its own calls allocated: RocksDB's background threads are not in it.
 * Under a sanitizer, which does the same trick, only the env is counted.
 */
#include "lib.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_MALLOC 0
#endif
#endif
#ifndef COUNTS_MALLOC
#define COUNTS_MALLOC 1
#endif

static _Thread_local struct bench_allocs counts;

#if COUNTS_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);

HF_API void *malloc(size_t size)
{
    counts.calls++;
    counts.bytes += size;
    return __libc_malloc(size);
}

HF_API void *calloc(size_t count, size_t size)
{
    counts.calls++;
    counts.bytes += count * size;
    return __libc_calloc(count, size);
}

HF_API void *realloc(void *ptr, size_t size)
{
    counts.calls++;
    counts.bytes += size;
    return __libc_realloc(ptr, size);
}
#endif

bool bench_counts_malloc(void)
{
    return COUNTS_MALLOC;
}

struct bench_allocs bench_allocs_now(void)
{
    return counts;
}

static void *counting_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    counts.our_calls++;
    counts.our_bytes += new_size;
    return realloc(ptr, new_size);
}

const struct hf_env bench_env = {.size = sizeof(struct hf_env), .alloc = counting_alloc};

struct bench_memory bench_memory_now(void)
{
    struct bench_memory memory = {0};
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    unsigned long long kib;
    char line[256];

    if (!file)
        return memory;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Rss: %llu kB", &kib) == 1)
            memory.rss = kib * 1024;
        else if (sscanf(line, "Anonymous: %llu kB", &kib) == 1)
            memory.anon = kib * 1024;
    }
    fclose(file);
    return memory;
}
