/*
 * base/buf.h: a growing buffer. It lives in a scope, or with an env when it outlives one. A failed
 * allocation sets `failed`, and later appends do nothing. So code that appends checks nothing, and
 * code that takes the result checks `failed`.
 */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include "base/base.h"

struct hf__buf {
    struct hf_scope *scope;   /* where the memory comes from; NULL: from `env` */
    const struct hf_env *env; /* used without a scope, until hf__buf_free() */
    uint8_t *ptr;
    size_t len;
    size_t cap;
    bool failed;
};

/* Make room for `more` bytes behind the end and return where they go; NULL when failed. */
uint8_t *hf__buf_reserve_slow(struct hf__buf *buf, size_t more);

static inline uint8_t *hf__buf_reserve(struct hf__buf *buf, size_t more)
{
    if (buf->ptr && buf->cap - buf->len >= more && !buf->failed)
        return buf->ptr + buf->len;
    return hf__buf_reserve_slow(buf, more);
}

static inline void hf__buf_put(struct hf__buf *buf, const void *bytes, size_t len)
{
    uint8_t *to = len ? hf__buf_reserve(buf, len) : NULL;

    if (to) {
        memcpy(to, bytes, len);
        buf->len += len;
    }
}

static inline void hf__buf_put_byte(struct hf__buf *buf, uint8_t byte)
{
    uint8_t *to = hf__buf_reserve(buf, 1);

    if (to) {
        *to = byte;
        buf->len++;
    }
}

static inline void hf__buf_put_str(struct hf__buf *buf, struct hf_str str)
{
    hf__buf_put(buf, str.ptr, str.len);
}

/* A NUL follows, which does not count. */
void hf__buf_format(struct hf__buf *buf, const char *format, ...) HF_PRINTF(2, 3);
void hf__buf_vformat(struct hf__buf *buf, const char *format, va_list args) HF_PRINTF(2, 0);

/* As a URL has it: what is not a letter, a digit, one of "-_.~", or in `keep`, becomes %XX. */
void hf__buf_put_url(struct hf__buf *buf, struct hf_str text, const char *keep);

/* For buffers with an env; the buffer is empty and usable afterwards. */
void hf__buf_free(struct hf__buf *buf);

#endif
