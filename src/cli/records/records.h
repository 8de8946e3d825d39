/*
 * cli/records/records.h: what the commands for records share: the table and what its attributes are called.
 */
#ifndef HF_CLI_RECORDS_RECORDS_H
#define HF_CLI_RECORDS_RECORDS_H

#include "cli/frame/commands.h"

#include <holdfast/records.h>

/* The first member of their settings. */
struct records_settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str account;
    struct hf_str run_time;
    struct hf_str processed;
    struct hf_str index;
};

/* For settings whose first member is `struct records_settings records`. */
#define RECORDS_SETTINGS(type) COMMAND_SETTINGS_IF(type, offsetof(type, records) == 0)
#define RECORDS_ONE DATABASE_ONE(struct records_settings)
#define RECORDS_LIST DATABASE_LIST(struct records_settings)
#define RECORDS_TEXT(option, field, help, ...)                                                     \
    OPT_TEXT_IN(struct records_settings, option, "NAME", field, help, __VA_ARGS__)
#define RECORDS_TABLE                                                                              \
    RECORDS_TEXT("table", table, "The table of records.", .fallback = "Records",                   \
                 .heading = "Table"),                                                              \
        RECORDS_TEXT("account", account, "Name of the hash key attribute.",                        \
                     .fallback = "AccountId"),                                                     \
        RECORDS_TEXT("run-time", run_time, "Name of the range key attribute.",                     \
                     .fallback = "RunTime"),                                                       \
        RECORDS_TEXT("processed", processed,                                                       \
                     "Name of the attribute that is 0 (unprocessed) or 1 (processed).",            \
                     .fallback = "Processed"),                                                     \
        RECORDS_TEXT("index", index, "Index of the unprocessed records.", .fallback = "Processed")

/* Open them as c->place, in the way of those options: the names are those of the settings. */
enum hf_status hf__cli_records_open(struct command_ctx *c, struct hf_records_options options);
void hf__cli_records_close(void *records);

#endif
