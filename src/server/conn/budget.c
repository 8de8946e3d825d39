/*
 * server/conn/budget.c: how much memory there is.
 *
 * A container's memory is limited by its control group, which the C library does not know of. Its
 * path is in /proc/self/cgroup, relative to where the hierarchy is mounted, which by custom is
 * /sys/fs/cgroup; inside of a container the path may be that of the host, and the files are at the
 * top. So every file that could have a limit is looked at, from the own group up, and the least
 * limit counts.
 */
#include "server/conn/budget.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

#define BUDGET_DEFAULT ((uint64_t)256 * 1024 * 1024)
#define BUDGET_LEAST ((uint64_t)32 * 1024 * 1024) /* a request of 16 MiB, and its answer */
#define BUDGET_PART 4 /* of the memory that there is, this part at most by default */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number in a file; UINT64_MAX when there is none, as "max" is none. */
static uint64_t read_limit(const char *path)
{
    unsigned long long limit;
    FILE *file = fopen(path, "re");
    int found = file ? fscanf(file, "%llu", &limit) : 0;

    if (file)
        fclose(file);
    return found == 1 && limit > 0 ? (uint64_t)limit : UINT64_MAX;
}

/* Of the group `group` of the hierarchy at `mount`, and of all groups that it is in. */
static uint64_t group_limit(const char *mount, const char *group, const char *file)
{
    char path[LINE_MAX_BYTES + 128], own[LINE_MAX_BYTES];
    uint64_t limit = UINT64_MAX;

    snprintf(own, sizeof(own), "%s", group);
    for (;;) {
        char *slash;

        snprintf(path, sizeof(path), "%s%s/%s", mount, own, file);
        limit = least_of(limit, read_limit(path));
        slash = strrchr(own, '/');
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

static uint64_t groups_limit(void)
{
    uint64_t limit = UINT64_MAX;
    char line[LINE_MAX_BYTES];
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && fgets(line, sizeof(line), file)) {
        char *group = strstr(line, ":/"); /* "0::/path" or "4:memory:/path" */

        line[strcspn(line, "\n")] = '\0';
        if (!group)
            continue;
        group++;
        if (strncmp(line, "0::", 3) == 0)
            limit = least_of(limit, group_limit("/sys/fs/cgroup", group, "memory.max"));
        else if (strstr(line, ":memory:"))
            limit = least_of(limit,
                             group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
    if (file)
        fclose(file);
    return limit;
}

uint64_t hf__memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t limit = groups_limit();
    struct rlimit space;

    if (pages > 0 && page > 0)
        limit = least_of(limit, (uint64_t)pages * (uint64_t)page);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        limit = least_of(limit, space.rlim_cur);
    if (getrlimit(RLIMIT_DATA, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        limit = least_of(limit, space.rlim_cur);
    return limit;
}

void hf__budget_init(struct budget *budget, uint64_t memory_max, uint64_t input_max)
{
    uint64_t all =
        memory_max ? memory_max : least_of(BUDGET_DEFAULT, hf__memory_limit() / BUDGET_PART);

    if (all < BUDGET_LEAST)
        all = BUDGET_LEAST;
    if (input_max > all / 2)
        all = 2 * input_max;
    memset(budget, 0, sizeof(*budget));
    budget->input_max = input_max ? input_max : all / 2;
    budget->output_max = all - budget->input_max;
    assert(budget->input_max > 0 && budget->input_max < all);
}
