/*
 * client/credentials_source.c: what sources of credentials share: requests that are repeated
 * within a limit, files, times, and the document that most of them answer with.
 *
 * What always holds:
 *
 *  (1) Nothing here waits beyond the scope or beyond source->until_us.
 *  (2) Nothing is larger than SOURCE_TEXT_MAX, whoever sends it.
 *  (3) A text from outside is part of an error only after hf__source_quote(), which drops it when
 *      it has a secret in it.
 */
#include "client/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/service.h"
#include "wire/wire.h"

enum {
    PAUSE_MS = 50, /* before the second attempt; doubles, and up to as much again at random */
    QUOTE_MAX = 300,
    DIRECT_CONNECT_MS = 3600 * 1000 /* the timeout of a call decides */
};

void hf__source_end(struct source *source)
{
    hf__transport_close(source->direct);
    hf__signer_free(source->signer);
}

/* ---- requests ------------------------------------------------------------------------------- */

int64_t hf__source_left_ms(struct hf_scope *s, const struct source *source, int64_t cap)
{
    int64_t left = hf__scope_left_ms(s, cap);

    assert(cap >= 0 && source->until_us >= 0);
    if (source->until_us) {
        int64_t until = (source->until_us - hf__env_elapsed_us(source->env)) / 1000;

        left = until < left ? until : left;
    }
    return left > 0 ? left : 0;
}

enum hf_status hf__source_direct(struct hf_scope *s, struct source *source,
                                 struct transport **transport)
{
    if (!source->direct)
        TRY(hf__transport_open(s,
                               &(struct transport_options){.env = source->env,
                                                           .connect_ms = DIRECT_CONNECT_MS,
                                                           .ca_file = hf__config_ca_bundle(
                                                               source->config)},
                               &source->direct));
    *transport = source->direct;
    return HF_OK;
}

static enum hf_status fill_head(struct hf_scope *s, struct source *source,
                                const struct source_call *call, struct http_head *head)
{
    struct hf_str query = call->target;

    assert(call->method && call->endpoint->host.len);
    assert(head->fields_len == 0 && call->fields_len <= ARRAY_LEN(call->fields));
    head->method = hf_str_from(call->method);
    head->target =
        hf_scope_format(s, "%.*s%.*s", HF_FMT(call->endpoint->path), HF_FMT(call->target));
    if (!head->target.ptr)
        return hf__fail_nomem(s);
    query.ptr = memchr(head->target.ptr, '?', head->target.len);
    head->path = head->target;
    assert(head->target.len && head->target.ptr[0] == '/');
    if (query.ptr) {
        head->path.len = (size_t)(query.ptr - head->target.ptr);
        head->query = hf_str_of(query.ptr + 1, head->target.len - head->path.len - 1);
    }
    head->host = call->endpoint->host;
    head->minor = 1;
    head->fields[head->fields_len++] = (struct http_field){HF_STR("Host"), call->endpoint->host};
    for (size_t i = 0; i < call->fields_len; i++)
        head->fields[head->fields_len++] = call->fields[i];
    if (!call->sign)
        return HF_OK;
    if (!source->signer)
        TRY(hf__signer_new(s, source->env, &source->signer));
    return hf__sign_request(s, source->signer, head,
                            &(struct sign_how){.credentials = call->sign,
                                               .region = call->endpoint->signing_region,
                                               .service = call->endpoint->signing_name,
                                               .now_s = hf__env_wall_us(source->env) / 1000000 +
                                                        source->skew_s,
                                               .body = call->body});
}

static enum hf_status source_attempt(struct hf_scope *s, struct source *source,
                                     const struct source_call *call, struct http_answer *answer)
{
    int64_t left_ms = hf__source_left_ms(s, source, call->timeout_ms);
    struct http_head *head = hf__scope_array(s, 1, sizeof(*head));

    assert(call->timeout_ms > 0);
    TRY(hf__scope_alive(s));
    if (!head)
        return hf__fail_nomem(s);
    if (left_ms == 0)
        return hf__fail(s, HF_IO, "No time was left to ask %s for credentials", call->what);
    TRY(fill_head(s, source, call, head));
    return hf__transport_call(s, call->transport,
                              &(struct transport_call){.origin = call->endpoint->origin,
                                                       .head = head,
                                                       .body = call->body,
                                                       .timeout_ms = (uint32_t)left_ms,
                                                       .answer_max = SOURCE_TEXT_MAX},
                              answer);
}

static bool is_passing(const struct http_answer *answer)
{
    return answer->status == 429 || answer->status >= 500;
}

/* Was it refused for the time that it was signed at? Then learn the service's. */
static bool learn_clock(struct source *source, const struct http_answer *answer)
{
    static const char *const codes[] = {"SignatureDoesNotMatch", "InvalidSignatureException",
                                        "RequestExpired", "RequestTimeTooSkewed"};
    int64_t skew_s = source->skew_s;
    bool refused = false;

    assert(answer->status != 0);
    if ((answer->status != 400 && answer->status != 403) ||
        !hf__service_clock_differs(source->env, answer, &skew_s))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(codes) && !refused; i++)
        refused = answer->body.len &&
                  memmem(answer->body.ptr, answer->body.len, codes[i], strlen(codes[i])) != NULL;
    if (refused)
        source->skew_s = skew_s;
    return refused;
}

/* The pause before attempt `nth`, from 2. */
static uint32_t pause_before(struct source *source, uint32_t nth)
{
    uint32_t ms = (uint32_t)PAUSE_MS << (nth < 8 ? nth - 2 : 6);
    uint32_t random;

    assert(nth >= 2);
    hf__env_random(source->env, &random, sizeof(random));
    return ms + (uint32_t)((uint64_t)ms * random >> 32);
}

enum hf_status hf__source_call(struct hf_scope *s, struct source *source,
                               const struct source_call *call, struct http_answer *answer)
{
    bool (*again)(const struct http_answer *) = call->again ? call->again : is_passing;
    enum hf_status status;
    bool corrected = false;

    assert(call->what && call->method && call->transport && call->endpoint && call->attempts);
    for (uint32_t nth = 1;; nth++) {
        bool last = nth >= call->attempts;
        uint32_t pause_ms;

        *answer = (struct http_answer){.status = 0};
        status = source_attempt(s, source, call, answer);
        if (status == HF_OK && call->sign && !corrected && learn_clock(source, answer)) {
            corrected = true;
            nth--;
            continue;
        }
        if (status == HF_OK && (last || !again(answer)))
            return HF_OK;
        if (status != HF_OK && (last || status != HF_IO || !hf_scope_error(s)->may_retry))
            break;
        pause_ms = pause_before(source, nth + 1);
        if (hf__source_left_ms(s, source, (int64_t)pause_ms + 1) <= pause_ms)
            break;
        TRY(hf_scope_sleep_ms(s, pause_ms));
    }
    if (status == HF_OK) /* the time is over, the answer is bad, and its reader says how */
        return HF_OK;
    if (status == HF_LIMIT)
        return hf__fail(s, HF_IO, "The answer of %s is too large to be credentials", call->what);
    if (status == HF_IO) {
        (void)hf_scope_fail_because(s, HF_IO, hf_scope_error(s),
                                    "%s could not be asked for credentials: %s", call->what,
                                    hf_scope_error_text(s));
        /* Nothing of the call that needs them has. */
        hf__scope_error_edit(s)->may_have_happened = false;
    }
    return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct hf_str text_trim(struct hf_str text)
{
    while (text.len && (unsigned char)text.ptr[text.len - 1] <= ' ')
        text.len--;
    while (text.len && (unsigned char)*text.ptr <= ' ')
        text = hf_str_of(text.ptr + 1, text.len - 1);
    return text;
}

static enum hf_status read_all(struct hf_scope *s, int fd, struct hf_str path, struct hf_str *text)
{
    struct stat info;
    char *room;
    size_t len = 0;
    ssize_t got;

    /* A pipe or a device might never end. */
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return hf__fail(s, HF_INVALID, "%.*s is not a file", HF_FMT(path));
    room = hf_scope_alloc(s, SOURCE_TEXT_MAX + 1);
    if (!room)
        return hf__fail_nomem(s);
    while (len <= SOURCE_TEXT_MAX && (got = read(fd, room + len, SOURCE_TEXT_MAX + 1 - len)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hf__fail(s, HF_IO, "Cannot read %.*s: %s", HF_FMT(path), strerror(errno));
        len += (size_t)got;
    }
    assert(len <= SOURCE_TEXT_MAX + 1);
    if (len > SOURCE_TEXT_MAX)
        return hf__fail(s, HF_INVALID, "%.*s has more than %d bytes", HF_FMT(path),
                        SOURCE_TEXT_MAX);
    *text = text_trim(hf_str_of(room, len));
    return HF_OK;
}

enum hf_status hf__source_file(struct hf_scope *s, struct hf_str path, bool *missing,
                               struct hf_str *text)
{
    struct hf_str name = hf_scope_copy(s, path);
    enum hf_status status;
    int fd;

    assert(path.ptr || !path.len);
    if (!name.ptr)
        return hf__fail_nomem(s);
    fd = open(name.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (missing)
        *missing = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return missing && *missing ? HF_OK
                                   : hf__fail(s, errno == ENOENT ? HF_INVALID : HF_IO,
                                              "Cannot open %s: %s", name.ptr, strerror(errno));
    status = read_all(s, fd, name, text);
    close(fd);
    return status;
}

/* Under another name first, so that no reader ever sees half of it. */
bool hf__source_write(struct hf_scope *s, struct hf_str path, struct hf_str text)
{
    struct hf_str name = hf_scope_copy(s, path);
    struct hf_str other = hf_scope_format(s, "%.*s.XXXXXX", HF_FMT(path));
    char *temporary = (char *)(uintptr_t)other.ptr; /* it is ours, and mkostemp() fills it in */
    size_t len = 0;
    bool done;
    int fd;

    assert(path.len && text.len);
    if (!name.ptr || !temporary)
        return false;
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return false;
    while (len < text.len) {
        ssize_t wrote = write(fd, text.ptr + len, text.len - len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            break;
        len += (size_t)wrote;
    }
    assert(len <= text.len);
    done = close(fd) == 0 && len == text.len && rename(temporary, name.ptr) == 0;
    if (!done)
        unlink(temporary);
    return done;
}

enum hf_status hf__source_home(struct hf_scope *s, struct source *source, struct hf_str *path,
                               const char *format, ...)
{
    struct hf_str home = hf__config_variable(source->config, "HOME");
    struct hf__buf buf = {.scope = s};
    va_list args;

    if (!home.len)
        return hf__fail(s, HF_INVALID, "HOME is not set, so there is no directory ~/.aws");
    hf__buf_put_str(&buf, home);
    hf__buf_put_str(&buf, HF_STR("/.aws/"));
    va_start(args, format);
    hf__buf_vformat(&buf, format, args);
    va_end(args);
    if (buf.failed)
        return hf__fail_nomem(s);
    *path = hf_str_of((char *)buf.ptr, buf.len);
    return HF_OK;
}

/* ---- texts ---------------------------------------------------------------------------------- */

struct hf_str hf__source_quote(struct hf_scope *s, struct hf_str text, const struct hf_str *secrets,
                               size_t secrets_len)
{
    assert(secrets || !secrets_len);
    for (size_t i = 0; i < secrets_len; i++)
        if (text.len && secrets[i].len &&
            memmem(text.ptr, text.len, secrets[i].ptr, secrets[i].len))
            return HF_STR("");
    return hf__service_printable(s, text_trim(text), QUOTE_MAX);
}

/* Digits from *at on, `count` of them; false when there is something else. */
static bool take_number(struct hf_str *at, size_t count, int *number)
{
    assert(count > 0 && count < 9); /* they fit an int */
    if (at->len < count)
        return false;
    *number = 0;
    for (size_t i = 0; i < count; i++) {
        if (at->ptr[i] < '0' || at->ptr[i] > '9')
            return false;
        *number = *number * 10 + (at->ptr[i] - '0');
    }
    *at = hf_str_of(at->ptr + count, at->len - count);
    return true;
}

static bool take_char(struct hf_str *at, const char *any_of)
{
    assert(any_of && any_of[0]);
    if (!at->len || !char_in(*at->ptr, any_of))
        return false;
    *at = hf_str_of(at->ptr + 1, at->len - 1);
    return true;
}

/* What follows the seconds: a fraction, then Z, UTC or +hh:mm, and nothing more. */
static bool take_zone(struct hf_str at, int64_t *offset_s)
{
    int digit, hours, minutes;
    bool west;

    *offset_s = 0;
    if (take_char(&at, "."))
        while (take_number(&at, 1, &digit))
            ;
    if (hf_str_equal(at, HF_STR("Z")) || hf_str_equal(at, HF_STR("UTC")))
        return true;
    west = at.len && *at.ptr == '-';
    if (!take_char(&at, "+-") || !take_number(&at, 2, &hours))
        return false;
    take_char(&at, ":");
    if (!take_number(&at, 2, &minutes) || at.len || hours > 23 || minutes > 59)
        return false;
    *offset_s = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

bool hf__source_time(struct hf_str text, int64_t *us)
{
    int year, month, day, hour, minute, second;
    char basic[SIGN_TIME + 1];
    int64_t seconds, offset_s;

    if (!take_number(&text, 4, &year) || !take_char(&text, "-") || !take_number(&text, 2, &month) ||
        !take_char(&text, "-") || !take_number(&text, 2, &day) || !take_char(&text, "Tt ") ||
        !take_number(&text, 2, &hour) || !take_char(&text, ":") ||
        !take_number(&text, 2, &minute) || !take_char(&text, ":") ||
        !take_number(&text, 2, &second) || !take_zone(text, &offset_s))
        return false;
    snprintf(basic, sizeof(basic), "%04u%02u%02uT%02u%02u%02uZ", (unsigned)year % 10000,
             (unsigned)month % 100, (unsigned)day % 100, (unsigned)hour % 100,
             (unsigned)minute % 100, (unsigned)second % 100);
    if (!hf__sign_time(hf_str_of(basic, SIGN_TIME), &seconds))
        return false;
    assert(offset_s > -86400 && offset_s < 86400);
    *us = (seconds - offset_s) * 1000000;
    *us += *us == 0; /* 0 would be never */
    assert(*us != 0);
    return true;
}

/* ---- the document with keys ----------------------------------------------------------------- */

struct keys_document {
    int64_t version;
    struct hf_str code;
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token;
    struct hf_str token;
    struct hf_str expiration;
    struct hf_str account;
};

#define AT(member) (uint16_t) offsetof(struct keys_document, member)

static const struct field keys_list[] = {
    {.name = "Version", .kind = FIELD_INT, .at = AT(version)},
    {.name = "Code", .kind = FIELD_STR, .at = AT(code)},
    {.name = "AccessKeyId", .kind = FIELD_STR, .at = AT(access_key)},
    {.name = "SecretAccessKey", .kind = FIELD_STR, .at = AT(secret_key)},
    {.name = "SessionToken", .kind = FIELD_STR, .at = AT(session_token)},
    {.name = "Token", .kind = FIELD_STR, .at = AT(token)},
    {.name = "Expiration", .kind = FIELD_STR, .at = AT(expiration)},
    {.name = "AccountId", .kind = FIELD_STR, .at = AT(account)},
};

static const struct fields keys_fields = {"Credentials", keys_list, ARRAY_LEN(keys_list),
                                          sizeof(struct keys_document)};

enum hf_status hf__source_read_keys(struct hf_scope *s, enum source_form form, struct hf_str json,
                                    struct source_keys *keys)
{
    struct keys_document is = {.version = 0};
    enum hf_status status = hf__wire_read(s, &keys_fields, json, &is);

    assert(keys->origin && form >= SOURCE_PROCESS && form <= SOURCE_METADATA);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK)
        return hf__fail(s, HF_INVALID, "The answer of %s is not valid JSON of credentials",
                        keys->origin);
    if (form == SOURCE_PROCESS && is.version != 1)
        return hf__fail(s, HF_INVALID, "The answer of %s does not have \"Version\": 1",
                        keys->origin);
    if (form == SOURCE_METADATA && is.code.ptr && !hf_str_equal(is.code, HF_STR("Success")))
        return hf__fail(s, HF_IO, "%s has no credentials now: %s", keys->origin,
                        hf__source_quote(s, is.code, NULL, 0).ptr);
    if (!is.access_key.len || !is.secret_key.len)
        return hf__fail(s, HF_INVALID, "The answer of %s has no %s", keys->origin,
                        is.access_key.len ? "SecretAccessKey" : "AccessKeyId");
    keys->access_key = is.access_key;
    keys->secret_key = is.secret_key;
    keys->session_token = form == SOURCE_PROCESS ? is.session_token : is.token;
    keys->account = is.account;
    if (is.expiration.len && !hf__source_time(is.expiration, &keys->expires_us))
        return hf__fail(s, HF_INVALID, "The answer of %s has an invalid Expiration", keys->origin);
    return HF_OK;
}
