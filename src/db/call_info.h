/*
 * db/call_info.h: what a call is about, without a look into its items: table, number of items, units.
 */
#ifndef HF_DB_CALL_INFO_H
#define HF_DB_CALL_INFO_H

#include "db/db.h"

/* The table that the request names, of several the first; absent when it names none, or in a
 * statement only. */
struct hf_str hf__db_call_table(enum hf_op op, const void *request);

/* The table of the nth table or action of the request; absent behind the last. */
struct hf_str hf__db_call_nth_table(enum hf_op op, const void *request, size_t n);

/* Does the request name that table, among others or alone? */
bool hf__db_call_names(enum hf_op op, const void *request, struct hf_str table);

/* Does the response name the start of its own page as the start of the next one? A caller that
 * believed it would read that page again and again. The response is of a call that succeeded. */
bool hf__db_call_stands_still(enum hf_op op, const void *request, const void *response);

/* How many items, keys or statements the request has, and how many items or records came back. The
 * response is of a call that succeeded. */
size_t hf__db_call_sent(enum hf_op op, const void *request);
size_t hf__db_call_returned(enum hf_op op, const void *response);

/* The units that the answer says were consumed; 0 when it was not asked to say. */
struct call_units {
    double read;
    double write;
};
struct call_units hf__db_call_units(enum hf_op op, const void *request, const void *response);

#endif
