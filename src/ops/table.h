/*
 * ops/table.h: how the tables of fields_*.c are written.
 *
 *     #define T hf_tag
 *     static const struct field tag_list[] = {
 *         STR("Key", key, REQUIRED, LENGTH(1, 128)),
 *         STR("Value", value, REQUIRED),
 *     };
 *     static TABLE(tag, "Tag");
 *     #undef T
 *
 * `T` names the struct while its table is written. A table that ops.def names is an OP_TABLE: it
 * is hf__fields_NAME, and the table of operations refers to it.
 */
#ifndef HF_OPS_TABLE_H
#define HF_OPS_TABLE_H

#include "ops/fields.h"

/* Members in the order of their numbers; `printed_set` is the order in which messages list them. */
#define ENUM(name, printed_set, ...)                                                               \
    static const char *const name##_names[] = {__VA_ARGS__};                                       \
    static const struct field_enum name = {name##_names, ARRAY_LEN(name##_names), printed_set}

/* The same for an enum that several files of tables have fields of. */
#define SHARED_ENUM(name, printed_set, ...)                                                        \
    static const char *const name##_names[] = {__VA_ARGS__};                                       \
    const struct field_enum name = {name##_names, ARRAY_LEN(name##_names), printed_set}

#define AT(member) (uint16_t) offsetof(struct T, member)
#define COUNT_AT(member) (uint16_t) offsetof(struct T, member##_len)
#define STR(wire, member, ...)                                                                     \
    {                                                                                              \
        .name = wire, .kind = FIELD_STR, .at = AT(member), __VA_ARGS__                             \
    }
#define TABLE_NAME(wire, member, ...) STR(wire, member, .holds = HOLDS_TABLE, __VA_ARGS__)
#define ARN(wire, member, ...) STR(wire, member, .holds = HOLDS_ARN, __VA_ARGS__)
#define STATEMENT(wire, member, ...) STR(wire, member, .holds = HOLDS_STATEMENT, __VA_ARGS__)
#define INT(wire, member, ...)                                                                     \
    {                                                                                              \
        .name = wire, .kind = FIELD_INT, .at = AT(member), __VA_ARGS__                             \
    }
#define DOUBLE(wire, member, ...)                                                                  \
    {                                                                                              \
        .name = wire, .kind = FIELD_DOUBLE, .at = AT(member), __VA_ARGS__                          \
    }
#define FLAG(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_FLAG, .at = AT(member), __VA_ARGS__                            \
    }
#define ENUMERATED(wire, member, set, ...)                                                         \
    {                                                                                              \
        .name = wire, .kind = FIELD_ENUM, .at = AT(member), .members = &(set), __VA_ARGS__         \
    }
#define TIME(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_TIME, .at = AT(member), __VA_ARGS__                            \
    }
#define ITEM(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_ITEM, .at = AT(member), __VA_ARGS__                            \
    }
#define NAMES(wire, member, ...)                                                                   \
    {                                                                                              \
        .name = wire, .kind = FIELD_NAMES, .at = AT(member), __VA_ARGS__                           \
    }
#define VALUE(wire, member, ...)                                                                   \
    {                                                                                              \
        .name = wire, .kind = FIELD_VALUE, .at = AT(member), __VA_ARGS__                           \
    }
#define STRUCT(wire, member, table, ...)                                                           \
    {                                                                                              \
        .name = wire, .kind = FIELD_STRUCT, .at = AT(member), .sub = &(table), __VA_ARGS__         \
    }
#define LIST(kind_, wire, member, ...)                                                             \
    {                                                                                              \
        .name = wire, .kind = kind_, .at = AT(member), .count_at = COUNT_AT(member), __VA_ARGS__   \
    }
#define STRS(wire, member, ...) LIST(FIELD_STRS, wire, member, __VA_ARGS__)
#define DOUBLES(wire, member, ...) LIST(FIELD_DOUBLES, wire, member, __VA_ARGS__)
#define ITEMS(wire, member, ...) LIST(FIELD_ITEMS, wire, member, __VA_ARGS__)
#define VALUES(wire, member, ...) LIST(FIELD_VALUES, wire, member, __VA_ARGS__)
#define STRUCTS(wire, member, table, ...)                                                          \
    LIST(FIELD_STRUCTS, wire, member, .sub = &(table), __VA_ARGS__)
#define MAP(wire, member, table, ...) LIST(FIELD_MAP, wire, member, .sub = &(table), __VA_ARGS__)

#define REQUIRED .rules = FIELD_REQUIRED
#define ALWAYS .rules = FIELD_ALWAYS
#define LISTED .rules = FIELD_ALWAYS | FIELD_LISTED
#define PAGE_START .rules = FIELD_PAGE_START
#define PAGE_LIMIT .rules = FIELD_PAGE_LIMIT
#define PAGE_LAST .rules = FIELD_PAGE_LAST
#define LONG .rules = FIELD_LONG
#define LONG_ALWAYS .rules = FIELD_LONG | FIELD_ALWAYS
#define LONG_REQUIRED .rules = FIELD_LONG | FIELD_REQUIRED
#define LENGTH(shortest, longest) .min = (shortest), .max = (longest)
#define RANGE(least, most) .min = (least), .max = (most)
#define ELEMENTS(shortest, longest) .element_min = (shortest), .element_max = (longest)

#define TABLE(name_, wire_)                                                                        \
    const struct fields name_ = {wire_, name_##_list, ARRAY_LEN(name_##_list), sizeof(struct T)}
#define OP_TABLE(name_, wire_)                                                                     \
    const struct fields hf__fields_##name_ = {wire_, name_##_list, ARRAY_LEN(name_##_list),        \
                                              sizeof(struct T)}

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    extern const struct fields hf__fields_##struct_;                                               \
    extern const struct fields hf__fields_##struct_##_result;
#include "ops/ops.def"
#undef OP

/* Parts and enums of fields_tables.c that others have members of, too. */
extern const struct field_enum hf__billing_modes;
extern const struct field_enum hf__table_statuses;
extern const struct fields hf__part_attribute_definition;
extern const struct fields hf__part_key_element;
extern const struct fields hf__part_throughput;
extern const struct fields hf__part_on_demand_throughput;
extern const struct fields hf__part_projection;
extern const struct fields hf__part_local_index;
extern const struct fields hf__part_global_index;
extern const struct fields hf__part_stream_spec;
extern const struct fields hf__part_sse_spec;
extern const struct fields hf__part_sse_description;
extern const struct fields hf__part_ttl_description;

#endif
