/*
 * engine/item/latch.h: locks on partitions; latch.c has the essay.
 */
#ifndef HF_ENGINE_ITEM_LATCH_H
#define HF_ENGINE_ITEM_LATCH_H

#include "engine/engine.h"

/* A set of latches, held in ascending order. */
struct latch_set {
    uint16_t *numbers;
    size_t len;
    size_t cap;
};

enum hf_status hf__latch_set(struct hf_scope *s, size_t cap, struct latch_set *set);
void hf__latch_want(struct latch_set *set, size_t number);
void hf__latch_all(struct engine *e, struct latch_set *set);
/* The same for a caller that may not wait for long: see hf__scope_set_patience(). */
enum hf_status hf__latch_all_patient(struct hf_scope *s, struct engine *e, struct latch_set *set);
enum hf_status hf__latch_patient(struct hf_scope *s, struct engine *e, size_t number);
void hf__unlatch_all(struct engine *e, struct latch_set *set, uint64_t ticket);
void hf__latch(struct engine *e, size_t number);

/* `ticket` is that of the write that was made under the latch; 0 when there was none. */
void hf__unlatch(struct engine *e, size_t number, uint64_t ticket);

/* The ticket that has to be durable before a read of that partition may be returned. */
uint64_t hf__latch_ticket(struct engine *e, size_t number);

/* The newest ticket; the caller holds the latch. */
uint64_t hf__latch_own_ticket(struct engine *e, size_t number);

#endif
