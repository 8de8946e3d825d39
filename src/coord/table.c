/*
 * coord/table.c: the tables of patterns: made when they are missing, and verified.
 *
 * hf_table_ensure() switches on what is off: a time to live, a stream, an index. In a table of
 * another program that would do harm before its mark says whose it is (kind.c); and of two patterns
 * that open an empty table at once, the one that is refused must not have changed what the other
 * one needs. So a table is opened in three steps:
 *
 *     hf__pattern_table_begin()   looks, and makes the table when it is missing
 *     hf__kind_open() and others  look for the mark, or put it
 *     hf__pattern_table_end()     changes what is to be changed
 *
 *  (1) A table that is as it is to be is not changed, and costs no request more than to see that.
 *  (2) Where we are refused nothing was changed.
 *  (3) A table whose items expire by another attribute, which cannot be changed, gets no mark.
 */
#include "coord/pattern.h"

#include <holdfast/table.h>

/* Without an attribute where the database has no time to live. */
static enum hf_status options_of(struct hf_scope *s, struct hf_db *db, struct hf_str ttl_attribute,
                                 struct hf_table_options *options)
{
    bool ttl = false;

    if (ttl_attribute.len)
        TRY(hf_db_supports(s, db, HF_FEATURE_TIME_TO_LIVE, &ttl));
    if (ttl)
        options->ttl_attribute = ttl_attribute;
    return HF_OK;
}

enum hf_status hf__pattern_table(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_create_table *spec, struct hf_str ttl_attribute,
                                 bool no_create)
{
    struct hf_table_options options = {.size = sizeof(options), .no_create = no_create};

    TRY(options_of(s, db, ttl_attribute, &options));
    return hf_table_ensure(s, db, spec, &options);
}

/* The keys alone, which are what it takes to read a mark. */
static struct hf_create_table keys_of(const struct hf_create_table *spec,
                                      struct hf_attribute_definition attributes[2])
{
    struct hf_create_table keys = {.table = spec->table,
                                   .attributes = attributes,
                                   .key_schema = spec->key_schema,
                                   .key_schema_len = spec->key_schema_len};

    assert(spec->key_schema_len <= 2);
    for (size_t i = 0; i < spec->attributes_len; i++)
        for (size_t j = 0; j < spec->key_schema_len; j++)
            if (hf_str_equal(spec->attributes[i].name, spec->key_schema[j].name))
                attributes[keys.attributes_len++] = spec->attributes[i];
    assert(keys.attributes_len == keys.key_schema_len && "a key without a type");
    return keys;
}

/* (3) */
static bool expires_otherwise(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                              struct hf_str attribute)
{
    struct hf_describe_time_to_live describe = {.table = table};
    struct hf_describe_time_to_live_result result;

    return attribute.len && hf_describe_time_to_live(s, db, &describe, &result) == HF_OK &&
           result.description->attribute.len &&
           !hf_str_equal(result.description->attribute, attribute);
}

/* The table differs from the spec, as the error says. HF_OK: the differences can be changed, and
 * the table may become ours. HF_INVALID says whose it is, if that is known. */
static enum hf_status may_change(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_create_table *spec, struct hf_str ttl_attribute,
                                 const struct pattern_open *how)
{
    struct hf_table_options look = {.size = sizeof(look), .no_create = true, .any_isolation = true};
    struct hf_str why = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));
    struct hf_attribute_definition attributes[2];
    struct hf_create_table keys = keys_of(spec, attributes);
    enum hf_status status = hf_table_ensure(s, db, &keys, &look);
    bool marked = false;

    if (status == HF_INVALID)
        return hf_scope_fail(s, HF_INVALID, "%.*s", HF_FMT(why));
    TRY(status);
    TRY(hf__kind_look(
        s, &(struct kind_table){.db = db, .spec = &keys, .kind = how->kind, .adopt = how->adopt},
        &marked));
    if (how->no_create || (!marked && expires_otherwise(s, db, spec->table, ttl_attribute)))
        return hf_scope_fail(s, HF_INVALID, "%.*s", HF_FMT(why));
    return HF_OK;
}

enum hf_status hf__pattern_table_begin(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_create_table *spec,
                                       struct hf_str ttl_attribute, struct pattern_open *how)
{
    struct hf_table_options look = {.size = sizeof(look), .no_create = true};
    enum hf_status status;

    TRY(options_of(s, db, ttl_attribute, &look));
    status = hf_table_ensure(s, db, spec, &look);
    how->ready = status == HF_OK; /* (1) */
    if (status == HF_NOT_FOUND && !how->no_create)
        return hf_table_ensure(s, db, spec, NULL);
    return status == HF_INVALID ? may_change(s, db, spec, look.ttl_attribute, how) : status;
}

enum hf_status hf__pattern_table_end(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_create_table *spec,
                                     struct hf_str ttl_attribute, const struct pattern_open *how)
{
    struct hf_table_options change = {.size = sizeof(change), .add_indexes = how->add_indexes};

    if (how->ready)
        return HF_OK;
    TRY(options_of(s, db, ttl_attribute, &change));
    return hf_table_ensure(s, db, spec, &change);
}
