/*
 * db/db.h: what a database is to the library: one function per thing that can be asked of it. The
 * engine, the client and the wrappers each begin with a struct hf_db.
 */
#ifndef HF_DB_DB_H
#define HF_DB_DB_H

#include <holdfast/db.h>

#include "base/base.h"
#include "ops/fields.h"

struct hf_db {
    const struct db_calls *calls;
};

struct db_calls {
    /* Do the operation; the response is zeroed and never NULL. */
    enum hf_status (*call)(struct hf_scope *s, struct hf_db *db, enum hf_op op, const void *request,
                           void *response);
    void (*close)(struct hf_db *db);
};

#endif
