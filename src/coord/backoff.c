/*
 * coord/backoff.c: one way to wait longer after each failure.
 *
 * The wait doubles with every failure in a row up to a maximum. The half of it that is random keeps
 * those apart that have failed at the same moment; the half that is not keeps a wait from being no
 * wait at all.
 *
 *  (1) A wait is at least half of first_ms and never more than max_ms.
 *  (2) No number of failures overflows.
 */
#include "coord/backoff.h"

#include <assert.h>

uint32_t hf__backoff_jitter_ms(const struct hf_env *env, uint32_t ms)
{
    uint32_t bits, jittered;

    env->random(&bits, sizeof(bits), env->user);
    jittered = ms - (uint32_t)((uint64_t)bits * (ms / 2) >> 32);
    assert(jittered <= ms && jittered >= ms / 2);
    return jittered;
}

uint32_t hf__backoff_plain_ms(uint32_t first_ms, uint32_t max_ms, uint64_t failures)
{
    uint64_t ms = first_ms;

    for (uint64_t i = 1; i < failures && ms && ms < max_ms; i++)
        ms *= 2;
    assert(ms <= 2 * (uint64_t)UINT32_MAX && "(2)");
    return ms < max_ms ? (uint32_t)ms : max_ms;
}

uint32_t hf__backoff_ms(const struct hf_env *env, uint32_t first_ms, uint32_t max_ms,
                        uint64_t failures)
{
    return hf__backoff_jitter_ms(env, hf__backoff_plain_ms(first_ms, max_ms, failures));
}

uint32_t hf__backoff_next_ms(const struct backoff *backoff)
{
    return hf__backoff_plain_ms(backoff->first_ms, backoff->max_ms,
                                backoff->failures + UINT64_C(1));
}

enum hf_status hf__backoff_sleep(struct hf_scope *s, struct backoff *backoff)
{
    uint32_t ms = hf__backoff_jitter_ms(hf_scope_env(s), hf__backoff_next_ms(backoff));

    backoff->failures++;
    return hf_scope_sleep_ms(s, ms);
}
