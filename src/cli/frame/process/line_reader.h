/*
 * cli/frame/process/line_reader.h: lines of a file or of standard input, one after the other, however long the
 * whole is.
 */
#ifndef HF_CLI_FRAME_LINE_READER_H
#define HF_CLI_FRAME_LINE_READER_H

#include <holdfast/scope.h>

struct line_reader {
    int fd;
    const char *path; /* for messages */
    size_t max;       /* bytes of a line */
    char *ptr;
    size_t cap, from, to; /* what was read and not taken yet */
    uint64_t number;      /* of the line that was taken last, from 1 */
    bool ended;
};

/* "-" is standard input. False, and errno, when it cannot be opened. */
bool hf__line_reader_open(struct line_reader *reader, const char *path, size_t max);
void hf__line_reader_close(struct line_reader *reader);

/*
 * The next line, without its end and with a NUL in its place; it lives until the next call. Absent:
 * there are no more. Input is waited for without a deadline, until the scope is canceled.
 *
 * HF_CANCELED, HF_NOMEM
 * HF_IO     it cannot be read
 * HF_LIMIT  the line is longer than `max`
 */
enum hf_status hf__line_reader_next(struct hf_scope *s, struct line_reader *reader,
                                    struct hf_str *line);

/* Is there more to be read without waiting: a line, a part of one, or the end? */
bool hf__line_reader_ready(const struct line_reader *reader);

#endif
