/* creates no thread: nothing is checked. */
#include <assert.h>

int main(void) { assert(1); }
