/*
 * base/kill.c: dying on time. Static variables are in no other file of the library, and here only in
 * builds for tests: a kill point has no owner that could hold them.
 */
#include "base/kill.h"

#include "base/base.h"

#ifdef HF_KILL_POINTS

#include <signal.h>
#include <stdatomic.h>

static const char *_Atomic place;

void hf__kill_at(const char *at)
{
    atomic_store(&place, at);
}

void hf__kill_point(const char *name)
{
    static atomic_ullong passes;
    const char *set = atomic_load(&place), *at = set ? set : getenv("HF_KILL_AT");
    size_t len = strlen(name);

    if (!at || strncmp(at, name, len) != 0 || at[len] != ':')
        return;
    if (atomic_fetch_add(&passes, 1) + 1 == strtoull(at + len + 1, NULL, 10))
        raise(SIGKILL);
}

#endif
