# Calls itself DEPTH deep, 100 times.
    .globl _start
_start:
    mov $100, %ebx
1:  mov $DEPTH, %ecx
    call deep
    dec %ebx
    jnz 1b
    mov $60, %eax
    xor %edi, %edi
    syscall
deep:
    dec %ecx
    jz 2f
    call deep
2:  ret
