/*
 * outbox/outbox_claim.h: what outbox_claim.c, which takes claims, and outbox_claimed.c, which is for
 * their holders, share.
 */
#ifndef HF_OUTBOX_OUTBOX_CLAIM_H
#define HF_OUTBOX_OUTBOX_CLAIM_H

#include "outbox/outbox.h"

enum { OUTBOX_LEASE_MS = 30000 };

/* The options of a claim with their defaults, checked. */
enum hf_status hf__outbox_claim_options(struct hf_scope *s, const struct hf_claim_options *options,
                                        struct hf_claim_options *o);

static inline int64_t claim_now_us(const struct hf_outbox *outbox)
{
    return outbox->env.wall_us(outbox->env.user);
}

/* The claim on an event; empty: nobody has claimed it. */
static inline struct hf_str claim_token(struct hf_item item)
{
    return hf_value_str(hf_item_get(item, HF_STR("token")));
}

/* How often it was claimed. */
static inline int64_t claim_fence(struct hf_item item)
{
    int64_t fence;

    return hf_value_i64(hf_item_get(item, HF_STR("fence")), &fence) ? fence : 0;
}

#endif
