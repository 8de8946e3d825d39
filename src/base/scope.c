/*
 * base/scope.c: one thread's memory, deadline, cancellation and last error.
 *
 * Memory is a chain of chunks; allocation moves a mark forward. What always holds:
 *
 *  (1) A reset keeps the largest chunk and frees the rest, so that a round which fits into it
 *      allocates nothing.
 *  (2) Failing for lack of memory needs no memory: a failure whose message cannot be stored still
 *      has its status, and the text of that status as its message.
 *  (3) Other threads touch `wakes` alone, in one access: the thread that they wake may free the
 *      scope.
 */
#include "base/base.h"

#include <time.h>

#include "base/scope_private.h"
#include "base/wait.h"

enum {
    CHUNK_FIRST = 8 * 1024,
    CHUNK_MAX = 4 * 1024 * 1024,   /* chunks double up to this */
    CHUNK_KEEP = 64 * 1024 * 1024, /* a larger chunk is not kept over a reset */
    ALIGN = 16,
    SLEEP_SLICE_US = 20 * 1000,
    LONGEST_WAIT_US = 1000 * 1000,
    CANCELED = 1, /* the lowest bit of `wakes` */
    WAKE = 2,     /* what each wake adds to `wakes` */
    UUID_LEN = 36,
    PATIENCE_ITEM = 256,             /* bytes of work that an item counts as, at least */
    PATIENCE_BYTES = 16 * 1024,      /* bytes of work between two readings of the clock */
    PATIENCE_WORK = 8 * 1024 * 1024, /* bytes of work between two items, at most */
    FORMAT_NEAR = 512                /* texts below this are formatted once */
};

struct chunk {
    struct chunk *older;
    size_t cap;  /* bytes behind the header */
    size_t used; /* of those */
    size_t pad;
};

_Static_assert(sizeof(struct chunk) % ALIGN == 0, "chunks hand out aligned memory");

static uint8_t *chunk_bytes(struct chunk *chunk)
{
    return (uint8_t *)(chunk + 1);
}

static void chunk_free(struct hf_scope *s, struct chunk *chunk)
{
    hf__env_free(&s->env, chunk, sizeof(*chunk) + chunk->cap);
}

struct hf_scope *hf_scope_new(const struct hf_env *env)
{
    struct hf_env whole = hf__env_fill(env);
    struct hf_scope *s = hf__env_alloc(&whole, sizeof(*s));

    if (!s)
        return NULL;
    memset(s, 0, sizeof(*s));
    s->env = whole;
    atomic_init(&s->wakes, 0);
    return s;
}

static void drop_older(struct hf_scope *s, struct chunk *keep)
{
    struct chunk *chunk = s->newest;

    while (chunk) {
        struct chunk *older = chunk->older;

        if (chunk != keep)
            chunk_free(s, chunk);
        chunk = older;
    }
    s->newest = keep;
    if (keep) {
        keep->older = NULL;
        keep->used = 0;
    }
}

void hf_scope_free(struct hf_scope *s)
{
    struct hf_env env;

    if (!s)
        return;
    drop_older(s, NULL);
    env = s->env;
    hf__env_free(&env, s, sizeof(*s));
}

void hf_scope_reset(struct hf_scope *s)
{
    struct chunk *largest = NULL;

    for (struct chunk *chunk = s->newest; chunk; chunk = chunk->older)
        if (chunk->cap <= CHUNK_KEEP && (!largest || chunk->cap > largest->cap))
            largest = chunk;
    drop_older(s, largest);
    s->deadline_us = 0;
    atomic_fetch_and_explicit(&s->wakes, ~(unsigned)CANCELED, memory_order_relaxed);
    s->outer = NULL;
    s->counted = (struct hf_scope_capacity){0};
    s->counter = NULL;
    s->alloc_failed = false;
    s->kept_len = 0;
    s->pending = NULL;
    s->patience = NULL;
    s->tx = NULL;
    hf__scope_error_clear(s);
}

struct hf_tx *hf_scope_set_tx(struct hf_scope *s, struct hf_tx *tx)
{
    struct hf_tx *before = s->tx;

    s->tx = tx;
    return before;
}

struct hf_tx *hf_scope_tx(const struct hf_scope *s)
{
    return s->tx;
}

static size_t size_align(size_t size)
{
    return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static bool chunk_add(struct hf_scope *s, size_t size)
{
    size_t cap = s->newest ? s->newest->cap * 2 : CHUNK_FIRST - sizeof(struct chunk);
    struct chunk *chunk;

    if (cap > CHUNK_MAX)
        cap = CHUNK_MAX;
    if (cap < size)
        cap = size;
    cap = size_align(cap);
    assert(cap >= size && cap % ALIGN == 0);
    chunk = hf__env_alloc(&s->env, sizeof(*chunk) + cap);
    if (!chunk)
        return false;
    *chunk = (struct chunk){.older = s->newest, .cap = cap};
    s->newest = chunk;
    return true;
}

void *hf_scope_alloc(struct hf_scope *s, size_t size)
{
    void *ptr;

    if (size <= SIZE_MAX / 4)
        size = size_align(size ? size : 1);
    if (size > SIZE_MAX / 4 ||
        ((!s->newest || s->newest->cap - s->newest->used < size) && !chunk_add(s, size))) {
        s->alloc_failed = true;
        return NULL;
    }
    ptr = chunk_bytes(s->newest) + s->newest->used;
    s->newest->used += size;
    assert(s->newest->used <= s->newest->cap && (uintptr_t)ptr % ALIGN == 0);
    return ptr;
}

void *hf__scope_array(struct hf_scope *s, size_t count, size_t size)
{
    size_t bytes;
    void *ptr;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        s->alloc_failed = true;
        return NULL;
    }
    ptr = hf_scope_alloc(s, bytes);
    if (ptr)
        memset(ptr, 0, bytes);
    return ptr;
}

void *hf__scope_grow(struct hf_scope *s, void *ptr, size_t old_size, size_t new_size)
{
    struct chunk *chunk = s->newest;
    size_t old_room = size_align(old_size ? old_size : 1);
    void *moved;

    assert(new_size >= old_size && (ptr || old_size == 0));
    if (new_size > SIZE_MAX / 4) {
        s->alloc_failed = true;
        return NULL;
    }
    if (ptr && (uint8_t *)ptr + old_room == chunk_bytes(chunk) + chunk->used) {
        size_t more = size_align(new_size) - old_room;

        if (chunk->cap - chunk->used >= more) {
            chunk->used += more;
            return ptr;
        }
    }
    moved = hf_scope_alloc(s, new_size);
    if (moved && ptr)
        memcpy(moved, ptr, old_size);
    return moved;
}

bool hf__scope_alloc_failed(const struct hf_scope *s)
{
    return s->alloc_failed;
}

void hf__scope_alloc_clear(struct hf_scope *s)
{
    s->alloc_failed = false;
}

struct hf__mark hf__scope_mark(struct hf_scope *s)
{
    return (struct hf__mark){s->newest, s->newest ? s->newest->used : 0};
}

/* A chunk that was added since then is kept, empty, so that a loop does not ask for one each time;
 * but where the mark's own chunk is empty that one will do, or every round would keep one more. */
void hf__scope_rewind(struct hf_scope *s, struct hf__mark mark)
{
    struct chunk *marked = mark.chunk;
    struct chunk *keep = marked && mark.used == 0 ? NULL : s->newest;

    while (s->newest != marked) {
        struct chunk *chunk = s->newest;

        assert(chunk); /* else the mark is of another scope, or older than a reset */
        s->newest = chunk->older;
        if (chunk != keep)
            chunk_free(s, chunk);
    }
    assert(!marked || mark.used <= marked->cap);
    if (marked)
        marked->used = mark.used;
    if (keep && keep != marked) {
        keep->older = marked;
        keep->used = 0;
        s->newest = keep;
    }
}

struct hf_scope_mark hf_scope_mark(struct hf_scope *s)
{
    struct hf__mark mark = hf__scope_mark(s);

    return (struct hf_scope_mark){mark.chunk, mark.used};
}

void hf_scope_rewind(struct hf_scope *s, struct hf_scope_mark mark)
{
    hf__scope_rewind(s, (struct hf__mark){mark.chunk, mark.used});
}

enum hf_status hf_scope_built(struct hf_scope *s)
{
    bool failed = s->alloc_failed;

    s->alloc_failed = false;
    return failed ? hf__fail_nomem(s) : HF_OK;
}

struct hf_str hf_scope_copy(struct hf_scope *s, struct hf_str text)
{
    char *copy = hf_scope_alloc(s, text.len + 1);

    if (!copy)
        return hf_str_of(NULL, 0);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return hf_str_of(copy, text.len);
}

/*
 * Formats of strings alone, "%s" and "%.*s", are most of those that a call needs when all goes
 * well, and copying is a tenth of what vsnprintf() takes for them. -1: it is not one, or too long.
 */
static int join_strings(char *to, size_t room, const char *format, va_list args)
{
    size_t len = 0;

    while (*format) {
        const char *part = format;
        size_t part_len;

        if (*format != '%') {
            part_len = (size_t)(strchrnul(format, '%') - format);
            format += part_len;
        } else if (format[1] == 's') {
            part = va_arg(args, const char *);
            part_len = part ? strlen(part) : room;
            format += 2;
        } else if (strncmp(format, "%.*s", 4) == 0) {
            int most = va_arg(args, int);

            part = va_arg(args, const char *);
            part_len = part && most >= 0 ? strnlen(part, (size_t)most) : room;
            format += 4;
        } else {
            return -1;
        }
        if (part_len >= room - len)
            return -1;
        memcpy(to + len, part, part_len);
        len += part_len;
    }
    to[len] = '\0';
    return (int)len;
}

/* Most texts are short, and need not be formatted a first time to learn how long they are. */
struct hf_str hf__scope_format_args(struct hf_scope *s, const char *format, va_list args)
{
    char near[FORMAT_NEAR];
    va_list again;
    int len;
    char *text;

    va_copy(again, args);
    len = join_strings(near, sizeof(near), format, again);
    va_end(again);
    if (len < 0) {
        va_copy(again, args);
        len = vsnprintf(near, sizeof(near), format, again);
        va_end(again);
    }
    text = len < 0 ? NULL : hf_scope_alloc(s, (size_t)len + 1);
    if (!text)
        return hf_str_of(NULL, 0);
    if ((size_t)len < sizeof(near))
        memcpy(text, near, (size_t)len + 1);
    else
        vsnprintf(text, (size_t)len + 1, format, args);
    return hf_str_of(text, (size_t)len);
}

struct hf_str hf_scope_format(struct hf_scope *s, const char *format, ...)
{
    va_list args;
    struct hf_str text;

    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    return text;
}

struct hf_str hf__uuid(struct hf_scope *s, const struct hf_env *env)
{
    char *text = hf_scope_alloc(s, UUID_LEN + 1);
    char *to = text;
    uint8_t b[16];

    if (!text)
        return hf_str_of(NULL, 0);
    hf__env_random(env, b, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0F) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3F) | 0x80);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        to = hex_write(to, &b[i], 1);
    }
    assert(to == text + UUID_LEN);
    *to = '\0';
    return hf_str_of(text, UUID_LEN);
}

void hf_scope_timeout_ms(struct hf_scope *s, uint32_t ms)
{
    s->deadline_us = ms ? hf__env_elapsed_us(&s->env) + (int64_t)ms * 1000 : 0;
}

void hf_scope_cancel(struct hf_scope *s)
{
    atomic_uint *wakes = &s->wakes;

    atomic_fetch_or_explicit(wakes, CANCELED, memory_order_release);
    futex_wake(wakes);
}

/* With acquire, as the thread that sees the cancellation may free the scope. */
static bool is_canceled(const struct hf_scope *s)
{
    return atomic_load_explicit(&s->wakes, memory_order_acquire) & CANCELED;
}

enum hf_status hf__scope_alive(struct hf_scope *s)
{
    if (is_canceled(s) || (s->outer && is_canceled(s->outer)))
        return hf__fail(s, HF_CANCELED, "The call was canceled");
    if (s->deadline_us && hf__env_elapsed_us(&s->env) >= s->deadline_us)
        return hf__fail(s, HF_TIMEOUT, "The deadline of the call has passed");
    return HF_OK;
}

void hf__scope_follow(struct hf_scope *inner, const struct hf_scope *outer)
{
    assert(inner != outer);
    inner->outer = outer;
    inner->deadline_us = outer->deadline_us;
    inner->pending = outer->pending;
    inner->patience = outer->patience;
    inner->counter = outer->counter;
    inner->wording = outer->wording;
}

void hf_scope_count_capacity(struct hf_scope *s, bool on)
{
    s->counter = on ? &s->counted : NULL;
}

struct hf_scope_capacity hf_scope_capacity(const struct hf_scope *s)
{
    return s->counted;
}

struct hf_scope_capacity *hf__scope_counter(const struct hf_scope *s)
{
    return s->counter;
}

void hf__scope_set_counter(struct hf_scope *s, struct hf_scope_capacity *counter)
{
    s->counter = counter;
}

int64_t hf__scope_left_ms(const struct hf_scope *s, int64_t cap)
{
    int64_t left;

    assert(cap >= 0);
    if (!s->deadline_us)
        return cap;
    left = (s->deadline_us - hf__env_elapsed_us(&s->env) + 999) / 1000;
    return left < 0 ? 0 : left < cap ? left : cap;
}

/* ---- waiting -------------------------------------------------------------------------------- */

uint32_t hf__scope_wakes(const struct hf_scope *s)
{
    return atomic_load_explicit(&s->wakes, memory_order_acquire);
}

void hf__scope_wake(struct hf_scope *s)
{
    atomic_uint *wakes = &s->wakes;

    atomic_fetch_add_explicit(wakes, WAKE, memory_order_release);
    futex_wake(wakes);
}

/* The kernel's clock stands still during suspend, so a wait with an end is cut into short ones. An
 * outer scope that is canceled wakes its own waiters only, so those of inner scopes look often. */
static void wait_until(struct hf_scope *s, uint32_t wakes, int64_t until_us)
{
    int64_t longest_us = s->outer ? SLEEP_SLICE_US : LONGEST_WAIT_US, left_us;

    if (s->deadline_us && s->deadline_us < until_us)
        until_us = s->deadline_us;
    if (until_us == INT64_MAX && !s->outer) {
        futex_wait(&s->wakes, wakes, INT64_MAX);
        return;
    }
    left_us = until_us - hf__env_elapsed_us(&s->env);
    if (left_us > 0)
        futex_wait(&s->wakes, wakes, left_us < longest_us ? left_us : longest_us);
}

enum hf_status hf__scope_wait(struct hf_scope *s, uint32_t wakes, int64_t until_us)
{
    TRY(hf__scope_alive(s));
    wait_until(s, wakes, until_us);
    return hf__scope_alive(s);
}

/* An env that has a clock of its own sleeps by it, in slices, as nothing else moves that clock. */
enum hf_status hf_scope_sleep_ms(struct hf_scope *s, uint32_t ms)
{
    int64_t end_us = hf__env_elapsed_us(&s->env) + (int64_t)ms * 1000;
    bool own_sleep = hf__env_has_own_sleep(&s->env);

    for (;;) {
        uint32_t wakes = hf__scope_wakes(s);
        int64_t left_us = end_us - hf__env_elapsed_us(&s->env);

        TRY(hf__scope_alive(s));
        if (left_us <= 0)
            return HF_OK;
        if (s->deadline_us && end_us > s->deadline_us)
            return hf__fail(s, HF_TIMEOUT, "the deadline comes before the end of a wait of %u ms",
                            ms);
        if (own_sleep)
            s->env.sleep(left_us < SLEEP_SLICE_US ? left_us : SLEEP_SLICE_US, s->env.user);
        else
            wait_until(s, wakes, end_us);
    }
}

uint32_t hf_scope_left_ms(const struct hf_scope *s, uint32_t cap)
{
    return (uint32_t)hf__scope_left_ms(s, cap);
}

const struct hf_env *hf_scope_env(const struct hf_scope *s)
{
    return &s->env;
}

void hf__scope_set_pending_sync(struct hf_scope *s, struct hf__pending_sync *pending)
{
    s->pending = pending;
}

void hf_scope_sync_later(struct hf_scope *s, bool on)
{
    if (!on) {
        s->pending = NULL;
        return;
    }
    s->later = (struct hf__pending_sync){0};
    s->pending = &s->later;
}

uint64_t hf__scope_pending_ticket(const struct hf_scope *s)
{
    return s->pending ? s->pending->ticket : 0;
}

bool hf__scope_defer_sync(struct hf_scope *s, uint64_t ticket)
{
    if (s->pending && ticket > s->pending->ticket)
        s->pending->ticket = ticket;
    return s->pending != NULL;
}

bool hf__scope_defer_delay(struct hf_scope *s, uint32_t ms)
{
    if (s->pending)
        s->pending->delay_ms += ms;
    return s->pending != NULL;
}

bool hf__scope_reads_durable(const struct hf_scope *s)
{
    return s->reads_durable;
}

void hf__scope_set_reads_durable(struct hf_scope *s, bool durable)
{
    s->reads_durable = durable;
}

void hf__scope_set_patience(struct hf_scope *s, struct hf__patience *patience)
{
    s->patience = patience;
}

/* To ask for the time costs as much as to look at a small item, so it is not asked for each. */
static bool is_late(struct hf__patience *p, size_t bytes)
{
    struct timespec now;

    p->unseen += bytes + PATIENCE_ITEM;
    if (p->unseen < PATIENCE_BYTES)
        return false;
    p->unseen = 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec > p->until_ns;
}

bool hf__scope_has_patience(const struct hf_scope *s)
{
    return s->patience != NULL;
}

bool hf__scope_may_wait(const struct hf_scope *s)
{
    return !s->patience || !s->patience->no_waits;
}

enum hf_status hf__scope_lose_patience(struct hf_scope *s)
{
    assert(s->patience);
    s->patience->lost = true;
    return hf__fail(s, HF_TIMEOUT, "The call takes longer than its caller waits");
}

enum hf_status hf__scope_patient(struct hf_scope *s, size_t bytes)
{
    struct hf__patience *p = s->patience;

    if (!p)
        return HF_OK;
    if (bytes > p->bytes || is_late(p, bytes))
        return hf__scope_lose_patience(s);
    p->bytes -= bytes;
    p->work = 0;
    return HF_OK;
}

enum hf_status hf__scope_patient_work(struct hf_scope *s, size_t bytes)
{
    struct hf__patience *p = s->patience;

    if (!p)
        return HF_OK;
    assert(p->work <= PATIENCE_WORK);
    if (bytes > PATIENCE_WORK - p->work)
        return hf__scope_lose_patience(s);
    p->work += bytes;
    return HF_OK;
}

size_t hf__scope_bytes(const struct hf_scope *s)
{
    size_t bytes = 0;

    for (const struct chunk *chunk = s->newest; chunk; chunk = chunk->older)
        bytes += sizeof(*chunk) + chunk->cap;
    return bytes;
}

enum hf__wording hf__scope_wording(const struct hf_scope *s)
{
    return s->wording;
}

void hf__scope_set_wording(struct hf_scope *s, enum hf__wording wording)
{
    s->wording = wording;
}

/* ---- texts that are kept -------------------------------------------------------------------- */

int hf__scope_keep_text(struct hf_scope *s, struct hf_str text)
{
    if (s->kept_len == KEPT_TEXTS_MAX)
        return -KEPT_TEXTS_MAX;
    assert(s->kept_len >= 0 && s->kept_len < KEPT_TEXTS_MAX);
    s->kept[s->kept_len++] = text;
    return -s->kept_len;
}

struct hf_str hf__scope_kept_text(const struct hf_scope *s, int number)
{
    /* A C program can put any number into an enum, so this one may not be ours. */
    return number < 0 && number >= -s->kept_len ? s->kept[-number - 1] : HF_STR("?");
}
