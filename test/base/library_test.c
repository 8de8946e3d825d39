/* base/library_test.c: loading libraries; (n) is an invariant of base/library.c. */
#include "base/library.h"
#include "test.h"

struct c_library {
    __typeof__(strlen) *strlen;
    __typeof__(strnlen) *strnlen;
};

#define LIBRARY_TABLE c_library
static const struct library_symbol symbols[] = {LIBRARY_SYMBOL(strlen) LIBRARY_SYMBOL(strnlen)};

TEST(library, functions_are_found_by_name)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct c_library lib = {0};

    CHECK_OK(hf__library_load(s, "libc.so.6", symbols, ARRAY_LEN(symbols), &lib));
    CHECK_INT(3, lib.strlen("abc"));
    CHECK_INT(2, lib.strnlen("abc", 2));
    hf_scope_free(s);
}

/* (2) */
TEST(library, one_function_less_is_none)
{
    const struct library_symbol bad[] = {symbols[0], {"no_such_function", 0}};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct c_library lib = {0};

    CHECK_STATUS(HF_UNSUPPORTED, hf__library_load(s, "libc.so.6", bad, ARRAY_LEN(bad), &lib));
    CHECK_ERROR(HF_UNSUPPORTED,
                "library libc.so.6 has no no_such_function(): install a newer version of it", s);
    hf_scope_free(s);
}

TEST(library, one_that_is_missing_has_a_package)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char why[LIBRARY_WHY];
    struct c_library lib;

    CHECK_STATUS(HF_UNSUPPORTED, hf__library_load(s, "libnowhere.so.7.1", symbols, 1, &lib));
    CHECK_ERROR(HF_UNSUPPORTED,
                "library libnowhere.so.7.1 is missing: install package libnowhere7.1", s);
    CHECK_STATUS(HF_UNSUPPORTED, hf__library_load(s, "libno3.so.7", symbols, 1, &lib));
    CHECK_ERROR(HF_UNSUPPORTED, "library libno3.so.7 is missing: install package libno3-7", s);
    CHECK(!hf__library_find("libnowhere.so.7", "nowhere-tools", symbols, 1, &lib, why));
    CHECK_STR("library libnowhere.so.7 is missing: install package nowhere-tools",
              hf_str_from(why));
    hf_scope_free(s);
}

/* It is there, so no package is recommended. */
TEST(library, one_that_is_damaged)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct c_library lib;

    CHECK_STATUS(HF_UNSUPPORTED, hf__library_load(s, "/dev/null", symbols, 1, &lib));
    CHECK(strstr(hf_scope_error_text(s), "library /dev/null cannot be loaded: ") != NULL);
    hf_scope_free(s);
}
