/*
 * bind/events.h: what methods of event stores and of sessions on them share.
 */
#ifndef HF_BIND_EVENTS_H
#define HF_BIND_EVENTS_H

#include <holdfast/events.h>

#include "bind/table.h"

enum hf_status hf__bind_events(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                               bool create, struct hf_events **store);

extern const struct bind_fields hf__bind_stored_event; /* of struct hf_stored_event */

#endif
