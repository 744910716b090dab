//! The kernel's events of a target, one buffer for each CPU.
//!
//! Every event of a CPU writes into one buffer, whose owner is an event that counts nothing
//! and tells of threads. Each says in each record which event it is.

use crate::fault::not_opened;
use crate::kinds::EventKind;
use crate::tracepoints::Tracepoints;
use locklab_host::error::Error;
use perf_event::data::endian::Native;
use perf_event::data::parse::ParseConfig;
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use perf_event_open_sys::ioctls;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;

/// Says whose events they are.
pub(crate) enum Scope<'a> {
    /// A process that waits for its exec.
    Starting(u32),
    /// Threads that run, and those that they make.
    Threads(&'a [u32]),
    /// Means what runs in a control group.
    Cgroup(&'a File),
    /// All of the machine.
    Machine,
}

/// Events that are open.
pub(crate) struct Open {
    /// One buffer for each CPU.
    pub(crate) buffers: Vec<Sampler>,
    /// The events of threads that write into another's buffer.
    others: Vec<Counter>,
    /// The first event of each group. While it is disabled the kernel does not look at the
    /// others of the group at a context switch.
    leaders: Vec<Counter>,
    members: Vec<Counter>,
    /// Holds what records with this identifier are, and how they are laid out.
    pub(crate) kinds: HashMap<u64, (EventKind, ParseConfig<Native>)>,
}

/// Bytes of the stack that the kernel copies where a thread begins to wait: enough for the
/// lock's own functions and some callers.
const STACK: u32 = 2048;
/// The size of a CPU's buffer that is asked for, in bytes, and the least.
const BUFFER: (usize, usize) = (8 << 20, 128 << 10);
/// Frames of the kernel that are told of a wait for one of its locks.
const KERNEL_FRAMES: u16 = 16;

/// The registers that unwinding begins with, as the kernel numbers them.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: u64 = 0;

/// Returns the CPUs that are online.
pub(crate) fn cpus() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse().ok()?..=to.parse().ok()?)
    });
    let cpus: Vec<usize> = ranges.flatten().collect();
    match cpus.is_empty() {
        true => vec![0],
        false => cpus,
    }
}

/// Returns whether this user may record by the kernel's events.
#[must_use]
pub fn is_permitted() -> bool {
    let own = [std::process::id()];
    Open::new(&Scope::Threads(&own), &EventKind::SYSTEM, "this program").is_ok()
}

impl Open {
    /// Opens the events of `kinds`, disabled.
    ///
    /// # Errors
    /// [`Error::Failed`] if the kernel has no such event, or does not permit it.
    pub(crate) fn new(scope: &Scope<'_>, kinds: &[EventKind], what: &str) -> Result<Self, Error> {
        Self::on(&cpus(), scope, kinds, what)
    }

    /// The same, on these CPUs.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub(crate) fn on(
        cpus: &[usize],
        scope: &Scope<'_>,
        kinds: &[EventKind],
        what: &str,
    ) -> Result<Self, Error> {
        let tracepoints = Tracepoints::find()?;
        let mut open = Self {
            buffers: Vec::new(),
            others: Vec::new(),
            leaders: Vec::new(),
            members: Vec::new(),
            kinds: HashMap::new(),
        };
        more_files();
        let failed = |e: io::Error| not_opened(what, &e);
        let one = [0];
        let tasks = match scope {
            Scope::Threads(threads) => threads,
            _ => &one[..],
        };
        for &cpu in cpus {
            let mut buffer: Option<Sampler> = None;
            for &task in tasks {
                let threads = || builder(EventKind::Threads, scope, task, cpu, None).build();
                let ended = || tasks.len() > 1 && !alive(task);
                let opened = match &buffer {
                    None => mapped(threads).map(|owner| {
                        open.know(&owner, EventKind::Threads);
                        buffer = Some(owner);
                    }),
                    Some(buffer) => threads().and_then(|counter| {
                        share(&counter, buffer)?;
                        open.know(&counter, EventKind::Threads);
                        open.others.push(counter);
                        Ok(())
                    }),
                };
                match opened {
                    Ok(()) => {}
                    Err(_) if ended() => continue,
                    Err(e) => return Err(failed(e)),
                }
                let Some(shared) = &buffer else { continue };
                let mut leader: Option<Counter> = None;
                for &kind in kinds {
                    let number = match kind.tracepoint().map(|name| tracepoints.number(name)) {
                        Some(Err(_)) if kind.may_lack() => continue,
                        Some(number) => Some(number?),
                        None => None,
                    };
                    let builder = builder(kind, scope, task, cpu, number);
                    let opened = match &mut leader {
                        Some(leader) => builder.build_with_group(leader),
                        None => builder.build(),
                    };
                    let counter = match opened {
                        Ok(counter) => counter,
                        Err(_) if ended() => break,
                        Err(e) => return Err(failed(e)),
                    };
                    if let Some(filter) = kind.filter() {
                        leave_out(&counter, &filter).map_err(failed)?;
                    }
                    share(&counter, shared).map_err(failed)?;
                    open.know(&counter, kind);
                    match leader {
                        Some(_) => open.members.push(counter),
                        None => leader = Some(counter),
                    }
                }
                open.leaders.extend(leader);
            }
            open.buffers.extend(buffer);
        }
        match open.buffers.is_empty() {
            true => Err(Error::Failed(format!(
                "{what} has ended before it could be recorded"
            ))),
            false => Ok(open),
        }
    }

    fn know(&mut self, counter: &Counter, kind: EventKind) {
        self.kinds
            .insert(counter.id(), (kind, counter.config().clone()));
    }

    /// Begins to record.
    ///
    /// # Errors
    /// Those of the system calls.
    pub(crate) fn enable(&mut self) -> io::Result<()> {
        self.all().try_for_each(Counter::enable)
    }

    /// Returns every event.
    fn all(&mut self) -> impl Iterator<Item = &mut Counter> {
        let owners = self.buffers.iter_mut().map(Sampler::as_counter_mut);
        let of_threads = owners.chain(&mut self.others);
        of_threads.chain(&mut self.leaders).chain(&mut self.members)
    }

    /// Returns those that say which threads there are.
    fn of_threads(&mut self) -> impl Iterator<Item = &mut Counter> {
        let owners = self.buffers.iter_mut().map(Sampler::as_counter_mut);
        owners.chain(&mut self.others)
    }

    /// Lets nothing be recorded. What goes on is left out when it is read.
    ///
    /// Also what threads there are: an event that is on makes the kernel look at all of them
    /// at each switch.
    pub(crate) fn pause(&mut self) {
        for counter in self.of_threads() {
            let _ = counter.disable();
        }
        for leader in &mut self.leaders {
            let _ = leader.disable();
        }
    }

    /// Lets it be recorded again which threads there are, and what they have mapped.
    pub(crate) fn follow_threads(&mut self) {
        for counter in self.of_threads() {
            let _ = counter.enable();
        }
    }

    /// Ends the pause. A group whose thread has ended is not enabled any more.
    pub(crate) fn resume(&mut self) {
        for leader in &mut self.leaders {
            let _ = leader.enable();
        }
    }

    /// Ends it. An event whose thread has ended is disabled already.
    pub(crate) fn disable(&mut self) {
        for counter in self.all() {
            // What cannot be disabled ends with its file.
            let _ = counter.disable();
        }
    }
}

fn alive(task: u32) -> bool {
    std::path::Path::new(&format!("/proc/{task}")).is_dir()
}

fn builder<'a>(
    kind: EventKind,
    scope: &Scope<'a>,
    task: u32,
    cpu: usize,
    tracepoint: Option<u64>,
) -> Builder<'a> {
    let mut builder = match (tracepoint, kind) {
        (Some(number), _) => Builder::new(Tracepoint::with_id(number)),
        (None, EventKind::Sampled) => Builder::new(Software::TASK_CLOCK),
        (None, _) => Builder::new(Software::DUMMY),
    };
    builder
        .one_cpu(cpu)
        .enabled(false)
        .include_kernel()
        .include_hv()
        .sample_period(1)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .sample(SampleFlag::IDENTIFIER)
        .sample(SampleFlag::TID)
        .sample(SampleFlag::TIME)
        .sample(SampleFlag::CPU);
    builder.wakeup_watermark(BUFFER.1 / 2);
    match scope {
        Scope::Starting(process) => {
            builder
                .observe_pid(process.cast_signed())
                .inherit(true)
                .enable_on_exec(true);
        }
        Scope::Threads(_) => {
            builder.observe_pid(task.cast_signed()).inherit(true);
        }
        Scope::Cgroup(folder) => {
            builder.observe_cgroup(folder);
        }
        Scope::Machine => {
            builder.any_pid();
        }
    }
    match kind {
        EventKind::Threads => {
            builder
                .mmap(true)
                .mmap2(true)
                .comm(true)
                .comm_exec(true)
                .task(true);
        }
        EventKind::Switches => {
            builder.context_switch(true);
        }
        EventKind::FutexWait
        | EventKind::Futex2Wait
        | EventKind::WaitForAny
        | EventKind::Sleep
        | EventKind::ClockSleep
        | EventKind::Sampled => {
            match kind {
                // Also in the kernel, where a thread yields.
                EventKind::Sampled => {
                    builder.sample_period(EventKind::SAMPLE);
                }
                _ => {
                    builder.sample(SampleFlag::RAW);
                }
            }
            if REGISTERS != 0 {
                builder
                    .sample(SampleFlag::REGS_USER)
                    .sample(SampleFlag::STACK_USER)
                    .sample_regs_user(REGISTERS)
                    .sample_stack_user(STACK);
            } else {
                builder
                    .sample(SampleFlag::CALLCHAIN)
                    .exclude_callchain_kernel(true);
            }
        }
        EventKind::ContentionBegin => {
            builder
                .sample(SampleFlag::RAW)
                .sample(SampleFlag::CALLCHAIN)
                .exclude_callchain_user(true)
                .sample_max_stack(KERNEL_FRAMES);
        }
        EventKind::FutexWake
        | EventKind::FutexEnd
        | EventKind::AnyEnd
        | EventKind::Futex2WaitEnd
        | EventKind::Futex2Wake
        | EventKind::Futex2WakeEnd
        | EventKind::Waking
        | EventKind::ContentionEnd => {
            builder.sample(SampleFlag::RAW);
        }
    }
    builder
}

/// Returns a buffer as large as this user may have, of an event that `owner` opens.
fn mapped(owner: impl Fn() -> io::Result<Counter>) -> io::Result<Sampler> {
    let mut bytes = BUFFER.0;
    loop {
        match owner()?.sampled(bytes) {
            Err(e)
                if bytes > BUFFER.1
                    && matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) =>
            {
                bytes /= 2;
            }
            mapped => return mapped,
        }
    }
}

/// Lets an event write into another's buffer.
fn share(counter: &Counter, buffer: &Sampler) -> io::Result<()> {
    // SAFETY: a control of an event that is open, with the file of another.
    let done = unsafe { ioctls::SET_OUTPUT(counter.as_raw_fd(), buffer.as_raw_fd()) };
    checked(done)
}

fn leave_out(counter: &Counter, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: a control of an event that is open, which reads a string that ends in a zero.
    let done = unsafe { ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
    checked(done)
}

fn checked(done: libc::c_int) -> io::Result<()> {
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Allows as many open files as this user may have: each event is one, on each CPU.
fn more_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where it fails, opening says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
