/*
 * examples/scope.c: what a scope does for a piece of work: its memory, its deadline, its end.
 */
#include <holdfast/scope.h>

#include <stdio.h>

/* The greetings live in the scope: nobody frees them one by one. */
static struct hf_str greet(struct hf_scope *s, struct hf_str name)
{
    return hf_scope_format(s, "hello, %.*s", HF_FMT(name));
}

int main(void)
{
    static const char *const names[] = {"ann", "ben", "eve"};
    struct hf_scope *s = hf_scope_new(NULL);

    if (!s) {
        fprintf(stderr, "%s\n", hf_status_text(HF_NOMEM));
        return 1;
    }
    printf("holdfast %s\n", hf_version());

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf_str greeting;

        hf_scope_reset(s); /* the last round's memory is used again */
        hf_scope_timeout_ms(s, 2000);
        greeting = greet(s, hf_str_from(names[i]));
        if (!greeting.ptr) { /* absent, which is not the same as empty: there was no memory */
            hf_scope_free(s);
            return 1;
        }
        printf("%.*s\n", HF_FMT(greeting));
    }

    printf("a call can end in ways such as %s: %s\n", hf_status_name(HF_CONDITION),
           hf_status_text(HF_CONDITION));
    hf_scope_free(s);
    return 0;
}
