/*
 * base/status.c: names and texts of statuses, from HF_STATUS_MAP.
 */
#include "base/base.h"

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

const char *hf_version(void)
{
    return TEXT_OF(HF_VERSION_MAJOR) "." TEXT_OF(HF_VERSION_MINOR) "." TEXT_OF(HF_VERSION_PATCH);
}

const char *hf_status_name(enum hf_status status)
{
    switch (status) {
#define NAME_CASE(name, number, wire, text)                                                        \
    case HF_##name:                                                                                \
        return "HF_" #name;
        HF_STATUS_MAP(NAME_CASE)
    }
    return "HF_UNKNOWN";
}

const char *hf_status_text(enum hf_status status)
{
    switch (status) {
#define TEXT_CASE(name, number, wire, text)                                                        \
    case HF_##name:                                                                                \
        return text;
        HF_STATUS_MAP(TEXT_CASE)
    }
    return "unknown status";
}

struct hf_str hf__status_exception(enum hf_status status)
{
    switch (status) {
#define EXCEPTION_CASE(name, number, wire, text)                                                   \
    case HF_##name:                                                                                \
        return HF_STR(wire);
        HF_STATUS_MAP(EXCEPTION_CASE)
    }
    return HF_STR("");
}

bool hf__exception_find(struct hf_str exception, enum hf_status *status)
{
#define EXCEPTION_FIND(wire, name)                                                                 \
    if (hf_str_equal(exception, HF_STR(wire))) {                                                   \
        *status = HF_##name;                                                                       \
        return true;                                                                               \
    }
    HF_EXCEPTION_MAP(EXCEPTION_FIND)
    return false;
}
