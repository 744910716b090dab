//! Provides what this kernel asks of the machine: the number of the CPU, the other
//! CPUs, a serial line and an end. It knows no lock.

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;
use core::ptr;

global_asm!(include_str!("boot.s"), options(att_syntax));

/// The registers of each CPU's interrupt controller, where the processor has them
/// after a reset.
const LOCAL_APIC: usize = 0xfee0_0000;

/// The page of the other CPUs' first code, as in `boot.s`.
const AP_PAGE: u32 = 0x8000 >> 12;

/// The model-specific register of the base of segment `gs`.
const GS_BASE: u32 = 0xc000_0101;

/// The number to which `gs` points on each CPU.
static NUMBERS: [usize; super::CPUS] = {
    let mut numbers = [0; super::CPUS];
    let mut i = 0;
    while i < numbers.len() {
        numbers[i] = i;
        i += 1;
    }
    numbers
};

/// Gives this CPU its number.
pub fn set_cpu(number: usize) {
    let at = &raw const NUMBERS[number] as usize;
    // SAFETY: nothing else uses `gs`, and the address is that of a static.
    unsafe {
        asm!("wrmsr", in("ecx") GS_BASE, in("eax") at as u32, in("edx") (at >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// Returns the number of this CPU, from its per-CPU segment.
pub fn cpu() -> usize {
    let number: usize;
    // SAFETY: `set_cpu` ran before, so `gs` points to a static that nobody writes.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) number, options(nostack, readonly, preserves_flags));
    }
    number
}

/// Starts all other CPUs, and returns the number of all.
pub fn start_other_cpus() -> usize {
    let cpus = number_of_cpus();
    // INIT, then the address of the first code, to all but this CPU.
    command(0x000c_4500);
    pause(200_000);
    command(0x000c_4600 | AP_PAGE);
    pause(200_000);
    cpus
}

/// Sends a command to the other CPUs' interrupt controllers.
fn command(bits: u32) {
    // SAFETY: the interrupt command register, which is addressed as it is.
    unsafe { ptr::write_volatile((LOCAL_APIC + 0x300) as *mut u32, bits) };
}

/// Waits some time; how long does not matter to a virtual machine.
fn pause(turns: u32) {
    for _ in 0..turns {
        core::hint::spin_loop();
    }
}

/// Returns the number of CPUs, from QEMU's firmware configuration device.
fn number_of_cpus() -> usize {
    const SELECTOR: u16 = 0x510;
    const DATA: u16 = 0x511;
    const NB_CPUS: u16 = 0x05;
    // SAFETY: ports of that device; reading them changes nothing but its place.
    unsafe {
        asm!("out dx, ax", in("dx") SELECTOR, in("ax") NB_CPUS, options(nostack, preserves_flags));
    }
    let [low, high] = [(), ()].map(|()| input(DATA));
    usize::from(u16::from_le_bytes([low, high]))
}

/// Prints a text on the first serial line.
pub fn print(text: &str) {
    for byte in text.bytes() {
        output(0x3f8, byte);
    }
}

/// Prints a number.
pub fn print_number(number: u64) {
    if number > 9 {
        print_number(number / 10);
    }
    output(0x3f8, b'0' + (number % 10) as u8);
}

/// Ends the machine: QEMU's exit status is 33 if all was well, else 35.
pub fn exit(well: bool) -> ! {
    output(0xf4, if well { 0x10 } else { 0x11 });
    halt()
}

/// Stops this CPU.
pub fn halt() -> ! {
    loop {
        // SAFETY: without interrupts the CPU only stops.
        unsafe { asm!("hlt", options(nomem, nostack)) };
    }
}

fn output(port: u16, byte: u8) {
    // SAFETY: the callers' ports are a serial line and QEMU's exit device.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") byte, options(nostack, preserves_flags));
    }
}

fn input(port: u16) -> u8 {
    let byte: u8;
    // SAFETY: the callers' ports are of QEMU's firmware configuration device.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") byte, options(nostack, preserves_flags));
    }
    byte
}

/// Does nothing. The target's own `core` names this function, which unwinding would call; this
/// kernel aborts instead.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    print("panic\n");
    exit(false)
}
