//! The fast paths of `ticket`, `mcs` and `qspinlock` are machine code as a
//! person would write it: no more instructions than the assembly beside them
//! in `benches/fastpath`. And the unlock of `qspinlock` is one byte store.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program optimised, in a folder of its own: the one that this
/// test was built in is locked by cargo, and its profile is another. It is a
/// package of its own so that nothing but the locks is built for it.
fn fastpath() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assembly");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "locklab-fastpath"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // Flags and profiles of whoever runs the test would change the code.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the program builds");
    target.join("release/fastpath")
}

/// The program: its functions `ours_*` and `hand_*`, and where a `try_lock`
/// that succeeded goes on.
struct Program {
    functions: HashMap<String, Vec<Instruction>>,
    taken: u64,
}

impl Program {
    fn read(file: &[u8]) -> Self {
        let object = object::File::parse(file).expect("an object file");
        let taken = object
            .symbol_by_name("taken")
            .expect("taken is in the program")
            .address();
        let functions = object
            .symbols()
            .filter_map(|symbol| {
                let name = symbol.name().ok()?;
                let wanted = name.starts_with("ours_") || name.starts_with("hand_");
                (wanted && symbol.size() > 0).then(|| {
                    let (address, size) = (symbol.address(), symbol.size());
                    let code = code_at(&object, address, size);
                    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
                    (name.to_owned(), decoder.into_iter().collect())
                })
            })
            .collect();
        Self { functions, taken }
    }

    fn function(&self, name: &str) -> &[Instruction] {
        self.functions
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the program"))
    }

    /// Returns the instructions from entry to `ret`, or to the jump to `taken`, on
    /// the way that calls nothing and that acquires or releases: passes the
    /// locked instruction if the function has one.
    fn fast_path(&self, name: &str) -> Vec<Instruction> {
        let function = self.function(name);
        let at: HashMap<u64, usize> = function
            .iter()
            .enumerate()
            .map(|(index, instruction)| (instruction.ip(), index))
            .collect();
        let must_lock = function.iter().any(is_locked);
        let mut seen = HashSet::new();
        let mut ways = VecDeque::from([vec![0]]);
        while let Some(way) = ways.pop_front() {
            let here = &function[*way.last().unwrap()];
            let locked = way.iter().any(|&index| is_locked(&function[index]));
            if !seen.insert((here.ip(), locked)) {
                continue;
            }
            let targets = match here.flow_control() {
                FlowControl::Return => vec![self.taken],
                FlowControl::Next => vec![here.next_ip()],
                FlowControl::ConditionalBranch => {
                    vec![here.next_ip(), here.near_branch_target()]
                }
                FlowControl::UnconditionalBranch => vec![here.near_branch_target()],
                _ => vec![],
            };
            for target in targets {
                if target == self.taken && locked == must_lock {
                    return way.iter().map(|&index| function[index]).collect();
                }
                if let Some(&index) = at.get(&target) {
                    ways.push_back([way.as_slice(), &[index]].concat());
                }
            }
        }
        panic!(
            "no way through {name} without a call:\n{}",
            listing(function)
        );
    }
}

fn code_at<'a>(object: &object::File<'a>, address: u64, size: u64) -> &'a [u8] {
    object
        .sections()
        .find_map(|section| section.data_range(address, size).ok().flatten())
        .expect("the function is in a section")
}

fn is_locked(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg
            && (0..2).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

fn listing(instructions: &[Instruction]) -> String {
    let lines: Vec<_> = instructions
        .iter()
        .map(|instruction| format!("    {instruction}"))
        .collect();
    lines.join("\n")
}

#[test]
fn fast_paths_are_as_short_as_written_by_hand() {
    let file = std::fs::read(fastpath()).expect("the program that was built");
    let program = Program::read(&file);
    println!("instructions on the fast path    ours   hand");
    let mut longer = String::new();
    for lock in ["ticket", "mcs", "qspinlock"] {
        for step in ["lock", "try_lock", "unlock"] {
            let ours = program.fast_path(&format!("ours_{lock}_{step}"));
            let hand = program.fast_path(&format!("hand_{lock}_{step}"));
            println!("{lock:>18} {step:<10} {:>7} {:>6}", ours.len(), hand.len());
            if ours.len() > hand.len() {
                longer += &format!(
                    "{lock} {step}: ours\n{}\nby hand\n{}\n",
                    listing(&ours),
                    listing(&hand)
                );
            }
        }
    }
    assert!(longer.is_empty(), "longer than by hand:\n{longer}");

    let unlock = program.function("ours_qspinlock_unlock");
    let text = listing(unlock);
    let [store, ret, ..] = unlock else {
        panic!("a store and a return, not\n{text}")
    };
    assert_eq!(store.mnemonic(), Mnemonic::Mov, "{text}");
    assert_eq!(store.op0_kind(), OpKind::Memory, "{text}");
    assert_eq!(store.memory_size().size(), 1, "one byte:\n{text}");
    assert_eq!(store.op1_kind(), OpKind::Immediate8, "{text}");
    assert_eq!(store.immediate8(), 0, "{text}");
    assert_eq!(ret.mnemonic(), Mnemonic::Ret, "and nothing else:\n{text}");
}
