/* base/utf8.h: UTF-8 in its shortest form, without surrogates, up to U+10FFFF. */
#ifndef HF_BASE_UTF8_H
#define HF_BASE_UTF8_H

#include "base/base.h"

/* Bytes of the sequence at `p`, which begins outside of ASCII; 0 when it is none. */
size_t hf__utf8_length(const unsigned char *p, size_t left);

/* Whether all of the text is UTF-8. The empty and the absent text are. */
bool hf__utf8_valid(struct hf_str text);

#endif
