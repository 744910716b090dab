//! The names of metrics that several backends give, by which stores, reports
//! and other tools know them. Those of locks are in [`crate::matrix`]. Nothing
//! here measures.

/// Time of a run.
pub const ELAPSED: &str = "elapsed";
/// Work a second.
pub const THROUGHPUT: &str = "throughput";
/// Instructions of both modes, counted by the processor or by an emulator.
pub const INSTRUCTIONS: &str = "instructions";
/// The ones of the kernel.
pub const INSTRUCTIONS_KERNEL: &str = "instructions:k";
/// The ones of user code.
pub const INSTRUCTIONS_USER: &str = "instructions:u";
/// Instructions of a program's emulated execution, beside a run on hardware.
pub const INSTRUCTIONS_MODELLED: &str = "instructions-modelled";
/// Cycles of both modes, by the processor's counter or by a model of its front end.
pub const CYCLES: &str = "cycles";
/// The ones of the kernel.
pub const CYCLES_KERNEL: &str = "cycles:k";
/// The ones of user code.
pub const CYCLES_USER: &str = "cycles:u";
/// The ones of a span of code that a kernel marks, both modes.
pub const CYCLES_SPAN: &str = "cycles:span";
/// The ones that two reads of the time-stamp counter around such a span report.
pub const CYCLES_READS: &str = "cycles:reads";
/// Misses of the first-level instruction cache, of the model.
pub const L1I_MISSES: &str = "l1i-misses";
/// The ones of the kernel.
pub const L1I_MISSES_KERNEL: &str = "l1i-misses:k";
/// The ones of user code.
pub const L1I_MISSES_USER: &str = "l1i-misses:u";
/// Bytes of a program's function symbols.
pub const TEXT: &str = "text";
