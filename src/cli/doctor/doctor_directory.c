/*
 * cli/doctor/doctor_directory.c: a data directory: its disk, its files, who has it open, its state.
 *
 * The time of writes is measured with a file that has no name (O_TMPFILE); where a file system has
 * none, with one that is unlinked before it is written to. A directory that does not exist yet is
 * measured in the one that it would be created in.
 *
 * Whether journal, manifest and marks agree an open finds out that changes nothing: hf_open() with
 * `read_only`. It takes the lock of readers for that moment.
 */
#include "cli/doctor/doctor.h"

#include <holdfast/engine.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MIB (UINT64_C(1024) * 1024)

enum {
    SYNCS = 16,           /* writes that are measured, each with a sync */
    WRITE_BYTES = 4096,   /* of each */
    SYNC_SLOW_US = 20000, /* a disk that turns takes about 10 ms */
    SYNC_STUCK_US = 250000,
    SYNC_FALSE_US = 5, /* no disk is that fast: it is not asked */
    INODES_FEW = 1000,
    PARENT_MAX = 4096,
    DEPTH_MAX = 2 /* of folders below a data directory */
};

static const uint64_t speed_bytes = 16 * MIB;         /* written in a row, then synced */
static const uint64_t reserve_memtable = 64 * MIB;    /* defaults of hf_engine_options: */
static const uint64_t reserve_slack = 32 * MIB;       /* slack and ballast, store_space.c */
static const uint64_t reserve_compaction = 896 * MIB; /* the largest compaction */

struct directory {
    const char *path;
    char place[PARENT_MAX]; /* where to measure: the directory, or its parent */
    bool there;
    bool ours;         /* it has the file HOLDFAST */
    uint64_t db_bytes; /* of table files */
    size_t loose;      /* files and folders that others may write */
    size_t foreign;    /* files of other users */
    char first[NAME_MAX + 1];
};

/* ---- the directory and its files ------------------------------------------------------------ */

static void parent_set(struct directory *dir)
{
    size_t len = strlen(dir->path);

    while (len > 1 && dir->path[len - 1] == '/')
        len--;
    while (len > 0 && dir->path[len - 1] != '/')
        len--;
    if (len == 0)
        snprintf(dir->place, sizeof(dir->place), ".");
    else
        snprintf(dir->place, sizeof(dir->place), "%.*s", (int)len, dir->path);
}

/* Is there a directory at all, and is it one of ours? False: nothing more can be said. */
static bool path_check(struct doctor *d, struct directory *dir)
{
    struct hf_str path = hf_str_from(dir->path), mark;
    struct stat info, parent;

    if (!path.len || path.len >= PARENT_MAX) {
        hf__doctor_add(d, "directory", FINDING_PROBLEM, HF_STR("the path is empty or too long"),
                       HF_STR("Write the URL as embedded:DIR."));
        return false;
    }
    if (stat(dir->path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        hf__doctor_add(d, "directory", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s is a file, not a directory", dir->path),
                       HF_STR("Name the directory of the database."));
        return false;
    }
    dir->there = access(dir->path, F_OK) == 0;
    if (dir->there) {
        snprintf(dir->place, sizeof(dir->place), "%s", dir->path);
        mark = hf__doctor_text(d, "%s/HOLDFAST", dir->path);
        dir->ours = access(mark.ptr, F_OK) == 0;
        if (dir->ours || errno == ENOENT)
            return true;
    }
    if (errno != ENOENT) {
        hf__doctor_add(d, "directory", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s cannot be looked at: %s", dir->path, strerror(errno)),
                       HF_STR("Run this as the user of the database, or change the modes of it and "
                              "of the folders above it."));
        return false;
    }
    parent_set(dir);
    if (stat(dir->place, &parent) != 0 || !S_ISDIR(parent.st_mode)) {
        hf__doctor_add(d, "directory", FINDING_PROBLEM,
                       hf__doctor_text(d, "neither %s nor %s exists", dir->path, dir->place),
                       HF_STR("Check the path; create the parent directory if it is right."));
        return false;
    }
    hf__doctor_add(d, "directory", FINDING_WARNING,
                   hf__doctor_text(d, "%s does not exist", dir->path),
                   HF_STR("Check the path. If it is right: the first command that writes, or "
                          "'holdfast serve --db-path DIR', creates it."));
    return true;
}

static void entry_note(struct directory *dir, const char *name, const struct stat *info)
{
    bool loose = !S_ISLNK(info->st_mode) && (info->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    bool foreign = info->st_uid != geteuid() && geteuid() != 0;

    if ((loose || foreign) && dir->loose + dir->foreign == 0)
        snprintf(dir->first, sizeof(dir->first), "%s", name);
    dir->loose += loose;
    dir->foreign += foreign;
}

static void folder_walk(struct directory *dir, int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    bool tables = strcmp(name, "db") == 0;
    struct dirent *entry;
    struct stat info;

    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        entry_note(dir, entry->d_name, &info);
        if (tables && S_ISREG(info.st_mode))
            dir->db_bytes += (uint64_t)info.st_size;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
            folder_walk(dir, fd, entry->d_name, depth + 1);
    }
    closedir(folder);
}

static void modes_check(struct doctor *d, struct directory *dir)
{
    struct stat info;
    struct hf_str found;

    if (stat(dir->path, &info) == 0)
        entry_note(dir, ".", &info);
    folder_walk(dir, AT_FDCWD, dir->path, 0);
    found = hf__doctor_text(d, "%zu that others may write, %zu of other users; the first is %s",
                            dir->loose, dir->foreign, dir->first);
    if (access(dir->path, R_OK | W_OK | X_OK) != 0 && errno != EROFS)
        hf__doctor_add(d, "modes", FINDING_PROBLEM,
                       hf__doctor_text(d, "this user may not use %s: %s", dir->path,
                                       strerror(errno)),
                       HF_STR("Run as the user of the database, or give that user the directory: "
                              "chown -R USER DIR."));
    else if (dir->loose + dir->foreign)
        hf__doctor_add(d, "modes", FINDING_WARNING, found,
                       HF_STR("Only the user of the database should own and write its files: "
                              "chown -R USER DIR; chmod -R go-w DIR."));
    else
        hf__doctor_add(d, "modes", FINDING_OK, HF_STR("only this user may write"), HF_STR(""));
}

/* ---- the file system ------------------------------------------------------------------------ */

enum filesystem_kind { FS_LOCAL, FS_MEMORY, FS_OVERLAY, FS_NETWORK, FS_USER, FS_UNKNOWN };

static const struct {
    uint32_t magic; /* statfs.f_type: see statfs(2) */
    const char *name;
    enum filesystem_kind kind;
} filesystems[] = {
    {0xEF53, "ext4", FS_LOCAL},          {0x58465342, "xfs", FS_LOCAL},
    {0x9123683E, "btrfs", FS_LOCAL},     {0x2FC12FC1, "zfs", FS_LOCAL},
    {0xF2F52010, "f2fs", FS_LOCAL},      {0xCA451A4E, "bcachefs", FS_LOCAL},
    {0x01021994, "tmpfs", FS_MEMORY},    {0x858458F6, "ramfs", FS_MEMORY},
    {0x794C7630, "overlay", FS_OVERLAY}, {0x6969, "nfs", FS_NETWORK},
    {0xFF534D42, "cifs", FS_NETWORK},    {0xFE534D42, "smb2", FS_NETWORK},
    {0x517B, "smb", FS_NETWORK},         {0x00C36400, "ceph", FS_NETWORK},
    {0x01021997, "9p", FS_NETWORK},      {0x0BD00BD0, "lustre", FS_NETWORK},
    {0x47504653, "gpfs", FS_NETWORK},    {0x65735546, "fuse", FS_USER},
    {0x4D44, "vfat", FS_USER},           {0x2011BAB0, "exfat", FS_USER},
};

static enum filesystem_kind filesystem_check(struct doctor *d, const struct directory *dir)
{
    static const char *const advice[] = {
        [FS_LOCAL] = "",
        [FS_MEMORY] = "It is in memory: everything is gone when the machine restarts. Use a "
                      "directory on a disk for data that must last.",
        [FS_OVERLAY] = "It is the image layer of a container: everything is gone with the "
                       "container, and writes are slower. Mount a volume for the directory.",
        [FS_NETWORK] = "It is on the network: locks and syncs may not be reliable, and syncs are "
                       "slow. Use a local disk, and 'holdfast serve' for other machines.",
        [FS_USER] = "It may not sync and lock as a database needs. Use ext4, xfs, btrfs or zfs.",
        [FS_UNKNOWN] = "",
    };
    enum filesystem_kind kind = FS_UNKNOWN;
    struct hf_str name;
    struct statvfs mount;
    struct statfs info;

    if (statfs(dir->place, &info) != 0)
        return kind;
    name = hf__doctor_text(d, "unknown kind 0x%x", (uint32_t)info.f_type);
    for (size_t i = 0; i < COMMAND_LEN(filesystems); i++)
        if (filesystems[i].magic == (uint32_t)info.f_type) {
            name = hf_str_from(filesystems[i].name);
            kind = filesystems[i].kind;
        }
    if (statvfs(dir->place, &mount) == 0 && (mount.f_flag & ST_RDONLY))
        hf__doctor_add(d, "file system", FINDING_PROBLEM,
                       hf__doctor_text(d, "%.*s, mounted read-only", HF_FMT(name)),
                       HF_STR("Mount it for writing. If that was the kernel's doing, 'dmesg' has "
                              "the error of the disk. To read use 'holdfast serve --read-only'."));
    else
        hf__doctor_add(d, "file system", *advice[kind] ? FINDING_WARNING : FINDING_OK, name,
                       hf_str_from(advice[kind]));
    return kind;
}

/* As store_space.c computes it for a store with default options. */
static uint64_t reserve_bytes(const struct directory *dir)
{
    return reserve_memtable + reserve_slack +
           (dir->db_bytes < reserve_compaction ? dir->db_bytes : reserve_compaction);
}

static uint64_t space_check(struct doctor *d, const struct directory *dir)
{
    uint64_t reserve = reserve_bytes(dir), free_bytes;
    struct statvfs info;
    struct hf_str found;

    if (statvfs(dir->place, &info) != 0)
        return 0;
    free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    found = hf__doctor_text(d, "%.*s free, and the reserve is about %.*s",
                            HF_FMT(hf__doctor_bytes(d, free_bytes)),
                            HF_FMT(hf__doctor_bytes(d, reserve)));
    if (free_bytes < reserve)
        hf__doctor_add(d, "disk space", FINDING_PROBLEM, found,
                       HF_STR("Writes are refused below the reserve. Free some space, delete "
                              "items or tables, or set --reserve or --memtable lower."));
    else if (free_bytes < 2 * reserve)
        hf__doctor_add(d, "disk space", FINDING_WARNING, found,
                       HF_STR("Free some space soon: writes are refused below the reserve."));
    else
        hf__doctor_add(d, "disk space", FINDING_OK, found, HF_STR(""));
    if (info.f_files && info.f_favail < INODES_FEW)
        hf__doctor_add(d, "inodes", info.f_favail ? FINDING_WARNING : FINDING_PROBLEM,
                       hf__doctor_text(d, "%" PRIu64 " free", (uint64_t)info.f_favail),
                       HF_STR("Delete files that are not needed: no new file can be created "
                              "without a free inode."));
    return free_bytes;
}

/* ---- its speed ------------------------------------------------------------------------------ */

/* A file that nobody sees and that is gone when it is closed; -1: errno says why. */
static int nameless_file(struct doctor *d, const char *place)
{
    struct hf_str name = hf_scope_format(d->s, "%s/.holdfast-doctor-XXXXXX", place);
    char *path = (char *)(uintptr_t)name.ptr; /* it is ours, and mkostemp() fills it in */
    int fd = open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) || !path)
        return fd;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Write one block and sync it; the time it took, or -1 and errno. */
static int64_t block_sync(struct doctor *d, int fd, size_t nth, char fill)
{
    int64_t begin = hf__doctor_now_us(d);
    char block[WRITE_BYTES];

    memset(block, fill, sizeof(block));
    if (pwrite(fd, block, sizeof(block), (off_t)(nth * sizeof(block))) != (ssize_t)sizeof(block) ||
        fdatasync(fd) != 0)
        return -1;
    return hf__doctor_now_us(d) - begin;
}

/* As the journal does it: over what a file has already, so that no sync has to make it longer. False:
 * a write or a sync failed, and errno says why. */
static bool sync_measure(struct doctor *d, int fd, int64_t times[SYNCS])
{
    if (ftruncate(fd, SYNCS * WRITE_BYTES) != 0)
        return false;
    for (size_t i = 0; i < SYNCS; i++)
        if (block_sync(d, fd, i, 'a') < 0)
            return false;
    for (size_t i = 0; i < SYNCS; i++) {
        times[i] = block_sync(d, fd, i, 'b');
        if (times[i] < 0)
            return false;
    }
    return true;
}

/* Bytes a second, with the sync; 0: it failed. */
static double speed_measure(struct doctor *d, int fd)
{
    static char block[64 * 1024];
    int64_t begin = hf__doctor_now_us(d), took;

    for (uint64_t at = 0; at < speed_bytes; at += sizeof(block))
        if (pwrite(fd, block, sizeof(block), (off_t)at) != (ssize_t)sizeof(block))
            return 0;
    if (fdatasync(fd) != 0)
        return 0;
    took = hf__doctor_now_us(d) - begin;
    return (double)speed_bytes * 1e6 / (double)(took > 0 ? took : 1);
}

static void sync_judge(struct doctor *d, enum filesystem_kind kind, int64_t times[SYNCS])
{
    int64_t median, worst;
    struct hf_str found;

    hf__doctor_sort(times, SYNCS);
    median = times[SYNCS / 2];
    worst = times[SYNCS - 1];
    found = hf__doctor_text(d, "%.*s for a write with its sync (median of %d), %.*s at most",
                            HF_FMT(hf__doctor_time(d, median)), SYNCS,
                            HF_FMT(hf__doctor_time(d, worst)));
    if (median >= SYNC_STUCK_US)
        hf__doctor_add(d, "sync", FINDING_PROBLEM, found,
                       HF_STR("Every write waits for that. Look for other load on the disk "
                              "('iostat -x 1'), or use another disk."));
    else if (median >= SYNC_SLOW_US)
        hf__doctor_add(d, "sync", FINDING_WARNING, found,
                       HF_STR("Every write waits for that. Use an SSD; or, if a crash of the "
                              "machine may lose the last moments, --sync batch."));
    else if (median < SYNC_FALSE_US && kind != FS_MEMORY)
        hf__doctor_add(d, "sync", FINDING_WARNING, found,
                       HF_STR("No disk is that fast: something ignores syncs, such as eatmydata or "
                              "a virtual disk with an unsafe cache. A crash may lose data."));
    else
        hf__doctor_add(d, "sync", FINDING_OK, found, HF_STR(""));
}

/* No room to measure in says nothing about the disk. */
static bool is_full(struct doctor *d, int error)
{
    if (error != ENOSPC && error != EDQUOT)
        return false;
    hf__doctor_add(d, "sync", FINDING_SKIPPED,
                   hf__doctor_text(d, "not measured: %s; see disk space", strerror(error)),
                   HF_STR(""));
    return true;
}

static void speed_check(struct doctor *d, const struct directory *dir, enum filesystem_kind kind,
                        uint64_t free_bytes)
{
    int fd = nameless_file(d, dir->place);
    int64_t times[SYNCS];
    double rate;

    if (fd < 0) {
        if (is_full(d, errno))
            return;
        hf__doctor_add(d, "sync", errno == EROFS ? FINDING_SKIPPED : FINDING_PROBLEM,
                       hf__doctor_text(d, "no file can be created in %s: %s", dir->place,
                                       strerror(errno)),
                       HF_STR("Run as the user of the database, and look at the modes of the "
                              "directory and at its disk."));
        return;
    }
    if (sync_measure(d, fd, times)) {
        sync_judge(d, kind, times);
    } else {
        if (!is_full(d, errno))
            hf__doctor_add(d, "sync", FINDING_PROBLEM,
                           hf__doctor_text(d, "a write or sync failed: %s", strerror(errno)),
                           HF_STR("Look at the disk: 'dmesg', 'smartctl -a'. Copy the database "
                                  "while it can be read."));
        close(fd);
        return;
    }
    if (free_bytes > 4 * speed_bytes && (rate = speed_measure(d, fd)) > 0)
        hf__doctor_add(d, "disk speed", FINDING_OK,
                       hf__doctor_text(d, "%.0f MB/s written, with the sync", rate / 1e6),
                       HF_STR(""));
    close(fd);
}

/* ---- its state ------------------------------------------------------------------------------ */

static void state_fail(struct doctor *d, const char *path, enum hf_status status)
{
    struct hf_str message = hf__doctor_text(d, "%s", hf_scope_error_text(d->s));
    struct hf_str holder;

    switch (status) {
    case HF_LOCKED:
        holder = hf__database_holder(d->s, path);
        hf__doctor_add(d, "in use", FINDING_OK,
                       holder.ptr ? holder : HF_STR("by a process that cannot be seen from here"),
                       HF_STR(""));
        hf__doctor_add(d, "state", FINDING_SKIPPED,
                       HF_STR("not looked at, as another process writes to it"),
                       HF_STR("With a server: 'holdfast check URL'."));
        return;
    case HF_CORRUPT:
        hf__doctor_add(d, "state", FINDING_PROBLEM, message,
                       HF_STR("Keep a copy of the directory as it is. Then restore all of it from "
                              "one copy, and run 'holdfast check DIR'."));
        return;
    case HF_FORMAT:
        hf__doctor_add(d, "state", FINDING_PROBLEM, message,
                       HF_STR("Use the version of holdfast that wrote it, or a newer one."));
        return;
    default:
        hf__doctor_add(d, "state", FINDING_PROBLEM, message,
                       HF_STR("Look at the path, its modes and its disk."));
    }
}

static void state_check(struct doctor *d, const char *path)
{
    struct hf_str url = hf__doctor_text(d, "embedded:%s", path);
    int64_t begin = hf__doctor_now_us(d), took;
    struct hf_list_tables_result tables = {.tables_len = 0};
    struct hf_db *db;
    enum hf_status status =
        hf_open(d->s, url, HF_OPTIONS(hf_engine_options, .read_only = true), &db);

    if (status != HF_OK) {
        state_fail(d, path, status);
        hf_scope_ok(d->s);
        return;
    }
    took = hf__doctor_now_us(d) - begin;
    status = hf_list_tables(d->s, db, &(struct hf_list_tables){.limit = 0}, &tables);
    hf_db_close(db);
    hf__doctor_add(d, "in use", FINDING_OK, HF_STR("by no process that writes"), HF_STR(""));
    if (status == HF_OK)
        hf__doctor_add(d, "state", FINDING_OK,
                       hf__doctor_text(d,
                                       "journal, manifest and marks agree; %zu%s table%s, opened "
                                       "in %.*s",
                                       tables.tables_len, tables.last.ptr ? " or more" : "",
                                       tables.tables_len == 1 ? "" : "s",
                                       HF_FMT(hf__doctor_time(d, took))),
                       HF_STR("'holdfast check DIR' reads and verifies all data."));
    else
        state_fail(d, path, status);
    hf_scope_ok(d->s);
}

void hf__doctor_directory(struct doctor *d, const char *path)
{
    struct directory dir = {.path = path};
    enum filesystem_kind kind;
    uint64_t free_bytes;

    if (!path_check(d, &dir))
        return;
    if (dir.there && !dir.ours &&
        access(hf__doctor_text(d, "%s/HOLDFAST.new", path).ptr, F_OK) == 0)
        hf__doctor_add(d, "directory", FINDING_WARNING,
                       hf__doctor_text(d, "%s is being created, or that was interrupted", path),
                       HF_STR("If no process creates it now, the next write finishes it."));
    else if (dir.there && !dir.ours)
        hf__doctor_add(d, "directory", FINDING_PROBLEM,
                       hf__doctor_text(d, "%s has no database in it (no file HOLDFAST)", path),
                       HF_STR("Check the path: an empty directory becomes a database with the "
                              "first write; one with other files is refused."));
    else if (dir.there)
        hf__doctor_add(d, "directory", FINDING_OK, hf__doctor_text(d, "%s", path), HF_STR(""));
    if (dir.ours)
        modes_check(d, &dir);
    kind = filesystem_check(d, &dir);
    free_bytes = space_check(d, &dir);
    speed_check(d, &dir, kind, free_bytes);
    if (dir.ours)
        state_check(d, path);
}
