/*
 * outbox/outbox_only.c: a part of the events of an outbox: those of a type, a key, a tenant.
 *
 * A key names its bucket, so what is asked of one key reads one bucket. Types and tenants are
 * everywhere, and are filtered by the database (lists, counts, claims) or by us (relays, which
 * have to know what is ahead of what they deliver). What always holds: the filter of a request and
 * hf__outbox_only_has() accept the same events.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

enum hf_status hf__outbox_only_check(struct hf_scope *s, const struct outbox_only *only)
{
    const struct {
        const char *name;
        struct hf_str text;
    } all[] = {{"type", only->type}, {"key", only->key}, {"tenant", only->tenant}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].text.len > HF_EVENT_TEXT_MAX)
            return hf_scope_fail_limit(s, HF_INVALID,
                                       HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX, all[i].text.len),
                                       "the %s to look for has %zu bytes; events have at most %d",
                                       all[i].name, all[i].text.len, HF_EVENT_TEXT_MAX);
    return HF_OK;
}

/* The prefix that types need to have. False: they need to be equal. */
static bool is_prefix(struct hf_str type, struct hf_str *prefix)
{
    *prefix = type;
    if (!type.len || type.ptr[type.len - 1] != '*')
        return false;
    prefix->len--;
    return true;
}

bool hf__outbox_only_has(const struct outbox_only *only, const struct hf_event *event)
{
    struct hf_str prefix;

    if (is_prefix(only->type, &prefix)) {
        if (event->type.len < prefix.len ||
            (prefix.len && memcmp(event->type.ptr, prefix.ptr, prefix.len) != 0))
            return false;
    } else if (only->type.len && !hf_str_equal(event->type, only->type)) {
        return false;
    }
    return (!only->key.len || hf_str_equal(event->key, only->key)) &&
           (!only->tenant.len || hf_str_equal(event->tenant, only->tenant));
}

struct hf_str hf__outbox_only_filter(struct holders *h, const struct outbox_only *only)
{
    struct hf_str prefix, filter = {NULL, 0};
    bool begins = is_prefix(only->type, &prefix);
    const struct {
        const char *name, *value;
        struct hf_str text, wanted;
    } all[] = {
        {"#type", ":type", begins ? HF_STR("begins_with(#type, :type)") : HF_STR("#type = :type"),
         prefix},
        {"#key", ":key", HF_STR("#key = :key"), only->key},
        {"#tenant", ":tenant", HF_STR("#tenant = :tenant"), only->tenant},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!all[i].wanted.len)
            continue;
        NAMES(h, all[i].name);
        holders_value(h, (struct hf_attr){.name = hf_str_from(all[i].value),
                                          .type = HF_TYPE_S,
                                          .text = all[i].wanted});
        filter = hf__outbox_and(h->s, filter, all[i].text);
    }
    return filter;
}

struct hf_str hf__outbox_and(struct hf_scope *s, struct hf_str one, struct hf_str other)
{
    if (!one.len || !other.len)
        return one.len ? one : other;
    return hf_scope_format(s, "%.*s AND %.*s", HF_FMT(one), HF_FMT(other));
}

uint32_t hf__outbox_only_bucket(const struct hf_outbox *outbox, const struct outbox_only *only)
{
    return only->key.len ? hf__outbox_bucket(outbox, only->key) : UINT32_MAX;
}

struct hf_str hf__outbox_only_text(struct hf_scope *s, const struct outbox_only *only)
{
    struct hf_str text = {NULL, 0};

    if (only->type.len)
        text = hf_scope_format(s, "type=%.*s", HF_FMT(only->type));
    if (only->key.len)
        text = hf_scope_format(s, "%.*s%skey=%.*s", HF_FMT(text), text.len ? " " : "",
                               HF_FMT(only->key));
    if (only->tenant.len)
        text = hf_scope_format(s, "%.*s%stenant=%.*s", HF_FMT(text), text.len ? " " : "",
                               HF_FMT(only->tenant));
    return text;
}
