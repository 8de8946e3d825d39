/*
 * ops/fields.h: what requests and responses are made of, as data.
 *
 * Every struct of <holdfast/db.h> that travels has a table of fields: the wire's name, the kind,
 * where it lies in the struct, and what DynamoDB's model says of it (required, lengths, ranges,
 * enums, patterns). The codecs in wire/, the constraint check in ops/constraints.c and the catalog
 * are walkers over these tables; none of them knows an operation.
 *
 * How kinds lie in a struct, and when they are absent:
 *
 *     STR            struct hf_str                          ptr is NULL
 *     INT            int64_t                                0 (HF_ZERO is a zero that was sent)
 *     DOUBLE         double                                 0
 *     FLAG           enum hf_flag                           HF_UNSET
 *     ENUM           an enum, read as int                   0; negative: a text that is no member,
 *                                                           see hf__scope_kept_text()
 *     TIME           int64_t, microseconds; a JSON number of seconds      0
 *     ITEM           struct hf_item, a map of attribute values            ptr is NULL
 *     NAMES          struct hf_item whose values are S, a map of strings  ptr is NULL
 *     VALUE          struct hf_value, one attribute value                 ptr is NULL
 *     STRUCT         a pointer to a struct of `sub`                       NULL
 *     STRS DOUBLES ITEMS VALUES STRUCTS
 *                    a pointer and, at count_at, a size_t                 NULL
 *     MAP            likewise, of structs whose first member is the struct hf_str that the key goes
 *                    to; the JSON value is the rest of the struct, or, when `sub` has one field
 *                    without a name, that field itself
 *
 * An empty list that was sent has a pointer that is not NULL and a count of 0.
 */
#ifndef HF_OPS_FIELDS_H
#define HF_OPS_FIELDS_H

#include <holdfast/db.h>

#include "base/base.h"

enum field_kind {
    FIELD_STR,
    FIELD_INT,
    FIELD_DOUBLE,
    FIELD_FLAG,
    FIELD_ENUM,
    FIELD_TIME,
    FIELD_ITEM,
    FIELD_NAMES,
    FIELD_VALUE,
    FIELD_STRUCT,
    FIELD_STRS,
    FIELD_DOUBLES,
    FIELD_ITEMS,
    FIELD_VALUES,
    FIELD_STRUCTS,
    FIELD_MAP
};

enum {
    FIELD_REQUIRED = 1,   /* a request without it fails "Member must not be null"; a STRUCT of a
                             response is never NULL, and an answer without it is none */
    FIELD_ALWAYS = 2,     /* a response has it even when it is empty or zero */
    FIELD_LONG = 4,       /* an INT of 64 bits on the wire: named Long in type errors */
    FIELD_NO_CHECK = 8,   /* its length or absence is reported elsewhere, in other words */
    FIELD_FROM_ZERO = 16, /* an INT that may be 0 and not less */
    FIELD_NEWER = 32,     /* lengths and ranges are reported in the newer form: no value */

    /* Lists of what an account has, page by page. Where the cursor is no name, only LISTED. */
    FIELD_LISTED = 64,      /* response: the list */
    FIELD_PAGE_START = 128, /* request: the name, or ARN, of the last one of the page before */
    FIELD_PAGE_LIMIT = 256, /* request: how many */
    FIELD_PAGE_LAST = 512   /* response: what the next page starts from; in an element: the member
                             * of which it is a copy */
};

enum field_pattern {
    PATTERN_NONE,
    PATTERN_TABLE_NAME, /* [a-zA-Z0-9_.-]+ */
    PATTERN_SHARD_ID,
    PATTERN_CLIENT_TOKEN, /* of exports and imports; constraints.c has what follows, too */
    PATTERN_BUCKET,
    PATTERN_ACCOUNT,
    PATTERN_DELIMITER,
    PATTERN_HEX16
};

/*
 * Where the names of tables stand: in a STR; in every string of STRS, and every key of a MAP. Where
 * a table may be named, it may be by ARN, too.
 */
enum field_holds {
    HOLDS_NO_NAME,
    HOLDS_TABLE,    /* a name or an ARN */
    HOLDS_ARN,      /* of a table, or of what belongs to one */
    HOLDS_STATEMENT /* of PartiQL */
};

/* Names of an enum's members; number n is names[n - 1]. */
struct field_enum {
    const char *const *names;
    size_t len;
    const char *printed; /* the set as error messages print it, "[A, B]" */
};

struct fields;

struct field {
    const char *name; /* NULL: the only field of a MAP's entry besides its key */
    enum field_kind kind;
    uint16_t at;       /* offset in the struct */
    uint16_t count_at; /* of lists and maps: offset of the count */
    uint16_t rules;
    const struct fields *sub;
    const struct field_enum *members;
    int64_t min;         /* length or value; 0: no limit */
    int64_t max;         /* length or value; 0: no limit */
    int64_t element_min; /* of the elements of STRS */
    int64_t element_max; /* of the elements of STRS */
    enum field_pattern pattern;
    enum field_holds holds;
};

struct fields {
    const char *name; /* as it is called in DynamoDB's model, for messages */
    const struct field *list;
    size_t len;
    size_t size; /* of the struct */
};

/* Asserts what always holds of a table: every member lies within the struct, and has what its kind
 * needs. Not of the tables of members. For DEV_CHECKS. */
void hf__fields_check(const struct fields *fields);

/* The bytes of one element of a list or map. */
static inline size_t field_element_size(const struct field *field)
{
    switch (field->kind) {
    case FIELD_STRS:
        return sizeof(struct hf_str);
    case FIELD_DOUBLES:
        return sizeof(double);
    case FIELD_ITEMS:
        return sizeof(struct hf_item);
    case FIELD_VALUES:
        return sizeof(struct hf_value);
    default:
        assert(field->sub && (field->kind == FIELD_STRUCTS || field->kind == FIELD_MAP));
        return field->sub->size;
    }
}

enum op_service { OP_DYNAMODB, OP_STREAMS };
enum op_access { OP_READ, OP_WRITE };
enum op_repeat { OP_REPEAT_YES, OP_REPEAT_NO, OP_REPEAT_TOKEN };

struct op {
    struct hf_str name;
    enum hf_op op;
    enum op_service service;
    enum op_access access;
    enum op_repeat repeat;
    const struct fields *request;
    const struct fields *response;
};

const struct op *hf__op(enum hf_op op);

/* The operation of that wire name; NULL when there is none. */
const struct op *hf__op_of_name(enum op_service service, struct hf_str name);

/*
 * A member of DynamoDB's model that asks for what is not there: it is refused by name rather than
 * dropped, and no struct has a place for it. refused.c has all of them.
 */
struct field_refused {
    const struct fields *of;
    const char *name;
    const char *why; /* ends the sentence "NAME is not supported: " */
};

/* NULL when the member, which the table does not have, is not one that is refused. */
const struct field_refused *hf__field_refused(const struct fields *fields, struct hf_str name);

/* The number of an enum member by name; 0 when there is none. */
int hf__enum_of_name(const struct field_enum *members, struct hf_str name);

/* The table of struct hf_table_description, which the catalog keeps tables in too. */
extern const struct fields hf__table_description_fields;

#endif
