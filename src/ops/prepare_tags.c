/*
 * ops/prepare_tags.c: TagResource, UntagResource, and the tags of CreateTable.
 *
 * Lengths count characters. Letters of every script are allowed; we know the letters of ASCII and
 * take every character beyond it for one.
 */
#include "ops/private.h"

enum {
    TAGS_MAX = 50,
    TAG_KEY_MAX = 128,  /* characters */
    TAG_VALUE_MAX = 256 /* characters */
};

/* ---- keys and values ------------------------------------------------------------------------ */

static size_t count_characters(struct hf_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((uint8_t)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

/* Letters, digits, spaces and a few signs. */
static bool tag_text(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];

        if (c < 0x80 && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') && !char_in((char)c, " +-=._:/@"))
            return false;
    }
    return true;
}

static enum hf_status check_tag_key(struct hf_scope *s, struct hf_str key)
{
    if (!key.ptr)
        return hf__fail(s, HF_INVALID, "The Tag Key provided is invalid, Key: null");
    if (key.len == 0 || count_characters(key) > TAG_KEY_MAX || !tag_text(key))
        return hf__fail(s, HF_INVALID, "The Tag Key provided is invalid, Key: %.*s", HF_FMT(key));
    if (key.len >= 4 && memcmp(key.ptr, "aws:", 4) == 0)
        return hf__fail(s, HF_INVALID, "Tag Key cannot be prefixed with aws:, Key: %.*s",
                        HF_FMT(key));
    return HF_OK;
}

static enum hf_status check_tag_value(struct hf_scope *s, struct hf_str value)
{
    if (!value.ptr)
        return hf__fail(s, HF_INVALID, "The Tag Value provided is invalid, Value: null");
    if (count_characters(value) > TAG_VALUE_MAX || !tag_text(value))
        return hf__fail(s, HF_INVALID, "The Tag Value provided is invalid, Value: %.*s",
                        HF_FMT(value));
    return HF_OK;
}

enum hf_status hf__check_tags(struct hf_scope *s, const struct hf_tag *tags, size_t len)
{
    const struct hf_str *repeat;

    assert(tags || !len);
    if (len > TAGS_MAX)
        return hf__fail(s, HF_INVALID,
                        "Number of Tags exceed the current limit for the provided ResourceArn");
    for (size_t i = 0; i < len; i++) {
        TRY(check_tag_key(s, tags[i].key));
        TRY(check_tag_value(s, tags[i].value));
    }
    TRY(hf__find_repeat(s, tags, sizeof(*tags), len, &repeat));
    if (repeat)
        return hf__fail(s, HF_INVALID,
                        "Duplicate Tag Keys provided as input: Duplicate Tag Key found %.*s",
                        HF_FMT(*repeat));
    return HF_OK;
}

/* ---- resources ------------------------------------------------------------------------------ */

static bool next_part(struct hf_str *rest, struct hf_str *part)
{
    const char *colon = rest->len ? memchr(rest->ptr, ':', rest->len) : NULL;

    assert(rest->ptr || !rest->len);
    if (!colon)
        return false;
    *part = hf_str_of(rest->ptr, (size_t)(colon - rest->ptr));
    assert(part->len < rest->len);
    *rest = hf_str_of(colon + 1, rest->len - part->len - 1);
    return true;
}

/* arn:aws:dynamodb:<region>:<account>:table/<name>, perhaps with an index behind it. */
static bool is_table_arn(struct hf_str arn)
{
    const struct hf_str table = HF_STR("table/");
    struct hf_str rest = arn;
    struct hf_str arn_part, partition, service, region, account;

    if (!next_part(&rest, &arn_part) || !next_part(&rest, &partition) ||
        !next_part(&rest, &service) || !next_part(&rest, &region) || !next_part(&rest, &account))
        return false;
    if (!hf_str_equal(arn_part, HF_STR("arn")) || !hf_str_equal(service, HF_STR("dynamodb")) ||
        partition.len < 3 || memcmp(partition.ptr, "aws", 3) != 0 || region.len == 0)
        return false;
    for (size_t i = 0; i < account.len; i++)
        if (account.ptr[i] < '0' || account.ptr[i] > '9')
            return false;
    return account.len > 0 && rest.len > table.len && memcmp(rest.ptr, table.ptr, table.len) == 0;
}

/* Of an ARN of a table: does an index or a stream follow the name? */
static bool has_more_than_table(struct hf_str arn)
{
    const char *slash = memchr(arn.ptr, '/', arn.len), *name;

    assert(slash); /* is_table_arn() */
    name = slash + 1;
    return memchr(name, '/', arn.len - (size_t)(name - arn.ptr)) != NULL;
}

static bool is_backup_arn(struct hf_str arn)
{
    assert(is_table_arn(arn));
    return memmem(arn.ptr, arn.len, "/backup/", 8) != NULL;
}

enum hf_status hf__prepare_resource_arn(struct hf_scope *s, struct hf_str arn)
{
    assert(arn.ptr || !arn.len);
    if (arn.len < 4 || memcmp(arn.ptr, "arn:", 4) != 0)
        return hf__fail(s, HF_INVALID, BAD_VALUES "ARNs must start with 'arn:': %.*s", HF_FMT(arn));
    if (!is_table_arn(arn) || is_backup_arn(arn))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Provided Arn is not a DynamoDB resource arn: %.*s",
                        HF_FMT(arn));
    if (has_more_than_table(arn))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Invalid resource arn provided, only table or stream is "
                                   "accepted. Provided resource arn: %.*s",
                        HF_FMT(arn));
    return HF_OK;
}

enum hf_status hf__prepare_tag_resource(struct hf_scope *s, const struct hf_tag_resource *request)
{
    TRY(hf__constraints(s, HF_OP_TAG_RESOURCE, request));
    TRY(hf__prepare_resource_arn(s, request->arn));
    if (request->tags_len == 0)
        return hf__fail(s, HF_INVALID, "Atleast one Tag needs to be provided as Input.");
    return hf__check_tags(s, request->tags, request->tags_len);
}

enum hf_status hf__prepare_untag_resource(struct hf_scope *s,
                                          const struct hf_untag_resource *request)
{
    TRY(hf__constraints(s, HF_OP_UNTAG_RESOURCE, request));
    TRY(hf__prepare_resource_arn(s, request->arn));
    if (request->keys_len == 0)
        return hf__fail(s, HF_INVALID, "Atleast one Tag Key needs to be provided as Input.");
    for (size_t i = 0; i < request->keys_len; i++)
        TRY(check_tag_key(s, request->keys[i]));
    return HF_OK;
}
