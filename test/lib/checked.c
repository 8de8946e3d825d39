/*
 * test/lib/checked.c: what scope.h promises of every call that takes a scope: after HF_OK the scope
 * has no error, whatever was there before. The tests of the patterns and of the event store are compiled with the header that
 * test/lib/checked writes, so that each call in them is a test of this.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void hf__checked_begin(struct hf_scope *s);
enum hf_status hf__checked_end(struct hf_scope *s, enum hf_status status, const char *call);

/* An error of an earlier call, which needs no memory. */
void hf__checked_begin(struct hf_scope *s)
{
    if (s)
        (void)hf__fail_text(s, HF_INTERNAL, HF_STR("left over from an earlier call"));
}

enum hf_status hf__checked_end(struct hf_scope *s, enum hf_status status, const char *call)
{
    const struct hf_error *error = s ? hf_scope_error(s) : NULL;

    if (status != HF_OK || !error || error->status == HF_OK)
        return status;
    fprintf(stderr, "%s() returned HF_OK, and the scope has the error %s: %s\n", call,
            hf_status_name(error->status), hf_scope_error_text(s));
    if (!getenv("HF_CHECKED_REPORT")) /* with it all of them are listed */
        abort();
    return status;
}
