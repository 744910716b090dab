# From the firmware's hands to `main_of_cpu(number)` in 64-bit mode, on every CPU.
#
# The first CPU enters at `start_bsp` (the PVH entry, which QEMU's -kernel takes
# from the note below) in 32-bit protected mode without paging. Every other CPU
# enters at `start_ap`, copied to AP_CODE, in 16-bit real mode. Both take the next
# number and the stack of that number.

.set AP_CODE, 0x8000
.set STACK, 0x10000

.section .note.xen, "a"
.align 4
    .long 4, 4, 18                  # size of name and value; XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long start_bsp

.section .text
.code32
.global start_bsp
start_bsp:
    cli
    cld
    # Four gigabytes, addressed as they are: one table of level 4, one of level 3,
    # four of level 2 with pages of 2 MiB.
    movl $(tables + 0x1000 + 3), tables
    movl $(tables + 0x2000 + 3), tables + 0x1000
    movl $(tables + 0x3000 + 3), tables + 0x1008
    movl $(tables + 0x4000 + 3), tables + 0x1010
    movl $(tables + 0x5000 + 3), tables + 0x1018
    xorl %ecx, %ecx
1:  movl %ecx, %eax
    shll $21, %eax
    orl $0x83, %eax                 # present, writable, 2 MiB
    movl %eax, tables + 0x2000(, %ecx, 8)
    incl %ecx
    cmpl $2048, %ecx
    jne 1b
    # The other CPUs' first code, below 1 MiB.
    movl $start_ap, %esi
    movl $AP_CODE, %edi
    movl $(end_ap - start_ap), %ecx
    rep movsb
    jmp protected

# Every CPU, in 32-bit protected mode with flat segments.
protected:
    movl $tables, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x620, %eax                # PAE; SSE, which compiled code uses
    movl %eax, %cr4
    movl $0xc0000080, %ecx          # EFER: long mode
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $0xfffffffb, %eax          # no emulation of the FPU
    orl $0x80000002, %eax           # paging; SSE
    movl %eax, %cr0
    lgdt gdt_pointer
    ljmp $0x08, $long

.code64
long:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $1, %edi
    lock xaddl %edi, next_cpu(%rip)
    movl %edi, %eax
    incl %eax
    imulq $STACK, %rax, %rax
    leaq stacks(%rip), %rsp
    addq %rax, %rsp
    call main_of_cpu
2:  hlt
    jmp 2b

.code16
start_ap:
    cli
    lgdtl %cs:(gdt_pointer_ap - start_ap)
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x18, $(AP_CODE + flat_ap - start_ap)
.code32
flat_ap:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $protected, %eax
    jmp *%eax
gdt_pointer_ap:
    .word 31
    .long gdt
end_ap:

.section .rodata
.align 8
gdt:
    .quad 0
    .quad 0x00af9a000000ffff        # 0x08: 64-bit code
    .quad 0x00cf92000000ffff        # 0x10: data
    .quad 0x00cf9a000000ffff        # 0x18: 32-bit code
gdt_pointer:
    .word 31
    .long gdt

.section .bss
.align 4096
tables:
    .skip 0x6000
stacks:
    .skip STACK * 64
next_cpu:
    .skip 4
