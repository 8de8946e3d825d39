/*
 * wire/value_read.c: attribute values and items from JSON straight into their flat form.
 *
 * A value is one object with one tag, {"S":"ann"}. It is built at the end of json->flat while it is
 * read; a container is opened, its parts are read behind it, and closing it puts them in order.
 *
 * What always holds:
 *
 *  (1) What is no value although its JSON is of the right shape poisons the item and reading goes
 *      on: a type error or malformed JSON behind it is reported first, as the service does. Of
 *      several, the first poison stays. Something valid is put in its place, so that closing works.
 *  (2) Recursion is at most VALUE_DEPTH_MAX deep; a value below that is stepped over.
 *  (3) Within one value the same tag twice keeps the last, and its poison; two tags are poison.
 *      Of attributes with one name the last counts too, but poison in an earlier one stays.
 *  (4) null is an absent tag. In place of a value, or of an element of a set, it is poison.
 */
#include "base/base64.h"
#include "wire/private.h"

#define INVALID "One or more parameter values were invalid: "

#define JAVA_STRUCT "com.amazonaws.dynamodb.v20120810."

static void poison_text(struct wire_json *json, struct hf_str message)
{
    assert(json->scope);
    if (json->poison.ptr)
        return;
    json->poison = message.ptr ? hf__item_poison_new(json->scope, HF_INVALID, message, json->attr)
                               : hf__item_poison_new(json->scope, HF_NOMEM, HF_STR("out of memory"),
                                                     json->attr);
}

#define POISON(json, literal) poison_text((json), HF_STR(literal))

/* ---- what nearly all is --------------------------------------------------------------------- */

/*
 * A short plain name with its colon, and a short plain string or number as a value: looked for
 * and copied to json->flat in one go, PLAIN_STEP bytes at a time, of which those behind the end do
 * not count. Where the text is anything else, nothing has happened and the answer is false.
 */
static inline bool quick_name(struct wire_json *json, struct hf_str *name)
{
    const char *from = json->in.at + 1;
    uint8_t *to;
    size_t len;

    if (json->in.end - json->in.at < 2 * PLAIN_STEP || *json->in.at != '"')
        return false;
    len = hf__json_plain(from);
    if (len == 0 || len == PLAIN_STEP || from[len] != '"' || from[len + 1] != ':')
        return false;
    to = hf__buf_reserve(&json->flat, 2 + PLAIN_STEP);
    if (!to)
        return false;
    store_u16le(to, (uint16_t)len);
    memcpy(to + 2, from, PLAIN_STEP);
    json->flat.len += 2 + len;
    *name = hf_str_of(from, len);
    json->in.at = from + len + 2;
    return true;
}

enum { QUICK_MAX = 7 * PLAIN_STEP }; /* its length takes one byte */
_Static_assert(QUICK_MAX + PLAIN_STEP <= 0x80 + PLAIN_STEP, "a length of one byte is below 0x80");

/* The text of an S that starts at `from`. */
static inline bool quick_s(struct wire_json *json, const char *from)
{
    uint8_t *to = hf__buf_reserve(&json->flat, 2 + QUICK_MAX);
    size_t len = 0, run;

    if (!to)
        return false;
    do {
        if (json->in.end - from < (ptrdiff_t)len + PLAIN_STEP + 2) /* the quote and the brace too */
            return false;
        run = hf__json_plain(from + len);
        memcpy(to + 2 + len, from + len, PLAIN_STEP);
        len += run;
    } while (run == PLAIN_STEP && len < QUICK_MAX);
    if (from[len] != '"' || from[len + 1] != '}')
        return false;
    to[0] = HF_TYPE_S;
    to[1] = (uint8_t)len;
    json->flat.len += 2 + len;
    json->in.at = from + len + 2;
    return true;
}

/* The text of an N that starts at `from`. */
static bool quick_n(struct wire_json *json, const char *from)
{
    struct number number;
    uint8_t *to;
    size_t len;

    if (json->in.end - from < PLAIN_STEP + 2)
        return false;
    len = hf__json_plain(from);
    if (from[len] != '"' || from[len + 1] != '}' ||
        hf__number_parse(hf_str_of(from, len), &number) != NUMBER_OK)
        return false;
    to = hf__buf_reserve(&json->flat, 2 + sizeof(number.bytes));
    if (!to)
        return false;
    assert(number.len > 0 && number.len <= sizeof(number.bytes));
    to[0] = HF_TYPE_N;
    to[1] = number.len;
    memcpy(to + 2, number.bytes, sizeof(number.bytes)); /* all of it: that is quicker */
    json->flat.len += 2u + number.len;
    json->in.at = from + len + 2;
    return true;
}

/* A whole value, {"S":"ann"} or {"N":"12"}, with a space behind the colon or without. */
static inline bool quick_value(struct wire_json *json)
{
    static const char head[] = {'"', ':'};
    const char *at = json->in.at;
    const char *from = at + 5;

    if (json->in.end - at < 8 || at[0] != '{' || at[1] != '"' ||
        memcmp(at + 3, head, sizeof(head)) != 0)
        return false;
    from += *from == ' ';
    if (*from++ != '"')
        return false;
    return at[2] == 'S' ? quick_s(json, from) : at[2] == 'N' && quick_n(json, from);
}

/* ---- scalars -------------------------------------------------------------------------------- */

static void poison_number(struct wire_json *json, struct hf_str text, enum number_error error)
{
    switch (error) {
    case NUMBER_OK:
        break;
    case NUMBER_SYNTAX:
        if (text.len == 0)
            POISON(json, "The parameter cannot be converted to a numeric value");
        else if (!json->poison.ptr)
            poison_text(json, hf_scope_format(json->scope,
                                              "The parameter cannot be converted to a numeric "
                                              "value: %.*s",
                                              HF_FMT(text)));
        break;
    case NUMBER_PRECISION:
        POISON(json, "Attempting to store more than 38 significant digits in a Number");
        break;
    case NUMBER_OVERFLOW:
        POISON(json, "Number overflow. Attempting to store a number with magnitude larger than "
                     "supported range");
        break;
    case NUMBER_UNDERFLOW:
        POISON(json, "Number underflow. Attempting to store a number with magnitude smaller than "
                     "supported range");
        break;
    }
}

static inline bool read_number(struct wire_json *json, struct hf_str text, struct number *number)
{
    enum number_error error = hf__number_parse(text, number);

    if (error == NUMBER_OK)
        return true;
    poison_number(json, text, error);
    return false;
}

/* A string of base64 at the cursor, decoded into the scratch buffer. */
static bool read_binary(struct wire_json *json, struct hf_bytes *bytes)
{
    enum json_kind kind = hf__json_kind(&json->in);
    struct json_string raw;
    struct hf_str text;
    uint8_t *out;
    size_t len;

    assert(json->in.at <= json->in.end);
    if (kind == JSON_ARRAY || kind == JSON_OBJECT || kind == JSON_BAD)
        return hf__wire_read_not_scalar(json, kind, "nio.ByteBuffer");
    if (kind != JSON_STRING)
        return hf__wire_read_type_error(json,
                                        "only base-64-encoded strings are convertible to bytes");
    if (!hf__json_string(&json->in, &raw) || !hf__wire_read_scratch(json, raw, &text))
        return false;
    /* Behind the text, if it was unescaped to there. */
    json->scratch.len = raw.escaped ? text.len : 0;
    out = hf__buf_reserve(&json->scratch, hf__base64_decoded_max(text.len) + 1);
    if (!out)
        return hf__wire_read_nomem(json);
    if (raw.escaped)
        text.ptr = (const char *)json->scratch.ptr; /* it may have moved */
    switch (hf__base64_decode(text, out, &len)) {
    case BASE64_OK:
        break;
    case BASE64_LENGTH:
        return hf__wire_read_type_error(
            json, "Base64 encoded length is expected a multiple of 4 bytes but found: %zu",
            text.len);
    case BASE64_LAST:
        return hf__wire_read_type_error(json, "Invalid last non-pad Base64 character dectected");
    case BASE64_CHARACTER:
        return hf__wire_read_type_error(json, "Invalid base 64 character");
    }
    assert(len <= hf__base64_decoded_max(text.len));
    *bytes = hf_bytes_of(out, len);
    return true;
}

static bool read_s(struct wire_json *json)
{
    struct json_string raw;
    struct hf_str text;

    if (!hf__wire_read_string(json, "String", &raw) || !hf__wire_read_scratch(json, raw, &text))
        return false;
    hf__build_str(&json->flat, HF_TYPE_S, text);
    return true;
}

static bool read_n(struct wire_json *json)
{
    struct json_string raw;
    struct hf_str text;
    struct number number;

    if (!hf__wire_read_string(json, "String", &raw) || !hf__wire_read_scratch(json, raw, &text))
        return false;
    if (!read_number(json, text, &number)) {
        hf__build_null(&json->flat);
        return true;
    }
    hf__build_number(&json->flat, number.bytes, number.len);
    return true;
}

static bool read_b(struct wire_json *json)
{
    struct hf_bytes bytes;

    if (!read_binary(json, &bytes))
        return false;
    hf__build_str(&json->flat, HF_TYPE_B, hf_str_of((const char *)bytes.ptr, bytes.len));
    return true;
}

static bool read_bool(struct wire_json *json)
{
    bool truth;

    if (!hf__wire_read_bool(json, &truth))
        return false;
    hf__build_bool(&json->flat, truth);
    return true;
}

static bool read_null(struct wire_json *json)
{
    bool truth;

    if (!hf__wire_read_bool(json, &truth))
        return false;
    if (!truth)
        POISON(json, INVALID "Null attribute value types must have the value of true");
    hf__build_null(&json->flat);
    return true;
}

/* ---- sets ----------------------------------------------------------------------------------- */

/* The text that was put together, or an absent one without memory. */
static struct hf_str text_of(struct hf__buf *text)
{
    assert(text->scope);
    hf__buf_put_byte(text, '\0'); /* for printf(), as other texts in a scope */
    return text->failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)text->ptr, text->len - 1);
}

/* The older message about duplicates: the elements of the set at `array` as they were sent. */
static struct hf_str duplicates_as_sent(struct wire_json *json, enum hf_type type,
                                        const char *array)
{
    struct wire_json again = {.in = {.at = array, .end = json->in.end},
                              .scope = json->scope,
                              .scratch = json->scratch};
    struct hf__buf text = {.scope = json->scope};
    const char *before = "";

    assert(type == HF_TYPE_SS || type == HF_TYPE_BS);
    hf__buf_put_str(&text, HF_STR(INVALID "Input collection ["));
    for (bool more = hf__json_enter(&again.in, ']'); more; more = hf__json_more(&again.in, ']')) {
        struct json_string raw;
        struct hf_str element;

        /* It was read before; only memory can be missing. */
        if (hf__json_kind(&again.in) != JSON_STRING || !hf__json_string(&again.in, &raw) ||
            !hf__wire_read_scratch(&again, raw, &element))
            break;
        hf__buf_put_str(&text, hf_str_from(before));
        hf__buf_put_str(&text, element);
        before = ", ";
    }
    json->scratch = again.scratch;
    hf__buf_put_str(&text, type == HF_TYPE_SS ? HF_STR("] contains duplicates.")
                                              : HF_STR("]of type BS contains duplicates."));
    return text_of(&text);
}

/* The newer one: in order, quoted, up to the first that came twice. */
static struct hf_str duplicates_in_order(struct wire_json *json, size_t open, size_t repeat)
{
    struct value_walk walk =
        hf__value_walk((struct hf_value){json->flat.ptr + open, json->flat.len - open});
    struct hf__buf text = {.scope = json->scope};

    assert(open < json->flat.len);
    hf__buf_put_str(&text, HF_STR(INVALID "Input collection ["));
    for (size_t i = 0; i <= repeat && hf__value_next(&walk); i++) {
        for (size_t times = 0; times < (i == repeat ? 2 : 1); times++) {
            hf__buf_put_str(&text, i + times ? HF_STR(", \"") : HF_STR("\""));
            hf__buf_put(&text, walk.scalar.ptr, walk.scalar.len);
            hf__buf_put_byte(&text, '"');
        }
    }
    hf__buf_put_str(&text, HF_STR("] contains duplicates."));
    return text_of(&text);
}

/*
 * The set at `array` in the body, and at `open` without its repeats, has duplicates. Which wording
 * is in force is known only when the poison is reported, so it carries both.
 */
static void poison_duplicates(struct wire_json *json, enum hf_type type, const char *array,
                              size_t open, size_t repeat)
{
    struct poison poison = {.status = HF_INVALID, .key = json->attr};

    assert(*array == '[' && array < json->in.at);
    if (json->poison.ptr)
        return;
    if (type == HF_TYPE_NS) {
        POISON(json, "Input collection contains duplicates");
        return;
    }
    poison.message = duplicates_as_sent(json, type, array);
    if (type == HF_TYPE_SS)
        poison.newer = duplicates_in_order(json, open, repeat);
    if (!poison.message.ptr || (type == HF_TYPE_SS && !poison.newer.ptr))
        poison_text(json, hf_str_of(NULL, 0));
    else
        json->poison = hf__item_poison_of(json->scope, &poison);
}

static void poison_null_element(struct wire_json *json, enum hf_type type)
{
    assert(type == HF_TYPE_SS || type == HF_TYPE_NS || type == HF_TYPE_BS);
    if (type == HF_TYPE_SS)
        POISON(json, INVALID "An string set may not have a null string as a member");
    else if (type == HF_TYPE_NS)
        POISON(json, "The parameter cannot be converted to a numeric value");
    else
        POISON(json, INVALID "Binary sets may not contain null or empty values");
}

static bool read_element(struct wire_json *json, enum hf_type type)
{
    struct json_string raw;
    struct hf_str text;
    struct hf_bytes bytes;
    struct number number;
    enum json_kind kind = hf__json_kind(&json->in);

    if (kind == JSON_NULL) {
        poison_null_element(json, type);
        return hf__json_word(&json->in, kind);
    }
    if (type == HF_TYPE_BS) {
        if (!read_binary(json, &bytes))
            return false;
    } else {
        if (!hf__wire_read_string(json, "String", &raw) || !hf__wire_read_scratch(json, raw, &text))
            return false;
        bytes = hf_bytes_of(text.ptr, text.len);
        if (type == HF_TYPE_NS) {
            if (!read_number(json, text, &number))
                return true;
            bytes = hf_bytes_of(number.bytes, number.len);
        }
    }
    hf__build_element(&json->flat, type, bytes);
    return true;
}

static bool read_set(struct wire_json *json, enum hf_type type)
{
    enum json_kind kind = hf__json_kind(&json->in);
    const char *array = json->in.at;
    bool any = false;
    size_t open, repeat;

    assert(type == HF_TYPE_SS || type == HF_TYPE_NS || type == HF_TYPE_BS);
    if (kind != JSON_ARRAY)
        return hf__wire_read_not_compound(json, kind, FIELD_SCALAR, NULL);
    open = hf__build_open(&json->flat, type);
    for (bool more = hf__json_enter(&json->in, ']'); more; more = hf__json_more(&json->in, ']')) {
        any = true;
        if (!read_element(json, type))
            return false;
    }
    if (!hf__json_sound(&json->in))
        return false;
    switch (hf__build_close_set(&json->flat, open, &repeat)) {
    case BUILD_OK:
        break;
    case BUILD_DUPLICATE:
        poison_duplicates(json, type, array, open, repeat);
        break;
    case BUILD_EMPTY_SET:
        if (any)
            break; /* its elements were all bad, and said so */
        if (type == HF_TYPE_SS)
            POISON(json, INVALID "An string set  may not be empty");
        else if (type == HF_TYPE_NS)
            POISON(json, INVALID "An number set  may not be empty");
        else
            POISON(json, INVALID "Binary sets should not be empty");
        break;
    }
    return true;
}

/* ---- lists, maps, any value ----------------------------------------------------------------- */

static inline bool read_any(struct wire_json *json, const char *scalar, int depth);

static bool read_l(struct wire_json *json, int depth)
{
    enum json_kind kind = hf__json_kind(&json->in);
    size_t open;

    if (kind != JSON_ARRAY)
        return hf__wire_read_not_compound(json, kind, FIELD_SCALAR, NULL);
    open = hf__build_open(&json->flat, HF_TYPE_L);
    for (bool more = hf__json_enter(&json->in, ']'); more; more = hf__json_more(&json->in, ']'))
        if (!read_any(json, ELEMENT_SCALAR, depth + 1))
            return false;
    hf__build_close(&json->flat, open);
    return hf__json_sound(&json->in);
}

/* The name of an attribute or member, as far as it can be one. */
static void build_name(struct wire_json *json, struct hf_str name)
{
    assert(name.ptr || !name.len);
    if (name.len == 0)
        POISON(json, INVALID "Empty attribute name");
    if (name.len > ATTR_NAME_MAX) {
        POISON(json, INVALID "Attribute name is too large, must be less than 65535 bytes");
        name.len = ATTR_NAME_MAX;
    }
    hf__build_name(&json->flat, name);
}

static bool read_m(struct wire_json *json, int depth)
{
    enum json_kind kind = hf__json_kind(&json->in);
    size_t open;

    if (kind != JSON_OBJECT)
        return hf__wire_read_not_compound(json, kind, FIELD_SCALAR,
                                          "java.util.Map<java.lang.String, " JAVA_STRUCT
                                          "AttributeValue>");
    open = hf__build_open(&json->flat, HF_TYPE_M);
    for (bool more = hf__json_enter(&json->in, '}'); more; more = hf__json_more(&json->in, '}')) {
        struct json_string raw;
        struct hf_str name;

        hf__json_spaces(&json->in);
        if (!quick_name(json, &name)) {
            if (!hf__json_name(&json->in, &raw) || !hf__wire_read_scratch(json, raw, &name))
                return false;
            build_name(json, name);
        }
        if (!read_any(json, ELEMENT_SCALAR, depth + 1))
            return false;
    }
    hf__build_close(&json->flat, open);
    return hf__json_sound(&json->in);
}

static bool read_tagged(struct wire_json *json, enum hf_type type, int depth)
{
    if (type == HF_TYPE_S)
        return read_s(json);
    if (type == HF_TYPE_N)
        return read_n(json);
    switch (type) {
    case HF_TYPE_S:
    case HF_TYPE_N:
        break;
    case HF_TYPE_B:
        return read_b(json);
    case HF_TYPE_BOOL:
        return read_bool(json);
    case HF_TYPE_NULL:
        return read_null(json);
    case HF_TYPE_M:
        return read_m(json, depth);
    case HF_TYPE_L:
        return read_l(json, depth);
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return read_set(json, type);
    case HF_TYPE_NONE:
        break;
    }
    return hf__json_skip(&json->in, JSON_DEPTH_MAX); /* members that we do not know are ignored */
}

static enum hf_type type_of_letter(char letter)
{
    static const uint8_t letters['Z' + 1] = {['S'] = HF_TYPE_S,
                                             ['N'] = HF_TYPE_N,
                                             ['B'] = HF_TYPE_B,
                                             ['M'] = HF_TYPE_M,
                                             ['L'] = HF_TYPE_L};

    return (unsigned char)letter <= 'Z' ? (enum hf_type)letters[(unsigned char)letter]
                                        : HF_TYPE_NONE;
}

static enum hf_type type_of_tag(struct hf_str name)
{
    if (name.len == 1)
        return type_of_letter(name.ptr[0]);
    if (name.len == 2 && name.ptr[0] == 'S' && name.ptr[1] == 'S')
        return HF_TYPE_SS;
    return hf__type_of_name(name);
}

/*
 * Step over {"S": or the like, as nearly every value begins. Anything else, null behind it among
 * that, stays and is HF_TYPE_NONE.
 */
static enum hf_type usual_tag(struct wire_json *json)
{
    const char *at = json->in.at;
    enum hf_type type;

    if (json->in.end - at < 8 || at[0] != '{' || at[1] != '"' || at[3] != '"' || at[4] != ':')
        return HF_TYPE_NONE;
    type = type_of_letter(at[2]);
    at += at[5] == ' ' ? 6 : 5;
    if (type == HF_TYPE_NONE || (*at != '"' && *at != '{' && *at != '['))
        return HF_TYPE_NONE;
    json->in.at = at;
    return type;
}

_Static_assert(HF_TYPE_BS < 8 * sizeof(unsigned), "tags.seen has a bit for each type");

/* What was there before a value was begun, and what has been found of it. */
struct tags {
    struct hf_item poison;
    size_t start;  /* in json->flat */
    unsigned seen; /* a bit for each type */
};

/* Go on in a value, behind its first brace or behind a tag; `more` if there is another one. */
static bool read_tags(struct wire_json *json, struct tags tags, bool more, int depth)
{
    for (; more; more = hf__json_more(&json->in, '}')) {
        struct json_string raw;
        struct hf_str name;
        enum hf_type type;

        if (!hf__json_name(&json->in, &raw) || !hf__wire_read_scratch(json, raw, &name))
            return false;
        type = type_of_tag(name);
        if (hf__json_kind(&json->in) == JSON_NULL)
            type = HF_TYPE_NONE;
        if (type != HF_TYPE_NONE) {
            json->flat.len = tags.start; /* the last one stays */
            if (tags.seen & 1u << type)
                json->poison = tags.poison;
            tags.seen |= 1u << type;
        }
        if (!read_tagged(json, type, depth))
            return false;
    }
    if (tags.seen == 0) {
        POISON(json, "Supplied AttributeValue is empty, must contain exactly one of the supported "
                     "datatypes");
        hf__build_null(&json->flat);
    } else if (tags.seen & (tags.seen - 1)) {
        POISON(json, "Supplied AttributeValue has more than one datatypes set, must contain "
                     "exactly one of the supported datatypes");
    }
    return hf__json_sound(&json->in);
}

/* A value that does not begin as nearly all do. */
static bool read_unusual(struct wire_json *json, const char *scalar, struct tags tags, int depth)
{
    enum json_kind kind = hf__json_kind(&json->in);

    assert(depth >= 1);
    if (kind == JSON_NULL) {
        POISON(json, "Supplied AttributeValue is empty, must contain exactly one of the supported "
                     "datatypes");
        hf__build_null(&json->flat);
        return hf__json_word(&json->in, kind);
    }
    if (kind != JSON_OBJECT)
        return hf__wire_read_not_compound(json, kind, scalar,
                                          "class " JAVA_STRUCT "AttributeValue");
    if (depth > VALUE_DEPTH_MAX) {
        POISON(json, "Nesting Levels have exceeded supported limits: Attributes in the item have "
                     "nested levels beyond supported limit");
        hf__build_null(&json->flat);
        return hf__json_skip(&json->in, JSON_DEPTH_MAX);
    }
    return read_tags(json, tags, hf__json_enter(&json->in, '}'), depth);
}

/* A value that is neither a short string nor a short number. */
static bool read_other(struct wire_json *json, const char *scalar, int depth)
{
    struct tags tags = {.poison = json->poison, .start = json->flat.len};
    enum hf_type type = depth <= VALUE_DEPTH_MAX ? usual_tag(json) : HF_TYPE_NONE;

    if (type == HF_TYPE_NONE)
        return read_unusual(json, scalar, tags, depth);
    if (!read_tagged(json, type, depth))
        return false;
    hf__json_spaces(&json->in);
    if (json->in.at < json->in.end && *json->in.at == '}') {
        json->in.at++;
        return true;
    }
    tags.seen = 1u << type;
    return read_tags(json, tags, hf__json_more(&json->in, '}'), depth);
}

/* Build the value at the cursor at the end of json->flat; `depth` is its level, from 1. */
static inline bool read_any(struct wire_json *json, const char *scalar, int depth)
{
    hf__json_spaces(&json->in);
    return (depth <= VALUE_DEPTH_MAX && quick_value(json)) || read_other(json, scalar, depth);
}

_Static_assert(JSON_DEPTH_MAX > 2 * VALUE_DEPTH_MAX,
               "what is too deep for a value can be stepped over");

/* ---- whole items ---------------------------------------------------------------------------- */

enum {
    FLAT_ALIGN = 16,  /* of allocations in a scope */
    FLAT_FIRST = 1024 /* room for a value: about what its text takes, up to this */
};

/*
 * Begin a value in json->flat. What is in there already stays where it is, for others point to it;
 * the buffer goes on behind it as if it began there.
 */
static void value_begin(struct wire_json *json)
{
    struct hf__buf *flat = &json->flat;
    size_t used = (flat->len + FLAT_ALIGN - 1) / FLAT_ALIGN * FLAT_ALIGN;

    assert(flat->len <= flat->cap && json->in.at <= json->in.end);
    if (used > flat->cap)
        used = flat->cap;
    flat->cap -= used;
    flat->ptr = flat->cap ? flat->ptr + used : NULL; /* never the memory behind our own */
    flat->len = 0;
    hf__buf_reserve(flat, json->in.end - json->in.at < FLAT_FIRST
                              ? (size_t)(json->in.end - json->in.at) + 1
                              : FLAT_FIRST);
    json->poison = (struct hf_item){NULL, 0};
    json->attr = hf_str_of(NULL, 0);
}

/* The poison, with what was built in spite of it. */
static struct hf_item item_poisoned(struct wire_json *json, struct hf_item rest)
{
    struct poison poison = *hf__item_poison(json->poison);

    assert(poison.status != HF_OK && !hf__item_poisoned(rest));
    poison.rest = rest;
    return hf__item_poison_of(json->scope, &poison);
}

static bool item_finish(struct wire_json *json, struct hf_item *out)
{
    assert(json->in.error == READ_NONE);
    if (json->flat.failed)
        return hf__wire_read_nomem(json);
    *out = hf__build_item_from(&json->flat, 0);
    if (json->poison.ptr)
        *out = item_poisoned(json, *out);
    if (hf__item_poisoned(*out) && hf__item_poison(*out)->status == HF_NOMEM)
        return hf__wire_read_nomem(json);
    if (hf__item_poisoned(*out) && json->is_answer) {
        json->in.error = READ_TYPE;
        json->message = hf__item_poison(*out)->message;
        return false;
    }
    return true;
}

bool hf__wire_read_item(struct wire_json *json, const char *scalar, struct hf_item *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    size_t open;

    if (kind != JSON_OBJECT)
        return hf__wire_read_not_compound(json, kind, scalar,
                                          "java.util.Map<java.lang.String, " JAVA_STRUCT
                                          "AttributeValue>");
    value_begin(json);
    open = hf__build_open(&json->flat, HF_TYPE_M);
    for (bool more = hf__json_enter(&json->in, '}'); more; more = hf__json_more(&json->in, '}')) {
        struct json_string raw;

        hf__json_spaces(&json->in);
        if (!quick_name(json, &json->attr)) {
            if (!hf__json_name(&json->in, &raw) || !hf__wire_read_keep(json, raw, &json->attr))
                return false;
            build_name(json, json->attr);
        }
        if (!read_any(json, ELEMENT_SCALAR, 1))
            return false;
    }
    hf__build_close(&json->flat, open);
    return hf__json_sound(&json->in) && item_finish(json, out);
}

bool hf__wire_read_value(struct wire_json *json, const char *scalar, struct hf_value *out)
{
    struct hf_item built;

    value_begin(json);
    if (!read_any(json, scalar, 1) || !item_finish(json, &built))
        return false;
    *out = hf_item_value(built);
    return true;
}

bool hf__wire_read_names(struct wire_json *json, const char *scalar, struct hf_item *out)
{
    enum json_kind kind = hf__json_kind(&json->in);
    size_t open;

    if (kind != JSON_OBJECT)
        return hf__wire_read_not_compound(json, kind, scalar,
                                          "java.util.Map<java.lang.String, java.lang.String>");
    value_begin(json);
    open = hf__build_open(&json->flat, HF_TYPE_M);
    for (bool more = hf__json_enter(&json->in, '}'); more; more = hf__json_more(&json->in, '}')) {
        struct json_string raw;
        struct hf_str name;

        if (!hf__json_name(&json->in, &raw))
            return false;
        if (hf__json_kind(&json->in) == JSON_NULL) {
            if (!hf__json_word(&json->in, JSON_NULL))
                return false;
            continue;
        }
        if (!hf__wire_read_scratch(json, raw, &name))
            return false;
        if (name.len > ATTR_NAME_MAX) {
            POISON(json, "ExpressionAttributeNames contains invalid key: a key is too long");
            name.len = ATTR_NAME_MAX;
        }
        hf__build_name(&json->flat, name);
        if (!read_s(json))
            return false;
    }
    hf__build_close(&json->flat, open);
    return hf__json_sound(&json->in) && item_finish(json, out);
}

/* The service has no words for what is not JSON; a C program gets some. */
static enum hf_status item_fail(struct wire_json *json, struct hf_str whole)
{
    enum hf_status status = hf__wire_read_fail(json, whole);

    assert(json->in.error != READ_NONE);
    if (status == HF_SERIALIZATION && hf_scope_error(json->scope)->message.len == 0)
        return hf__fail_text(json->scope, status, HF_STR("The item is not well-formed JSON"));
    return status;
}

enum hf_status hf_item_from_json(struct hf_scope *s, struct hf_str text, struct hf_item *item)
{
    struct wire_json json = {.scope = s, .flat = {.scope = s}, .scratch = {.scope = s}};
    struct hf_item read;

    hf__scope_error_clear(s);
    *item = (struct hf_item){NULL, 0};
    if (!text.ptr)
        text = HF_STR("");
    json.in.at = text.ptr;
    json.in.end = text.ptr + text.len;
    if (!hf__wire_read_item(&json, FIELD_SCALAR, &read))
        return item_fail(&json, text);
    if (!hf__json_ended(&json.in)) {
        hf__wire_read_malformed(&json);
        return item_fail(&json, text);
    }
    TRY(hf_item_check(s, read)); /* poison may point into `text`, which is only borrowed */
    *item = read;
    return HF_OK;
}
