//! Turns the kernel's records into the events of a recording: finds numbers for
//! threads, and names for stacks while the program's files are there.

use crate::addresses::{Mapping, Spaces, mapped_now};
use crate::kinds::EventKind;
use crate::lock_names::{SPINS, told};
use crate::raw::{Raw, Records, What};
use crate::recording::{Calls, Event, Events, Function, Happened, Head, Thread};
use crate::spin_loops::DECODES;
use crate::target::threads;
use crate::unwind::{Named, Stacks};
use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Describes what `/proc` says of processes that run: what is recorded later does not say it
/// again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Process and mapping.
    pub(crate) mapped: Vec<(u32, Mapping)>,
    /// Thread, process and name.
    pub(crate) threads: Vec<(u32, u32, String)>,
}

impl Known {
    /// Returns what is mapped in processes now, and what their threads are called.
    pub(crate) fn of(processes: &[u32]) -> Self {
        let mut known = Self::default();
        for &process in processes {
            let mapped = mapped_now(process).into_iter();
            known
                .mapped
                .extend(mapped.map(|mapping| (process, mapping)));
            for task in threads(process).unwrap_or_default() {
                let name = fs::read_to_string(format!("/proc/{process}/task/{task}/comm"));
                let name = name.unwrap_or_default().trim().to_owned();
                known.threads.push((task, process, name));
            }
        }
        known
    }

    /// Returns the records that would have said it at a time. A process may have begun another
    /// image since it was recorded last, so its mappings begin anew.
    fn records(self, at: u64) -> impl Iterator<Item = Raw> {
        let record = move |process, thread, what| Raw {
            at,
            process,
            thread,
            cpu: 0,
            what,
        };
        let named = move |(thread, process, name)| {
            let exec = thread == process;
            record(process, thread, What::Named { name, exec })
        };
        let mapped = move |(process, mapping): (u32, Mapping)| {
            let what = What::Mapped {
                from: mapping.from,
                length: mapping.to - mapping.from,
                offset: mapping.offset,
                path: mapping.path.as_os_str().as_bytes().to_vec(),
            };
            record(process, process, what)
        };
        let threads = self.threads.into_iter().map(named);
        threads.chain(self.mapped.into_iter().map(mapped))
    }
}

/// A time between windows, on the clock of the records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// What was known shortly before its end, and when; nothing if no window follows.
    pub(crate) known: (u64, Known),
}

struct Acquired {
    threads: Vec<Thread>,
    numbers: HashMap<u32, u32>,
    functions: Vec<Function>,
    function_numbers: HashMap<Named, u32>,
    stacks: Vec<Calls>,
    stack_numbers: HashMap<Calls, u32>,
    events: Vec<Event>,
}

/// Returns the recording that records make: they begin at a time of the monotonic clock, when
/// what is `before` was known, and lack what happened in the gaps.
pub(crate) fn events(
    mut records: Records,
    before: Known,
    head: Head,
    (from, gaps): (u64, Vec<Gap>),
) -> Events {
    let times: Vec<_> = gaps.iter().map(|gap| (gap.begin, gap.end)).collect();
    let known = gaps.into_iter().map(|gap| gap.known);
    let known = known.flat_map(|(at, known)| known.records(at));
    records.records.extend(known);
    records.records.sort_by_key(|raw| raw.at);
    let mut acquired = Acquired {
        threads: Vec::new(),
        numbers: HashMap::new(),
        functions: Vec::new(),
        function_numbers: HashMap::new(),
        stacks: Vec::new(),
        stack_numbers: HashMap::new(),
        events: Vec::new(),
    };
    let (mut spaces, mut stacks) = (Spaces::default(), Stacks::default());
    for (process, mapping) in before.mapped {
        stacks.mapped(process, &mapping);
        spaces.of(process).map(mapping);
    }
    for (task, process, name) in before.threads {
        acquired.thread(process, task);
        acquired.named(task, &name);
    }
    for raw in records.records {
        acquired.add(raw, &mut spaces, &mut stacks, from);
    }
    if !acquired.threads.is_empty() && !times.is_empty() {
        for (begin, end) in times {
            for (at, begins) in [(begin, false), (end, true)] {
                // A gap ends when the end of the program is noticed, after that.
                let at = at.saturating_sub(from).min(head.length);
                let happened = Happened::Window(begins);
                acquired.events.push(Event(at, 0, happened));
            }
        }
        acquired.events.sort_by_key(|event| event.0);
    }
    Events {
        head: Head {
            lost: records.lost,
            unreadable: records.unreadable,
            kernel_names: stacks.kernel_has_names(),
            loops: DECODES,
            runtime: stacks.runtime.map(|runtime| runtime.name.into()),
            ..head
        },
        threads: acquired.threads,
        functions: acquired.functions,
        stacks: acquired.stacks,
        events: acquired.events,
        cut: false,
    }
}

impl Acquired {
    fn thread(&mut self, process: u32, task: u32) -> u32 {
        *self.numbers.entry(task).or_insert_with(|| {
            self.threads.push(Thread {
                process,
                task,
                name: String::new(),
            });
            self.threads.len() as u32 - 1
        })
    }

    fn named(&mut self, task: u32, name: &str) {
        if let Some(&number) = self.numbers.get(&task) {
            self.threads[number as usize].name = name.into();
        }
    }

    fn add(&mut self, raw: Raw, spaces: &mut Spaces, stacks: &mut Stacks, from: u64) {
        let at = raw.at.saturating_sub(from);
        let happened = match raw.what {
            What::Mapped {
                from,
                length,
                offset,
                path,
            } => {
                let path = String::from_utf8_lossy(&path).into_owned();
                // What is no file, such as the kernel's own page, has no name here.
                if !path.starts_with('/') || path.starts_with("//") {
                    return;
                }
                let mapping = Mapping {
                    from,
                    to: from.saturating_add(length),
                    offset,
                    path: Arc::new(PathBuf::from(path)),
                };
                stacks.mapped(raw.process, &mapping);
                spaces.of(raw.process).map(mapping);
                return;
            }
            What::Named { name, exec } => {
                self.thread(raw.process, raw.thread);
                self.named(raw.thread, &name);
                if !exec {
                    return;
                }
                spaces.exec(raw.process);
                stacks.begins(raw.process, spaces.of(raw.process));
                Happened::Begun
            }
            What::Made {
                process,
                parent,
                thread,
            } => {
                if process != parent {
                    spaces.forked(parent, process);
                    stacks.begins(process, spaces.of(process));
                }
                // A number that is used again is another thread.
                self.numbers.remove(&thread);
                let number = self.thread(process, thread);
                self.events.push(Event(at, number, Happened::Begun));
                return;
            }
            What::Ended => Happened::Ended,
            What::Left { preempted: true } => Happened::Preempted,
            What::Left { preempted: false } => Happened::Left,
            What::Came => Happened::Came,
            What::Waits { address, stack } => {
                let (calls, whole) = stacks.calls(raw.process, spaces.of(raw.process), &stack);
                Happened::Waits(address, self.stack(calls, whole))
            }
            What::Sleeps { stack } => {
                let (calls, whole) = stacks.calls(raw.process, spaces.of(raw.process), &stack);
                Happened::Sleeps(self.stack(calls, whole))
            }
            What::Sampled { stack } => {
                let space = spaces.of(raw.process);
                let (mut calls, whole) = stacks.calls(raw.process, space, &stack);
                let known = told(calls.iter().map(|named| named.function.as_str())).is_some();
                if !known && stacks.spins(raw.process, space, &stack) {
                    calls.insert(0, spinning());
                }
                Happened::Sampled(EventKind::SAMPLE, self.stack(calls, whole))
            }
            What::Wakes { address } => Happened::Wakes(address),
            What::FutexEnded { answer } => Happened::FutexEnded(answer),
            What::Wakened { thread } => match self.numbers.get(&thread) {
                Some(&number) => Happened::Wakened(number),
                // A thread that is not recorded.
                None => return,
            },
            What::Contended { lock, flags, calls } => {
                let calls = stacks.kernel_calls(&calls);
                Happened::Contended(lock, flags, self.stack(calls, true))
            }
            What::Uncontended { lock, got } => Happened::Uncontended(lock, got),
        };
        // The idle tasks of all CPUs have one number.
        let task = match raw.thread {
            0 => u32::MAX - raw.cpu,
            task => task,
        };
        let thread = self.thread(raw.process, task);
        let event = Event(at, thread, happened);
        // A wake-up is told to the waker and to the woken.
        let twice = matches!(happened, Happened::Wakened(_))
            && self.events.last().is_some_and(|last| {
                last.1 == event.1 && last.2 == event.2 && at - last.0 < TOLD_TWICE
            });
        if !twice {
            self.events.push(event);
        }
    }

    fn stack(&mut self, calls: Vec<Named>, whole: bool) -> u32 {
        let numbers = calls.into_iter().map(|named| {
            *self
                .function_numbers
                .entry(named)
                .or_insert_with_key(|named| {
                    self.functions.push(Function(
                        named.function.clone(),
                        named.line.clone(),
                        named.file.clone(),
                    ));
                    self.functions.len() as u32 - 1
                })
        });
        let calls = Calls(numbers.collect(), whole);
        if let Some(&number) = self.stack_numbers.get(&calls) {
            return number;
        }
        let number = self.stacks.len() as u32;
        self.stacks.push(calls.clone());
        self.stack_numbers.insert(calls, number);
        number
    }
}

/// Returns what stands in a stack for a loop that only waits.
fn spinning() -> Named {
    Named {
        function: SPINS.into(),
        line: None,
        file: String::new(),
    }
}

/// Nanoseconds between two reports of one wake-up.
const TOLD_TWICE: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Source;

    #[test]
    fn a_gap_ends_with_the_program() {
        let before = Known {
            threads: vec![(1, 1, "main".into())],
            ..Known::default()
        };
        let head = Head {
            length: 1000,
            ..Head::new(Source::System, "program", "machine", 2)
        };
        let gap = Gap {
            begin: 150,
            end: 9000,
            known: (9000, Known::default()),
        };
        let events = events(Records::default(), before, head, (50, vec![gap]));
        let windows = events.windows().unwrap();
        assert!((windows.share - 0.1).abs() < 1e-9, "{windows:?}");
        assert!((events.recorded() - 100.0).abs() < 1e-6);
    }

    /// Its first thread is known from the begin, and another of which only `/proc` says that it
    /// is there when a window begins.
    #[test]
    fn a_thread_that_began_between_windows_has_its_name() {
        let thread = |task: u32, name: &str| (task, 1, name.to_owned());
        let of = |threads| Known {
            threads,
            ..Known::default()
        };
        let before = of(vec![thread(1, "sh")]);
        let later = of(vec![thread(1, "server"), thread(2, "worker")]);
        let records = Records {
            records: vec![Raw {
                at: 900,
                process: 1,
                thread: 2,
                cpu: 0,
                what: What::Came,
            }],
            ..Records::default()
        };
        let head = Head {
            length: 1000,
            ..Head::new(Source::System, "program", "machine", 2)
        };
        let gap = Gap {
            begin: 150,
            end: 650,
            known: (600, later),
        };
        let events = events(records, before, head, (0, vec![gap]));
        let names: Vec<&str> = events.threads.iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["server", "worker"]);
    }
}
