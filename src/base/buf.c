/*
 * base/buf.c: growth by doubling. Inside a scope the newest allocation grows in place, so a buffer
 * that nothing else interrupts is never copied.
 */
#include "base/buf.h"

enum { BUF_FIRST = 256 };

uint8_t *hf__buf_reserve_slow(struct hf__buf *buf, size_t more)
{
    size_t want;
    uint8_t *moved;

    assert(buf->len <= buf->cap && (buf->ptr || buf->cap == 0));
    if (buf->failed)
        return NULL;
    assert(buf->scope || buf->env);
    if (more > SIZE_MAX / 4 - buf->len) {
        buf->failed = true;
        return NULL;
    }
    want = buf->cap ? buf->cap * 2 : BUF_FIRST;
    if (want < buf->len + more)
        want = buf->len + more;
    moved = buf->scope ? hf__scope_grow(buf->scope, buf->ptr, buf->cap, want)
                       : hf__env_resize(buf->env, buf->ptr, buf->cap, want);
    if (!moved) {
        buf->failed = true;
        return NULL;
    }
    buf->ptr = moved;
    buf->cap = want;
    assert(buf->cap - buf->len >= more);
    return buf->ptr + buf->len;
}

void hf__buf_vformat(struct hf__buf *buf, const char *format, va_list args)
{
    va_list again;
    uint8_t *to;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(len >= 0); /* else the format is wrong */
    to = hf__buf_reserve(buf, (size_t)len + 1);
    if (!to)
        return;
    vsnprintf((char *)to, (size_t)len + 1, format, args);
    buf->len += (size_t)len;
}

void hf__buf_format(struct hf__buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    hf__buf_vformat(buf, format, args);
    va_end(args);
}

void hf__buf_free(struct hf__buf *buf)
{
    assert(!buf->scope);
    hf__env_free(buf->env, buf->ptr, buf->cap);
    buf->ptr = NULL;
    buf->len = buf->cap = 0;
    buf->failed = false;
}

void hf__buf_put_url(struct hf__buf *buf, struct hf_str text, const char *keep)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];

        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            char_in((char)c, "-_.~") || char_in((char)c, keep)) {
            hf__buf_put_byte(buf, c);
        } else {
            const char code[3] = {'%', hex[c >> 4], hex[c & 15]};

            hf__buf_put(buf, code, sizeof(code));
        }
    }
}
