/*
 * What every other header stands on: how symbols are exported, strings and bytes, statuses,
 * option structs, the version.
 *
 * Strings are a pointer and a length, UTF-8, passed by value, with no NUL needed at the end.
 * A string whose pointer is NULL is absent, which is not the same as empty. Binary data has a type
 * of its own so that the two do not mix.
 *
 * A comment says "Since 0.2" where a later version than 0.1 added something. What has no such word
 * is there since 0.1.
 */
#ifndef HOLDFAST_BASE_H
#define HOLDFAST_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 2
#define HF_VERSION_PATCH 0
#define HF_VERSION_NUMBER (HF_VERSION_MAJOR * 10000 + HF_VERSION_MINOR * 100 + HF_VERSION_PATCH)

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#define HF_NODISCARD __attribute__((warn_unused_result))
#define HF_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define HF_API
#define HF_NODISCARD
#define HF_PRINTF(format_at, args_at)
#endif

/* The version that was linked, such as "0.2.0". */
HF_API const char *hf_version(void);

struct hf_str {
    const char *ptr;
    size_t len;
};

struct hf_bytes {
    const uint8_t *ptr;
    size_t len;
};

/* A string from a literal, without counting at run time. */
#define HF_STR(literal) (hf_str_of("" literal, sizeof(literal) - 1))

/* The same where C wants a constant: `static const struct hf_str name = HF_STR_INIT("ann");`. */
#define HF_STR_INIT(literal)                                                                       \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }

/* For printf's "%.*s". */
#define HF_FMT(str) (int)(str).len, (str).ptr

static inline struct hf_str hf_str_of(const char *ptr, size_t len)
{
    struct hf_str str;

    str.ptr = ptr;
    str.len = len;
    return str;
}

/* A string from a NUL-terminated one; NULL gives the absent string. */
static inline struct hf_str hf_str_from(const char *text)
{
    return hf_str_of(text, text ? strlen(text) : 0);
}

static inline struct hf_bytes hf_bytes_of(const void *ptr, size_t len)
{
    struct hf_bytes bytes;

    bytes.ptr = (const uint8_t *)ptr;
    bytes.len = len;
    return bytes;
}

static inline bool hf_str_equal(struct hf_str a, struct hf_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/*
 * Every way a call can end: name, number, the exception that DynamoDB's protocol has for it, text.
 * Numbers are never reused.
 *
 * A status has one meaning, whoever returns it:
 *
 * HF_LIMIT    an upper bound was passed, and nothing was done: of DynamoDB (tables, the size or the
 *             number of actions of a transaction), of the library (a constant or an option, which
 *             hf_error.limit names), of a counter, sequence or rate limit, of a broker or blob store
 *             (the size of a message), or of the system (threads). A request that is malformed, or
 *             has a text that is too long, is HF_INVALID
 * HF_IN_USE   it exists already, runs already, or is being changed by others at this moment
 * HF_LOCKED   another holds it: the directory of a database, a lock, an attempt, a lease, a claim
 * HF_LOST     a lease, lock, attempt or claim of ours has ended: another may hold it now
 * HF_DELETED  a stream of events was deleted for good, and will not come back
 * HF_STOPPED  it stopped itself after a failure, and does nothing until it is opened or started
 *             again
 * HF_EXPIRED  too late: the time for it is over
 */
#define HF_STATUS_MAP(X)                                                                           \
    X(OK, 0, "", "success")                                                                        \
    X(NOMEM, 1, "InternalServerError", "out of memory")                                            \
    X(INVALID, 2, "ValidationException", "invalid request")                                        \
    X(NOT_FOUND, 3, "ResourceNotFoundException", "not found")                                      \
    X(IN_USE, 4, "ResourceInUseException", "in use: it exists, runs or is being changed")          \
    X(CONDITION, 5, "ConditionalCheckFailedException", "condition not met")                        \
    X(TX_CANCELED, 6, "TransactionCanceledException", "transaction canceled: nothing was changed") \
    X(TX_CONFLICT, 7, "TransactionConflictException",                                              \
      "conflict with a transaction on the same item")                                              \
    X(TX_IN_PROGRESS, 8, "TransactionInProgressException",                                         \
      "this transaction is still in progress")                                                     \
    X(TOKEN_MISMATCH, 9, "IdempotentParameterMismatchException",                                   \
      "token was used for a different request")                                                    \
    X(LIMIT, 10, "LimitExceededException", "limit exceeded")                                       \
    X(COLLECTION_SIZE, 11, "ItemCollectionSizeLimitExceededException", "item collection is full")  \
    X(THROTTLED, 12, "ProvisionedThroughputExceededException", "too many requests")                \
    X(EXPIRED, 13, "ExpiredIteratorException", "too late: expired")                                \
    X(TRIMMED, 14, "TrimmedDataAccessException", "the stream no longer has these records")         \
    X(SERIALIZATION, 15, "SerializationException", "request could not be parsed")                  \
    X(UNKNOWN_OPERATION, 16, "UnknownOperationException", "unknown operation")                     \
    X(DENIED, 17, "AccessDeniedException", "access denied")                                        \
    X(UNSUPPORTED, 18, "UnknownOperationException", "not supported by this database")              \
    X(TIMEOUT, 19, "InternalServerError", "deadline exceeded")                                     \
    X(CANCELED, 20, "InternalServerError", "canceled")                                             \
    X(IO, 21, "InternalServerError", "read or write failed")                                       \
    X(NO_SPACE, 22, "InternalServerError", "not enough disk space to write safely")                \
    X(CORRUPT, 23, "InternalServerError", "stored data is damaged")                                \
    X(LOCKED, 24, "InternalServerError", "locked: another holds it")                               \
    X(FORMAT, 25, "InternalServerError", "data was written by a newer version")                    \
    X(STOPPED, 26, "InternalServerError", "stopped after a failure: open or start it again")       \
    X(LOST, 27, "InternalServerError", "lease lost: another may hold it now")                      \
    X(INTERNAL, 28, "InternalServerError", "internal error")                                       \
    X(DUPLICATE, 29, "DuplicateItemException", "already exists")                                   \
    X(DELETED, 30, "InternalServerError", "deleted for good")

/*
 * Exceptions of single features of DynamoDB, and the status that they are. hf_error.exception tells
 * them apart.
 */
#define HF_EXCEPTION_MAP(X)                                                                        \
    X("TableNotFoundException", NOT_FOUND)                                                         \
    X("TableAlreadyExistsException", IN_USE)                                                       \
    X("TableInUseException", IN_USE)                                                               \
    X("BackupNotFoundException", NOT_FOUND)                                                        \
    X("BackupInUseException", IN_USE)                                                              \
    X("ContinuousBackupsUnavailableException", UNSUPPORTED)                                        \
    X("PointInTimeRecoveryUnavailableException", UNSUPPORTED)                                      \
    X("PolicyNotFoundException", NOT_FOUND)                                                        \
    X("IndexNotFoundException", NOT_FOUND)                                                         \
    X("GlobalTableNotFoundException", NOT_FOUND)                                                   \
    X("GlobalTableAlreadyExistsException", IN_USE)                                                 \
    X("ReplicaNotFoundException", NOT_FOUND)                                                       \
    X("ReplicaAlreadyExistsException", IN_USE)                                                     \
    X("ExportNotFoundException", NOT_FOUND)                                                        \
    X("ExportConflictException", IN_USE)                                                           \
    X("ImportNotFoundException", NOT_FOUND)                                                        \
    X("ImportConflictException", IN_USE)                                                           \
    X("InvalidExportTimeException", INVALID)

enum hf_status {
#define HF_STATUS_ENUM(name, number, wire, text) HF_##name = number,
    HF_STATUS_MAP(HF_STATUS_ENUM)
#undef HF_STATUS_ENUM
};

/* "HF_NOT_FOUND"; a number that is no status gives "HF_UNKNOWN". */
HF_API const char *hf_status_name(enum hf_status status);

/* One sentence for people. */
HF_API const char *hf_status_text(enum hf_status status);

/*
 * Option structs: NULL is all defaults, 0 in a field is its default, and the first field is the
 * size, so that a program built against an older header keeps working.
 * HF_OPTIONS(hf_engine_options, .sync = HF_SYNC_NONE) gives C named arguments. C++ has no such
 * expression: there, declare a zeroed struct and set `size` and what differs.
 */
#define HF_OPTIONS(type, ...) (&(struct type){.size = sizeof(struct type), __VA_ARGS__})

/*
 * Structs without a size that may grow, such as requests, results and metrics, end with `reserved`:
 * room that later versions of the same minor version take for new members. Leave it zero in what
 * you make, and do not read it. docs/abi.md has the whole of it.
 */

/*
 * A yes or no that may be left out. `true` and HF_YES are the same; `false` is "left out", so
 * where the default is yes, or where leaving out means "do not change", say HF_NO.
 */
enum hf_flag { HF_UNSET = 0, HF_YES = 1, HF_NO = 2 };

/*
 * In the numeric fields of a request 0 means "left out". HF_ZERO is a zero that was meant, as the
 * wire can send one.
 */
#define HF_ZERO INT64_MIN

/*
 * Where a reader of changes or events starts the first time. Later it continues from its position.
 */
enum hf_start {
    HF_START_FIRST = 1, /* the oldest that is kept; the default */
    HF_START_END,       /* what comes from now on */
    HF_START_AFTER,     /* after the one that the options name */
    HF_START_TIME       /* from options->from_us on */
};

/*
 * What becomes of work that has not come to an end after stuck_ms, besides being reported and
 * counted. Whatever its function does later changes nothing then.
 */
enum hf_stuck {
    HF_STUCK_LEAVE = 1, /* it is left as it is, and the lease is renewed; the default */
    HF_STUCK_RELEASE,   /* the lease is given up, so that another process takes over; work is taken
                           up again when the function has returned */
    HF_STUCK_GIVE_UP    /* it counts as failed permanently, and the next one is handled */
};

#ifdef __cplusplus
}
#endif

#endif
