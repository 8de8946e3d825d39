/*
 * http/answer_read.c: the status line and the header fields of an answer, taken apart and judged.
 *
 * As head.c does for requests, and with its pieces: fields are the same in both, and so are the
 * rules for what tells the length of a body. read.c finds the head, and what follows it.
 *
 * What always holds of a head that is not refused:
 *
 *  (1) Its status is from 100 to 599 and not 101, as nobody here asks for another protocol.
 *  (2) It says in one way where the body ends: there is none (1xx, 204, 304, or the request was a
 *      HEAD), or it has one Content-Length, or one "Transfer-Encoding: chunked", or neither, and
 *      then the end of the connection is its end.
 *  (3) After an answer that ends with the connection, keep_alive is not set.
 */
#include "http/private.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/*
 * "HTTP/1.1 200 OK". The reason is for people, and may be missing with the blank before it. The
 * line is known to end with CR LF, so each comparison stops there at the latest.
 */
static bool take_status_line(struct http_reader *r, const uint8_t **line, const uint8_t *end)
{
    const uint8_t *p = *line;

    /* The shortest head is "HTTP/1.1 200" with two line ends. */
    if (end - p < 16 || memcmp(p, "HTTP/", 5) != 0 || !is_digit(p[5]) || p[6] != '.' ||
        !is_digit(p[7]) || p[8] != ' ')
        return hf__http_refuse(r, 400, "the answer does not start with an HTTP version");
    if (p[5] != '1' || p[7] > '1')
        return hf__http_refuse(r, 400, "the answer is neither HTTP/1.0 nor HTTP/1.1");
    r->head.minor = p[7] - '0';
    p += 9;
    if (p[0] < '1' || p[0] > '5' || !is_digit(p[1]) || !is_digit(p[2]) ||
        (p[3] != ' ' && p[3] != '\r'))
        return hf__http_refuse(r, 400, "the answer has no status");
    r->head.status = (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
    if (r->head.status == 101)
        return hf__http_refuse(r, 400, "the answer is in another protocol");
    p = hf__http_find_control(p + 3, end);
    if (p[0] != '\r' || p[1] != '\n')
        return hf__http_refuse(r, 400, "the status line has a control character");
    *line = p + 2;
    return true;
}

bool hf__http_take_answer(struct http_reader *reader, const uint8_t *bytes)
{
    struct http_head *head = &reader->head;
    const uint8_t *p = bytes + reader->start, *end = bytes + reader->head_len;
    struct seen seen = {0};

    head->fields_len = 0;
    head->chunked = false;
    head->length = 0;
    reader->until_close = false;
    if (!take_status_line(reader, &p, end) || !hf__http_take_fields(reader, p, end, &seen))
        return false;
    /* Fields may tell how long the body would be that is not there; that is for the caller. */
    if (reader->answer_no_body || head->status < 200 || head->status == 204 ||
        head->status == 304) {
        head->length = 0;
        if (!hf__http_judge_framing(reader, &seen))
            return false;
        head->chunked = false;
        return true;
    }
    if (!hf__http_judge_framing(reader, &seen))
        return false;
    reader->until_close = !seen.length && !seen.transfer;
    if (reader->until_close)
        head->keep_alive = false;
    return true;
}
