//! A program: locks, threads with their steps, classes of threads, and what was
//! recorded of it.

use locklab_trace::Module;

/// Names what a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It computes for so many nanoseconds.
    Work(u64),
    /// It acquires a lock, by its place in [`Program::locks`], which it does not
    /// hold.
    Acquire {
        /// Its place in [`Program::locks`].
        lock: u32,
        /// Says whether other readers may hold it too.
        shared: bool,
    },
    /// It releases a lock that it holds.
    Release {
        /// Its place in [`Program::locks`].
        lock: u32,
    },
    /// It waits until another thread has posted to this channel, and takes that.
    Await {
        /// The channel, a semaphore that is 0 at first.
        channel: u32,
    },
    /// It posts so often to a channel.
    Post {
        /// The number of the semaphore, which is 0 at first.
        channel: u32,
        /// Counts how many waits this ends.
        times: u32,
    },
    /// It waits for so many nanoseconds, without a CPU: for a deadline, or for
    /// something whose cause was not recorded.
    Idle(u64),
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// The number of its program image.
    pub image: u64,
    /// Its address in that image.
    pub address: u64,
    /// Says whether some acquisitions are shared.
    pub shared: bool,
    /// Acquisitions in the window.
    pub acquired: u64,
    /// The number of them that waited.
    pub contended: u64,
    /// The time for which it waited, in nanoseconds.
    pub waited_ns: f64,
    /// Says how long it was held.
    pub held_ns: f64,
    /// The time by which its sections are longer if another thread had it before, because
    /// what it protects has to move: in no step. `None` if the recording does not say,
    /// and then steps have it where it was.
    pub migration_ns: Option<f64>,
}

/// Sections of one lock that were entered at one place while nothing else was held:
/// those that held it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its place in [`Program::locks`]; `None` of a lock that is not among them.
    pub lock: Option<u32>,
    /// Says where it was acquired.
    pub site: Site,
    /// Counts how many were recorded.
    pub count: u64,
    /// Says how long they took, without what moving their data took; the longest and the
    /// shortest quarter do not count.
    pub mean_ns: f64,
}

/// A way to a call that acquires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The number of the program image.
    pub image: u64,
    /// Addresses after the calls, innermost first.
    pub frames: Vec<u64>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its number in the recording.
    pub number: u64,
    /// Its place in [`Program::classes`].
    pub class: usize,
    /// Holds what it does, again and again. It holds nothing before the first step and
    /// after the last.
    pub steps: Vec<Step>,
    /// Holds what its steps compute, in nanoseconds.
    pub work_ns: f64,
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Counts how many were recorded.
    pub threads: usize,
    /// Says whether there are more of them when there are more threads; otherwise they
    /// have a role of which there is one.
    pub scales: bool,
    /// Acquisitions of each a second.
    pub acquisitions_per_s: f64,
    /// The part of its time in which it computed.
    pub work: f64,
    /// Says where most of its acquisitions are from, with their part of all, the most
    /// frequent first.
    pub sites: Vec<(Site, f64)>,
}

/// Describes what was recorded in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The time at which the window begins, from the start of the recording, in nanoseconds.
    pub from_ns: f64,
    /// Nanoseconds from its first step to its last.
    pub window_ns: f64,
    /// Length of the whole recording.
    pub whole_ns: f64,
    /// CPUs of the machine, if the recording says.
    pub cpus: Option<usize>,
    /// Nanoseconds in which threads computed, all together.
    pub work_ns: f64,
    /// The time in which they waited for locks.
    pub waited_ns: f64,
    /// The time in which they acquired without waiting, and released.
    pub operations_ns: f64,
    /// The time in which they waited for other threads, whose step ends the wait.
    pub matched_ns: f64,
    /// The time in which they waited for what was not recorded.
    pub unmatched_ns: f64,
    /// The time in which threads were ready and no CPU can have run them. It is in no step.
    pub preempted_ns: f64,
    /// Counts how many CPUs other programs had, if the program had to share the machine's
    /// with them.
    pub shared_with: Option<f64>,
    /// Acquisitions in the window, of all threads.
    pub acquisitions: u64,
    /// Holds what the recorder took of an operation.
    pub recorder_ns: f64,
    /// Holds what an acquisition took of a lock that was free, without the recorder.
    pub free_ns: f64,
    /// Holds what a call took that woke a thread, in nanoseconds, if there were enough.
    pub wake_call_ns: Option<f64>,
    /// Says how long after its end that ran, in nanoseconds, if there were enough.
    pub wake_ns: Option<f64>,
    /// Says how many times as long the slowest tenth of these took as the quickest
    /// tenth.
    pub wake_spread: Option<f64>,
    /// Holds what a call took that found nobody to wake, in nanoseconds, if there were
    /// enough.
    pub call_ns: Option<f64>,
    /// Says how much longer the acquisition of a free lock took that another thread had
    /// had, on average, in nanoseconds, if there were enough of both: in no step.
    pub fetch_ns: Option<f64>,
    /// Threads of the recording that took no lock in the window, which have no
    /// part in the program.
    pub left_out_threads: usize,
    /// Locks that only one thread used, whose operations are work.
    pub private_locks: usize,
    /// Locks beyond the limit, whose operations are work too, and the
    /// part of all waiting that was for them.
    pub left_out_locks: (usize, f64),
}

impl Recorded {
    /// Returns the number of threads that computed at a time, on average: the rate at
    /// which the program got on.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.work_ns / self.window_ns.max(1.0)
    }

    /// Returns the part of the time in which threads had work that they waited for
    /// locks.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.waited_ns / (self.work_ns + self.operations_ns + self.waited_ns).max(1.0)
    }

    /// Returns the part of the waits for other threads, by time, that no recorded step
    /// ends.
    #[must_use]
    pub fn unmatched(&self) -> f64 {
        let all = self.matched_ns + self.unmatched_ns;
        if all > 0.0 {
            self.unmatched_ns / all
        } else {
            0.0
        }
    }
}

/// A program that can be run again.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Its locks, the one with the most waiting first.
    pub locks: Vec<Lock>,
    /// Its threads, in the order of the recording.
    pub threads: Vec<Thread>,
    /// Counts how many channels threads post to and wait for.
    pub channels: usize,
    /// The classes of its threads, the most numerous first.
    pub classes: Vec<Class>,
    /// Says how long its locks were held, by place.
    pub holds: Vec<Held>,
    /// The files in which call sites are.
    pub modules: Vec<Module>,
    /// Holds what the recording had of it in the window.
    pub recorded: Recorded,
}

/// A thread that runs: whose steps it takes, and from which on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The place of the thread in [`Program::threads`].
    pub thread: usize,
    /// The step with which it begins; it holds nothing then.
    pub start: usize,
}

impl Program {
    /// Returns the recorded number of threads of the classes that scale: what
    /// [`Program::cast`] takes.
    #[must_use]
    pub fn scaling_threads(&self) -> usize {
        let scaling = self.classes.iter().filter(|class| class.scales);
        scaling.map(|class| class.threads).sum()
    }

    /// Returns whether other numbers of threads can be run: what threads wait for is
    /// known.
    #[must_use]
    pub fn can_be_extrapolated(&self) -> bool {
        let recorded = &self.recorded;
        let idle = recorded.matched_ns + recorded.unmatched_ns;
        let ready = recorded.work_ns + recorded.operations_ns + recorded.preempted_ns;
        let lived = idle + ready + recorded.waited_ns;
        // Of what is seldom waited for, nothing has to be known: it changes rates by less
        // than a replay may be off. With more threads than CPUs, much of it is for a CPU.
        recorded.unmatched_ns <= 0.2 * idle || recorded.unmatched_ns <= 0.1 * lived
    }
}

impl Thread {
    /// Returns the steps before which it holds nothing.
    #[must_use]
    pub fn rests(&self) -> Vec<usize> {
        let mut held = 0_usize;
        let mut rests = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            if held == 0 {
                rests.push(at);
            }
            match step {
                Step::Acquire { .. } => held += 1,
                Step::Release { .. } => held = held.saturating_sub(1),
                _ => {}
            }
        }
        rests
    }

    /// Returns whether other threads end some of its waits, or it theirs: then it cannot
    /// begin anywhere.
    #[must_use]
    pub fn has_channels(&self) -> bool {
        let channel = |step: &Step| matches!(step, Step::Await { .. } | Step::Post { .. });
        self.steps.iter().any(channel)
    }
}
