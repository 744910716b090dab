/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Marks the part of a program that is to be measured. The four are
 * x86-64 no-ops that nothing else uses (see src/marker.rs, which has the same
 * constants); they do nothing on other architectures. A span is a short stretch
 * within that part, such as a function; all spans are counted together.
 *
 *     locklab_begin();
 *     work();
 *     locklab_end();
 */
#ifndef LOCKLAB_MARKER_H
#define LOCKLAB_MARKER_H

#ifdef __x86_64__
#define LOCKLAB_MARKER(operand) \
	__asm__ volatile("nopl " #operand "(%%rax)" ::: "memory")
#define locklab_begin() LOCKLAB_MARKER(0x6b636f01)
#define locklab_end() LOCKLAB_MARKER(0x6b636f02)
#define locklab_span_begin() LOCKLAB_MARKER(0x6b636f03)
#define locklab_span_end() LOCKLAB_MARKER(0x6b636f04)
#else
#define locklab_begin() ((void)0)
#define locklab_end() ((void)0)
#define locklab_span_begin() ((void)0)
#define locklab_span_end() ((void)0)
#endif

#endif
