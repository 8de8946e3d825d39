/*
 * server/access.c: keeping browsers from being used against us.
 *
 * A server on loopback that takes any signature can be reached by every page that its user looks
 * at. Two checks keep those out:
 *
 *  - Host. A page can have its own name point to 127.0.0.1, and is then of the same origin as we
 *    are. But its requests carry that name. So, while any signature is taken, the name has to be
 *    an address, localhost or a name from --allow-host. With keys, the signature covers the name.
 *    Names without a dot, as containers have, are no names of public DNS: "dotless" allows all of them.
 *  - Origin. A request with an Origin comes from a page. It has to be one of our own, or one
 *    that --cors names.
 */
#include "server/private.h"

/* Without ":8000"; a name with colons is in brackets. */
static struct hf_str without_port(struct hf_str host)
{
    size_t len = host.len;

    while (len > 0 && host.ptr[len - 1] >= '0' && host.ptr[len - 1] <= '9')
        len--;
    return len > 0 && host.ptr[len - 1] == ':' ? hf_str_of(host.ptr, len - 1) : host;
}

/* An IPv4 address or an IPv6 one in brackets: no name, so nobody can make it point elsewhere. */
static bool is_address(struct hf_str host)
{
    if (host.len > 2 && host.ptr[0] == '[')
        return host.ptr[host.len - 1] == ']';
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9'))
            return false;
    }
    return host.len > 0;
}

static bool is_localhost(struct hf_str host)
{
    static const char suffix[] = ".localhost";
    size_t len = sizeof(suffix) - 1;

    return hf__http_is(host, "localhost") ||
           (host.len > len && hf__http_is(hf_str_of(host.ptr + host.len - len, len), suffix));
}

/* "*", "dotless", "*.cluster.local", or the name itself. */
static bool is_allowed(struct hf_str pattern, struct hf_str host)
{
    if (hf_str_equal(pattern, HF_STR("*")))
        return true;
    if (hf__http_is(pattern, "dotless") && !memchr(host.ptr, '.', host.len))
        return true;
    if (pattern.len > 2 && pattern.ptr[0] == '*' && pattern.ptr[1] == '.') {
        size_t len = pattern.len - 1;

        return host.len > len &&
               hf__http_is(hf_str_of(host.ptr + host.len - len, len), pattern.ptr + 1);
    }
    return hf__http_is(host, pattern.ptr);
}

bool hf__access_host(const struct server *server, struct hf_str host)
{
    const struct server_options *o = &server->options;

    if (o->keys_len > 0 || !host.ptr)
        return true;
    host = without_port(host);
    if (is_address(host) || is_localhost(host))
        return true;
    for (size_t i = 0; i < o->hosts_len; i++) {
        if (is_allowed(o->hosts[i], host))
            return true;
    }
    return false;
}

/* Is `origin` in a list like "http://a:3000,https://b"? */
static bool in_list(struct hf_str list, struct hf_str origin)
{
    while (list.len > 0) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        size_t used = comma ? len + 1 : len;
        struct hf_str one = hf_str_of(list.ptr, len);

        while (one.len > 0 && one.ptr[0] == ' ')
            one = hf_str_of(one.ptr + 1, one.len - 1);
        while (one.len > 0 && one.ptr[one.len - 1] == ' ')
            one.len--;
        if (hf_str_equal(one, HF_STR("*")) || hf_str_equal(one, origin))
            return true;
        list = hf_str_of(list.ptr + used, list.len - used);
    }
    return false;
}

bool hf__access_own(const struct server *server, struct hf_str origin, struct hf_str host)
{
    const char *scheme = server->options.certificate.ptr ? "https://" : "http://";
    size_t len = strlen(scheme);

    return origin.len == len + host.len && host.len > 0 && memcmp(origin.ptr, scheme, len) == 0 &&
           memcmp(origin.ptr + len, host.ptr, host.len) == 0;
}

bool hf__access_origin(const struct server *server, struct hf_str origin, struct hf_str host)
{
    return hf__access_own(server, origin, host) || in_list(server->options.cors, origin);
}

struct hf_str hf__access_fields(struct hf_scope *s, const struct server *server,
                                struct hf_str origin)
{
    static const char expose[] = "Access-Control-Expose-Headers: "
                                 "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,"
                                 "x-amzn-ErrorMessage,x-amz-crc32,Date\r\n";

    if (!server->options.cors.ptr)
        return (struct hf_str){0};
    if (in_list(server->options.cors, HF_STR("*")))
        return hf_scope_format(s, "Access-Control-Allow-Origin: *\r\n%s", expose);
    return hf_scope_format(s, "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n%s",
                           HF_FMT(origin), expose);
}
