//! Turns the kernel's records into the events of a recording: finds numbers for
//! threads, and names for stacks while the program's files are there.

use crate::addresses::{Mapping, Spaces};
use crate::kinds::EventKind;
use crate::raw::{Raw, Records, What};
use crate::recording::{Calls, Event, Events, Function, Happened, Head, Thread};
use crate::unwind::{Named, Stacks};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Describes what is known of the processes before the first record.
#[derive(Default)]
pub(crate) struct Before {
    /// Process and mapping.
    pub(crate) mapped: Vec<(u32, Mapping)>,
    /// Thread, process and name.
    pub(crate) threads: Vec<(u32, u32, String)>,
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

/// Returns the recording that records make which begin at a time of the monotonic clock,
/// with the times between windows, on the same clock.
pub(crate) fn events(
    records: Records,
    before: Before,
    head: Head,
    (from, gaps): (u64, &[(u64, u64)]),
) -> Events {
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
    if !acquired.threads.is_empty() && !gaps.is_empty() {
        for (begin, end) in gaps {
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
            What::Sampled { stack } => {
                let (calls, whole) = stacks.calls(raw.process, spaces.of(raw.process), &stack);
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

/// Nanoseconds between two reports of one wake-up.
const TOLD_TWICE: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Source;

    #[test]
    fn a_gap_ends_with_the_program() {
        let before = Before {
            threads: vec![(1, 1, "main".into())],
            ..Before::default()
        };
        let head = Head {
            length: 1000,
            ..Head::new(Source::System, "program", "machine", 2)
        };
        let events = events(Records::default(), before, head, (50, &[(150, 9000)]));
        let windows = events.windows().unwrap();
        assert!((windows.share - 0.1).abs() < 1e-9, "{windows:?}");
        assert!((events.recorded() - 100.0).abs() < 1e-6);
    }
}
