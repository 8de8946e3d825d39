/*
 * expr/lex.c: from text to tokens.
 *
 * A text of n bytes has at most n tokens and the end; every byte is looked at once. A character
 * that begins no token becomes a token of its own, so that the parser reports it where it stands.
 */
#include "expr/private.h"

enum class {
    CLASS_OTHER,
    CLASS_SPACE,
    CLASS_LETTER, /* and underscore */
    CLASS_DIGIT
};

/*
 * Whether a bare name may begin with an underscore. Records of the service disagree; with 0 the
 * underscore is a bad token of its own, as in `Syntax error; token: "_", near: "SET _a"`.
 */
enum { UNDERSCORE_BEGINS_NAMES = 1 };

static enum class class_of(unsigned char c) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return CLASS_LETTER;
    if (c == '_') return CLASS_LETTER;
    if (c >= '0' && c <= '9') return CLASS_DIGIT;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return CLASS_SPACE;
    return CLASS_OTHER;
}

static size_t word_length(struct hf_str text, size_t at)
{
    size_t end = at;

    while (end < text.len && class_of((unsigned char)text.ptr[end]) >= CLASS_LETTER)
        end++;
    return end - at;
}

/* No index begins with a zero except zero itself. */
static size_t number_length(struct hf_str text, size_t at)
{
    size_t end = at + 1;

    if (text.ptr[at] == '0')
        return 1;
    while (end < text.len && class_of((unsigned char)text.ptr[end]) == CLASS_DIGIT)
        end++;
    return end - at;
}

/* A whole UTF-8 character, so that an error message stays UTF-8. */
static size_t character_length(struct hf_str text, size_t at)
{
    size_t end = at + 1;

    if ((unsigned char)text.ptr[at] >= 0xC0)
        while (end < text.len && end - at < 4 && ((unsigned char)text.ptr[end] & 0xC0) == 0x80)
            end++;
    return end - at;
}

static enum token_kind sign_at(struct hf_str text, size_t at, size_t *len)
{
    char next = at + 1 < text.len ? text.ptr[at + 1] : '\0';

    *len = 1;
    switch (text.ptr[at]) {
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case '[':
        return TOKEN_INDEX_OPEN;
    case ']':
        return TOKEN_INDEX_CLOSE;
    case ',':
        return TOKEN_COMMA;
    case '.':
        return TOKEN_DOT;
    case '=':
        return TOKEN_EQ;
    case '+':
        return TOKEN_PLUS;
    case '-':
        return TOKEN_MINUS;
    case '<':
        *len = next == '>' || next == '=' ? 2 : 1;
        return next == '>' ? TOKEN_NE : next == '=' ? TOKEN_LE : TOKEN_LT;
    case '>':
        *len = next == '=' ? 2 : 1;
        return next == '=' ? TOKEN_GE : TOKEN_GT;
    default:
        *len = character_length(text, at);
        return TOKEN_BAD;
    }
}

struct token_counts hf__expr_lex(struct hf_str text, struct token *tokens)
{
    struct token_counts counts = {0};
    size_t at = 0;

    assert(text.len <= EXPR_TEXT_MAX);
    while (at < text.len) {
        unsigned char c = (unsigned char)text.ptr[at];
        enum token_kind kind;
        size_t len;

        switch (class_of(c)) {
        case CLASS_SPACE:
            at++;
            continue;
        case CLASS_LETTER:
            if (c == '_' && !UNDERSCORE_BEGINS_NAMES) {
                kind = TOKEN_BAD;
                len = 1;
                break;
            }
            kind = TOKEN_NAME;
            len = word_length(text, at);
            counts.names++;
            break;
        case CLASS_DIGIT:
            kind = TOKEN_NUMBER;
            len = number_length(text, at);
            counts.steps++;
            break;
        case CLASS_OTHER:
        default:
            if ((c == '#' || c == ':') && word_length(text, at + 1) > 0) {
                kind = c == '#' ? TOKEN_ALIAS : TOKEN_VALUE;
                len = 1 + word_length(text, at + 1);
                counts.names += c == '#';
                counts.aliases += c == '#';
                counts.values += c == ':';
            } else {
                kind = sign_at(text, at, &len);
            }
            break;
        }
        tokens[counts.all++] = (struct token){(uint16_t)at, (uint16_t)len, (uint8_t)kind};
        at += len;
    }
    tokens[counts.all] = (struct token){(uint16_t)text.len, 0, TOKEN_END};
    counts.steps += counts.names;
    return counts;
}
