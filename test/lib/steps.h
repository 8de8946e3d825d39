/*
 * lib/steps.h: one step of a table without threads, as tests write it: a number that can be compared.
 * The scope of the test stays as it is.
 */
#ifndef HF_TEST_STEPS_H
#define HF_TEST_STEPS_H

#include <assert.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>

/* After how many milliseconds there is more to do; UINT32_MAX: nothing. An actor of a simulation may die in it, so
 * the memory has to be its host's. */
static inline uint32_t locks_step_of(const struct hf_env *env, struct hf_lock_table *locks)
{
    struct hf_scope *s = hf_scope_new(env);
    uint32_t next_ms = 0;
    enum hf_status status = hf_lock_table_step(s, locks, &next_ms);

    assert(status == HF_OK);
    (void)status;
    hf_scope_free(s);
    return next_ms;
}

static inline uint32_t locks_step(struct hf_lock_table *locks)
{
    return locks_step_of(NULL, locks);
}

static inline uint32_t onces_step_of(const struct hf_env *env, struct hf_once_table *onces)
{
    struct hf_scope *s = hf_scope_new(env);
    uint32_t next_ms = 0;
    enum hf_status status = hf_once_table_step(s, onces, &next_ms);

    assert(status == HF_OK);
    (void)status;
    hf_scope_free(s);
    return next_ms;
}

static inline uint32_t onces_step(struct hf_once_table *onces)
{
    return onces_step_of(NULL, onces);
}

#endif
