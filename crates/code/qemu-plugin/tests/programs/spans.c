/* 100 spans of three instructions, and one before the measured part. */
#include "locklab-marker.h"

void _start(void)
{
	locklab_span_begin();
	asm volatile("nop");
	locklab_span_end();
	locklab_begin();
	for (int n = 0; n < 100; n++) {
		locklab_span_begin();
		asm volatile("nop\n jmp 1f\n1: nop");
		locklab_span_end();
		asm volatile("nop\n nop");
	}
	locklab_end();
	asm volatile("syscall" ::"a"(60), "D"(0));
}
