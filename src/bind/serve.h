/*
 * bind/serve.h: methods for callers who are not the program that opened the database.
 */
#ifndef HF_BIND_SERVE_H
#define HF_BIND_SERVE_H

#include <holdfast/bind.h>

/*
 * From the first call on: whatever was opened for a table is opened anew when the table is another
 * one than it was, which each call asks the database for; and no call lists more than `list_max` at
 * once. Sessions, which keep what they have opened, are not to be used.
 */
void hf__bind_serve(struct hf_bind *bind, uint32_t list_max);

#endif
