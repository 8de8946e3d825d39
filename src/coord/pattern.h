/*
 * coord/pattern.h: what the patterns share. README.md has the rules behind it.
 */
#ifndef HF_COORD_PATTERN_H
#define HF_COORD_PATTERN_H

#include <holdfast/blob.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/tx.h>

#include <pthread.h>

#include "base/base.h"
#include "base/cond_monotonic.h"
#include "base/fnv.h"
#include "coord/backoff.h"

/*
 * A function that returns HF_OK leaves no error in the scope (scope.h). Operations see to that
 * themselves. A public function that may succeed without calling one clears the former error when
 * it begins; one that may succeed after a call failed clears it when it ends.
 */
static inline void call_begins(struct hf_scope *s)
{
    if (s) /* a close function may be called without a scope */
        hf_scope_ok(s);
}

static inline enum hf_status call_ends(struct hf_scope *s, enum hf_status status)
{
    return status == HF_OK ? hf_scope_ok(s) : status;
}

/* Options as this version knows them: what the caller's struct did not have yet is zero. */
#define OPTIONS_COPY(to, from)                                                                     \
    do {                                                                                           \
        memset((to), 0, sizeof(*(to)));                                                            \
        if (from)                                                                                  \
            memcpy((to), (from),                                                                   \
                   (from)->size && (from)->size < sizeof(*(to)) ? (from)->size : sizeof(*(to)));   \
    } while (0)

/* ---- id.c ----------------------------------------------------------------------------------- */

enum { PATTERN_ID_LEN = 32 };

/* A new id: 128 random bits in hexadecimal, with a NUL behind them. */
struct pattern_id {
    char text[PATTERN_ID_LEN + 1];
};
struct pattern_id hf__pattern_id_make(const struct hf_env *env);

static inline struct hf_str id_str(const struct pattern_id *id)
{
    return hf_str_of(id->text, PATTERN_ID_LEN);
}

/* One text after the other, where a format would be most of the work. Absent: no memory. */
struct hf_str hf__pattern_join(struct hf_scope *s, struct hf_str one, struct hf_str other);

/* At most `max` bytes of it, as UTF-8 whatever it was. Absent: no memory. */
struct hf_str hf__pattern_text(struct hf_scope *s, struct hf_str text, size_t max);

/* The owner name that listings show: `said`, else "HOST/PROCESS-ID". Absent: no memory. */
struct hf_str hf__pattern_owner(struct hf_scope *s, struct hf_str said);

/*
 * The parts as one key: joined by '.', with "%2E" for a '.' inside of a part and "%25" for a '%'.
 * Different lists of parts give different keys, and a list that begins with another's parts begins
 * with that one's key and a dot. Absent when there is no memory.
 */
struct hf_str hf__pattern_key(struct hf_scope *s, const struct hf_str *parts, size_t count);
#define PATTERN_KEY(s, ...)                                                                        \
    hf__pattern_key((s), (const struct hf_str[]){__VA_ARGS__},                                     \
                    ARRAY_LEN(((const struct hf_str[]){__VA_ARGS__})))

/*
 * The parts of such a key, in the scope. HF_CORRUPT when it is none, or has not as many parts as
 * are asked for.
 */
enum hf_status hf__pattern_key_parts(struct hf_scope *s, struct hf_str key, struct hf_str *parts,
                                     size_t count);

/* ---- json.c --------------------------------------------------------------------------------- */

enum { JSON_DEPTH_MAX = 100 };

/* A walk over JSON that is called "the event" in errors, which have that status. */
struct json_reader {
    struct hf_scope *s;
    struct hf_str text;
    size_t at;
    enum hf_status status;
    bool closed; /* members that are not looked for are errors, where some are */
};

/* A member that is looked for; raw is absent when it is not there, or null. */
struct json_member {
    const char *name;
    struct hf_str raw;
    size_t at; /* where it begins */
    bool found;
};

/* The next character behind blanks, '\0' at the end; take it, if it is that one; nothing but blanks
 * may be left. */
char hf__pattern_json_look(struct json_reader *r);
bool hf__pattern_json_take(struct json_reader *r, char c);
enum hf_status hf__pattern_json_end(struct json_reader *r);

/* Pass over a value; over members of the object, or elements of the list, that begins here, noting
 * where those are that are looked for; over an object, which has to be all of the text. */
enum hf_status hf__pattern_json_pass(struct json_reader *r, int depth);
enum hf_status hf__pattern_json_all(struct json_reader *r, int depth, char end,
                                    struct json_member *members, size_t len);
enum hf_status hf__pattern_json_object(struct json_reader *r, struct json_member *members,
                                       size_t len);

/* What a JSON string says as an S, or as a B in base64; what a number says as an N:
 * HF_SERIALIZATION when it does not. And the JSON string of an S or a B; absent: no memory, or no
 * UTF-8. */
enum hf_status hf__pattern_json_value(struct hf_scope *s, enum hf_type type, struct hf_str raw,
                                      struct hf_value *value);
struct hf_str hf__pattern_json_raw(struct hf_scope *s, struct hf_attr attr);

/* ---- plain.c -------------------------------------------------------------------------------- */

/* A value as plain JSON, in the scope; and an item from an object of plain JSON. HF_SERIALIZATION:
 * it is none, or has what no item can have. */
enum hf_status hf__plain_write(struct hf_scope *s, struct hf_value value, struct hf_str *json);
enum hf_status hf__plain_read(struct hf_scope *s, struct hf_str json, struct hf_item *item);

/* ---- table.c -------------------------------------------------------------------------------- */

/*
 * hf_table_ensure(), with that attribute for the time to live where the database has such: what has
 * expired is not seen in any case, it just is not removed where there is none.
 */
enum hf_status hf__pattern_table(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_create_table *spec, struct hf_str ttl_attribute,
                                 bool no_create);

/* What a table is to be; kind.c has their names and formats. */
enum pattern_kind {
    KIND_LOCKS,
    KIND_ONCE,
    KIND_LIMITS,
    KIND_VALUES,
    KIND_COUNTERS,
    KIND_POSITIONS,
    KIND_RECORDS,
    KIND_OUTBOX,
    KIND_EVENTS,
    KIND_COPIES
};

/* The same in two steps, between which the mark is looked for or put. HF_INVALID of the first: the
 * table is another's, or differs in what cannot be changed. */
struct pattern_open {
    enum pattern_kind kind;
    bool no_create, adopt, add_indexes;
    bool ready; /* the table is as it is to be: nothing is left for the second */
};
enum hf_status hf__pattern_table_begin(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_create_table *spec,
                                       struct hf_str ttl_attribute, struct pattern_open *how);
enum hf_status hf__pattern_table_end(struct hf_scope *s, struct hf_db *db,
                                     const struct hf_create_table *spec,
                                     struct hf_str ttl_attribute, const struct pattern_open *how);

/* ---- kind.c --------------------------------------------------------------------------------- */

/* A table, which is there, that is opened as one of that kind. */
struct kind_table {
    struct hf_db *db;
    const struct hf_create_table *spec; /* its name and its keys */
    enum pattern_kind kind;
    bool adopt; /* also if it has items of others */
};

/* Open a table: it has the mark of that kind, or gets it. HF_INVALID: it is another's, and nothing
 * was written; HF_FORMAT: a newer version made it. */
enum hf_status hf__kind_open(struct hf_scope *s, const struct kind_table *of);

/* The same for a kind with several formats. *format: which one a new mark has, 0: none is put; then
 * that of the mark, 0: there is none. */
enum hf_status hf__kind_open_as(struct hf_scope *s, const struct kind_table *of, int64_t *format);

/* Formats of KIND_VALUES: values may have no namespace for the index, have one from now on, all have
 * one (kv_table.c). */
enum { KIND_VALUES_PLAIN = 1, KIND_VALUES_FILLING = 2, KIND_VALUES_SPACED = 3 };

/* Let the format in the common mark, which is there, be this one if it is lower. */
enum hf_status hf__kind_raise(struct hf_scope *s, const struct kind_table *of, int64_t format);

/* What hf__pattern_table() came to. HF_INVALID: if the keys are those of a library that can be
 * imported from, the message says how. */
enum hf_status hf__kind_keys(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                             enum pattern_kind kind, enum hf_status status);

/* For patterns whose mark is the item at `key`, with what else they keep there: read it. Absent: it
 * is to be put. HF_INVALID: the table is another's. */
enum hf_status hf__kind_read(struct hf_scope *s, const struct kind_table *of, struct hf_item key,
                             struct hf_item *mark);

/* May a table that is there become one of that kind? *marked: it is. Nothing is written. HF_INVALID:
 * it is another's. */
enum hf_status hf__kind_look(struct hf_scope *s, const struct kind_table *of, bool *marked);

/* Does a mark with these say that the table is of that kind? HF_INVALID, HF_CORRUPT, HF_FORMAT. */
enum hf_status hf__kind_check(struct hf_scope *s, struct hf_str table, enum pattern_kind kind,
                              struct hf_str found, struct hf_value format);

/* Put a mark by this write of the item at `key`, which has the condition that it is not there yet;
 * *mark is what is there so far. As hf__pattern_write(). HF_INVALID: there is the mark of a pattern
 * that this one cannot share a table with; HF_DENIED, also on a database that is read-only: the
 * error says that it was about the mark. */
enum hf_status hf__kind_put(struct hf_scope *s, const struct kind_table *of,
                            const struct hf_transact_write *write, struct hf_item key,
                            struct hf_item *mark);

/* The attributes of such a mark, which hf__kind_check() reads. */
#define KIND_ATTR "kind"
#define FORMAT_ATTR "format"
struct hf_str hf__kind_name(enum pattern_kind kind);
int64_t hf__kind_format(enum pattern_kind kind);

/* Is this the key of a mark? Then no user may have it. */
bool hf__kind_is_mark(struct hf_str key);

/* ---- write.c -------------------------------------------------------------------------------- */

/*
 * Send one conditional write (put, del or update) of the item with that key until it is known what
 * became of it. What is sent again has to fail its own condition once it was done, or to change
 * nothing then; and its condition has to be such that the item tells whose doing it was, by an
 * attempt id.
 *
 * HF_OK         it was done; *item is what it returns, as its `returns` says
 * HF_CONDITION  refused; *item is the item as it is, absent when there is none. Whoever sees his
 *               own attempt id in it has done it before
 * others        hf_scope_error(s)->may_have_happened says whether it may have been done
 */
enum hf_status hf__pattern_write(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_transact_write *write, struct hf_item key,
                                 struct hf_item *item);

/* The item as it is now, by a consistent read; absent when there is none. */
enum hf_status hf__pattern_read(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct hf_item key, struct hf_item *item);

/* ---- opener.c ------------------------------------------------------------------------------- */

/* Was a lease with this `opener` (absent: it has none) taken through an opening of the database
 * that is over? Then its holder is gone, however long the lease. */
bool hf__pattern_is_orphan(struct hf_db *db, struct hf_str opener);

/* ---- tx.c ----------------------------------------------------------------------------------- */

/* The actions that were added so far, as many as hf_tx_len() says; until another is added. */
const struct hf_transact_write *hf__tx_actions(const struct hf_tx *tx);

/* The transaction was canceled; those are the reasons of one's own actions, some of which were
 * refused. True: they will be others when it is built again, so hf_tx_run() does that. */
typedef bool tx_refused_fn(const struct hf_cancel_reason *reasons, size_t len, void *user);

/* Add actions, all or none, with functions that are called with the outcome: `done` as in
 * hf_tx_on_commit(). */
enum hf_status hf__tx_join(struct hf_scope *s, struct hf_tx *tx,
                           const struct hf_transact_write *actions, size_t len, hf_tx_done_fn *done,
                           tx_refused_fn *refused, void *user);

/* The `user` of the first one that joined with that function, or of the one behind `before`; NULL:
 * no more. Those that were taken out of the transaction again are left out. */
void *hf__tx_joined(const struct hf_tx *tx, hf_tx_done_fn *done, const void *before);

/* ---- scope_list.c --------------------------------------------------------------------------- */

/* Room for one more element of that size in a list of `len` that lives in the scope. */
enum hf_status hf__pattern_grow(struct hf_scope *s, void **list, size_t len, size_t *cap,
                                size_t size);

/* ---- actions.c ------------------------------------------------------------------------------ */

/* Those of a transaction, in the scope. Zero is none. */
struct actions {
    struct hf_transact_write *list;
    size_t len, cap;
};

/*
 * HF_INVALID  it is not exactly one check, put, delete or update
 * HF_LIMIT    there are HF_TX_ACTIONS_MAX
 */
enum hf_status hf__actions_add(struct hf_scope *s, struct actions *actions,
                               const struct hf_transact_write *action);

/* ---- blob_refs.c ---------------------------------------------------------------------------- */

enum { BLOB_REF_LEN = HF_BLOB_DIGEST_LEN / 2 };

/* Digests of the blobs that are in use. */
struct blob_refs {
    const struct hf_env *env;
    uint8_t (*list)[BLOB_REF_LEN];
    size_t len, cap;
    size_t sorted; /* how many, at the beginning of the list */
};

/* Add the digest of every blob that is in use. */
typedef enum hf_status blob_refs_find_fn(struct hf_scope *s, struct blob_refs *refs, void *user);

/* A text that is no digest is ignored, and so is one that hf__refs_sort() has seen. */
enum hf_status hf__refs_add(struct hf_scope *s, struct blob_refs *refs, struct hf_str text);
void hf__refs_sort(struct blob_refs *refs);

/* Remove the blobs that `find` did not add, and that were put last more than older_s seconds before
 * it began. */
enum hf_status hf__refs_sweep(struct hf_scope *s, const struct hf_env *env, struct hf_blobs *blobs,
                              uint32_t older_s, blob_refs_find_fn *find, void *user,
                              uint64_t *removed);

/* ---- timer.c -------------------------------------------------------------------------------- */

/* Do what is due. Returns after how many microseconds to call it again; INT64_MAX: not before
 * hf__timer_wake(). */
typedef int64_t timer_fn(void *user);

struct timer; /* calls a function when it is due */

/* By a thread of its own. HF_NOMEM; HF_LIMIT when the system has no more threads. */
enum hf_status hf__timer_start(struct hf_scope *s, timer_fn *run, void *user, struct timer **timer);

/* By the one thread that the database has for all of these: for what sends one request a call, and
 * not for longer than others can wait. */
enum hf_status hf__timer_join(struct hf_scope *s, struct hf_db *db, timer_fn *run, void *user,
                              struct timer **timer);

/* Call it as soon as possible, once. Any thread, the timer's own too. */
void hf__timer_wake(struct timer *timer);

/* Call it in so many microseconds at the latest; costs little when it would be called by then. */
void hf__timer_wake_in(struct timer *timer, int64_t us);

/* Let a call that is running end; then there is no other. Not for the timer's own thread. */
void hf__timer_stop(struct timer *timer);

#endif
