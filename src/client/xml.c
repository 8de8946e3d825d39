/*
 * client/xml.c: the few texts that are wanted from a small XML document.
 *
 * One pass over the bytes. The names of the open elements are kept as one path, "A/B/C", which is
 * what is compared with what is wanted; a stack has where each name starts in it.
 *
 * What always holds:
 *
 *  (1) Depth and the length of the path are limited, so a document costs no more memory than its
 *      wanted texts.
 *  (2) The document is read to its end before anything is believed: one element, closed in order.
 *  (3) Namespaces are not looked at, but a name with a prefix is another name.
 */
#include "client/xml.h"

#include <assert.h>

enum { DEPTH_MAX = 16, PATH_MAX_BYTES = 512 };

struct xml {
    struct hf_scope *scope;
    const char *at;
    const char *end;
    char path[PATH_MAX_BYTES];
    size_t path_len;
    size_t starts[DEPTH_MAX]; /* the length of the path without the element and its slash */
    size_t depth;
    bool nomem;
    xml_element_fn *fn; /* of hf__xml_walk() */
    void *user;
    bool leaf; /* no element has ended since one began */
};

/* The path is the names of the open elements, and each begins behind the one above it. */
static void xml_check(const struct xml *xml)
{
    assert(xml->at <= xml->end);
    assert(xml->depth <= DEPTH_MAX && xml->path_len <= sizeof(xml->path));
    assert((xml->depth == 0) == (xml->path_len == 0));
    assert(xml->depth == 0 || xml->starts[0] == 0);
    assert(xml->depth < 2 || xml->starts[xml->depth - 1] > xml->starts[xml->depth - 2]);
    assert(xml->depth == 0 || xml->starts[xml->depth - 1] < xml->path_len);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static void skip_spaces(struct xml *xml)
{
    while (xml->at < xml->end && is_space(*xml->at))
        xml->at++;
}

static bool xml_take(struct xml *xml, struct hf_str text)
{
    struct hf_str rest;

    assert(xml->at <= xml->end);
    if (!str_after(hf_str_of(xml->at, (size_t)(xml->end - xml->at)), text, &rest))
        return false;
    xml->at = rest.ptr;
    return true;
}

static bool take_name(struct xml *xml, struct hf_str *name)
{
    const char *from = xml->at;

    while (xml->at < xml->end && is_name(*xml->at))
        xml->at++;
    *name = hf_str_of(from, (size_t)(xml->at - from));
    return name->len > 0;
}

/* Attributes, up to what ends the tag. */
static bool skip_attributes(struct xml *xml)
{
    for (;;) {
        bool spaced = xml->at < xml->end && is_space(*xml->at);
        struct hf_str name;
        const char *close;

        skip_spaces(xml);
        if (xml->at < xml->end && (*xml->at == '>' || *xml->at == '/'))
            return true;
        if (!spaced || !take_name(xml, &name) || !xml_take(xml, HF_STR("=")) ||
            xml->at == xml->end || (*xml->at != '"' && *xml->at != '\''))
            return false;
        close = memchr(xml->at + 1, *xml->at, (size_t)(xml->end - xml->at - 1));
        if (!close || memchr(xml->at, '<', (size_t)(close - xml->at)))
            return false;
        xml->at = close + 1;
    }
}

/* ---- text ----------------------------------------------------------------------------------- */

/* A character as UTF-8; how many bytes, 0 when XML has no such character. */
static size_t put_character(uint32_t c, char *out)
{
    if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || (c >= 0xD800 && c <= 0xDFFF) ||
        c > 0x10FFFF)
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* "#65" or "#x41", without the & and the semicolon. */
static size_t put_numbered(struct hf_str digits, char *out)
{
    uint32_t base = digits.len > 1 && digits.ptr[1] == 'x' ? 16 : 10;
    size_t from = base == 16 ? 2 : 1;
    uint32_t c = 0;

    assert(digits.len > 0 && digits.ptr[0] == '#');
    if (digits.len == from || digits.len > 8)
        return 0;
    for (size_t i = from; i < digits.len; i++) {
        char d = digits.ptr[i];
        uint32_t value = d >= '0' && d <= '9'   ? (uint32_t)(d - '0')
                         : d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                         : d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A' + 10)
                                                : 99;

        if (value >= base)
            return 0;
        c = c * base + value;
    }
    return put_character(c, out);
}

/* A reference without the & and the semicolon. It is never longer than what it stands for was. */
static size_t put_reference(struct hf_str name, char *out)
{
    static const struct {
        struct hf_str name;
        char c;
    } named[] = {{HF_STR_INIT("amp"), '&'},
                 {HF_STR_INIT("lt"), '<'},
                 {HF_STR_INIT("gt"), '>'},
                 {HF_STR_INIT("quot"), '"'},
                 {HF_STR_INIT("apos"), '\''}};

    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (hf_str_equal(name, named[i].name)) {
            *out = named[i].c;
            return 1;
        }
    return name.len && *name.ptr == '#' ? put_numbered(name, out) : 0;
}

/* `raw` with its references replaced, in the scope; false when one of them is none. */
static bool text_unescape(struct xml *xml, struct hf_str raw, struct hf_str *text)
{
    char *out = hf_scope_alloc(xml->scope, raw.len + 1);
    size_t len = 0;

    xml->nomem = !out;
    for (size_t i = 0; out && i < raw.len; i++) {
        const char *close;
        size_t put;

        if (raw.ptr[i] != '&') {
            out[len++] = raw.ptr[i];
            continue;
        }
        close = memchr(raw.ptr + i, ';', raw.len - i);
        put = close ? put_reference(hf_str_of(raw.ptr + i + 1, (size_t)(close - raw.ptr) - i - 1),
                                    out + len)
                    : 0;
        if (!put)
            return false;
        assert(put <= 4);
        len += put;
        i = (size_t)(close - raw.ptr);
        assert(len <= i + 1); /* in place of at least as many */
    }
    if (!out)
        return false;
    out[len] = '\0';
    assert(len <= raw.len); /* what stands for a character is longer than its UTF-8 */
    *text = hf_str_of(out, len);
    return true;
}

/* The text before an end tag: of an element without others in it, or of one that had some. */
static bool text_report(struct xml *xml, struct hf_str raw)
{
    struct hf_str text = {NULL, 0};

    assert(xml->fn && xml->depth > 0);
    if (xml->end - xml->at < 2 || xml->at[1] != '/')
        return true;
    if (xml->leaf && !text_unescape(xml, raw, &text))
        return false;
    xml->leaf = false;
    return xml->fn(xml->user, hf_str_of(xml->path, xml->path_len), text);
}

/* The text up to the next tag, kept when the caller asked for it. */
static bool read_text(struct xml *xml, const struct xml_want *wants, size_t wants_len)
{
    const char *to = memchr(xml->at, '<', (size_t)(xml->end - xml->at));
    struct hf_str raw;

    assert(xml->depth > 0 && (wants || !wants_len));
    if (!to)
        return false;
    raw = hf_str_of(xml->at, (size_t)(to - xml->at));
    xml->at = to;
    if (memchr(raw.ptr, '\0', raw.len))
        return false;
    if (xml->fn)
        return text_report(xml, raw);
    for (size_t i = 0; i < wants_len; i++)
        if (!wants[i].value->ptr &&
            hf_str_equal(hf_str_from(wants[i].path), hf_str_of(xml->path, xml->path_len)))
            return text_unescape(xml, raw, wants[i].value);
    return true;
}

/* ---- elements ------------------------------------------------------------------------------- */

static bool open_element(struct xml *xml)
{
    struct hf_str name;

    if (!take_name(xml, &name) || xml->depth == DEPTH_MAX ||
        xml->path_len + name.len + 1 > sizeof(xml->path) || !skip_attributes(xml))
        return false;
    if (xml_take(xml, HF_STR("/>"))) {
        xml->leaf = false;
        return true;
    }
    if (!xml_take(xml, HF_STR(">")))
        return false;
    xml->starts[xml->depth++] = xml->path_len;
    if (xml->path_len)
        xml->path[xml->path_len++] = '/';
    memcpy(xml->path + xml->path_len, name.ptr, name.len);
    xml->path_len += name.len;
    assert(xml->depth <= DEPTH_MAX && xml->path_len <= sizeof(xml->path));
    xml->leaf = true;
    xml_check(xml);
    return true;
}

static bool close_element(struct xml *xml)
{
    size_t start, from;

    assert(xml->depth > 0);
    xml_check(xml);
    start = xml->starts[xml->depth - 1];
    from = start ? start + 1 : 0;
    assert(from < xml->path_len);
    if (!xml_take(xml, hf_str_of(xml->path + from, xml->path_len - from)))
        return false;
    skip_spaces(xml);
    xml->path_len = start;
    xml->depth--;
    return xml_take(xml, HF_STR(">"));
}

static bool read_document(struct xml *xml, const struct xml_want *wants, size_t wants_len)
{
    if (xml_take(xml, HF_STR("<?xml "))) {
        const char *close = memmem(xml->at, (size_t)(xml->end - xml->at), "?>", 2);

        if (!close)
            return false;
        xml->at = close + 2;
    }
    skip_spaces(xml);
    if (!xml_take(xml, HF_STR("<")) || !open_element(xml))
        return false;
    while (xml->depth) {
        if (!read_text(xml, wants, wants_len))
            return false;
        if (xml_take(xml, HF_STR("</")) ? !close_element(xml)
                                        : !xml_take(xml, HF_STR("<")) || !open_element(xml))
            return false;
    }
    assert(xml->depth == 0 && xml->path_len == 0); /* (2) */
    skip_spaces(xml);
    return xml->at == xml->end;
}

enum hf_status hf__xml_read(struct hf_scope *s, struct hf_str text, const struct xml_want *wants,
                            size_t wants_len)
{
    struct xml xml = {.scope = s, .at = text.ptr, .end = text.ptr + text.len};

    assert(wants && wants_len > 0);
    if (text.len && read_document(&xml, wants, wants_len))
        return HF_OK;
    for (size_t i = 0; i < wants_len; i++)
        *wants[i].value = hf_str_of(NULL, 0);
    return xml.nomem ? hf__fail_nomem(s) : hf__fail(s, HF_INVALID, "invalid XML from STS");
}

enum hf_status hf__xml_walk(struct hf_scope *s, struct hf_str text, xml_element_fn *fn, void *user)
{
    struct xml xml = {
        .scope = s, .at = text.ptr, .end = text.ptr + text.len, .fn = fn, .user = user};

    assert(fn);
    if (text.len && read_document(&xml, NULL, 0))
        return HF_OK;
    return xml.nomem ? hf__fail_nomem(s) : hf__fail(s, HF_INVALID, "invalid XML from a service");
}
