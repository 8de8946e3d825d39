/*
 * engine/statement/statement.h: what the files statement*.c share: a statement with the table it is
 * about.
 */
#ifndef HF_ENGINE_STATEMENT_STATEMENT_H
#define HF_ENGINE_STATEMENT_STATEMENT_H

#include "engine/engine.h"
#include "engine/write/write.h"
#include "ops/prepare.h"

/*
 * What a statement needs to know of its table, looked up once. The schema lock is not held when
 * this is used: a table that changes in between is noticed when the statement is executed.
 */
struct statement_target {
    struct statement_key key; /* of the table */
    struct statement_key index_key;
    bool index; /* the statement is about an index */
    bool global;
    bool many;                    /* the index has a key of more than two attributes */
    struct hf_str missing_column; /* of a global index, for what it does not project */
    struct hf_str missing_filter; /* of any index: attributes of the WHERE clause */
};

/* The table exists, and so does the index; fails as DynamoDB does for statements. */
enum hf_status hf__statement_target(struct hf_scope *s, struct engine *e,
                                    const struct statement *statement,
                                    struct statement_target *target);

/* How a statement wants its effect reported. */
struct statement_wishes {
    enum hf_return_capacity capacity;
    bool old_on_failure;
};

/*
 * The write that an INSERT, UPDATE, DELETE or EXISTS comes to. `found` is what its WHERE clause
 * says of the key; an INSERT has none. A key that does not fit is not refused here.
 */
enum hf_status hf__statement_write(struct hf_scope *s, const struct statement *statement,
                                   const struct statement_target *target,
                                   const struct statement_found *found,
                                   const struct statement_wishes *wishes, enum write_kind *kind,
                                   struct prepared_write *write);

/* The key of one item as the WHERE clause gives it. */
struct hf_item hf__statement_key_item(struct hf_scope *s, const struct statement_key *key,
                                      const struct statement_found *found);

/* An INSERT, UPDATE or DELETE by itself names one item, by a key that fits the schema's types. */
enum hf_status hf__statement_find_item(struct hf_scope *s, const struct statement *statement,
                                       const struct statement_target *target,
                                       struct statement_found *found);

/* Execute a statement. */
enum hf_status
hf__statement_change(struct hf_scope *s, struct engine *e, const struct statement *statement,
                     const struct statement_target *target, const struct statement_found *found,
                     const struct statement_wishes *wishes, struct write_answer *answer);

#endif
