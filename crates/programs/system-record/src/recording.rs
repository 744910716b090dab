//! A recording of the kernel's events: the file, its writer and its reader.
//!
//! Lines of JSON: what was recorded, its threads, the functions, the stacks of them, and an
//! event a line. All names are in it, so that it says the same on any machine. The reader
//! must never trust a line; a file that is cut off is read up to there.

use locklab_preload_run::SYSTEM_START;
use locklab_trace::InWindows;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read as _, Write};
use std::path::Path;

/// Parts of the time of which intervals are made.
pub(crate) const WINDOWS: usize = 100;

/// The version of the lines.
const SCHEMA: u32 = 1;

/// Names what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The waits of a program, by its futex calls.
    System,
    /// The waits for the kernel's own locks.
    Kernel,
}

/// Says why the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stopped {
    /// The program, or the process, ended.
    Program,
    /// The time was over.
    Seconds,
    /// The file was full.
    Full,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) locklab: String,
    pub(crate) schema: u32,
    pub(crate) source: Source,
    pub(crate) command: String,
    pub(crate) machine: String,
    pub(crate) cpus: usize,
    /// Counts how many CPUs others had on average, if that is known.
    pub(crate) others: Option<f64>,
    /// Says what a record cost the program, in nanoseconds, as measured before it began; older
    /// recordings lack it.
    #[serde(default)]
    pub(crate) record_ns: Option<f64>,
    /// Says how long was recorded, in nanoseconds.
    pub(crate) length: u64,
    pub(crate) stopped: Stopped,
    /// Events that the kernel had no room for.
    pub(crate) lost: u64,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    /// Says whether the kernel says the names of its functions.
    pub(crate) kernel_names: bool,
    /// Says whether loops that spin were found by their code; older recordings lack it.
    #[serde(default)]
    pub(crate) loops: bool,
    /// Names the runtime whose files the program has mapped, if there is one.
    #[serde(default)]
    pub(crate) runtime: Option<String>,
    pub(crate) functions: usize,
    pub(crate) stacks: usize,
    pub(crate) events: usize,
}

/// A thread of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) process: u32,
    pub(crate) task: u32,
    pub(crate) name: String,
}

/// A function of a stack: its name, its file and line if they are known, the program's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Function(
    pub(crate) String,
    pub(crate) Option<String>,
    pub(crate) String,
);

/// A stack of calls, by the numbers of functions, innermost first; and whether it was
/// followed to its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Calls(pub(crate) Vec<u32>, pub(crate) bool);

/// Holds a time, the number of the thread, and what happened. Times in a file are those
/// since the event before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event(pub(crate) u64, pub(crate) u32, pub(crate) Happened);

/// Names what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Happened {
    /// The thread was made.
    #[serde(rename = "b")]
    Begun,
    /// It ends.
    #[serde(rename = "e")]
    Ended,
    /// It has a CPU.
    #[serde(rename = "+")]
    Came,
    /// It leaves its CPU to wait.
    #[serde(rename = "-")]
    Left,
    /// The kernel takes its CPU.
    #[serde(rename = "p")]
    Preempted,
    /// It begins to wait: address, number of the stack.
    #[serde(rename = "w")]
    Waits(u64, u32),
    /// It begins to sleep for a time: number of the stack.
    #[serde(rename = "n")]
    Sleeps(u32),
    /// It had a CPU for so many nanoseconds since the last such event, or about that, and
    /// was there: number of the stack.
    #[serde(rename = "s")]
    Sampled(u64, u32),
    /// It begins to wake others: address.
    #[serde(rename = "k")]
    Wakes(u64),
    /// Its futex call ends with this answer.
    #[serde(rename = "f")]
    FutexEnded(i64),
    /// It wakes a thread of this number.
    #[serde(rename = "u")]
    Wakened(u32),
    /// It begins to wait for a lock of the kernel: address, flags, number of the stack.
    #[serde(rename = "c")]
    Contended(u64, u32, u32),
    /// That wait is over: address, and whether it has the lock.
    #[serde(rename = "d")]
    Uncontended(u64, bool),
    /// A window of recording begins, or ends: of all threads.
    #[serde(rename = "v")]
    Window(bool),
}

/// All of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    pub(crate) head: Head,
    pub(crate) threads: Vec<Thread>,
    pub(crate) functions: Vec<Function>,
    pub(crate) stacks: Vec<Calls>,
    /// The events in the order of time, from the begin of the recording.
    pub(crate) events: Vec<Event>,
    /// Says whether the file ends before its last event.
    pub(crate) cut: bool,
}

/// Returns whether a file begins as such a recording does.
#[must_use]
pub fn is_system_recording(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(file)
        .and_then(|file| file.take(SYSTEM_START.len() as u64).read_to_end(&mut start));
    read.is_ok() && is_start(&start)
}

/// Returns whether bytes are the start of such a recording.
pub(crate) fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(SYSTEM_START.as_bytes())
}

impl Head {
    /// Returns a head without lost events, of a program that ended.
    pub(crate) fn new(source: Source, command: &str, machine: &str, cpus: usize) -> Self {
        Self {
            locklab: "system recording".into(),
            schema: SCHEMA,
            source,
            command: command.into(),
            machine: machine.into(),
            cpus,
            others: None,
            record_ns: None,
            length: 0,
            stopped: Stopped::Program,
            lost: 0,
            unreadable: 0,
            kernel_names: true,
            loops: false,
            runtime: None,
            functions: 0,
            stacks: 0,
            events: 0,
        }
    }
}

impl Events {
    /// Writes the lines.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(to);
        let head = Head {
            functions: self.functions.len(),
            stacks: self.stacks.len(),
            events: self.events.len(),
            ..self.head.clone()
        };
        line(&mut out, &head)?;
        line(&mut out, &self.threads)?;
        self.functions
            .iter()
            .try_for_each(|one| line(&mut out, one))?;
        self.stacks.iter().try_for_each(|one| line(&mut out, one))?;
        let mut before = 0;
        for Event(at, thread, what) in &self.events {
            line(&mut out, &Event(at - before, *thread, *what))?;
            before = *at;
        }
        out.flush()
    }

    /// Reads them.
    ///
    /// # Errors
    /// A clause that says what is wrong with the file.
    pub fn read(from: impl BufRead) -> Result<Self, String> {
        let foreign = "it is no recording of 'locklab record'";
        let mut lines = from.lines();
        let mut next = || lines.next().and_then(Result::ok);
        let first = next().ok_or(foreign)?;
        if !is_start(first.as_bytes()) {
            return Err(foreign.into());
        }
        let head: Head = match serde_json::from_str(&first) {
            Ok(head) => head,
            Err(_) => return Err(other_version(&first)),
        };
        if head.schema != SCHEMA {
            return Err(other_version(&first));
        }
        let short = "it is cut off before its first event";
        let threads = next()
            .and_then(|line| serde_json::from_str(&line).ok())
            .ok_or(short)?;
        let mut functions = Vec::new();
        for _ in 0..head.functions {
            functions.push(
                next()
                    .and_then(|line| serde_json::from_str(&line).ok())
                    .ok_or(short)?,
            );
        }
        let mut stacks: Vec<Calls> = Vec::new();
        for _ in 0..head.stacks {
            stacks.push(
                next()
                    .and_then(|line| serde_json::from_str(&line).ok())
                    .ok_or(short)?,
            );
        }
        let mut read = Self {
            events: Vec::new(),
            cut: false,
            threads,
            functions,
            stacks,
            head,
        };
        let mut at: u64 = 0;
        for _ in 0..read.head.events {
            let event = next().and_then(|line| serde_json::from_str::<Event>(&line).ok());
            let Some(event) = event.filter(|event| read.knows(event)) else {
                read.cut = true;
                break;
            };
            at = at.saturating_add(event.0);
            read.events.push(Event(at, event.1, event.2));
        }
        Ok(read)
    }

    /// Returns whether all that an event names is there.
    fn knows(&self, event: &Event) -> bool {
        let thread = |number: u32| (number as usize) < self.threads.len();
        let stack = |number: u32| {
            self.stacks
                .get(number as usize)
                .is_some_and(|calls| calls.0.iter().all(|&f| (f as usize) < self.functions.len()))
        };
        thread(event.1)
            && match event.2 {
                Happened::Waits(_, number)
                | Happened::Sleeps(number)
                | Happened::Sampled(_, number)
                | Happened::Contended(_, _, number) => stack(number),
                Happened::Wakened(number) => thread(number),
                _ => true,
            }
    }

    /// Returns the windows that it is of, if it is not of the whole time.
    pub(crate) fn windows(&self) -> Option<InWindows> {
        let mut gaps = (0, 0);
        let mut begin = None;
        for Event(at, _, what) in &self.events {
            match what {
                Happened::Window(false) => begin = Some(*at),
                Happened::Window(true) => {
                    gaps.0 += 1;
                    gaps.1 += at - begin.take().unwrap_or(*at);
                }
                _ => {}
            }
        }
        let share = 1.0 - gaps.1 as f64 / self.head.length.max(1) as f64;
        (gaps.0 > 0).then_some(InWindows {
            count: gaps.0 + 1,
            share,
        })
    }

    /// Returns for how long was recorded, without the time between windows, ns.
    pub(crate) fn recorded(&self) -> f64 {
        self.head.length as f64 * self.windows().map_or(1.0, |windows| windows.share)
    }

    /// Returns the functions of a stack, innermost first.
    pub(crate) fn calls(&self, stack: u32) -> impl Iterator<Item = &Function> + Clone {
        let calls = self.stacks.get(stack as usize);
        let calls = calls.map_or(&[][..], |calls| &calls.0[..]);
        calls
            .iter()
            .filter_map(|&number| self.functions.get(number as usize))
    }
}

fn other_version(line: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
    match value.and_then(|value| value.get("schema")?.as_u64()) {
        Some(found) if found != u64::from(SCHEMA) => format!(
            "it is a system recording of format {found}, and this locklab reads format {SCHEMA}: \
             record again, or use the locklab that recorded it"
        ),
        _ => "its first line is damaged".into(),
    }
}

fn line(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, what)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Events {
        Events {
            head: Head {
                length: 900,
                functions: 1,
                stacks: 1,
                events: 2,
                ..Head::new(Source::System, "./a b", "machine", 2)
            },
            threads: vec![Thread {
                process: 1,
                task: 2,
                name: "a".into(),
            }],
            functions: vec![Function("f".into(), Some("f.c:1".into()), "a".into())],
            stacks: vec![Calls(vec![0], true)],
            events: vec![
                Event(100, 0, Happened::Waits(64, 0)),
                Event(300, 0, Happened::FutexEnded(-11)),
            ],
            cut: false,
        }
    }

    fn written() -> String {
        let mut bytes = Vec::new();
        small().write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Events::read(written().as_bytes()), Ok(small()));
    }

    #[test]
    fn a_file_that_is_cut_off_or_damaged_is_read_up_to_there() {
        let text = written();
        for length in 0..text.len() - 1 {
            let read = Events::read(&text.as_bytes()[..length]);
            assert!(read.is_err() || read.is_ok_and(|read| read.cut), "{length}");
        }
        // An event of a thread that is not there.
        let damaged = text.replace("[200,0,", "[200,7,");
        let read = Events::read(damaged.as_bytes()).unwrap();
        assert!(read.cut && read.events.len() == 1, "{read:?}");
    }

    #[test]
    fn a_file_of_another_version_says_so() {
        let text = written().replace("\"schema\":1", "\"schema\":9");
        let why = Events::read(text.as_bytes()).unwrap_err();
        assert!(
            why.starts_with("it is a system recording of format 9"),
            "{why}"
        );
        assert!(Events::read(&b"{}"[..]).is_err());
    }
}
