/*
 * test/fuzz/fuzz_ion.c: records of Ion, JSON and CSV, which ImportTable reads: bulk/ion.c, bulk/record.c.
 *
 * The first byte chooses the format, the rest is one record.
 *
 *  - It is read as an item, or refused with a sentence.
 *  - An item that was read is written as Ion and as JSON, and each of them is read as an equal item.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "bulk/record.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool csv_read(struct hf_scope *s, struct hf_str record, struct hf_item *item,
                     struct hf_str *error)
{
    const struct hf_attribute_definition types[] = {{HF_STR("n"), HF_SCALAR_N},
                                                    {HF_STR("b"), HF_SCALAR_B}};
    const struct hf_str names[] = {HF_STR("n"), HF_STR("b"), HF_STR("s")};
    struct hf_str *cells;
    size_t len;

    return hf__bulk_record_csv_cells(s, record, ',', &cells, &len, error) &&
           hf__bulk_record_csv_item(s, names, ARRAY_LEN(names), cells, len, types, ARRAY_LEN(types),
                                    item, error);
}

static void written_is_read(struct hf_scope *s, struct hf_item item)
{
    struct hf__buf ion = {.scope = s}, json = {.scope = s};
    struct hf_item again;
    struct hf_str error;

    hf__bulk_record_ion_write(&ion, s, item);
    MUST(!ion.failed);
    MUST(hf__bulk_record_ion_read(s, hf_str_of((const char *)ion.ptr, ion.len), &again, &error));
    MUST(hf_item_equal(item, again));
    hf__bulk_record_json_write(&json, s, item);
    MUST(!json.failed);
    MUST(hf__bulk_record_json_read(s, hf_str_of((const char *)json.ptr, json.len), &again, &error));
    MUST(hf_item_equal(item, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str record, error;
    struct hf_item item = {NULL, 0};
    bool read;

    MUST(s);
    if (!size) {
        hf_scope_free(s);
        return 0;
    }
    record = hf_scope_copy(s, hf_str_of((const char *)data + 1, size - 1));
    read = data[0] == 'j'   ? hf__bulk_record_json_read(s, record, &item, &error)
           : data[0] == 'c' ? csv_read(s, record, &item, &error)
                            : hf__bulk_record_ion_read(s, record, &item, &error);
    if (!read)
        MUST(error.len > 0);
    else
        written_is_read(s, item);
    hf_scope_free(s);
    return 0;
}
