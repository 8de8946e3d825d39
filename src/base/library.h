/*
 * base/library.h: shared libraries that are loaded when they are first needed, and not linked.
 *
 * The user of a library lists the functions that it calls,
 *
 *     #define REDIS_FUNCTIONS(X) X(redisReaderCreate) X(redisReaderFeed) ...
 *     struct redis_library { REDIS_FUNCTIONS(LIBRARY_POINTER) };
 *     #define LIBRARY_TABLE redis_library
 *     static const struct library_symbol symbols[] = {REDIS_FUNCTIONS(LIBRARY_SYMBOL)};
 *
 * and calls them as `lib->redisReaderCreate()`: with their own types, so that the compiler still
 * checks every call.
 */
#ifndef HF_BASE_LIBRARY_H
#define HF_BASE_LIBRARY_H

#include "base/base.h"

enum { LIBRARY_WHY = 512 };

struct library_symbol {
    const char *name;
    size_t at; /* offset of the pointer in the table */
};

#define LIBRARY_POINTER(function) __typeof__(function) *function;
#define LIBRARY_SYMBOL(function) {#function, offsetof(struct LIBRARY_TABLE, function)},

/*
 * Load the library of that soname and write the addresses of its functions to the table. False:
 * `why` says "library libnats.so.3.4 is missing: install package libnats3.4", or what else is wrong.
 * `package` is what has it on Debian and its kin; NULL: the one that is named after it.
 */
bool hf__library_find(const char *soname, const char *package, const struct library_symbol *symbols,
                      size_t len, void *table, char why[LIBRARY_WHY]);

/* The same with that text as the error of a scope: HF_UNSUPPORTED. */
enum hf_status hf__library_load(struct hf_scope *s, const char *soname,
                                const struct library_symbol *symbols, size_t len, void *table);

#endif
