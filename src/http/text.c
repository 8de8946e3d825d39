/*
 * http/text.c: names and reasons, the small words of HTTP.
 */
#include "http/http.h"

bool hf__http_same(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned other = (unsigned char)a[i] ^ (unsigned char)b[i],
                 letter = (unsigned char)a[i] | 0x20u;

        /* Letters differ in one bit from themselves in the other case. */
        if (other && (other != 0x20 || letter < 'a' || letter > 'z'))
            return false;
    }
    return true;
}

struct hf_str hf__http_find(const struct http_field *fields, size_t fields_len, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < fields_len; i++) {
        const struct http_field *field = &fields[i];

        if (field->name.len == len && hf__http_same(field->name.ptr, name, len))
            return field->value;
    }
    return (struct hf_str){0};
}

struct hf_str hf__http_field(const struct http_head *head, const char *name)
{
    return hf__http_find(head->fields, head->fields_len, name);
}

const char *hf__http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {100, "Continue"},
        {200, "OK"},
        {204, "No Content"},
        {304, "Not Modified"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {417, "Expectation Failed"},
        {415, "Unsupported Media Type"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Unknown";
}
