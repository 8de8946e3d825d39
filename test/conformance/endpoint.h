/*
 * test/conformance/endpoint.h: the kind "endpoint": whatever listens at the URL in HF_ENDPOINT,
 * reached through hf_connect(). What differs from the files is no failure but is written to the
 * file that HF_DIFFERENCES names, a line of JSON each; test/foreign compares these with what is
 * known.
 *
 * Every table there is deleted before each file: never let it be an account that matters.
 */
#ifndef HF_TEST_CONFORMANCE_ENDPOINT_H
#define HF_TEST_CONFORMANCE_ENDPOINT_H

#include <jansson.h>

#include "world.h"

/* Is there an endpoint to be tested? */
bool endpoint_given(void);

/* Connect; no table is there then. */
struct hf_db *endpoint_open(struct test *t, struct hf_scope *s);

/*
 * world_exchange(), but with region and account as the endpoint has them where the files say
 * us-east-1 and 123456789012, and with waiting until tables and indexes are what was asked for.
 */
bool endpoint_exchange(struct world *w, const char *operation, struct hf_str body,
                       struct hf_str *answer);

/* Note that a step ended otherwise. */
void endpoint_differs(const char *file, size_t step, const json_t *asked, const char *why,
                      const json_t *expected, const json_t *got);

#endif
