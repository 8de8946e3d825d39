/*
 * test/fuzz/files.c: files for fuzz targets.
 */
#include "files.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[100];

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void remove_all(void)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *files_directory(void)
{
    const char *tmp = getenv("TMPDIR");

    if (directory[0])
        return directory;
    snprintf(directory, sizeof(directory), "/dev/shm/holdfast-fuzz-XXXXXX");
    if (!mkdtemp(directory)) {
        snprintf(directory, sizeof(directory), "%.60s/holdfast-fuzz-XXXXXX", tmp ? tmp : "/tmp");
        MUST(mkdtemp(directory));
    }
    atexit(remove_all);
    return directory;
}

void files_write(const char *name, size_t offset, const void *bytes, size_t len)
{
    char path[200];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", files_directory(), name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    MUST(fd >= 0 && pwrite(fd, bytes, len, (off_t)offset) == (ssize_t)len);
    close(fd);
}

void files_remove(const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", files_directory(), name);
    unlink(path);
}
