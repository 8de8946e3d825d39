/*
 * db/about.h: what wrappers want to know of a call and can have without looking into items.
 */
#ifndef HF_DB_ABOUT_H
#define HF_DB_ABOUT_H

#include "db/db.h"

/* The table that the request names, of several the first; absent when it names none, or in a
 * statement only. */
struct hf_str hf__about_table(enum hf_op op, const void *request);

/* The table of the nth table or action of the request; absent behind the last. */
struct hf_str hf__about_nth_table(enum hf_op op, const void *request, size_t n);

/* Does the request name that table, among others or alone? */
bool hf__about_names(enum hf_op op, const void *request, struct hf_str table);

/* Does the answer say to go on where the request began? Who believes it asks for that page again
 * and again. The response is of a call that succeeded. */
bool hf__about_stands_still(enum hf_op op, const void *request, const void *response);

/* How many items, keys or statements the request has, and how many items or records came back. The
 * response is of a call that succeeded. */
size_t hf__about_sent(enum hf_op op, const void *request);
size_t hf__about_returned(enum hf_op op, const void *response);

/* The units that the answer says were consumed; 0 when it was not asked to say. */
struct about_units {
    double read;
    double write;
};
struct about_units hf__about_units(enum hf_op op, const void *request, const void *response);

#endif
