/*
 * test/lib/rewind.h: a store around another that can go back to a state it had before.
 *
 * A fuzz target wants every input to find the same database, and no time to go into making it:
 *
 *     rewind_open(s, env, inner, &store);   use it as any other store; closing it keeps `inner`
 *     rewind_mark(store);                   this is the state to go back to
 *     ...
 *     rewind_back(store);                   what differs is written back, in one batch
 *     rewind_close(store);                  closes the inner store, too
 *
 * Between rewind_mark() and rewind_back() nobody else may use the store. All of it fails by
 * abort().
 */
#ifndef HF_TEST_LIB_REWIND_H
#define HF_TEST_LIB_REWIND_H

#include "store/store.h"

void rewind_open(struct hf_scope *s, const struct hf_env *env, struct hf__store *inner,
                 struct hf__store **store);
void rewind_close(struct hf__store *store);

void rewind_mark(struct hf__store *store);
void rewind_back(struct hf__store *store);

/* Was a key written since the last rewind_forget()? And one whose first byte is from..to? A range
 * counts as its lower end. */
bool rewind_wrote(const struct hf__store *store);
bool rewind_wrote_in(const struct hf__store *store, uint8_t from, uint8_t to);
void rewind_forget(struct hf__store *store);

#endif
