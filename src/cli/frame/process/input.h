/*
 * cli/frame/process/input.h: files that are named on the command line.
 */
#ifndef HF_CLI_FRAME_INPUT_H
#define HF_CLI_FRAME_INPUT_H

#include "cli/frame/cli.h"

/*
 * A whole file, in the scope and with a NUL behind it; "-" is standard input. Absent, and *error,
 * when it cannot be read or has more than `max` bytes.
 */
struct hf_str hf__input_read(struct hf_scope *s, const char *path, size_t max,
                             struct hf_str *error);

/*
 * Read a piece of at most `cap` bytes; *len is 0 at the end. Waits without a deadline, until the scope is canceled:
 * signals cancel it and interrupt nothing. `path` is for the
 * error, HF_IO, of which errno has the reason.
 */
enum hf_status hf__input_piece(struct hf_scope *s, int fd, const char *path, void *bytes,
                               size_t cap, size_t *len);

/* The next line, without its end, which is taken off the text; false: there is none. */
bool hf__input_line(struct hf_str *text, struct hf_str *line);

/* Without blanks, tabs and ends of lines at either end. */
struct hf_str hf__input_trim(struct hf_str text);

/* "application/json; charset=utf-8" is, and "application/vnd.shop+json". */
bool hf__input_is_json(struct hf_str content_type);

/*
 * Is a payload what its content type says? One of JSON (application/json, .../...+json) has to be
 * JSON, or nothing at all; others are not looked at. False: the error was shown, and says what to
 * do.
 */
bool hf__input_fits(struct cli *cli, const char *command, struct hf_str content_type,
                    struct hf_str payload);

#endif
