/* deadlock: one signal for two consumers. */
#define CONSUMERS 2
#include "signal.c"
