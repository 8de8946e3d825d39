/*
 * cli/frame/options/complete.c: completion. The words of commands are here; options, values and operands are
 * found by their table (options_help.c), which answers ":table" where a table is to be named. Then the
 * database is asked.
 *
 * What always holds:
 *
 *  (1) Nothing is created, and no directory is opened or locked: only services are asked.
 *  (2) It takes at most ANSWER_MS, and if something does not keep to that, ALARM_S.
 *  (3) What a service answers is offered only if it is a name of a table: no text of others gets to a
 *      shell.
 */
#include "cli/frame/options/complete.h"

#include "cli/config/config_use.h"
#include "cli/frame/command.h"
#include "cli/frame/options/help.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 400, ALARM_S = 1, TABLES_MAX = 2000 };

static bool begins_with(const char *word, const char *start)
{
    return strncmp(word, start, strlen(start)) == 0;
}

static void word_offer(struct cli *cli, const char *word, const char *so_far)
{
    if (begins_with(word, so_far))
        fprintf(cli->out, "%s\n", word);
}

/* ---- words of commands ---------------------------------------------------------------------- */

/* The word of a command's name behind all words but the last; absent: its name does not go on so. */
static struct hf_str next_word(const struct cli_command *command, size_t words_len,
                               const char *const *words)
{
    const char *name = command->name;

    for (size_t i = 0; i + 1 < words_len; i++) {
        size_t len = strcspn(name, " ");

        if (name[len] != ' ' || !hf_str_equal(hf_str_of(name, len), hf_str_from(words[i])))
            return (struct hf_str){0};
        name += len + 1;
    }
    return command->summary ? hf_str_of(name, strcspn(name, " ")) : (struct hf_str){0};
}

/* Each next word once, though several commands may have it. */
static void offer_names(struct cli *cli, size_t words_len, const char *const *words)
{
    const char *last = words_len ? words[words_len - 1] : "";

    for (size_t i = 0; i < cli->commands_len; i++) {
        struct hf_str word = next_word(&cli->commands[i], words_len, words);
        bool offered = false;

        for (size_t j = 0; j < i && word.ptr && !offered; j++)
            offered = hf_str_equal(next_word(&cli->commands[j], words_len, words), word);
        if (word.ptr && !offered && begins_with(word.ptr, last) && strlen(last) <= word.len)
            fprintf(cli->out, "%.*s\n", HF_FMT(word));
    }
}

/* The first word, or what follows "help". */
static void offer_first(struct cli *cli, const char *last)
{
    static const char *const options[] = {"--db",     "--env-file", "--help",    "--json",
                                          "--jsonl",  "--prefix",   "--profile", "--quiet",
                                          "--region", "--timeout",  "--version"};

    word_offer(cli, "help", last);
    word_offer(cli, "version", last);
    if (last[0] == '-')
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
            word_offer(cli, options[i], last);
}

static void complete_names(struct cli *cli, size_t words_len, const char *const *words)
{
    bool help = words_len > 1 && strcmp(words[0], "help") == 0;

    if (words_len < 2)
        offer_first(cli, words_len ? words[0] : "");
    if (help) {
        words++;
        words_len--;
    }
    if (help && words_len == 1) {
        word_offer(cli, "commands", words[0]);
        for (size_t i = 0; i < hf__help_topics_len; i++)
            word_offer(cli, hf__help_topics[i].word, words[0]);
    }
    offer_names(cli, words_len, words);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* As DynamoDB allows them. */
static bool is_table_name(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-",
                    name.ptr[i]) ||
            !name.ptr[i])
            return false;
    return name.len > 0;
}

/* Which database the words so far mean: c->database. False: none, or they cannot be understood. */
static bool read_database(struct cli *cli, const struct cli_command *command, size_t words_len,
                          const char *const *words, struct command_ctx *c)
{
    void *settings;

    if (!command->command->has_database)
        return false;
    settings = hf_scope_alloc(cli->scope, command->command->settings_size);
    if (!settings)
        return false;
    memset(settings, 0, command->command->settings_size);
    *c = (struct command_ctx){.cli = cli,
                              .scope = cli->scope,
                              .name = "complete",
                              .command = command->command,
                              .table = command->options,
                              .settings = settings,
                              .database = settings}; /* its first member: COMMAND_SETTINGS() */
    return hf__options_parse(cli->scope, command->options, words_len, words, cli->env, settings,
                             &c->options) == OPTIONS_OK;
}

static void print_tables(struct cli *cli, struct hf_db *db, const char *so_far)
{
    struct hf_list_tables request = {0};
    struct hf_list_tables_result result;
    size_t count = 0;

    do {
        if (hf_list_tables(cli->scope, db, &request, &result) != HF_OK)
            return;
        for (size_t i = 0; i < result.tables_len && count < TABLES_MAX; i++, count++) {
            struct hf_str name = hf_scope_copy(cli->scope, result.tables[i]);

            if (name.ptr && is_table_name(name))
                word_offer(cli, name.ptr, so_far);
        }
        request.start = result.last;
    } while (result.last.len && result.tables_len && count < TABLES_MAX);
}

/* The tables of the database, if it is a service that answers soon. */
static void offer_tables(struct cli *cli, const struct cli_command *command, size_t words_len,
                         const char *const *words, const char *so_far)
{
    struct command_ctx c;
    FILE *err = cli->err, *nowhere;
    struct hf_db *db = NULL;
    bool known;
    int ends;

    /* The last word is incomplete, and the one before it may be an option without its value. */
    if (!read_database(cli, command, words_len ? words_len - 1 : 0, words, &c) &&
        (words_len < 2 || !read_database(cli, command, words_len - 2, words, &c)))
        return;
    nowhere = fopen("/dev/null", "we");
    if (!nowhere)
        return;
    (void)alarm(ALARM_S);
    cli->err = nowhere;
    known = hf__cli_config_use(&c); /* of @NAME, or the default */
    c.database->timeout_ms = ANSWER_MS;
    if (known && hf__database_is_service(c.database->url) &&
        hf__database_open(cli, "complete", c.database, &db, &ends))
        print_tables(cli, db, so_far);
    fflush(cli->out);
    hf_db_close(db);
    cli->err = err;
    fclose(nowhere);
    (void)alarm(0);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Options and operands of a command. */
static void complete_command(struct cli *cli, const struct cli_command *command, size_t words_len,
                             const char *const *words, size_t all_len, const char *const *all)
{
    char *answers = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&answers, &len);
    const char *last = words_len ? words[words_len - 1] : "", *value = strchr(last, '=');

    if (!out)
        return;
    hf__options_complete(out, command->options, words_len, words);
    fclose(out);
    if (!answers)
        return;
    if (strcmp(answers, ":table\n") == 0)
        offer_tables(cli, command, all_len, all, last[0] == '-' && value ? value + 1 : last);
    else
        fputs(answers, cli->out);
    free(answers);
}

int hf__complete_run(struct cli *cli, size_t words_len, const char *const *words)
{
    size_t leading = hf__cli_leading(words_len, words), len;
    const struct cli_command *command =
        hf__cli_find(cli, words_len > leading ? words_len - leading - 1 : 0, words + leading, &len);

    if (command && command->options) {
        const char *const *all = hf__cli_options_moved(cli, words_len, words, leading);

        if (all)
            complete_command(cli, command, words_len - leading - len, words + leading + len,
                             words_len - len, all + len);
    } else
        complete_names(cli, words_len - leading, words + leading);
    return hf__cli_flushed(cli, CLI_OK);
}
