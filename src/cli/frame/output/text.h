/*
 * cli/frame/output/text.h: the texts of tables, as a terminal and as a manual page show them.
 *
 * A text is a string with few rules, so that it reads well where it is written:
 *
 *     "A paragraph, wrapped at the width of the terminal.\n\n"
 *     "Another one, after an empty line:\n"
 *     "  TERM\tA list: two blanks, a term, a tab, what is said of it.\n"
 *     "  NEXT\tThe next one.\n\n"
 *     "  a line with two blanks and no tab is printed as it is"
 */
#ifndef HF_CLI_FRAME_TEXT_H
#define HF_CLI_FRAME_TEXT_H

#include <holdfast/scope.h>

#include <stdio.h>

enum text_kind { TEXT_PARAGRAPH, TEXT_ITEM, TEXT_LITERAL };

/* A line of a text. */
struct text_block {
    enum text_kind kind;
    bool apart;         /* an empty line is before it */
    struct hf_str term; /* of an item */
    struct hf_str text;
};

/* The block at *at, which moves behind it. False: that was all. */
bool hf__texts_next(const char **at, struct text_block *block);

/* The whole text, at most `width` columns wide if its words allow that. */
void hf__texts_print(FILE *out, const char *text, size_t width);

/* A line "HEADING:", bold on a terminal that can. */
void hf__texts_heading(FILE *out, const char *heading, bool bold);

/* `left` and behind it `text`, wrapped, from `column` on; below it if `left` is too long. */
void hf__texts_columns(FILE *out, const char *left, const char *text, size_t column, size_t width);

/* Text wrapped at `width`, its lines indented; `column` is where the first one starts. */
void hf__texts_wrap(FILE *out, const char *text, size_t indent, size_t column, size_t width);

#endif
