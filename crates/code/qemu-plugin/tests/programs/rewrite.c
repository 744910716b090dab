/* Writes a function TIMES times, each time with another constant, and calls it. */
#include <string.h>
#include <sys/mman.h>

#ifndef TIMES
#define TIMES 10
#endif

int main(void)
{
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned sum = 0;
    for (unsigned n = 0; n < TIMES; n++) {
        /* mov $n, %eax; ret */
        unsigned char function[] = {0xb8, n, n >> 8, n >> 16, n >> 24, 0xc3};
        memcpy(code, function, sizeof function);
        sum += ((unsigned (*)(void))code)();
    }
    return sum != (unsigned)(TIMES * (TIMES - 1ul) / 2);
}
