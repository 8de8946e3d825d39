/*
 * Hooks for the environment of the library: memory, clocks, randomness, a log. You can set your own
 * when you open a scope or a database; so tests get a settable clock, repeatable randomness and
 * failing allocations. NULL, or a NULL function in the struct, means that of the system. The struct
 * is copied; the object behind `user` has to outlive the scopes and databases that were opened with
 * it. RocksDB uses the C library's allocator and the system's clocks for itself.
 *
 * The library has no globals, prints nothing and never exits. It reads environment variables only
 * to connect to a service (client.h), through `getenv`: AWS's variables, HOME and those of proxies.
 */
#ifndef HOLDFAST_ENV_H
#define HOLDFAST_ENV_H

#include <holdfast/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_log_level { HF_LOG_ERROR = 3, HF_LOG_WARNING = 4, HF_LOG_INFO = 6, HF_LOG_DEBUG = 7 };

/*
 * Resize `ptr` (NULL: allocate) from `old_size` to `new_size` bytes (0: free, returns NULL).
 * Returns NULL and leaves `ptr` alone when there is no memory. Any thread may call it.
 */
typedef void *hf_alloc_fn(void *ptr, size_t old_size, size_t new_size, void *user);

/* Microseconds; any thread may call it. */
typedef int64_t hf_clock_fn(void *user);

/* Fill `len` bytes; any thread may call it. */
typedef void hf_random_fn(void *bytes, size_t len, void *user);

/* One line without a line end; any thread may call it. */
typedef void hf_log_fn(enum hf_log_level level, struct hf_str line, void *user);

/* The value of that environment variable, or NULL; any thread may call it. */
typedef const char *hf_getenv_fn(const char *name, void *user);

/* Return after that many microseconds of the elapsed clock; any thread may call it. */
typedef void hf_sleep_fn(int64_t us, void *user);

struct hf_env {
    size_t size;             /* set by HF_OPTIONS(), so that the struct can grow */
    void *user;              /* handed to every function below */
    hf_alloc_fn *alloc;      /* default: the C library's allocator */
    hf_clock_fn *wall_us;    /* since 1970, UTC; default: the system's */
    hf_clock_fn *elapsed_us; /* never steps back, runs during suspend; default: CLOCK_BOOTTIME */
    hf_random_fn *random;    /* unpredictable bytes; default: getrandom() */
    hf_log_fn *log;          /* default: nothing is logged */
    hf_getenv_fn *getenv;    /* default: the C library's */
    hf_sleep_fn *sleep;      /* default: the system's; replace it together with elapsed_us */
};

#ifdef __cplusplus
}
#endif

#endif
