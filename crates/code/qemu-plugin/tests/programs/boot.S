# A machine in one sector: enters long mode with its first 2 MiB mapped twice,
# at 0 and in the upper half. Between the markers, kernel code (upper half)
# runs 2009 instructions in a line of its own, then "user" code (lower half)
# 1003 in another, of which the upper half then runs 1 more. With SWITCHES, kernel code
# changes between two address spaces so many times instead.
	.set KERNEL, 0xffffffff80000000
	.code16
	.globl _start
_start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	cld
	mov $0x1000, %di		# page tables, 0x1000 to 0x5fff
	mov $0x1400, %cx
	xor %eax, %eax
	rep stosl
	movw $0x2003, 0x1000		# lower half
	movw $0x3003, 0x2000
	movw $0x4003, 0x1ff8		# upper half
	movw $0x2003, 0x5000		# the same in another address space
	movw $0x4003, 0x5ff8
	movw $0x3003, 0x4ff0
	movw $0x0083, 0x3000		# one page of 2 MiB for both
	mov $0x1000, %eax
	mov %eax, %cr3
	mov $0x20, %eax			# PAE
	mov %eax, %cr4
	mov $0xc0000080, %ecx		# EFER.LME
	rdmsr
	or $0x100, %ax
	wrmsr
	lgdt gdt_register
	mov $0x80000001, %eax		# paging, protection
	mov %eax, %cr0
	ljmp $8, $long_mode

	.code64
long_mode:
	mov $(KERNEL + kernel), %rax
	jmp *%rax
kernel:
	nopl 0x6b636f01(%rax)		# begin
	jmp 1f
	.p2align 6
#ifdef SWITCHES
1:	mov $SWITCHES, %ecx
	mov $0x1000, %eax
	mov $0x4000, %edx
1:	xor %rdx, %rax
	mov %rax, %cr3
	dec %ecx
	jnz 1b
	mov $(KERNEL + 2f), %rax
	jmp *%rax
2:
#else
1:	mov $1000, %ecx
1:	dec %ecx
	jnz 1b
	mov $0x10000, %edi
	mov $60000, %ecx
	rep stosb
	mov $2, %ecx
	mov $user, %eax
	jmp *%rax
	.p2align 6
user:
	mov $500, %ecx
1:	dec %ecx
	jnz 1b
	mov $(KERNEL + alias), %rax
	jmp *%rax
alias:
	nop
#endif
	nopl 0x6b636f02(%rax)		# end
	mov $0x10, %al
	out %al, $0xf4			# leaves with status 33
1:	hlt
	jmp 1b

	.p2align 3
gdt:	.quad 0, 0x00209a0000000000	# 64-bit code
gdt_register:
	.word 15
	.long gdt
	.org 510
	.word 0xaa55
