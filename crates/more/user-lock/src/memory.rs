//! A lock's memory outside a model: while it is constructed, and where no
//! access is reported.
//!
//! It must not depend on a simulator or a checker.

/// Reads memory directly.
///
/// # Safety
/// The memory is readable.
pub(crate) unsafe fn memory(address: usize, size: u32) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: promised.
    unsafe {
        std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size as usize);
    }
    u64::from_le_bytes(bytes)
}

/// Writes memory directly.
///
/// # Safety
/// The memory is writable.
pub(crate) unsafe fn set_memory(address: usize, size: u32, value: u64) {
    // SAFETY: promised.
    unsafe {
        std::ptr::copy_nonoverlapping(
            value.to_le_bytes().as_ptr(),
            address as *mut u8,
            size as usize,
        );
    }
}

/// Compares and swaps memory directly; returns the previous value.
///
/// # Safety
/// The memory is writable, and no other thread accesses it.
pub(crate) unsafe fn compare_memory(address: usize, size: u32, expected: u64, new: u64) -> u64 {
    // SAFETY: promised.
    unsafe {
        let old = memory(address, size);
        if old == expected {
            set_memory(address, size, new);
        }
        old
    }
}

/// Returns the accesses that make up a plain one, none of them across words.
pub(crate) fn pieces(address: usize, bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let mut at = address;
    std::iter::from_fn(move || {
        let left = (address + bytes).checked_sub(at).filter(|left| *left > 0)?;
        let size = [8, 4, 2, 1]
            .into_iter()
            .find(|size| at.is_multiple_of(*size) && *size <= left)?;
        at += size;
        Some((at - size, size as u8))
    })
}
