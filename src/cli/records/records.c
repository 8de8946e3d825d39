/*
 * cli/records/records.c: the table of records that a command works on. See records.h.
 */
#include "cli/records/records.h"

#include "base/base.h"

enum hf_status hf__cli_records_open(struct command_ctx *c, struct hf_records_options options)
{
    const struct records_settings *settings = c->settings;
    struct hf_records *records;

    options.size = sizeof(options);
    options.table = settings->table;
    options.account = settings->account;
    options.run_time = settings->run_time;
    options.processed = settings->processed;
    options.index = settings->index;
    TRY(hf_records_open(c->scope, c->db, &options, &records));
    c->place = records;
    return HF_OK;
}

void hf__cli_records_close(void *records)
{
    hf_records_close(records);
}
