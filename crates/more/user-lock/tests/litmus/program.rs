//! A small program as data: it is written in C, run in Rust, and explored by the
//! reference of [`super::reference`].

use locklab_locks::Info;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_verify::{Context, Instance, Loom, Place, Subject};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The words of a program, by their names.
pub(crate) const WORDS: [char; 3] = ['x', 'y', 'z'];

/// Registers of all threads together.
pub(crate) const REGISTERS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A read into a register.
    Load(usize, usize, Ordering),
    Store(usize, u64, Ordering),
    /// A fetch-and-add; the old value into a register.
    Add(usize, u64, usize, Ordering),
    Swap(usize, u64, usize, Ordering),
    /// A strong compare-and-swap; what it read into a register.
    Compare(usize, u64, u64, usize, Ordering),
    /// A weak one; 1 into the register if it succeeded.
    Weak(usize, u64, u64, usize, Ordering),
    Fence(Ordering),
    /// Waits until the word has this value, by a loop of reads.
    Wait(usize, u64, Ordering),
    /// Reads the word, and if it has the one value tries to change it to the other:
    /// until that succeeds.
    Take(usize, u64, u64, Ordering),
    /// Waits until either word has this value, by a loop that reads both.
    Either([usize; 2], u64, Ordering),
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Vec<Op>>,
    /// Holds what an outcome shows: registers, then words.
    pub(crate) registers: Vec<usize>,
    pub(crate) words: Vec<usize>,
}

fn word(text: &str) -> usize {
    let name = text.chars().next().unwrap();
    WORDS.iter().position(|word| *word == name).unwrap()
}

fn register(text: &str) -> usize {
    text[1..].parse().unwrap()
}

fn order(text: &str) -> Ordering {
    match text {
        "rlx" => Ordering::Relaxed,
        "acq" => Ordering::Acquire,
        "rel" => Ordering::Release,
        "ar" => Ordering::AcqRel,
        "sc" => Ordering::SeqCst,
        text => panic!("{text} is no memory order"),
    }
}

impl Op {
    fn parse(text: &str) -> Self {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        match parts[..] {
            ["R", w, r, o] => Self::Load(word(w), register(r), order(o)),
            ["W", w, v, o] => Self::Store(word(w), number(v), order(o)),
            ["A", w, v, r, o] => Self::Add(word(w), number(v), register(r), order(o)),
            ["X", w, v, r, o] => Self::Swap(word(w), number(v), register(r), order(o)),
            ["C", w, a, b, r, o] => {
                Self::Compare(word(w), number(a), number(b), register(r), order(o))
            }
            ["K", w, a, b, r, o] => {
                Self::Weak(word(w), number(a), number(b), register(r), order(o))
            }
            ["F", o] => Self::Fence(order(o)),
            ["L", w, v, o] => Self::Wait(word(w), number(v), order(o)),
            ["T", w, a, b, o] => Self::Take(word(w), number(a), number(b), order(o)),
            ["E", a, b, v, o] => Self::Either([word(a), word(b)], number(v), order(o)),
            _ => panic!("{text} is no operation"),
        }
    }

    /// Returns the order that C names so.
    fn c_order(order: Ordering) -> &'static str {
        match order {
            Ordering::Relaxed => "memory_order_relaxed",
            Ordering::Acquire => "memory_order_acquire",
            Ordering::Release => "memory_order_release",
            Ordering::AcqRel => "memory_order_acq_rel",
            _ => "memory_order_seq_cst",
        }
    }

    fn c(self) -> String {
        let o = Self::c_order;
        let failure = |order| match order {
            Ordering::Acquire | Ordering::AcqRel => o(Ordering::Acquire),
            Ordering::SeqCst => o(order),
            _ => o(Ordering::Relaxed),
        };
        match self {
            Self::Load(w, r, order) => {
                format!("r[{r}] = atomic_load_explicit(&p->w[{w}], {});", o(order))
            }
            Self::Store(w, v, order) => {
                format!("atomic_store_explicit(&p->w[{w}], {v}, {});", o(order))
            }
            Self::Add(w, v, r, order) => format!(
                "r[{r}] = atomic_fetch_add_explicit(&p->w[{w}], {v}, {});",
                o(order)
            ),
            Self::Swap(w, v, r, order) => format!(
                "r[{r}] = atomic_exchange_explicit(&p->w[{w}], {v}, {});",
                o(order)
            ),
            Self::Compare(w, a, b, r, order) => format!(
                "r[{r}] = {a}; atomic_compare_exchange_strong_explicit(&p->w[{w}], &r[{r}], {b}, \
                 {}, {});",
                o(order),
                failure(order)
            ),
            Self::Weak(w, a, b, r, order) => format!(
                "e = {a}; r[{r}] = atomic_compare_exchange_weak_explicit(&p->w[{w}], &e, {b}, {}, \
                 {});",
                o(order),
                failure(order)
            ),
            Self::Fence(order) => format!("atomic_thread_fence({});", o(order)),
            Self::Wait(w, v, order) => format!(
                "while (atomic_load_explicit(&p->w[{w}], {}) != {v}) lab_relax();",
                o(order)
            ),
            Self::Take(w, a, b, order) => format!(
                "for (;;) {{ e = {a}; if (atomic_load_explicit(&p->w[{w}], memory_order_relaxed) \
                 == {a} && atomic_compare_exchange_strong_explicit(&p->w[{w}], &e, {b}, {}, {})) \
                 break; lab_relax(); }}",
                o(order),
                failure(order)
            ),
            Self::Either([a, b], v, order) => format!(
                "while (atomic_load_explicit(&p->w[{a}], {0}) != {v} && \
                 atomic_load_explicit(&p->w[{b}], {0}) != {v}) ;",
                o(order)
            ),
        }
    }
}

impl Program {
    /// Reads a program: threads are divided by `|`, operations by `;`; `shown` has
    /// registers and words.
    pub(crate) fn parse(text: &str, shown: &str) -> Self {
        let thread = |text: &str| text.split(';').map(|op| Op::parse(op.trim())).collect();
        let (registers, words): (Vec<&str>, Vec<&str>) = shown
            .split_whitespace()
            .partition(|name| name.starts_with('r'));
        Self {
            threads: text.split('|').map(thread).collect(),
            registers: registers.into_iter().map(register).collect(),
            words: words.into_iter().map(word).collect(),
        }
    }

    /// Returns the number of an outcome: four bits for each value that is shown.
    pub(crate) fn outcome(&self, registers: &[u64], words: &[u64]) -> u64 {
        let shown = self.registers.iter().map(|&r| registers[r]);
        let shown = shown.chain(self.words.iter().map(|&w| words[w]));
        shown.fold(0, |outcome, value| outcome << 4 | value & 15)
    }

    /// Returns the same program as a file.
    pub(crate) fn c(&self) -> String {
        let mut text = String::from(
            "#include <locklab_lock.h>\n#include <stdatomic.h>\nstruct program { _Alignas(64) \
             _Atomic int w[3]; int r[6]; };\nLOCKLAB_LOCK(litmus, struct program, \
             lab_no_context);\n",
        );
        let names = ["lab_lock", "lab_unlock", "lab_read_lock", "lab_read_unlock"];
        for (number, name) in names.iter().enumerate() {
            let ops = self.threads.get(number).cloned().unwrap_or_default();
            let mut own: Vec<usize> = ops.iter().filter_map(|op| op.register()).collect();
            own.sort_unstable();
            own.dedup();
            let body: String = ops.iter().map(|op| format!("\t{}\n", op.c())).collect();
            let kept: String = own
                .iter()
                .map(|r| format!("\tp->r[{r}] = r[{r}];\n"))
                .collect();
            writeln!(
                text,
                "void {name}(void *lock, void *ctx)\n{{\n\tstruct program *p = lock; int r[6], \
                 e;\n\t(void)ctx; (void)r; (void)e; (void)p;\n{body}{kept}}}"
            )
            .unwrap();
        }
        let registers = self.registers.iter().map(|r| format!("p->r[{r}]"));
        let words = self
            .words
            .iter()
            .map(|w| format!("atomic_load_explicit(&p->w[{w}], memory_order_relaxed)"));
        let all: String = registers
            .chain(words)
            .map(|value| format!("\to = o << 4 | ({value} & 15);\n"))
            .collect();
        writeln!(
            text,
            "int lab_is_locked(const void *lock)\n{{\n\tstruct program *p = (void *)lock; int o = \
             0;\n{all}\treturn o;\n}}"
        )
        .unwrap();
        text
    }
}

impl Op {
    pub(crate) fn register(self) -> Option<usize> {
        match self {
            Self::Load(_, r, _)
            | Self::Add(_, _, r, _)
            | Self::Swap(_, _, r, _)
            | Self::Compare(_, _, _, r, _)
            | Self::Weak(_, _, _, r, _) => Some(r),
            _ => None,
        }
    }
}

type Word = <Loom as Platform>::U32;

/// One execution of a program in Rust.
struct Running {
    program: Program,
    words: [Word; WORDS.len()],
    registers: [AtomicU64; REGISTERS],
}

impl Running {
    fn act(&self, thread: usize) {
        for (line, &op) in self.program.threads[thread].iter().enumerate() {
            let here = || {
                Place {
                    file: "litmus",
                    line: (16 * thread + line + 1) as u32,
                    column: 1,
                }
                .set_caller();
            };
            let keep = |r: usize, value: u32| self.registers[r].store(value.into(), Relaxed);
            let failure = |order| match order {
                Ordering::Acquire | Ordering::AcqRel => Ordering::Acquire,
                Ordering::SeqCst => Ordering::SeqCst,
                _ => Ordering::Relaxed,
            };
            here();
            match op {
                Op::Load(w, r, order) => keep(r, self.words[w].load(order)),
                Op::Store(w, v, order) => self.words[w].store(v as u32, order),
                Op::Add(w, v, r, order) => keep(r, self.words[w].fetch_add(v as u32, order)),
                Op::Swap(w, v, r, order) => keep(r, self.words[w].swap(v as u32, order)),
                Op::Compare(w, a, b, r, order) | Op::Weak(w, a, b, r, order) => {
                    let word = &self.words[w];
                    let old = word.compare_exchange(a as u32, b as u32, order, failure(order));
                    match op {
                        Op::Compare(..) => keep(r, old.unwrap_or_else(|old| old)),
                        _ => keep(r, old.is_ok().into()),
                    }
                }
                Op::Fence(order) => Loom::fence(order),
                Op::Wait(w, v, order) => {
                    self.words[w].spin_until(order, |value| value == v as u32);
                }
                Op::Take(w, a, b, order) => loop {
                    here();
                    let seen = self.words[w].load(Ordering::Relaxed);
                    if seen == a as u32 {
                        here();
                        let (a, b) = (a as u32, b as u32);
                        let taken = self.words[w].compare_exchange(a, b, order, failure(order));
                        if taken.is_ok() {
                            break;
                        }
                    }
                    here();
                    Loom::relax();
                },
                Op::Either(words, v, order) => {
                    let has = |w: usize| {
                        here();
                        self.words[w].load(order) == v as u32
                    };
                    while !words.into_iter().any(has) {
                        here();
                        Loom::relax();
                    }
                }
            }
        }
    }
}

impl Subject for Program {
    fn info(&self) -> Info {
        Info::BASE
    }

    fn make(&self, _: bool) -> Box<dyn Instance> {
        Box::new(Running {
            program: self.clone(),
            words: std::array::from_fn(|_| Word::new(0)),
            registers: Default::default(),
        })
    }
}

impl Instance for Running {
    fn memory(&self) -> (usize, usize) {
        (0, 0)
    }

    fn context(&self) -> (Context, usize, usize) {
        (Box::new(()), 0, 0)
    }

    unsafe fn lock(&self, _: &Context) {
        self.act(0);
    }

    unsafe fn try_lock(&self, _: &Context) -> bool {
        false
    }

    unsafe fn unlock(&self, _: &Context) {
        self.act(1);
    }

    unsafe fn read(&self, _: &Context) {
        self.act(2);
    }

    unsafe fn read_unlock(&self, _: &Context) {
        self.act(3);
    }

    fn outcome(&self) -> u64 {
        let registers = std::array::from_fn::<_, REGISTERS, _>(|r| self.registers[r].load(Relaxed));
        let words =
            std::array::from_fn::<_, 3, _>(|w| self.words[w].load(Ordering::Relaxed).into());
        self.program.outcome(&registers, &words)
    }
}
