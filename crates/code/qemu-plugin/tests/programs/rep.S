# 15 instructions whatever BYTES is: 4 REP instructions, one at the begin of a
# block, one that directly follows another.
.globl _start
_start:
	lea buffer(%rip), %rsi
	lea buffer(%rip), %rdi
	mov $BYTES, %ecx
	rep movsb
	mov $BYTES, %ecx
	lea buffer(%rip), %rdi
	rep stosb
	lea buffer(%rip), %rdi
	mov $BYTES, %ecx
	jmp 1f
	.p2align 6
1:	repne scasb		# finds the 0 at the end, or stops at %ecx = 0
	rep lodsb		# runs with what is left, 0 or 1
	mov $60, %eax
	xor %edi, %edi
	syscall
	.bss
buffer:	.skip 2000000
