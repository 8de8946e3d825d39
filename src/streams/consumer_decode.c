/*
 * streams/consumer_decode.c: changes out of the event that a function runtime hands over.
 *
 *     {"Records": [{"eventID": "1", "eventName": "INSERT", "eventSource": "aws:dynamodb",
 *                   "dynamodb": {"Keys": {"id": {"S": "ann"}}, "NewImage": {...},
 *                                "SequenceNumber": "111", "ApproximateCreationDateTime": 1.7e9}}]}
 *
 * The envelope is walked by json.c: where a member is, not what it says. Items, and the texts and
 * numbers that we need, are handed to the one reader of DynamoDB's JSON, hf_item_from_json(), which
 * is as strict as the database is.
 *
 *  (1) All of the text is checked to be JSON, also what we pass over, and nothing may follow it.
 *  (2) A member that we know may come once. Those that we do not know are passed over: runtimes add
 *      new ones.
 *  (3) An error says where: the byte, or the member.
 */
#include <holdfast/streams.h>

#include "coord/pattern.h"

enum { DIGITS_MAX = 12 };

/* ---- members -------------------------------------------------------------------------------- */

/* Where we are, for errors: which record, and of what in it. */
struct place {
    size_t record;
    const char *of; /* "" or "dynamodb." */
};

static enum hf_status fail_member(struct hf_scope *s, const struct place *place,
                                  const struct json_member *member, const char *what)
{
    return hf_scope_fail(s, HF_INVALID, "the event: Records[%zu].%s%s %s", place->record, place->of,
                         member->name, what);
}

/* Its members, of an object that was passed over before. */
static enum hf_status members_enter(struct json_reader *r, const struct place *place,
                                    const struct json_member *outer, struct json_member *members,
                                    size_t len)
{
    if (!outer->raw.len)
        return fail_member(r->s, place, outer, "is missing");
    if (outer->raw.ptr[0] != '{')
        return fail_member(r->s, place, outer, "is not an object");
    r->at = outer->at;
    return hf__pattern_json_all(r, 1, '}', members, len);
}

/* A value by the reader of items: raw is made one of type S, or N. */
static enum hf_status read_value(struct hf_scope *s, const struct place *place,
                                 const struct json_member *member, bool number,
                                 struct hf_value *value)
{
    enum hf_status status =
        hf__pattern_json_value(s, number ? HF_TYPE_N : HF_TYPE_S, member->raw, value);

    if (status == HF_OK || status == HF_NOMEM)
        return status;
    return fail_member(s, place, member, number ? "is not a number" : "is not a string");
}

static enum hf_status read_text(struct hf_scope *s, const struct place *place,
                                const struct json_member *member, bool needed, struct hf_str *text)
{
    struct hf_value value;

    *text = hf_str_of(NULL, 0);
    if (!member->raw.len)
        return needed ? fail_member(s, place, member, "is missing") : HF_OK;
    if (member->raw.ptr[0] != '"')
        return fail_member(s, place, member, "is not a string");
    TRY(read_value(s, place, member, false, &value));
    *text = hf_value_str(value);
    return needed && !text->len ? fail_member(s, place, member, "is empty") : HF_OK;
}

/* Seconds, maybe with a fraction or an exponent, as whole seconds in microseconds. */
static enum hf_status read_time(struct hf_scope *s, const struct place *place,
                                const struct json_member *member, int64_t *us)
{
    struct hf_value value;
    struct hf_str digits;
    int64_t seconds = 0;
    size_t i = 0;

    *us = 0;
    if (!member->raw.len)
        return HF_OK;
    if (member->raw.ptr[0] < '0' || member->raw.ptr[0] > '9')
        return fail_member(s, place, member, "is not a time");
    TRY(read_value(s, place, member, true, &value));
    digits = hf_value_number(s, value);
    TRY(hf_scope_built(s));
    for (; i < digits.len && digits.ptr[i] >= '0' && digits.ptr[i] <= '9' && i < DIGITS_MAX; i++)
        seconds = seconds * 10 + (digits.ptr[i] - '0');
    if (i < digits.len && digits.ptr[i] != '.')
        return fail_member(s, place, member, "is not a time");
    *us = seconds * 1000000;
    return HF_OK;
}

static enum hf_status read_item(struct hf_scope *s, const struct place *place,
                                const struct json_member *member, bool needed, struct hf_item *item)
{
    enum hf_status status;

    *item = (struct hf_item){0};
    if (!member->raw.len)
        return needed ? fail_member(s, place, member, "is missing") : HF_OK;
    status = hf_item_from_json(s, member->raw, item);
    if (status == HF_OK && needed && !hf_item_count(*item))
        return fail_member(s, place, member, "is empty");
    if (status == HF_OK || status == HF_NOMEM)
        return status;
    return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(s),
                                 "the event: Records[%zu].%s%s: %s", place->record, place->of,
                                 member->name, hf_scope_error_text(s));
}

/* ---- records -------------------------------------------------------------------------------- */

static enum hf_status read_kind(struct hf_scope *s, const struct place *place,
                                const struct json_member *member, enum hf_change_kind *kind)
{
    static const char *const names[] = {"INSERT", "MODIFY", "REMOVE"};
    struct hf_str name;

    TRY(read_text(s, place, member, true, &name));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (hf_str_equal(name, hf_str_from(names[i]))) {
            *kind = (enum hf_change_kind)(HF_CHANGE_INSERT + i);
            return HF_OK;
        }
    return fail_member(s, place, member, "is none of INSERT, MODIFY, REMOVE");
}

static enum hf_status read_change(struct json_reader *r, size_t number,
                                  const struct json_member *dynamodb, struct hf_change *change)
{
    struct json_member members[] = {{.name = "Keys"},
                                    {.name = "NewImage"},
                                    {.name = "OldImage"},
                                    {.name = "SequenceNumber"},
                                    {.name = "ApproximateCreationDateTime"}};
    struct place place = {.record = number, .of = ""};

    TRY(members_enter(r, &place, dynamodb, members, ARRAY_LEN(members)));
    place.of = "dynamodb.";
    TRY(read_item(r->s, &place, &members[0], true, &change->key));
    TRY(read_item(r->s, &place, &members[1], false, &change->new_image));
    TRY(read_item(r->s, &place, &members[2], false, &change->old_image));
    TRY(read_text(r->s, &place, &members[3], true, &change->sequence));
    return read_time(r->s, &place, &members[4], &change->time_us);
}

/* Was it the database itself, for the time to live? Runtimes and the service differ in spelling. */
static enum hf_status read_identity(struct json_reader *r, size_t number,
                                    const struct json_member *identity, bool *expired)
{
    struct json_member members[] = {{.name = "type"},
                                    {.name = "principalId"},
                                    {.name = "Type"},
                                    {.name = "PrincipalId"}};
    struct place place = {.record = number, .of = ""};
    struct hf_str texts[ARRAY_LEN(members)];

    *expired = false;
    if (!identity->raw.len)
        return HF_OK;
    TRY(members_enter(r, &place, identity, members, ARRAY_LEN(members)));
    place.of = "userIdentity.";
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        TRY(read_text(r->s, &place, &members[i], false, &texts[i]));
    for (size_t i = 0; i < ARRAY_LEN(members); i += 2)
        *expired = *expired || (hf_str_equal(texts[i], HF_STR("Service")) &&
                                hf_str_equal(texts[i + 1], HF_STR("dynamodb.amazonaws.com")));
    return HF_OK;
}

static enum hf_status read_record(struct json_reader *r, size_t number, struct hf_change *change)
{
    struct json_member members[] = {{.name = "eventID"},
                                    {.name = "eventName"},
                                    {.name = "eventSource"},
                                    {.name = "dynamodb"},
                                    {.name = "userIdentity"}};
    struct place place = {.record = number, .of = ""};
    struct hf_str source;
    size_t end;

    *change = (struct hf_change){.time_us = 0};
    if (hf__pattern_json_look(r) != '{')
        return hf_scope_fail(r->s, HF_INVALID, "the event: Records[%zu] is not an object", number);
    TRY(hf__pattern_json_all(r, 1, '}', members, ARRAY_LEN(members)));
    end = r->at;
    TRY(read_text(r->s, &place, &members[2], false, &source));
    if (source.len && !hf_str_equal(source, HF_STR("aws:dynamodb")))
        return fail_member(r->s, &place, &members[2], "is not aws:dynamodb");
    TRY(read_text(r->s, &place, &members[0], true, &change->id));
    TRY(read_kind(r->s, &place, &members[1], &change->kind));
    TRY(read_change(r, number, &members[3], change));
    TRY(read_identity(r, number, &members[4], &change->expired));
    r->at = end;
    return HF_OK;
}

static enum hf_status read_records(struct json_reader *r, const struct hf_change **changes,
                                   size_t *len)
{
    struct hf_change *list;
    size_t count = 0, from = r->at;

    r->at++; /* all of it is JSON: how many are there? */
    if (!hf__pattern_json_take(r, ']'))
        do {
            TRY(hf__pattern_json_pass(r, 1));
            count++;
        } while (hf__pattern_json_take(r, ','));
    list = hf_scope_alloc(r->s, (count ? count : 1) * sizeof(*list));
    if (!list)
        return hf_scope_built(r->s);
    r->at = from + 1;
    for (size_t i = 0; i < count; i++) {
        TRY(read_record(r, i, &list[i]));
        (void)hf__pattern_json_take(r, ',');
    }
    *changes = list;
    *len = count;
    return HF_OK;
}

enum hf_status hf_changes_decode(struct hf_scope *s, struct hf_str json,
                                 const struct hf_change **changes, size_t *len)
{
    struct json_reader r = {.s = s, .text = json, .status = HF_INVALID};
    struct json_member records = {.name = "Records"};

    call_begins(s);
    *changes = NULL;
    *len = 0;
    TRY(hf__pattern_json_object(&r, &records, 1));
    if (!records.raw.len || records.raw.ptr[0] != '[')
        return hf_scope_fail(s, HF_INVALID, "the event has no list \"Records\"");
    r.at = records.at;
    return read_records(&r, changes, len);
}
