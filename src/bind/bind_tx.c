/*
 * bind/bind_tx.c: the actions of a transaction that patterns have put together.
 */
#include "bind/private.h"
#include "coord/pattern.h"

enum hf_status hf__bind_tx_actions(struct hf_scope *s, const struct hf_tx *tx,
                                   struct bind_actions *result)
{
    if (hf_tx_len(tx) == 0) {
        result->actions = HF_STR("[]");
        return HF_OK;
    }
    return hf__bind_actions(s, hf__tx_actions(tx), hf_tx_len(tx), result);
}
