/*
 * bind/once.h: what methods of do-once records and of attempts share.
 */
#ifndef HF_BIND_ONCE_H
#define HF_BIND_ONCE_H

#include <holdfast/once.h>

#include "bind/table.h"

enum hf_status hf__bind_onces(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                              bool create, struct hf_once_table **onces);

extern const struct bind_fields hf__bind_once_record; /* of struct hf_once_record */

#endif
