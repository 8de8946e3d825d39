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
#define HF_VERSION_MINOR 1
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

/* The version that was linked, such as "0.1.0". */
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
 */
#define HF_STATUS_MAP(X)                                                                           \
    X(OK, 0, "", "done")                                                                           \
    X(NOMEM, 1, "InternalServerError", "out of memory")                                            \
    X(INVALID, 2, "ValidationException", "the request is not valid")                               \
    X(NOT_FOUND, 3, "ResourceNotFoundException", "no such table, index, stream or resource")       \
    X(IN_USE, 4, "ResourceInUseException", "the resource exists already or is being changed")      \
    X(CONDITION, 5, "ConditionalCheckFailedException", "the condition did not hold")               \
    X(TX_CANCELED, 6, "TransactionCanceledException", "the transaction was canceled")              \
    X(TX_CONFLICT, 7, "TransactionConflictException", "another transaction holds the item")        \
    X(TX_IN_PROGRESS, 8, "TransactionInProgressException", "this transaction is still running")    \
    X(TOKEN_MISMATCH, 9, "IdempotentParameterMismatchException",                                   \
      "the token was used for another request")                                                    \
    X(LIMIT, 10, "LimitExceededException", "a limit of account, table or system is reached")       \
    X(COLLECTION_SIZE, 11, "ItemCollectionSizeLimitExceededException",                             \
      "the item collection is full")                                                               \
    X(THROTTLED, 12, "ProvisionedThroughputExceededException", "too many requests")                \
    X(EXPIRED, 13, "ExpiredIteratorException", "the iterator is too old")                          \
    X(TRIMMED, 14, "TrimmedDataAccessException", "the stream no longer holds those records")       \
    X(SERIALIZATION, 15, "SerializationException", "the request could not be read")                \
    X(UNKNOWN_OPERATION, 16, "UnknownOperationException", "no such operation")                     \
    X(DENIED, 17, "AccessDeniedException", "access denied")                                        \
    X(UNSUPPORTED, 18, "UnknownOperationException", "this database cannot do that")                \
    X(TIMEOUT, 19, "InternalServerError", "the deadline of the scope passed")                      \
    X(CANCELED, 20, "InternalServerError", "the scope was canceled")                               \
    X(IO, 21, "InternalServerError", "reading or writing failed")                                  \
    X(NO_SPACE, 22, "InternalServerError", "the disk is too full to write safely")                 \
    X(CORRUPT, 23, "InternalServerError", "stored data is damaged")                                \
    X(LOCKED, 24, "InternalServerError", "another holds it: an open directory, or a lock")         \
    X(FORMAT, 25, "InternalServerError", "the data was written by a newer version")                \
    X(STOPPED, 26, "InternalServerError", "writes are stopped after a failed sync; reopen")        \
    X(LOST, 27, "InternalServerError", "what was held is held no more")                            \
    X(INTERNAL, 28, "InternalServerError", "an error inside holdfast")                             \
    X(DUPLICATE, 29, "DuplicateItemException", "an item with that key is there already")           \
    X(TABLE_NOT_FOUND, 30, "TableNotFoundException", "no such table to back up")                   \
    X(TABLE_EXISTS, 31, "TableAlreadyExistsException", "a table of that name exists already")      \
    X(TABLE_IN_USE, 32, "TableInUseException", "the table is being restored")                      \
    X(BACKUP_NOT_FOUND, 33, "BackupNotFoundException", "no such backup")                           \
    X(BACKUP_IN_USE, 34, "BackupInUseException", "the backup is being made or restored")           \
    X(BACKUPS_UNAVAILABLE, 35, "ContinuousBackupsUnavailableException",                            \
      "there are no continuous backups")                                                           \
    X(POLICY_NOT_FOUND, 36, "PolicyNotFoundException", "no such resource policy, or another one")  \
    X(GLOBAL_TABLE_NOT_FOUND, 37, "GlobalTableNotFoundException", "no such global table")          \
    X(EXPORT_NOT_FOUND, 38, "ExportNotFoundException", "no such export")                           \
    X(IMPORT_NOT_FOUND, 39, "ImportNotFoundException", "no such import")                           \
    X(POINT_IN_TIME_UNAVAILABLE, 40, "PointInTimeRecoveryUnavailableException",                    \
      "the table has no recovery to a point in time")

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
