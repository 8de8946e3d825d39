/* client/url.h: the URL of an endpoint, in its parts; names of hosts. */
#ifndef HF_CLIENT_URL_H
#define HF_CLIENT_URL_H

#include "base/base.h"

struct url {
    bool is_https;
    struct hf_str host; /* as written; a v6 address with its brackets */
    unsigned port;      /* 0: the usual one of the scheme */
    struct hf_str path; /* without slashes behind; empty when there is none */
};

/* NULL, or what is wrong, in words that go on behind "the URL" and show nothing of it. The parts
 * are of `text`. */
const char *hf__url_read(struct hf_str text, struct url *url);

/*
 * A part of a URL with its %XX read, in `memory`, with a NUL behind it. HF_INVALID, without words
 * of its own, when a % has no two hexadecimal digits behind it; HF_NOMEM.
 */
enum hf_status hf__url_decode(struct hf_scope *memory, struct hf_str part, struct hf_str *decoded);

/* Is it this machine itself: localhost, 127.x.x.x or [::1]? */
bool hf__url_is_loopback(const struct url *url);

/* A part of a host's name: 1 to 63 letters, digits and inner hyphens. */
bool hf__url_is_label(struct hf_str text);

static inline char hf__url_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#endif
