/*
 * store/marks.h: where a store on disk stands, noted in PATH/durable, so that a part of it that is
 * gone, cut short, older than the others or of another store is noticed. marks.c has the states.
 */
#ifndef HF_STORE_MARKS_H
#define HF_STORE_MARKS_H

#include "base/base.h"

struct store_dir;
struct tables_mark;

/* A beginning of the manifest of the database, which is durable; see manifest.h. */
struct manifest_mark {
    uint64_t number; /* in its name; 0: none was noted */
    uint64_t bytes;
    uint64_t hash; /* of those */
};

struct store_marks {
    uint64_t id;      /* of the store: its journal and its tables have it, too */
    uint64_t durable; /* every change up to here is durable */
    uint64_t based;   /* every change up to here is in tables of the database */
    uint64_t clean;   /* the store was closed with this change as its last; 0: it was not */
    uint64_t segment; /* a file of the journal with this number, or a higher one, is there */
    uint64_t boot;    /* id of the start of the machine until whose end everything that was
                         written to the journal is there; 0: that is not so */
    struct manifest_mark manifest;
};

/* Read the record into store_dir->marks; make it in a fresh store, where it is not synced yet.
 * Nothing else is changed. HF_CORRUPT: it is damaged, or says that something must be there that is
 * not. */
enum hf_status hf__marks_open(struct hf_scope *s, struct store_dir *store_dir);

/* Compare the mark of the tables with the marks of the store, and raise those to it. HF_CORRUPT:
 * they do not agree. */
enum hf_status hf__marks_compare(struct hf_scope *s, struct store_dir *store_dir,
                                 const struct tables_mark *mark);

/* Tables have every change up to this one. It is written with the next note. */
void hf__marks_based(struct store_dir *store_dir, uint64_t change);

/* Write the marks to the record. One thread at a time. False: the record still has older marks. */
bool hf__marks_note(struct store_dir *store_dir, struct store_marks marks);

/* Make the newest note durable. False when that failed. */
bool hf__marks_sync(struct store_dir *store_dir);

/* An id of the current start of the machine; 0: unknown. */
uint64_t hf__marks_boot(void);

#endif
