/*
 * test/conformance/values.h: JSON values with holes. A request may say how a long value is made,
 * an expected answer which parts of it vary. README.md lists the words.
 */
#ifndef HF_TEST_CONFORMANCE_VALUES_H
#define HF_TEST_CONFORMANCE_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What "$save:name" kept, and the turn of a step that is done several times. */
struct holes {
    json_t *saved;
    long turn;
    char why[512]; /* where the last comparison failed, or what is wrong with a file */
};

/* A new value in which all that says how to make a value is made; NULL and `why` if it cannot. */
json_t *hf__holes_fill(struct holes *h, const json_t *value);

/* Is `actual` what the filled `expected` describes? If not, `why` says where. */
bool hf__holes_match(struct holes *h, const json_t *expected, const json_t *actual);

/* Keep what "$save:name" asks for although the rest is not as expected. */
void hf__holes_take(struct holes *h, const json_t *expected, const json_t *actual);

#endif
