/*
 * engine/maintenance.h: the engine's own thread, and the building of indexes, which it does.
 */
#ifndef HF_ENGINE_MAINTENANCE_H
#define HF_ENGINE_MAINTENANCE_H

#include "engine/engine.h"

enum hf_status hf__engine_maintenance_start(struct hf_scope *s, struct engine *e);
void hf__engine_maintenance_stop(struct engine *e);
void hf__engine_maintenance_wake(
    struct engine *e); /* there is work: do not wait for the next second */

/* ---- backfill.c ----------------------------------------------------------------------------- */

enum hf_status hf__backfill(struct hf_scope *s, struct engine *e, uint64_t *looked_at);

#endif
