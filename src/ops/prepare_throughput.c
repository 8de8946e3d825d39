/*
 * ops/prepare_throughput.c: the throughput of tables and indexes in a request: provisioned units,
 * limits of on-demand tables, warm throughput. Whether a value changes or decreases depends on the
 * table: the engine checks that.
 */
#include "ops/private.h"

#define UNITS_MAX INT64_C(1000000000000)

/* ---- provisioned units ---------------------------------------------------------------------- */

enum hf_status hf__check_units(struct hf_scope *s, const struct hf_throughput *throughput)
{
    assert(throughput->read_units != 0 && throughput->write_units != 0); /* both are required */
    if (throughput->read_units > UNITS_MAX)
        return hf__fail(s, HF_INVALID, "Given value %lld for ReadCapacityUnits is out of bounds",
                        (long long)throughput->read_units);
    if (throughput->write_units > UNITS_MAX)
        return hf__fail(s, HF_INVALID, "Given value %lld for WriteCapacityUnits is out of bounds",
                        (long long)throughput->write_units);
    return HF_OK;
}

/* ---- limits --------------------------------------------------------------------------------- */

bool hf__has_limits(const struct hf_on_demand_throughput *limits)
{
    return limits && (limits->max_read_units || limits->max_write_units);
}

enum { LIFTED = -1 }; /* in UpdateTable: no limit any more */

/* `index` is absent for the table's own. */
static enum hf_status check_limit(struct hf_scope *s, int64_t limit, int64_t least,
                                  const char *name, struct hf_str index)
{
    assert(least == LIFTED || least == 1);
    if (limit == 0 || limit >= 1 || limit == least) /* HF_ZERO is none of them */
        return HF_OK;
    if (index.ptr)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Requested %s for OnDemandThroughput for index : %.*s is "
                                   "outside of valid range",
                        name, HF_FMT(index));
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "Requested %s for OnDemandThroughput for table is outside of valid "
                               "range",
                    name);
}

static enum hf_status check_limits(struct hf_scope *s, const struct hf_on_demand_throughput *limits,
                                   int64_t least, struct hf_str index)
{
    if (!limits)
        return HF_OK;
    TRY(check_limit(s, limits->max_read_units, least, "MaxReadRequestUnits", index));
    return check_limit(s, limits->max_write_units, least, "MaxWriteRequestUnits", index);
}

enum hf_status hf__check_limits(struct hf_scope *s, const struct hf_on_demand_throughput *limits)
{
    return check_limits(s, limits, LIFTED, hf_str_of(NULL, 0));
}

/* Of what is new. */
static enum hf_status check_new_limits(struct hf_scope *s,
                                       const struct hf_on_demand_throughput *limits,
                                       enum hf_billing billing, struct hf_str index)
{
    assert(billing >= 0 && billing <= HF_BILLING_PAY_PER_REQUEST);
    if (hf__has_limits(limits) && billing != HF_BILLING_PAY_PER_REQUEST)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "%s for OnDemandThroughput cannot be specified when the table "
                                   "BillingMode is PROVISIONED",
                        limits->max_read_units ? "MaxReadRequestUnits" : "MaxWriteRequestUnits");
    return check_limits(s, limits, 1, index);
}

/* ---- warm throughput ------------------------------------------------------------------------ */

bool hf__has_warm(const struct hf_warm_throughput *warm)
{
    return warm && (warm->read_units || warm->write_units);
}

#define INITIAL_THROUGHPUT                                                                         \
    "initial throughput for OnDemand. See: "                                                       \
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"                            \
    "on-demand-capacity-mode.html#on-demand-capacity-mode-initial"

/* `least` is what it has without asking; a zero that was sent is less, too. */
static enum hf_status check_warm_units(struct hf_scope *s, int64_t units, int64_t least,
                                       const char *name, const char *than, struct hf_str index)
{
    assert(least > 0 && name && than);
    if (units == 0 || units >= least)
        return HF_OK;
    if (index.ptr)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Requested %s for WarmThroughput for index %.*s is lower than "
                                   "%s",
                        name, HF_FMT(index), than);
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "Requested %s for WarmThroughput for table is lower than %s", name,
                    than);
}

/* Of what is new. */
static enum hf_status check_new_warm(struct hf_scope *s, const struct hf_warm_throughput *warm,
                                     const struct hf_throughput *units, struct hf_str index)
{
    if (!warm)
        return HF_OK;
    TRY(check_warm_units(s, warm->read_units, units ? units->read_units : ON_DEMAND_READS,
                         "ReadUnitsPerSecond",
                         units ? "ReadCapacityUnits of ProvisionedThroughput" : INITIAL_THROUGHPUT,
                         index));
    return check_warm_units(s, warm->write_units, units ? units->write_units : ON_DEMAND_WRITES,
                            "WriteUnitsPerSecond",
                            units ? "WriteCapacityUnits of ProvisionedThroughput"
                                  : INITIAL_THROUGHPUT,
                            index);
}

/* ---- tables and indexes --------------------------------------------------------------------- */

enum hf_status hf__check_table_throughput(struct hf_scope *s, const struct hf_create_table *request)
{
    const struct hf_str none = {NULL, 0};

    TRY(check_new_limits(s, request->on_demand_throughput, request->billing, none));
    if (request->billing == HF_BILLING_PAY_PER_REQUEST && request->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                   "specified when BillingMode is PAY_PER_REQUEST");
    if (request->billing != HF_BILLING_PAY_PER_REQUEST && !request->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "ReadCapacityUnits and WriteCapacityUnits must both be "
                                   "specified when BillingMode is PROVISIONED");
    if (request->throughput)
        TRY(hf__check_units(s, request->throughput));
    return check_new_warm(s, request->warm_throughput, request->throughput, none);
}

enum hf_status hf__check_index_throughput(struct hf_scope *s, const struct hf_index *index,
                                          enum hf_billing billing)
{
    assert(index->name.ptr);
    if (billing == HF_BILLING_PAY_PER_REQUEST && index->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "ProvisionedThroughput should not be specified for index: %.*s "
                                   "when BillingMode is PAY_PER_REQUEST",
                        HF_FMT(index->name));
    if (billing != HF_BILLING_PAY_PER_REQUEST && !index->throughput)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "ProvisionedThroughput is not specified for index: %.*s",
                        HF_FMT(index->name));
    if (index->throughput)
        TRY(hf__check_units(s, index->throughput));
    TRY(check_new_limits(s, index->on_demand_throughput, billing, index->name));
    return check_new_warm(s, index->warm_throughput, index->throughput, index->name);
}

enum hf_status hf__check_index_update(struct hf_scope *s, const struct hf_index_update *update)
{
    assert(update->name.ptr);
    if (update->throughput)
        TRY(hf__check_units(s, update->throughput));
    if (update->warm_throughput && !hf__has_warm(update->warm_throughput))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "WarmThroughput must have at least one of ReadUnitsPerSecond or "
                                   "WriteUnitsPerSecond specified for index: %.*s",
                        HF_FMT(update->name));
    return check_limits(s, update->on_demand_throughput, LIFTED, update->name);
}
