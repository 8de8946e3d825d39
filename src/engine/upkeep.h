/*
 * engine/upkeep.h: the engine's own thread, and the building of indexes, which it does.
 */
#ifndef HF_ENGINE_UPKEEP_H
#define HF_ENGINE_UPKEEP_H

#include "engine/engine.h"

enum hf_status hf__upkeep_start(struct hf_scope *s, struct engine *e);
void hf__upkeep_stop(struct engine *e);
void hf__upkeep_poke(struct engine *e); /* there is work: do not wait for the next second */

/* ---- backfill.c ----------------------------------------------------------------------------- */

enum hf_status hf__backfill(struct hf_scope *s, struct engine *e, uint64_t *looked_at);

#endif
