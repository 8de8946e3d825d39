/*
 * cli/shell/shell_tx.c: BEGIN, statements, COMMIT: one ExecuteTransaction.
 *
 * DynamoDB has no transactions that stay open: all statements of one are sent together. So statements between
 * BEGIN and COMMIT are collected, and nothing happens before COMMIT. They are all reads or all writes, each
 * of one item; the database judges that.
 *
 * All of them happen, or none: once something between BEGIN and COMMIT was refused, COMMIT fails. Commands,
 * which would happen at once, and another database are refused there.
 */
#include "cli/shell/shell.h"

#include "base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TX_STATEMENTS_MAX = 100 }; /* of ExecuteTransaction */

static const char *const commit_words[] = {"sql", "--transaction", "--"};

struct shell_tx {
    struct hf_scope *s;
    const char *words[ARRAY_LEN(commit_words) + TX_STATEMENTS_MAX]; /* the command of COMMIT */
    size_t len;                                                     /* statements */
    bool failed; /* something in it was refused, so COMMIT stores nothing */
};

void hf__shell_tx_drop(struct shell *shell)
{
    if (!shell->tx)
        return;
    hf_scope_free(shell->tx->s);
    free(shell->tx);
    shell->tx = NULL;
}

int hf__shell_tx_refuse(struct shell *shell, const char *what)
{
    shell->tx->failed = true;
    return hf__shell_fail(shell, CLI_USAGE, "%s: end it by COMMIT; or ROLLBACK; first", what);
}

int hf__shell_tx_end(struct shell *shell)
{
    size_t len = shell->tx ? shell->tx->len : 0;

    hf__shell_tx_drop(shell);
    return len ? hf__shell_fail(shell, CLI_CONDITION,
                                "the transaction was not committed: its %zu statement%s not run",
                                len, len == 1 ? " was" : "s were")
               : CLI_OK;
}

static int tx_begin(struct shell *shell)
{
    if (shell->tx)
        return hf__shell_tx_refuse(shell, "a transaction has already begun");
    shell->tx = calloc(1, sizeof(*shell->tx));
    if (shell->tx)
        shell->tx->s = hf_scope_new(NULL);
    if (shell->tx && shell->tx->s) {
        memcpy(shell->tx->words, commit_words, sizeof(commit_words));
        return CLI_OK;
    }
    hf__shell_tx_drop(shell);
    return hf__shell_fail(shell, CLI_FAILED, "out of memory");
}

static int tx_add(struct shell *shell, struct hf_str text)
{
    struct shell_tx *tx = shell->tx;
    struct hf_str copy;

    copy = tx->len < TX_STATEMENTS_MAX ? hf_scope_copy(tx->s, text) : (struct hf_str){0};
    if (!copy.ptr) {
        tx->failed = true;
        return tx->len < TX_STATEMENTS_MAX
                   ? hf__shell_fail(shell, CLI_FAILED, "out of memory")
                   : hf__shell_fail(shell, CLI_USAGE, "a transaction has at most %d statements",
                                    TX_STATEMENTS_MAX);
    }
    tx->words[ARRAY_LEN(commit_words) + tx->len++] = copy.ptr;
    if (shell->interactive)
        printf("statement %zu of the transaction\n", tx->len);
    return CLI_OK;
}

static int tx_commit(struct shell *shell)
{
    struct shell_tx *tx = shell->tx;
    int ends = CLI_OK;

    if (tx->failed) {
        hf__shell_tx_drop(shell);
        return hf__shell_fail(shell, CLI_CONDITION,
                              "nothing was committed, as a part of the transaction was refused");
    }
    shell->tx = NULL; /* the command runs outside of it */
    if (tx->len)
        ends = hf__shell_run_words(shell, ARRAY_LEN(commit_words) + tx->len, tx->words);
    shell->tx = tx;
    hf__shell_tx_drop(shell);
    if (ends == CLI_OK && shell->interactive)
        puts("committed");
    return ends;
}

static int tx_rollback(struct shell *shell)
{
    hf__shell_tx_drop(shell);
    if (shell->interactive)
        puts("dropped");
    return CLI_OK;
}

/* BEGIN; and BEGIN TRANSACTION; but not BEGIN and a statement, where a ';' is missing. */
static bool is_alone(struct shell *shell, struct hf_str text, const char *word, int *ends)
{
    struct hf_str rest = hf_str_of(text.ptr + strlen(word), text.len - strlen(word));

    while (rest.len && isspace((unsigned char)rest.ptr[0]))
        rest = hf_str_of(rest.ptr + 1, rest.len - 1);
    while (rest.len &&
           (isspace((unsigned char)rest.ptr[rest.len - 1]) || rest.ptr[rest.len - 1] == ';'))
        rest.len--;
    if (!rest.len || hf__shell_input_same(rest, "TRANSACTION") ||
        hf__shell_input_same(rest, "WORK"))
        return true;
    if (shell->tx)
        shell->tx->failed = true;
    *ends = hf__shell_fail(shell, CLI_USAGE, "missing ';' behind %s", word);
    return false;
}

bool hf__shell_tx_run(struct shell *shell, struct hf_str text, int *ends)
{
    static const char *const ending[] = {"COMMIT", "ROLLBACK"};

    if (hf__shell_input_begins(text, "BEGIN")) {
        if (is_alone(shell, text, "BEGIN", ends))
            *ends = tx_begin(shell);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(ending); i++) {
        if (!hf__shell_input_begins(text, ending[i]))
            continue;
        if (!shell->tx)
            *ends = hf__shell_fail(shell, CLI_USAGE, "no transaction has begun: use BEGIN");
        else if (is_alone(shell, text, ending[i], ends))
            *ends = i == 0 ? tx_commit(shell) : tx_rollback(shell);
        return true;
    }
    if (!shell->tx)
        return false;
    *ends = tx_add(shell, text);
    return true;
}
