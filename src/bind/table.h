/*
 * bind/table.h: how the tables of fields are written.
 *
 *     #define T lock_break_args
 *     ARGUMENTS(lock_break, TEXT("table", table), TEXT("name", name, REQUIRED), TEXT("id", id));
 *     #undef T
 *
 * `T` names the struct while its table is written. A member that does not have the size of its kind
 * does not compile.
 */
#ifndef HF_BIND_TABLE_H
#define HF_BIND_TABLE_H

#include "bind/private.h"

/* Where a member is; an array of -1 elements where its size is not that of `type`. */
#define AT_SIZED(member, type)                                                                     \
    (uint16_t)(offsetof(struct T, member) +                                                        \
               0 * sizeof(char[sizeof(((struct T *)0)->member) == sizeof(type) ? 1 : -1]))
#define AT_FIELD(name_, kind_, member, type, ...)                                                  \
    {                                                                                              \
        .name = name_, .kind = kind_, .at = AT_SIZED(member, type), __VA_ARGS__                    \
    }
#define TEXT(name_, member, ...) AT_FIELD(name_, BIND_TEXT, member, struct hf_str, __VA_ARGS__)
#define BYTES(name_, member, ...) AT_FIELD(name_, BIND_BYTES, member, struct hf_bytes, __VA_ARGS__)
#define BOOL(name_, member, ...) AT_FIELD(name_, BIND_BOOL, member, bool, __VA_ARGS__)
#define FLAG(name_, member, ...) AT_FIELD(name_, BIND_FLAG, member, enum hf_flag, __VA_ARGS__)
#define U32(name_, member, ...) AT_FIELD(name_, BIND_U32, member, uint32_t, __VA_ARGS__)
#define U64(name_, member, ...) AT_FIELD(name_, BIND_U64, member, uint64_t, __VA_ARGS__)
#define I64(name_, member, ...) AT_FIELD(name_, BIND_I64, member, int64_t, __VA_ARGS__)
#define BOUND(name_, member, ...) AT_FIELD(name_, BIND_BOUND, member, int64_t, __VA_ARGS__)
#define DOUBLE(name_, member, ...) AT_FIELD(name_, BIND_DOUBLE, member, double, __VA_ARGS__)
#define CHOICE(name_, member, texts, ...)                                                          \
    AT_FIELD(name_, BIND_ENUM, member, int, .members = (texts), __VA_ARGS__)
#define ITEM(name_, member, ...) AT_FIELD(name_, BIND_ITEM, member, struct hf_item, __VA_ARGS__)
#define VALUE(name_, member, ...) AT_FIELD(name_, BIND_VALUE, member, struct hf_value, __VA_ARGS__)
#define JSON(name_, member, ...) AT_FIELD(name_, BIND_JSON, member, struct hf_str, __VA_ARGS__)
#define STRUCT(name_, member, part, ...)                                                           \
    {                                                                                              \
        .name = name_, .kind = BIND_STRUCT, .at = (uint16_t)offsetof(struct T, member),            \
        .sub = &(part), __VA_ARGS__                                                                \
    }
#define FLAT(member, part) STRUCT("", member, part, .rules = BIND_FLAT)
#define POINTER(name_, member, part, ...)                                                          \
    AT_FIELD(name_, BIND_POINTER, member, void *, .sub = &(part), __VA_ARGS__)
#define LIST(name_, kind_, member, ...)                                                            \
    AT_FIELD(name_, kind_, member, void *, .count_at = AT_SIZED(member##_len, size_t), __VA_ARGS__)
#define TEXTS(name_, member, ...) LIST(name_, BIND_TEXTS, member, __VA_ARGS__)
#define COUNTS(name_, member, ...) LIST(name_, BIND_COUNTS, member, __VA_ARGS__)
#define VALUES(name_, member, ...) LIST(name_, BIND_VALUES, member, __VA_ARGS__)
#define STRUCTS(name_, member, part, ...)                                                          \
    LIST(name_, BIND_STRUCTS, member, .sub = &(part), __VA_ARGS__)
#define POINTERS(name_, member, part, ...)                                                         \
    LIST(name_, BIND_POINTERS, member, .sub = &(part), __VA_ARGS__)

#define REQUIRED .rules = BIND_REQUIRED
#define LISTED .rules = BIND_LISTED
#define LISTED_OR_ALL .rules = BIND_LISTED | BIND_ALL

#define PART(name_, ...)                                                                           \
    static const struct bind_field name_##_list[] = {__VA_ARGS__};                                 \
    static const struct bind_fields name_ = {name_##_list, ARRAY_LEN(name_##_list),                \
                                             sizeof(struct T)}
/* Only the list, for ARGUMENTS_AS() and RESULT_AS(). */
#define MEMBERS(name_, ...) static const struct bind_field name_##_list[] = {__VA_ARGS__}
#define SHARED_PART(name_, ...)                                                                    \
    static const struct bind_field name_##_list[] = {__VA_ARGS__};                                 \
    const struct bind_fields name_ = {name_##_list, ARRAY_LEN(name_##_list), sizeof(struct T)}
#define METHOD_TABLE(method, which, ...)                                                           \
    static const struct bind_field method##_##which##_list[] = {__VA_ARGS__};                      \
    const struct bind_fields hf__bind_##method##_##which = {method##_##which##_list,               \
                                                            ARRAY_LEN(method##_##which##_list),    \
                                                            sizeof(struct T)}
#define ARGUMENTS(method, ...) METHOD_TABLE(method, args, __VA_ARGS__)
#define RESULT(method, ...) METHOD_TABLE(method, result, __VA_ARGS__)
#define SAME_TABLE(method, which, part)                                                            \
    const struct bind_fields hf__bind_##method##_##which = {part##_list, ARRAY_LEN(part##_list),   \
                                                            sizeof(struct T)}
#define ARGUMENTS_AS(method, part) SAME_TABLE(method, args, part)
#define RESULT_AS(method, part) SAME_TABLE(method, result, part)
#define NO_ARGUMENTS(method) const struct bind_fields hf__bind_##method##_args = {NULL, 0, 0}
#define NO_RESULT(method) const struct bind_fields hf__bind_##method##_result = {NULL, 0, 0}

/* A method's function, in which `args` and `result` are pointers of their types. */
#define BIND_FUNCTION(method)                                                                      \
    enum hf_status hf__bind_##method(struct hf_scope *s, struct hf_bind *bind, void *args_in,      \
                                     void *result_out)

#endif
