/*
 * engine/maintenance/maintenance.h: the maintenance thread of the engine, and backfilling, one of
 * its steps.
 */
#ifndef HF_ENGINE_MAINTENANCE_MAINTENANCE_H
#define HF_ENGINE_MAINTENANCE_MAINTENANCE_H

#include "engine/engine.h"

enum hf_status hf__engine_maintenance_start(struct hf_scope *s, struct engine *e);
void hf__engine_maintenance_stop(struct engine *e);
void hf__engine_maintenance_wake(
    struct engine *e); /* there is work: do not wait for the next round */

/* ---- backfill.c ----------------------------------------------------------------------------- */

enum hf_status hf__backfill(struct hf_scope *s, struct engine *e, uint64_t *looked_at);

#endif
