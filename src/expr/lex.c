/*
 * expr/lex.c: from text to tokens.
 *
 * A text of n bytes has at most n tokens and the end; every byte is looked at once. A character
 * that begins no token becomes a token of its own, so that the parser reports it where it stands;
 * the underscore is one in front of a bare name. Keywords are tokens of their own in every kind of
 * expression, so no bare name can be one.
 */
#include "expr/private.h"

enum class {
    CLASS_OTHER,
    CLASS_SPACE,
    CLASS_UNDERSCORE, /* goes on in a word, and begins those of aliases and values only */
    CLASS_LETTER,
    CLASS_DIGIT
};

static enum class class_of(unsigned char c) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return CLASS_LETTER;
    if (c == '_') return CLASS_UNDERSCORE;
    if (c >= '0' && c <= '9') return CLASS_DIGIT;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return CLASS_SPACE;
    return CLASS_OTHER;
}

static size_t word_length(struct hf_str text, size_t at)
{
    size_t end = at;

    while (end < text.len && class_of((unsigned char)text.ptr[end]) >= CLASS_UNDERSCORE)
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

static bool word_is(const char *word, size_t len, const char *upper)
{
    for (size_t i = 0; i < len; i++)
        if ((word[i] & ~0x20) != upper[i])
            return false;
    return true;
}

static enum keyword keyword_of(const char *word, size_t len)
{
    static const struct {
        const char *word;
        uint8_t len;
        uint8_t keyword;
    } words[] = {
        {"AND", 3, KEYWORD_AND},         {"OR", 2, KEYWORD_OR},   {"NOT", 3, KEYWORD_NOT},
        {"BETWEEN", 7, KEYWORD_BETWEEN}, {"IN", 2, KEYWORD_IN},   {"SET", 3, KEYWORD_SET},
        {"REMOVE", 6, KEYWORD_REMOVE},   {"ADD", 3, KEYWORD_ADD}, {"DELETE", 6, KEYWORD_DELETE},
    };

    if (len < 2 || len > 7)
        return KEYWORD_NONE;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (len == words[i].len && word_is(word, len, words[i].word))
            return (enum keyword)words[i].keyword;
    return KEYWORD_NONE;
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
        enum keyword keyword = KEYWORD_NONE;
        enum token_kind kind;
        size_t len;

        switch (class_of(c)) {
        case CLASS_SPACE:
            at++;
            continue;
        case CLASS_LETTER:
            len = word_length(text, at);
            keyword = keyword_of(text.ptr + at, len);
            kind = keyword ? TOKEN_KEYWORD : TOKEN_NAME;
            counts.names += kind == TOKEN_NAME;
            break;
        case CLASS_DIGIT:
            kind = TOKEN_NUMBER;
            len = number_length(text, at);
            counts.steps++;
            break;
        case CLASS_UNDERSCORE:
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
        tokens[counts.all++] = (struct token){.at = (uint16_t)at,
                                              .len = (uint16_t)len,
                                              .kind = (uint8_t)kind,
                                              .keyword = (uint8_t)keyword};
        at += len;
    }
    tokens[counts.all] = (struct token){.at = (uint16_t)text.len, .kind = TOKEN_END};
    counts.steps += counts.names;
    return counts;
}
