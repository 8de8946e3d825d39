/*
 * sinks/template.c: names that differ by event: "orders.{type}".
 *
 * A template is read once into parts, each a literal text or a placeholder for a field or a header of
 * the event. What an event contributes is never read as a template. A field that the event does not
 * have is a failure, not an empty text, unless the placeholder has a default.
 */
#include "sinks/private.h"

enum part_kind { PART_TEXT, PART_FIELD, PART_HEADER };

struct template_part {
    enum part_kind kind;
    struct hf_str text;     /* the literal text, or the name of the field or header */
    size_t at;              /* of a field: its offset in struct hf_event */
    struct hf_str fallback; /* the default; absent: an event without the field is a failure */
};

static const struct {
    const char *name;
    size_t at;
} fields[] = {
    {"type", offsetof(struct hf_event, type)},
    {"key", offsetof(struct hf_event, key)},
    {"id", offsetof(struct hf_event, id)},
    {"source", offsetof(struct hf_event, source)},
    {"aggregate", offsetof(struct hf_event, aggregate)},
    {"aggregate_type", offsetof(struct hf_event, aggregate_type)},
    {"tenant", offsetof(struct hf_event, tenant)},
    {"destination", offsetof(struct hf_event, destination)},
    {"correlation", offsetof(struct hf_event, correlation)},
    {"causation", offsetof(struct hf_event, causation)},
    {"schema", offsetof(struct hf_event, schema)},
};

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status read_place(struct hf_scope *s, const char *what, struct hf_str inner,
                                 struct template_part *part)
{
    const char *bar = inner.len ? memchr(inner.ptr, '|', inner.len) : NULL;
    struct hf_str name = inner;

    *part = (struct template_part){.kind = PART_FIELD};
    if (bar) {
        name.len = (size_t)(bar - inner.ptr);
        part->fallback = hf_str_of(bar + 1, inner.len - name.len - 1);
    }
    part->text = name;
    if (str_after(name, HF_STR("header."), &part->text)) {
        part->kind = PART_HEADER;
        if (part->text.len == 0)
            return hf__fail(s, HF_INVALID, "%s has {header.} without the name of a header", what);
        return HF_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (hf_str_equal(name, hf_str_from(fields[i].name))) {
            part->at = fields[i].at;
            return HF_OK;
        }
    return hf__fail(s, HF_INVALID,
                    "%s has {%.*s}, which is not one of type, key, id, source, aggregate, "
                    "aggregate_type, tenant, destination, correlation, causation, schema, "
                    "header.NAME",
                    what, HF_FMT(name));
}

/* Read the part at *at, and move *at behind it. A literal part points into `text`, so a doubled brace
 * is a part of its own, whose second half is skipped. */
static enum hf_status read_part(struct hf_scope *s, const char *what, struct hf_str text,
                                size_t *at, struct template_part *part)
{
    size_t from = *at;
    char c = text.ptr[from];

    assert(from < text.len);
    if (c == '{' && !(from + 1 < text.len && text.ptr[from + 1] == '{')) {
        const char *close = memchr(text.ptr + from, '}', text.len - from);

        if (!close)
            return hf__fail(s, HF_INVALID, "%s has a { without a }; write {{ for a brace", what);
        *at = (size_t)(close - text.ptr) + 1;
        return read_place(s, what, hf_str_of(text.ptr + from + 1, *at - from - 2), part);
    }
    if (c == '}' && !(from + 1 < text.len && text.ptr[from + 1] == '}'))
        return hf__fail(s, HF_INVALID, "%s has a } without a {; write }} for a brace", what);
    if (c == '{' || c == '}') {
        *part = (struct template_part){.text = hf_str_of(text.ptr + from, 1)};
        *at = from + 2;
        return HF_OK;
    }
    while (*at < text.len && text.ptr[*at] != '{' && text.ptr[*at] != '}')
        (*at)++;
    assert(*at > from && *at <= text.len);
    *part = (struct template_part){.text = hf_str_of(text.ptr + from, *at - from)};
    return HF_OK;
}

enum hf_status hf__template_read(struct hf_scope *s, struct hf_scope *memory, const char *what,
                                 struct hf_str text, struct template *template)
{
    struct hf_str copy = hf_scope_copy(memory, text);
    struct template_part *parts = hf__scope_array(memory, text.len + 1, sizeof(*parts));
    static const struct hf_event none;
    size_t at = 0;

    *template = (struct template){.parts = parts, .is_fixed = true};
    if (!copy.ptr || !parts)
        return hf__fail_nomem(s);
    while (at < copy.len) {
        TRY(read_part(s, what, copy, &at, &parts[template->len]));
        template->is_fixed = template->is_fixed &&parts[template->len].kind == PART_TEXT;
        template->len++;
        assert(template->len <= copy.len);
    }
    if (template->is_fixed) {
        TRY(hf__template_fill(s, template, &none, &template->text));
        template->text = hf_scope_copy(memory, template->text);
        if (!template->text.ptr)
            return hf__fail_nomem(s);
    }
    return HF_OK;
}

/* ---- filling in ----------------------------------------------------------------------------- */

static struct hf_str header_of(struct hf_scope *s, struct hf_value value)
{
    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        return hf_value_str(value);
    case HF_TYPE_N:
        return hf_value_number(s, value);
    case HF_TYPE_BOOL:
        return hf_value_true(value) ? HF_STR("true") : HF_STR("false");
    default:
        return (struct hf_str){0};
    }
}

static enum hf_status value_of(struct hf_scope *s, const struct template_part *part,
                               const struct hf_event *event, struct hf_str *value)
{
    if (part->kind == PART_TEXT) {
        *value = part->text;
        return HF_OK;
    }
    if (part->kind == PART_HEADER) {
        struct hf_value header =
            event->headers.ptr ? hf_item_get(event->headers, part->text) : (struct hf_value){0};

        *value = header_of(s, header);
        if (!value->ptr && header.ptr)
            return hf__fail(s, HF_INVALID,
                            "the header %.*s of the event is not a string, a number or a boolean",
                            HF_FMT(part->text));
    } else {
        assert(part->kind == PART_FIELD && part->at + sizeof(*value) <= sizeof(*event));
        memcpy(value, (const char *)event + part->at, sizeof(*value));
    }
    if (!value->len)
        *value = part->fallback;
    if (!value->ptr)
        return hf__fail(s, HF_INVALID, "the event has no %s%.*s, which the sink's URL refers to",
                        part->kind == PART_HEADER ? "header " : "", HF_FMT(part->text));
    return HF_OK;
}

static enum hf_status template_fill(struct hf_scope *s, const struct template *template,
                                    const struct hf_event *event, bool encode, struct hf_str *text)
{
    struct hf__buf buf = {.scope = s};

    assert(template->parts);
    for (size_t i = 0; i < template->len; i++) {
        struct hf_str value;

        TRY(value_of(s, &template->parts[i], event, &value));
        if (encode && template->parts[i].kind != PART_TEXT)
            hf__buf_put_url(&buf, value, "");
        else
            hf__buf_put_str(&buf, value);
    }
    hf__buf_put_byte(&buf, '\0');
    if (buf.failed)
        return hf__fail_nomem(s);
    *text = hf_str_of((const char *)buf.ptr, buf.len - 1);
    return HF_OK;
}

enum hf_status hf__template_fill(struct hf_scope *s, const struct template *template,
                                 const struct hf_event *event, struct hf_str *text)
{
    if (template->text.ptr) {
        *text = template->text;
        return HF_OK;
    }
    return template_fill(s, template, event, false, text);
}

enum hf_status hf__template_fill_url(struct hf_scope *s, const struct template *template,
                                     const struct hf_event *event, struct hf_str *text)
{
    if (template->text.ptr) {
        *text = template->text;
        return HF_OK;
    }
    return template_fill(s, template, event, true, text);
}
