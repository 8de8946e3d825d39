/*
 * sinks/sink_webhook.c: a POST for each event.
 *
 *     webhook:https://example.com/hooks/{type}?secret_env=HOOK_SECRET
 *
 * form=payload, the default, is the binary mode of CloudEvents: the payload is the body, and
 * attributes are fields that begin with "ce-". form=event sends the JSON object of hf_event_json(),
 * form=outbox-event-bus that of bus_message.c.
 *
 * With a secret, requests are signed as Standard Webhooks has it:
 *
 *     webhook-id          the id of the event, the same in every attempt
 *     webhook-timestamp   seconds since 1970 of this attempt
 *     webhook-signature   "v1," and base64 of HMAC-SHA256 over "id.timestamp.body", for each secret
 *
 * Secrets that begin with "whsec_" are base64, all others are taken as they are. While one is
 * replaced by another, both sign.
 *
 * What an answer means is a table by its status:
 *
 *     ok       200-299                  done
 *     retry    408, 425, 500-599        retry this event
 *     outage   429, 300-399             the receiver accepts no events for now, or has moved
 *     all others                        this event is refused for good
 *
 * "Retry-After" with a status of "retry" makes it an outage that lasts so long. A receiver that cannot
 * be reached is an outage, too. If the connection broke after the request was sent, or the answer did
 * not come in time, the event has failed, as the event may be what crashes the receiver.
 *
 * What always holds:
 *
 *  (1) Texts of an event are never part of the host, and percent-encoded in the path.
 *  (2) No field has a line end or a character outside of ASCII in it: values are percent-encoded as
 *      CloudEvents' binding to HTTP has it. Redirects are not followed.
 *  (3) Secrets are never part of an error or a log line.
 */
#include "sinks/private.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "client/config.h"
#include "http/transport.h"

enum {
    TIMEOUT_MS = 10000,
    ANSWER_MAX = 64 * 1024,
    QUOTE_MAX = 200, /* bytes of an answer that a failure shows */
    SECRETS_MAX = 8,
    SECRET_MAX = 4096,
    FIELDS_OWN = 16, /* header fields that are not attributes of the event */
    MAC = 32,
    RETRY_AFTER_MAX_S = 3600
};

enum meaning { REFUSED, DONE, RETRY, OUTAGE };

struct options {
    int form;
    struct hf_str secret, secret_env, secret_file;
    struct hf_str authorization, authorization_env;
    struct hf_str query;
    struct hf_str ok, retry, outage;
    struct hf_str ca_file, proxy;
    enum hf_flag insecure;
    uint64_t timeout_ms, connect_ms;
};

enum { HOOK_PAYLOAD = 1, HOOK_EVENT, HOOK_BUS };

struct webhook {
    struct hf_env env;
    struct options options;
    struct transport *transport;
    struct endpoint endpoint;
    struct template target;
    struct hf_str agent;
    struct hf_str authorization;
    struct {
        uint8_t *ptr;
        size_t len;
    } secrets[SECRETS_MAX];
    size_t secrets_len;
    uint8_t meanings[600]; /* enum meaning, by status */
};

#define AT(member) offsetof(struct options, member)

static const struct sink_option options[] = {
    {"form", SINK_WORD, AT(form), 0, 0, "payload|event|outbox-event-bus"},
    {"secret", SINK_TEXT, AT(secret), 0, 0, NULL},
    {"secret_env", SINK_TEXT, AT(secret_env), 0, 0, NULL},
    {"secret_file", SINK_TEXT, AT(secret_file), 0, 0, NULL},
    {"authorization", SINK_TEXT, AT(authorization), 0, 0, NULL},
    {"authorization_env", SINK_TEXT, AT(authorization_env), 0, 0, NULL},
    {"query", SINK_TEXT, AT(query), 0, 0, NULL},
    {"ok", SINK_TEXT, AT(ok), 0, 0, NULL},
    {"retry", SINK_TEXT, AT(retry), 0, 0, NULL},
    {"outage", SINK_TEXT, AT(outage), 0, 0, NULL},
    {"ca_file", SINK_TEXT, AT(ca_file), 0, 0, NULL},
    {"proxy", SINK_TEXT, AT(proxy), 0, 0, NULL},
    {"insecure", SINK_YES_NO, AT(insecure), 0, 0, NULL},
    {"timeout_ms", SINK_NUMBER, AT(timeout_ms), 1, 0, NULL},
    {"connect_ms", SINK_NUMBER, AT(connect_ms), 1, 0, NULL},
};

/* ---- fields --------------------------------------------------------------------------------- */

static bool is_visible(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 127)
            return false;
    return text.len > 0;
}

/* Can the text be a header field as it is: visible, with blanks only inside? */
static bool is_field_value(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] >= 127)
            return false;
    return text.len > 0 && text.ptr[0] != ' ' && text.ptr[text.len - 1] != ' ';
}

/* (2) */
static struct hf_str encode_value(struct hf_scope *s, struct hf_str value)
{
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if (c > ' ' && c < 127 && c != '"' && c != '%')
            hf__buf_put_byte(&buf, c);
        else
            hf__buf_format(&buf, "%%%02X", c);
    }
    return buf.failed ? (struct hf_str){0} : hf_str_of((const char *)buf.ptr, buf.len);
}

static void field_add(struct http_head *head, const char *name, struct hf_str value)
{
    assert(head->fields_len < HTTP_FIELDS_MAX);
    if (value.len)
        head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

static enum hf_status add_attributes(struct hf_scope *s, const struct hf_event *event,
                                     struct http_head *head)
{
    const struct event_attribute *list;
    size_t len;

    TRY(hf__sink_event_attributes(s, event, &list, &len));
    if (len + FIELDS_OWN > HTTP_FIELDS_MAX)
        return hf__fail(s, HF_LIMIT, "it has too many headers for a request");
    for (size_t i = 0; i < len; i++) {
        struct hf_str name, value;

        if (hf_str_equal(list[i].name, HF_STR("datacontenttype")))
            continue;
        name = hf_scope_format(s, "ce-%.*s", HF_FMT(list[i].name));
        value = encode_value(s, list[i].value);
        if (!name.ptr || !value.ptr)
            return hf__fail_nomem(s);
        field_add(head, name.ptr, value);
    }
    return HF_OK;
}

/* ---- signatures ----------------------------------------------------------------------------- */

static enum hf_status body_sign(struct hf_scope *s, const struct webhook *hook, struct hf_str id,
                                struct hf_str timestamp, struct hf_bytes body,
                                struct hf_str *signature)
{
    struct hf__buf text = {.scope = s}, out = {.scope = s};

    assert(hook->secrets_len > 0 && hook->secrets_len <= SECRETS_MAX);
    hf__buf_reserve(&text, id.len + timestamp.len + body.len + 2);
    hf__buf_put_str(&text, id);
    hf__buf_put_byte(&text, '.');
    hf__buf_put_str(&text, timestamp);
    hf__buf_put_byte(&text, '.');
    hf__buf_put(&text, body.ptr, body.len);
    if (text.failed)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < hook->secrets_len; i++) {
        char base64[(MAC + 2) / 3 * 4];
        uint8_t mac[MAC];
        unsigned mac_len = MAC;

        if (!HMAC(EVP_sha256(), hook->secrets[i].ptr, (int)hook->secrets[i].len, text.ptr, text.len,
                  mac, &mac_len))
            return hf__fail_nomem(s);
        assert(mac_len == MAC && hf__base64_encoded_len(MAC) == sizeof(base64));
        hf__base64_encode(hf_bytes_of(mac, MAC), base64);
        hf__buf_put_str(&out, i ? HF_STR(" v1,") : HF_STR("v1,"));
        hf__buf_put(&out, base64, sizeof(base64));
    }
    if (out.failed)
        return hf__fail_nomem(s);
    *signature = hf_str_of((const char *)out.ptr, out.len);
    return HF_OK;
}

static enum hf_status add_signature(struct hf_scope *s, const struct webhook *hook,
                                    const struct hf_event *event, struct hf_bytes body,
                                    struct http_head *head)
{
    struct hf_str id = is_visible(event->id) ? event->id : encode_value(s, event->id);
    struct hf_str now =
        hf_scope_format(s, "%lld", (long long)(hf__env_wall_us(&hook->env) / 1000000));
    struct hf_str signature = {NULL, 0};

    if (!id.ptr || !now.ptr)
        return hf__fail_nomem(s);
    if (hook->secrets_len)
        TRY(body_sign(s, hook, id, now, body, &signature));
    field_add(head, "webhook-id", id);
    field_add(head, "webhook-timestamp", now);
    field_add(head, "webhook-signature", signature);
    return HF_OK;
}

/* ---- the request ---------------------------------------------------------------------------- */

static enum hf_status make_body(struct hf_scope *s, const struct webhook *hook,
                                const struct hf_event *event, struct http_head *head,
                                struct hf_bytes *body)
{
    struct hf_str type = hf__sink_event_content_type(event);
    struct hf_str json;

    if (hook->options.form == HOOK_BUS) {
        TRY(hf__sink_bus_message_json(s, event, &json));
        *body = hf_bytes_of(json.ptr, json.len);
        field_add(head, "Content-Type", HF_STR("application/json"));
        return HF_OK;
    }
    if (hook->options.form == HOOK_EVENT) {
        TRY(hf_event_json(s, event, &json));
        *body = hf_bytes_of(json.ptr, json.len);
        field_add(head, "Content-Type", HF_STR("application/cloudevents+json; charset=utf-8"));
        return HF_OK;
    }
    if (!is_field_value(type))
        return hf__fail(s, HF_INVALID, "its content type is not valid in a header field");
    *body = event->payload;
    field_add(head, "Content-Type", type);
    return add_attributes(s, event, head);
}

static enum hf_status request_build(struct hf_scope *s, const struct webhook *hook,
                                    const struct hf_event *event, struct http_head *head,
                                    struct hf_bytes *body)
{
    head->method = HF_STR("POST");
    TRY(hf__template_fill_url(s, &hook->target, event, &head->target)); /* (1) */
    head->path = head->target;
    field_add(head, "Host", hook->endpoint.host);
    field_add(head, "User-Agent", hook->agent);
    field_add(head, "Authorization", hook->authorization);
    TRY(make_body(s, hook, event, head, body));
    if (is_field_value(event->trace_parent)) {
        field_add(head, "traceparent", event->trace_parent);
        if (is_field_value(event->trace_state))
            field_add(head, "tracestate", event->trace_state);
    }
    return add_signature(s, hook, event, *body, head);
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* Retry-After in seconds or as a date; 0: there is none, or it is invalid or over. */
static uint32_t retry_after_ms(const struct webhook *hook, const struct http_answer *answer)
{
    struct hf_str text = hf__http_answer_field(answer, "retry-after");
    int64_t seconds = 0;
    char copy[40];
    const char *end;
    struct tm tm;

    if (!text.len || text.len >= sizeof(copy))
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    memset(&tm, 0, sizeof(tm));
    if (strspn(copy, "0123456789") == text.len) {
        for (size_t i = 0; i < text.len && seconds <= RETRY_AFTER_MAX_S; i++)
            seconds = seconds * 10 + (copy[i] - '0');
    } else {
        end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        if (end != copy + text.len)
            return 0;
        seconds = (int64_t)timegm(&tm) - hf__env_wall_us(&hook->env) / 1000000;
    }
    if (seconds <= 0)
        return 0;
    return (uint32_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
}

/* The beginning of an answer's body, on one line. */
static struct hf_str body_quote(struct hf_scope *s, struct hf_bytes body)
{
    size_t len = body.len < QUOTE_MAX ? body.len : QUOTE_MAX;
    char *text = hf_scope_alloc(s, len + 1);

    if (!text)
        return HF_STR("");
    for (size_t i = 0; i < len; i++)
        text[i] = body.ptr[i] >= ' ' && body.ptr[i] < 127 ? (char)body.ptr[i] : ' ';
    return hf_str_of(text, len);
}

static enum meaning meaning_of(const struct webhook *hook, int status)
{
    assert(status >= 100 && (size_t)status < ARRAY_LEN(hook->meanings)); /* (1) of answer_read.c */
    return (enum meaning)hook->meanings[status];
}

static enum hf_status take_answer(struct hf_scope *s, const struct webhook *hook,
                                  const struct http_answer *answer, struct hf_delivery *delivery)
{
    enum meaning meaning = meaning_of(hook, answer->status);
    uint32_t wait_ms = retry_after_ms(hook, answer);
    struct hf_str said = body_quote(s, answer->body);
    const char *colon = said.len ? ": " : "";

    assert(wait_ms <= RETRY_AFTER_MAX_S * 1000);
    if (meaning == RETRY && wait_ms)
        meaning = OUTAGE;
    switch (meaning) {
    case DONE:
        hf__delivery_done(delivery);
        return HF_OK;
    case OUTAGE:
        hf__fail(s, answer->status == 429 ? HF_THROTTLED : HF_IO,
                 "the receiver is not accepting events: HTTP status %d%s%.*s", answer->status,
                 colon, HF_FMT(said));
        hf__scope_error_edit(s)->may_retry = true;
        hf__scope_error_edit(s)->retry_after_ms = wait_ms;
        return hf_scope_error(s)->status;
    default:
        hf__delivery_fail(s, delivery, meaning == RETRY ? HF_IO : HF_INVALID, meaning == REFUSED,
                          "the receiver answered with HTTP status %d%s%.*s", answer->status, colon,
                          HF_FMT(said));
        return HF_OK;
    }
}

static enum hf_status event_post(struct hf_scope *s, const struct webhook *hook,
                                 struct hf_delivery *delivery)
{
    struct http_head head = {.fields_len = 0};
    struct http_answer answer;
    struct hf_bytes body;
    enum hf_status status = request_build(s, hook, &delivery->event->event, &head, &body);

    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) {
        hf__delivery_fail_with(s, delivery, true);
        hf__scope_error_clear(s);
        return HF_OK;
    }
    status = hf__transport_call(s, hook->transport,
                                &(struct transport_call){.origin = hook->endpoint.origin,
                                                         .head = &head,
                                                         .body = body,
                                                         .timeout_ms =
                                                             (uint32_t)hook->options.timeout_ms,
                                                         .answer_max = ANSWER_MAX},
                                &answer);
    if (status == HF_OK)
        return take_answer(s, hook, &answer, delivery);
    if (status != HF_CANCELED && status != HF_NOMEM && hf_scope_error(s)->may_have_happened) {
        hf__delivery_fail_with(s, delivery, false); /* perhaps this event crashed it */
        hf__scope_error_clear(s);
        return HF_OK;
    }
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* "408,425,500-599" */
static enum hf_status read_codes(struct hf_scope *s, struct webhook *hook, const char *name,
                                 struct hf_str text, enum meaning meaning)
{
    unsigned numbers[2] = {0, 0};
    size_t which = 0, digits = 0;

    for (size_t i = 0; i <= text.len && text.len > 0; i++) {
        char c = i < text.len ? text.ptr[i] : ',';

        if (c >= '0' && c <= '9' && digits < 3) {
            numbers[which] = numbers[which] * 10 + (unsigned)(c - '0');
            digits++;
            continue;
        }
        if (digits != 3 || (c != ',' && (c != '-' || which == 1)))
            goto wrong;
        digits = 0;
        if (c == '-') {
            which = 1;
            continue;
        }
        if (which == 0)
            numbers[1] = numbers[0];
        if (numbers[0] < 200 || numbers[1] > 599 || numbers[0] > numbers[1])
            goto wrong;
        assert(numbers[1] < ARRAY_LEN(hook->meanings));
        for (unsigned code = numbers[0]; code <= numbers[1]; code++)
            hook->meanings[code] = (uint8_t)meaning;
        numbers[0] = numbers[1] = 0;
        which = 0;
    }
    return HF_OK;
wrong:
    return hf__fail(s, HF_INVALID,
                    "the option %s of a webhook sink has to be codes from 200 to 599, such as "
                    "408,500-599",
                    name);
}

static enum hf_status read_meanings(struct hf_scope *s, struct webhook *hook)
{
    const struct {
        const char *name;
        struct hf_str given, usual;
        enum meaning meaning;
    } lists[] = {{"ok", hook->options.ok, HF_STR("200-299"), DONE},
                 {"outage", hook->options.outage, HF_STR("429,300-399"), OUTAGE},
                 {"retry", hook->options.retry, HF_STR("408,425,500-599"), RETRY}};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (!lists[i].given.ptr)
            TRY(read_codes(s, hook, lists[i].name, lists[i].usual, lists[i].meaning));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) /* options override defaults */
        if (lists[i].given.ptr)
            TRY(read_codes(s, hook, lists[i].name, lists[i].given, lists[i].meaning));
    return HF_OK;
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static enum hf_status add_secret(struct hf_scope *s, struct hf_scope *memory, struct webhook *hook,
                                 struct hf_str text)
{
    uint8_t *key = hf_scope_alloc(memory, text.len + 1);
    struct hf_str base64;
    size_t len = text.len;

    assert(text.len > 0);
    if (!key)
        return hf__fail_nomem(s);
    if (hook->secrets_len == SECRETS_MAX)
        return hf__fail(s, HF_INVALID, "a webhook sink has at most %d secrets", SECRETS_MAX);
    if (str_after(text, HF_STR("whsec_"), &base64)) {
        if (!base64.len || hf__base64_decode(base64, key, &len) != BASE64_OK)
            return hf__fail(s, HF_INVALID, "a secret that begins with whsec_ has to be base64");
    } else {
        memcpy(key, text.ptr, text.len);
    }
    assert(len <= text.len);
    hook->secrets[hook->secrets_len].ptr = key;
    hook->secrets[hook->secrets_len++].len = len;
    return HF_OK;
}

static enum hf_status add_secrets(struct hf_scope *s, struct hf_scope *memory, struct webhook *hook,
                                  struct hf_str text)
{
    size_t before = hook->secrets_len;

    for (size_t i = 0, from = 0; i <= text.len; i++) {
        if (i < text.len && !is_separator(text.ptr[i]))
            continue;
        if (i > from)
            TRY(add_secret(s, memory, hook, hf_str_of(text.ptr + from, i - from)));
        from = i + 1;
    }
    return hook->secrets_len > before
               ? HF_OK
               : hf__fail(s, HF_INVALID, "a secret of the webhook sink is empty");
}

static enum hf_status read_variable(struct hf_scope *s, const struct webhook *hook,
                                    struct hf_scope *memory, struct hf_str name,
                                    struct hf_str *value)
{
    assert(name.ptr[name.len] == '\0');
    *value = hf_scope_copy(memory, hf_str_from(hook->env.getenv(name.ptr, hook->env.user)));
    if (!value->ptr)
        return hf__fail_nomem(s);
    return value->len
               ? HF_OK
               : hf__fail(s, HF_INVALID, "the environment variable %.*s is not set", HF_FMT(name));
}

static enum hf_status read_secret_file(struct hf_scope *s, struct hf_str path,
                                       char text[SECRET_MAX], struct hf_str *value)
{
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = fd < 0 ? -1 : read(fd, text, SECRET_MAX);
    int error = errno;

    if (fd >= 0)
        close(fd);
    if (len < 0)
        return hf__fail(s, HF_INVALID, "secret_file cannot be read: %s", strerror(error));
    if (len == SECRET_MAX)
        return hf__fail(s, HF_INVALID, "secret_file has more than %d bytes", SECRET_MAX - 1);
    *value = hf_str_of(text, (size_t)len);
    return HF_OK;
}

static enum hf_status read_secrets(struct hf_scope *s, struct hf_scope *memory,
                                   struct webhook *hook)
{
    const struct options *o = &hook->options;
    struct hf_str text;

    if (o->secret.ptr)
        TRY(add_secrets(s, memory, hook, o->secret));
    if (o->secret_env.ptr) {
        TRY(read_variable(s, hook, memory, o->secret_env, &text));
        TRY(add_secrets(s, memory, hook, text));
    }
    if (o->secret_file.ptr) {
        char room[SECRET_MAX];
        enum hf_status status = read_secret_file(s, o->secret_file, room, &text);

        if (status == HF_OK)
            status = add_secrets(s, memory, hook, text);
        OPENSSL_cleanse(room, sizeof(room));
        TRY(status);
    }
    hook->authorization = o->authorization;
    if (o->authorization_env.ptr)
        TRY(read_variable(s, hook, memory, o->authorization_env, &hook->authorization));
    if (hook->authorization.len && !is_field_value(hook->authorization))
        return hf__fail(s, HF_INVALID,
                        "the authorization of a webhook sink contains line ends or characters "
                        "outside of ASCII");
    return HF_OK;
}

/* "https://host:port" and a template of the rest. */
static enum hf_status read_target(struct hf_scope *s, const struct sink_url *url,
                                  struct webhook *hook)
{
    struct hf_str whole = url->rest, path = HF_STR("/");
    const char *slashes = memmem(whole.ptr, whole.len, "://", 3);
    const char *from = slashes ? slashes + 3 : NULL;
    const char *slash = from ? memchr(from, '/', whole.len - (size_t)(from - whole.ptr)) : NULL;
    struct hf_str origin = whole;
    enum hf_status status = HF_INVALID;

    if (slash) {
        origin.len = (size_t)(slash - whole.ptr);
        path = hf_str_of(slash, whole.len - origin.len);
    }
    if (slashes && !memchr(origin.ptr, '{', origin.len))
        status = hf__endpoint_of_url(s, origin, &hook->endpoint);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK || !is_visible(path) || memchr(path.ptr, '#', path.len))
        return hf__fail(
            s, HF_INVALID,
            "the URL of a webhook sink is webhook:https://HOST/PATH, without a template "
            "in HOST");
    if (hook->options.query.len) {
        if (!is_visible(hook->options.query) ||
            memchr(hook->options.query.ptr, '#', hook->options.query.len))
            return hf__fail(s, HF_INVALID, "the option query is not a valid query of a URL");
        path = hf_scope_format(url->memory, "%.*s?%.*s", HF_FMT(path), HF_FMT(hook->options.query));
        if (!path.ptr)
            return hf__fail_nomem(s);
    }
    TRY(hf__endpoint_keep(s, url->memory, &hook->endpoint));
    return hf__template_read(s, url->memory, "the path", path, &hook->target);
}

static enum hf_status open_parts(struct hf_scope *s, const struct sink_url *url,
                                 struct webhook *hook)
{
    const struct options *o = &hook->options;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), &hook->options));
    TRY(read_meanings(s, hook));
    TRY(read_target(s, url, hook));
    TRY(read_secrets(s, url->memory, hook));
    hook->agent = hf_scope_format(url->memory, "holdfast/%s", hf_version());
    if (!hook->agent.ptr)
        return hf__fail_nomem(s);
    return hf__transport_open(s,
                              &(struct transport_options){.env = &hook->env,
                                                          .connect_ms = (uint32_t)o->connect_ms,
                                                          .ca_file = o->ca_file,
                                                          .http_proxy = o->proxy,
                                                          .https_proxy = o->proxy,
                                                          .insecure = o->insecure == HF_YES},
                              &hook->transport);
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status webhook_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                   size_t len)
{
    for (size_t i = 0; i < len; i++)
        TRY(event_post(s, self, &deliveries[i]));
    return HF_OK;
}

static void webhook_close(void *self)
{
    struct webhook *hook = self;
    struct hf_env env = hook->env;

    for (size_t i = 0; i < hook->secrets_len; i++)
        OPENSSL_cleanse(hook->secrets[i].ptr, hook->secrets[i].len);
    hf__transport_close(hook->transport);
    hf__env_free(&env, hook, sizeof(*hook));
}

enum hf_status hf__sink_webhook_open(struct hf_scope *s, const struct sink_url *url,
                                     struct hf_sink **sink)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "webhook",
                                    .batch_max = 1,
                                    .keeps_order = true,
                                    .send = webhook_send,
                                    .close = webhook_close};
    struct webhook *hook = hf__env_alloc(hf_scope_env(s), sizeof(*hook));
    enum hf_status status;

    if (!hook)
        return hf__fail_nomem(s);
    *hook = (struct webhook){.env = *hf_scope_env(s),
                             .options = {.form = HOOK_PAYLOAD, .timeout_ms = TIMEOUT_MS}};
    status = open_parts(s, url, hook);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, hook, sink);
    if (status != HF_OK)
        webhook_close(hook);
    return status;
}
