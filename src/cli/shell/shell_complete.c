/*
 * cli/shell/shell_complete.c: what Tab offers for the word before the cursor.
 *
 *     \...           commands of the shell, tables, files, on and off
 *     SELECT ...     words of PartiQL, tables behind FROM, indexes behind a table and a dot, attributes of
 *                    the table, and in a string keys: WHERE customer = 'a
 *     item get ...   commands and options, as the completion of bash has them; tables, keys, indexes and
 *                    attributes where the help says so
 *
 * What is offered begins with what was typed, so that a line is never changed before the cursor.
 */
#include "cli/shell/shell.h"

#include "base/base.h"
#include "base/child.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 4, PAIRS_MAX = 8, WORD_MAX = 256 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct hf_str text_from(struct hf_str text, size_t at)
{
    assert(at <= text.len);
    return hf_str_of(text.ptr + at, text.len - at);
}

static struct hf_str blank_skip(struct hf_str text)
{
    while (text.len && is_blank(text.ptr[0]))
        text = text_from(text, 1);
    return text;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void files_offer(struct shell_offers *offers, struct hf_str typed)
{
    const char *slash = memrchr(typed.ptr, '/', typed.len);
    size_t folder_len = slash ? (size_t)(slash - typed.ptr) + 1 : 0;
    struct hf_str folder =
        folder_len ? hf_scope_copy(offers->s, hf_str_of(typed.ptr, folder_len)) : HF_STR("./");
    bool hidden = typed.len > folder_len && typed.ptr[folder_len] == '.';
    const struct dirent *entry;
    DIR *dir = folder.ptr ? opendir(folder.ptr) : NULL;

    assert(typed.ptr);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' && !hidden)
            continue;
        hf__shell_offer(offers, typed,
                        hf_scope_format(offers->s, "%.*s%s%s", (int)folder_len, typed.ptr,
                                        entry->d_name, entry->d_type == DT_DIR ? "/" : ""));
    }
    if (dir)
        closedir(dir);
    if (offers->len == 1 && offers->words[0].ptr[offers->words[0].len - 1] == '/')
        offers->behind = "";
}

/* ---- commands of the shell ------------------------------------------------------------------ */

static bool meta_is(struct hf_str line, const char *name)
{
    assert(name[0] == '\\');
    return line.len > strlen(name) && memcmp(line.ptr, name, strlen(name)) == 0 &&
           is_blank(line.ptr[strlen(name)]);
}

static void meta_names_offer(struct shell_offers *offers, struct hf_str typed)
{
    const char *names;
    size_t at = 0;

    while ((names = hf__shell_meta_next(&at)))
        hf__shell_offer(offers, typed, hf_str_of(names, strcspn(names, " ")));
}

static void meta_complete(struct shell *shell, struct hf_str line, struct shell_offers *offers)
{
    struct hf_str rest = blank_skip(line);
    size_t start = line.len;
    struct hf_str typed;

    assert(!offers->len);
    while (start > 0 && !is_blank(line.ptr[start - 1]))
        start--;
    typed = text_from(line, start);
    offers->start = start;
    if (typed.len == rest.len)
        meta_names_offer(offers, typed);
    else if (meta_is(rest, "\\d") || meta_is(rest, "\\dt"))
        hf__shell_offer_tables(shell, offers, typed);
    else if (meta_is(rest, "\\i") || meta_is(rest, "\\include") || meta_is(rest, "\\o") ||
             meta_is(rest, "\\out"))
        files_offer(offers, typed);
    else if (meta_is(rest, "\\x") || meta_is(rest, "\\timing") || meta_is(rest, "\\json") ||
             meta_is(rest, "\\dynamodb")) {
        hf__shell_offer(offers, typed, HF_STR("on"));
        hf__shell_offer(offers, typed, HF_STR("off"));
    }
}

/* ---- commands of holdfast ------------------------------------------------------------------- */

/* A command line so far. */
struct command_line {
    char **words; /* whole ones */
    size_t len;
    struct hf_str typed; /* the last one, which may be empty */
    const struct cli_command *command;
    size_t name_len;
    const char *operands[TOKENS_MAX]; /* that are whole */
    size_t operands_len;
};

/* What the frame offers: the words of commands, and options. */
static void frame_offer(struct shell *shell, const struct command_line *at,
                        struct shell_offers *offers)
{
    struct cli cli = *shell->c->cli;
    const char **args = hf_scope_alloc(offers->s, (at->len + 2) * sizeof(*args));
    char *text = NULL, *end;
    size_t len = 0;

    cli.scope = offers->s;
    cli.out = open_memstream(&text, &len);
    if (!args || !cli.out) {
        if (cli.out)
            fclose(cli.out);
        free(text);
        return;
    }
    args[0] = "complete";
    if (at->len)
        memcpy(args + 1, at->words, at->len * sizeof(*args));
    args[at->len + 1] = at->typed.ptr;
    (void)hf__cli_run(&cli, at->len + 2, args);
    fclose(cli.out);
    for (char *word = text; word && (end = strchr(word, '\n')); word = end + 1) {
        *end = '\0';
        if (strcmp(word, ":file") == 0 || strcmp(word, ":dir") == 0)
            files_offer(offers, at->typed);
        else
            hf__shell_offer(offers, at->typed, hf_str_from(word));
    }
    free(text);
}

/* Sort what was typed behind the name into options and operands. Returns the option whose value the last
 * word is; NULL: none. */
static const struct option_spec *operands_find(struct command_line *at)
{
    const struct option_spec *waiting = NULL;
    const char *value;
    bool negated;

    for (size_t i = at->name_len; i < at->len; i++) {
        const struct option_spec *spec;

        if (waiting) {
            waiting = NULL;
            continue;
        }
        spec = hf__options_find(at->command->options, at->words[i], &value, &negated);
        if (spec && !value && hf__options_takes_value(spec))
            waiting = spec;
        else if (!spec && at->words[i][0] != '-' && at->operands_len < TOKENS_MAX)
            at->operands[at->operands_len++] = at->words[i];
    }
    return waiting;
}

/* Is `word` the name of operand `at` in a usage such as "TABLE KEY [RANGE]"? */
static bool operand_is(const char *usage, size_t at, const char *word)
{
    size_t len = strlen(word);

    for (; usage && *usage; at--) {
        while (*usage == ' ' || *usage == '[')
            usage++;
        if (at == 0)
            return strncmp(usage, word, len) == 0 && !isalpha((unsigned char)usage[len]);
        while (*usage && *usage != ' ')
            usage++;
    }
    return false;
}

/* Can it be a word of a command without quotes? */
static bool is_plain_word(struct hf_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];

        if (is_blank(c) || c == '\'' || c == '"' || c == '\\' || c == ';')
            return false;
    }
    return true;
}

static void keys_offer(struct shell *shell, const struct command_line *at,
                       struct shell_offers *offers)
{
    struct hf_str hash = at->operands_len == 2 ? hf_str_from(at->operands[1]) : (struct hf_str){0};
    size_t kept = 0;

    hf__shell_offer_keys(shell, offers, hf_str_from(at->operands[0]), hash, at->typed);
    for (size_t i = 0; i < offers->len; i++)
        if (is_plain_word(offers->words[i]))
            offers->words[kept++] = offers->words[i];
    offers->len = kept;
}

static void value_offer(struct shell *shell, const struct command_line *at,
                        const struct option_spec *spec, struct shell_offers *offers)
{
    struct hf_str table = hf_str_from(at->operands_len ? at->operands[0] : "");

    if (!spec->name)
        return;
    if (strcmp(spec->name, "index") == 0)
        hf__shell_offer_indexes(shell, offers, table, at->typed);
    else if (strcmp(spec->name, "table") == 0)
        hf__shell_offer_tables(shell, offers, at->typed);
    else if (strcmp(spec->name, "attributes") == 0 || strcmp(spec->name, "remove") == 0 ||
             strcmp(spec->name, "filter") == 0 || strcmp(spec->name, "ttl") == 0)
        hf__shell_offer_attributes(shell, offers, table, at->typed);
    else if (strcmp(spec->name, "set") == 0 || strcmp(spec->name, "add") == 0) {
        hf__shell_offer_attributes(shell, offers, table, at->typed);
        offers->behind = "=";
    }
}

static void operand_offer(struct shell *shell, const struct command_line *at,
                          struct shell_offers *offers)
{
    const char *usage = at->command->options->operands;
    bool of_table = strncmp(at->command->name, "table ", strlen("table ")) == 0 &&
                    strcmp(at->command->name, "table create") != 0;

    if (operand_is(usage, at->operands_len, "TABLE") ||
        (of_table && operand_is(usage, at->operands_len, "NAME")))
        hf__shell_offer_tables(shell, offers, at->typed);
    else if (at->operands_len && at->operands_len <= 2 && operand_is(usage, 0, "TABLE") &&
             (operand_is(usage, at->operands_len, "KEY") ||
              operand_is(usage, at->operands_len, "KEY...") ||
              operand_is(usage, at->operands_len, "RANGE")))
        keys_offer(shell, at, offers);
}

static void command_complete(struct shell *shell, struct hf_str line, struct shell_offers *offers)
{
    struct command_line at = {.len = 0};
    const struct option_spec *waiting;
    struct hf_str before;

    offers->start = line.len;
    while (offers->start > 0 && !is_blank(line.ptr[offers->start - 1]))
        offers->start--;
    at.typed = text_from(line, offers->start);
    before = blank_skip(hf_str_of(line.ptr, offers->start));
    if (!is_plain_word(at.typed) ||
        (before.len && hf__child_words(offers->s, before, &at.words) != HF_OK))
        return; /* in a quote */
    while (at.words && at.words[at.len])
        at.len++;
    at.command = hf__cli_find(shell->c->cli, at.len, (const char *const *)at.words, &at.name_len);
    if (!at.command || !at.command->options) {
        frame_offer(shell, &at, offers);
        return;
    }
    waiting = operands_find(&at);
    if (waiting)
        value_offer(shell, &at, waiting, offers);
    else if (at.typed.len == 0 || at.typed.ptr[0] != '-')
        operand_offer(shell, &at, offers);
    if (!offers->len)
        frame_offer(shell, &at, offers);
}

/* ---- PartiQL -------------------------------------------------------------------------------- */

enum token_kind { TOKEN_NONE, TOKEN_WORD, TOKEN_NAME, TOKEN_STRING, TOKEN_SIGN };

struct token {
    enum token_kind kind;
    struct hf_str text; /* without quotes */
};

/* What is known of a statement up to the cursor. */
struct statement {
    struct token before[TOKENS_MAX]; /* whole ones, the last first */
    struct token last;               /* at the cursor, and open; TOKEN_NONE: none */
    size_t last_at;                  /* where its text begins */
    struct hf_str table;
    struct token names[PAIRS_MAX], values[PAIRS_MAX]; /* name = value */
    size_t pairs;
};

static bool word_is(const struct token *token, const char *word)
{
    return token->kind == TOKEN_WORD && hf__shell_input_same(token->text, word);
}

static bool names_table(const struct token *token)
{
    return word_is(token, "FROM") || word_is(token, "INTO") || word_is(token, "UPDATE");
}

static bool is_name(const struct token *token)
{
    return token->kind == TOKEN_WORD || token->kind == TOKEN_NAME;
}

static bool sign_is(const struct token *token, const char *sign)
{
    return token->kind == TOKEN_SIGN && hf_str_equal(token->text, hf_str_from(sign));
}

static void token_push(struct statement *statement, struct token token)
{
    if (!statement->table.ptr && names_table(&statement->before[0]) && is_name(&token))
        statement->table = token.text;
    if (sign_is(&statement->before[0], "=") && is_name(&statement->before[1]) &&
        statement->pairs < PAIRS_MAX) {
        statement->names[statement->pairs] = statement->before[1];
        statement->values[statement->pairs++] = token;
    }
    memmove(statement->before + 1, statement->before,
            (TOKENS_MAX - 1) * sizeof(statement->before[0]));
    statement->before[0] = token;
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || ((unsigned char)c & 0x80);
}

/* One token from `at` on. Returns where it ends; *open: at the end of the text, and it may go on. */
static size_t token_read(struct hf_str text, size_t at, struct token *token, bool *open)
{
    char first = text.ptr[at];
    size_t end = at + 1;

    *open = false;
    if (first == '\'' || first == '"') {
        while (end < text.len && text.ptr[end] != first)
            end++;
        *open = end == text.len;
        token->kind = first == '"' ? TOKEN_NAME : TOKEN_STRING;
        token->text = hf_str_of(text.ptr + at + 1, end - at - 1);
        return *open ? end : end + 1;
    }
    if (is_word_char(first)) {
        while (end < text.len && is_word_char(text.ptr[end]))
            end++;
        *open = end == text.len;
        token->kind = TOKEN_WORD;
    } else {
        token->kind = TOKEN_SIGN;
    }
    token->text = hf_str_of(text.ptr + at, end - at);
    return end;
}

/* False: the cursor is in a comment. */
static bool statement_read(struct hf_str text, struct statement *statement)
{
    *statement = (struct statement){.last_at = text.len};
    for (size_t at = 0; at < text.len;) {
        struct token token;
        size_t end;
        bool open;

        if (is_blank(text.ptr[at])) {
            at++;
            continue;
        }
        if (at + 1 < text.len && text.ptr[at] == '-' && text.ptr[at + 1] == '-') {
            const char *line_end = memchr(text.ptr + at, '\n', text.len - at);

            if (!line_end)
                return false;
            at = (size_t)(line_end - text.ptr);
            continue;
        }
        end = token_read(text, at, &token, &open);
        if (open) {
            statement->last = token;
            statement->last_at = text.len - token.text.len;
            break;
        }
        token_push(statement, token);
        at = end;
    }
    return true;
}

/* Keys of the attribute that the open string is compared with. */
static void string_offer(struct shell *shell, const struct statement *statement,
                         struct shell_offers *offers, struct hf_str typed)
{
    const struct token *name = &statement->before[1];
    struct hf_str hash = {0};
    size_t kept = 0;
    int part;

    if (statement->before[0].kind != TOKEN_SIGN || !is_name(name))
        return;
    part = hf__shell_key_part(shell, offers, statement->table, name->text);
    for (size_t i = 0; part == 2 && i < statement->pairs; i++)
        if (hf__shell_key_part(shell, offers, statement->table, statement->names[i].text) == 1)
            hash = statement->values[i].text;
    if (part == 0 || (part == 2 && !hash.ptr))
        return;
    hf__shell_offer_keys(shell, offers, statement->table, hash, typed);
    for (size_t i = 0; i < offers->len; i++)
        if (!memchr(offers->words[i].ptr, '\'', offers->words[i].len))
            offers->words[kept++] = offers->words[i];
    offers->len = kept;
    offers->behind = "'";
}

/* Names need quotes unless they are made of letters, digits and _. */
static void names_quote(struct shell_offers *offers, struct hf_str typed)
{
    size_t kept = 0;

    for (size_t i = 0; i < offers->len; i++) {
        struct hf_str word = offers->words[i];
        bool plain = word.len && !isdigit((unsigned char)word.ptr[0]);

        for (size_t k = 0; k < word.len; k++)
            plain = plain && is_word_char(word.ptr[k]);
        if (!plain && typed.len)
            continue; /* a quote would have to be put before it */
        offers->words[kept++] = plain ? word : hf_scope_format(offers->s, "\"%.*s\"", HF_FMT(word));
    }
    offers->len = kept;
}

/* Words of PartiQL, in the case that was typed. */
static void keywords_offer(struct shell_offers *offers, struct hf_str typed)
{
    static const char *const words[] = {"SELECT",       "FROM",      "WHERE",
                                        "AND",          "OR",        "NOT",
                                        "IN",           "BETWEEN",   "IS",
                                        "MISSING",      "NULL",      "TRUE",
                                        "FALSE",        "INSERT",    "INTO",
                                        "VALUE",        "UPDATE",    "SET",
                                        "REMOVE",       "DELETE",    "RETURNING",
                                        "MODIFIED",     "ALL",       "OLD",
                                        "NEW",          "EXISTS",    "ORDER",
                                        "BY",           "ASC",       "DESC",
                                        "begins_with(", "contains(", "attribute_type(",
                                        "size(",        "BEGIN",     "COMMIT",
                                        "ROLLBACK"};
    bool lower = typed.len && islower((unsigned char)typed.ptr[0]);

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        char room[WORD_MAX];
        size_t len = strlen(words[i]);
        bool function = words[i][len - 1] == '(';

        for (size_t k = 0; k <= len; k++)
            room[k] =
                (char)(lower && !function ? tolower((unsigned char)words[i][k]) : words[i][k]);
        hf__shell_offer(offers, typed, hf_str_of(room, len));
    }
    if (offers->len == 1 && offers->words[0].ptr[offers->words[0].len - 1] == '(')
        offers->behind = "";
}

static void name_offer(struct shell *shell, const struct statement *statement,
                       struct shell_offers *offers, struct hf_str typed)
{
    const struct token *before = statement->before;

    if (names_table(&before[0]))
        hf__shell_offer_tables(shell, offers, typed);
    else if (sign_is(&before[0], ".") && is_name(&before[1]) &&
             hf_str_equal(before[1].text, statement->table))
        hf__shell_offer_indexes(shell, offers, statement->table, typed);
    else if (statement->table.ptr)
        hf__shell_offer_attributes(shell, offers, statement->table, typed);
}

static void statement_complete(struct shell *shell, struct hf_str text, size_t line_at,
                               struct shell_offers *offers)
{
    struct statement statement;
    struct hf_str typed;

    if (!statement_read(text, &statement) || statement.last_at < line_at)
        return; /* what is open began on another line */
    offers->start = statement.last_at - line_at;
    typed = text_from(text, statement.last_at);
    if (statement.last.kind == TOKEN_STRING) {
        string_offer(shell, &statement, offers, typed);
        return;
    }
    name_offer(shell, &statement, offers, typed);
    if (statement.last.kind == TOKEN_NAME) {
        offers->behind = "\"";
        return;
    }
    names_quote(offers, typed);
    if (!names_table(&statement.before[0]) && (typed.len || !offers->len))
        keywords_offer(offers, typed);
}

/* ---- the whole ------------------------------------------------------------------------------ */

void hf__shell_complete(struct shell *shell, struct hf_str pending, struct hf_str line,
                        struct shell_offers *offers)
{
    struct hf_str text = hf_scope_format(offers->s, "%.*s%.*s", HF_FMT(pending), HF_FMT(line));
    struct hf_str begin;

    if (!text.ptr)
        return;
    begin = blank_skip(text);
    if (line.len && line.ptr[0] == '\\') {
        meta_complete(shell, line, offers);
        return;
    }
    if (hf__shell_input_is_statement(begin)) {
        statement_complete(shell, text, pending.len, offers);
        return;
    }
    if (pending.len)
        return;
    command_complete(shell, line, offers);
    if (begin.len &&
        !memchr(begin.ptr, ' ', begin.len)) { /* the first word may be one of PartiQL */
        offers->start = line.len - begin.len;
        keywords_offer(offers, begin);
    }
}
