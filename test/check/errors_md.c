/*
 * test/check/errors_md.c: print docs/errors.md from HF_STATUS_MAP.
 */
#include <holdfast/base.h>

#include <stdio.h>

static void exception(const char *wire, const char *name)
{
    printf("| %s | `HF_%s` |\n", wire, name);
}

static void row(const char *name, int number, const char *wire, const char *text)
{
    printf("| `HF_%s` | %d | %s | %s |\n", name, number, wire[0] ? wire : "none", text);
}

int main(void)
{
    printf(
        "# Errors\n"
        "\n"
        "Made from `HF_STATUS_MAP` in `include/holdfast/base.h` by `script/errors`; change it "
        "there.\n"
        "\n"
        "Every call ends in one of these. `hf_scope_error()` adds a sentence that names the "
        "thing, and the two\n"
        "answers a caller needs: `may_retry` (the same call may succeed later) and "
        "`may_have_happened` (the\n"
        "effect may be there although the call failed); over the network also "
        "`retry_after_ms`, when a service\n"
        "said how long to wait. Where a limit was passed, `limit` has its name, what it is, and "
        "what there was\n"
        "instead. `cause` is the error of the call below that led to this one, with its own "
        "cause, up to\n"
        "`HF_ERROR_CAUSES_MAX` of them: what a handler said to a subscription that gave up, what "
        "the database\n"
        "said to who was to put a mark. Programs on top of the library fail in the same way: "
        "`hf_scope_fail()`,\n"
        "`hf_scope_fail_limit()`, `hf_scope_fail_because()`, and `hf_scope_fail_from()` for the "
        "error of another scope.\n"
        "Which calls are tried again: [client.md](client.md). Numbers are never reused.\n"
        "\"On the wire\" is the exception that DynamoDB's protocol has for it. The comment above "
        "`HF_STATUS_MAP` says what\n"
        "statuses that several parts use mean, such as `HF_LIMIT`.\n"
        "\n"
        "| status | number | on the wire | text |\n"
        "|---|---|---|---|\n");
#define ROW(name, number, wire, text) row(#name, number, wire, text);
    HF_STATUS_MAP(ROW)
    printf("\n"
           "Some features of DynamoDB have exceptions of their own. They are one of the statuses "
           "above, and\n"
           "`hf_error.exception` has the name, of the embedded engine as of a service:\n"
           "\n"
           "| exception | status |\n"
           "|---|---|\n");
#define EXCEPTION(wire, name) exception(wire, #name);
    HF_EXCEPTION_MAP(EXCEPTION)
    return 0;
}
