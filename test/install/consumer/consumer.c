/*
 * test/install/consumer/consumer.c: somebody else's program. Prints the version it was linked with.
 */
#include <holdfast/scope.h>

#include <stdio.h>

int main(void)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str text;

    if (!s)
        return 1;
    text = hf_scope_format(s, "holdfast %s", hf_version());
    printf("%.*s\n", HF_FMT(text));
    hf_scope_free(s);
    return 0;
}
