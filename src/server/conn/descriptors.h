/*
 * server/conn/descriptors.h: how many descriptors connections may take.
 *
 * What the database has to open later, its journal's next file above all, must never find that
 * connections have taken the last descriptor. So connections may have what the limit of open files
 * leaves when the server has opened all that is its own, less a reserve for the database.
 */
#ifndef HF_SERVER_DESCRIPTORS_H
#define HF_SERVER_DESCRIPTORS_H

#include <stdint.h>

enum {
    DESCRIPTORS_TABLES = 512, /* files of tables that RocksDB keeps open: store/tables_open.c */
    DESCRIPTORS_OTHER = 128, /* the journal's next files, what a compaction writes, backups, logs */
    DESCRIPTORS_RESERVE = DESCRIPTORS_TABLES + DESCRIPTORS_OTHER,
    DESCRIPTORS_LEAST = 32 /* that have to be left, for the database and connections */
};

/* Of a process that may have `limit` descriptors and has `open`; 0: too few. Where the limit is low
 * connections get a quarter of the rest, and a small database can do with the other three. */
uint32_t hf__descriptors_for_connections(uint64_t limit, uint64_t open);

/* The soft limit, and how many are open now. */
uint64_t hf__descriptors_limit(void);
uint64_t hf__descriptors_open(void);

#endif
