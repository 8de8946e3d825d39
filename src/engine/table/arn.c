/*
 * engine/table/arn.c: ARNs of tables, arn:aws:dynamodb:<region>:<account>:table/<name>, and of
 * their backups, exports and imports, which have /backup/<id> and so on behind that. An ARN of another partition, account or
 * region must not lead to a table of ours that happens to have the same name.
 */
#include "engine/table/catalog.h"

bool hf__arn_is(struct hf_str text)
{
    return text.len >= 4 && memcmp(text.ptr, "arn:", 4) == 0;
}

/* The next of six parts, which are separated by colons; the last part is the rest. */
static struct hf_str next_part(struct hf_str *rest, bool last)
{
    const char *colon = last ? NULL : memchr(rest->ptr, ':', rest->len);
    struct hf_str part = *rest;

    if (!colon) {
        rest->len = 0;
        return part;
    }
    part.len = (size_t)(colon - rest->ptr);
    rest->ptr = colon + 1;
    rest->len -= part.len + 1;
    return part;
}

/* What comes behind table/ is the name, with whatever follows it. */
static bool arn_split_parts(struct hf_str arn, struct table_arn *out)
{
    static const char prefix[] = "table/";
    const size_t prefix_len = sizeof(prefix) - 1;
    struct hf_str parts[6];
    struct hf_str name;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        parts[i] = next_part(&arn, i == ARRAY_LEN(parts) - 1);
    name = parts[5];
    if (!str_is(parts[0], "arn") || !str_is(parts[1], "aws") || !str_is(parts[2], "dynamodb") ||
        parts[4].len == 0 || name.len <= prefix_len || memcmp(name.ptr, prefix, prefix_len) != 0)
        return false;
    *out = (struct table_arn){parts[3], parts[4],
                              hf_str_of(name.ptr + prefix_len, name.len - prefix_len)};
    return true;
}

bool hf__arn_split(struct hf_str arn, struct table_arn *out)
{
    return arn_split_parts(arn, out) && memchr(out->name.ptr, '/', out->name.len) == NULL;
}

bool hf__arn_split_part(struct hf_str arn, struct hf_str mark, struct table_arn *out,
                        struct hf_str *tail)
{
    const char *at;

    if (!arn_split_parts(arn, out))
        return false;
    at = memmem(out->name.ptr, out->name.len, mark.ptr, mark.len);
    if (!at)
        return false;
    *tail = hf_str_of(at + mark.len, out->name.len - (size_t)(at - out->name.ptr) - mark.len);
    out->name.len = (size_t)(at - out->name.ptr);
    assert(tail->ptr + tail->len == arn.ptr + arn.len);
    return out->name.len > 0 && tail->len > 0 &&
           memchr(out->name.ptr, '/', out->name.len) == NULL &&
           memchr(tail->ptr, '/', tail->len) == NULL;
}

bool hf__arn_split_backup(struct hf_str arn, struct table_arn *out, struct hf_str *tail)
{
    return hf__arn_split_part(arn, HF_STR("/backup/"), out, tail);
}

enum hf_status hf__arn_check_account(struct hf_scope *s, const struct engine *e,
                                     struct hf_str account, struct hf_str arn)
{
    if (hf_str_equal(account, e->account))
        return HF_OK;
    return hf__fail(s, HF_DENIED,
                    "User: arn:aws:iam::%.*s:root is not authorized to perform this operation on "
                    "resource: %.*s",
                    HF_FMT(e->account), HF_FMT(arn));
}
