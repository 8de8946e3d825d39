/*
 * engine/table/throughput.c: what is known of the throughput of tables and global indexes. Nothing
 * is throttled by it; it is checked, stored and described as the service does.
 *
 *  (1) Provisioned units remember when they last went up and down, and how often down on the day
 *      (UTC) of the last time; on the days after, a description says 0.
 *  (2) Limits of on-demand tables are merged member by member: what a request leaves out stays, -1
 *      clears. When both are cleared there are none.
 *  (3) Warm throughput never goes down. What is stored is what was reached so far; what is described
 *      is that, or what the billing gives anyway when it is more: 12000 and 4000 on demand, the
 *      units when they are provisioned. So records from before this was stored need nothing.
 */
#include "engine/table/throughput.h"
#include "ops/prepare.h"

#define BAD_VALUES "One or more parameter values were invalid: "
#define DAY_US (INT64_C(24) * 3600 * 1000000)

/* ---- provisioned units ---------------------------------------------------------------------- */

const struct hf_throughput_description *
hf__describe_throughput(struct hf_scope *s, const struct hf_throughput *throughput)
{
    struct hf_throughput_description *d = hf__scope_array(s, 1, sizeof(*d));

    if (d && throughput) {
        d->read_units = throughput->read_units;
        d->write_units = throughput->write_units;
    }
    return d;
}

static int64_t decreases_on_day(const struct hf_throughput_description *d, int64_t now_us)
{
    return d->last_decrease_us / DAY_US == now_us / DAY_US ? d->decreases_today : 0;
}

const struct hf_throughput_description *
hf__throughput_change(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted, int64_t now_us)
{
    struct hf_throughput_description *d = hf__scope_array(s, 1, sizeof(*d));

    if (!d)
        return NULL;
    assert(old && wanted);
    *d = *old; /* (1) */
    if (wanted->read_units > old->read_units || wanted->write_units > old->write_units)
        d->last_increase_us = now_us;
    if (wanted->read_units < old->read_units || wanted->write_units < old->write_units) {
        d->decreases_today = decreases_on_day(old, now_us) + 1;
        d->last_decrease_us = now_us;
    }
    d->read_units = wanted->read_units;
    d->write_units = wanted->write_units;
    return d;
}

/* Between billing modes: the units start over, and it is still known when they last went up. */
const struct hf_throughput_description *
hf__throughput_switch(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted)
{
    struct hf_throughput_description *d = hf__scope_array(s, 1, sizeof(*d));

    if (!d)
        return NULL;
    d->last_increase_us = old->last_increase_us;
    if (wanted) {
        d->read_units = wanted->read_units;
        d->write_units = wanted->write_units;
    }
    return d;
}

const struct hf_throughput_description *
hf__throughput_today(struct hf_scope *s, const struct hf_throughput_description *stored,
                     int64_t now_us)
{
    struct hf_throughput_description *d = hf__scope_array(s, 1, sizeof(*d));

    if (d && stored) {
        *d = *stored;
        d->decreases_today = decreases_on_day(stored, now_us);
    }
    return d;
}

/* ---- limits of what is billed by request ---------------------------------------------------- */

static int64_t merge_limit(int64_t old, int64_t wanted)
{
    if (wanted == 0)
        return old > 0 ? old : 0;
    return wanted > 0 ? wanted : 0;
}

enum hf_status hf__on_demand_merge(struct hf_scope *s, const struct hf_on_demand_throughput *old,
                                   const struct hf_on_demand_throughput *wanted,
                                   const struct hf_on_demand_throughput **out)
{
    static const struct hf_on_demand_throughput none = {0, 0};
    struct hf_on_demand_throughput *limits = hf__scope_array(s, 1, sizeof(*limits));

    if (!limits)
        return hf__fail_nomem(s);
    if (!old)
        old = &none;
    if (!wanted)
        wanted = &none;
    limits->max_read_units = merge_limit(old->max_read_units, wanted->max_read_units);
    limits->max_write_units = merge_limit(old->max_write_units, wanted->max_write_units);
    *out = limits->max_read_units || limits->max_write_units ? limits : NULL; /* (2) */
    return HF_OK;
}

/* ---- warm throughput ------------------------------------------------------------------------ */

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* (3) */
static struct hf_warm_throughput warm_reached(struct throughput_of of)
{
    struct hf_warm_throughput warm = {0, 0};

    if (of.stored)
        warm = (struct hf_warm_throughput){of.stored->read_units, of.stored->write_units};
    if (of.billing == HF_BILLING_PAY_PER_REQUEST) {
        warm.read_units = larger_of(warm.read_units, ON_DEMAND_READS);
        warm.write_units = larger_of(warm.write_units, ON_DEMAND_WRITES);
    } else if (of.units) {
        warm.read_units = larger_of(warm.read_units, of.units->read_units);
        warm.write_units = larger_of(warm.write_units, of.units->write_units);
    }
    return warm;
}

static const struct hf_warm_throughput_description *describe_warm(struct hf_scope *s,
                                                                  struct hf_warm_throughput warm)
{
    struct hf_warm_throughput_description *d = hf__scope_array(s, 1, sizeof(*d));

    if (d)
        *d = (struct hf_warm_throughput_description){.read_units = warm.read_units,
                                                     .write_units = warm.write_units,
                                                     .status = HF_TABLE_ACTIVE};
    return d;
}

const struct hf_warm_throughput_description *hf__warm_describe(struct hf_scope *s,
                                                               struct throughput_of of)
{
    return describe_warm(s, warm_reached(of));
}

static enum hf_status fail_lower(struct hf_scope *s, const char *member, struct hf_str index)
{
    if (index.ptr)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Requested %s for WarmThroughput for index %.*s is lower than "
                                   "current WarmThroughput, decreasing WarmThroughput is not "
                                   "supported",
                        member, HF_FMT(index));
    return hf__fail(s, HF_INVALID,
                    BAD_VALUES "Requested %s for WarmThroughput for table is lower than current "
                               "WarmThroughput, decreasing WarmThroughput is not supported",
                    member);
}

/* A zero that was sent is less than whatever there is. */
static bool is_lower(int64_t wanted, int64_t now)
{
    return wanted != 0 && wanted < now;
}

enum hf_status hf__warm_raise(struct hf_scope *s, struct throughput_of of,
                              const struct hf_warm_throughput *wanted, struct hf_str index,
                              const struct hf_warm_throughput_description **out)
{
    struct hf_warm_throughput warm = warm_reached(of);

    if (wanted && is_lower(wanted->read_units, warm.read_units))
        return fail_lower(s, "ReadUnitsPerSecond", index);
    if (wanted && is_lower(wanted->write_units, warm.write_units))
        return fail_lower(s, "WriteUnitsPerSecond", index);
    if (wanted && wanted->read_units)
        warm.read_units = wanted->read_units;
    if (wanted && wanted->write_units)
        warm.write_units = wanted->write_units;
    assert(warm.read_units >= 0 && warm.write_units >= 0);
    *out = describe_warm(s, warm);
    return *out ? HF_OK : hf__fail_nomem(s);
}
