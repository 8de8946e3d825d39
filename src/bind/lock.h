/*
 * bind/lock.h: what methods of locks and sessions of locks share.
 */
#ifndef HF_BIND_LOCK_H
#define HF_BIND_LOCK_H

#include <holdfast/lock.h>

#include "bind/table.h"

enum hf_status hf__bind_locks(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                              bool create, struct hf_lock_table **locks);

#endif
