/*
 * bench/lib_table.h: the table of lib_data.c and instructions.c. The latter is built with other versions of the
 * library, so this has installed headers alone.
 */
#ifndef HF_BENCH_LIB_TABLE_H
#define HF_BENCH_LIB_TABLE_H

#include <holdfast/db.h>

#define BENCH_TABLE "bench"
#define BENCH_INDEX "by-owner"

/* Items by pk and sk; with `indexed` also by owner and created. */
static inline enum hf_status bench_table_make(struct hf_scope *s, struct hf_db *db, bool indexed)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_N},
                                                         {HF_STR("owner"), HF_SCALAR_S},
                                                         {HF_STR("created"), HF_SCALAR_N}};
    const struct hf_key_element keys[] = {{HF_STR("pk"), HF_KEY_HASH},
                                          {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_key_element index_keys[] = {{HF_STR("owner"), HF_KEY_HASH},
                                                {HF_STR("created"), HF_KEY_RANGE}};
    const struct hf_projection all = {.type = HF_PROJECT_ALL};
    const struct hf_index index = {.name = HF_STR(BENCH_INDEX),
                                   .key_schema = index_keys,
                                   .key_schema_len = 2,
                                   .projection = &all};
    const struct hf_create_table request = {.table = HF_STR(BENCH_TABLE),
                                            .attributes = attributes,
                                            .attributes_len = indexed ? 4 : 2,
                                            .key_schema = keys,
                                            .key_schema_len = 2,
                                            .global_indexes = indexed ? &index : NULL,
                                            .global_indexes_len = indexed ? 1 : 0,
                                            .billing = HF_BILLING_PAY_PER_REQUEST};

    return hf_create_table(s, db, &request, NULL);
}

#endif
