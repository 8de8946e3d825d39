/*
 * patterns/consumer_decode.c: changes out of the event that a function runtime hands over.
 *
 *     {"Records": [{"eventID": "1", "eventName": "INSERT", "eventSource": "aws:dynamodb",
 *                   "dynamodb": {"Keys": {"id": {"S": "ann"}}, "NewImage": {...},
 *                                "SequenceNumber": "111", "ApproximateCreationDateTime": 1.7e9}}]}
 *
 * The envelope is walked here: where a member is, not what it says. Items, and the texts and
 * numbers that we need, are handed to the one reader of DynamoDB's JSON, hf_item_from_json(), which
 * is as strict as the database is.
 *
 *  (1) All of the text is checked to be JSON, also what we pass over, and nothing may follow it.
 *  (2) A member that we know may come once. Those that we do not know are passed over: runtimes add
 *      new ones.
 *  (3) An error says where: the byte, or the member.
 */
#include <holdfast/streams.h>

#include "patterns/private.h"

enum { DEPTH_MAX = 100, DIGITS_MAX = 12 };

struct reader {
    struct hf_scope *s;
    struct hf_str text;
    size_t at;
};

/* A member that is looked for; absent: it is not there, or null. */
struct member {
    const char *name;
    struct hf_str raw;
    size_t at; /* where it begins */
    bool found;
};

/* ---- JSON ----------------------------------------------------------------------------------- */

static enum hf_status not_json(struct reader *r, const char *what)
{
    return hf_scope_fail(r->s, HF_INVALID, "the event is no JSON: %s at byte %zu", what, r->at + 1);
}

static char look(struct reader *r)
{
    while (r->at < r->text.len && (r->text.ptr[r->at] == ' ' || r->text.ptr[r->at] == '\t' ||
                                   r->text.ptr[r->at] == '\n' || r->text.ptr[r->at] == '\r'))
        r->at++;
    return r->at < r->text.len ? r->text.ptr[r->at] : '\0';
}

static bool take(struct reader *r, char c)
{
    if (look(r) != c)
        return false;
    r->at++;
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static enum hf_status pass_escape(struct reader *r)
{
    char c = r->at < r->text.len ? r->text.ptr[r->at++] : '\0';

    if (c == 'u') {
        for (int i = 0; i < 4; i++, r->at++)
            if (r->at >= r->text.len || !is_hex(r->text.ptr[r->at]))
                return not_json(r, "a wrong escape");
        return HF_OK;
    }
    return c && strchr("\"\\/bfnrt", c) ? HF_OK : not_json(r, "a wrong escape");
}

static enum hf_status pass_text(struct reader *r)
{
    if (!take(r, '"'))
        return not_json(r, "no string");
    while (r->at < r->text.len) {
        char c = r->text.ptr[r->at++];

        if (c == '"')
            return HF_OK;
        if ((unsigned char)c < ' ') {
            r->at--;
            return not_json(r, "a control character in a string");
        }
        if (c == '\\')
            TRY(pass_escape(r));
    }
    return not_json(r, "a string without an end");
}

static size_t pass_digits(struct reader *r)
{
    size_t from = r->at;

    while (r->at < r->text.len && r->text.ptr[r->at] >= '0' && r->text.ptr[r->at] <= '9')
        r->at++;
    return r->at - from;
}

static enum hf_status pass_number(struct reader *r)
{
    const char *ptr = r->text.ptr;
    size_t from, len = r->text.len;

    if (ptr[r->at] == '-')
        r->at++;
    from = r->at;
    if (!pass_digits(r) || (ptr[from] == '0' && r->at - from > 1))
        return not_json(r, "a wrong number");
    if (r->at < len && ptr[r->at] == '.') {
        r->at++;
        if (!pass_digits(r))
            return not_json(r, "a wrong number");
    }
    if (r->at < len && (ptr[r->at] == 'e' || ptr[r->at] == 'E')) {
        r->at++;
        if (r->at < len && (ptr[r->at] == '+' || ptr[r->at] == '-'))
            r->at++;
        if (!pass_digits(r))
            return not_json(r, "a wrong number");
    }
    return HF_OK;
}

static enum hf_status pass_word(struct reader *r)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);

        if (r->text.len - r->at >= len && memcmp(r->text.ptr + r->at, words[i], len) == 0) {
            r->at += len;
            return HF_OK;
        }
    }
    return not_json(r, "no value");
}

static enum hf_status pass_value(struct reader *r, int depth);

/* Members of an object, or elements; of an object, those that are looked for are noted. */
static enum hf_status pass_all(struct reader *r, int depth, char end, struct member *members,
                               size_t len)
{
    r->at++;
    if (depth > DEPTH_MAX)
        return not_json(r, "more than 100 levels");
    if (take(r, end))
        return HF_OK;
    do {
        struct member *member = NULL;
        size_t from;

        if (end == '}') {
            (void)look(r);
            from = r->at;
            TRY(pass_text(r));
            for (size_t i = 0; i < len; i++)
                if (hf_str_equal(hf_str_from(members[i].name),
                                 hf_str_of(r->text.ptr + from + 1, r->at - from - 2)))
                    member = &members[i];
            if (!take(r, ':'))
                return not_json(r, "no ':'");
        }
        (void)look(r);
        from = r->at;
        TRY(pass_value(r, depth + 1));
        if (!member)
            continue;
        if (member->found) /* (2) */
            return hf_scope_fail(r->s, HF_INVALID, "the event has \"%s\" twice, at byte %zu",
                                 member->name, from + 1);
        member->found = true;
        member->at = from;
        if (r->text.ptr[from] != 'n')
            member->raw = hf_str_of(r->text.ptr + from, r->at - from);
    } while (take(r, ','));
    return take(r, end) ? HF_OK : not_json(r, end == '}' ? "no ',' or '}'" : "no ',' or ']'");
}

static enum hf_status pass_value(struct reader *r, int depth)
{
    char c = look(r);

    if (c == '{')
        return pass_all(r, depth, '}', NULL, 0);
    if (c == '[')
        return pass_all(r, depth, ']', NULL, 0);
    if (c == '"')
        return pass_text(r);
    if (c == '-' || (c >= '0' && c <= '9'))
        return pass_number(r);
    return pass_word(r);
}

/* ---- members -------------------------------------------------------------------------------- */

/* Where we are, for errors: which record, and of what in it. */
struct place {
    size_t record;
    const char *of; /* "" or "dynamodb." */
};

static enum hf_status wrong(struct hf_scope *s, const struct place *place,
                            const struct member *member, const char *what)
{
    return hf_scope_fail(s, HF_INVALID, "the event: Records[%zu].%s%s %s", place->record, place->of,
                         member->name, what);
}

/* Its members, of an object that was passed over before. */
static enum hf_status enter(struct reader *r, const struct place *place, const struct member *outer,
                            struct member *members, size_t len)
{
    if (!outer->raw.len)
        return wrong(r->s, place, outer, "is missing");
    if (outer->raw.ptr[0] != '{')
        return wrong(r->s, place, outer, "is no object");
    r->at = outer->at;
    return pass_all(r, 1, '}', members, len);
}

/* A value by the reader of items: raw is made one of type S, or N. */
static enum hf_status read_value(struct hf_scope *s, const struct place *place,
                                 const struct member *member, bool number, struct hf_value *value)
{
    const char *quote = number ? "\"" : "";
    struct hf_str json = hf_scope_format(s, "{\"v\":{\"%s\":%s%.*s%s}}", number ? "N" : "S", quote,
                                         HF_FMT(member->raw), quote);
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf_item_from_json(s, json, &item);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK)
        return wrong(s, place, member, number ? "is no number" : "is no text");
    *value = hf_item_get(item, HF_STR("v"));
    return HF_OK;
}

static enum hf_status read_text(struct hf_scope *s, const struct place *place,
                                const struct member *member, bool needed, struct hf_str *text)
{
    struct hf_value value;

    *text = hf_str_of(NULL, 0);
    if (!member->raw.len)
        return needed ? wrong(s, place, member, "is missing") : HF_OK;
    if (member->raw.ptr[0] != '"')
        return wrong(s, place, member, "is no text");
    TRY(read_value(s, place, member, false, &value));
    *text = hf_value_str(value);
    return needed && !text->len ? wrong(s, place, member, "is empty") : HF_OK;
}

/* Seconds, maybe with a fraction or an exponent, as whole seconds in microseconds. */
static enum hf_status read_time(struct hf_scope *s, const struct place *place,
                                const struct member *member, int64_t *us)
{
    struct hf_value value;
    struct hf_str digits;
    int64_t seconds = 0;
    size_t i = 0;

    *us = 0;
    if (!member->raw.len)
        return HF_OK;
    if (member->raw.ptr[0] == '-' || !strchr("0123456789", member->raw.ptr[0]))
        return wrong(s, place, member, "is no time");
    TRY(read_value(s, place, member, true, &value));
    digits = hf_value_number(s, value);
    TRY(hf_scope_built(s));
    for (; i < digits.len && digits.ptr[i] >= '0' && digits.ptr[i] <= '9' && i < DIGITS_MAX; i++)
        seconds = seconds * 10 + (digits.ptr[i] - '0');
    if (i < digits.len && digits.ptr[i] != '.')
        return wrong(s, place, member, "is no time");
    *us = seconds * 1000000;
    return HF_OK;
}

static enum hf_status read_item(struct hf_scope *s, const struct place *place,
                                const struct member *member, bool needed, struct hf_item *item)
{
    enum hf_status status;

    *item = (struct hf_item){0};
    if (!member->raw.len)
        return needed ? wrong(s, place, member, "is missing") : HF_OK;
    status = hf_item_from_json(s, member->raw, item);
    if (status == HF_OK && needed && !hf_item_count(*item))
        return wrong(s, place, member, "is empty");
    if (status == HF_OK || status == HF_NOMEM)
        return status;
    return hf_scope_fail(s, HF_INVALID, "the event: Records[%zu].%s%s: %s", place->record,
                         place->of, member->name, hf_scope_error_text(s));
}

/* ---- records -------------------------------------------------------------------------------- */

static enum hf_status read_kind(struct hf_scope *s, const struct place *place,
                                const struct member *member, enum hf_change_kind *kind)
{
    static const char *const names[] = {"INSERT", "MODIFY", "REMOVE"};
    struct hf_str name;

    TRY(read_text(s, place, member, true, &name));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (hf_str_equal(name, hf_str_from(names[i]))) {
            *kind = (enum hf_change_kind)(HF_CHANGE_INSERT + i);
            return HF_OK;
        }
    return wrong(s, place, member, "is none of INSERT, MODIFY, REMOVE");
}

static enum hf_status read_change(struct reader *r, size_t number, const struct member *dynamodb,
                                  struct hf_change *change)
{
    struct member members[] = {{.name = "Keys"},
                               {.name = "NewImage"},
                               {.name = "OldImage"},
                               {.name = "SequenceNumber"},
                               {.name = "ApproximateCreationDateTime"}};
    struct place place = {.record = number, .of = ""};

    TRY(enter(r, &place, dynamodb, members, ARRAY_LEN(members)));
    place.of = "dynamodb.";
    TRY(read_item(r->s, &place, &members[0], true, &change->key));
    TRY(read_item(r->s, &place, &members[1], false, &change->new_image));
    TRY(read_item(r->s, &place, &members[2], false, &change->old_image));
    TRY(read_text(r->s, &place, &members[3], true, &change->sequence));
    return read_time(r->s, &place, &members[4], &change->time_us);
}

/* Was it the database itself, for the time to live? Runtimes and the service differ in spelling. */
static enum hf_status read_identity(struct reader *r, size_t number, const struct member *identity,
                                    bool *expired)
{
    struct member members[] = {{.name = "type"},
                               {.name = "principalId"},
                               {.name = "Type"},
                               {.name = "PrincipalId"}};
    struct place place = {.record = number, .of = ""};
    struct hf_str texts[ARRAY_LEN(members)];

    *expired = false;
    if (!identity->raw.len)
        return HF_OK;
    TRY(enter(r, &place, identity, members, ARRAY_LEN(members)));
    place.of = "userIdentity.";
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        TRY(read_text(r->s, &place, &members[i], false, &texts[i]));
    for (size_t i = 0; i < ARRAY_LEN(members); i += 2)
        *expired = *expired || (hf_str_equal(texts[i], HF_STR("Service")) &&
                                hf_str_equal(texts[i + 1], HF_STR("dynamodb.amazonaws.com")));
    return HF_OK;
}

static enum hf_status read_record(struct reader *r, size_t number, struct hf_change *change)
{
    struct member members[] = {{.name = "eventID"},
                               {.name = "eventName"},
                               {.name = "eventSource"},
                               {.name = "dynamodb"},
                               {.name = "userIdentity"}};
    struct place place = {.record = number, .of = ""};
    struct hf_str source;
    size_t end;

    *change = (struct hf_change){.time_us = 0};
    if (look(r) != '{')
        return hf_scope_fail(r->s, HF_INVALID, "the event: Records[%zu] is no object", number);
    TRY(pass_all(r, 1, '}', members, ARRAY_LEN(members)));
    end = r->at;
    TRY(read_text(r->s, &place, &members[2], false, &source));
    if (source.len && !hf_str_equal(source, HF_STR("aws:dynamodb")))
        return wrong(r->s, &place, &members[2], "is not aws:dynamodb");
    TRY(read_text(r->s, &place, &members[0], true, &change->id));
    TRY(read_kind(r->s, &place, &members[1], &change->kind));
    TRY(read_change(r, number, &members[3], change));
    TRY(read_identity(r, number, &members[4], &change->expired));
    r->at = end;
    return HF_OK;
}

static enum hf_status read_records(struct reader *r, const struct hf_change **changes, size_t *len)
{
    struct hf_change *list;
    size_t count = 0, from = r->at;

    r->at++; /* all of it is JSON: how many are there? */
    if (!take(r, ']'))
        do {
            TRY(pass_value(r, 1));
            count++;
        } while (take(r, ','));
    list = hf_scope_alloc(r->s, (count ? count : 1) * sizeof(*list));
    if (!list)
        return hf_scope_built(r->s);
    r->at = from + 1;
    for (size_t i = 0; i < count; i++) {
        TRY(read_record(r, i, &list[i]));
        (void)take(r, ',');
    }
    *changes = list;
    *len = count;
    return HF_OK;
}

enum hf_status hf_changes_decode(struct hf_scope *s, struct hf_str json,
                                 const struct hf_change **changes, size_t *len)
{
    struct reader r = {.s = s, .text = json};
    struct member records = {.name = "Records"};

    *changes = NULL;
    *len = 0;
    if (look(&r) != '{')
        return not_json(&r, "no object");
    TRY(pass_all(&r, 0, '}', &records, 1));
    (void)look(&r);
    if (r.at < json.len)
        return not_json(&r, "more behind the end");
    if (!records.raw.len || records.raw.ptr[0] != '[')
        return hf_scope_fail(s, HF_INVALID, "the event has no list \"Records\"");
    r.at = records.at;
    return read_records(&r, changes, len);
}
