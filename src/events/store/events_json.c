/*
 * events/store/events_json.c: an event as one line of JSON, and back, with nothing lost.
 *
 *     {"domain":"order","stream":"7","version":3,"id":"a1","position":"01HF...","type":"placed",
 *      "time":"2026-11-15T17:05:00.123456Z","schema":1,"content_type":"application/json",
 *      "causation":"a0","correlation":"a0","meta":{"by":{"S":"ann"}},"payload":{"total": 9.50}}
 *
 *     member          is
 *     domain, type    required
 *     stream          the id in the stream's key; "" when it is left out
 *     version         a whole number
 *     id, position, content_type, causation, correlation, compensates
 *                     texts
 *     time            RFC 3339, of microseconds; years outside of 0000 to 9999 are in time_us,
 *     time_us         microseconds since 1970; one of the two
 *     schema          a whole number; 1 when it is left out
 *     meta            DynamoDB's JSON, as sets and binary values have no other
 *     hash            64 hexadecimal digits
 *     blob            digest, when the payload is in a blob store; "payload" or "payload_base64"
 *                     may be there all the same, and an export always has it
 *     payload         the payload itself, byte for byte: see (2)
 *     payload_base64  any other payload
 *
 *  (1) A line has no line break inside.
 *  (2) "payload" is there exactly when the content type is JSON's and the payload is one JSON value
 *      of at most 100 levels without line breaks and without blanks around it. It is not written
 *      again: what stands between the ':' and the ',' or '}' behind it is the payload. So numbers,
 *      blanks, escapes, the order of members, and `null` come back as they were.
 *  (3) A payload that is empty has no member.
 *  (4) What is read has no other members than these, each once: a misspelled one would be lost.
 */
#include "events/store/events.h"

#include <ctype.h>
#include <stdio.h>

enum { PIECES_MAX = 80, HASH_LEN = 32, TIME_LEN = 32 };

_Static_assert((int)HASH_LEN == (int)EVENTS_HASH, "the hash of an event");

static const int64_t second_us = 1000000, day_s = 86400;

/* ---- times ---------------------------------------------------------------------------------- */

/* Days since 1970 of a date in the calendar that goes on forever; and back. Months from 1. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t in_era = y - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

struct date {
    int64_t year, month, day;
};

static struct date date_of(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t in_era = z - era * 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153;

    return (struct date){.year = year + era * 400 + (month >= 10),
                         .month = month < 10 ? month + 3 : month - 9,
                         .day = in_year - (153 * month + 2) / 5 + 1};
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t floor_rest(int64_t a, int64_t b)
{
    return a % b < 0 ? a % b + b : a % b;
}

/* False: it is of a year that RFC 3339 cannot write. */
static bool time_text(int64_t time_us, char text[TIME_LEN])
{
    int64_t seconds = floor_div(time_us, second_us), us = floor_rest(time_us, second_us);
    int64_t days = floor_div(seconds, day_s), of_day = floor_rest(seconds, day_s);
    struct date date = date_of(days);

    assert(us >= 0 && us < second_us && of_day >= 0 && of_day < day_s);
    assert(days_of(date.year, date.month, date.day) == days);
    if (date.year < 0 || date.year > 9999)
        return false;
    snprintf(text, TIME_LEN, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", (unsigned)date.year,
             (unsigned)date.month % 100, (unsigned)date.day % 100, (unsigned)(of_day / 3600) % 100,
             (unsigned)(of_day / 60 % 60), (unsigned)(of_day % 60), (unsigned)us % 1000000);
    return true;
}

/* So many digits at *at, which moves behind them; -1: there are none. */
static int64_t digits_read(struct hf_str text, size_t *at, size_t len)
{
    int64_t number = 0;

    if (text.len - *at < len)
        return -1;
    for (size_t end = *at + len; *at < end; (*at)++) {
        if (text.ptr[*at] < '0' || text.ptr[*at] > '9')
            return -1;
        number = number * 10 + (text.ptr[*at] - '0');
    }
    return number;
}

static bool char_take(struct hf_str text, size_t *at, const char *one_of)
{
    if (*at >= text.len || !char_in(text.ptr[*at], one_of))
        return false;
    (*at)++;
    return true;
}

/* ".123456" or nothing. */
static bool read_fraction(struct hf_str text, size_t *at, int64_t *us)
{
    int64_t unit = second_us;
    size_t from;

    *us = 0;
    if (!char_take(text, at, "."))
        return true;
    for (from = *at; *at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9'; (*at)++) {
        unit /= 10;
        if (!unit && text.ptr[*at] != '0')
            return false; /* it would be lost */
        *us += unit * (text.ptr[*at] - '0');
    }
    return *at > from;
}

/* "Z" or "+01:00", in seconds. */
static bool read_zone(struct hf_str text, size_t *at, int64_t *zone)
{
    int64_t hours, minutes;
    bool west;

    *zone = 0;
    if (char_take(text, at, "Zz"))
        return *at == text.len;
    west = *at < text.len && text.ptr[*at] == '-';
    if (!char_take(text, at, "+-"))
        return false;
    hours = digits_read(text, at, 2);
    if (!char_take(text, at, ":"))
        return false;
    minutes = digits_read(text, at, 2);
    *zone = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
    return *at == text.len && hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

static bool read_clock(struct hf_str text, size_t *at, int64_t *seconds)
{
    int64_t hour = digits_read(text, at, 2), minute, second;

    if (!char_take(text, at, ":"))
        return false;
    minute = digits_read(text, at, 2);
    if (!char_take(text, at, ":"))
        return false;
    second = digits_read(text, at, 2);
    *seconds = (hour * 60 + minute) * 60 + second;
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
}

static bool read_time(struct hf_str text, int64_t *time_us)
{
    int64_t year, month, day, days, seconds, us, zone;
    struct date date;
    size_t at = 0;

    year = digits_read(text, &at, 4);
    if (!char_take(text, &at, "-"))
        return false;
    month = digits_read(text, &at, 2);
    if (!char_take(text, &at, "-"))
        return false;
    day = digits_read(text, &at, 2);
    if (year < 0 || month < 1 || month > 12 || day < 1 || !char_take(text, &at, "Tt "))
        return false;
    days = days_of(year, month, day);
    date = date_of(days);
    if (date.month != month || date.day != day) /* such as 30 February */
        return false;
    if (!read_clock(text, &at, &seconds) || !read_fraction(text, &at, &us) ||
        !read_zone(text, &at, &zone))
        return false;
    *time_us = (days * day_s + seconds - zone) * second_us + us;
    return true;
}

/* ---- writing -------------------------------------------------------------------------------- */

struct pieces {
    struct hf_scope *s;
    struct hf_str list[PIECES_MAX];
    size_t len;
};

static void piece_add(struct pieces *p, struct hf_str piece)
{
    assert(p->len < PIECES_MAX);
    p->list[p->len++] = piece;
}

/* `label` is all that stands in front of the value: ',"name":'. */
static void add_text(struct pieces *p, const char *label, struct hf_str text)
{
    piece_add(p, hf_str_from(label));
    piece_add(p,
              hf__pattern_json_raw(p->s, (struct hf_attr)HF_S("", text.ptr ? text : HF_STR(""))));
}

static void add_optional(struct pieces *p, const char *label, struct hf_str text)
{
    if (text.len)
        add_text(p, label, text);
}

static bool ends_with(struct hf_str text, const char *end)
{
    size_t len = strlen(end);

    if (text.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (tolower((unsigned char)text.ptr[text.len - len + i]) != end[i])
            return false;
    return true;
}

/* "application/json", or any that ends in "+json", whatever parameters follow. */
static bool is_json_type(struct hf_str type)
{
    const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    if (semicolon)
        type.len = (size_t)(semicolon - type.ptr);
    while (type.len && type.ptr[type.len - 1] == ' ')
        type.len--;
    return !type.len || ends_with(type, "/json") || ends_with(type, "+json");
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* (2) */
static bool is_json_line(struct hf_scope *s, struct hf_bytes payload)
{
    struct json_reader r = {.s = s,
                            .text = hf_str_of((const char *)payload.ptr, payload.len),
                            .status = HF_SERIALIZATION};
    struct hf_scope_mark mark;
    bool is;

    if (!payload.len || is_blank(payload.ptr[0]) || is_blank(payload.ptr[payload.len - 1]) ||
        memchr(payload.ptr, '\n', payload.len) || memchr(payload.ptr, '\r', payload.len))
        return false;
    mark = hf_scope_mark(s);
    is = hf__pattern_json_pass(&r, 1) == HF_OK && r.at == payload.len;
    hf_scope_rewind(s, mark);
    hf_scope_ok(s);
    return is;
}

static void add_payload(struct pieces *p, const struct hf_stored_event *event)
{
    if (!event->payload.len) /* (3) */
        return;
    if (is_json_type(event->content_type) && is_json_line(p->s, event->payload)) {
        piece_add(p, HF_STR(",\"payload\":"));
        piece_add(p, hf_str_of((const char *)event->payload.ptr, event->payload.len));
        return;
    }
    piece_add(p, HF_STR(",\"payload_base64\":"));
    piece_add(p, hf__pattern_json_raw(p->s, (struct hf_attr)HF_B("", event->payload)));
}

static void add_hash(struct pieces *p, struct hf_bytes hash)
{
    char *text;

    if (!hash.len)
        return;
    text = hf_scope_alloc(p->s, hash.len * 2);
    if (text)
        hex_write(text, hash.ptr, hash.len);
    piece_add(p, HF_STR(",\"hash\":\""));
    piece_add(p, hf_str_of(text, text ? hash.len * 2 : 0));
    piece_add(p, HF_STR("\""));
}

static void add_time(struct pieces *p, int64_t time_us)
{
    char text[TIME_LEN];

    if (time_text(time_us, text))
        piece_add(p, hf_scope_format(p->s, ",\"time\":\"%s\"", text));
    else
        piece_add(p, hf_scope_format(p->s, ",\"time_us\":%lld", (long long)time_us));
}

static void add_all(struct pieces *p, const struct hf_stored_event *event)
{
    add_text(p, "{\"domain\":", event->stream.domain);
    add_text(p, ",\"stream\":", event->stream.id);
    if (event->version)
        piece_add(p,
                  hf_scope_format(p->s, ",\"version\":%llu", (unsigned long long)event->version));
    add_optional(p, ",\"id\":", event->id);
    add_optional(p, ",\"position\":", event->position);
    add_text(p, ",\"type\":", event->type);
    add_time(p, event->time_us);
    piece_add(p, hf_scope_format(p->s, ",\"schema\":%lu", (unsigned long)event->schema));
    add_optional(p, ",\"content_type\":", event->content_type);
    add_optional(p, ",\"causation\":", event->causation);
    add_optional(p, ",\"correlation\":", event->correlation);
    add_optional(p, ",\"compensates\":", event->compensates);
    if (hf_item_count(event->meta)) {
        piece_add(p, HF_STR(",\"meta\":"));
        piece_add(p, hf_item_to_json(p->s, event->meta));
    }
    add_hash(p, event->hash);
    add_optional(p, ",\"blob\":", event->blob);
    add_payload(p, event);
    piece_add(p, HF_STR("}"));
}

enum hf_status hf_event_to_json(struct hf_scope *s, const struct hf_stored_event *event,
                                struct hf_str *json)
{
    struct pieces p = {.s = s};
    size_t len = 0;
    char *to;

    call_begins(s);
    *json = hf_str_of(NULL, 0);
    if (!event->stream.domain.len || !event->type.len)
        return hf_scope_fail(s, HF_INVALID, "the event has no %s",
                             event->type.len ? "domain" : "type");
    add_all(&p, event);
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < p.len; i++) {
        if (!p.list[i].ptr)
            return hf_scope_fail(s, HF_INVALID, "event \"%.*s\" has text that is not valid UTF-8",
                                 HF_FMT(event->id));
        len += p.list[i].len;
    }
    to = hf_scope_alloc(s, len + 1);
    if (!to)
        return hf_scope_built(s);
    *json = hf_str_of(to, len);
    for (size_t i = 0; i < p.len; i++, to += p.list[i - 1].len)
        memcpy(to, p.list[i].ptr, p.list[i].len);
    *to = '\0';
    return HF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status fail_member(struct hf_scope *s, const struct json_member *member,
                                  const char *what)
{
    return hf_scope_fail(s, HF_SERIALIZATION, "the event's \"%s\" %s", member->name, what);
}

static enum hf_status get_text(struct hf_scope *s, const struct json_member *member,
                               struct hf_str *text)
{
    struct hf_value value;
    enum hf_status status;

    *text = hf_str_of(NULL, 0);
    if (!member->raw.len)
        return HF_OK;
    if (member->raw.ptr[0] != '"')
        return fail_member(s, member, "is not a string");
    status = hf__pattern_json_value(s, HF_TYPE_S, member->raw, &value);
    if (status != HF_OK)
        return status == HF_NOMEM ? status : fail_member(s, member, "is not a string");
    *text = hf_value_str(value);
    return HF_OK;
}

/* A whole number from 0 to max; `otherwise` when it is not there. */
static enum hf_status get_number(struct hf_scope *s, const struct json_member *member, uint64_t max,
                                 uint64_t otherwise, uint64_t *number)
{
    *number = otherwise;
    if (!member->raw.len)
        return HF_OK;
    *number = 0;
    for (size_t i = 0; i < member->raw.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)member->raw.ptr[i] - '0';

        if (digit > 9)
            return fail_member(s, member, "is not a whole number");
        if (*number > max / 10 || *number * 10 > max - digit)
            return fail_member(s, member, "is too large");
        *number = *number * 10 + digit;
    }
    return HF_OK;
}

static enum hf_status get_time(struct hf_scope *s, const struct json_member *text,
                               const struct json_member *number, int64_t *time_us)
{
    struct json_member size = *number;
    bool negative = number->raw.len && number->raw.ptr[0] == '-';
    struct hf_str when;
    uint64_t us;

    *time_us = 0;
    TRY(get_text(s, text, &when));
    if (when.ptr && number->raw.len)
        return hf_scope_fail(s, HF_SERIALIZATION, "the event has \"time\" and \"time_us\"");
    if (when.ptr)
        return read_time(when, time_us) ? HF_OK : fail_member(s, text, "is not a time");
    if (negative)
        size.raw = hf_str_of(size.raw.ptr + 1, size.raw.len - 1);
    TRY(get_number(s, &size, (uint64_t)INT64_MAX + negative, 0, &us));
    *time_us = negative && us ? -(int64_t)(us - 1) - 1 : (int64_t)us;
    return HF_OK;
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static enum hf_status get_hash(struct hf_scope *s, const struct json_member *member,
                               struct hf_bytes *hash)
{
    struct hf_str text;
    uint8_t *bytes;

    TRY(get_text(s, member, &text));
    *hash = hf_bytes_of(NULL, 0);
    if (!text.ptr)
        return HF_OK;
    bytes = hf_scope_alloc(s, HASH_LEN);
    if (!bytes)
        return hf_scope_built(s);
    for (size_t i = 0; i < HASH_LEN; i++) {
        int high = text.len == HASH_LEN * 2 ? hex_of(text.ptr[2 * i]) : -1;
        int low = high < 0 ? -1 : hex_of(text.ptr[2 * i + 1]);

        if (low < 0)
            return fail_member(s, member, "is not 64 hexadecimal digits");
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *hash = hf_bytes_of(bytes, HASH_LEN);
    return HF_OK;
}

static enum hf_status get_meta(struct hf_scope *s, const struct json_member *member,
                               struct hf_item *meta)
{
    enum hf_status status;

    *meta = (struct hf_item){0};
    if (!member->raw.len)
        return HF_OK;
    status = hf_item_from_json(s, member->raw, meta);
    if (status == HF_OK || status == HF_NOMEM)
        return status;
    return hf_scope_fail_because(s, HF_SERIALIZATION, hf_scope_error(s), "the event's \"meta\": %s",
                                 hf_scope_error_text(s));
}

static enum hf_status get_payload(struct hf_scope *s, struct hf_str json,
                                  const struct json_member *plain, const struct json_member *base64,
                                  struct hf_bytes *payload)
{
    struct hf_value value;
    enum hf_status status;

    *payload = hf_bytes_of(NULL, 0);
    if (plain->found && base64->found)
        return hf_scope_fail(s, HF_SERIALIZATION,
                             "the event has \"payload\" and \"payload_base64\"");
    if (plain->found) {
        *payload = hf_bytes_of(json.ptr + plain->at, plain->raw.len ? plain->raw.len : 4);
        return HF_OK;
    }
    if (!base64->found)
        return HF_OK;
    if (!base64->raw.len || base64->raw.ptr[0] != '"')
        return fail_member(s, base64, "is not a string");
    status = hf__pattern_json_value(s, HF_TYPE_B, base64->raw, &value);
    if (status != HF_OK)
        return status == HF_NOMEM ? status : fail_member(s, base64, "is not base64");
    *payload = hf_value_bytes(value);
    return HF_OK;
}

enum member_name {
    DOMAIN,
    STREAM,
    VERSION,
    ID,
    POSITION,
    TYPE,
    TIME,
    TIME_US,
    SCHEMA,
    CONTENT_TYPE,
    CAUSATION,
    CORRELATION,
    COMPENSATES,
    META,
    HASH,
    BLOB,
    PAYLOAD,
    PAYLOAD_BASE64
};

static enum hf_status get_rest(struct hf_scope *s, struct hf_str json,
                               const struct json_member *members, struct hf_stored_event *event)
{
    uint64_t schema;

    TRY(get_number(s, &members[VERSION], UINT64_MAX, 0, &event->version));
    TRY(get_number(s, &members[SCHEMA], UINT32_MAX, 1, &schema));
    event->schema = (uint32_t)schema;
    TRY(get_time(s, &members[TIME], &members[TIME_US], &event->time_us));
    TRY(get_meta(s, &members[META], &event->meta));
    TRY(get_hash(s, &members[HASH], &event->hash));
    return get_payload(s, json, &members[PAYLOAD], &members[PAYLOAD_BASE64], &event->payload);
}

enum hf_status hf_event_from_json(struct hf_scope *s, struct hf_str json,
                                  struct hf_stored_event *event)
{
    struct json_reader r = {.s = s, .text = json, .status = HF_SERIALIZATION, .closed = true};
    struct json_member members[] = {
        [DOMAIN] = {.name = "domain"},
        [STREAM] = {.name = "stream"},
        [VERSION] = {.name = "version"},
        [ID] = {.name = "id"},
        [POSITION] = {.name = "position"},
        [TYPE] = {.name = "type"},
        [TIME] = {.name = "time"},
        [TIME_US] = {.name = "time_us"},
        [SCHEMA] = {.name = "schema"},
        [CONTENT_TYPE] = {.name = "content_type"},
        [CAUSATION] = {.name = "causation"},
        [CORRELATION] = {.name = "correlation"},
        [COMPENSATES] = {.name = "compensates"},
        [META] = {.name = "meta"},
        [HASH] = {.name = "hash"},
        [BLOB] = {.name = "blob"},
        [PAYLOAD] = {.name = "payload"},
        [PAYLOAD_BASE64] = {.name = "payload_base64"},
    };
    struct {
        enum member_name name;
        struct hf_str *text;
    } texts[] = {{DOMAIN, &event->stream.domain},
                 {STREAM, &event->stream.id},
                 {ID, &event->id},
                 {POSITION, &event->position},
                 {TYPE, &event->type},
                 {CONTENT_TYPE, &event->content_type},
                 {CAUSATION, &event->causation},
                 {CORRELATION, &event->correlation},
                 {COMPENSATES, &event->compensates},
                 {BLOB, &event->blob}};

    call_begins(s);
    *event = (struct hf_stored_event){.version = 0};
    TRY(hf__pattern_json_object(&r, members, ARRAY_LEN(members)));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        TRY(get_text(s, &members[texts[i].name], texts[i].text));
    if (!event->stream.domain.len || !event->type.len)
        return hf_scope_fail(s, HF_SERIALIZATION, "the event has no \"%s\"",
                             event->stream.domain.len ? "type" : "domain");
    return get_rest(s, json, members, event);
}
