//! Kinds of branches, read from the bytes of the last instruction of a block. It knows only
//! how a block can end; what a branch costs is not its business.

/// Says how a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The block ends with no branch: the emulator cut the code here.
    #[default]
    None,
    /// The block ends with a conditional branch.
    Conditional,
    /// The block ends with a jump to a fixed target.
    Jump,
    /// The block ends with a call of a fixed target.
    Call,
    /// The block ends with a jump to an address in a register or in memory.
    IndirectJump,
    /// The block ends with a call of an address in a register or in memory.
    IndirectCall,
    /// The block ends with a return.
    Return,
    /// The block ends with a change of privilege: a system call, an interrupt, or the
    /// way back.
    Privilege,
    /// The block ends with a write of CR3: another address space.
    AddressSpace,
    /// The block ends with an indirect branch prediction barrier (IBPB).
    Barrier,
}

/// Holds how a block ends and where execution can continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The kind of the last instruction.
    pub kind: Kind,
    /// The target, if the instruction has it in itself.
    pub target: Option<u64>,
}

/// The number of the register IA32_PRED_CMD.
const PRED_CMD: u32 = 0x49;

/// Returns how a block ends whose last instruction lies at `address` and consists of `bytes`.
///
/// A write to a model-specific register is [`Kind::None`] here: which register is meant is in
/// ECX, for which see [`is_barrier`].
pub fn exit(address: u64, bytes: &[u8]) -> Exit {
    let end = address.wrapping_add(bytes.len() as u64);
    let mut rest = bytes;
    while let [
        0x66 | 0x67 | 0xf2 | 0xf3 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x40..=0x4f,
        after @ ..,
    ] = rest
    {
        rest = after;
    }
    let direct = |kind, displacement: &[u8]| {
        let displacement = match *displacement {
            [byte] => i64::from(byte as i8),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => return Exit { kind, target: None },
        };
        Exit {
            kind,
            target: Some(end.wrapping_add_signed(displacement)),
        }
    };
    let plain = |kind| Exit { kind, target: None };
    match rest {
        [0x70..=0x7f | 0xe0..=0xe3, displacement @ ..] | [0x0f, 0x80..=0x8f, displacement @ ..] => {
            direct(Kind::Conditional, displacement)
        }
        [0xeb | 0xe9, displacement @ ..] => direct(Kind::Jump, displacement),
        [0xe8, displacement @ ..] => direct(Kind::Call, displacement),
        [0xc2 | 0xc3, ..] => plain(Kind::Return),
        [0xff, modrm, ..] => match modrm >> 3 & 7 {
            2 => plain(Kind::IndirectCall),
            4 => plain(Kind::IndirectJump),
            _ => plain(Kind::None),
        },
        [0x0f, 0x05 | 0x07 | 0x34 | 0x35, ..] | [0xcc..=0xcf, ..] => plain(Kind::Privilege),
        [0x0f, 0x22, modrm, ..] if modrm >> 3 & 7 == 3 => plain(Kind::AddressSpace),
        _ => plain(Kind::None),
    }
}

/// Returns whether a block whose instructions are these, in order, ends with an indirect branch
/// prediction barrier: a WRMSR after a move of the constant 0x49, the number of IA32_PRED_CMD,
/// to ECX.
///
/// A barrier whose register number comes from elsewhere is not recognised. Kernels write the
/// number beside the instruction.
pub fn is_barrier<'a>(instructions: impl DoubleEndedIterator<Item = &'a [u8]>) -> bool {
    let mut backwards = instructions.rev();
    if backwards.next() != Some(&[0x0f, 0x30]) {
        return false;
    }
    let mov_ecx = |bytes: &[u8]| match *bytes {
        [0xb9, a, b, c, d] | [0x48, 0xc7, 0xc1, a, b, c, d] => {
            Some(u32::from_le_bytes([a, b, c, d]))
        }
        _ => None,
    };
    backwards.find_map(mov_ecx) == Some(PRED_CMD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_of_each_kind() {
        let kind = |bytes: &[u8]| exit(0x1000, bytes).kind;
        assert_eq!(kind(&[0x74, 0x10]), Kind::Conditional); // je
        assert_eq!(kind(&[0x0f, 0x85, 0, 0, 0, 0]), Kind::Conditional); // jne near
        assert_eq!(kind(&[0x2e, 0x74, 0x10]), Kind::Conditional); // with a hint
        assert_eq!(kind(&[0xe2, 0xfe]), Kind::Conditional); // loop
        assert_eq!(kind(&[0xeb, 0x00]), Kind::Jump);
        assert_eq!(kind(&[0xe8, 0, 0, 0, 0]), Kind::Call);
        assert_eq!(kind(&[0xff, 0xd0]), Kind::IndirectCall); // call *%rax
        assert_eq!(kind(&[0x41, 0xff, 0xd3]), Kind::IndirectCall); // call *%r11
        assert_eq!(kind(&[0x3e, 0xff, 0xe0]), Kind::IndirectJump); // notrack jmp *%rax
        assert_eq!(kind(&[0xff, 0x25, 0, 0, 0, 0]), Kind::IndirectJump); // PLT
        assert_eq!(kind(&[0xf3, 0xc3]), Kind::Return); // rep ret
        assert_eq!(kind(&[0xc2, 8, 0]), Kind::Return);
        assert_eq!(kind(&[0x0f, 0x05]), Kind::Privilege);
        assert_eq!(kind(&[0x48, 0xcf]), Kind::Privilege); // iretq
        assert_eq!(kind(&[0x0f, 0x22, 0xd8]), Kind::AddressSpace); // mov %rax,%cr3
        assert_eq!(kind(&[0x0f, 0x22, 0xc0]), Kind::None); // mov %rax,%cr0
        assert_eq!(kind(&[0xff, 0xc0]), Kind::None); // inc %eax
        assert_eq!(kind(&[0xff, 0x30]), Kind::None); // push (%rax)
        assert_eq!(kind(&[0x90]), Kind::None);
        assert_eq!(kind(&[]), Kind::None);
        assert_eq!(kind(&[0x66]), Kind::None);
    }

    #[test]
    fn targets_count_from_the_end() {
        assert_eq!(exit(0x1000, &[0xeb, 0xfe]).target, Some(0x1000));
        assert_eq!(exit(0x1000, &[0x74, 0x10]).target, Some(0x1012));
        assert_eq!(
            exit(0x1000, &[0xe8, 0xfb, 0xff, 0xff, 0xff]).target,
            Some(0x1000)
        );
        assert_eq!(exit(0x1000, &[0xff, 0xd0]).target, None);
    }

    #[test]
    fn a_barrier_is_a_write_of_its_register() {
        let wrmsr: &[u8] = &[0x0f, 0x30];
        let pred_cmd: &[u8] = &[0xb9, 0x49, 0, 0, 0];
        let spec_ctrl: &[u8] = &[0xb9, 0x48, 0, 0, 0];
        let other: &[u8] = &[0x31, 0xd2];
        let barrier = |code: &[&[u8]]| is_barrier(code.iter().copied());
        assert!(barrier(&[pred_cmd, other, wrmsr]));
        assert!(barrier(&[spec_ctrl, pred_cmd, wrmsr]));
        assert!(!barrier(&[pred_cmd, spec_ctrl, other, wrmsr]));
        assert!(!barrier(&[other, wrmsr]), "the number is unknown");
        assert!(!barrier(&[pred_cmd, wrmsr, other]), "it is not the end");
        assert!(!barrier(&[]));
    }
}
