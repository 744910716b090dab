/* Two marked parts: a loop of 1 + 2 * 1000 instructions, and 3 instructions
 * that are in one block with both their markers. The rest is not marked. */
#include "locklab-marker.h"

void _start(void)
{
	locklab_end(); /* ends nothing */
	asm volatile("mov $50, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx");
	locklab_begin();
	asm volatile("mov $1000, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx");
	locklab_end();
	asm volatile("mov $70, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx");
	locklab_begin();
	asm volatile("nop\n nop\n nop");
	locklab_end();
	asm volatile("syscall" ::"a"(60), "D"(0));
}
