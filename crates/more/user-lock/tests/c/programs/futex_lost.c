/* deadlock: nobody wakes it. */
#define FORGETS
#include "futex.c"
