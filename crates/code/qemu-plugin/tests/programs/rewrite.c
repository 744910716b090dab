/* Writes a function ten times, each time with another constant, and calls it. */
#include <string.h>
#include <sys/mman.h>

int main(void)
{
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int n = 0; n < 10; n++) {
        unsigned char function[] = {0xb8, n, 0, 0, 0, 0xc3}; /* mov $n, %eax; ret */
        memcpy(code, function, sizeof function);
        sum += ((int (*)(void))code)();
    }
    return sum != 45;
}
