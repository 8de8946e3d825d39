/*
 * blob/objects.c: objects in a folder or in a bucket, see objects.h.
 *
 *     PATH/FILE, PATH/FOLDER/FILE   an object
 *     PATH/new/RANDOM               one that is being written
 *
 * Every call names its file by the whole path: a disk that was away and is mounted again is found.
 */
#include "blob/objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kill.h"
#include "blob/s3.h"

#define NEW_FOLDER "new"

enum {
    MODE_FOLDER = 0700,
    MODE_FILE = 0600,
    ERROR_TEXT_MAX = 128,
    HTTP_PRECONDITION_FAILED = 412,
    HTTP_NOT_IMPLEMENTED = 501
};

struct hf__objects {
    struct hf_env env;
    struct hf_scope *memory;
    struct hf_str url;
    struct hf_str path;    /* of a folder; absent: S3 */
    struct s3_blobs blobs; /* what lists of S3 want */
};

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Of our own names: a mistake is ours. */
static bool is_name(struct hf_str name)
{
    size_t slashes = 0;

    for (size_t i = 0; i < name.len; i++) {
        bool begins = i == 0 || name.ptr[i - 1] == '/';

        if (name.ptr[i] == '/' && !begins && i + 1 < name.len)
            slashes++;
        else if (!is_plain(name.ptr[i]) && (begins || !char_in(name.ptr[i], "-._")))
            return false;
    }
    return name.len > 0 && name.len <= OBJECT_NAME_MAX && slashes <= 1;
}

static enum hf_status fail_errno(struct hf_scope *s, const char *what, const char *path)
{
    int error = errno;
    char room[ERROR_TEXT_MAX];
    enum hf_status status = error == ENOSPC || error == EDQUOT  ? HF_NO_SPACE
                            : error == EACCES || error == EPERM ? HF_DENIED
                            : error == ENOENT                   ? HF_NOT_FOUND
                                                                : HF_IO;

    if (error == ENOMEM)
        return hf__fail_nomem(s);
    return hf__fail(s, status, "cannot %s %s: %s", what, path,
                    strerror_r(error, room, sizeof(room)));
}

/* ---- a folder ------------------------------------------------------------------------------- */

/* The path of an object or a folder; of PATH itself without a name. */
static enum hf_status path_of(struct hf_scope *s, const struct hf__objects *o, struct hf_str name,
                              const char **path)
{
    *path = name.len ? hf_scope_format(s, "%.*s/%.*s", HF_FMT(o->path), HF_FMT(name)).ptr
                     : hf_scope_format(s, "%.*s", HF_FMT(o->path)).ptr;
    return *path ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status sync_folder(struct hf_scope *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || (fsync(fd) && errno != EINVAL); /* EINVAL: nothing to sync there */
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return failed ? fail_errno(s, "sync", path) : HF_OK;
}

/* Make a folder below PATH, or PATH itself, durably. */
static enum hf_status make_folder(struct hf_scope *s, struct hf__objects *o, struct hf_str folder)
{
    const char *path, *above;

    TRY(path_of(s, o, folder, &path));
    if (mkdir(path, MODE_FOLDER) && errno != EEXIST)
        return fail_errno(s, "create", path);
    above = hf_scope_format(s, "%s/..", path).ptr;
    return above ? sync_folder(s, above) : hf__fail_nomem(s);
}

static enum hf_status dir_reach(struct hf_scope *s, struct hf__objects *o, bool make)
{
    struct stat info;
    const char *path;

    TRY(path_of(s, o, (struct hf_str){0}, &path));
    if (make && stat(path, &info) && errno == ENOENT)
        TRY(make_folder(s, o, (struct hf_str){0}));
    if (stat(path, &info))
        return fail_errno(s, "find", path);
    if (!S_ISDIR(info.st_mode))
        return hf__fail(s, HF_INVALID, "%s is not a directory", path);
    return HF_OK;
}

static enum hf_status write_all(struct hf_scope *s, int fd, struct hf_bytes bytes, const char *path)
{
    for (size_t at = 0; at < bytes.len;) {
        ssize_t put = write(fd, bytes.ptr + at, bytes.len - at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return fail_errno(s, "write", path);
        at += (size_t)put;
    }
    hf__kill_point("object_written");
    return fsync(fd) ? fail_errno(s, "sync", path) : HF_OK;
}

/* A file in new/ with these bytes, durably. */
static enum hf_status write_aside(struct hf_scope *s, struct hf__objects *o, struct hf_bytes bytes,
                                  const char **aside)
{
    enum hf_status status;
    uint64_t bits[2];
    struct hf_str name;
    int fd;

    hf__env_random(&o->env, bits, sizeof(bits));
    name = hf_scope_format(s, NEW_FOLDER "/%016llx%016llx", (unsigned long long)bits[0],
                           (unsigned long long)bits[1]);
    TRY(name.ptr ? path_of(s, o, name, aside) : hf__fail_nomem(s));
    fd = open(*aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    if (fd < 0 && errno == ENOENT) {
        TRY(make_folder(s, o, HF_STR(NEW_FOLDER)));
        fd = open(*aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    }
    if (fd < 0)
        return fail_errno(s, "create", *aside);
    status = write_all(s, fd, bytes, *aside);
    if (close(fd) && status == HF_OK)
        status = fail_errno(s, "write", *aside);
    if (status != HF_OK)
        unlink(*aside);
    return status;
}

/* Give the file its name. False: errno says why. */
static bool file_place(const char *aside, const char *path, bool once)
{
    if (!once)
        return rename(aside, path) == 0;
    return link(aside, path) == 0;
}

static enum hf_status dir_put(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                              struct hf_bytes bytes, bool once, bool *made)
{
    struct hf_str folder = name;
    const char *aside, *path, *parent;
    enum hf_status status = HF_OK;
    bool placed;

    folder = memchr(name.ptr, '/', name.len) ? str_cut(&folder, '/') : (struct hf_str){0};
    TRY(path_of(s, o, name, &path));
    TRY(path_of(s, o, folder, &parent));
    TRY(write_aside(s, o, bytes, &aside));
    placed = file_place(aside, path, once);
    if (!placed && errno == ENOENT && folder.len) {
        status = make_folder(s, o, folder);
        placed = status == HF_OK && file_place(aside, path, once);
    }
    *made = placed;
    if (status == HF_OK && !placed && !(once && errno == EEXIST))
        status = fail_errno(s, "create", path);
    if (once || !placed) {
        int error = errno;

        unlink(aside);
        errno = error;
    }
    TRY(status);
    hf__kill_point("object_placed");
    return sync_folder(s, parent);
}

static enum hf_status dir_get(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                              struct hf_bytes *bytes)
{
    const char *path;
    struct stat info;
    uint8_t *copy;
    size_t at = 0;
    int fd;

    TRY(path_of(s, o, name, &path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info)) {
        enum hf_status status = fail_errno(s, "open", path);

        if (fd >= 0)
            close(fd);
        return status;
    }
    copy = info.st_size <= OBJECT_MAX ? hf_scope_alloc(s, (size_t)info.st_size + 1) : NULL;
    while (copy && at < (size_t)info.st_size) {
        ssize_t got = read(fd, copy + at, (size_t)info.st_size - at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    close(fd);
    if (!copy)
        return info.st_size <= OBJECT_MAX
                   ? hf__fail_nomem(s)
                   : hf__fail(s, HF_CORRUPT, "%s is damaged: it is too large", path);
    *bytes = hf_bytes_of(copy, at);
    return HF_OK;
}

static enum hf_status dir_list(struct hf_scope *s, struct hf__objects *o, const char *prefix,
                               objects_fn *fn, void *user)
{
    struct hf_str begins = hf_str_from(prefix), folder = str_cut(&begins, '/'), rest;
    enum hf_status status = HF_OK;
    struct dirent *entry;
    const char *path;
    DIR *listing;

    TRY(path_of(s, o, folder, &path));
    listing = opendir(path);
    if (!listing && errno == ENOENT)
        return HF_OK; /* nothing was put there yet */
    if (!listing)
        return fail_errno(s, "list", path);
    while (status == HF_OK && (entry = readdir(listing))) {
        struct hf__mark mark = hf__scope_mark(s);
        struct hf_str name;
        struct stat info;

        if (!str_after(hf_str_from(entry->d_name), begins, &rest))
            continue;
        name = hf_scope_format(s, "%.*s/%s", HF_FMT(folder), entry->d_name);
        if (!name.ptr)
            status = hf__fail_nomem(s);
        else if (is_name(name) && fstatat(dirfd(listing), entry->d_name, &info, 0) == 0 &&
                 S_ISREG(info.st_mode))
            status = fn(s, name, (uint64_t)info.st_size, user);
        if (status == HF_OK)
            hf__scope_rewind(s, mark);
    }
    closedir(listing);
    return status;
}

static enum hf_status remove_leftover(struct hf_scope *s, struct hf_str name, uint64_t size,
                                      void *user)
{
    (void)size;
    return hf__objects_remove(s, user, name);
}

/* ---- S3 ------------------------------------------------------------------------------------- */

static enum hf_status s3_key(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                             struct hf_str *key)
{
    return hf__s3_key(s, &o->blobs.blobs, "", name, key);
}

static enum hf_status s3_get(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                             uint64_t size, struct hf_bytes *bytes)
{
    struct s3_call call = {.method = "GET",
                           .expect = size < OBJECT_MAX ? (size_t)size : OBJECT_MAX,
                           .answer_max = OBJECT_MAX};
    struct s3_answer answer;

    TRY(s3_key(s, o, name, &call.key));
    TRY(hf__s3_call(s, o->blobs.s3, &call, &answer));
    *bytes = answer.http.body.ptr ? answer.http.body : hf_bytes_of("", 0);
    return HF_OK;
}

/* Somebody has put it: was that an attempt of ours whose answer was lost? */
static enum hf_status is_ours(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                              struct hf_bytes bytes, bool *ours)
{
    struct hf_bytes there;

    hf__scope_error_clear(s);
    TRY(s3_get(s, o, name, bytes.len, &there));
    *ours = bytes_compare(there.ptr, there.len, bytes.ptr, bytes.len) == 0;
    return HF_OK;
}

static enum hf_status s3_put(struct hf_scope *s, struct hf__objects *o, struct hf_str name,
                             struct hf_bytes bytes, bool once, bool *made)
{
    struct s3_call call = {.method = "PUT",
                           .fields = {{HF_STR("Content-Type"), HF_STR("application/octet-stream")},
                                      {HF_STR("If-None-Match"), HF_STR("*")}},
                           .fields_len = once ? 2 : 1,
                           .body = bytes};
    struct s3_answer answer;
    enum hf_status status;
    uint64_t size;

    TRY(s3_key(s, o, name, &call.key));
    *made = true;
    status = hf__s3_call(s, o->blobs.s3, &call, &answer);
    if (once && status != HF_OK && answer.http.status == HTTP_PRECONDITION_FAILED)
        return is_ours(s, o, name, bytes, made);
    if (!once || status == HF_OK || answer.http.status != HTTP_NOT_IMPLEMENTED)
        return status;
    hf__scope_error_clear(s); /* (2) */
    TRY(hf__s3_head(s, o->blobs.s3, call.key, made, &size, NULL));
    *made = !*made;
    call.fields_len = 1;
    return *made ? hf__s3_call(s, o->blobs.s3, &call, &answer) : HF_OK;
}

struct listing {
    objects_fn *fn;
    void *user;
};

static enum hf_status list_name(struct hf_scope *s, struct hf_str name, uint64_t size, void *user)
{
    const struct listing *l = user;

    return is_name(name) ? l->fn(s, name, size, l->user) : HF_OK;
}

static enum hf_status s3_list(struct hf_scope *s, struct hf__objects *o, const char *prefix,
                              objects_fn *fn, void *user)
{
    struct listing l = {.fn = fn, .user = user};

    return hf__s3_names(s, &o->blobs.blobs, prefix, list_name, &l);
}

/* ---- both ----------------------------------------------------------------------------------- */

enum hf_status hf__objects_reach(struct hf_scope *s, struct hf__objects *objects, bool make)
{
    return objects->path.ptr ? dir_reach(s, objects, make)
                             : hf__s3_find_bucket(s, objects->blobs.s3);
}

enum hf_status hf__objects_put(struct hf_scope *s, struct hf__objects *objects, struct hf_str name,
                               struct hf_bytes bytes, bool once, bool *made)
{
    bool ignored;

    assert(is_name(name) && bytes.len <= OBJECT_MAX);
    if (!made)
        made = &ignored;
    return objects->path.ptr ? dir_put(s, objects, name, bytes, once, made)
                             : s3_put(s, objects, name, bytes, once, made);
}

enum hf_status hf__objects_get(struct hf_scope *s, struct hf__objects *objects, struct hf_str name,
                               uint64_t size, struct hf_bytes *bytes)
{
    assert(is_name(name));
    return objects->path.ptr ? dir_get(s, objects, name, bytes)
                             : s3_get(s, objects, name, size, bytes);
}

enum hf_status hf__objects_list(struct hf_scope *s, struct hf__objects *objects, const char *prefix,
                                objects_fn *fn, void *user)
{
    return objects->path.ptr ? dir_list(s, objects, prefix, fn, user)
                             : s3_list(s, objects, prefix, fn, user);
}

bool hf__objects_are_ordered(const struct hf__objects *objects)
{
    return !objects->path.ptr;
}

enum hf_status hf__objects_remove(struct hf_scope *s, struct hf__objects *objects,
                                  struct hf_str name)
{
    struct hf_str key;
    const char *path;

    assert(is_name(name));
    if (!objects->path.ptr) {
        TRY(s3_key(s, objects, name, &key));
        return hf__s3_remove(s, objects->blobs.s3, key);
    }
    TRY(path_of(s, objects, name, &path));
    return unlink(path) && errno != ENOENT ? fail_errno(s, "remove", path) : HF_OK;
}

enum hf_status hf__objects_clean(struct hf_scope *s, struct hf__objects *objects)
{
    return objects->path.ptr ? dir_list(s, objects, NEW_FOLDER "/", remove_leftover, objects)
                             : HF_OK;
}

struct hf_str hf__objects_url(const struct hf__objects *objects)
{
    return objects->url;
}

static enum hf_status open_inside(struct hf_scope *s, struct hf__objects *o, struct hf_str url,
                                  const struct hf_client_options *client)
{
    struct hf_str params = url;
    struct hf_str rest;

    o->memory = hf_scope_new(&o->env);
    if (!o->memory)
        return hf__fail_nomem(s);
    o->url = hf_scope_copy(o->memory, str_cut(&params, '?'));
    if (str_after(url, HF_STR("dir:"), &rest)) {
        if (rest.len == 0 || memchr(rest.ptr, '\0', rest.len))
            return hf__fail(s, HF_INVALID, "dir: must be followed by the path of a directory");
        o->url = hf_scope_copy(o->memory, url);
        o->path = hf_scope_copy(o->memory, rest);
        return o->url.ptr && o->path.ptr ? HF_OK : hf__fail_nomem(s);
    }
    if (!str_after(url, HF_STR("s3://"), &rest))
        return hf__fail(s, HF_INVALID,
                        "\"%.*s\" is no place for backups; use dir:PATH or s3://BUCKET/PREFIX",
                        HF_FMT(url));
    TRY(hf__s3_open(s, &o->env, rest, client, &o->blobs.s3));
    o->blobs.blobs.env = o->env;
    o->blobs.prefix = hf__s3_prefix(o->blobs.s3);
    return o->url.ptr ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf__objects_open(struct hf_scope *s, const struct hf_env *env, struct hf_str url,
                                const struct hf_client_options *client,
                                struct hf__objects **objects)
{
    struct hf_env whole = hf__env_fill(env);
    struct hf__objects *made = hf__env_zalloc(&whole, sizeof(*made));
    enum hf_status status;

    *objects = NULL;
    if (!made)
        return hf__fail_nomem(s);
    made->env = whole;
    status = open_inside(s, made, url, client);
    if (status != HF_OK) {
        hf__objects_close(made);
        return status;
    }
    *objects = made;
    return HF_OK;
}

void hf__objects_close(struct hf__objects *objects)
{
    struct hf_env env;

    if (!objects)
        return;
    env = objects->env;
    hf__s3_close(objects->blobs.s3);
    hf_scope_free(objects->memory);
    hf__env_free(&env, objects, sizeof(*objects));
}
