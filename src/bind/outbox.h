/*
 * bind/outbox.h: what methods of outboxes and of sessions on them share.
 */
#ifndef HF_BIND_OUTBOX_H
#define HF_BIND_OUTBOX_H

#include <holdfast/outbox.h>

#include "bind/table.h"

enum hf_status hf__bind_outbox(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                               bool create, struct hf_outbox **outbox);

extern const struct bind_fields hf__bind_event;        /* of struct hf_event */
extern const struct bind_fields hf__bind_outbox_event; /* of struct hf_outbox_event */

#endif
