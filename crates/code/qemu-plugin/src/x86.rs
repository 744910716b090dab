// SPDX-License-Identifier: GPL-2.0-or-later
//! The little that must be known of x86 instructions.

/// Returns whether the instruction is a string instruction with a REP prefix
/// (`rep movsb`, `repne scasb`, ...), which QEMU executes as a loop of blocks,
/// one for each iteration.
pub(crate) fn is_repeated(instruction: &[u8]) -> bool {
    let mut rep = false;
    for &byte in instruction {
        match byte {
            0xf2 | 0xf3 => rep = true,
            // Lock, segments, operand and address size, REX.
            0xf0 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0x40..=0x4f => {}
            // ins, outs; movs, cmps; stos, lods, scas.
            0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf => return rep,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_repeated;

    #[test]
    fn knows_string_instructions() {
        assert!(is_repeated(&[0xf3, 0xa4])); // rep movsb
        assert!(is_repeated(&[0xf3, 0x48, 0xab])); // rep stosq
        assert!(is_repeated(&[0xf2, 0xae])); // repne scasb
        assert!(is_repeated(&[0x67, 0xf3, 0x66, 0xa5])); // rep movsw, 32-bit addresses
        assert!(is_repeated(&[0xf3, 0x6e])); // rep outsb
    }

    #[test]
    fn knows_what_only_has_the_prefix() {
        assert!(!is_repeated(&[0xa4])); // movsb
        assert!(!is_repeated(&[0xf3, 0xc3])); // rep ret
        assert!(!is_repeated(&[0xf3, 0x90])); // pause
        assert!(!is_repeated(&[0xf3, 0x0f, 0xb8, 0xc0])); // popcnt
        assert!(!is_repeated(&[0xf3, 0x0f, 0x1e, 0xfa])); // endbr64
        assert!(!is_repeated(&[0xf3]));
        assert!(!is_repeated(&[]));
    }
}
