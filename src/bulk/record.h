/*
 * bulk/record.h: a record of a file as an item, and the other way.
 *
 *     JSON   {"Item":{"id":{"S":"a"}}}, DynamoDB's JSON
 *     CSV    the cells of one item; the names are elsewhere
 *     Ion    $ion_1_0 {Item:{id:"a"}}, in Ion's text: ion.c
 *
 * What always holds: what was written is read as an equal item.
 */
#ifndef HF_BULK_RECORD_H
#define HF_BULK_RECORD_H

#include <holdfast/db_tables.h>
#include <holdfast/item.h>

#include "base/buf.h"

/*
 * Readers. False: *error is a sentence, and the record is malformed, or what it says is no item. The item
 * lives in the scope. Its size and its keys are not judged.
 */
bool hf__bulk_record_json_read(struct hf_scope *s, struct hf_str record, struct hf_item *item,
                               struct hf_str *error);
bool hf__bulk_record_ion_read(struct hf_scope *s, struct hf_str record, struct hf_item *item,
                              struct hf_str *error);

/* Append a record with the end of its line. */
void hf__bulk_record_json_write(struct hf__buf *out, struct hf_scope *s, struct hf_item item);
void hf__bulk_record_ion_write(struct hf__buf *out, struct hf_scope *s, struct hf_item item);

/* ---- CSV ------------------------------------------------------------------------------------ */

/* The cells of a record, in the scope. False: *error. */
bool hf__bulk_record_csv_cells(struct hf_scope *s, struct hf_str record, char delimiter,
                               struct hf_str **cells, size_t *len, struct hf_str *error);

/*
 * Cells as an item. An attribute that is a key of the table or of an index has the type that `types`
 * gives it, every other one is a string; an empty cell is none.
 */
bool hf__bulk_record_csv_item(struct hf_scope *s, const struct hf_str *names, size_t names_len,
                              const struct hf_str *cells, size_t cells_len,
                              const struct hf_attribute_definition *types, size_t types_len,
                              struct hf_item *item, struct hf_str *error);

#endif
