/*
 * test/fuzz/fuzz_csv.c: files of CSV, which `import` reads: cli/transfer/transfer_csv.c.
 *
 * The first line is --types, the second the header, and each line after that a record.
 *
 *  - Types, header and record are read, or refused with a sentence.
 *  - What is read is an item; and the record that is written for it is read as the same item.
 */
#include <string.h>

#include "base/base.h"
#include "cli/transfer/transfer.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct hf_str written(struct hf_scope *s, const struct transfer_columns *columns,
                             struct hf_item item)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct hf_str record;

    MUST(out);
    hf__transfer_csv_write(out, s, columns, item);
    MUST(fclose(out) == 0);
    record = hf_scope_copy(s, hf_str_of(text, len));
    free(text);
    return record;
}

static void record_look(struct hf_scope *s, const struct transfer_columns *columns,
                        struct hf_str record)
{
    struct hf_item item, again;
    struct hf_str error = {0}, text;

    if (!hf__transfer_csv_read(s, columns, record, &item, &error)) {
        MUST(error.len > 0);
        return;
    }
    MUST(hf_item_check(s, item) == HF_OK);
    MUST(!hf__transfer_columns_missing(columns, item).ptr);
    text = written(s, columns, item);
    while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    error = (struct hf_str){0};
    MUST(hf__transfer_csv_read(s, columns, text, &again, &error));
    MUST(hf_item_equal(item, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct transfer_columns types = {0}, columns;
    struct hf_str text, line, error = {0};

    MUST(s);
    text = hf_scope_copy(s, hf_str_of((const char *)data, size));
    line = str_cut(&text, '\n');
    if (line.len && !hf__transfer_columns_read(s, line, &types, &error)) {
        MUST(error.len > 0);
        types = (struct transfer_columns){0};
        error = (struct hf_str){0};
    }
    line = str_cut(&text, '\n');
    if (!hf__transfer_csv_read_header(s, line, &types, NULL, &columns, &error)) {
        MUST(error.len > 0);
    } else {
        MUST(columns.len > 0 && columns.len <= TRANSFER_COLUMNS_MAX);
        while (text.len) {
            line = str_cut(&text, '\n');
            record_look(s, &columns, line);
        }
    }
    hf_scope_free(s);
    return 0;
}
