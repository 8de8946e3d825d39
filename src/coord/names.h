/*
 * coord/names.h: the names of attributes that the caller of a pattern may choose.
 */
#ifndef HF_COORD_NAMES_H
#define HF_COORD_NAMES_H

#include "coord/pattern.h"

#define PATTERN_EXPIRES "expires" /* what the time to live is called by default */

enum { PATTERN_NAME_MAX = 255 }; /* DynamoDB's limit for keys and for the time to live */

/* A table, and what its attributes are called that callers may name. */
struct pattern_at {
    struct hf_str table;
    struct hf_str hash;
    struct hf_str sort; /* absent: the table has none */
    struct hf_str expires;
};

/* The name that was asked for, or this one; in the scope. */
static inline struct hf_str name_or(struct hf_scope *names, struct hf_str asked, const char *plain)
{
    return hf_scope_copy(names, asked.ptr ? asked : hf_str_from(plain));
}

/*
 * HF_INVALID when one is empty or too long, when two are the same, or when one is among `own`, the
 * attributes that the pattern itself has; NULL ends them. One that ends with a colon stands for all
 * names that begin with it.
 */
enum hf_status hf__pattern_names(struct hf_scope *s, const struct pattern_at *at,
                                 const char *const *own);

/* kind.c: hf__kind_open() where the caller chooses the attribute of the time to live. The mark has
 * its name, unless it is PATTERN_EXPIRES. HF_INVALID: the table was opened first with another. The
 * time to live is switched on after this, so that it stays as it is where we are refused. */
enum hf_status hf__kind_open_at(struct hf_scope *s, const struct kind_table *of,
                                struct hf_str expires);

#endif
