/*
 * test/crash/damage.h: directories to be damaged, and child processes that look at the result.
 *
 * A built database has table "damaged" with an index, a stream and items 1..count, each put and
 * answered in order with full sync. It is never closed: the process that made it dies. For each
 * answered put the builder notes where the records of the newest log file ended then, so that one
 * knows which cut may lose what.
 *
 * Children are this program again; they start before main(). RocksDB may abort the process on a
 * damaged file: in a child that is seen, and not the end of the test.
 */
#ifndef HF_TEST_CRASH_DAMAGE_H
#define HF_TEST_CRASH_DAMAGE_H

#include "test.h"

#include <holdfast/db.h>
#include <holdfast/engine.h>

#include <sys/types.h>

enum { FILES_MAX = 64, NAME_ROOM = 64, PATH_ROOM = 300, TEXT_ROOM = 600 };

/* What the builder notes after each answered put. */
struct note {
    uint32_t n;
    uint32_t log;  /* number of the newest log file */
    uint64_t size; /* and the end of its records */
};

/* Exit codes of children. */
enum { CHILD_GOOD = 0, CHILD_ERROR = 10, CHILD_WRONG = 11, CHILD_SKIPPED = 12 };

/* Run a child to its end; what it prints to stdout is in text. Its status as waitpid() gives it. */
int child_run(const char *mode, const char *dir, const char *argument, char text[TEXT_ROOM]);

/* Build items from..to in dir and die; notes go to dir with ".notes" behind it. */
void build(const char *dir, unsigned from, unsigned to);

/* What a look at a directory saw. */
struct look {
    bool crashed;
    bool opened;
    bool read;    /* everything could be read, and digest is of that */
    bool checked; /* the deep check found nothing */
    unsigned long long digest;
    unsigned items;
    char text[TEXT_ROOM]; /* as the child wrote it, with the first error */
};
struct look look_at(const char *dir);

/* Files of a directory, "db/CURRENT" and so on; not the ballast, which has nothing in it. */
struct files {
    char names[FILES_MAX][NAME_ROOM];
    size_t len;
};
void list_files(const char *dir, struct files *files);
void copy_directory(const char *from, const char *to);
void copy_file(const char *from, const char *to);
void remove_directory(const char *dir);

struct hf_db *open_at(struct hf_scope *s, const char *dir, enum hf_status *status);
struct hf_item damage_item(struct hf_scope *s, unsigned n);

/* Modes of other files. */
int child_torn(const char *dir, const char *argument);
int child_full(const char *dir);
int child_read_only(const char *dir);

#endif
