//! The lines that `perf script` writes of the kernel's lock tracepoints, and those
//! of the kernel itself, in `trace` of tracefs.
//!
//! It only reads text: what belongs together, `perf` decides. A line
//! that it does not know is an error with its number, and never skipped.

use std::fmt;

/// Says in one clause why a text makes no recording, or has no waits that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfError(pub(crate) String);

impl fmt::Display for PerfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PerfError {}

/// A lock tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// `lock:contention_begin`: a thread begins to wait.
    ContentionBegin,
    /// `lock:contention_end`; whether the thread has the lock.
    ContentionEnd {
        /// Says whether it has.
        got: bool,
    },
    /// `lock:lock_acquire`; whether the thread has the lock already.
    Acquire {
        /// Says whether it has.
        tried: bool,
    },
    /// `lock:lock_contended`: the lock is held, so its thread waits.
    Contended,
    /// `lock:lock_acquired`: the wait is over.
    Acquired,
    /// `lock:lock_release`: the lock is free.
    Release,
}

/// An event of a recording of perf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvent<'a> {
    /// The number of its line, from 1.
    pub line: usize,
    /// The thread's number in the system.
    pub task: u64,
    /// The CPU that it was on.
    pub cpu: u64,
    /// The time, in nanoseconds of the recording's clock.
    pub nanoseconds: u64,
    /// Holds what happened.
    pub point: Point,
    /// The address of the lock, or of what lockdep knows of it.
    pub lock: u64,
    /// Says whether other readers may have it too.
    pub shared: bool,
    /// Holds what the lock is called, where lockdep says it; of a wait its kind.
    pub name: &'a str,
    /// The calls that led there, innermost first: address, and symbol with
    /// offset.
    pub calls: Vec<(u64, &'a str)>,
}

/// Holds what the kernel writes instead of an event's name before calls.
const STACK: &str = "<stack trace>";

/// Functions of the tracepoints themselves, which are no callers.
const TRACING: [&str; 4] = [
    "__traceiter_",
    "trace_event_",
    "event_triggers_",
    "__trace_",
];

/// Returns the events of a text of `perf script` or of tracefs, lock tracepoints only.
///
/// # Errors
/// [`PerfError`] with the number of the line, if one is no line of such a text.
pub(crate) fn read(text: &str) -> Result<Vec<PerfEvent<'_>>, PerfError> {
    let mut events: Vec<PerfEvent<'_>> = Vec::new();
    // Whether calls belong to the last event.
    let mut calls = false;
    // The event whose calls the kernel writes.
    let mut waiting = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = head(line) {
            calls = false;
            if head.event == STACK {
                // The kernel writes calls behind an event of their own.
                let of = |event: &PerfEvent<'_>| (event.task, event.cpu) == (head.task, head.cpu);
                waiting = events.iter().rposition(of);
                continue;
            }
            waiting = None;
            if let Some(event) = event(number, &head)? {
                events.push(event);
                calls = true;
            }
            continue;
        }
        match call(line) {
            Some(call) => {
                let counts = call.0 != 0 && !TRACING.iter().any(|own| call.1.starts_with(own));
                let last = waiting.or_else(|| events.len().checked_sub(1).filter(|_| calls));
                if let (Some(last), true) = (last, counts) {
                    events[last].calls.push(call);
                }
            }
            // What perf, or the kernel, says of events that it lost.
            None if line.contains("LOST") => {
                calls = false;
                waiting = None;
            }
            None => {
                return Err(PerfError(format!(
                    "line {number} is no line of 'perf script' or tracefs"
                )));
            }
        }
    }
    Ok(events)
}

/// The parts of the line of an event.
struct Head<'a> {
    task: u64,
    cpu: u64,
    nanoseconds: u64,
    /// The name of the event, and what it says.
    event: &'a str,
    says: &'a str,
}

/// Reads `COMM PID[/TID] [CPU] SECONDS: [COUNT] GROUP:EVENT: ...`, or of tracefs
/// `COMM-TID [CPU] FLAGS SECONDS: EVENT: ...`, where the name of a command may have
/// spaces.
fn head(line: &str) -> Option<Head<'_>> {
    let mut before: [&str; 3] = [""; 3];
    let mut rest = line.trim_start();
    loop {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        rest = behind.trim_start();
        if let Some(nanoseconds) = word.strip_suffix(':').and_then(time) {
            let (task, cpu) = match (cpu(before[1]), cpu(before[2])) {
                (Some(cpu), _) => (before[0], cpu),
                (None, Some(cpu)) => (before[1], cpu),
                (None, None) => (before[2], 0),
            };
            let task = task.rsplit(['/', '-']).next()?.parse().ok()?;
            // The number of times that an event stands for.
            if let Some((count, behind)) = rest.split_once(char::is_whitespace)
                && count.parse::<u64>().is_ok()
            {
                rest = behind.trim_start();
            }
            if rest == STACK {
                return Some(Head {
                    task,
                    cpu,
                    nanoseconds,
                    event: STACK,
                    says: "",
                });
            }
            let end = rest
                .find(": ")
                .or_else(|| rest.strip_suffix(':').map(str::len))?;
            return Some(Head {
                task,
                cpu,
                nanoseconds,
                event: &rest[..end],
                says: rest[end + 1..].trim(),
            });
        }
        before = [before[1], before[2], word];
    }
}

/// Reads a CPU, such as `[003]`.
fn cpu(word: &str) -> Option<u64> {
    word.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Returns the seconds with a fraction, in nanoseconds.
fn time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * scale)
}

/// Reads `ADDRESS SYMBOL+0xOFFSET (FILE)`, behind white space, or of tracefs
/// `=> SYMBOL+0xOFFSET/0xLENGTH <ADDRESS>`.
fn call(line: &str) -> Option<(u64, &str)> {
    let words = line.strip_prefix(char::is_whitespace)?.trim_start();
    if let Some(words) = words.strip_prefix("=> ") {
        let (symbol, address) = words.trim_end().rsplit_once(" <")?;
        let address = u64::from_str_radix(address.strip_suffix('>')?, 16).ok()?;
        // A function of a module has the module's name behind it.
        let symbol = symbol.split(' ').next()?;
        return Some((address, symbol.split('/').next()?));
    }
    let (address, symbol) = words.split_once(char::is_whitespace)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    Some((address, symbol.split(" (").next()?.trim()))
}

/// The tracepoints that the kernel writes without the name of their group, and
/// that no other group has.
const CONTENTION: [&str; 2] = ["contention_begin", "contention_end"];

fn event<'a>(line: usize, head: &Head<'a>) -> Result<Option<PerfEvent<'a>>, PerfError> {
    let name = match head.event.strip_prefix("lock:") {
        Some(name) => name,
        None if CONTENTION.contains(&head.event) => head.event,
        None => return Ok(None),
    };
    let (address, rest) = head
        .says
        .split_once(char::is_whitespace)
        .unwrap_or((head.says, ""));
    let rest = rest.trim();
    let address = address.strip_prefix("lock_addr=").unwrap_or(address);
    let digits = match address.strip_prefix("0x") {
        Some(digits) => Some(digits),
        None => (address.len() == 16).then_some(address),
    };
    let lock = digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| {
            PerfError(format!(
                "line {line} has no address of a lock; record as root, with kernel.kptr_restrict 0"
            ))
        })?;
    let mut words = rest.split_whitespace().peekable();
    let mut shared = false;
    let mut kind = None;
    let point = match name {
        "contention_begin" => {
            shared = rest.contains("READ");
            kind = rest
                .strip_prefix("(flags=")
                .and_then(|rest| rest.strip_suffix(')'));
            Point::ContentionBegin
        }
        "contention_end" => Point::ContentionEnd {
            got: rest.contains("ret=0"),
        },
        "lock_acquire" => {
            let tried = words.next_if_eq(&"try").is_some();
            shared = words.next_if_eq(&"read").is_some();
            Point::Acquire { tried }
        }
        "lock_contended" => Point::Contended,
        "lock_acquired" => Point::Acquired,
        "lock_release" => Point::Release,
        _ => return Ok(None),
    };
    Ok(Some(PerfEvent {
        line,
        task: head.task,
        cpu: head.cpu,
        nanoseconds: head.nanoseconds,
        point,
        lock,
        shared,
        name: kind.or_else(|| words.next()).unwrap_or(""),
        calls: Vec::new(),
    }))
}
