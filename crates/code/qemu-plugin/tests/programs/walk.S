# Jumps through LINES lines of 64 bytes, PASSES times; one more line before.
.globl _start
.p2align 12
_start:
	mov $PASSES, %ecx
	jmp 2f
	.p2align 6
2:
.rept LINES - 1
	jmp 1f
	.p2align 6
1:
.endr
	dec %ecx
	jnz 2b
	mov $60, %eax
	xor %edi, %edi
	syscall
