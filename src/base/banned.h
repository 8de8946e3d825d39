/*
 * base/banned.h: functions that have hurt programs often enough. Using one does not compile.
 */
#ifndef HF_BASE_BANNED_H
#define HF_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok system popen atoi atol

#endif
