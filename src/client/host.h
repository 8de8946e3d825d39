/* client/host.h: the one rule about names of hosts that config and endpoint share. */
#ifndef HF_CLIENT_HOST_H
#define HF_CLIENT_HOST_H

#include "base/base.h"

/* A part of a host's name: 1 to 63 letters, digits and inner hyphens. */
static inline bool hf__host_is_label(struct hf_str text)
{
    if (!text.len || text.len > 63 || text.ptr[0] == '-' || text.ptr[text.len - 1] == '-')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    return true;
}

#endif
