/*
 * cli/shell/shell_tx.c: BEGIN, statements, COMMIT: one ExecuteTransaction.
 *
 * DynamoDB has no transactions that stay open: all statements of one are sent together. So statements between
 * BEGIN and COMMIT are collected, and nothing happens before COMMIT. They are all reads or all writes, each
 * of one item; the database judges that.
 */
#include "cli/shell/shell.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { TX_STATEMENTS_MAX = 100 }; /* of ExecuteTransaction */

static const char *const commit_words[] = {"sql", "--transaction", "--"};

struct shell_tx {
    struct hf_scope *s;
    const char *words[ARRAY_LEN(commit_words) + TX_STATEMENTS_MAX]; /* the command of COMMIT */
    size_t len;                                                     /* statements */
};

void hf__shell_tx_drop(struct shell *shell)
{
    if (!shell->tx)
        return;
    hf_scope_free(shell->tx->s);
    free(shell->tx);
    shell->tx = NULL;
}

static int tx_begin(struct shell *shell)
{
    if (shell->tx)
        return hf__shell_fail(shell, CLI_USAGE, "a transaction has already begun");
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

    if (tx->len == TX_STATEMENTS_MAX)
        return hf__shell_fail(shell, CLI_USAGE, "a transaction has at most %d statements",
                              TX_STATEMENTS_MAX);
    copy = hf_scope_copy(tx->s, text);
    if (!copy.ptr)
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    tx->words[ARRAY_LEN(commit_words) + tx->len++] = copy.ptr;
    if (shell->interactive)
        printf("statement %zu of the transaction\n", tx->len);
    return CLI_OK;
}

static int tx_commit(struct shell *shell)
{
    int ends = CLI_OK;

    if (shell->tx->len)
        ends =
            hf__shell_run_words(shell, ARRAY_LEN(commit_words) + shell->tx->len, shell->tx->words);
    hf__shell_tx_drop(shell);
    if (ends == CLI_OK && shell->interactive)
        puts("committed");
    return ends;
}

bool hf__shell_tx_run(struct shell *shell, struct hf_str text, int *ends)
{
    bool commits = hf__shell_input_begins(text, "COMMIT");

    if (hf__shell_input_begins(text, "BEGIN")) {
        *ends = tx_begin(shell);
        return true;
    }
    if (commits || hf__shell_input_begins(text, "ROLLBACK")) {
        if (!shell->tx) {
            *ends = hf__shell_fail(shell, CLI_USAGE, "no transaction has begun: use BEGIN");
            return true;
        }
        if (commits) {
            *ends = tx_commit(shell);
            return true;
        }
        hf__shell_tx_drop(shell);
        if (shell->interactive)
            puts("dropped");
        *ends = CLI_OK;
        return true;
    }
    if (!shell->tx)
        return false;
    *ends = tx_add(shell, text);
    return true;
}
