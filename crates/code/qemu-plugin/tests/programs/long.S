# 12 million rounds of 5 instructions, of which every eighth takes another way.
.globl _start
_start:
	mov $12000000, %ecx
1:	test $7, %cl
	jz 3f
2:	nop
	dec %ecx
	jnz 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
3:	jmp 2b
