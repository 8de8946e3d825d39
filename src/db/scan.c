/*
 * db/scan.c: Scan with its types. The segments of a parallel scan are numbered from 0, and in a
 * request 0 is "left out": so where a C program says how many there are, its 0 is the first one.
 * The wire can tell the two apart, and hf_db_call() leaves them as they are.
 */
#include "db/db.h"

enum hf_status hf_scan(struct hf_scope *s, struct hf_db *db, const struct hf_scan *request,
                       struct hf_scan_result *result)
{
    struct hf_scan meant;

    if (!request)
        return hf_db_call(s, db, HF_OP_SCAN, NULL, result);
    meant = *request;
    if (meant.total_segments && meant.segment == 0)
        meant.segment = HF_ZERO;
    return hf_db_call(s, db, HF_OP_SCAN, &meant, result);
}
