/*
 * http/private.h: what read.c, which finds requests and answers, and head.c and answer_read.c,
 * which take their heads apart, have from each other.
 */
#ifndef HF_HTTP_PRIVATE_H
#define HF_HTTP_PRIVATE_H

#include "http/http.h"

/* Set the reader's error; false, so that refusing is one statement. */
bool hf__http_refuse(struct http_reader *reader, int status, const char *text);

/* The text is "WHAT more than LIMIT UNITS". */
bool hf__http_refuse_limit(struct http_reader *reader, int status, const char *what, size_t limit,
                           const char *units);

/*
 * Fill reader->head from the head in `bytes`: from reader->start up to reader->head_len, and known
 * to be lines that end with CR LF, the last one empty. False when it is refused.
 */
bool hf__http_take_head(struct http_reader *reader, const uint8_t *bytes);

/* The same for an answer. */
bool hf__http_take_answer(struct http_reader *reader, const uint8_t *bytes);

/* Fields that mean something to the reader, as far as they were seen. */
struct seen {
    bool host;
    bool length;
    bool transfer;
    bool close;
    bool keep_alive;
};

/* Take all fields apart: `p` starts the first, the empty line ends at `end`. */
bool hf__http_take_fields(struct http_reader *reader, const uint8_t *p, const uint8_t *end,
                          struct seen *seen);

/* Is there one way at most to tell where the body ends, and is it within the limit? */
bool hf__http_judge_framing(struct http_reader *reader, const struct seen *seen);

/* The first control character other than a tab from `p` on; there is one before `end`. */
const uint8_t *hf__http_find_control(const uint8_t *p, const uint8_t *end);

/*
 * Take the field in one line apart: `line` starts it, CR LF end it. The start of the line after it,
 * or NULL when it is refused.
 */
const uint8_t *hf__http_take_field(struct http_reader *reader, const uint8_t *line,
                                   const uint8_t *end, struct http_field *field);

/* Can this byte be part of a token, such as a method? */
bool hf__http_is_token(uint8_t c);

#endif
