/* oracle/crash.h: apart from oracle.h, as it must know the engine's own types. */
#ifndef HF_TEST_ORACLE_CRASH_H
#define HF_TEST_ORACLE_CRASH_H

#include "world.h"

/* Go on with a copy of what the store holds now, as after the process was killed. */
void crash_world(struct world *w);

#endif
