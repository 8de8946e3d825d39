/*
 * ops/refused.c: members of requests that DynamoDB's model has and that are refused by name.
 *
 * A member that no table of fields has is stepped over, as the service does with what it does not
 * know. What it does know must not be lost that way: a caller that asks for an index or a replica has to
 * learn that there will be none. ReplicaUpdates has a place in its struct, and prepare_tables.c
 * refuses it. test/hostile/members.py compares all of them with the service's own model.
 */
#include "ops/table.h"

#define NO_VECTORS "there are no vector indexes"
#define NO_REGIONS "there are no other regions"

static const struct field_refused refused[] = {
    {&hf__fields_create_table, "VectorIndexes", NO_VECTORS},
    {&hf__fields_create_table, "GlobalTableSourceArn", NO_REGIONS},
    {&hf__fields_create_table, "GlobalTableSettingsReplicationMode", NO_REGIONS},
    {&hf__fields_update_table, "VectorIndexUpdates", NO_VECTORS},
    {&hf__fields_update_table, "MultiRegionConsistency", NO_REGIONS},
    {&hf__fields_update_table, "GlobalTableWitnessUpdates", NO_REGIONS},
    {&hf__fields_update_table, "GlobalTableSettingsReplicationMode", NO_REGIONS},
};

const struct field_refused *hf__field_refused(const struct fields *fields, struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i].of == fields && str_is(name, refused[i].name))
            return &refused[i];
    return NULL;
}
