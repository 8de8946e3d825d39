/*
 * cli/frame/output/mask.c: passwords of URLs are not shown. See mask.h.
 */
#include "cli/frame/output/mask.h"

#include "base/base.h"
#include "base/buf.h"

#include <ctype.h>

/* How many bytes the character `plain` takes there, as it is or as %XX; 0: it is another one. */
static size_t char_len(struct hf_str text, size_t at, char plain)
{
    const char code[] = {'%', "0123456789ABCDEF"[plain >> 4 & 15], "0123456789ABCDEF"[plain & 15]};

    if (text.ptr[at] == plain)
        return 1;
    if (text.len - at < sizeof(code))
        return 0;
    for (size_t i = 0; i < sizeof(code); i++)
        if (toupper((unsigned char)text.ptr[at + i]) != code[i])
            return 0;
    return sizeof(code);
}

/* The length of // there; 0: it is something else. */
static size_t slashes_len(struct hf_str text, size_t at)
{
    size_t one = char_len(text, at, '/');
    size_t two = one && at + one < text.len ? char_len(text, at + one, '/') : 0;

    return two ? one + two : 0;
}

/* Where the last @ is that belongs to what begins here; 0: there is none. */
static size_t at_find(struct hf_str text, size_t from)
{
    size_t last = 0;

    for (size_t at = from; at < text.len && !char_in(text.ptr[at], " \t\n\"'"); at++) {
        if (slashes_len(text, at))
            break;
        if (char_len(text, at, '@'))
            last = at;
    }
    return last;
}

struct hf_str hf__cli_mask(struct hf_scope *s, struct hf_str text)
{
    struct hf__buf out = {.scope = s};
    size_t kept = 0; /* all before it is in `out` */

    for (size_t at = 0; at < text.len; at++) {
        size_t slashes = slashes_len(text, at);
        size_t end = slashes ? at_find(text, at + slashes) : 0;

        if (!end)
            continue;
        hf__buf_put(&out, text.ptr + kept, at + slashes - kept);
        hf__buf_put_str(&out, HF_STR("***"));
        kept = end;
        at = end - 1;
    }
    if (!kept)
        return text;
    hf__buf_put(&out, text.ptr + kept, text.len - kept);
    hf__buf_put_byte(&out, 0);
    return out.failed ? HF_STR("out of memory") : hf_str_of((const char *)out.ptr, out.len - 1);
}
