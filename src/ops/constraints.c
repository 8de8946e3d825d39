/*
 * ops/constraints.c: the constraints of DynamoDB's model on the members of a request, checked by a
 * walk over the tables of fields.c.
 *
 * Everything that is wrong is reported together:
 *
 *     2 validation errors detected: Value 'x' at 'keySchema.1.member.keyType' failed to satisfy
 *     constraint: Member must satisfy enum value set: [HASH, RANGE]; Value null at ...
 *
 * What always holds:
 *
 *  (1) At most VIOLATIONS_MAX are collected; the count in the sentence is the number printed.
 *  (2) A TableName that is empty, too long or ill-formed is reported alone, before all else; but
 *      when the Key or the Item is not there at all, then with all else.
 *  (3) Every member is checked, also after another was wrong; lists and structures are walked even
 *      when their length is wrong.
 *
 * Under the 2026 wording, and for members marked FIELD_NEWER, paths are in Pascal case and values
 * are left out.
 */
#include "ops/private.h"

#include "base/assert_held.h"
#include "base/utf8.h"

_Static_assert(offsetof(struct hf_str, ptr) == 0 && offsetof(struct hf_item, ptr) == 0 &&
                   offsetof(struct hf_value, ptr) == 0,
               "is_absent() looks at the first member");
_Static_assert(sizeof(enum hf_flag) == sizeof(int), "enum_of() reads both alike");

enum {
    PRINTED_MAX = 1024, /* bytes of a structure or list, about; DynamoDB prints identities there */
    TABLE_NAME_MAX = 255, /* characters of a name that is no ARN */
    TABLE_NAME_MIN = 1    /* in operations on items; 3 in those on tables */
};

/* ---- members -------------------------------------------------------------------------------- */

static const void *field_at(const struct field *field, const void *base)
{
    return (const uint8_t *)base + field->at;
}

static size_t count_of(const struct field *field, const void *base)
{
    size_t count;

    assert(field->kind >= FIELD_STRS && field->kind <= FIELD_MAP);
    memcpy(&count, (const uint8_t *)base + field->count_at, sizeof(count));
    return count;
}

static struct hf_str str_of(const struct field *field, const void *base)
{
    struct hf_str str;

    memcpy(&str, field_at(field, base), sizeof(str));
    return str;
}

static int64_t int_of(const struct field *field, const void *base)
{
    int64_t number;

    memcpy(&number, field_at(field, base), sizeof(number));
    return number;
}

static int enum_of(const struct field *field, const void *base)
{
    int number;

    memcpy(&number, field_at(field, base), sizeof(number));
    return number;
}

static const void *pointer_of(const struct field *field, const void *base)
{
    const void *pointer;

    memcpy(&pointer, field_at(field, base), sizeof(pointer));
    return pointer;
}

static inline bool is_absent(const struct field *field, const void *base)
{
    double real;

    switch (field->kind) {
    case FIELD_INT:
    case FIELD_TIME:
        return int_of(field, base) == 0;
    case FIELD_FLAG:
    case FIELD_ENUM:
        return enum_of(field, base) == 0;
    case FIELD_DOUBLE:
        memcpy(&real, field_at(field, base), sizeof(real));
        return !(real < 0 || real > 0);
    default: /* all others begin with a pointer */
        return pointer_of(field, base) == NULL;
    }
}

/* ---- printing ------------------------------------------------------------------------------- */

static void put_lower_first(struct hf__buf *out, const char *name)
{
    char first = name[0];

    assert(first != '\0');
    if (first >= 'A' && first <= 'Z')
        first = (char)(first - 'A' + 'a');
    hf__buf_put_byte(out, (uint8_t)first);
    hf__buf_put(out, name + 1, strlen(name + 1));
}

static void print_struct(struct hf_scope *s, struct hf__buf *out, const struct fields *fields,
                         const void *base)
{
    assert(base && fields->name);
    hf__buf_format(out, "%s(", fields->name);
    for (size_t i = 0; i < fields->len; i++) {
        if (i > 0)
            hf__buf_put_str(out, HF_STR(", "));
        put_lower_first(out, fields->list[i].name);
        hf__buf_put_byte(out, '=');
        hf__print_field(s, out, &fields->list[i], base);
    }
    hf__buf_put_byte(out, ')');
}

static void print_item(struct hf__buf *out, struct hf_item item)
{
    struct hf_item_walk walk = {0};
    size_t from = out->len;

    hf__buf_put_byte(out, '{');
    while (out->len - from < PRINTED_MAX && hf_item_next(item, &walk)) {
        if (out->len - from > 1)
            hf__buf_put_str(out, HF_STR(", "));
        hf__buf_put_str(out, walk.name);
        hf__buf_format(out, "=AttributeValue(%s)", hf__type_name(hf_value_type(walk.value)));
    }
    hf__buf_put_byte(out, '}');
}

static void print_element(struct hf_scope *s, struct hf__buf *out, const struct field *field,
                          const void *element)
{
    struct hf_str str;
    struct hf_item item;

    assert(element);
    switch (field->kind) {
    case FIELD_STRS:
        memcpy(&str, element, sizeof(str));
        hf__buf_put_str(out, str);
        break;
    case FIELD_ITEMS:
        memcpy(&item, element, sizeof(item));
        print_item(out, item);
        break;
    case FIELD_MAP:
        memcpy(&str, element, sizeof(str));
        hf__buf_put_str(out, str);
        hf__buf_put_byte(out, '=');
        if (field->sub->len == 1 && !field->sub->list[0].name)
            hf__print_field(s, out, &field->sub->list[0], element);
        else
            print_struct(s, out, field->sub, element);
        break;
    case FIELD_STRUCTS:
        print_struct(s, out, field->sub, element);
        break;
    default:
        hf__buf_put_str(out, HF_STR("AttributeValue"));
        break;
    }
}

static void print_list(struct hf_scope *s, struct hf__buf *out, const struct field *field,
                       const void *base)
{
    const uint8_t *element = pointer_of(field, base);
    size_t from = out->len;
    bool map = field->kind == FIELD_MAP;

    assert(element); /* a list that is absent is printed as null */
    hf__buf_put_byte(out, map ? '{' : '[');
    for (size_t i = 0; i < count_of(field, base); i++) {
        if (i > 0)
            hf__buf_put_str(out, HF_STR(", "));
        if (out->len - from > PRINTED_MAX) {
            hf__buf_put_str(out, HF_STR("..."));
            break;
        }
        print_element(s, out, field, element + i * field_element_size(field));
    }
    hf__buf_put_byte(out, map ? '}' : ']');
}

void hf__print_field(struct hf_scope *s, struct hf__buf *out, const struct field *field,
                     const void *base)
{
    struct hf_item item;
    int64_t number;
    int member;

    assert(!field->sub || field->kind >= FIELD_STRUCT);
    if (is_absent(field, base)) {
        hf__buf_put_str(out, HF_STR("null"));
        return;
    }
    switch (field->kind) {
    case FIELD_STR:
        hf__buf_put_str(out, str_of(field, base));
        break;
    case FIELD_INT:
    case FIELD_TIME:
        number = int_of(field, base);
        hf__buf_format(out, "%lld", number == HF_ZERO ? 0 : (long long)number);
        break;
    case FIELD_FLAG:
        hf__buf_put_str(out, enum_of(field, base) == HF_YES ? HF_STR("true") : HF_STR("false"));
        break;
    case FIELD_ENUM:
        member = enum_of(field, base);
        assert(member != 0); /* that is absent */
        if (member < 0)
            hf__buf_put_str(out, hf__scope_kept_text(s, member));
        else if ((size_t)member <= field->members->len)
            hf__buf_put_str(out, hf_str_from(field->members->names[member - 1]));
        else /* only a C program can say this */
            hf__buf_format(out, "%d", member);
        break;
    case FIELD_ITEM:
    case FIELD_NAMES:
        memcpy(&item, field_at(field, base), sizeof(item));
        print_item(out, item);
        break;
    case FIELD_STRUCT:
        print_struct(s, out, field->sub, pointer_of(field, base));
        break;
    case FIELD_VALUE:
    case FIELD_DOUBLE:
        hf__buf_put_str(out, HF_STR("AttributeValue"));
        break;
    case FIELD_STRS:
    case FIELD_DOUBLES:
    case FIELD_ITEMS:
    case FIELD_VALUES:
    case FIELD_STRUCTS:
    case FIELD_MAP:
        print_list(s, out, field, base);
        break;
    }
}

/* ---- collecting ----------------------------------------------------------------------------- */

static bool is_newer(const struct violations *v)
{
    return hf__scope_wording(v->s) == HF__WORDING_2026;
}

static void put_path(struct violations *v, const struct path_step *step, bool pascal)
{
    assert(step->name || step->key.ptr || step->place);
    if (step->up) {
        put_path(v, step->up, pascal);
        hf__buf_put_byte(&v->text, '.');
    }
    if (step->name && pascal)
        hf__buf_put(&v->text, step->name, strlen(step->name));
    else if (step->name)
        put_lower_first(&v->text, step->name);
    else if (step->key.ptr)
        hf__buf_put_str(&v->text, step->key);
    else
        hf__buf_format(&v->text, "%zu", step->place);
    if (!step->name)
        hf__buf_put_str(&v->text, HF_STR(".member"));
}

/* Room for one more; writes what stands between two. (1) */
static bool violation_begin(struct violations *v)
{
    assert(v->count <= VIOLATIONS_MAX);
    if (v->count == VIOLATIONS_MAX)
        return false;
    if (v->count++ > 0)
        hf__buf_put_str(&v->text, HF_STR("; "));
    return true;
}

/* The member at the path is wrong. */
static void violation_add(struct violations *v, const struct field *field, const void *base,
                          bool in_newer_form, const char *constraint, int64_t limit)
{
    bool pascal = in_newer_form || is_newer(v);

    assert(v->at && constraint);
    if (!violation_begin(v))
        return;
    hf__buf_put_str(&v->text, HF_STR("Value "));
    if (!pascal) {
        bool quoted = !is_absent(field, base);

        if (quoted)
            hf__buf_put_byte(&v->text, '\'');
        hf__print_field(v->s, &v->text, field, base);
        hf__buf_put_str(&v->text, quoted ? HF_STR("' ") : HF_STR(" "));
    }
    hf__buf_put_str(&v->text, HF_STR("at '"));
    put_path(v, v->at, pascal);
    hf__buf_format(&v->text, "' failed to satisfy constraint: %s", constraint);
    if (limit != INT64_MIN)
        hf__buf_format(&v->text, "%lld", (long long)limit);
}

void hf__violation_add(struct violations *v, struct hf_str path, struct hf_str value,
                       const char *constraint)
{
    assert(path.len && constraint && !v->at); /* the walk is over */
    if (!violation_begin(v))
        return;
    hf__buf_put_str(&v->text, HF_STR("Value "));
    if (!is_newer(v)) {
        hf__buf_put_byte(&v->text, '\'');
        hf__buf_put_str(&v->text, value);
        hf__buf_put_str(&v->text, HF_STR("' "));
    }
    hf__buf_format(&v->text, "at '%.*s' failed to satisfy constraint: %s", HF_FMT(path),
                   constraint);
}

enum hf_status hf__violations_end(struct violations *v)
{
    struct hf__buf whole = {.scope = v->s};

    assert(!v->at && v->count >= 0 && v->count <= VIOLATIONS_MAX); /* the walk is over (1) */
    if (v->text.failed)
        return hf__fail_nomem(v->s);
    assert((v->count == 0) == (v->text.len == 0));
    if (v->count == 0)
        return HF_OK;
    hf__buf_format(&whole, "%d validation error%s detected: ", v->count, v->count > 1 ? "s" : "");
    hf__buf_put(&whole, v->text.ptr, v->text.len);
    hf__buf_put_byte(&whole, '\0');
    if (whole.failed)
        return hf__fail_nomem(v->s);
    return hf__fail_text(v->s, HF_INVALID, hf_str_of((const char *)whole.ptr, whole.len - 1));
}

/* ---- walking -------------------------------------------------------------------------------- */

static void check_fields(struct violations *v, const struct fields *fields, const void *base);

#define LONGER "Member must have length greater than or equal to "
#define SHORTER "Member must have length less than or equal to "
#define AT_LEAST "Member must have value greater than or equal to "
#define AT_MOST "Member must have value less than or equal to "

bool hf__ops_is_table_name(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_' && c != '.' && c != '-')
            return false;
    }
    return text.len > 0;
}

/* Where a table may be named by ARN, the model's limit is that of an ARN. */
static bool is_arn(const struct field *field, struct hf_str name)
{
    return field->max > TABLE_NAME_MAX && name.len > 4 && memcmp(name.ptr, "arn:", 4) == 0;
}

static void check_length(struct violations *v, const struct field *field, const void *base,
                         size_t len, int64_t max)
{
    bool in_newer_form = field->rules & FIELD_NEWER;

    assert(field->min >= 0 && max >= 0); /* lengths */
    if (field->rules & FIELD_NO_CHECK)
        return;
    if (field->min && len < (size_t)field->min)
        violation_add(v, field, base, in_newer_form, LONGER, field->min);
    if (max && len > (size_t)max)
        violation_add(v, field, base, in_newer_form, SHORTER, max);
}

/* JSON is UTF-8 already. A C program may pass other bytes, which would be stored. */
static void check_utf8(struct violations *v, const struct field *field, const void *base,
                       struct hf_str text)
{
    if (!hf__utf8_valid(text))
        violation_add(v, field, base, true, "Member must be UTF-8", INT64_MIN);
}

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_client_token(struct hf_str text)
{
    return text.len > 0 && !memchr(text.ptr, '$', text.len);
}

static bool is_bucket(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!is_alphanumeric(c) && c != '.' && c != '-' && c != '_')
            return false;
    }
    return text.len >= 2 && is_alphanumeric(text.ptr[0]) && is_alphanumeric(text.ptr[text.len - 1]);
}

static bool is_account(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len == 12;
}

static bool is_delimiter(struct hf_str text)
{
    static const char delimiters[] = {',', ';', ':', '|', '\t', ' '};

    return text.len == 1 && memchr(delimiters, text.ptr[0], sizeof(delimiters));
}

static bool is_hex16(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return text.len > 0 && text.len % 16 == 0;
}

#define MATCHES "Member must satisfy regular expression pattern: "

/* Patterns of the model but that of names of tables, which has rules of its own. */
static const struct {
    bool (*matches)(struct hf_str text);
    const char *constraint;
} patterns[] = {
    [PATTERN_CLIENT_TOKEN] = {is_client_token, MATCHES "^[^\\$]+$"},
    [PATTERN_BUCKET] = {is_bucket, MATCHES "^[a-z0-9A-Z]+[\\.\\-\\w]*[a-z0-9A-Z]+$"},
    [PATTERN_ACCOUNT] = {is_account, MATCHES "[0-9]{12}"},
    [PATTERN_DELIMITER] = {is_delimiter, MATCHES "[,;:|\\t ]"},
    [PATTERN_HEX16] = {is_hex16, MATCHES "([0-9a-f]{16})+"},
};

static void check_pattern(struct violations *v, const struct field *field, const void *base,
                          struct hf_str text)
{
    assert((size_t)field->pattern < ARRAY_LEN(patterns));
    if (patterns[field->pattern].matches && !patterns[field->pattern].matches(text))
        violation_add(v, field, base, false, patterns[field->pattern].constraint, INT64_MIN);
}

static void check_str(struct violations *v, const struct field *field, const void *base)
{
    struct hf_str text = str_of(field, base);
    int64_t max = field->max;

    if (field->pattern == PATTERN_TABLE_NAME && !is_arn(field, text)) {
        /* Of an empty name, where one character is enough, only the length is reported. */
        if (!hf__ops_is_table_name(text) && !(text.len == 0 && field->min == TABLE_NAME_MIN))
            violation_add(v, field, base, false,
                          "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
                          INT64_MIN);
        max = TABLE_NAME_MAX;
    }
    check_pattern(v, field, base, text);
    check_length(v, field, base, text.len, max);
    check_utf8(v, field, base, text);
}

static void check_int(struct violations *v, const struct field *field, const void *base)
{
    int64_t number = int_of(field, base);

    assert(!field->max || field->min <= field->max);
    assert(field->kind == FIELD_INT);
    if (number == HF_ZERO)
        number = 0;
    if ((field->rules & FIELD_FROM_ZERO) ? number < 0 : field->min && number < field->min)
        violation_add(v, field, base, field->rules & FIELD_NEWER, AT_LEAST, field->min);
    if (field->max && number > field->max)
        violation_add(v, field, base, field->rules & FIELD_NEWER, AT_MOST, field->max);
}

static void check_enum(struct violations *v, const struct field *field, const void *base)
{
    char constraint[256];
    int len;

    assert(field->members && field->members->printed[0] == '[');
    if (enum_of(field, base) > 0 && (size_t)enum_of(field, base) <= field->members->len)
        return;
    assert(enum_of(field, base) != 0); /* that is absent */
    len = snprintf(constraint, sizeof(constraint), "Member must satisfy enum value set: %s",
                   field->members->printed);
    assert(len > 0 && (size_t)len < sizeof(constraint)); /* no set is cut */
    violation_add(v, field, base, false, constraint, INT64_MIN);
}

/* Elements of a list are at path.n.member, of a map at path.key.member. */
static void check_elements(struct violations *v, const struct field *field, const void *base)
{
    const uint8_t *element = pointer_of(field, base);
    const struct field one = {
        .kind = field->kind == FIELD_STRS ? FIELD_STR : FIELD_ITEM,
        .min = field->element_min,
        .max = field->element_max,
    };
    const struct field key = {.kind = FIELD_STR}; /* a map's, where its entry begins */
    struct path_step step = {.up = v->at};

    assert(v->at && (element || !count_of(field, base)));
    v->at = &step;
    for (size_t i = 0; i < count_of(field, base) && v->count < VIOLATIONS_MAX; i++) {
        step.place = i + 1;
        step.key = (struct hf_str){0};
        if (field->kind == FIELD_MAP) {
            check_utf8(v, &key, element, str_of(&key, element));
            step.key = str_of(&key, element);
        }
        if (field->sub)
            check_fields(v, field->sub, element);
        else if (is_absent(&one, element))
            violation_add(v, &one, element, false, "Member must not be null", INT64_MIN);
        else if (field->kind == FIELD_STRS)
            check_str(v, &one, element);
        element += field_element_size(field);
    }
    v->at = step.up;
}

static void check_present(struct violations *v, const struct field *field, const void *base)
{
    switch (field->kind) {
    case FIELD_STR:
        check_str(v, field, base);
        break;
    case FIELD_INT:
        check_int(v, field, base);
        break;
    case FIELD_ENUM:
        check_enum(v, field, base);
        break;
    case FIELD_STRUCT:
        check_fields(v, field->sub, pointer_of(field, base));
        break;
    case FIELD_STRS:
    case FIELD_ITEMS:
    case FIELD_STRUCTS:
    case FIELD_MAP:
        check_length(v, field, base, count_of(field, base), field->max);
        check_elements(v, field, base);
        break;
    case FIELD_VALUES: /* what is wrong with a value comes later */
        check_length(v, field, base, count_of(field, base), field->max);
        break;
    case FIELD_DOUBLES:
    case FIELD_DOUBLE:
    case FIELD_FLAG:
    case FIELD_TIME:
    case FIELD_ITEM:
    case FIELD_NAMES:
    case FIELD_VALUE:
        break;
    }
}

static void check_field(struct violations *v, const struct field *field, const void *base,
                        bool absent)
{
    struct path_step step = {.up = v->at, .name = field->name};

    if (field->name) /* the only field of a map's entry is at the entry's own path */
        v->at = &step;
    if (absent)
        violation_add(v, field, base, false, "Member must not be null", INT64_MIN);
    else
        check_present(v, field, base);
    v->at = step.up;
}

static void check_fields(struct violations *v, const struct fields *fields, const void *base)
{
    assert(base);
    if (DEV_CHECKS)
        hf__fields_check(fields);
    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];
        bool absent = is_absent(field, base);

        if (!absent || field->rules & FIELD_REQUIRED)
            check_field(v, field, base, absent);
    }
}

/* ---- the whole request ---------------------------------------------------------------------- */

static const struct field *table_name_field(const struct op *op)
{
    for (size_t i = 0; i < op->request->len; i++)
        if (op->request->list[i].kind == FIELD_STR &&
            strcmp(op->request->list[i].name, "TableName") == 0)
            return &op->request->list[i];
    return NULL;
}

/* PutItem, GetItem, UpdateItem, DeleteItem: is the Item or Key missing? */
static bool lacks_item(const struct op *op, const void *request)
{
    for (size_t i = 0; i < op->request->len; i++) {
        const struct field *field = &op->request->list[i];

        if (field->kind == FIELD_ITEM && field->rules & FIELD_REQUIRED)
            return is_absent(field, request);
    }
    return false;
}

/* (2): of an empty name only its length is reported, of an ill-formed one only that. */
static enum hf_status check_table_name(struct violations *v, const struct field *field,
                                       const void *request)
{
    struct field by_length;
    struct hf_str name = str_of(field, request);

    assert(!DEV_CHECKS || (field->kind == FIELD_STR && !v->count));
    assert(!DEV_CHECKS || field->pattern == PATTERN_TABLE_NAME || field->rules & FIELD_NO_CHECK);
    if (!name.ptr && !(field->rules & FIELD_NO_CHECK))
        return HF_OK; /* reported with the rest, where it is required */
    if (!name.ptr)
        return hf__fail(v->s, HF_INVALID,
                        "The parameter 'TableName' is required but was not present in the request");
    if (name.len >= (size_t)field->min && name.len <= TABLE_NAME_MAX && hf__ops_is_table_name(name))
        return HF_OK; /* nearly always */
    by_length = *field;
    by_length.rules = 0;
    by_length.pattern = PATTERN_NONE;
    if (!is_arn(field, name))
        by_length.max = TABLE_NAME_MAX;
    check_field(v, &by_length, request, false);
    if (v->count == 0) {
        by_length = *field;
        by_length.min = 0;
        check_field(v, &by_length, request, false);
    }
    return hf__violations_end(v);
}

/* The 2026 layer of UpdateItem stops at a bad ReturnValues, and has a list (sic) of its own. */
static enum hf_status check_newer_update(struct violations *v, const struct op *op,
                                         const void *request)
{
    const struct hf_update_item *update = request;

    if (op->op != HF_OP_UPDATE_ITEM || !is_newer(v) || (int)update->returns >= 0)
        return HF_OK;
    return hf__fail(v->s, HF_INVALID,
                    "1 validation error detected: Failed to satisfy constraint: Member must "
                    "satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]");
}

enum hf_status hf__constraints_collect(struct violations *v, const struct op *op,
                                       const void *request)
{
    const struct field *table = table_name_field(op);

    assert(request && v->count == 0 && !v->at);
    if (table && !lacks_item(op, request))
        TRY(check_table_name(v, table, request));
    TRY(check_newer_update(v, op, request));
    check_fields(v, op->request, request);
    return HF_OK;
}

enum hf_status hf__constraints(struct hf_scope *s, enum hf_op op, const void *request)
{
    struct violations v = {.s = s, .text = {.scope = s}};

    TRY(hf__constraints_collect(&v, hf__op(op), request));
    return hf__violations_end(&v);
}

enum hf_status hf__prepare_plain(struct hf_scope *s, enum hf_op op, const void *request)
{
    return hf__constraints(s, op, request);
}
