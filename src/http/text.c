/*
 * http/text.c: names and reasons, the small words of HTTP.
 */
#include "http/http.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool hf__http_is(struct hf_str text, const char *name)
{
    size_t i;

    for (i = 0; i < text.len && name[i]; i++) {
        if (lower(text.ptr[i]) != lower(name[i]))
            return false;
    }
    return i == text.len && !name[i];
}

struct hf_str hf__http_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->fields_len; i++) {
        if (hf__http_is(head->fields[i].name, name))
            return head->fields[i].value;
    }
    return (struct hf_str){0};
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
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {417, "Expectation Failed"},
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
