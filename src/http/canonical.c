/*
 * http/canonical.c: a request in the one form that signer and verifier both come to.
 *
 *     POST
 *     /path/segments            dots resolved, each byte that is not unreserved as %XX
 *     a=1&b=%20                 sorted by name, then by value; "b" alone is "b="
 *     host:example.com          name in lower case, blanks trimmed and collapsed, fields of
 *     x-amz-date:20260131T...   the same name joined with commas
 *                               (an empty line)
 *     host;x-amz-date
 *     e3b0c44...                hash of the body
 *
 * The path is taken as it was sent and encoded once more, so that "%20" becomes "%2520"; only S3
 * takes it encoded once. The query is decoded first, where '+' is a blank, so that it does not
 * matter how the client escaped it.
 *
 * What always holds:
 *
 *  (1) The names of signed headers ascend, so none is there twice and the canonical form is not
 *      much longer than the request: an escape makes three bytes of one, and nothing is repeated.
 *  (2) Every name among the signed headers is a field of the request.
 */
#include "http/sign.h"

#include "base/buf.h"

/* ---- escapes -------------------------------------------------------------------------------- */

static bool is_unreserved(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

/* The byte that "%XX" at `at` stands for; -1 when that is no escape. */
static int escape_at(struct hf_str text, size_t at)
{
    int high, low;

    assert(at < text.len);
    if (text.ptr[at] != '%' || text.len - at < 3)
        return -1;
    high = hex_digit(text.ptr[at + 1]);
    low = hex_digit(text.ptr[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static void put_encoded(struct hf__buf *out, uint8_t c)
{
    static const char digits[] = "0123456789ABCDEF";

    if (is_unreserved(c)) {
        hf__buf_put_byte(out, c);
    } else {
        hf__buf_put_byte(out, '%');
        hf__buf_put_byte(out, (uint8_t)digits[c >> 4]);
        hf__buf_put_byte(out, (uint8_t)digits[c & 15]);
    }
}

/* The next byte of a piece of the query, decoded; *at moves behind it. */
static uint8_t next_decoded(struct hf_str text, size_t *at)
{
    int escaped = escape_at(text, *at);
    char c = text.ptr[*at];

    *at += escaped >= 0 ? 3 : 1;
    assert(*at <= text.len);
    if (escaped >= 0)
        return (uint8_t)escaped;
    return (uint8_t)(c == '+' ? ' ' : c);
}

/* ---- path ----------------------------------------------------------------------------------- */

/* Each segment behind a '/'; empty ones and "." go, ".." takes the one before with it. */
static void put_path(struct hf__buf *out, struct hf_str path)
{
    size_t start = out->len, at = 0;

    while (at < path.len) {
        struct hf_str part = {path.ptr + at, 0};

        while (at + part.len < path.len && part.ptr[part.len] != '/')
            part.len++;
        at += part.len + 1;
        if (!part.len || hf_str_equal(part, HF_STR(".")))
            continue;
        if (hf_str_equal(part, HF_STR(".."))) {
            while (out->len > start && out->ptr[--out->len] != '/')
                ;
            continue;
        }
        hf__buf_put_byte(out, '/');
        for (size_t i = 0; i < part.len; i++)
            put_encoded(out, (uint8_t)part.ptr[i]);
    }
    if (out->len == start || path.ptr[path.len - 1] == '/')
        hf__buf_put_byte(out, '/');
}

/* For S3: escapes stay, what should have been escaped is. */
static void put_path_once(struct hf__buf *out, struct hf_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '/' || escape_at(path, i) >= 0)
            hf__buf_put_byte(out, (uint8_t)path.ptr[i]);
        else
            put_encoded(out, (uint8_t)path.ptr[i]);
    }
    if (!path.len)
        hf__buf_put_byte(out, '/');
}

/* ---- query ---------------------------------------------------------------------------------- */

struct param {
    struct hf_str name;
    struct hf_str value;
};

/* The next parameter, as sent; false at the end. */
static bool next_param(struct hf_str query, size_t *at, struct param *param)
{
    while (*at < query.len) {
        struct hf_str part = {query.ptr + *at, 0};
        const char *equals;

        while (*at + part.len < query.len && part.ptr[part.len] != '&')
            part.len++;
        *at += part.len + 1;
        if (!part.len)
            continue;
        equals = memchr(part.ptr, '=', part.len);
        param->name = hf_str_of(part.ptr, equals ? (size_t)(equals - part.ptr) : part.len);
        param->value = equals ? hf_str_of(equals + 1, part.len - param->name.len - 1)
                              : hf_str_of(part.ptr + part.len, 0);
        return true;
    }
    return false;
}

/* Is the piece, once decoded, this name? */
static bool decodes_to(struct hf_str text, const char *name)
{
    size_t at = 0;

    for (; *name && at < text.len; name++) {
        if (next_decoded(text, &at) != (uint8_t)*name)
            return false;
    }
    return !*name && at == text.len;
}

enum hf_status hf__sign_param(struct hf_scope *s, struct hf_str query, const char *name,
                              struct hf_str *value)
{
    struct param param;
    size_t at = 0, len = 0, from = 0;
    char *text;

    *value = (struct hf_str){0};
    while (next_param(query, &at, &param)) {
        if (!decodes_to(param.name, name))
            continue;
        text = hf_scope_alloc(s, param.value.len + 1);
        if (!text)
            return hf__fail_nomem(s);
        while (from < param.value.len)
            text[len++] = (char)next_decoded(param.value, &from);
        assert(len <= param.value.len);
        text[len] = '\0';
        *value = hf_str_of(text, len);
        return HF_OK;
    }
    return HF_OK;
}

static int by_name_and_value(const void *a, const void *b)
{
    const struct param *x = a, *y = b;
    int order = bytes_compare(x->name.ptr, x->name.len, y->name.ptr, y->name.len);

    return order ? order : bytes_compare(x->value.ptr, x->value.len, y->value.ptr, y->value.len);
}

/* The piece decoded and encoded again, at the end of `out`; its position there. */
static struct hf_str text_recode(struct hf__buf *out, struct hf_str text)
{
    size_t start = out->len, at = 0;

    while (at < text.len)
        put_encoded(out, next_decoded(text, &at));
    return out->failed ? (struct hf_str){0}
                       : hf_str_of((const char *)out->ptr + start, out->len - start);
}

static enum hf_status put_query(struct hf_scope *s, struct hf__buf *out, struct hf_str query)
{
    struct hf__buf text = {.scope = s};
    struct param *all, param;
    size_t count = 0, len = 0, at = 0;

    if (!query.len)
        return HF_OK;
    while (next_param(query, &at, &param))
        count++;
    all = hf__scope_array(s, count + 1, sizeof(*all));
    /* Three bytes for each is the most there can be: the text never moves while we point to it. */
    if (!all || !hf__buf_reserve(&text, query.len * 3 + 1))
        return hf__fail_nomem(s);
    for (at = 0; next_param(query, &at, &param);) {
        if (decodes_to(param.name, "X-Amz-Signature"))
            continue;
        assert(len < count);
        all[len].name = text_recode(&text, param.name);
        all[len++].value = text_recode(&text, param.value);
    }
    assert(!text.failed && text.len <= query.len * 3); /* so it has not moved */
    qsort(all, len, sizeof(*all), by_name_and_value);
    for (size_t i = 0; i < len; i++) {
        if (i)
            hf__buf_put_byte(out, '&');
        hf__buf_put_str(out, all[i].name);
        hf__buf_put_byte(out, '=');
        hf__buf_put_str(out, all[i].value);
    }
    return HF_OK;
}

/* ---- headers -------------------------------------------------------------------------------- */

static char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* The order of two names, in any case: negative, 0 or positive. */
static int name_order(struct hf_str a, struct hf_str b)
{
    size_t i = 0;

    while (i < a.len && i < b.len && char_lower(a.ptr[i]) == char_lower(b.ptr[i]))
        i++;
    if (i < a.len && i < b.len)
        return (uint8_t)char_lower(a.ptr[i]) < (uint8_t)char_lower(b.ptr[i]) ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
}

/* Words with one blank between them. */
static void put_value(struct hf__buf *out, struct hf_str value)
{
    bool blank = false, begun = false;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (c == ' ' || c == '\t') {
            blank = begun;
            continue;
        }
        if (blank)
            hf__buf_put_byte(out, ' ');
        hf__buf_put_byte(out, (uint8_t)c);
        blank = false;
        begun = true;
    }
}

/* "name:value,value\n" from all fields of that name; false when there is none. */
static bool put_header(struct hf__buf *out, const struct http_head *head, struct hf_str name)
{
    bool found = false;

    for (size_t i = 0; i < name.len; i++)
        hf__buf_put_byte(out, (uint8_t)char_lower(name.ptr[i]));
    for (size_t i = 0; i < head->fields_len; i++) {
        if (name_order(head->fields[i].name, name) != 0)
            continue;
        hf__buf_put_byte(out, found ? ',' : ':');
        put_value(out, head->fields[i].value);
        found = true;
    }
    hf__buf_put_byte(out, '\n');
    return found;
}

static enum hf_status put_headers(struct hf_scope *s, struct hf__buf *out,
                                  const struct http_head *head, struct hf_str signed_headers)
{
    struct hf_str before = {0};
    size_t at = 0;

    while (at < signed_headers.len) {
        struct hf_str name = {signed_headers.ptr + at, 0};

        while (at + name.len < signed_headers.len && name.ptr[name.len] != ';')
            name.len++;
        at += name.len + 1;
        if (name_order(before, name) >= 0)
            return hf__fail(s, HF_INVALID, "The names of the signed headers are not in order");
        if (!put_header(out, head, name))
            return hf__fail(s, HF_INVALID, "The header '%.*s' is signed but missing", HF_FMT(name));
        before = name;
    }
    return HF_OK;
}

enum hf_status hf__sign_canonical(struct hf_scope *s, const struct http_head *head,
                                  struct hf_str signed_headers, struct hf_str payload_hash,
                                  bool normalize, struct hf_str *canonical)
{
    struct hf__buf out = {.scope = s};

    *canonical = (struct hf_str){0};
    hf__buf_put_str(&out, head->method);
    hf__buf_put_byte(&out, '\n');
    if (normalize)
        put_path(&out, head->path);
    else
        put_path_once(&out, head->path);
    hf__buf_put_byte(&out, '\n');
    TRY(put_query(s, &out, head->query));
    hf__buf_put_byte(&out, '\n');
    TRY(put_headers(s, &out, head, signed_headers));
    hf__buf_put_byte(&out, '\n');
    hf__buf_put_str(&out, signed_headers);
    hf__buf_put_byte(&out, '\n');
    hf__buf_put_str(&out, payload_hash);
    if (out.failed)
        return hf__fail_nomem(s);
    *canonical = hf_str_of((const char *)out.ptr, out.len);
    return HF_OK;
}
