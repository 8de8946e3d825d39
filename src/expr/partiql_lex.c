/*
 * expr/partiql_lex.c: from the text of a statement to tokens.
 *
 * Comments (-- to the end of the line, and between slash and star) are white space. In a string in
 * single quotes a quote is doubled, and so it is in a name in double quotes. The whole statement is
 * refused for a character that begins no token, for a quote or comment that does not end, and for a
 * number whose exponent exceeds 32 bits; DynamoDB's error does not say why.
 */
#include "expr/partiql_tree.h"

/* Words that are names only in quotes, in the order of their bytes. */
/* clang-format off */
static const char *const keywords[] = {
    "absolute", "action", "add", "all", "allocate", "alter", "and", "any", "are", "as", "asc",
    "assertion", "at", "authorization", "avg", "bag", "begin", "between", "bit", "bit_length",
    "blob", "bool", "boolean", "by", "cascade", "cascaded", "case", "cast", "catalog", "char",
    "char_length", "character", "character_length", "check", "clob", "close", "coalesce", "collate",
    "collation", "column", "commit", "conflict", "connect", "connection", "constraint",
    "constraints", "continue", "convert", "corresponding", "count", "create", "cross", "current",
    "current_date", "current_time", "current_timestamp", "current_user", "cursor", "date",
    "date_add", "date_diff", "deallocate", "dec", "decimal", "declare", "default", "deferrable",
    "deferred", "delete", "desc", "describe", "descriptor", "diagnostics", "disconnect", "distinct",
    "do", "domain", "double", "drop", "else", "end", "escape", "except", "exception", "exec",
    "execute", "exists", "external", "extract", "false", "fetch", "first", "float", "for",
    "foreign", "found", "from", "full", "get", "global", "go", "goto", "grant", "group", "having",
    "identity", "immediate", "in", "index", "indicator", "initially", "inner", "input",
    "insensitive", "insert", "int", "integer", "intersect", "interval", "into", "is", "isolation",
    "join", "key", "language", "last", "left", "let", "level", "like", "limit", "list", "local",
    "lower", "match", "max", "min", "missing", "modified", "module", "names", "national", "natural",
    "nchar", "new", "next", "no", "not", "nothing", "null", "nullif", "numeric", "octet_length",
    "of", "old", "on", "only", "open", "option", "or", "order", "outer", "output", "overlaps",
    "pad", "partial", "pivot", "position", "precision", "prepare", "preserve", "primary", "prior",
    "privileges", "procedure", "public", "read", "real", "references", "relative", "remove",
    "restrict", "returning", "revoke", "right", "rollback", "rows", "schema", "scroll", "section",
    "select", "session", "session_user", "set", "sexp", "size", "smallint", "some", "space", "sql",
    "sqlcode", "sqlerror", "sqlstate", "string", "struct", "substring", "sum", "symbol",
    "system_user", "table", "temporary", "then", "time", "timestamp", "to", "transaction",
    "translate", "translation", "trim", "true", "tuple", "union", "unique", "unknown", "unpivot",
    "update", "upper", "usage", "user", "using", "value", "values", "varchar", "varying", "view",
    "when", "whenever", "where", "with", "work", "write", "zone",
};
/* clang-format on */

enum { KEYWORD_MAX = 24 };

bool hf__pq_keyword(struct hf_str word)
{
    size_t from = 0;
    size_t to = ARRAY_LEN(keywords);
    char lower[KEYWORD_MAX];

    if (word.len > sizeof(lower))
        return false;
    for (size_t i = 0; i < word.len; i++)
        lower[i] =
            word.ptr[i] >= 'A' && word.ptr[i] <= 'Z' ? (char)(word.ptr[i] | 0x20) : word.ptr[i];
    while (from < to) {
        size_t middle = (from + to) / 2;
        int order = bytes_compare(lower, word.len, keywords[middle], strlen(keywords[middle]));

        if (order == 0)
            return true;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return false;
}

bool hf__pq_same_word(struct hf_str text, const char *word)
{
    size_t i = 0;

    for (; i < text.len && word[i]; i++) {
        char a =
            text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? (char)(text.ptr[i] | 0x20) : text.ptr[i];
        char b = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] | 0x20) : word[i];

        if (a != b)
            return false;
    }
    return i == text.len && !word[i];
}

/* ---- reading -------------------------------------------------------------------------------- */

struct lexer {
    struct hf_str text;
    size_t at;
    uint16_t line;
    uint16_t column;
};

static char lexer_look(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->text.len ? l->text.ptr[l->at + ahead] : '\0';
}

/* Move on by some bytes; columns count characters. */
static void lexer_skip(struct lexer *l, size_t len)
{
    for (; len > 0; len--) {
        unsigned char c = (unsigned char)l->text.ptr[l->at++];

        if (c == '\n') {
            l->line++;
            l->column = 1;
        } else if ((c & 0xC0) != 0x80) {
            l->column++;
        }
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_name(char c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$';
}

/* White space and comments; false when a comment does not end. */
static bool skip_blank(struct lexer *l)
{
    for (;;) {
        char c = lexer_look(l, 0);

        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            lexer_skip(l, 1);
        } else if (c == '-' && lexer_look(l, 1) == '-') {
            while (l->at < l->text.len && lexer_look(l, 0) != '\n')
                lexer_skip(l, 1);
        } else if (c == '/' && lexer_look(l, 1) == '*') {
            lexer_skip(l, 2);
            while (l->at < l->text.len && !(lexer_look(l, 0) == '*' && lexer_look(l, 1) == '/'))
                lexer_skip(l, 1);
            if (l->at == l->text.len)
                return false;
            lexer_skip(l, 2);
        } else {
            return true;
        }
    }
}

/* The length of a quoted text, with both quotes; 0 when the second one is missing. */
static size_t quoted_length(const struct lexer *l, char quote)
{
    size_t len = 1;

    while (l->at + len < l->text.len) {
        if (l->text.ptr[l->at + len++] != quote)
            continue;
        if (lexer_look(l, len) != quote)
            return len;
        len++;
    }
    return 0;
}

/*
 * Digits, a point, an exponent: 1, 1.5, .5, 1., 1e5. 0 when exponent or scale exceed 32 bits. An
 * "e" without digits behind it is no exponent: "1 e" is a number and a name.
 */
static size_t number_length(const struct lexer *l)
{
    size_t len = 0;
    size_t fraction = 0;
    size_t digits;
    int64_t exponent = 0;
    bool minus = false;

    while (is_digit(lexer_look(l, len)))
        len++;
    if (lexer_look(l, len) == '.') {
        len++;
        while (is_digit(lexer_look(l, len + fraction)))
            fraction++;
        len += fraction;
    }
    if ((lexer_look(l, len) | 0x20) != 'e')
        return len;
    digits = len + 1;
    if (lexer_look(l, digits) == '+' || lexer_look(l, digits) == '-')
        minus = lexer_look(l, digits++) == '-';
    if (!is_digit(lexer_look(l, digits)))
        return len;
    for (; is_digit(lexer_look(l, digits)); digits++)
        if (exponent <= INT32_MAX)
            exponent = exponent * 10 + (lexer_look(l, digits) - '0');
    if (exponent > INT32_MAX || (minus && exponent + (int64_t)fraction > INT32_MAX))
        return 0;
    return digits;
}

static size_t sign_length(const struct lexer *l, enum pq_token_kind *kind)
{
    static const char *const operators[] = {"<>", "!=", "<=", ">=", "||", "=", "<",
                                            ">",  "+",  "-",  "*",  "/",  "%"};
    static const char *const others[] = {"<<", ">>", "(", ")", "[", "]",
                                         "{",  "}",  ",", ".", ":", ";"};

    *kind = PQ_PUNCTUATION;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (lexer_look(l, 0) == others[i][0] && (!others[i][1] || lexer_look(l, 1) == others[i][1]))
            return strlen(others[i]);
    *kind = PQ_OPERATOR;
    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (lexer_look(l, 0) == operators[i][0] &&
            (!operators[i][1] || lexer_look(l, 1) == operators[i][1]))
            return strlen(operators[i]);
    return 0;
}

static size_t name_length(const struct lexer *l)
{
    size_t len = 1;

    while (begins_name(lexer_look(l, len)) || is_digit(lexer_look(l, len)))
        len++;
    return len;
}

/* The token at the cursor; 0 when there is none. */
static size_t token_length(const struct lexer *l, enum pq_token_kind *kind)
{
    char c = lexer_look(l, 0);
    size_t len;

    if (begins_name(c)) {
        len = name_length(l);
        *kind = hf__pq_keyword(hf_str_of(l->text.ptr + l->at, len)) ? PQ_KEYWORD : PQ_NAME;
        return len;
    }
    if (is_digit(c) || (c == '.' && is_digit(lexer_look(l, 1)))) {
        *kind = PQ_NUMBER;
        return number_length(l);
    }
    if (c == '\'' || c == '"' || c == '`') {
        *kind = c == '\'' ? PQ_STRING : c == '"' ? PQ_QUOTED : PQ_ION;
        return quoted_length(l, c);
    }
    if (c == '?') {
        *kind = PQ_QUESTION;
        return 1;
    }
    return sign_length(l, kind);
}

enum hf_status hf__pq_lex(struct hf_scope *s, struct hf_str text, struct pq_token **tokens)
{
    struct lexer l = {.text = text, .line = 1, .column = 1};
    struct hf__buf list = {.scope = s};

    assert(text.len <= STATEMENT_TEXT_MAX);
    for (;;) {
        enum pq_token_kind kind = PQ_END;
        struct pq_token token;
        size_t len = 0;

        if (!skip_blank(&l))
            return hf__pq_malformed(s, "");
        if (l.at < text.len) {
            len = token_length(&l, &kind);
            if (len == 0)
                return hf__pq_malformed(s, "");
        }
        token = (struct pq_token){.at = (uint16_t)l.at,
                                  .len = (uint16_t)len,
                                  .line = l.line,
                                  .column = l.column,
                                  .kind = (uint8_t)kind};
        hf__buf_put(&list, &token, sizeof(token));
        if (kind == PQ_END)
            break;
        lexer_skip(&l, len);
    }
    if (list.failed)
        return hf__fail_nomem(s);
    *tokens = (struct pq_token *)(void *)list.ptr;
    return HF_OK;
}
