/*
 * backup/restore.h: what restore.c shares: nothing that <holdfast/backup.h> does not have.
 */
#ifndef HF_BACKUP_RESTORE_H
#define HF_BACKUP_RESTORE_H

#include <holdfast/backup.h>

#include "backup/chain.h"

/* Bytes of all objects that count. */
uint64_t hf__backup_bytes(const struct hf_backup *backup);

#endif
