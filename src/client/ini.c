/*
 * client/ini.c: read AWS's dialect of ini.
 *
 *     # comment                          ; comment
 *     [profile "two words"]              # default, profile NAME, sso-session NAME, services NAME
 *     region = eu-west-1 # comment       a blank and # or ; end the value
 *     role_arn =                         an empty value; and as indented lines follow ...
 *     dynamodb =
 *       endpoint_url = http://...        ... a table of its own
 *     note = one
 *       two                              a value of two lines, "one\ntwo"
 *
 * AWS's SDKs agree on most of it, and where they do not we take the reading that loses nothing: a
 * file that is indented as a whole is read like botocore does, comments behind a value are comments
 * like everywhere else. A line belongs to the setting above it when it is indented deeper than
 * that. Sections that are none of ours, and invalid names, are passed over with all in them.
 *
 * What always holds:
 *
 *  (1) The last of two settings with the same name wins, and sections of the same name are one;
 *      [profile default] replaces [default].
 *  (2) Time and memory grow with the length of the text alone. Values are put together in place: a
 *      value of many lines is never longer than the lines were.
 *  (3) Errors say file and line, and nothing of what is written there: it may be a secret.
 */
#include "client/ini.h"

#include "base/utf8.h"

#include <assert.h>

struct reader {
    struct hf_scope *s;
    struct hf_scope *memory;
    enum ini_file file;
    const char *path;
    unsigned line;
    struct ini *ini;
    size_t first; /* entry of this file */

    bool in_section;
    struct ini_entry section; /* kind, bare and name for the entries to come */
    bool in_setting;          /* deeper lines belong to the newest key */
    size_t indent;            /* of that key */
    size_t setting;           /* its entry */
    bool in_table;            /* its value was empty, and a line below it came */
};

/* A deeper line has a setting above it, and that is in the list; a table belongs to one. */
static void reader_check(const struct reader *r)
{
    assert(r->ini->len <= r->ini->cap && r->first <= r->ini->len);
    assert(!r->in_setting || r->in_section);
    assert(!r->in_setting || (r->setting >= r->first && r->setting < r->ini->len));
    assert(!r->in_table || r->in_setting);
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_comment(char c)
{
    return c == '#' || c == ';';
}

static struct hf_str text_trim(struct hf_str text)
{
    while (text.len && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

/* Without a comment, which begins behind a blank. */
static struct hf_str without_comment(struct hf_str text)
{
    assert(text.ptr || !text.len);
    for (size_t i = 1; i < text.len; i++)
        if (is_comment(text.ptr[i]) && is_blank(text.ptr[i - 1])) {
            text.len = i;
            break;
        }
    return text_trim(text);
}

/*
 * The one word of a text, its quotes and backslashes taken out in place as a shell would; absent
 * when there is none, or more than one, or a quote stays open.
 */
static struct hf_str one_word(struct hf_str text)
{
    char *at = (char *)(uintptr_t)text.ptr;
    size_t len = 0;
    char quote = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!quote && is_blank(c))
            return (struct hf_str){0};
        if (c == quote && quote) {
            quote = 0;
            continue;
        }
        if (!quote && (c == '"' || c == '\'')) {
            quote = c;
            continue;
        }
        if (c == '\\' && quote != '\'') {
            char next = i + 1 < text.len ? text.ptr[i + 1] : 0;

            if (!next)
                return (struct hf_str){0};
            if (!quote || next == '"' || next == '\\') {
                c = next;
                i++;
            }
        }
        at[len++] = c;
    }
    assert(len <= text.len); /* it is put together in place (2) */
    return quote || !text.len ? (struct hf_str){0} : hf_str_of(text.ptr, len);
}

/* ---- entries -------------------------------------------------------------------------------- */

/* (3): the words are ours. */
static enum hf_status reader_fail(struct reader *r, const char *format, ...) HF_PRINTF(2, 3);

static enum hf_status reader_fail(struct reader *r, const char *format, ...)
{
    char text[120];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return hf__fail(r->s, HF_INVALID, "%s:%u: %s", r->path, r->line, text);
}

static enum hf_status entry_add(struct reader *r, struct hf_str key, struct hf_str sub,
                                struct hf_str value)
{
    struct ini *ini = r->ini;
    struct ini_entry *entry;

    if (ini->len == ini->cap) {
        size_t cap = ini->cap ? ini->cap * 2 : 64;
        struct ini_entry *list =
            hf__scope_grow(r->memory, ini->list, ini->cap * sizeof(*list), cap * sizeof(*list));

        if (!list)
            return hf__fail_nomem(r->s);
        ini->list = list;
        ini->cap = cap;
    }
    assert(ini->len < ini->cap);
    entry = &ini->list[ini->len++];
    *entry = r->section;
    entry->key = key;
    entry->sub = sub;
    entry->value = value;
    return HF_OK;
}

static const struct hf_str none; /* absent */

/* What stands between the brackets, as kind and name. */
static void name_section(struct reader *r, struct hf_str name)
{
    static const struct {
        const char *word;
        enum ini_kind kind;
    } kinds[] = {{"profile", INI_PROFILE},
                 {"sso-session", INI_SSO_SESSION},
                 {"services", INI_SERVICES}};
    struct hf_str rest;

    assert(r->file == INI_CONFIG || r->file == INI_CREDENTIALS);
    r->section = (struct ini_entry){.kind = INI_OTHER};
    if (r->file == INI_CREDENTIALS || hf_str_equal(name, HF_STR("default"))) {
        if (name.len)
            r->section = (struct ini_entry){.kind = INI_PROFILE,
                                            .bare = r->file == INI_CONFIG,
                                            .section = name};
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct hf_str word;

        if (!str_after(name, hf_str_from(kinds[i].word), &rest) || !rest.len ||
            !is_blank(*rest.ptr))
            continue;
        word = one_word(text_trim(rest));
        if (word.len)
            r->section = (struct ini_entry){.kind = kinds[i].kind, .section = word};
        return;
    }
}

/* Where the name of a section ends: at the first bracket outside of quotes, or else, as there are
 * names and comments with an apostrophe, at the first; 0 when there is none. In the credentials
 * file a name is never quoted. */
static size_t find_bracket(enum ini_file file, struct hf_str line)
{
    const char *first = memchr(line.ptr, ']', line.len);
    char quote = 0;

    assert(line.len && line.ptr[0] == '[');
    for (size_t i = 1; i < line.len && file == INI_CONFIG; i++) {
        char c = line.ptr[i];

        if (c == '\\' && quote != '\'')
            i++; /* as in one_word() */
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == ']')
            return i;
    }
    return first ? (size_t)(first - line.ptr) : 0;
}

static enum hf_status take_section(struct reader *r, struct hf_str line)
{
    size_t end = find_bracket(r->file, line);
    struct hf_str rest;

    if (!end)
        return reader_fail(r, "the name of a section ends with a ']'");
    rest = text_trim(hf_str_of(line.ptr + end + 1, line.len - end - 1));
    if (rest.len && !is_comment(rest.ptr[0]))
        return reader_fail(r, "only a comment may follow the name of a section");
    name_section(r, text_trim(hf_str_of(line.ptr + 1, end - 1)));
    r->in_section = true;
    r->in_setting = r->in_table = false;
    return entry_add(r, none, none, none);
}

static enum hf_status line_split(struct reader *r, struct hf_str line, const char *what,
                                 struct hf_str *key, struct hf_str *value)
{
    const char *equals;
    size_t len;

    assert(line.len > 0 && what);
    line = without_comment(line);
    equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
    if (!equals)
        return reader_fail(r, "%s is written NAME = VALUE", what);
    len = (size_t)(equals - line.ptr);
    *key = text_trim(hf_str_of(line.ptr, len));
    *value = text_trim(hf_str_of(equals + 1, line.len - len - 1));
    return key->len ? HF_OK : reader_fail(r, "%s has no name before its '='", what);
}

static enum hf_status take_setting(struct reader *r, struct hf_str line, size_t indent)
{
    struct hf_str key, value;

    assert(line.len > 0 && !is_blank(line.ptr[0]));
    if (!r->in_section)
        return reader_fail(r, "a setting before the first [SECTION]");
    TRY(line_split(r, line, "a setting", &key, &value));
    r->in_setting = true;
    r->in_table = false;
    r->indent = indent;
    r->setting = r->ini->len;
    return entry_add(r, key, none, value);
}

/* (2): the line moves to the end of the value, which lies before it in the same text. */
static void append_line(struct hf_str *value, struct hf_str line)
{
    char *end = (char *)(uintptr_t)value->ptr + value->len;

    assert(end + 1 <= line.ptr);
    *end = '\n';
    memmove(end + 1, line.ptr, line.len);
    value->len += 1 + line.len;
}

/* A line that is indented deeper than the setting above it. */
static enum hf_status take_deeper(struct reader *r, struct hf_str line)
{
    struct ini_entry *setting = &r->ini->list[r->setting];
    struct hf_str key, value;

    assert(r->in_setting && r->setting < r->ini->len);
    if (!r->in_table && setting->value.len) {
        append_line(&setting->value, line);
        return HF_OK;
    }
    r->in_table = true;
    TRY(line_split(r, line, "a setting in a table", &key, &value));
    return entry_add(r, setting->key, key, value);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static enum hf_status take_line(struct reader *r, struct hf_str whole)
{
    struct hf_str line = text_trim(whole);
    size_t indent;

    reader_check(r);
    assert(r->line > 0);
    if (whole.len > INI_LINE_MAX)
        return reader_fail(r, "the line is longer than %d bytes", INI_LINE_MAX);
    if (memchr(whole.ptr, 0, whole.len))
        return reader_fail(r, "the line has a NUL byte in it");
    if (!hf__utf8_valid(whole))
        return reader_fail(r, "the line is not UTF-8");
    if (!line.len || is_comment(line.ptr[0]))
        return HF_OK;
    indent = (size_t)(line.ptr - whole.ptr);
    if (r->in_setting && indent > r->indent)
        return take_deeper(r, line);
    return line.ptr[0] == '[' ? take_section(r, line) : take_setting(r, line, indent);
}

/* (1): when this file has a [profile default], forget its [default]. */
static void drop_bare(struct reader *r)
{
    struct ini *ini = r->ini;
    size_t kept = r->first;
    bool named = false;

    for (size_t i = r->first; i < ini->len; i++)
        named = named || (ini->list[i].kind == INI_PROFILE && !ini->list[i].bare &&
                          hf_str_equal(ini->list[i].section, HF_STR("default")));
    if (!named || r->file != INI_CONFIG)
        return;
    for (size_t i = r->first; i < ini->len; i++)
        if (!ini->list[i].bare)
            ini->list[kept++] = ini->list[i];
    ini->len = kept;
}

enum hf_status hf__ini_parse(struct hf_scope *s, struct hf_scope *memory, enum ini_file file,
                             const char *path, char *text, size_t len, struct ini *ini)
{
    struct reader r = {
        .s = s, .memory = memory, .file = file, .path = path, .ini = ini, .first = ini->len};
    struct hf_str left = hf_str_of(text, len);

    str_after(left, HF_STR("\xEF\xBB\xBF"), &left); /* the mark that some editors begin with */
    while (left.len) {
        const char *end = memchr(left.ptr, '\n', left.len);
        size_t line_len = end ? (size_t)(end - left.ptr) : left.len;
        size_t step = line_len + (end != NULL);

        r.line++;
        TRY(take_line(&r, hf_str_of(left.ptr, line_len)));
        assert(step > 0 && step <= left.len);
        left = hf_str_of(left.ptr + step, left.len - step);
    }
    reader_check(&r);
    drop_bare(&r);
    assert(ini->len >= r.first); /* of another file none is dropped */
    return HF_OK;
}

/* ---- questions ------------------------------------------------------------------------------ */

static bool is_key(struct hf_str key, const char *name)
{
    return key.ptr && str_is_any_case(key, name);
}

static bool is_of(const struct ini_entry *entry, enum ini_kind kind, struct hf_str section)
{
    return entry->kind == kind && hf_str_equal(entry->section, section);
}

struct hf_str hf__ini_find(const struct ini *ini, enum ini_kind kind, struct hf_str section,
                           const char *key, const char *sub)
{
    struct hf_str found = none;

    assert(key);
    for (size_t i = 0; i < ini->len; i++) {
        const struct ini_entry *entry = &ini->list[i];

        if (!is_of(entry, kind, section) || !is_key(entry->key, key))
            continue;
        if (!entry->sub.ptr)
            found = sub ? none : entry->value; /* (1): with it, its table starts over */
        else if (sub && is_key(entry->sub, sub))
            found = entry->value;
    }
    return found;
}

bool hf__ini_has(const struct ini *ini, enum ini_kind kind, struct hf_str section)
{
    assert(kind != INI_OTHER);
    for (size_t i = 0; i < ini->len; i++)
        if (is_of(&ini->list[i], kind, section))
            return true;
    return false;
}
