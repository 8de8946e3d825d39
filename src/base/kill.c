/*
 * base/kill.c: dying on time. The count is the one static variable of the library, and only of
 * builds for tests: a kill point has no owner that could hold it.
 */
#include "base/kill.h"

#include "base/base.h"

#ifdef HF_KILL_POINTS

#include <signal.h>
#include <stdatomic.h>

void hf__kill_point(const char *name)
{
    static atomic_ullong passes;
    const char *at = getenv("HF_KILL_AT");
    size_t len = strlen(name);

    if (!at || strncmp(at, name, len) != 0 || at[len] != ':')
        return;
    if (atomic_fetch_add(&passes, 1) + 1 == strtoull(at + len + 1, NULL, 10))
        raise(SIGKILL);
}

#endif
