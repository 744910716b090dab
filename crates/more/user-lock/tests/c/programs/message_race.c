/* data race: the same, read without an Acquire. */
#define ORDER memory_order_relaxed
#include "message.c"
