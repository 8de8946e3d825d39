/*
 * store/power_test.c: losses of power, without a switch. All that a store hands to the system is
 * recorded: writes, syncs, new names, lost names. Then we build what the disk may hold if the power
 * goes at some moment: everything that was synced before it, and of the rest any part. Each such
 * state is opened.
 *
 * A disk writes blocks in any order. So each block of a file that was not synced holds what it held
 * at a moment of its own, between the last sync and the end; of the names in a directory a part, or
 * those up to a moment, have changed. A new directory is there at once, because a store is not one
 * before it is. RocksDB's own files are spared: they change in order, up to a moment of each.
 *
 * What must hold for each state:
 *
 *  (1) It opens: what only a loss of power did is no damage.
 *  (2) It holds changes 1 to n, each of them whole, and none behind n.
 *  (3) n covers every change that was synced, and all that were there at a close.
 *
 * A run goes on from a state of the run before it, with other values, in another mode: what was
 * lost must not come back later. HF_POWER_STATES says how many states there shall be.
 */
#include "power.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image.h"
#include "store/journal.h"
#include "store/journal_form.h"

/* ---- the record ----------------------------------------------------------------------------- */

enum event_kind { CREATED, RENAMED, REMOVED, WROTE, SYNCED, SYNCED_NAMES };

enum { PATH_LEN = 96, BLOCK = 512 };

struct event {
    enum event_kind kind;
    unsigned file;       /* which: a number for each that ever was */
    char name[PATH_LEN]; /* below the root; the directory for SYNCED_NAMES */
    char from[PATH_LEN]; /* of RENAMED */
    uint64_t at;
    size_t len;
    uint8_t *bytes;
    size_t began; /* of SYNCED: what was recorded before this is covered */
};

struct known {
    uint64_t ino;
    unsigned file;
};

static struct record {
    pthread_mutex_t lock;
    atomic_bool on;
    atomic_bool fast; /* no syncs */
    char root[PATH_LEN];
    struct event *events;
    size_t len, cap;
    struct known known[4096]; /* the newest file of each inode is the last */
    size_t known_len;
    unsigned files;
} rec = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The name below the root, or NULL: none of ours. */
static const char *below(const char *path)
{
    size_t len = strlen(rec.root);

    if (!atomic_load(&rec.on) || strncmp(path, rec.root, len) != 0)
        return NULL;
    return path[len] == '/' ? path + len + 1 : path[len] ? NULL : path + len;
}

static bool path_of(int fd, char path[256])
{
    char link[32];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, 255);
    path[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

/* With the lock held. */
static struct event *add(enum event_kind kind, const char *name)
{
    struct event *event;

    if (rec.len == rec.cap) {
        rec.cap = rec.cap ? 2 * rec.cap : 4096;
        rec.events = realloc(rec.events, rec.cap * sizeof(*rec.events));
        if (!rec.events)
            abort();
    }
    event = &rec.events[rec.len++];
    *event = (struct event){.kind = kind};
    snprintf(event->name, sizeof(event->name), "%s", name);
    return event;
}

static bool find(int fd, unsigned *file)
{
    struct stat info;

    if (fstat(fd, &info))
        return false;
    for (size_t i = rec.known_len; i-- > 0;) {
        if (rec.known[i].ino != info.st_ino)
            continue;
        *file = rec.known[i].file;
        return true;
    }
    return false;
}

static void created(int fd, const char *name, bool again)
{
    struct event *event;
    struct stat info;
    unsigned file;

    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || (!again && find(fd, &file)))
        return;
    if (rec.known_len == ARRAY_LEN(rec.known))
        abort();
    rec.known[rec.known_len++] = (struct known){info.st_ino, rec.files};
    event = add(CREATED, name);
    event->file = rec.files++;
}

static void wrote(unsigned file, const void *bytes, size_t len, uint64_t at)
{
    struct event *event = add(WROTE, "");

    event->file = file;
    event->at = at;
    event->len = len;
    event->bytes = malloc(len + 1);
    if (!event->bytes)
        abort();
    memcpy(event->bytes, bytes, len);
}

void power_wrote(int fd, const void *bytes, size_t len, int64_t at)
{
    char path[256];
    unsigned file;

    if (!atomic_load(&rec.on) || !path_of(fd, path) || !below(path))
        return;
    if (at < 0)
        at = lseek(fd, 0, SEEK_CUR) - (int64_t)len;
    pthread_mutex_lock(&rec.lock);
    if (find(fd, &file))
        wrote(file, bytes, len, (uint64_t)at);
    pthread_mutex_unlock(&rec.lock);
}

static pthread_rwlock_t writes = PTHREAD_RWLOCK_INITIALIZER;

void power_write_begins(void)
{
    pthread_rwlock_rdlock(&writes);
}

void power_write_ends(void)
{
    pthread_rwlock_unlock(&writes);
}

size_t power_sync_begins(void)
{
    size_t began;

    pthread_rwlock_wrlock(&writes);
    pthread_mutex_lock(&rec.lock);
    began = rec.len;
    pthread_mutex_unlock(&rec.lock);
    pthread_rwlock_unlock(&writes);
    return began;
}

void power_synced(int fd, size_t began)
{
    char path[256];
    struct stat info;
    struct event *event;
    unsigned file = 0;

    if (!atomic_load(&rec.on) || !path_of(fd, path) || !below(path) || fstat(fd, &info))
        return;
    pthread_mutex_lock(&rec.lock);
    if (S_ISDIR(info.st_mode) || find(fd, &file)) {
        event = add(S_ISDIR(info.st_mode) ? SYNCED_NAMES : SYNCED, below(path));
        event->file = file;
        event->began = began;
    }
    pthread_mutex_unlock(&rec.lock);
}

bool power_skips_syncs(void)
{
    return atomic_load(&rec.fast);
}

void power_skip_syncs(bool skip)
{
    atomic_store(&rec.fast, skip);
}

/* ---- the system's calls --------------------------------------------------------------------- */

static void opened(int fd, int dir, const char *name, int flags, bool was_there)
{
    char path[256];

    if (fd < 0 || !(flags & O_CREAT) || !path_of(fd, path) || !below(path))
        return;
    (void)dir;
    (void)name;
    pthread_mutex_lock(&rec.lock);
    created(fd, below(path), !was_there || (flags & O_TRUNC));
    pthread_mutex_unlock(&rec.lock);
}

static int open_any(int dir, const char *name, int flags, va_list more)
{
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    struct stat info;
    bool was_there = atomic_load(&rec.on) && fstatat(dir, name, &info, 0) == 0;
    int fd = (int)syscall(SYS_openat, dir, name, flags, mode);

    if (atomic_load(&rec.on)) {
        int error = errno;

        opened(fd, dir, name, flags, was_there);
        errno = error;
    }
    return fd;
}

#define OPENS(call_, parameters_, dir_)                                                            \
    __attribute__((visibility("default"))) int call_ parameters_                                   \
    {                                                                                              \
        va_list more;                                                                              \
        int fd;                                                                                    \
                                                                                                   \
        va_start(more, flags);                                                                     \
        fd = open_any(dir_, name, flags, more);                                                    \
        va_end(more);                                                                              \
        return fd;                                                                                 \
    }

OPENS(open, (const char *name, int flags, ...), AT_FDCWD)
OPENS(open64, (const char *name, int flags, ...), AT_FDCWD)
OPENS(openat, (int dir, const char *name, int flags, ...), dir)
OPENS(openat64, (int dir, const char *name, int flags, ...), dir)

/* The path of a name, which need not be there. */
static const char *whole(int dir, const char *name, char path[512])
{
    char above[256] = "";

    if (*name != '/' && dir != AT_FDCWD && !path_of(dir, above))
        return NULL;
    snprintf(path, 512, "%s%s%s", above, *above ? "/" : "", name);
    return below(path);
}

static int rename_any(int from_dir, const char *from, int to_dir, const char *to)
{
    char from_path[512], to_path[512];
    const char *a = whole(from_dir, from, from_path), *b = whole(to_dir, to, to_path);
    int fd = a && b ? (int)syscall(SYS_openat, from_dir, from, O_RDONLY | O_CLOEXEC, 0) : -1;
    int done = (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
    int error = errno;
    unsigned file;

    if (fd >= 0) {
        pthread_mutex_lock(&rec.lock);
        if (done == 0 && find(fd, &file)) {
            struct event *event = add(RENAMED, b);

            event->file = file;
            snprintf(event->from, sizeof(event->from), "%s", a);
        }
        pthread_mutex_unlock(&rec.lock);
        close(fd);
    }
    errno = error;
    return done;
}

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    return rename_any(AT_FDCWD, from, AT_FDCWD, to);
}

__attribute__((visibility("default"))) int renameat(int from_dir, const char *from, int to_dir,
                                                    const char *to)
{
    return rename_any(from_dir, from, to_dir, to);
}

__attribute__((visibility("default"))) int unlinkat(int dir, const char *name, int flags)
{
    char path[512];
    const char *mine = whole(dir, name, path);
    int done = (int)syscall(SYS_unlinkat, dir, name, flags);

    if (done == 0 && mine) {
        pthread_mutex_lock(&rec.lock);
        add(REMOVED, mine);
        pthread_mutex_unlock(&rec.lock);
    }
    return done;
}

__attribute__((visibility("default"))) int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    size_t began = power_sync_begins();
    int done = power_skips_syncs() ? 0 : (int)syscall(SYS_fsync, fd);

    if (done == 0)
        power_synced(fd, began);
    return done;
}

/* ---- recording ------------------------------------------------------------------------------ */

static const char *const folders[] = {"", "db", "journal"};

static void forget(void)
{
    atomic_store(&rec.on, false);
    for (size_t i = 0; i < rec.len; i++)
        free(rec.events[i].bytes);
    free(rec.events);
    rec.events = NULL;
    rec.len = rec.cap = rec.known_len = 0;
    rec.files = 0;
}

static void note_file(const char *path, const char *name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    uint8_t *bytes;

    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    bytes = malloc((size_t)info.st_size + 1);
    CHECK(read(fd, bytes, (size_t)info.st_size) == info.st_size);
    created(fd, name, true);
    wrote(rec.files - 1, bytes, strcmp(name, "ballast") ? (size_t)info.st_size : 0, 0);
    add(SYNCED, "")->file = rec.files - 1;
    rec.events[rec.len - 1].began = rec.len - 1;
    free(bytes);
    close(fd);
}

/* Record what happens below `root` from now on; what is there is durable. */
static void begin(const char *root)
{
    forget();
    snprintf(rec.root, sizeof(rec.root), "%s", root);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char dir[256], path[512], name[300];
        DIR *listing;
        struct dirent *entry;

        snprintf(dir, sizeof(dir), "%s%s%s", root, *folders[i] ? "/" : "", folders[i]);
        listing = opendir(dir);
        while (listing && (entry = readdir(listing))) {
            if (entry->d_type != DT_REG)
                continue;
            snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
            snprintf(name, sizeof(name), "%s%s%s", folders[i], *folders[i] ? "/" : "",
                     entry->d_name);
            note_file(path, name);
        }
        if (listing)
            closedir(listing);
        add(SYNCED_NAMES, folders[i])->began = rec.len - 1;
    }
    atomic_store(&rec.on, true);
}

/* ---- states --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x, uint64_t y)
{
    x = (x ^ (y + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 29) * 0x94d049bb133111ebu;
    return x ^ x >> 32;
}

struct state {
    uint64_t seed;
    size_t end;                       /* events that happened */
    size_t *covered;                  /* per file: its writes before this are durable */
    size_t names[ARRAY_LEN(folders)]; /* and so for the names in a folder */
};

static size_t folder_of(const char *name)
{
    const char *slash = strchr(name, '/');

    for (size_t i = 1; slash && i < ARRAY_LEN(folders); i++)
        if (strncmp(name, folders[i], (size_t)(slash - name)) == 0)
            return i;
    return 0;
}

/* Up to which event something that was not synced happened all the same: a third of all happened
 * wholly, a third not at all. */
static size_t moment(const struct state *state, uint64_t what)
{
    uint64_t dice = mix(state->seed, what);

    switch (dice % 3) {
    case 0:
        return 0;
    case 1:
        return state->end;
    default:
        return dice / 3 % (state->end + 1);
    }
}

static void survey(struct state *state)
{
    state->covered = calloc(rec.files + 1, sizeof(size_t));
    CHECK(state->covered);
    memset(state->names, 0, sizeof(state->names));
    for (size_t i = 0; i < state->end; i++) {
        const struct event *e = &rec.events[i];
        size_t *covered = NULL;

        if (e->kind == SYNCED)
            covered = &state->covered[e->file];
        for (size_t k = 0; e->kind == SYNCED_NAMES && k < ARRAY_LEN(folders); k++)
            if (strcmp(e->name, folders[k]) == 0)
                covered = &state->names[k];
        if (covered && *covered < e->began)
            *covered = e->began;
    }
}

struct named {
    char name[PATH_LEN];
    unsigned file;
};

static void unname(struct named *named, size_t *len, const char *name)
{
    for (size_t i = 0; i < *len; i++)
        if (strcmp(named[i].name, name) == 0)
            named[i--] = named[--*len];
}

/* The names that are there. RocksDB wants them to change in order, as file systems do it. */
static size_t list_names(const struct state *state, struct named *named)
{
    bool in_order = mix(state->seed, 1) & 1;
    size_t len = 0;

    for (size_t i = 0; i < state->end; i++) {
        const struct event *e = &rec.events[i];
        size_t folder = folder_of(e->name);

        if (e->kind > REMOVED)
            continue;
        if (i >= state->names[folder] &&
            i >= moment(state, in_order || folder == 1 ? 1000000 + folder : 2000000 + i))
            continue;
        unname(named, &len, e->name);
        if (e->kind == RENAMED)
            unname(named, &len, e->from);
        if (e->kind != REMOVED) {
            CHECK(len < 4096);
            snprintf(named[len].name, PATH_LEN, "%s", e->name);
            named[len++].file = e->file;
        }
    }
    return len;
}

/* RocksDB appends, and wants what it appended to come to the disk in order. */
static uint8_t *content(const struct state *state, const struct named *named, size_t *len)
{
    size_t block = mix(state->seed, 2) & 1 ? BLOCK : 8 * BLOCK;
    unsigned file = named->file;
    uint8_t *bytes = NULL;

    if (folder_of(named->name) == 1)
        block = SIZE_MAX;

    *len = 0;
    for (size_t i = 0; i < state->end; i++) {
        const struct event *e = &rec.events[i];

        if (e->kind != WROTE || e->file != file)
            continue;
        for (size_t done = 0, part; done < e->len; done += part) {
            uint64_t at = e->at + done;

            part = block - at % block;
            part = part < e->len - done ? part : e->len - done;
            if (i >= state->covered[file] && i >= moment(state, mix(file + 3000000, at / block)))
                continue;
            if (at + part > *len) {
                bytes = realloc(bytes, at + part);
                CHECK(bytes);
                memset(bytes + *len, 0, at + part - *len);
                *len = at + part;
            }
            memcpy(bytes + at, e->bytes + done, part);
        }
    }
    return bytes;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    return where->level ? remove(path) : 0;
}

/* A store that is being made: the first name that it gets is lost, and so is all that came later.
 */
static bool is_none(const struct named *named, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strncmp(named[i].name, "HOLDFAST", 8) == 0)
            return false;
    return true;
}

/* Build the state in a directory; what is in there goes. */
static void build(struct state *state, const char *to)
{
    static struct named named[4096];
    char path[256];
    size_t count;

    CHECK(nftw(to, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
    survey(state);
    count = list_names(state, named);
    if (is_none(named, count))
        count = 0;
    for (size_t i = 1; count && i < ARRAY_LEN(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", to, folders[i]);
        CHECK(mkdir(path, 0700) == 0);
    }
    for (size_t i = 0; i < count; i++) {
        size_t len;
        uint8_t *bytes = content(state, &named[i], &len);
        FILE *out;

        CHECK(snprintf(path, sizeof(path), "%s/%s", to, named[i].name) < (int)sizeof(path));
        out = fopen(path, "wb");
        CHECK(out && fwrite(bytes ? bytes : (const uint8_t *)"", 1, len, out) == len);
        fclose(out);
        free(bytes);
    }
    free(state->covered);
}

/* ---- what a store holds --------------------------------------------------------------------- */

enum { HISTORY = 20000, SLOTS = 23, MARKS = 4096, GIANT = 150000 };

struct story {
    struct test *t;
    uint32_t len;          /* changes so far */
    uint32_t run[HISTORY]; /* which run made a change */
    uint32_t now;          /* this run */
    size_t marks_len;
    struct {
        size_t event;
        uint32_t change;
    } marks[MARKS]; /* from then on, it must survive */
};

static struct hf_bytes slot_key(uint32_t n, uint8_t key[2])
{
    key[0] = 'k';
    key[1] = (uint8_t)(n % SLOTS);
    return hf_bytes_of(key, 2);
}

static void must_survive(struct story *story)
{
    CHECK(story->marks_len < MARKS);
    story->marks[story->marks_len].event = power_sync_begins();
    story->marks[story->marks_len++].change = story->len;
}

static void change(struct hf_scope *s, struct hf__store *store, struct story *story, bool sync)
{
    static uint8_t value[GIANT];
    struct store_batch batch = {.ops = {.scope = s}};
    struct test *t = story->t;
    uint32_t n = ++story->len;
    uint64_t ticket;
    uint8_t key[2];
    size_t len = test_random_below(t, 300) ? 8 + test_random_below(t, 1500) : GIANT;

    CHECK(n < HISTORY);
    story->run[n] = story->now;
    memset(value, (int)n, len);
    store_u32be(value, n);
    store_u32be(value + 4, story->now);
    hf__batch_put(&batch, hf_bytes_of("a", 1), hf_bytes_of(value, 8));
    hf__batch_put(&batch, slot_key(n, key), hf_bytes_of(value, len));
    hf__batch_put(&batch, hf_bytes_of("z", 1), hf_bytes_of(value, 8));
    CHECK_OK(hf__store_write(s, store, &batch, &ticket));
    if (sync)
        CHECK_OK(hf__store_sync(s, store, ticket));
    hf_scope_reset(s);
}

/* Is change n of its run under the key? n 0: is nothing? */
static bool holds(struct hf_scope *s, struct hf__store *store, const struct story *story,
                  struct hf_bytes key, uint32_t n)
{
    struct hf_bytes value;

    CHECK_OK(hf__store_get(s, store, NULL, key, &value));
    if (n == 0)
        return !value.ptr;
    return value.ptr && value.len >= 8 && load_u32be(value.ptr) == n &&
           load_u32be(value.ptr + 4) == story->run[n];
}

/* The newest change; 1 to n are there and no others. */
static uint32_t look(struct hf_scope *s, struct hf__store *store, const struct story *story)
{
    struct hf_bytes value;
    uint32_t n;

    CHECK_OK(hf__store_get(s, store, NULL, hf_bytes_of("a", 1), &value));
    n = value.ptr ? load_u32be(value.ptr) : 0;
    CHECK(n <= story->len);
    CHECK(holds(s, store, story, hf_bytes_of("a", 1), n));
    CHECK(holds(s, store, story, hf_bytes_of("z", 1), n));
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t newest = n;
        uint8_t key[2];

        while (newest && newest % SLOTS != i)
            newest--;
        CHECK(holds(s, store, story, slot_key(i, key), newest));
    }
    return n;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static struct hf__store *open_one(struct test *t, struct hf_scope *s, const char *path,
                                  enum store_sync mode)
{
    const struct store_options options = {.sync = mode,
                                          .window_ms = 1,
                                          .memtable_bytes = 256 * 1024,
                                          .reserve_bytes = 1};
    struct hf__store *store;

    if (hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store) != HF_OK)
        fail_msg("%s", hf_scope_error_text(s));
    return store;
}

static enum store_sync random_mode(struct test *t)
{
    return (enum store_sync)test_random_below(t, 3);
}

/* Write, sync now and then, close and open now and then. */
static void run(struct test *t, struct hf_scope *s, struct story *story, const char *path)
{
    enum store_sync mode = random_mode(t);
    struct hf__store *store = open_one(t, s, path, mode);
    uint64_t changes = 20 + test_random_below(t, 400);

    CHECK_INT(story->len, look(s, store, story));
    for (uint64_t i = 0; i < changes; i++) {
        bool sync = test_random_below(t, 8) == 0;

        change(s, store, story, sync);
        if (sync && mode == STORE_SYNC_FULL)
            must_survive(story);
        if (test_random_below(t, 150))
            continue;
        hf__store_close(store);
        must_survive(story);
        mode = random_mode(t);
        store = open_one(t, s, path, mode);
    }
    if (test_random_below(t, 2))
        usleep(2000); /* for those who work in the background */
    atomic_store(&rec.on, false);
    hf__store_close(store);
}

static uint32_t survivors(const struct story *story, size_t end)
{
    uint32_t change = 0;

    for (size_t i = 0; i < story->marks_len; i++)
        if (story->marks[i].event <= end)
            change = story->marks[i].change;
    return change;
}

/* Some states of this run. The next one goes on from the last of them. */
static uint32_t states(struct test *t, struct hf_scope *s, struct story *story, const char *image,
                       size_t from, int count, struct state *last)
{
    uint32_t n = 0;

    for (int i = 0; i < count; i++) {
        struct hf__store *store;

        *last = (struct state){.seed = test_random(t),
                               .end = from + test_random_below(t, rec.len - from + 1)};
        build(last, image);
        if (access(in(s, image, "durable"), F_OK) == 0)
            start_again(s, image);
        store = open_one(t, s, image, random_mode(t));
        n = look(s, store, story);
        if (n < survivors(story, last->end))
            fail_msg("run %u, event %zu of %zu: %u of %u changes", story->now, last->end, rec.len,
                     n, survivors(story, last->end));
        hf__store_close(store);
    }
    return n;
}

/* ---- the journal alone ---------------------------------------------------------------------- */

enum { RECORD = 200, SEGMENT = 8192 };

struct replayed {
    uint8_t kind; /* what they all must be */
    uint32_t count;
};

static enum hf_status count_record(struct hf_scope *s, void *user, struct hf_bytes record)
{
    struct replayed *replayed = user;

    (void)s;
    CHECK(record.len == RECORD && record.ptr[0] == replayed->kind);
    replayed->count++;
    return HF_OK;
}

static struct journal *journal_at(struct test *t, struct hf_scope *s, const char *path,
                                  const struct journal_marks *marks, struct replayed *replayed)
{
    const struct journal_options options = {.env = test_env(t),
                                            .path = path,
                                            .segment_bytes = SEGMENT};
    struct journal *journal;

    CHECK_OK(hf__journal_open(s, &options, marks, count_record, replayed, &journal));
    return journal;
}

static void append_some(struct journal *journal, uint8_t kind, int count)
{
    uint8_t record[RECORD];
    uint64_t upto;

    memset(record, kind, sizeof(record));
    for (int i = 0; i < count; i++) {
        uint8_t *to;

        hf__journal_begin(journal);
        to = hf__journal_reserve(journal, sizeof(record));
        CHECK(to);
        memcpy(to, record, sizeof(record));
        CHECK(hf__journal_append(journal, sizeof(record)));
        hf__journal_end(journal);
    }
    CHECK(hf__journal_flush(journal, 0, false, &upto));
}

/*
 * Without syncs a later file may survive when an earlier one does not. Its changes are lost with
 * those before them, and must not come back when others have taken their numbers.
 */
TEST(store_power, files_behind_a_gap_stay_gone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t);
    struct journal_marks marks = {.fresh = true};
    struct replayed replayed = {.kind = 'o'};
    struct journal *journal = journal_at(t, s, path, &marks, &replayed);
    uint8_t zeros[RECORD] = {0};
    char first[256];
    int fd;

    append_some(journal, 'o', 40);
    hf__journal_close(journal);
    snprintf(first, sizeof(first), "%s/%016x", path, 1);
    fd = open(first, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(pwrite(fd, zeros, sizeof(zeros),
                 JOURNAL_START + 9 * (off_t)journal_record_size(RECORD)) == RECORD);
    close(fd);

    marks = (struct journal_marks){0};
    journal = journal_at(t, s, path, &marks, &replayed);
    CHECK_INT(9, replayed.count);
    CHECK_INT(9, hf__journal_last(journal));
    append_some(journal, 'n', 16);
    hf__journal_close(journal);

    /* The second file begins with change 18: now its turn seems to have come. */
    marks = (struct journal_marks){.durable = 17, .based = 17};
    replayed = (struct replayed){.kind = 'n'};
    journal = journal_at(t, s, path, &marks, &replayed);
    CHECK_INT(8, replayed.count);
    CHECK_INT(25, hf__journal_last(journal));
    hf__journal_close(journal);
    hf_scope_free(s);
}

/* ---- all of it ------------------------------------------------------------------------------ */

TEST(store_power, any_part_of_what_was_not_synced)
{
    enum { EACH = 8, RUNS = 5 };
    const char *wanted = getenv("HF_POWER_STATES");
    int left = wanted ? (int)strtol(wanted, NULL, 10) : (int)test_times(480);
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_quick_directory(t), *image = test_directory(t);
    struct story *story = malloc(sizeof(*story));

    CHECK(story);
    power_skip_syncs(true);
    for (; left > 0; left -= EACH * RUNS) {
        *story = (struct story){.t = t};
        CHECK(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
        for (story->now = 1; story->now <= RUNS; story->now++) {
            struct state last;
            size_t from;

            begin(path);
            from = rec.len;
            story->marks_len = 0;
            must_survive(story);
            run(t, s, story, path);
            story->len = states(t, s, story, image, from, EACH, &last);
            build(&last, path);
            if (access(in(s, path, "durable"), F_OK) == 0)
                start_again(s, path);
        }
    }
    power_skip_syncs(false);
    forget();
    free(story);
    hf_scope_free(s);
}
