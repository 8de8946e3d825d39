/*
 * bind/texts.h: enums of several objects as texts.
 */
#ifndef HF_BIND_TEXTS_H
#define HF_BIND_TEXTS_H

#include <holdfast/base.h>

/* Names of statuses by their numbers; HF_OK has none, so that it is left out. */
#define STATUS_TEXT(name, number, wire, text) [number] = (number) ? "HF_" #name : NULL,
static const char *const status_texts[] = {HF_STATUS_MAP(STATUS_TEXT) NULL};
#undef STATUS_TEXT

#endif
