/*
 * test/fuzz/fuzz_ini.c: client/ini.c on any text, and client/endpoint.c on any URL.
 *
 * The input is one of AWS's files, read as either of the two:
 *
 *  - it is read, or refused with a sentence of ours that names the line;
 *  - what was read lies inside of the text, is UTF-8, has names, and tables stand behind their key;
 *  - the newest of each is what is found;
 *  - written down again it is read as the same.
 *
 * Its first line is also a URL: the endpoint that comes of it has nothing but plain characters, and
 * its own origin gives it again.
 */
#include "client/ini.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "client/config.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- what was read -------------------------------------------------------------------------- */

static void check_text(struct hf_str part, const char *text, size_t len)
{
    MUST(part.ptr >= text && part.ptr + part.len <= text + len);
    MUST(hf__utf8_valid(part));
    MUST(!part.len || !memchr(part.ptr, 0, part.len));
}

static bool is_same(struct hf_str a, struct hf_str b)
{
    return !a.ptr == !b.ptr && hf_str_equal(a, b);
}

static void check_entry(const struct ini *ini, size_t i, const char *text, size_t len)
{
    const struct ini_entry *entry = &ini->list[i];

    MUST((entry->kind == INI_OTHER) == !entry->section.ptr);
    if (entry->section.ptr)
        check_text(entry->section, text, len);
    MUST(entry->key.ptr || !entry->sub.ptr);
    if (!entry->key.ptr)
        return;
    MUST(entry->key.len > 0);
    check_text(entry->key, text, len);
    check_text(entry->value, text, len);
    if (!entry->sub.ptr)
        return;
    MUST(entry->sub.len > 0);
    check_text(entry->sub, text, len);
    MUST(i > 0 && is_same(ini->list[i - 1].key, entry->key));
    MUST(ini->list[i - 1].sub.ptr || !ini->list[i - 1].value.len);
}

/* Of the newest entries only: there may be many. */
static void check_found(struct hf_scope *s, const struct ini *ini)
{
    size_t looked = 0;

    for (size_t i = ini->len; i > 0 && looked < 3; i--) {
        const struct ini_entry *entry = &ini->list[i - 1];
        struct hf_str key, sub, value;
        bool newest = true;

        if (!entry->key.ptr || entry->kind == INI_OTHER)
            continue;
        looked++;
        key = hf_scope_copy(s, entry->key);
        sub = entry->sub.ptr ? hf_scope_copy(s, entry->sub) : entry->sub;
        value = hf__ini_find(ini, entry->kind, entry->section, key.ptr, sub.ptr);
        MUST(hf__ini_has(ini, entry->kind, entry->section));
        for (size_t j = i; j < ini->len; j++)
            newest = newest && ini->list[j].kind == INI_OTHER;
        if (newest)
            MUST(is_same(value, entry->value));
    }
}

/* ---- once more ------------------------------------------------------------------------------ */

static void write_section(struct hf__buf *out, enum ini_file file, const struct ini_entry *entry)
{
    static const char *const words[] = {
        [INI_PROFILE] = "profile", [INI_SSO_SESSION] = "sso-session", [INI_SERVICES] = "services"};

    if (file == INI_CREDENTIALS || entry->bare) {
        hf__buf_format(out, "[%.*s]\n", HF_FMT(entry->section));
        return;
    }
    hf__buf_format(out, "[%s \"", words[entry->kind]);
    for (size_t i = 0; i < entry->section.len; i++) {
        if (entry->section.ptr[i] == '"' || entry->section.ptr[i] == '\\')
            hf__buf_put_byte(out, '\\');
        hf__buf_put_byte(out, (uint8_t)entry->section.ptr[i]);
    }
    hf__buf_format(out, "\"]\n");
}

static struct hf__buf write_down(struct hf_scope *s, enum ini_file file, const struct ini *ini)
{
    struct hf__buf out = {.scope = s};

    for (size_t i = 0; i < ini->len; i++) {
        const struct ini_entry *entry = &ini->list[i];

        if (entry->kind == INI_OTHER)
            continue;
        if (!entry->key.ptr) {
            write_section(&out, file, entry);
            continue;
        }
        if (entry->sub.ptr)
            hf__buf_format(&out, " %.*s=", HF_FMT(entry->sub));
        else
            hf__buf_format(&out, "%.*s=", HF_FMT(entry->key));
        for (size_t at = 0; at < entry->value.len; at++) {
            hf__buf_put_byte(&out, (uint8_t)entry->value.ptr[at]);
            if (entry->value.ptr[at] == '\n')
                hf__buf_put_byte(&out, ' ');
        }
        hf__buf_put_byte(&out, '\n');
    }
    MUST(!out.failed);
    return out;
}

static void check_again(struct hf_scope *s, enum ini_file file, const struct ini *ini)
{
    struct hf__buf text = write_down(s, file, ini);
    struct ini again = {0};
    size_t at = 0;

    MUST(hf__ini_parse(s, s, file, "again", (char *)text.ptr, text.len, &again) == HF_OK);
    for (size_t i = 0; i < ini->len; i++) {
        const struct ini_entry *was = &ini->list[i], *is;

        if (was->kind == INI_OTHER)
            continue;
        MUST(at < again.len);
        is = &again.list[at++];
        MUST(is->kind == was->kind && is->bare == was->bare);
        MUST(is_same(is->section, was->section) && is_same(is->key, was->key));
        MUST(is_same(is->sub, was->sub) && is_same(is->value, was->value));
    }
    MUST(at == again.len);
}

static void check_file(struct hf_scope *s, enum ini_file file, const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1);
    struct ini ini = {0};
    enum hf_status status;
    unsigned line;

    MUST(text != NULL);
    if (size)
        memcpy(text, data, size);
    hf_scope_reset(s);
    status = hf__ini_parse(s, s, file, "f", text, size, &ini);
    MUST(status == HF_OK || status == HF_INVALID);
    if (status == HF_OK) {
        for (size_t i = 0; i < ini.len; i++)
            check_entry(&ini, i, text, size);
        check_found(s, &ini);
        if (size < INI_LINE_MAX / 2) /* escapes may make a line twice as long */
            check_again(s, file, &ini);
    } else {
        MUST(sscanf(hf_scope_error_text(s), "f:%u: ", &line) == 1);
        MUST(line >= 1 && line <= size + 1);
    }
    free(text);
}

/* ---- URLs ----------------------------------------------------------------------------------- */

static void check_url(struct hf_scope *s, struct hf_str url)
{
    struct endpoint endpoint, again;
    enum hf_status status;

    hf_scope_reset(s);
    status = hf__endpoint_of_url(s, url, &endpoint);
    MUST(status == HF_OK || status == HF_INVALID);
    MUST((status == HF_OK) == (endpoint.origin.ptr != NULL));
    if (status != HF_OK)
        return;
    for (size_t i = 0; i < endpoint.origin.len; i++)
        MUST(endpoint.origin.ptr[i] > ' ' && endpoint.origin.ptr[i] <= '~' &&
             !strchr("?#@\\\"", endpoint.origin.ptr[i]));
    for (size_t i = 0; i < endpoint.path.len; i++)
        MUST(endpoint.path.ptr[i] > ' ' && endpoint.path.ptr[i] <= '~');
    MUST(!endpoint.path.len || endpoint.path.ptr[0] == '/');
    MUST(hf__endpoint_of_url(s, endpoint.origin, &again) == HF_OK);
    MUST(is_same(again.origin, endpoint.origin) && is_same(again.host, endpoint.host));
    MUST(is_same(again.signing_region, endpoint.signing_region) && !again.path.len);
    MUST(hf__endpoint_is_loopback(&again) == hf__endpoint_is_loopback(&endpoint));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;

    MUST(s != NULL);
    check_file(s, INI_CONFIG, data, size);
    check_file(s, INI_CREDENTIALS, data, size);
    check_url(s, hf_str_of((const char *)data, end ? (size_t)(end - data) : size));
    hf_scope_free(s);
    return 0;
}
