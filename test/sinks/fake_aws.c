/*
 * test/sinks/fake_aws.c: SQS, SNS and EventBridge in one file.
 *
 * A call is read into a list of entries, whichever the protocol; then the mood decides what is
 * taken and what is said of it.
 */
#include "fake_aws.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../http/signed.h"

#define SECRET "HUSHsecretsecretsecretsecretsecretsecret"

enum { IN_CALL = 16 };

struct entry {
    char id[100];        /* of the entry */
    char attribute[100]; /* SNS: whose value comes next */
    struct fake_entry what;
    size_t bytes;
};

struct call {
    struct fake_aws *fake;
    struct entry entries[IN_CALL];
    size_t len;
    size_t bytes;
    const char *refused; /* a code */
};

static void wrong(struct fake_aws *fake, const char *format, ...) HF_PRINTF(2, 3);

static void wrong(struct fake_aws *fake, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    pthread_mutex_lock(&fake->lock);
    if (!fake->wrong[0])
        vsnprintf(fake->wrong, sizeof(fake->wrong), format, args);
    pthread_mutex_unlock(&fake->lock);
    va_end(args);
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* ---- signatures ----------------------------------------------------------------------------- */

/* Seconds since 1970 that the request was signed with; 0: the signature is not right. */
static int64_t verify(struct fake_aws *fake, const struct http_reader *reader)
{
    static const char *const services[] = {"sqs", "sns", "events"};
    const struct signed_by by = {.secret = HF_STR(SECRET),
                                 .region = HF_STR("eu-central-1"),
                                 .service = str_of(services[fake->service]),
                                 .also = HF_STR("content-type")};
    char why[400];
    int64_t seconds = signed_check(reader, &by, why, sizeof(why));

    if (!seconds)
        wrong(fake, "%s", why);
    return seconds;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void expect_field(struct fake_aws *fake, const struct http_reader *reader, const char *name,
                         const char *value)
{
    struct hf_str field = hf__http_field(&reader->head, name);

    if (!hf_str_equal(field, str_of(value)))
        wrong(fake, "%s is \"%.*s\", not \"%s\"", name, HF_FMT(field), value ? value : "");
}

static void check_head(struct fake_aws *fake, const struct http_reader *reader)
{
    static const char *const types[] = {"application/x-amz-json-1.0",
                                        "application/x-www-form-urlencoded; charset=utf-8",
                                        "application/x-amz-json-1.1"};
    static const char *const targets[] = {"AmazonSQS.SendMessageBatch", NULL,
                                          "AWSEvents.PutEvents"};

    if (!hf_str_equal(reader->head.method, HF_STR("POST")) ||
        !hf_str_equal(reader->head.target, HF_STR("/")))
        wrong(fake, "not POST /");
    expect_field(fake, reader, "content-type", types[fake->service]);
    expect_field(fake, reader, "x-amz-target", targets[fake->service]);
    expect_field(fake, reader, "x-amz-security-token", "token");
}

/* #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF */
static bool is_xml_text(const char *text)
{
    for (const char *at = text; *at; at++)
        if (((unsigned char)*at < ' ' && !strchr("\t\n\r", *at)) ||
            strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0)
            return false;
    return true;
}

/* The id of the event that a body is: CloudEvents in JSON. */
static void find_event(struct fake_aws *fake, struct fake_entry *what)
{
    json_t *event = json_loads(what->body, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    if (event && json_is_string(json_object_get(event, "id")))
        copy_text(what->id, sizeof(what->id), json_string_value(json_object_get(event, "id")));
    else if (!what->id[0])
        wrong(fake, "no event: %.100s", what->body);
    json_decref(event);
}

static bool is_message_id(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || (unsigned char)*at >= 127)
            return false;
    return text[0] && strlen(text) <= 128;
}

static void check_message(struct call *call, struct entry *entry)
{
    struct fake_aws *fake = call->fake;

    if (!is_xml_text(entry->what.body))
        call->refused = "InvalidMessageContents";
    if (fake->fifo != (entry->what.dedup[0] != '\0') || (fake->fifo && !entry->what.group[0]))
        wrong(fake, "group or id of a FIFO message");
    if ((entry->what.group[0] && !is_message_id(entry->what.group)) ||
        (entry->what.dedup[0] && !is_message_id(entry->what.dedup)))
        call->refused = "InvalidParameterValue";
    find_event(fake, &entry->what);
}

static const char *text_of(json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void read_sqs_attributes(struct call *call, struct entry *entry, json_t *attributes)
{
    const char *name;
    json_t *attribute;

    if (json_object_size(attributes) > 10)
        wrong(call->fake, "more than 10 attributes");
    json_object_foreach(attributes, name, attribute)
    {
        const char *type = text_of(attribute, "DataType");
        const char *value = text_of(attribute, "StringValue");

        if (!type || !value || strcmp(type, "String") != 0 || !*value || !is_xml_text(value) ||
            json_object_size(attribute) != 2)
            wrong(call->fake, "the attribute %s", name);
        else
            entry->bytes += strlen(name) + strlen(type) + strlen(value);
        if (strcmp(name, "ce-id") == 0)
            copy_text(entry->what.id, sizeof(entry->what.id), value);
    }
}

static void read_sqs(struct call *call, json_t *request)
{
    const char *queue = text_of(request, "QueueUrl");
    json_t *entries = json_object_get(request, "Entries"), *given;
    size_t i;

    if (!queue || !json_is_array(entries) || json_object_size(request) != 2)
        wrong(call->fake, "not what SendMessageBatch has");
    json_array_foreach(entries, i, given)
    {
        struct entry *entry = &call->entries[call->len];
        const char *body = text_of(given, "MessageBody");
        size_t members = 2;

        if (call->len++ == IN_CALL - 1)
            break;
        copy_text(entry->id, sizeof(entry->id), text_of(given, "Id"));
        copy_text(entry->what.target, sizeof(entry->what.target), queue);
        copy_text(entry->what.group, sizeof(entry->what.group), text_of(given, "MessageGroupId"));
        copy_text(entry->what.dedup, sizeof(entry->what.dedup),
                  text_of(given, "MessageDeduplicationId"));
        if (!body || !*body)
            wrong(call->fake, "no body");
        entry->what.body = strdup(body ? body : "");
        entry->bytes = strlen(entry->what.body);
        members += entry->what.group[0] != '\0';
        members += entry->what.dedup[0] != '\0';
        if (json_object_get(given, "MessageAttributes")) {
            members++;
            read_sqs_attributes(call, entry, json_object_get(given, "MessageAttributes"));
        }
        if (json_object_size(given) != members)
            wrong(call->fake, "an entry has members that SQS does not know");
        check_message(call, entry);
    }
}

static void read_eventbridge(struct call *call, json_t *request)
{
    json_t *entries = json_object_get(request, "Entries"), *given;
    size_t i;

    if (!json_is_array(entries) || json_object_size(request) != 1)
        wrong(call->fake, "not what PutEvents has");
    json_array_foreach(entries, i, given)
    {
        struct entry *entry = &call->entries[call->len];
        const char *detail = text_of(given, "Detail"), *source = text_of(given, "Source"),
                   *type = text_of(given, "DetailType");
        json_t *object = detail ? json_loads(detail, JSON_ALLOW_NUL, NULL) : NULL;

        if (call->len++ == IN_CALL - 1)
            break;
        if (!source || !type || !json_is_object(object) || !text_of(given, "EventBusName") ||
            json_object_size(given) != 4u + (json_object_get(given, "Time") != NULL))
            wrong(call->fake, "not what an entry of PutEvents has");
        if (source && (!*source || strlen(source) > 256 || strncmp(source, "aws.", 4) == 0))
            call->refused = "ValidationException";
        if (type && (!*type || strlen(type) > 128))
            call->refused = "ValidationException";
        if (json_object_get(given, "Time") && !json_is_number(json_object_get(given, "Time")))
            wrong(call->fake, "Time is no number");
        snprintf(entry->id, sizeof(entry->id), "%zu", i);
        copy_text(entry->what.target, sizeof(entry->what.target), text_of(given, "EventBusName"));
        entry->what.body = strdup(detail ? detail : "");
        entry->bytes = (json_object_get(given, "Time") ? 14 : 0) + strlen(entry->what.body) +
                       (source ? strlen(source) : 0) + (type ? strlen(type) : 0);
        json_decref(object);
        find_event(call->fake, &entry->what);
    }
}

static void decode(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++) {
        if (*at == '%' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
            *to++ = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
            at += 2;
        } else {
            *to++ = *at == '+' ? ' ' : *at;
        }
    }
    *to = '\0';
}

/* One parameter of an entry of PublishBatch; "Message", "MessageAttributes.entry.1.Name" ... */
static bool set_sns(struct entry *entry, const char *name, const char *value)
{
    const char *attribute;

    if (strcmp(name, "Id") == 0)
        copy_text(entry->id, sizeof(entry->id), value);
    else if (strcmp(name, "Message") == 0)
        entry->what.body = strdup(value);
    else if (strcmp(name, "MessageGroupId") == 0)
        copy_text(entry->what.group, sizeof(entry->what.group), value);
    else if (strcmp(name, "MessageDeduplicationId") == 0)
        copy_text(entry->what.dedup, sizeof(entry->what.dedup), value);
    else if (strncmp(name, "MessageAttributes", 17) == 0 && strstr(name, ".Name"))
        copy_text(entry->attribute, sizeof(entry->attribute), value);
    else if (strstr(name, ".Value.StringValue") && strcmp(entry->attribute, "ce-id") == 0)
        copy_text(entry->what.id, sizeof(entry->what.id), value);
    else if (strcmp(name, "Subject") != 0 &&
             (strncmp(name, "MessageAttributes.entry.", 24) != 0 ||
              !(attribute = strchr(name + 24, '.')) ||
              (strcmp(attribute, ".Name") != 0 && strcmp(attribute, ".Value.StringValue") != 0 &&
               (strcmp(attribute, ".Value.DataType") != 0 || strcmp(value, "String") != 0))))
        return false;
    if (strcmp(name, "Message") == 0 || strcmp(name, "Subject") == 0 ||
        strncmp(name, "MessageAttributes", 17) == 0)
        entry->bytes += strlen(value);
    return true;
}

static void read_sns(struct call *call, char *form)
{
    static const char entry_name[] = "PublishBatchRequestEntries.member.";
    char *save = NULL, topic[200] = "";
    int said = 0;

    for (char *pair = strtok_r(form, "&", &save); pair; pair = strtok_r(NULL, "&", &save)) {
        char *value = strchr(pair, '=');
        const char *rest;
        long number;
        char *end;

        if (!value) {
            wrong(call->fake, "a parameter without a value: %s", pair);
            continue;
        }
        *value++ = '\0';
        decode(pair);
        decode(value);
        if (strcmp(pair, "Action") == 0 && strcmp(value, "PublishBatch") == 0) {
            said++;
        } else if (strcmp(pair, "Version") == 0 && strcmp(value, "2010-03-31") == 0) {
            said++;
        } else if (strcmp(pair, "TopicArn") == 0) {
            said++;
            copy_text(topic, sizeof(topic), value);
        } else if (strncmp(pair, entry_name, strlen(entry_name)) == 0) {
            number = strtol(pair + strlen(entry_name), &end, 10);
            rest = *end == '.' ? end + 1 : end;
            if (number < 1 || number >= IN_CALL ||
                !set_sns(&call->entries[number - 1], rest, value))
                wrong(call->fake, "the parameter %s", pair);
            else if ((size_t)number > call->len)
                call->len = (size_t)number;
        } else {
            wrong(call->fake, "the parameter %s", pair);
        }
    }
    if (said != 3)
        wrong(call->fake, "not what PublishBatch has");
    for (size_t i = 0; i < call->len; i++) {
        copy_text(call->entries[i].what.target, sizeof(call->entries[i].what.target), topic);
        if (!call->entries[i].what.body)
            call->entries[i].what.body = strdup("");
        check_message(call, &call->entries[i]);
    }
}

static void read_call(struct call *call, const struct http_reader *reader)
{
    struct fake_aws *fake = call->fake;
    char *text = strndup((const char *)reader->body.ptr, reader->body.len);
    json_t *json = NULL;

    copy_text(fake->last_body, sizeof(fake->last_body), text);
    if (fake->service == FAKE_SNS) {
        read_sns(call, text);
    } else {
        json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (!json)
            wrong(fake, "not JSON: %.100s", text);
        else if (fake->service == FAKE_SQS)
            read_sqs(call, json);
        else
            read_eventbridge(call, json);
    }
    json_decref(json);
    free(text);
}

/* What the service would refuse, or what we may not send at all. */
static void check_call(struct call *call)
{
    struct fake_aws *fake = call->fake;

    if (call->len < 1 || call->len > 10)
        wrong(fake, "%zu entries", call->len);
    for (size_t i = 0; i < call->len && i < IN_CALL; i++) {
        call->bytes += call->entries[i].bytes;
        if (call->entries[i].bytes > fake->max_bytes)
            call->refused =
                fake->service == FAKE_EVENTBRIDGE ? "ValidationException" : "BatchRequestTooLong";
        if (strspn(call->entries[i].id, "0123456789") != strlen(call->entries[i].id) ||
            !call->entries[i].id[0])
            wrong(fake, "the id of an entry");
        for (size_t j = 0; j < i; j++)
            if (strcmp(call->entries[i].id, call->entries[j].id) == 0)
                wrong(fake, "two entries have one id");
        if (strstr(call->entries[i].what.body, "poison"))
            call->refused = "InvalidParameterValue";
        if (fake->target && strcmp(fake->target, call->entries[i].what.target) != 0)
            call->refused = fake->service == FAKE_SNS ? "NotFound" : "QueueDoesNotExist";
    }
    if (call->bytes > fake->batch_bytes && call->len > 1)
        call->refused =
            fake->service == FAKE_EVENTBRIDGE ? "ValidationException" : "BatchRequestTooLong";
    pthread_mutex_lock(&fake->lock);
    fake->offered += call->len;
    if (call->bytes > fake->largest)
        fake->largest = call->bytes;
    pthread_mutex_unlock(&fake->lock);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void take(struct call *call, size_t from)
{
    struct fake_aws *fake = call->fake;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = from; i < call->len && fake->entries_len < FAKE_ENTRIES; i++) {
        struct fake_entry *to = &fake->entries[fake->entries_len];

        *to = call->entries[i].what;
        to->body = strdup(to->body);
        for (size_t j = 0; fake->fifo && j < fake->entries_len; j++)
            if (strcmp(to->dedup, fake->entries[j].dedup) == 0)
                to->duplicate = true;
        fake->entries_len++;
    }
    pthread_mutex_unlock(&fake->lock);
}

static void put(char *text, size_t size, const char *format, ...) HF_PRINTF(3, 4);

static void put(char *text, size_t size, const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, size - len, format, args);
    va_end(args);
}

static void say(struct peer *peer, int status, const char *more, const char *body)
{
    const struct fake_aws *fake = peer->listener->user;
    char head[512];

    snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s%s\r\n", status,
             strlen(body), fake->no_keeping ? "Connection: close\r\n" : "", more);
    peer_say(peer, head);
    peer_say(peer, body);
}

static void refuse(struct peer *peer, struct fake_aws *fake, int status, const char *code,
                   const char *more)
{
    char body[512];

    if (fake->service == FAKE_SNS)
        snprintf(body, sizeof(body),
                 "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>"
                 "Sender</Type><Code>%s</Code><Message>said &lt;so&gt;</Message></Error>"
                 "<RequestId>1</RequestId></ErrorResponse>",
                 code);
    else
        snprintf(body, sizeof(body), "{\"__type\":\"com.amazonaws.x#%s\",\"message\":\"said so\"}",
                 code);
    say(peer, status, more, body);
}

/* The answer of each service: those in [done_from, len) are done, those in [0, failed_to) failed.
 */
struct told {
    size_t done_from, failed_to;
    bool sender_fault;
    const char *code;
    const char *extra_id; /* instead of ids that fit */
    bool nameless;
    int count_off;
};

static void answer_sqs(struct call *call, const struct told *told, char *text, size_t size)
{
    put(text, size, "{\"Successful\":[");
    for (size_t i = told->done_from; i < call->len; i++)
        put(text, size, "%s{\"Id\":\"%s\"%s,\"MD5OfMessageBody\":\"x\"}",
            i > told->done_from ? "," : "", told->extra_id ? told->extra_id : call->entries[i].id,
            told->nameless ? "" : ",\"MessageId\":\"m\"");
    put(text, size, "]");
    if (told->failed_to)
        put(text, size, ",\"Failed\":[");
    for (size_t i = 0; i < told->failed_to; i++)
        put(text, size,
            "%s{\"Id\":\"%s\",\"SenderFault\":%s,\"Code\":\"%s\",\"Message\":\"n\\no\"}",
            i ? "," : "", call->entries[i].id, told->sender_fault ? "true" : "false", told->code);
    put(text, size, told->failed_to ? "]}" : "}");
}

static void answer_sns(struct call *call, const struct told *told, char *text, size_t size)
{
    put(text, size,
        "<PublishBatchResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\">\n"
        "  <PublishBatchResult>\n");
    put(text, size, told->failed_to ? "<Failed>" : "<Failed/>");
    for (size_t i = 0; i < told->failed_to; i++)
        put(text, size,
            "<member><Code>%s</Code><Message>n\no</Message><Id>%s</Id><SenderFault>%s</SenderFault>"
            "</member>",
            told->code, call->entries[i].id, told->sender_fault ? "true" : "false");
    put(text, size, told->failed_to ? "</Failed>" : "");
    put(text, size, "<Successful>");
    for (size_t i = told->done_from; i < call->len; i++)
        put(text, size, "<member>\n<MessageId>%s</MessageId><Id>%s</Id></member>",
            told->nameless ? "" : "m", told->extra_id ? told->extra_id : call->entries[i].id);
    put(text, size,
        "</Successful></PublishBatchResult><ResponseMetadata><RequestId>1</RequestId>"
        "</ResponseMetadata></PublishBatchResponse>");
}

static void answer_eventbridge(struct call *call, const struct told *told, char *text, size_t size)
{
    size_t failed = 0, len = call->len;

    put(text, size, "{\"Entries\":[");
    for (size_t i = 0; i < len; i++) {
        bool is_failed = i < told->failed_to, is_done = i >= told->done_from;

        put(text, size, "%s{", i ? "," : "");
        if (is_done)
            put(text, size, "\"EventId\":\"%s\"%s", told->nameless ? "" : "e",
                is_failed ? "," : "");
        if (is_failed)
            put(text, size, "\"ErrorCode\":\"%s\",\"ErrorMessage\":\"n\\no\"", told->code);
        put(text, size, "}");
        failed += is_failed || !is_done;
    }
    if (told->extra_id)
        put(text, size, ",{\"EventId\":\"more\"}");
    put(text, size, "],\"FailedEntryCount\":%zu}", failed + (size_t)told->count_off);
}

static void answer(struct peer *peer, struct call *call, const struct told *told,
                   enum fake_mood mood)
{
    static const char *const empty[] = {"{}", "<PublishBatchResponse/>", "{}"};
    size_t size = 64 * 1024;
    char *text = calloc(1, size);

    if (call->fake->service == FAKE_SQS)
        answer_sqs(call, told, text, size);
    else if (call->fake->service == FAKE_SNS)
        answer_sns(call, told, text, size);
    else
        answer_eventbridge(call, told, text, size);
    if (mood == GARBAGE)
        snprintf(text, size, "<html>It works!");
    if (mood == TRUNCATED)
        text[strlen(text) / 2] = '\0';
    if (mood == EMPTY)
        snprintf(text, size, "%s", empty[call->fake->service]);
    atomic_store(&call->fake->said, (int)strlen(text));
    if (atomic_load(&call->fake->cut_at))
        text[atomic_load(&call->fake->cut_at)] = '\0';
    if (atomic_load(&call->fake->odd_at))
        text[atomic_load(&call->fake->odd_at) - 1] ^= 0x15;
    say(peer, 200, "", text);
    free(text);
}

static void serve_mood(struct peer *peer, struct call *call, enum fake_mood mood)
{
    struct fake_aws *fake = call->fake;
    struct told told = {.code = "InternalError"};

    switch (mood) {
    case THROTTLED:
        refuse(peer, fake, 400, fake->service == FAKE_SQS ? "RequestThrottled" : "Throttling", "");
        return;
    case BUSY:
        say(peer, 503, "Retry-After: 7\r\n", "");
        return;
    case BROKEN_AFTER:
        take(call, 0);
        refuse(peer, fake, 500, "InternalFailure", "");
        return;
    case BROKEN:
        refuse(peer, fake, 500, "InternalFailure", "");
        return;
    case HANG_UP:
        take(call, 0);
        return;
    case DENIED:
        refuse(peer, fake, 403, "AccessDenied", "");
        return;
    case MISSING:
        refuse(peer, fake, fake->service == FAKE_SNS ? 404 : 400,
               fake->service == FAKE_SNS ? "NotFound" : "QueueDoesNotExist", "");
        return;
    case ODD:
        refuse(peer, fake, 400, "WrongPhaseOfMoon", "");
        return;
    case EXPIRED:
        refuse(peer, fake, 403, "ExpiredTokenException", "");
        return;
    case EMPTY:
        break;
    case FIRST_SENDER:
    case FIRST_SERVICE:
        told.done_from = told.failed_to = 1;
        told.sender_fault = mood == FIRST_SENDER;
        if (mood == FIRST_SENDER)
            told.code =
                fake->service == FAKE_EVENTBRIDGE ? "MalformedDetail" : "InvalidParameterValue";
        take(call, 1);
        break;
    case ALL_THROTTLED:
    case ALL_DENIED:
        told.done_from = told.failed_to = call->len;
        told.sender_fault = mood == ALL_DENIED;
        told.code = mood == ALL_DENIED ? "KMS.AccessDeniedException" : "ThrottlingException";
        break;
    case SILENT_ON_FIRST:
        told.done_from = 1;
        take(call, 0);
        break;
    case BOTH:
        told.failed_to = 1;
        take(call, 0);
        break;
    case STRANGERS:
        told.extra_id = "77";
        take(call, 0);
        break;
    case NAMELESS:
        told.nameless = true;
        take(call, 0);
        break;
    case WRONG_COUNT:
        told.count_off = 1;
        take(call, 0);
        break;
    default:
        take(call, 0);
        break;
    }
    answer(peer, call, &told, mood);
}

static void serve_clock(struct peer *peer, struct call *call, int64_t signed_s)
{
    time_t there = time(NULL) + 3600;
    char date[80];
    struct tm tm;

    if (signed_s > there - 300 && signed_s < there + 300) {
        serve_mood(peer, call, WELL);
        return;
    }
    gmtime_r(&there, &tm);
    strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
    refuse(peer, call->fake, 403, "InvalidSignatureException", date);
}

static bool serve_call(struct peer *peer)
{
    struct fake_aws *fake = peer->listener->user;
    struct call *call = calloc(1, sizeof(*call));
    size_t nth = (size_t)atomic_fetch_add(&fake->calls, 1);
    enum fake_mood mood = nth < fake->moods_len ? fake->moods[nth] : WELL;
    int64_t signed_s = verify(fake, &peer->reader);

    call->fake = fake;
    check_head(fake, &peer->reader);
    read_call(call, &peer->reader);
    check_call(call);
    if (mood == STALE_CLOCK)
        serve_clock(peer, call, signed_s);
    else if (call->refused && mood == WELL)
        refuse(peer, fake, 400, call->refused, "");
    else
        serve_mood(peer, call, mood);
    for (size_t i = 0; i < call->len && i < IN_CALL; i++)
        free(call->entries[i].what.body);
    free(call);
    return mood != HANG_UP;
}

static void serve(struct peer *peer)
{
    while (peer_read(peer) && serve_call(peer))
        continue;
}

/* ---- for tests ------------------------------------------------------------------------------ */

void fake_open(struct fake_aws *fake, enum fake_service service)
{
    static const size_t max_bytes[] = {1048576, 262144, 1048576};
    static const size_t batch_bytes[] = {1048576, 262144, 262144};

    memset(fake, 0, sizeof(*fake));
    fake->service = service;
    fake->max_bytes = max_bytes[service];
    fake->batch_bytes = batch_bytes[service];
    pthread_mutex_init(&fake->lock, NULL);
    listener_open(&fake->listener, serve, fake, NULL);
    desk_set("AWS_ACCESS_KEY_ID", "AKID");
    desk_set("AWS_SECRET_ACCESS_KEY", SECRET);
    desk_set("AWS_SESSION_TOKEN", "token");
    desk_set("AWS_REGION", "eu-central-1");
}

void fake_close(struct fake_aws *fake)
{
    listener_close(&fake->listener);
    for (size_t i = 0; i < fake->entries_len; i++)
        free(fake->entries[i].body);
    pthread_mutex_destroy(&fake->lock);
    if (fake->wrong[0])
        fprintf(stderr, "wrong: %s\n", fake->wrong);
    CHECK(!fake->wrong[0]);
}

void fake_moods(struct fake_aws *fake, const enum fake_mood *moods, size_t len)
{
    size_t from = (size_t)atomic_load(&fake->calls);

    for (size_t i = fake->moods_len; i < from; i++)
        fake->moods[i] = WELL;
    memcpy(fake->moods + from, moods, len * sizeof(*moods));
    fake->moods_len = from + len;
}

size_t fake_taken(struct fake_aws *fake, const char *id)
{
    size_t count = 0;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->entries_len; i++)
        count += !fake->entries[i].duplicate && strcmp(fake->entries[i].id, id) == 0;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

void fake_sink(struct fake_aws *fake, struct desk *d, const char *options)
{
    const char *suffix = fake->fifo ? ".fifo" : "";

    if (fake->service == FAKE_SQS)
        desk_sink(d, "sqs:%s/123456789012/orders%s?%s", fake->listener.origin, suffix, options);
    else if (fake->service == FAKE_SNS)
        desk_sink(d, "sns:arn:aws:sns:eu-central-1:123456789012:orders%s?endpoint=%s&%s", suffix,
                  fake->listener.origin, options);
    else
        desk_sink(d, "eventbridge:default?endpoint=%s&%s", fake->listener.origin, options);
}
