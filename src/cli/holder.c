/*
 * cli/holder.c: which process has a directory locked, so that "it is locked" can be acted on.
 *
 * Linux lists its locks in /proc/locks:
 *
 *     1: FLOCK  ADVISORY  WRITE 20073 fe:00:10961338 0 EOF
 *
 * kind, strength, mode, process, device and inode of the file. Of several that read, one is named.
 * Where there is no such list, or the holder is in another container and has no number here,
 * nothing is said.
 */
#include "cli/serve.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { LINE_MAX_BYTES = 256, NAME_MAX_BYTES = 64 };

static struct hf_str describe(struct hf_scope *s, long pid)
{
    char path[NAME_MAX_BYTES];
    char name[NAME_MAX_BYTES] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    if (*name)
        return hf_scope_format(s, "process %ld (%s)", pid, name);
    return hf_scope_format(s, "process %ld", pid);
}

struct hf_str hf__serve_holder(struct hf_scope *s, const char *path)
{
    struct stat info;
    char line[LINE_MAX_BYTES];
    struct hf_str found = {0};
    FILE *file;

    if (stat(path, &info) != 0)
        return found;
    file = fopen("/proc/locks", "re");
    while (file && !found.ptr && fgets(line, sizeof(line), file)) {
        long pid;
        unsigned major_number, minor_number;
        unsigned long long inode;

        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%llu", &pid, &major_number, &minor_number,
                   &inode) == 4 &&
            pid > 0 && inode == info.st_ino && major_number == major(info.st_dev) &&
            minor_number == minor(info.st_dev))
            found = describe(s, pid);
    }
    if (file)
        fclose(file);
    return found;
}
