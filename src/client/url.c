/*
 * client/url.c: the URL of an endpoint, in its parts.
 *
 * Strict where a mistake would send requests elsewhere: a host is letters, digits, dots, hyphens
 * and underscores, or a v6 address in brackets; no user, no query, no fragment; nothing in the path
 * that would have to be escaped. What passes can be put into a request as it is.
 */
#include "client/url.h"

#include <assert.h>

bool hf__url_is_label(struct hf_str text)
{
    if (!text.len || text.len > 63 || text.ptr[0] == '-' || text.ptr[text.len - 1] == '-')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = hf__url_lower(text.ptr[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return true;
}

static bool after_any_case(struct hf_str text, const char *prefix, struct hf_str *rest)
{
    size_t len = strlen(prefix);

    assert(prefix[0]);
    if (text.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (hf__url_lower(text.ptr[i]) != prefix[i])
            return false;
    *rest = hf_str_of(text.ptr + len, text.len - len);
    return true;
}

static bool is_one_of(char c, const char *extra)
{
    assert(extra);
    c = hf__url_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || char_in(c, extra);
}

/* A name, as those of containers with underscores, or a v4 address. */
static bool is_host(struct hf_str host)
{
    if (!host.len || host.len > 253 || host.ptr[0] == '.' || host.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (!is_one_of(host.ptr[i], "-._") || (i && host.ptr[i] == '.' && host.ptr[i - 1] == '.'))
            return false;
    return true;
}

static bool is_v6(struct hf_str host)
{
    if (host.len < 4 || host.len > 47 || host.ptr[0] != '[' || host.ptr[host.len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < host.len; i++)
        if (!is_one_of(host.ptr[i], ":.") || hf__url_lower(host.ptr[i]) > 'f')
            return false;
    return memchr(host.ptr, ':', host.len) != NULL;
}

static bool read_port(struct hf_str text, unsigned *port)
{
    *port = 0;
    for (size_t i = 0; i < text.len && *port <= 65535; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *port = *port * 10 + (unsigned)(text.ptr[i] - '0');
    }
    return text.len && *port >= 1 && *port <= 65535;
}

static const char *read_path(struct hf_str path, struct hf_str *kept)
{
    assert(path.ptr || !path.len);
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] <= ' ' || path.ptr[i] > '~')
            return "has characters in its path that need an escape";
        if (path.ptr[i] == '?' || path.ptr[i] == '#')
            return "has more than a path behind its host";
    }
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    *kept = path.len ? path : HF_STR("");
    return NULL;
}

const char *hf__url_read(struct hf_str text, struct url *url)
{
    struct hf_str rest, port = {0};
    size_t len = 0, colon;

    *url = (struct url){.is_https = after_any_case(text, "https://", &rest)};
    if (!url->is_https && !after_any_case(text, "http://", &rest))
        return "does not begin with http:// or https://";
    while (len < rest.len && !char_in(rest.ptr[len], "/?#"))
        len++;
    url->host = hf_str_of(rest.ptr, len);
    if (len && memchr(rest.ptr, '@', len))
        return "has a user or password in it, which is not for the endpoint of a service";
    for (colon = len; colon > 0 && is_one_of(rest.ptr[colon - 1], ""); colon--)
        ;
    if (colon > 0 && rest.ptr[colon - 1] == ':') {
        url->host.len = colon - 1;
        port = hf_str_of(rest.ptr + colon, len - colon);
    }
    if (!is_host(url->host) && !is_v6(url->host))
        return "has no valid host";
    if (port.ptr && !read_port(port, &url->port))
        return "has a port that is not from 1 to 65535";
    if (url->port == (url->is_https ? 443 : 80))
        url->port = 0;
    assert(len <= rest.len && url->host.len > 0 && url->host.len <= len && url->port <= 65535);
    return read_path(hf_str_of(rest.ptr + len, rest.len - len), &url->path);
}

static bool is_loopback_v4(struct hf_str host)
{
    unsigned parts = 0, number = 0, digits = 0;

    for (size_t i = 0; i <= host.len; i++) {
        char c = i < host.len ? host.ptr[i] : '.';

        if (c == '.') {
            if (!digits || number > 255 || (parts == 0 && number != 127))
                return false;
            parts++;
            number = digits = 0;
        } else if (c >= '0' && c <= '9' && ++digits <= 3) {
            number = number * 10 + (unsigned)(c - '0');
        } else {
            return false;
        }
    }
    return parts == 4;
}

enum hf_status hf__url_decode(struct hf_scope *memory, struct hf_str part, struct hf_str *decoded)
{
    char *text = hf_scope_alloc(memory, part.len + 1);
    size_t len = 0;

    if (!text)
        return HF_NOMEM;
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] != '%') {
            text[len++] = part.ptr[i];
            continue;
        }
        if (part.len - i < 3 || hex_digit(part.ptr[i + 1]) < 0 || hex_digit(part.ptr[i + 2]) < 0)
            return HF_INVALID;
        text[len++] = (char)(hex_digit(part.ptr[i + 1]) * 16 + hex_digit(part.ptr[i + 2]));
        i += 2;
    }
    assert(len <= part.len); /* an escape is longer than what it stands for */
    text[len] = '\0';
    *decoded = hf_str_of(text, len);
    return HF_OK;
}

bool hf__url_is_loopback(const struct url *url)
{
    struct hf_str rest;

    assert(url->host.ptr || !url->host.len);
    if (after_any_case(url->host, "localhost", &rest) && !rest.len)
        return true;
    return hf_str_equal(url->host, HF_STR("[::1]")) || is_loopback_v4(url->host);
}
