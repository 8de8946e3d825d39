/*
 * Several environments in one account: a wrapper for a database that shows only the tables whose
 * names begin with a prefix, and hides that prefix.
 *
 *     struct hf_db *db;
 *     struct hf_get_item get = {.table = HF_STR("users"), .key = key};
 *
 *     if (hf_prefix_open(s, account, HF_STR("staging-"), &db) != HF_OK ||
 *         hf_get_item(s, db, &get, &got) != HF_OK) // from the account's table staging-users
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db); // closes the account's too
 *
 * Names are changed wherever requests and responses have them: in ARNs, in lists of tables, streams
 * and backups, in statements of PartiQL. Messages of errors show them as the account has them.
 */
#ifndef HOLDFAST_PREFIX_H
#define HOLDFAST_PREFIX_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HF_PREFIX_MAX = 252 }; /* names of tables have 255 characters at most */

/*
 * The tables of `inner` that begin with `prefix`; all of them when that is empty. No table beyond
 * these can be reached, unless one prefix begins with another: "a" has all that "ab" has. It closes
 * the inner one when it is closed; on failure the inner one stays open and *db is NULL.
 *
 * A list of tables, streams or backups is read on in the inner database until the page is full or
 * there are no more. A batch of statements is refused as a whole when one is not well formed.
 *
 * HF_INVALID  `inner` is NULL; or the prefix has other characters than names of tables (a-z, A-Z,
 *             0-9, '_', '-', '.') or more than HF_PREFIX_MAX
 */
HF_API HF_NODISCARD enum hf_status hf_prefix_open(struct hf_scope *s, struct hf_db *inner,
                                                  struct hf_str prefix, struct hf_db **db);

#ifdef __cplusplus
}
#endif

#endif
