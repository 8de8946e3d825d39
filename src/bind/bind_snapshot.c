/*
 * bind/bind_snapshot.c: methods of snapshots of aggregates: what events.snapshot gives, and
 * events.save_snapshot keeps.
 */
#include "bind/events.h"

#include <holdfast/aggregate.h>

struct events_snapshot_args {
    struct hf_str table;
    struct hf_event_stream_key stream;
    struct hf_str name;
    struct hf_snapshot snapshot;
};
struct events_save_snapshot_result {
    bool saved;
};

#define T events_snapshot_args
ARGUMENTS(events_snapshot, TEXT("table", table), TEXT("domain", stream.domain, REQUIRED),
          TEXT("id", stream.id), TEXT("name", name));
ARGUMENTS(events_save_snapshot, TEXT("table", table), TEXT("domain", stream.domain, REQUIRED),
          TEXT("id", stream.id), TEXT("name", name), U64("version", snapshot.version, REQUIRED),
          U32("schema", snapshot.schema), ITEM("state", snapshot.item, REQUIRED));
#undef T
#define T hf_snapshot
RESULT(events_snapshot, U64("version", version), U32("schema", schema), ITEM("state", item),
       I64("time_us", time_us));
#undef T
#define T events_save_snapshot_result
RESULT(events_save_snapshot, BOOL("saved", saved));
#undef T

BIND_FUNCTION(events_snapshot)
{
    struct events_snapshot_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, false, &store));
    return hf_snapshot_get(s, store, args->stream, args->name, result_out);
}

BIND_FUNCTION(events_save_snapshot)
{
    struct events_save_snapshot_result *result = result_out;
    struct events_snapshot_args *args = args_in;
    struct hf_events *store;

    TRY(hf__bind_events(s, bind, args->table, true, &store));
    return hf_snapshot_save(s, store, args->stream, args->name, &args->snapshot, &result->saved);
}
