/*
 * base/base.h: what the whole library uses without thinking: TRY, failing with a sentence, memory
 * from the env, loads and stores of numbers, texts with a length.
 */
#ifndef HF_BASE_BASE_H
#define HF_BASE_BASE_H

#include <holdfast/base.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#include <assert.h>
#include <stdarg.h>

#include "base/banned.h"

/* Return a failed status to the caller. No other macro changes the flow. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        enum hf_status try_status_ = (expr);                                                       \
        if (try_status_ != HF_OK)                                                                  \
            return try_status_;                                                                    \
    } while (0)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* ---- env ------------------------------------------------------------------------------------ */

/* A whole env: what `env` leaves out is filled in from the system. */
struct hf_env hf__env_fill(const struct hf_env *env);

void *hf__env_alloc(const struct hf_env *env, size_t size);
void *hf__env_zalloc(const struct hf_env *env, size_t size); /* zeroed */
void *hf__env_resize(const struct hf_env *env, void *ptr, size_t old_size, size_t new_size);
void hf__env_free(const struct hf_env *env, void *ptr, size_t size);
int64_t hf__env_wall_us(const struct hf_env *env);
int64_t hf__env_wall_ms(const struct hf_env *env);
int64_t hf__env_elapsed_us(const struct hf_env *env);
void hf__env_random(const struct hf_env *env, void *bytes, size_t len);
void hf__env_log(const struct hf_env *env, enum hf_log_level level, const char *format, ...)
    HF_PRINTF(3, 4);

/* ---- scope ---------------------------------------------------------------------------------- */

/* Texts that differ between DynamoDB's older and its 2026 validation layer: ops/messages.c. */
enum hf__wording { HF__WORDING_CLASSIC = 0, HF__WORDING_2026 = 1 };

static inline const struct hf_env *hf__scope_env(const struct hf_scope *s)
{
    return hf_scope_env(s);
}

/* Zeroed memory for `count` elements in the scope, or NULL. */
void *hf__scope_array(struct hf_scope *s, size_t count, size_t size);

/*
 * Grow the scope's newest allocation in place when it is `ptr`, or move it; NULL when there is no
 * memory, and `ptr` stays as it was.
 */
void *hf__scope_grow(struct hf_scope *s, void *ptr, size_t old_size, size_t new_size);

/*
 * Whether an allocation in the scope failed since hf__scope_alloc_clear(). Code that stores
 * something, or returns a response made of many pieces, asks this instead of trusting that each
 * piece was checked.
 */
bool hf__scope_alloc_failed(const struct hf_scope *s);
void hf__scope_alloc_clear(struct hf_scope *s);

/* What hf_scope_mark() and hf_scope_rewind() are inside. */
struct hf__mark {
    void *chunk;
    size_t used;
};
struct hf__mark hf__scope_mark(struct hf_scope *s);
void hf__scope_rewind(struct hf_scope *s, struct hf__mark mark);

/* hf_scope_format() with its arguments. */
struct hf_str hf__scope_format_args(struct hf_scope *s, const char *format, va_list args);

/* A random UUID, version 4, in the scope; absent when there is no memory. */
struct hf_str hf__uuid(struct hf_scope *s, const struct hf_env *env);

/* HF_OK, HF_TIMEOUT or HF_CANCELED; with an error set. */
enum hf_status hf__scope_alive(struct hf_scope *s);

/*
 * Let calls on `inner` end when those on `outer` would (deadline, cancellation), and let them share
 * its pending sync and its counter of capacity. This lasts until the next reset of `inner`; `outer`
 * has to outlive that.
 */
void hf__scope_follow(struct hf_scope *inner, const struct hf_scope *outer);

/* Where consumed capacity is added up; NULL: nobody wants to know. */
struct hf_scope_capacity *hf__scope_counter(const struct hf_scope *s);
void hf__scope_set_counter(struct hf_scope *s, struct hf_scope_capacity *counter);

/* Milliseconds until the deadline, at most `cap`; `cap` when there is none. */
int64_t hf__scope_left_ms(const struct hf_scope *s, int64_t cap);

/*
 * Set the error of the scope and return its status, so that a failure is one statement:
 * `return hf__fail(s, HF_INVALID, "The table ...")`. The message is DynamoDB's own where there is
 * one.
 */
enum hf_status hf__fail(struct hf_scope *s, enum hf_status status, const char *format, ...)
    HF_PRINTF(3, 4);
enum hf_status hf__fail_text(struct hf_scope *s, enum hf_status status, struct hf_str message);
enum hf_status hf__fail_nomem(struct hf_scope *s);

/* The same with an exception of HF_EXCEPTION_MAP, a literal; the status is the one it has there. */
enum hf_status hf__fail_as(struct hf_scope *s, enum hf_status status, const char *exception,
                           const char *format, ...) HF_PRINTF(4, 5);

/* The exception that HF_STATUS_MAP has for a status. */
struct hf_str hf__status_exception(enum hf_status status);

/* Is it one of HF_EXCEPTION_MAP? Then *status is its status. */
bool hf__exception_find(struct hf_str exception, enum hf_status *status);

/* The error under construction, to add an item, reasons, or "may have happened". */
struct hf_error *hf__scope_error_edit(struct hf_scope *s);
void hf__scope_error_clear(struct hf_scope *s);
/* The text that hf_scope_error_text() returns while the error has its present message; absent: the
 * message itself. */
void hf__scope_error_say(struct hf_scope *s, struct hf_str text);

/* Is all that this call reads durable already? The database sets it when a call begins. */
bool hf__scope_reads_durable(const struct hf_scope *s);
void hf__scope_set_reads_durable(struct hf_scope *s, bool settled);

enum hf__wording hf__scope_wording(const struct hf_scope *s);
void hf__scope_set_wording(struct hf_scope *s, enum hf__wording wording);

/*
 * One sync for many calls. While a scope has a pending sync, a database does not wait until what a
 * call wrote or read is durable: it records the ticket here and returns. The caller must not show
 * the response before hf__db_sync() of that ticket has succeeded and the delay is over. NULL, as
 * after a reset: each call waits until it is durable.
 */
struct hf__pending_sync {
    uint64_t ticket;   /* the highest ticket that has to be durable; 0: none */
    uint32_t delay_ms; /* extra time before the response is sent; set by faults of tests */
};
void hf__scope_set_pending_sync(struct hf_scope *s, struct hf__pending_sync *pending);
uint64_t hf__scope_pending_ticket(const struct hf_scope *s); /* 0: there is none */
/* Leave the wait for the ticket, or the delay, to the caller. False: the scope has no pending sync,
 * so wait now. */
bool hf__scope_defer_sync(struct hf_scope *s, uint64_t ticket);
bool hf__scope_defer_delay(struct hf_scope *s, uint32_t ms);

/*
 * Patience: an event loop has no time for a long read. A read of many items reports what it has
 * read, item by item; once that is too much, hf__scope_patient() fails, and the read ends without a
 * result. The caller then repeats it on a worker thread. Only operations that have changed nothing
 * may call this. NULL, the default: no limit.
 */
struct hf__patience {
    uint64_t until_ns; /* on CLOCK_MONOTONIC */
    size_t bytes;      /* bytes that may still be read */
    size_t unseen;     /* bytes that were read since the clock was read */
    size_t work;       /* bytes of work since the last item */
    bool no_waits;     /* nor is there time to wait for the disk, or for a thread that does */
    bool lost;         /* the limit was passed, and the call ended for that */
};
void hf__scope_set_patience(struct hf_scope *s, struct hf__patience *patience);
enum hf_status hf__scope_patient(struct hf_scope *s, size_t bytes);
/* The same for work on one item, or on a whole transaction, that takes about as long as reading
 * `bytes` does. */
enum hf_status hf__scope_patient_work(struct hf_scope *s, size_t bytes);
/* For code that waits for something else, such as a latch: is there a limit; the limit is passed. */
bool hf__scope_has_patience(const struct hf_scope *s);
bool hf__scope_may_wait(const struct hf_scope *s); /* false: by `no_waits` */
enum hf_status hf__scope_lose_patience(struct hf_scope *s);

/* Bytes of memory that the scope has. */
size_t hf__scope_bytes(const struct hf_scope *s);

/*
 * Texts that an enum field of a request cannot hold: the decoder keeps the text here and stores
 * the negative number that it gets; validation prints the text again. Cleared with the scope.
 */
int hf__scope_keep_text(struct hf_scope *s, struct hf_str text);
struct hf_str hf__scope_kept_text(const struct hf_scope *s, int number);

/* ---- bytes ---------------------------------------------------------------------------------- */

static inline uint16_t load_u16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_u32le(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

static inline void store_u16le(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void store_u32le(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof(v));
}

static inline uint64_t load_u64le(const uint8_t *p)
{
    return load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

static inline void store_u64le(uint8_t *p, uint64_t v)
{
    store_u32le(p, (uint32_t)v);
    store_u32le(p + 4, (uint32_t)(v >> 32));
}

/* Big-endian, whose bytes sort as the numbers do. */
static inline void store_u16be(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void store_u32be(uint8_t *p, uint32_t v)
{
    store_u16be(p, (uint16_t)(v >> 16));
    store_u16be(p + 2, (uint16_t)v);
}

static inline void store_u64be(uint8_t *p, uint64_t v)
{
    store_u32be(p, (uint32_t)(v >> 32));
    store_u32be(p + 4, (uint32_t)v);
}

static inline uint16_t load_u16be(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_u32be(const uint8_t *p)
{
    return (uint32_t)load_u16be(p) << 16 | load_u16be(p + 2);
}

static inline uint64_t load_u64be(const uint8_t *p)
{
    return (uint64_t)load_u32be(p) << 32 | load_u32be(p + 4);
}

/*
 * A counted text against a C string that we wrote ourselves. The lengths decide first, so a NUL in
 * the text is a byte like any other, and nothing behind the text or the word is read. What came
 * from outside is compared this way, by hf_str_equal() or by bytes_compare(), never by a function
 * of <string.h> that stops at a NUL: test/check/cstrings.
 */
static inline bool str_is(struct hf_str text, const char *word)
{
    size_t len = strlen(word);

    return text.len == len && (len == 0 || memcmp(text.ptr, word, len) == 0);
}

/* The same in any case of ASCII letters, whatever the locale says. */
static inline bool str_is_any_case(struct hf_str text, const char *word)
{
    if (text.len != strlen(word))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned differ = (unsigned char)text.ptr[i] ^ (unsigned char)word[i],
                 letter = (unsigned char)text.ptr[i] | 0x20u;

        /* Letters differ in one bit from themselves in the other case. */
        if (differ && (differ != 0x20 || letter < 'a' || letter > 'z'))
            return false;
    }
    return true;
}

/* Is `c` one of these characters? NUL never is; strchr() finds it at the end of every set. */
static inline bool char_in(char c, const char *set)
{
    while (*set && *set != c)
        set++;
    return *set != '\0';
}

/* Does the text begin with `prefix`? Then *rest is what stands behind it. */
static inline bool str_after(struct hf_str text, struct hf_str prefix, struct hf_str *rest)
{
    if (prefix.len == 0) { /* of the absent text, too, which has no place to point to */
        *rest = text;
        return true;
    }
    if (text.len < prefix.len || memcmp(text.ptr, prefix.ptr, prefix.len) != 0)
        return false;
    *rest = hf_str_of(text.ptr + prefix.len, text.len - prefix.len);
    return true;
}

/* Cut the text at the first `c`: what is before it is returned, what is behind stays. */
static inline struct hf_str str_cut(struct hf_str *text, char c)
{
    const char *at = text->len ? (const char *)memchr(text->ptr, c, text->len) : NULL;
    struct hf_str before = *text;

    if (!at) {
        *text = hf_str_of(text->len ? text->ptr + text->len : "", 0);
        return before;
    }
    before.len = (size_t)(at - text->ptr);
    *text = hf_str_of(at + 1, text->len - before.len - 1);
    return before;
}

/* What a hexadecimal digit stands for, in either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Two lower case hexadecimal digits for each byte; returns where the text goes on. No NUL. */
static inline char *hex_write(char *to, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        *to++ = digits[((const uint8_t *)bytes)[i] >> 4];
        *to++ = digits[((const uint8_t *)bytes)[i] & 15];
    }
    return to;
}

/* memcmp() over two lengths: the order in which stores and sets keep their bytes. */
static inline int bytes_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    size_t shorter = a_len < b_len ? a_len : b_len;
    int order = shorter ? memcmp(a, b, shorter) : 0;

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

#endif
