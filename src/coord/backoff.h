/*
 * coord/backoff.h: how long to wait before something is tried again. backoff.c has the essay.
 */
#ifndef HF_COORD_BACKOFF_H
#define HF_COORD_BACKOFF_H

#include <holdfast/env.h>
#include <holdfast/scope.h>

/* Between half of it and all of it, at random: who failed together tries apart. */
uint32_t hf__backoff_jitter_ms(const struct hf_env *env, uint32_t ms);

/* After `failures` in a row (the first is 1): first_ms, doubled for each one more, at most max_ms. */
uint32_t hf__backoff_plain_ms(uint32_t first_ms, uint32_t max_ms, uint64_t failures);

/* The same with jitter. */
uint32_t hf__backoff_ms(const struct hf_env *env, uint32_t first_ms, uint32_t max_ms,
                        uint64_t failures);

/* A series of waits in one call. {.first_ms = 5, .max_ms = 100} begins one. */
struct backoff {
    uint32_t first_ms;
    uint32_t max_ms;
    uint32_t failures;
};

/* The longest that the next wait can be. */
uint32_t hf__backoff_next_ms(const struct backoff *backoff);

/* Another failure: wait, and longer the next time. Fails as hf_scope_sleep_ms() does. */
enum hf_status hf__backoff_sleep(struct hf_scope *s, struct backoff *backoff);

#endif
