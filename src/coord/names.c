/*
 * coord/names.c: names of attributes that callers choose, checked before a table is made.
 *
 * In expressions a chosen name has a placeholder, always, so it may be any text. What it must not
 * be is the name of another attribute of the same item: then one would overwrite the other.
 */
#include "coord/names.h"

#define MARK_ATTR "holdfast" /* of marks, which have the key of the table, too */

struct choice {
    const char *option;
    struct hf_str name;
};

static bool is_own(struct hf_str name, const char *own)
{
    struct hf_str text = hf_str_from(own);

    assert(text.len > 0);
    if (text.ptr[text.len - 1] == ':')
        return name.len >= text.len && memcmp(name.ptr, text.ptr, text.len) == 0;
    return hf_str_equal(name, text);
}

static enum hf_status check_one(struct hf_scope *s, struct hf_str table,
                                const struct choice *choice, const char *const *own)
{
    bool taken = is_own(choice->name, MARK_ATTR);

    if (!choice->name.len)
        return hf_scope_fail(s, HF_INVALID, "table %.*s: %s is empty", HF_FMT(table),
                             choice->option);
    if (choice->name.len > PATTERN_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of(choice->option, PATTERN_NAME_MAX,
                                                     choice->name.len),
                                   "table %.*s: %s has %zu bytes, more than %d", HF_FMT(table),
                                   choice->option, choice->name.len, PATTERN_NAME_MAX);
    for (; *own && !taken; own++)
        taken = is_own(choice->name, *own);
    if (taken)
        return hf_scope_fail(s, HF_INVALID,
                             "table %.*s: %s cannot be \"%.*s\": its items have another attribute "
                             "of that name",
                             HF_FMT(table), choice->option, HF_FMT(choice->name));
    return HF_OK;
}

enum hf_status hf__pattern_names(struct hf_scope *s, const struct pattern_at *at,
                                 const char *const *own)
{
    const struct choice choices[] = {{"hash_attribute", at->hash},
                                     {"expires_attribute", at->expires},
                                     {"sort_attribute", at->sort}};
    size_t len = at->sort.ptr ? 3 : 2;

    for (size_t i = 0; i < len; i++) {
        TRY(check_one(s, at->table, &choices[i], own));
        for (size_t j = 0; j < i; j++)
            if (hf_str_equal(choices[i].name, choices[j].name))
                return hf_scope_fail(s, HF_INVALID, "table %.*s: %s and %s are both \"%.*s\"",
                                     HF_FMT(at->table), choices[j].option, choices[i].option,
                                     HF_FMT(choices[i].name));
    }
    return HF_OK;
}
