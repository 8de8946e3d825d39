/*
 * cli/table/table_shape.h: JSON objects as structs, both ways, by tables of their members.
 *
 *     static const struct shape_member key_members[] = {
 *         {"AttributeName", SHAPE_TEXT, SHAPE_AT(hf_key_element, name)},
 *         {"KeyType", SHAPE_WORD, SHAPE_AT(hf_key_element, type), .words = "HASH RANGE"},
 *     };
 *     static const struct table_shape key_shape = SHAPE_OF(hf_key_element, key_members);
 *
 * A member that is in no table is an error, as it would otherwise be forgotten without a word: most are
 * slips, and the rest would make another table than the file describes.
 */
#ifndef HF_CLI_TABLE_TABLE_SHAPE_H
#define HF_CLI_TABLE_TABLE_SHAPE_H

#include "cli/frame/output/json.h"

#include <stddef.h>

enum shape_kind {
    SHAPE_TEXT = 1, /* struct hf_str */
    SHAPE_TEXTS,    /* an array of them, and its length */
    SHAPE_NUMBER,   /* int64_t; HF_ZERO for 0, as 0 stands for a member that is not there */
    SHAPE_FLAG,     /* enum hf_flag */
    SHAPE_WORD,     /* an enum: which of `words`, from 1 */
    SHAPE_OBJECT,   /* a pointer to a struct */
    SHAPE_LIST,     /* a pointer to structs, and its length */
    SHAPE_TAGS,     /* an object of strings, as struct hf_tag and a length */
    SHAPE_SKIPPED,  /* says nothing about the table */
    SHAPE_IGNORED,  /* not used; the reader lists it, unless it is off or empty */
    SHAPE_REFUSED   /* an error, unless it is off or empty */
};

struct table_shape;

struct shape_member {
    const char *name;
    enum shape_kind kind;
    size_t offset;
    size_t len_offset;               /* of SHAPE_LIST, SHAPE_TEXTS and SHAPE_TAGS */
    const char *words;               /* of SHAPE_WORD, with blanks between them */
    const struct table_shape *shape; /* of SHAPE_OBJECT and SHAPE_LIST */
};

struct table_shape {
    size_t size;
    const struct shape_member *members;
    size_t len;
};

#define SHAPE_OF(type, list)                                                                       \
    {                                                                                              \
        sizeof(struct type), list, sizeof(list) / sizeof((list)[0])                                \
    }
#define SHAPE_AT(type, field) .offset = offsetof(struct type, field)
#define SHAPE_LIST_AT(type, field)                                                                 \
    SHAPE_AT(type, field), .len_offset = offsetof(struct type, field##_len)

struct shape_reader;

/* What a value stands for, such as the default of a parameter; a JSON null is no value. NULL: it has
 * called hf__cli_shape_fail(). */
typedef const struct json_node *shape_resolve_fn(struct shape_reader *r, const char *path,
                                                 const struct json_node *json);

struct shape_reader {
    struct hf_scope *s;
    const char *what; /* that unknown members are not of: "CreateTable" */
    bool lenient;     /* templates: numbers and flags may be strings, an object may be a list */
    shape_resolve_fn *resolve; /* NULL: values are what they are */
    void *user;                /* of `resolve` */
    struct hf_str error;
    struct hf_str ignored; /* paths, with ", " between them; empty: none */
};

/* Read `json` into `to`, which was zeroed. False: r->error names the member. */
bool hf__cli_shape_read(struct shape_reader *r, const char *path, const struct table_shape *shape,
                        const struct json_node *json, void *to);

/* Set r->error to the path and these two texts; returns false. */
bool hf__cli_shape_fail(struct shape_reader *r, const char *path, const char *what,
                        const char *more);

/* A path with one more name; "" when there is no memory, and then r->error is set. */
const char *hf__cli_shape_path(struct shape_reader *r, const char *path, struct hf_str name);

/* The members of the struct that are there, as JSON. */
void hf__cli_shape_write(FILE *out, const struct table_shape *shape, const void *from);

#endif
