/*
 * engine/table/catalog_fields.c: how tables are stored: JSON, by the same walkers that read and
 * write requests. A field that a newer version adds is absent in older records, and that is its
 * default; names here are part of the format on disk and never change.
 */
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "ops/fields.h"

#define AT(type, member) (uint16_t) offsetof(struct type, member)

static const struct field index_record_list[] = {
    {.name = "Name", .kind = FIELD_STR, .at = AT(index_record, name)},
    {.name = "Id", .kind = FIELD_INT, .at = AT(index_record, id)},
    {.name = "Building", .kind = FIELD_FLAG, .at = AT(index_record, building)},
};

static const struct fields index_record_fields = {"IndexRecord", index_record_list,
                                                  ARRAY_LEN(index_record_list),
                                                  sizeof(struct index_record)};

static const struct field tag_list[] = {
    {.name = "Key", .kind = FIELD_STR, .at = AT(hf_tag, key)},
    {.name = "Value", .kind = FIELD_STR, .at = AT(hf_tag, value)},
};

static const struct fields tag_fields = {"Tag", tag_list, ARRAY_LEN(tag_list),
                                         sizeof(struct hf_tag)};

static const struct field table_record_list[] = {
    {.name = "Table",
     .kind = FIELD_STRUCT,
     .at = AT(table_record, description),
     .sub = &hf__table_description_fields},
    {.name = "Id", .kind = FIELD_INT, .at = AT(table_record, id)},
    {.name = "Indexes",
     .kind = FIELD_STRUCTS,
     .at = AT(table_record, indexes),
     .count_at = AT(table_record, indexes_len),
     .sub = &index_record_fields},
    {.name = "TtlAttribute", .kind = FIELD_STR, .at = AT(table_record, ttl_attribute)},
    {.name = "TtlId", .kind = FIELD_INT, .at = AT(table_record, ttl_id)},
    {.name = "TtlBuilding", .kind = FIELD_FLAG, .at = AT(table_record, ttl_building)},
    {.name = "StreamId", .kind = FIELD_INT, .at = AT(table_record, stream_id)},
    {.name = "Tags",
     .kind = FIELD_STRUCTS,
     .at = AT(table_record, tags),
     .count_at = AT(table_record, tags_len),
     .sub = &tag_fields},
    {.name = "ResourcePolicy", .kind = FIELD_STR, .at = AT(table_record, resource_policy)},
    {.name = "PolicyRevision", .kind = FIELD_INT, .at = AT(table_record, policy_revision)},
    {.name = "RestoreFrom", .kind = FIELD_INT, .at = AT(table_record, restore_from)},
};

const struct fields hf__table_record_fields = {"TableRecord", table_record_list,
                                               ARRAY_LEN(table_record_list),
                                               sizeof(struct table_record)};
