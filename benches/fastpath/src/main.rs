//! The fast paths of three locks, each as a function of its own, and beside
//! each the same written by hand. A test of the locks (`tests/assembly.rs`)
//! builds this program, disassembles it and counts; nobody runs it.

#![cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(unused))]

use locklab_locks::{Mcs, McsNode, NativePlatform, QSpinlock, RawLock, Ticket};

type N = NativePlatform;

/// Continues after a `try_lock` that succeeded. A caller branches on the answer,
/// and does not want it as a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn taken() {
    std::hint::black_box(1);
}

#[unsafe(no_mangle)]
#[inline(never)]
#[cold]
extern "C" fn busy() {
    std::hint::black_box(2);
}

macro_rules! ours {
    ($($lock:ty, $ctx:ty: $take:ident $try_take:ident $release:ident;)*) => {$(
        #[unsafe(no_mangle)]
        fn $take(lock: &$lock, ctx: &$ctx) {
            // SAFETY: never called.
            unsafe { RawLock::<N>::lock(lock, ctx) }
        }
        #[unsafe(no_mangle)]
        fn $try_take(lock: &$lock, ctx: &$ctx) {
            // SAFETY: never called.
            if unsafe { RawLock::<N>::try_lock(lock, ctx) } {
                taken()
            } else {
                busy()
            }
        }
        #[unsafe(no_mangle)]
        fn $release(lock: &$lock, ctx: &$ctx) {
            // SAFETY: never called.
            unsafe { RawLock::<N>::unlock(lock, ctx) }
        }
        const _: () = {
            // Keeps them in the program.
            #[used]
            static KEPT: (
                fn(&$lock, &$ctx),
                fn(&$lock, &$ctx),
                fn(&$lock, &$ctx),
            ) = ($take, $try_take, $release);
        };
    )*};
}

ours! {
    Ticket, (): ours_ticket_lock ours_ticket_try_lock ours_ticket_unlock;
    Mcs, McsNode: ours_mcs_lock ours_mcs_try_lock ours_mcs_unlock;
    QSpinlock, (): ours_qspinlock_lock ours_qspinlock_try_lock ours_qspinlock_unlock;
}

// rdi: the lock, rsi: the queue node.
#[cfg(all(target_arch = "x86_64", not(miri)))]
core::arch::global_asm!(
    ".globl hand_ticket_lock, hand_ticket_try_lock, hand_ticket_unlock",
    ".type hand_ticket_lock, @function",
    "hand_ticket_lock:",
    "    mov eax, 1",
    "    lock xadd word ptr [rdi + 2], ax",
    "    cmp word ptr [rdi], ax",
    "    jne hand_slow",
    "    ret",
    ".size hand_ticket_lock, . - hand_ticket_lock",
    ".type hand_ticket_try_lock, @function",
    "hand_ticket_try_lock:",
    "    mov eax, dword ptr [rdi]",
    "    mov ecx, eax",
    "    rol ecx, 16",
    "    cmp ecx, eax",
    "    jne busy",
    "    lea ecx, [rax + 0x10000]",
    "    lock cmpxchg dword ptr [rdi], ecx",
    "    jne busy",
    "    jmp taken",
    ".size hand_ticket_try_lock, . - hand_ticket_try_lock",
    ".type hand_ticket_unlock, @function",
    "hand_ticket_unlock:",
    "    inc word ptr [rdi]",
    "    ret",
    ".size hand_ticket_unlock, . - hand_ticket_unlock",
    //
    ".globl hand_mcs_lock, hand_mcs_try_lock, hand_mcs_unlock",
    ".type hand_mcs_lock, @function",
    "hand_mcs_lock:",
    // `granted` is for those who wait.
    "    mov qword ptr [rsi], 0",
    "    mov rax, rsi",
    "    xchg qword ptr [rdi], rax",
    "    test rax, rax",
    "    jne hand_slow",
    "    ret",
    ".size hand_mcs_lock, . - hand_mcs_lock",
    ".type hand_mcs_try_lock, @function",
    "hand_mcs_try_lock:",
    "    mov qword ptr [rsi], 0",
    "    xor eax, eax",
    "    lock cmpxchg qword ptr [rdi], rsi",
    "    jne busy",
    "    jmp taken",
    ".size hand_mcs_try_lock, . - hand_mcs_try_lock",
    ".type hand_mcs_unlock, @function",
    "hand_mcs_unlock:",
    // The successor comes first, as in the paper, so that a handoff leaves the
    // line of the tail alone.
    "    mov rax, qword ptr [rsi]",
    "    test rax, rax",
    "    jne hand_slow",
    "    xor ecx, ecx",
    "    mov rax, rsi",
    "    lock cmpxchg qword ptr [rdi], rcx",
    "    jne hand_slow",
    "    ret",
    ".size hand_mcs_unlock, . - hand_mcs_unlock",
    //
    ".globl hand_qspinlock_lock, hand_qspinlock_try_lock, hand_qspinlock_unlock",
    ".type hand_qspinlock_lock, @function",
    "hand_qspinlock_lock:",
    "    xor eax, eax",
    "    mov ecx, 1",
    "    lock cmpxchg dword ptr [rdi], ecx",
    "    jne hand_slow",
    "    ret",
    ".size hand_qspinlock_lock, . - hand_qspinlock_lock",
    ".type hand_qspinlock_try_lock, @function",
    "hand_qspinlock_try_lock:",
    "    mov eax, dword ptr [rdi]",
    "    test eax, eax",
    "    jne busy",
    "    mov ecx, 1",
    "    lock cmpxchg dword ptr [rdi], ecx",
    "    jne busy",
    "    jmp taken",
    ".size hand_qspinlock_try_lock, . - hand_qspinlock_try_lock",
    ".type hand_qspinlock_unlock, @function",
    "hand_qspinlock_unlock:",
    "    mov byte ptr [rdi], 0",
    "    ret",
    ".size hand_qspinlock_unlock, . - hand_qspinlock_unlock",
    "hand_slow:",
    "    ud2",
);

#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe extern "C" {
    fn hand_ticket_lock();
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[used]
static KEPT: unsafe extern "C" fn() = hand_ticket_lock;

fn main() {}
