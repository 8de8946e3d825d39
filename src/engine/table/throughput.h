/*
 * engine/table/throughput.h: what is stored and described of throughput. All of it is in the scope;
 * NULL when there is no memory.
 */
#ifndef HF_ENGINE_TABLE_THROUGHPUT_H
#define HF_ENGINE_TABLE_THROUGHPUT_H

#include <holdfast/db.h>

/* Units of a table or index that is new; NULL gives none. */
const struct hf_throughput_description *
hf__describe_throughput(struct hf_scope *s, const struct hf_throughput *throughput);

/* Change units, within one billing mode and between two. */
const struct hf_throughput_description *
hf__throughput_change(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted, int64_t now_us);
const struct hf_throughput_description *
hf__throughput_switch(struct hf_scope *s, const struct hf_throughput_description *old,
                      const struct hf_throughput *wanted);

/* What is stored as it is described today. */
const struct hf_throughput_description *
hf__throughput_today(struct hf_scope *s, const struct hf_throughput_description *stored,
                     int64_t now_us);

/* Limits after a request; each of the two may be NULL, and *out is when there is no limit. */
enum hf_status hf__on_demand_merge(struct hf_scope *s, const struct hf_on_demand_throughput *old,
                                   const struct hf_on_demand_throughput *wanted,
                                   const struct hf_on_demand_throughput **out);

/* What the warm throughput of a table or index follows from. */
struct throughput_of {
    const struct hf_warm_throughput_description *stored; /* NULL: none yet */
    const struct hf_throughput_description *units;
    enum hf_billing billing;
};
const struct hf_warm_throughput_description *hf__warm_describe(struct hf_scope *s,
                                                               struct throughput_of of);

/* What is stored after a request, which may be NULL. `index` is absent for the table's own. */
enum hf_status hf__warm_raise(struct hf_scope *s, struct throughput_of of,
                              const struct hf_warm_throughput *wanted, struct hf_str index,
                              const struct hf_warm_throughput_description **out);

#endif
