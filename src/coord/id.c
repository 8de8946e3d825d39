/*
 * coord/id.c: ids that nobody else has, keys that only their own parts give, and who we are.
 *
 *  (1) A dot stands between two parts and nowhere else, as one inside of a part is written "%2E".
 *      So parts can be told apart, whatever they contain, and the empty part is one too.
 *  (2) An escape is "%2E" or "%25" and nothing else: each list of parts has one key, and each key
 *      at most one list.
 */
#include "coord/pattern.h"

#include <stdio.h>
#include <unistd.h>

_Static_assert(PATTERN_ID_LEN % 2 == 0, "two digits for each byte");

struct pattern_id hf__pattern_id_make(const struct hf_env *env)
{
    uint8_t bytes[PATTERN_ID_LEN / 2];
    struct pattern_id id;

    hf__env_random(env, bytes, sizeof(bytes));
    *hex_write(id.text, bytes, sizeof(bytes)) = '\0';
    return id;
}

static size_t escaped_len(struct hf_str part)
{
    size_t len = part.len;

    for (size_t i = 0; i < part.len; i++)
        if (part.ptr[i] == '.' || part.ptr[i] == '%')
            len += 2;
    return len;
}

static char *part_escape(char *to, struct hf_str part)
{
    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];

        if (c == '.' || c == '%') {
            *to++ = '%';
            *to++ = '2';
            *to++ = c == '.' ? 'E' : '5';
        } else {
            *to++ = c;
        }
    }
    return to;
}

struct hf_str hf__pattern_key(struct hf_scope *s, const struct hf_str *parts, size_t count)
{
    size_t len = count ? count - 1 : 0;
    char *text, *to;

    for (size_t i = 0; i < count; i++)
        len += escaped_len(parts[i]);
    text = to = hf_scope_alloc(s, len + 1);
    if (!text)
        return hf_str_of(NULL, 0);
    for (size_t i = 0; i < count; i++) {
        if (i)
            *to++ = '.';
        to = part_escape(to, parts[i]);
    }
    assert(to == text + len && "a key is as long as its escaped parts");
    *to = '\0';
    return hf_str_of(text, len);
}

struct hf_str hf__pattern_join(struct hf_scope *s, struct hf_str one, struct hf_str other)
{
    char *text = hf_scope_alloc(s, one.len + other.len + 1);

    if (!text)
        return hf_str_of(NULL, 0);
    if (one.len)
        memcpy(text, one.ptr, one.len);
    if (other.len)
        memcpy(text + one.len, other.ptr, other.len);
    text[one.len + other.len] = '\0';
    return hf_str_of(text, one.len + other.len);
}

struct hf_str hf__pattern_text(struct hf_scope *s, struct hf_str text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    char *to;

    assert(len <= max);
    while (len < text.len && len && ((uint8_t)text.ptr[len] & 0xC0) == 0x80)
        len--; /* not in the middle of a character */
    to = hf_scope_alloc(s, len + 1);
    if (!to)
        return hf_str_of(NULL, 0);
    if (len)
        memcpy(to, text.ptr, len);
    to[len] = '\0';
    if (hf_item_check(s, HF_ITEM(s, HF_S("text", hf_str_of(to, len)))) == HF_INVALID)
        for (size_t i = 0; i < len; i++)
            if ((uint8_t)to[i] >= 0x80)
                to[i] = '?';
    return hf_str_of(to, len);
}

/* The length of the part without its escapes, or SIZE_MAX when one is none (2). */
static size_t part_unescape(char *to, struct hf_str part)
{
    size_t len = 0;

    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];

        if (c == '%') {
            if (part.len - i < 3 || part.ptr[i + 1] != '2')
                return SIZE_MAX;
            if (part.ptr[i + 2] != 'E' && part.ptr[i + 2] != '5')
                return SIZE_MAX;
            c = part.ptr[i + 2] == 'E' ? '.' : '%';
            i += 2;
        }
        to[len++] = c;
    }
    assert(len <= part.len);
    return len;
}

enum hf_status hf__pattern_key_parts(struct hf_scope *s, struct hf_str key, struct hf_str *parts,
                                     size_t count)
{
    char *to = hf_scope_alloc(s, key.len + 1);
    size_t found = 0, at = 0;

    if (!to)
        return hf_scope_built(s);
    if (!key.ptr) /* the item has none */
        key = HF_STR("");
    for (; at <= key.len && found < count; found++) {
        const char *dot = at < key.len ? memchr(key.ptr + at, '.', key.len - at) : NULL;
        size_t end = dot ? (size_t)(dot - key.ptr) : key.len;
        size_t len = part_unescape(to, hf_str_of(key.ptr + at, end - at));

        if (len == SIZE_MAX)
            break;
        parts[found] = hf_str_of(to, len);
        to += len;
        at = end + 1;
    }
    if (found < count || at <= key.len)
        return hf_scope_fail(s, HF_CORRUPT, "the key \"%.*s\" is not one of %zu parts", HF_FMT(key),
                             count);
    return HF_OK;
}

struct hf_str hf__pattern_owner(struct hf_scope *s, struct hf_str said)
{
    char host[256] = "";

    if (said.len)
        return hf_scope_copy(s, said);
    if (gethostname(host, sizeof(host) - 1) != 0)
        snprintf(host, sizeof(host), "unknown");
    return hf_scope_format(s, "%s/%ld", host, (long)getpid());
}
