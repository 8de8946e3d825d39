/*
 * patterns/table.c: the tables of patterns: made when they are missing, and verified.
 */
#include "patterns/private.h"

#include <holdfast/table.h>

enum hf_status hf__pattern_table(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_create_table *spec, struct hf_str ttl_attribute,
                                 bool no_create)
{
    struct hf_table_options options = {.size = sizeof(options), .no_create = no_create};
    bool ttl = false;

    if (ttl_attribute.len)
        TRY(hf_db_supports(s, db, HF_FEATURE_TIME_TO_LIVE, &ttl));
    if (ttl)
        options.ttl_attribute = ttl_attribute;
    return hf_table_ensure(s, db, spec, &options);
}
