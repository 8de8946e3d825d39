/* base/status_test.c: the one list of statuses. */
#include <holdfast/base.h>

#include "base/base.h"

#include "test.h"

TEST(status, names_and_texts)
{
    CHECK_STR("HF_OK", hf_str_from(hf_status_name(HF_OK)));
    CHECK_STR("HF_NOT_FOUND", hf_str_from(hf_status_name(HF_NOT_FOUND)));
    CHECK_STR("out of memory", hf_str_from(hf_status_text(HF_NOMEM)));
    CHECK_STR("HF_UNKNOWN", hf_str_from(hf_status_name((enum hf_status)9999)));
    CHECK_STR("unknown status", hf_str_from(hf_status_text((enum hf_status)9999)));
}

/* Numbers are never reused: these are what programs out there were built with. */
TEST(status, numbers_stay)
{
    CHECK_INT(0, HF_OK);
    CHECK_INT(5, HF_CONDITION);
    CHECK_INT(12, HF_THROTTLED);
    CHECK_INT(20, HF_CANCELED);
    CHECK_INT(28, HF_INTERNAL);
}

/* Every number once, every name and text said. */
TEST(status, the_list_is_whole)
{
    static const struct {
        int number;
        const char *wire, *text;
    } list[] = {
#define ENTRY(name, number, wire, text) {number, wire, text},
        HF_STATUS_MAP(ENTRY)};

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        CHECK(list[i].text[0]);
        CHECK((list[i].number == HF_OK) == !list[i].wire[0]);
        for (size_t j = 0; j < i; j++)
            CHECK(list[i].number != list[j].number);
    }
}

/* An exception is one status, and not that of a status already. */
TEST(status, exceptions_are_one_status)
{
    static const char *const list[] = {
#define NAME_OF(wire, name) wire,
        HF_EXCEPTION_MAP(NAME_OF)};
    enum hf_status status;

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        CHECK(hf__exception_find(hf_str_from(list[i]), &status));
#define IS_NOT(name, number, wire, text) CHECK(strcmp(list[i], wire) != 0);
        HF_STATUS_MAP(IS_NOT)
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(list[i], list[j]) != 0);
    }
    CHECK(!hf__exception_find(HF_STR("ResourceNotFoundException"), &status));
    CHECK_STR("ResourceNotFoundException", hf__status_exception(HF_NOT_FOUND));
}

TEST(status, version_is_that_of_the_header)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
    CHECK_STR(text, hf_str_from(hf_version()));
}
