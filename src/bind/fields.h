/*
 * bind/fields.h: what arguments and results of methods are made of, as data: where each member lies
 * in a struct, and what it is in JSON. Readers and writers of JSON walk these tables and know no
 * method; bind.methods prints them.
 *
 * The tables of ops/fields.h are those of DynamoDB's model, whose readers ignore what they do not
 * know and report errors in Java's words. These describe structs of patterns as they are installed,
 * with numbers of every width, and their reader refuses what it does not know. Cursor, items and
 * texts are read and written by the same code as there.
 */
#ifndef HF_BIND_FIELDS_H
#define HF_BIND_FIELDS_H

#include "base/base.h"
#include "base/buf.h"

enum bind_kind {
    BIND_TEXT,    /* struct hf_str: a string */
    BIND_BYTES,   /* struct hf_bytes: a string, or {"base64": "..."} */
    BIND_BOOL,    /* bool */
    BIND_FLAG,    /* enum hf_flag: true, false, or left out */
    BIND_U32,     /* uint32_t */
    BIND_U64,     /* uint64_t, or size_t */
    BIND_I64,     /* int64_t */
    BIND_BOUND,   /* int64_t where 0 is left out: a zero that is given is HF_ZERO */
    BIND_DOUBLE,  /* double */
    BIND_ENUM,    /* an enum: number n is the text members[n] */
    BIND_ITEM,    /* struct hf_item: DynamoDB's JSON */
    BIND_VALUE,   /* struct hf_value: DynamoDB's JSON of one value */
    BIND_JSON,    /* struct hf_str: any JSON, as it stands there */
    BIND_STRUCT,  /* a struct of `sub`, in place */
    BIND_POINTER, /* a pointer to a struct of `sub`; NULL: left out */
    BIND_TEXTS,   /* these have a pointer, and at count_at a size_t */
    BIND_VALUES,
    BIND_STRUCTS,
    BIND_POINTERS, /* a pointer to pointers, as STRUCTS in JSON; results only */
    BIND_COUNTS    /* uint64_t */
};

enum {
    BIND_REQUIRED = 1, /* an argument that may not be left out */
    BIND_FLAT = 2,     /* a STRUCT whose members stand among those of the outer one */
    BIND_LISTED = 4,   /* a U32 or U64: so many are listed at most; more by a further call */
    BIND_ALL = 8       /* and without it, all */
};

struct bind_fields;

struct bind_field {
    const char *name;
    enum bind_kind kind;
    uint16_t at;
    uint16_t count_at;
    uint16_t rules;
    const struct bind_fields *sub;
    const char *const *members; /* of an ENUM: the texts, NULL at the end; [0] NULL: no such */
};

struct bind_fields {
    const struct bind_field *list;
    size_t len;
    size_t size; /* of the struct */
};

/* Of every method, beside its own. */
struct bind_common {
    uint32_t deadline_ms;
    uint64_t cancel;
};
extern const struct bind_fields hf__bind_common_fields;

/*
 * Read the arguments of `method` into the zeroed struct at `args`. HF_INVALID: the message names
 * method and member. Borrows from `json`.
 */
enum hf_status hf__bind_read(struct hf_scope *s, struct hf_str method,
                             const struct bind_fields *fields, struct hf_str json, void *args,
                             struct bind_common *common);

/* The common members of an operation of DynamoDB, which knows none of them: beside its own. */
enum hf_status hf__bind_read_common(struct hf_scope *s, struct hf_str method, struct hf_str json,
                                    struct bind_common *common);

/* Let no argument that says how many are listed say more than `most`. */
void hf__bind_bound_lists(const struct bind_fields *fields, uint32_t most, void *args);

/* Append a struct as a JSON object. What is absent is left out. */
void hf__bind_write(struct hf__buf *buf, const struct bind_fields *fields, const void *in);

/* Append text, or bytes, or a number as they are given to languages. */
void hf__bind_write_bytes(struct hf__buf *buf, struct hf_bytes bytes);
void hf__bind_write_u64(struct hf__buf *buf, uint64_t number);

/* Append the error of a scope as {"code", "message", ...}. */
void hf__bind_write_error(struct hf__buf *buf, const struct hf_error *error);

/* Append what the error of an operation says beside its body on the wire, with commas before. */
void hf__bind_write_error_rest(struct hf__buf *buf, const struct hf_error *error);

/* The name of a kind in bind.methods. */
const char *hf__bind_kind_name(const struct bind_field *field);

#endif
