/*
 * base/env.c: the system's memory, clocks and randomness, and the calls through an env.
 */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/wait.h"

static void *system_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static int64_t clock_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_wall_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_REALTIME);
}

static int64_t system_elapsed_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_BOOTTIME);
}

static void system_random(void *bytes, size_t len, void *user)
{
    uint8_t *to = bytes;

    (void)user;
    while (len > 0) {
        ssize_t got = getrandom(to, len, 0);

        if (got <= 0)
            continue; /* interrupted; with flags 0 it cannot fail otherwise */
        to += got;
        len -= (size_t)got;
    }
}

static const char *system_getenv(const char *name, void *user)
{
    (void)user;
    return getenv(name);
}

static void system_sleep(int64_t us, void *user)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    (void)user;
    while (clock_nanosleep(CLOCK_BOOTTIME, 0, &left, &left) == EINTR)
        ;
}

bool hf__env_has_own_sleep(const struct hf_env *env)
{
    return env->sleep != system_sleep;
}

struct hf_env hf__env_fill(const struct hf_env *env)
{
    struct hf_env whole = {.size = sizeof(whole)};

    if (env)
        memcpy(&whole, env, env->size < sizeof(whole) && env->size ? env->size : sizeof(whole));
    whole.size = sizeof(whole);
    if (!whole.alloc)
        whole.alloc = system_alloc;
    if (!whole.wall_us)
        whole.wall_us = system_wall_us;
    if (!whole.elapsed_us)
        whole.elapsed_us = system_elapsed_us;
    if (!whole.random)
        whole.random = system_random;
    if (!whole.getenv)
        whole.getenv = system_getenv;
    if (!whole.sleep)
        whole.sleep = system_sleep;
    return whole;
}

void *hf__env_alloc(const struct hf_env *env, size_t size)
{
    return env->alloc(NULL, 0, size ? size : 1, env->user);
}

void *hf__env_zalloc(const struct hf_env *env, size_t size)
{
    void *ptr = hf__env_alloc(env, size);

    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

void *hf__env_resize(const struct hf_env *env, void *ptr, size_t old_size, size_t new_size)
{
    return env->alloc(ptr, old_size, new_size, env->user);
}

void hf__env_free(const struct hf_env *env, void *ptr, size_t size)
{
    if (ptr)
        env->alloc(ptr, size ? size : 1, 0, env->user);
}

int64_t hf__env_wall_us(const struct hf_env *env)
{
    return env->wall_us(env->user);
}

int64_t hf__env_wall_ms(const struct hf_env *env)
{
    return env->wall_us(env->user) / 1000;
}

int64_t hf__env_elapsed_us(const struct hf_env *env)
{
    return env->elapsed_us(env->user);
}

void hf__env_random(const struct hf_env *env, void *bytes, size_t len)
{
    env->random(bytes, len, env->user);
}

enum { LOG_LINE_MAX = 1024 };

void hf__env_log(const struct hf_env *env, enum hf_log_level level, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    va_list args;
    int len;

    if (!env->log)
        return;
    va_start(args, format);
    len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len >= LOG_LINE_MAX)
        len = LOG_LINE_MAX - 1;
    for (int i = 0; i < len; i++) /* texts from outside shall not look like other lines */
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7F)
            line[i] = '?';
    env->log(level, hf_str_of(line, len < 0 ? 0 : (size_t)len), env->user);
}
