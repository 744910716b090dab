//! Marks the part of a program that is to be measured.
//!
//! A marker is an x86-64 no-op that compilers and assemblers do not emit: a
//! multi-byte NOP whose address operand, which is never accessed, holds a
//! fixed constant. It runs anywhere, in user mode or kernel mode, on hardware
//! too, and costs one instruction; an emulator that looks for it
//! ([`Marker::decode`]) starts counting after [`begin`] and stops before
//! [`end`].
//!
//! | | instruction | bytes |
//! | --- | --- | --- |
//! | [`begin`] | `nopl 0x6b636f01(%rax)` | `0f 1f 80 01 6f 63 6b` |
//! | [`end`] | `nopl 0x6b636f02(%rax)` | `0f 1f 80 02 6f 63 6b` |
//! | begin of a span | `nopl 0x6b636f03(%rax)` | `0f 1f 80 03 6f 63 6b` |
//! | end of a span | `nopl 0x6b636f04(%rax)` | `0f 1f 80 04 6f 63 6b` |
//!
//! A span is a short stretch within the measured part that runs many times, such as a
//! function; an emulator counts all of them together, beside the whole.
//!
//! C programs include `include/locklab-marker.h` of this crate, which has the
//! same four.

/// Address operand of the begin marker.
pub const BEGIN: u32 = 0x6b63_6f01;
/// Address operand of the end marker.
pub const END: u32 = 0x6b63_6f02;
/// Address operand of the marker at the begin of a span.
pub const SPAN_BEGIN: u32 = 0x6b63_6f03;
/// Address operand of the marker at the end of a span.
pub const SPAN_END: u32 = 0x6b63_6f04;

/// A marker instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Counting starts with the next instruction.
    Begin,
    /// The instruction before was the last one counted.
    End,
    /// A span starts with the next instruction.
    SpanBegin,
    /// The instruction before was the last one of a span.
    SpanEnd,
}

impl Marker {
    /// Length of a marker instruction.
    pub const BYTES: usize = 7;

    /// Returns the marker that these bytes of one instruction are, if any.
    pub fn decode(instruction: &[u8]) -> Option<Self> {
        let operand = instruction.strip_prefix(&[0x0f, 0x1f, 0x80])?;
        match u32::from_le_bytes(operand.try_into().ok()?) {
            BEGIN => Some(Marker::Begin),
            END => Some(Marker::End),
            SPAN_BEGIN => Some(Marker::SpanBegin),
            SPAN_END => Some(Marker::SpanEnd),
            _ => None,
        }
    }
}

/// Marks the begin of the measured part. Does nothing on other architectures
/// than x86-64.
#[inline(always)]
pub fn begin() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a NOP. It is a barrier to the compiler (memory may be read and
    // written, by default), so measured code does not move across it.
    unsafe {
        std::arch::asm!(
            "nopl {operand}(%rax)",
            operand = const BEGIN,
            options(att_syntax, nostack, preserves_flags),
        );
    }
}

/// Marks the end of the measured part. Does nothing on other architectures
/// than x86-64.
#[inline(always)]
pub fn end() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `begin`.
    unsafe {
        std::arch::asm!(
            "nopl {operand}(%rax)",
            operand = const END,
            options(att_syntax, nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_its_own_and_nothing_else() {
        assert_eq!(Marker::decode(b"\x0f\x1f\x80\x01ock"), Some(Marker::Begin));
        assert_eq!(Marker::decode(b"\x0f\x1f\x80\x02ock"), Some(Marker::End));
        let span = [b"\x0f\x1f\x80\x03ock", b"\x0f\x1f\x80\x04ock"].map(|b| Marker::decode(b));
        assert_eq!(span, [Some(Marker::SpanBegin), Some(Marker::SpanEnd)]);
        assert_eq!(Marker::decode(b"\x0f\x1f\x80\0\0\0\0"), None); // the usual padding
        assert_eq!(Marker::decode(b"\x0f\x1f\x80\x01oc"), None);
        assert_eq!(Marker::decode(b"\x0f\x1f\x80\x01ock\x90"), None);
        assert_eq!(Marker::decode(b""), None);
    }

    #[test]
    fn the_instructions_are_what_is_decoded() {
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn locklab_marker_test() {
            begin();
            end();
        }
        locklab_marker_test(); // harmless on this CPU
        if cfg!(target_arch = "x86_64") {
            // SAFETY: the code of a function is readable, and it holds two
            // instructions of 7 bytes.
            let code = unsafe {
                std::slice::from_raw_parts(locklab_marker_test as *const u8, 2 * Marker::BYTES)
            };
            let found: Vec<_> = (0..=7)
                .filter_map(|at| Marker::decode(&code[at..at + 7]))
                .collect();
            assert_eq!(found, [Marker::Begin, Marker::End]);
        }
    }

    #[test]
    fn the_c_header_has_the_same_constants() {
        let header = include_str!("../../include/locklab-marker.h");
        assert!(header.contains(&format!("locklab_begin() LOCKLAB_MARKER({BEGIN:#x})")));
        assert!(header.contains(&format!("locklab_end() LOCKLAB_MARKER({END:#x})")));
        let span = format!("locklab_span_begin() LOCKLAB_MARKER({SPAN_BEGIN:#x})");
        assert!(header.contains(&span));
        let span = format!("locklab_span_end() LOCKLAB_MARKER({SPAN_END:#x})");
        assert!(header.contains(&span));
    }
}
