//! The events that are asked of the kernel, and what each carries.
//!
//! Must never know of a program or a lock.

/// An event that the kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventKind {
    /// Mappings, names and ends of threads. It owns the buffer.
    Threads,
    /// A thread gets a CPU or leaves it.
    Switches,
    /// A futex call that waits begins; it carries the top of the stack.
    FutexWait,
    /// A futex call that wakes begins.
    FutexWake,
    /// A futex call ends.
    FutexEnd,
    /// The same for the calls that came with Linux 5.16 and 6.7, which have numbers of their
    /// own: a wait for any of several words, for one, a wake-up, and their ends.
    WaitForAny,
    AnyEnd,
    Futex2Wait,
    Futex2WaitEnd,
    Futex2Wake,
    Futex2WakeEnd,
    /// A thread has had a CPU for [`SAMPLE`](EventKind::SAMPLE) more; it carries the top of
    /// the stack.
    Sampled,
    /// A call that sleeps begins; it carries the top of the stack.
    Sleep,
    ClockSleep,
    /// A thread is woken; the waker is the current one.
    Waking,
    /// A wait for a lock of the kernel begins; it carries the kernel's calls.
    ContentionBegin,
    /// A contention ends.
    ContentionEnd,
}

/// The operations of futex that wait, with and without the bits for private addresses and
/// for the realtime clock.
const WAITS: [u32; 16] = [
    0, 128, 9, 137, 265, 393, 6, 134, 13, 141, 269, 397, 11, 139, 267, 395,
];
/// The operations that wake.
const WAKES: [u32; 14] = [1, 129, 10, 138, 5, 133, 3, 131, 4, 132, 7, 135, 12, 140];

impl EventKind {
    /// Nanoseconds of CPU time between samples of a thread; not in step with timers.
    pub(crate) const SAMPLE: u64 = 1_009_000;
    /// The events of a program's waits.
    pub(crate) const SYSTEM: [Self; 14] = [
        Self::Switches,
        Self::FutexWait,
        Self::FutexWake,
        Self::FutexEnd,
        Self::Waking,
        Self::Sampled,
        Self::Sleep,
        Self::ClockSleep,
        Self::WaitForAny,
        Self::AnyEnd,
        Self::Futex2Wait,
        Self::Futex2WaitEnd,
        Self::Futex2Wake,
        Self::Futex2WakeEnd,
    ];
    /// The events of waits for the kernel's locks.
    pub(crate) const KERNEL: [Self; 2] = [Self::ContentionBegin, Self::ContentionEnd];

    /// Returns the name of its tracepoint.
    pub(crate) fn tracepoint(self) -> Option<&'static str> {
        Some(match self {
            Self::Threads | Self::Switches | Self::Sampled => return None,
            Self::FutexWait | Self::FutexWake => "syscalls/sys_enter_futex",
            Self::FutexEnd => "syscalls/sys_exit_futex",
            Self::Sleep => "syscalls/sys_enter_nanosleep",
            Self::ClockSleep => "syscalls/sys_enter_clock_nanosleep",
            Self::WaitForAny => "syscalls/sys_enter_futex_waitv",
            Self::AnyEnd => "syscalls/sys_exit_futex_waitv",
            Self::Futex2Wait => "syscalls/sys_enter_futex_wait",
            Self::Futex2WaitEnd => "syscalls/sys_exit_futex_wait",
            Self::Futex2Wake => "syscalls/sys_enter_futex_wake",
            Self::Futex2WakeEnd => "syscalls/sys_exit_futex_wake",
            // sched_wakeup may be told by another CPU than the waker's.
            Self::Waking => "sched/sched_waking",
            Self::ContentionBegin => "lock/contention_begin",
            Self::ContentionEnd => "lock/contention_end",
        })
    }

    /// Returns whether an older kernel lacks it, and its programs never make the call.
    pub(crate) fn may_lack(self) -> bool {
        matches!(
            self,
            Self::WaitForAny
                | Self::AnyEnd
                | Self::Futex2Wait
                | Self::Futex2WaitEnd
                | Self::Futex2Wake
                | Self::Futex2WakeEnd
        )
    }

    /// Returns what the kernel shall leave out, in its language.
    pub(crate) fn filter(self) -> Option<String> {
        let one_of = |numbers: &[u32]| {
            let tests: Vec<String> = numbers.iter().map(|op| format!("op=={op}")).collect();
            tests.join("||")
        };
        match self {
            Self::FutexWait => Some(one_of(&WAITS)),
            Self::FutexWake => Some(one_of(&WAKES)),
            _ => None,
        }
    }
}
