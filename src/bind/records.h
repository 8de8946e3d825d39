/*
 * bind/records.h: what methods of records and of sessions on them share.
 */
#ifndef HF_BIND_RECORDS_H
#define HF_BIND_RECORDS_H

#include <holdfast/records.h>

#include "bind/table.h"

enum hf_status hf__bind_records(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                bool create, struct hf_records **records);

extern const struct bind_fields hf__bind_record; /* of struct hf_record_info */

#endif
