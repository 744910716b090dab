//! The kernel's records, read and put into the order of time.
//!
//! It must never trust a byte: what cannot be read is counted, and left out.

use crate::kinds::EventKind;
use perf_event::data::endian::Native;
use perf_event::data::parse::{ParseConfig, Parser};
use perf_event::data::{Record, Sample};
use std::collections::HashMap;

/// A record with its time and thread.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) cpu: u32,
    pub(crate) what: What,
}

/// Names what a record says.
#[derive(Debug)]
pub(crate) enum What {
    /// A part of a file was mapped to be run.
    Mapped {
        from: u64,
        length: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// The thread has this name; `exec` says whether by a new image.
    Named { name: String, exec: bool },
    /// A thread was made; of another process, if by a fork.
    Made {
        process: u32,
        parent: u32,
        thread: u32,
    },
    /// The thread ends.
    Ended,
    /// It left its CPU; against its will, if `preempted`.
    Left { preempted: bool },
    /// It has a CPU.
    Came,
    /// It begins to wait in a futex call.
    Waits { address: u64, stack: Stack },
    /// It begins to sleep for a time.
    Sleeps { stack: Stack },
    /// It had a CPU, and was in the program.
    Sampled { stack: Stack },
    /// It begins to wake others in one.
    Wakes { address: u64 },
    /// A futex call has ended.
    FutexEnded { answer: i64 },
    /// It wakes a thread.
    Wakened { thread: u32 },
    /// It begins to wait for a lock of the kernel.
    Contended {
        lock: u64,
        flags: u32,
        calls: Vec<u64>,
    },
    /// That wait is over.
    Uncontended { lock: u64, got: bool },
}

/// The top of a thread's stack, or the calls that the kernel found there.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    pub(crate) registers: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) calls: Vec<u64>,
}

/// All that was recorded.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The records in the order of time.
    pub(crate) records: Vec<Raw>,
    /// Events that the kernel had no room for.
    pub(crate) lost: u64,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
}

/// Kinds of records that are not samples, and flags of switches, as the kernel numbers them.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
const SWITCH_OF_CPU: u32 = 15;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
const BY_EXEC: u16 = 1 << 13;
/// Addresses in a stack of calls from here on mark whose calls follow.
const MARKS: u64 = -4095_i64 as u64;

type Kinds = HashMap<u64, (EventKind, ParseConfig<Native>)>;

/// Reads what was collected.
pub(crate) fn read(mut bytes: &[u8], kinds: &Kinds) -> Records {
    let mut read = Records::default();
    let threads = kinds
        .values()
        .find(|(kind, _)| *kind == EventKind::Threads)
        .map(|(_, config)| config);
    let Some(threads) = threads else { return read };
    while let Some((header, rest)) = bytes.split_first_chunk::<8>() {
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let misc = u16::from_ne_bytes([header[4], header[5]]);
        let size = u16::from_ne_bytes([header[6], header[7]]);
        let Some(length) = usize::from(size)
            .checked_sub(8)
            .filter(|&l| l <= rest.len())
        else {
            read.unreadable += 1;
            break;
        };
        let (body, behind) = rest.split_at(length);
        bytes = behind;
        let parsed = match kind {
            SAMPLE => sample(body, (kind, misc, size), kinds),
            LOST => {
                // The record has the identifier, and how many were lost.
                read.lost += number(body, 8).unwrap_or(0);
                continue;
            }
            SWITCH | SWITCH_OF_CPU => switch(body, kind, misc).map(Some),
            _ => other(body, (kind, misc, size), threads),
        };
        match parsed {
            Some(Some(raw)) => read.records.push(raw),
            Some(None) => {}
            None => read.unreadable += 1,
        }
    }
    read.records.sort_by_key(|raw| raw.at);
    read
}

fn header((kind, misc, size): (u32, u16, u16)) -> perf_event_open_sys::bindings::perf_event_header {
    perf_event_open_sys::bindings::perf_event_header {
        type_: kind,
        misc,
        size,
    }
}

/// Returns a number of eight bytes at a place.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

/// Returns who and when, which is at the end of what is no sample: process, thread, time, CPU,
/// identifier.
fn trailer(body: &[u8]) -> Option<(u32, u32, u64, u32)> {
    let at = body.len().checked_sub(32)?;
    Some((
        half(body, at)?,
        half(body, at + 4)?,
        number(body, at + 8)?,
        half(body, at + 16)?,
    ))
}

fn switch(body: &[u8], _kind: u32, misc: u16) -> Option<Raw> {
    let (process, thread, at, cpu) = trailer(body)?;
    let what = match misc & OUT != 0 {
        true => What::Left {
            preempted: misc & PREEMPTED != 0,
        },
        false => What::Came,
    };
    Some(Raw {
        at,
        process,
        thread,
        cpu,
        what,
    })
}

/// Returns what is no sample; `Some(None)` if it says nothing that is needed.
fn other(body: &[u8], head: (u32, u16, u16), config: &ParseConfig<Native>) -> Option<Option<Raw>> {
    let mut parser = Parser::new(body, config.clone());
    let record = Record::parse_with_header(&mut parser, header(head)).ok()?;
    let what = match record {
        Record::Mmap2(map) => What::Mapped {
            from: map.addr,
            length: map.len,
            offset: map.pgoff,
            path: map.filename.split(|&byte| byte == 0).next()?.to_vec(),
        },
        Record::Comm(named) => What::Named {
            name: String::from_utf8_lossy(named.comm.split(|&byte| byte == 0).next()?).into_owned(),
            exec: head.1 & BY_EXEC != 0,
        },
        Record::Fork(made) => What::Made {
            process: made.pid,
            parent: made.ppid,
            thread: made.tid,
        },
        Record::Exit(_) => What::Ended,
        _ => return Some(None),
    };
    let (process, thread, at, cpu) = trailer(body)?;
    Some(Some(Raw {
        at,
        process,
        thread,
        cpu,
        what,
    }))
}

fn sample(body: &[u8], head: (u32, u16, u16), kinds: &Kinds) -> Option<Option<Raw>> {
    let (kind, config) = kinds.get(&number(body, 0)?)?;
    let mut parser = Parser::new(body, config.clone());
    let Ok(Record::Sample(sample)) = Record::parse_with_header(&mut parser, header(head)) else {
        return None;
    };
    let raw = sample.raw().unwrap_or_default();
    // Where the kernel puts the fields of these tracepoints is part of its interface.
    let what = match kind {
        EventKind::FutexWait | EventKind::Futex2Wait | EventKind::WaitForAny => What::Waits {
            address: number(raw, 16)?,
            stack: stack(&sample),
        },
        EventKind::Sleep | EventKind::ClockSleep => What::Sleeps {
            stack: stack(&sample),
        },
        EventKind::Sampled => What::Sampled {
            stack: stack(&sample),
        },
        EventKind::FutexWake | EventKind::Futex2Wake => What::Wakes {
            address: number(raw, 16)?,
        },
        EventKind::FutexEnd
        | EventKind::AnyEnd
        | EventKind::Futex2WaitEnd
        | EventKind::Futex2WakeEnd => What::FutexEnded {
            answer: number(raw, 16)?.cast_signed(),
        },
        EventKind::Waking => What::Wakened {
            thread: half(raw, 24)?,
        },
        EventKind::ContentionBegin => What::Contended {
            lock: number(raw, 8)?,
            flags: half(raw, 16)?,
            calls: calls(sample.callchain().unwrap_or_default()),
        },
        EventKind::ContentionEnd => What::Uncontended {
            lock: number(raw, 8)?,
            got: half(raw, 16)? == 0,
        },
        EventKind::Threads | EventKind::Switches => return Some(None),
    };
    Some(Some(Raw {
        at: sample.time()?,
        process: sample.pid()?,
        thread: sample.tid()?,
        cpu: sample.cpu()?,
        what,
    }))
}

fn stack(sample: &Sample<'_>) -> Stack {
    let registers = sample.regs_user().map(|registers| registers.regs.to_vec());
    Stack {
        registers: registers.unwrap_or_default(),
        bytes: sample.stack_user().unwrap_or_default().to_vec(),
        calls: calls(sample.callchain().unwrap_or_default()),
    }
}

/// Returns the calls without the marks between them, innermost first.
fn calls(chain: &[u64]) -> Vec<u64> {
    chain.iter().copied().filter(|&at| at < MARKS).collect()
}
