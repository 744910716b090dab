//! Tells a loop that only waits from one that works, by the machine code around a sampled
//! address: the shortest way back to it reads and compares, pauses, or tries a locked operation,
//! and changes nothing that others could see.
//!
//! A loop that follows pointers or walks through memory works, however little it does. What
//! is not understood is work: it must never call work spinning.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::look;

pub(crate) use code::Code;

mod code {
    /// Says what the code at a place does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Code {
        /// It is a loop that only waits; `tries` says whether it pauses, or tries a locked operation.
        Spins { tries: bool },
        /// It returns to its caller and does nothing until then but count, as a function that lets
        /// time pass does; or it pauses.
        Returns { pauses: bool },
        /// It works, or is not understood.
        Works,
    }
}

/// Returns what the code at a place does: of this processor it is not known.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn look(_: &[u8], _: u64, _: u64) -> Code {
    Code::Works
}

/// Says whether loops can be told apart on this processor.
pub(crate) const DECODES: bool = cfg!(target_arch = "x86_64");

#[cfg(any(target_arch = "x86_64", test))]
mod x86 {
    use super::code::Code;
    use iced_x86::{
        Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
        OpAccess, OpKind, Register, UsedMemory,
    };
    use std::collections::hash_map::Entry;
    use std::collections::{HashMap, HashSet, VecDeque};

    /// The most instructions of a loop that waits.
    const LOOP: usize = 24;
    /// Instructions that are looked at to find it.
    const LOOKED_AT: usize = 96;
    /// The farthest that one lies from the sampled address.
    const FAR: u64 = 512;

    /// The most places in a loop around a delay that are looked at.
    const MARKS: usize = 8;

    /// Returns what `code`, which begins at an address, does at another. The instruction there
    /// may be any of the loop; of a loop that lets time pass, the one around it counts.
    pub(crate) fn look(code: &[u8], begin: u64, at: u64) -> Code {
        let explored = Explored::of(code, begin, at);
        let waits = |way: Vec<Instruction>, most: usize| way.len() <= most && only_waits(&way);
        let back = explored.back.map(|last| explored.path(last));
        let back = back.filter(|way| waits(way.clone(), LOOP));
        let marks = explored.known.iter().filter(|(_, found)| is_mark(found));
        let mut marks: Vec<u64> = marks.map(|(address, _)| *address).collect();
        marks.sort_unstable();
        let has_mark = back.iter().flatten().any(is_mark);
        let tries = has_mark
            || marks.into_iter().take(MARKS).any(|mark| {
                let behind = Explored::of(code, begin, mark);
                let to_mark = explored.from.get(&mark).copied().flatten();
                let last = behind.from.get(&at).copied().flatten();
                let ways = to_mark.zip(last);
                ways.is_some_and(|(to_mark, last)| {
                    let around = [explored.path(to_mark), behind.path(last)].concat();
                    waits(around, 2 * LOOP)
                })
            });
        match tries || back.is_some() {
            true => Code::Spins { tries },
            false => explored.returns(),
        }
    }

    /// The instructions that may be run from an address on, and from where each is reached first.
    struct Explored {
        known: HashMap<u64, Instruction>,
        from: HashMap<u64, Option<u64>>,
        /// The instruction before the address, on the shortest way back to it.
        back: Option<u64>,
        /// Whether nothing was left out.
        whole: bool,
    }

    impl Explored {
        fn of(code: &[u8], begin: u64, at: u64) -> Self {
            let mut all = Self {
                known: HashMap::new(),
                from: HashMap::from([(at, None)]),
                back: None,
                whole: true,
            };
            let mut queue = VecDeque::from([at]);
            while let Some(next) = queue.pop_front() {
                let bytes = next
                    .checked_sub(begin)
                    .and_then(|at| usize::try_from(at).ok());
                let bytes = bytes.and_then(|at| code.get(at..)).unwrap_or_default();
                let mut decoder = Decoder::with_ip(64, bytes, next, DecoderOptions::NONE);
                let instruction = decoder.decode();
                if instruction.is_invalid() || all.known.len() >= LOOKED_AT {
                    all.whole = false;
                    continue;
                }
                all.known.insert(next, instruction);
                let behind = instruction.next_ip();
                let there = instruction.near_branch_target();
                let (one, two) = match instruction.flow_control() {
                    FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                        (Some(behind), None)
                    }
                    FlowControl::ConditionalBranch => (Some(behind), Some(there)),
                    FlowControl::UnconditionalBranch => (None, Some(there)),
                    _ => (None, None),
                };
                for target in [one, two].into_iter().flatten() {
                    if target == at {
                        all.back.get_or_insert(next);
                    } else if target.abs_diff(at) > FAR {
                        all.whole = false;
                    } else if let Entry::Vacant(new) = all.from.entry(target) {
                        new.insert(Some(next));
                        queue.push_back(target);
                    }
                }
            }
            all
        }

        /// Returns the instructions up to this one, in order.
        fn path(&self, last: u64) -> Vec<Instruction> {
            let mut way = Vec::new();
            let mut next = Some(last);
            while let Some(address) = next {
                way.extend(self.known.get(&address).copied());
                next = self.from.get(&address).copied().flatten();
            }
            way.reverse();
            way
        }

        /// Returns whether all of it only counts, and returns.
        fn returns(&self) -> Code {
            let mut factory = InstructionInfoFactory::new();
            let mut returns = false;
            for instruction in self.known.values() {
                if instruction.flow_control() == FlowControl::Return {
                    returns = true;
                    continue;
                }
                let mut memory = factory.info(instruction).used_memory().iter();
                let calls = matches!(
                    instruction.flow_control(),
                    FlowControl::Call | FlowControl::IndirectCall
                );
                let plain = is_pause(instruction) || is_plain(instruction, false, false);
                if calls || !plain || !memory.all(is_of_stack) {
                    return Code::Works;
                }
            }
            match returns && self.whole && self.known.len() <= LOOP {
                true => Code::Returns {
                    pauses: self.known.values().any(is_pause),
                },
                false => Code::Works,
            }
        }
    }

    fn is_pause(instruction: &Instruction) -> bool {
        matches!(
            instruction.mnemonic(),
            Mnemonic::Pause | Mnemonic::Tpause | Mnemonic::Umwait
        )
    }

    fn is_locked(instruction: &Instruction) -> bool {
        instruction.has_lock_prefix()
            || instruction.mnemonic() == Mnemonic::Xchg
                && instruction.op_kinds().any(|kind| kind == OpKind::Memory)
    }

    /// Returns whether an instruction is one that a loop that waits has, and hardly another.
    fn is_mark(instruction: &Instruction) -> bool {
        is_pause(instruction) || is_locked(instruction)
    }

    /// Says how a value comes about in the loop.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Value {
        /// It is the same in each round.
        Same,
        /// It was read at an address that is the same in each round.
        Read,
        /// It may be another in each round.
        Other,
    }

    /// Returns whether the instructions of a loop only wait.
    fn only_waits(way: &[Instruction]) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let mut values: HashMap<Register, Value> = HashMap::new();
        let mut written: HashSet<(Register, u64)> = HashSet::new();
        for instruction in way {
            let info = factory.info(instruction);
            let writes = info
                .used_registers()
                .iter()
                .filter(|used| is_written(used.access()));
            for used in writes {
                values.insert(used.register().full_register(), Value::Other);
            }
            let stores = info
                .used_memory()
                .iter()
                .filter(|used| is_written(used.access()));
            written.extend(stores.map(slot));
        }
        let (mut pauses, mut reads, mut tries) = (false, false, 0);
        let marked = way.iter().any(is_mark);
        // The second time it is known what the loop leaves in each register.
        for round in 0..2 {
            for instruction in way {
                let of = |register: Register, values: &HashMap<Register, Value>| {
                    let known = values.get(&register.full_register());
                    known.copied().unwrap_or(Value::Same)
                };
                let calls = matches!(
                    instruction.flow_control(),
                    FlowControl::Call | FlowControl::IndirectCall
                );
                let (pause, locked) = (is_pause(instruction), is_locked(instruction));
                pauses |= pause;
                if calls {
                    values.insert(Register::RAX, Value::Other);
                    continue;
                }
                if !pause && !is_plain(instruction, locked, marked) {
                    return false;
                }
                let info = factory.info(instruction);
                let mut result = value(instruction, &values, of);
                for memory in info.used_memory() {
                    let parts = [memory.base(), memory.index()];
                    let parts = parts.into_iter().filter(|part| *part != Register::None);
                    let address = parts.map(|part| of(part, &values)).fold(Value::Same, worse);
                    if is_written(memory.access()) {
                        if !locked && !is_of_stack(memory) {
                            return false;
                        }
                        tries += usize::from(locked && round == 1);
                        if round == 1 && address == Value::Other {
                            return false;
                        }
                        continue;
                    }
                    if round == 1 && address == Value::Other {
                        return false;
                    }
                    reads |= round == 1 && !is_of_stack(memory);
                    let stored = written.contains(&slot(memory));
                    result = match (address, stored) {
                        (Value::Same, false) => worse(result, Value::Read),
                        _ => Value::Other,
                    };
                }
                // What a successful try leaves in memory is the same each time; a sum is not.
                if round == 1 && locked && !puts_the_same(instruction, &values, of) {
                    return false;
                }
                for used in info.used_registers() {
                    if is_written(used.access()) {
                        values.insert(used.register().full_register(), result);
                    }
                }
            }
        }
        tries <= 1 && (pauses || reads || tries == 1)
    }

    fn worse(one: Value, two: Value) -> Value {
        match (one, two) {
            (Value::Other, _) | (_, Value::Other) => Value::Other,
            (Value::Read, _) | (_, Value::Read) => Value::Read,
            (Value::Same, Value::Same) => Value::Same,
        }
    }

    fn is_written(access: OpAccess) -> bool {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    }

    fn is_of_stack(memory: &UsedMemory) -> bool {
        matches!(memory.base(), Register::RSP | Register::RBP) && memory.index() == Register::None
    }

    fn slot(memory: &UsedMemory) -> (Register, u64) {
        (memory.base(), memory.displacement())
    }

    /// Returns whether an instruction may be one of a loop that waits: it moves, compares or
    /// counts; one that is `marked` may draw how long it waits.
    fn is_plain(instruction: &Instruction, locked: bool, marked: bool) -> bool {
        use Mnemonic::*;
        let immediate = || {
            instruction
                .op_kinds()
                .skip(1)
                .all(|kind| !matches!(kind, OpKind::Register | OpKind::Memory))
        };
        if locked {
            return matches!(
                instruction.mnemonic(),
                Cmpxchg | Cmpxchg8b | Cmpxchg16b | Xchg | Bts | Or
            );
        }
        match instruction.mnemonic() {
            Mov | Movzx | Movsx | Movsxd | Lea | Cmp | Test | Sub | And | Or | Xor | Not | Neg
            | Nop | Endbr64 | Rdtsc | Rdtscp | Lfence | Mfence | Inc | Dec | Cwde | Cdqe | Bt
            | Push | Pop => true,
            Add | Imul | Mul | Div | Rol | Ror | Cdq | Cqo if marked => true,
            Add | Shl | Sal | Shr | Sar | Cmpxchg => immediate(),
            _ => {
                let text = format!("{:?}", instruction.mnemonic());
                instruction.flow_control() == FlowControl::ConditionalBranch
                    || instruction.flow_control() == FlowControl::UnconditionalBranch
                    || text.starts_with("Set")
                    || text.starts_with("Cmov")
            }
        }
    }

    /// Returns what an instruction leaves in its register, but for what it reads of memory.
    fn value(
        instruction: &Instruction,
        values: &HashMap<Register, Value>,
        of: impl Fn(Register, &HashMap<Register, Value>) -> Value,
    ) -> Value {
        let register = |number: u32| match instruction.op_kind(number) {
            OpKind::Register => of(instruction.op_register(number), values),
            _ => Value::Same,
        };
        let same = instruction.op_count() == 2
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op_kind(1) == OpKind::Register
            && instruction.op_register(0) == instruction.op_register(1);
        match instruction.mnemonic() {
            Mnemonic::Xor | Mnemonic::Sub if same => Value::Same,
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => register(1),
            Mnemonic::Lea => {
                let parts = [instruction.memory_base(), instruction.memory_index()];
                let parts = parts.into_iter().filter(|part| *part != Register::None);
                parts.map(|part| of(part, values)).fold(Value::Same, worse)
            }
            _ => Value::Other,
        }
    }

    /// Returns whether a locked operation puts the same into memory in each round.
    fn puts_the_same(
        instruction: &Instruction,
        values: &HashMap<Register, Value>,
        of: impl Fn(Register, &HashMap<Register, Value>) -> Value,
    ) -> bool {
        let mut registers = (0..instruction.op_count())
            .filter(|&number| instruction.op_kind(number) == OpKind::Register)
            .map(|number| instruction.op_register(number));
        match instruction.mnemonic() {
            // The register has what was exchanged, after the first round.
            Mnemonic::Xchg => true,
            _ => registers.all(|register| of(register, values) == Value::Same),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Returns whether each of the code's instructions is one of a loop that spins.
        fn all_spin(code: &[u8]) -> Vec<bool> {
            let begin = 0x1000;
            let decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
            let addresses = decoder.into_iter().map(|instruction| instruction.ip());
            addresses
                .map(|at| matches!(look(code, begin, at), Code::Spins { .. }))
                .collect()
        }

        #[test]
        fn a_loop_that_tries_and_pauses_spins() {
            // xor eax,eax; lock cmpxchg [rdi],edx; je +4; pause; jmp -10.
            let code = [
                0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x17, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf4, 0xc3,
            ];
            assert_eq!(all_spin(&code), [true, true, true, true, true, false]);
        }

        #[test]
        fn a_loop_that_reads_one_word_until_it_changes_spins() {
            // mov eax,[rdi]; test eax,eax; jne -6.
            assert_eq!(all_spin(&[0x8b, 0x07, 0x85, 0xc0, 0x75, 0xfa]), [true; 3]);
        }

        #[test]
        fn a_loop_that_walks_or_follows_or_computes_works() {
            for code in [
                // cmp byte [rdi],0; lea rdi,[rdi+1]; jne.
                &[0x80, 0x3f, 0x00, 0x48, 0x8d, 0x7f, 0x01, 0x75, 0xf7][..],
                // mov rdi,[rdi+8]; test rdi,rdi; jne.
                &[0x48, 0x8b, 0x7f, 0x08, 0x48, 0x85, 0xff, 0x75, 0xf7],
                // imul eax,eax,5; dec ecx; jne.
                &[0x6b, 0xc0, 0x05, 0xff, 0xc9, 0x75, 0xf9],
                // dec ecx; jne: it counts, and waits for nobody.
                &[0xff, 0xc9, 0x75, 0xfc],
                // lock xadd [rdi],eax; jmp.
                &[0xf0, 0x0f, 0xc1, 0x07, 0xeb, 0xfa],
                // mov eax,[rdi]; lea edx,[rax+1]; lock cmpxchg [rdi],edx; jne: a counter.
                &[
                    0x8b, 0x07, 0x8d, 0x50, 0x01, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf5,
                ],
                // mov [rdi],eax; jmp: others see it.
                &[0x89, 0x07, 0xeb, 0xfc],
                // ret.
                &[0xc3],
            ] {
                assert!(all_spin(code).iter().all(|spins| !spins), "{code:x?}");
            }
        }

        /// Functions whose names say what their loops do.
        const SOURCE: &str = "
            #include <stdatomic.h>
            struct node { struct node *next; int key; };
            atomic_int word; atomic_uint next_ticket, owner; volatile unsigned sink;
            void spins_cas(void) {
                int e = 0;
                while (!atomic_compare_exchange_weak(&word, &e, 1)) { e = 0; __builtin_ia32_pause(); }
            }
            void spins_read(void) {
                do while (atomic_load_explicit(&word, memory_order_relaxed)); while (atomic_exchange(&word, 1));
            }
            void spins_ticket(void) {
                unsigned mine = atomic_fetch_add(&next_ticket, 1);
                while (atomic_load(&owner) != mine) __builtin_ia32_pause();
            }
            void spins_bts(void) {
                char had;
                do __asm__ volatile(\"lock btsl $0, %1; setc %0\" : \"=q\"(had), \"+m\"(word)); while (had);
            }
            void spins_xchg(void) { while (atomic_exchange(&word, 1)) { } }
            __attribute__((noinline)) void returns_pause(void) { __builtin_ia32_pause(); }
            void spins_call(void) {
                while (atomic_load(&word) || atomic_exchange(&word, 1)) returns_pause();
            }
            void spins_backoff(void) {
                for (int delay = 1;; delay += delay) {
                    int e = 0;
                    if (atomic_compare_exchange_strong(&word, &e, 1)) return;
                    for (volatile int i = 0; i < delay; i++) { }
                }
            }
            void spins_drawn(unsigned seed) {
                while (atomic_exchange(&word, 1)) {
                    seed = seed * 1664525u + 1013904223u;
                    for (unsigned i = seed >> 28; i; i--) __builtin_ia32_pause();
                }
            }
            void spins_flag(atomic_int *flag) { while (atomic_load(flag) == 0) { } }
            void works_lcg(long n) { unsigned x = 1; for (long i = 0; i < n; i++) x = x * 1664525u + 1; sink = x; }
            void works_volatile(int n) { volatile unsigned x = 1; while (n--) x = x * 1664525u + 1; }
            int works_list(struct node *at, int key) { while (at && at->key != key) at = at->next; return at != 0; }
            int works_sum(const int *all, int n) { int sum = 0; for (int i = 0; i < n; i++) sum ^= all[i]; return sum; }
            int works_find(const char *text) { int n = 0; while (text[n] != 'x') n++; return n; }
            void works_count(int n) { while (n--) atomic_fetch_add(&word, 1); }
            void works_store(int *to, int n) { for (int i = 0; i < n; i++) to[i] = n; }
            int main(void) { return 0; }";

        #[test]
        fn compiled_loops_are_told_apart() {
            use object::{Object, ObjectSection, ObjectSymbol};
            let folder = tempfile::tempdir().unwrap();
            let source = folder.path().join("loops.c");
            std::fs::write(&source, SOURCE).unwrap();
            for level in ["-O1", "-O2"] {
                let program = folder.path().join("loops");
                let compiled = std::process::Command::new("gcc")
                    .args([level, "-fno-tree-vectorize", "-o"])
                    .args([&program, &source])
                    .status();
                if !compiled.is_ok_and(|status| status.success()) {
                    println!("skipped: no gcc; install the package gcc");
                    return;
                }
                let bytes = std::fs::read(&program).unwrap();
                let file = object::File::parse(&*bytes).unwrap();
                let text = file.section_by_name(".text").unwrap();
                let (begin, code) = (text.address(), text.data().unwrap());
                let mut seen = 0;
                for symbol in file.symbols() {
                    let name = symbol.name().unwrap_or_default();
                    if name == "returns_pause" {
                        let pauses = true;
                        assert_eq!(
                            look(code, begin, symbol.address()),
                            Code::Returns { pauses }
                        );
                    }
                    let (expected, from) = match name.split_once('_') {
                        Some(("spins", _)) => (true, symbol.address()),
                        Some(("works", _)) => (false, symbol.address()),
                        _ => continue,
                    };
                    let function = &code[(from - begin) as usize..][..symbol.size() as usize];
                    let decoder = Decoder::with_ip(64, function, from, DecoderOptions::NONE);
                    let mut at = decoder.into_iter().map(|one| look(code, begin, one.ip()));
                    let found = at.any(|found| matches!(found, Code::Spins { .. }));
                    assert_eq!(found, expected, "{name} {level}");
                    seen += 1;
                }
                assert_eq!(seen, 16);
            }
        }

        #[test]
        fn bytes_of_any_kind_end_nothing() {
            for first in 0..=255_u8 {
                for second in 0..=255 {
                    let code = [first, second, first ^ second, 0x0f, 0xeb, 0xfa, second];
                    look(&code, 0x1000, 0x1000 + u64::from(first % 8));
                }
            }
        }
    }
}
