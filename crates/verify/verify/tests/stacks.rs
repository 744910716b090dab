//! A program that says so keeps the stacks of modelled threads, and no other
//! memory. One test: once it keeps them, the whole process does.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use locklab_verify::stacks::keep;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

locklab_verify::keep_stacks!();

const PAGE: usize = 4096;
const LENGTH: usize = 9 * PAGE;

fn map(length: usize, flags: c_int) -> *mut c_void {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: new memory, of nobody else.
    unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) }
}

fn unmap(start: *mut c_void, length: usize) {
    // SAFETY: the tests' own, which nothing uses.
    assert_eq!(unsafe { libc::munmap(start, length) }, 0);
}

fn protect(start: *mut c_void, protection: c_int) {
    // SAFETY: as above.
    assert_eq!(unsafe { libc::mprotect(start, PAGE, protection) }, 0);
}

/// Returns the permissions of what is mapped in these bytes.
fn mapped(start: *mut c_void, length: usize) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let inside = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (begin, end) = (number(begin)?, number(end)?);
        let inside = begin < start.addr() + length && start.addr() < end;
        inside.then(|| rest[..4].to_owned())
    });
    inside.collect()
}

#[test]
fn stacks_are_kept_and_nothing_else() {
    nothing_is_kept_at_first();
    keep();
    a_stack_comes_again_with_its_guard();
    other_memory_is_the_kernels();
    modelled_threads_have_the_same_stacks_again();
}

fn nothing_is_kept_at_first() {
    let stack = map(LENGTH, libc::MAP_STACK);
    unmap(stack, LENGTH);
    assert!(mapped(stack, LENGTH).is_empty());
}

fn a_stack_comes_again_with_its_guard() {
    let stack = map(LENGTH, libc::MAP_STACK);
    protect(stack, libc::PROT_NONE);
    unmap(stack, LENGTH);
    let again = map(LENGTH, libc::MAP_STACK);
    protect(again, libc::PROT_NONE);
    let other = map(LENGTH, libc::MAP_STACK);
    assert!(stack == again && other != again);
    assert_eq!(mapped(again, LENGTH)[..2], ["---p", "rw-p"]);
    // Another length is another stack.
    unmap(again, LENGTH);
    let longer = map(LENGTH + PAGE, libc::MAP_STACK);
    assert_ne!(longer, again);
    unmap(longer, LENGTH + PAGE);
    unmap(other, LENGTH);
}

/// Asserts that what was not made as a stack is, is larger, or was changed in parts goes to the
/// kernel.
fn other_memory_is_the_kernels() {
    // Far from each other, so that what is gone is nobody else's soon.
    let plain = map(LENGTH, 0);
    let large = map(8 * LENGTH, libc::MAP_STACK);
    let taken: Vec<_> = (0..2).map(|_| map(LENGTH, libc::MAP_STACK)).collect();
    let part = map(LENGTH, libc::MAP_STACK);
    let half = map(LENGTH, libc::MAP_STACK);
    unmap(plain, LENGTH);
    assert!(mapped(plain, LENGTH).is_empty());
    unmap(large, 8 * LENGTH);
    assert!(mapped(large, 8 * LENGTH).is_empty());
    unmap(part, PAGE);
    unmap(part.wrapping_byte_add(PAGE), LENGTH - PAGE);
    assert!(mapped(part, LENGTH).is_empty());
    protect(half.wrapping_byte_add(PAGE), libc::PROT_READ);
    unmap(half, LENGTH);
    assert!(mapped(half, LENGTH).is_empty());
    taken.into_iter().for_each(|stack| unmap(stack, LENGTH));
}

fn modelled_threads_have_the_same_stacks_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    loom::model(move || {
        let word = Arc::new(loom::sync::atomic::AtomicU32::new(0));
        let (written, note) = (word.clone(), note.clone());
        let thread = loom::thread::spawn(move || {
            let here = AtomicU32::new(0);
            note.lock().unwrap().push((&raw const here).addr() / PAGE);
            written.store(1, Ordering::Release);
        });
        word.load(Ordering::Acquire);
        thread.join().unwrap();
    });
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 1, "one execution only");
    assert!(seen.iter().all(|page| *page == seen[0]), "{seen:?}");
}
