/*
 * server/conn/descriptors.c: see descriptors.h.
 */
#include "server/conn/descriptors.h"

#include <assert.h>
#include <dirent.h>
#include <sys/resource.h>

uint32_t hf__descriptors_for_connections(uint64_t limit, uint64_t open)
{
    uint64_t rest = limit > open ? limit - open : 0;
    uint64_t most = rest - rest / 4;
    uint64_t reserve = most < DESCRIPTORS_RESERVE ? most : DESCRIPTORS_RESERVE;

    if (rest < DESCRIPTORS_LEAST)
        return 0;
    assert(reserve < rest);
    return rest - reserve < UINT32_MAX ? (uint32_t)(rest - reserve) : UINT32_MAX;
}

uint64_t hf__descriptors_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                    : UINT64_MAX;
}

uint64_t hf__descriptors_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t open = 0;

    while (dir && readdir(dir))
        open++;
    if (dir)
        closedir(dir);
    return open; /* with ".", ".." and the folder itself: a few more than there are */
}
