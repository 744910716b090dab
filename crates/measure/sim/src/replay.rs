//! A recorded program under a lock on a modelled machine with an operating
//! system: more threads than hardware threads share those by slices, and a thread
//! that sleeps in a lock is woken by another, which both costs.

use crate::barging::Barging;
use crate::coroutine::{Coroutines, coroutine};
use crate::counts::{Counts, Limits};
use crate::engine::Engine;
use crate::error::{SimError, refused, unknuser_lock};
use crate::hypervisor::Hypervisor;
use crate::ideal::Ideal;
use crate::kind::{Kind, LockKind};
use crate::libraries::{self, Pthread};
use crate::machine::{FigureKey, Machine};
use crate::metrics::outcome;
use crate::outcome::Latency;
use crate::parking::{self, Lot};
use crate::platform::{Sim, Word};
use crate::play::{Locks, Player, Tally};
use crate::scenario::MOST_THREADS;
use crate::topology::{Placement, Topology};
use locklab_library_models::GlibcRw;
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::platform::{Atomic, Platform};
use locklab_locks::{Parking, RawLock};
use locklab_replay::{Program, Role, Step};
use std::ptr::NonNull;

/// The most locks of a program.
pub const MOST_LOCKS: usize = 256;

/// Says how waiters of a lock wait that does not sleep by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiters {
    /// They spin until they have it.
    Spin,
    /// They spin for about as long as a sleep costs, and then sleep; the lock is
    /// handed to them in its own order.
    SpinThenPark,
    /// They wait likewise behind a word, which threads that run may take before them.
    Barging,
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// Means what no lock can beat.
    Ideal,
    /// One of the catalogue, or of a library, whose locks wait as they do.
    Lock(&'a str, Waiters),
    /// Means what a program of glibc has: its mutexes, and its rwlocks for locks that
    /// readers share.
    Glibc,
}

/// A recorded program, a machine, and a lock in place of each of the program's.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// The machine, with every assumed figure as it is to be used.
    pub machine: &'a Machine,
    /// The lock in place of each of the program's.
    pub lock: Subject<'a>,
    /// The recorded steps of its threads.
    pub program: &'a Program,
    /// Its threads, as [`Program::cast`] gives them.
    pub roles: &'a [Role],
    /// Hardware threads that are used, or none for all.
    pub hardware_threads: Option<usize>,
    /// The order in which they are used.
    pub placement: Placement,
    /// The seed of all random choices.
    pub seed: u64,
    /// The work that is counted, of all threads together, ns; a fifth of it
    /// before that is not counted.
    pub work_ns: f64,
    /// The most events of the engine, after which the run is cut short.
    pub most_events: u64,
}

/// Describes what became of it. Times are simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Threads that compute at a time, on average: work done by time.
    pub rate: f64,
    /// Acquisitions a second.
    pub acquisitions_per_s: f64,
    /// Time to acquire.
    pub wait: Latency,
    /// The part of all threads' time that they waited for locks.
    pub waited: f64,
    /// CPUs that are busy with lock operations, on average: that spin, or are in
    /// calls of the system.
    pub burnt: f64,
    /// Jain's index of how far the threads of the largest class got.
    pub jain: f64,
    /// Holds for each lock its acquisitions, and the part of all waiting that is for it.
    pub locks: Vec<(u64, f64)>,
    /// Simulated seconds that were counted.
    pub seconds: f64,
    /// Waits for other threads.
    pub awaited: u64,
    /// The number of them that no thread could have ended any more, and that were cut
    /// short.
    pub forced: u64,
    /// The difference between the rates of the two halves of a run that was cut short
    /// at its most events, as the logarithm of a factor.
    pub cut: Option<f64>,
    /// Hash of every access: the same for the same replay and seed.
    pub trace_hash: u64,
    /// Events of the engine.
    pub events: u64,
}

/// Runs a program.
///
/// # Errors
/// [`SimError`] if there is no such lock, the program does not fit, or the lock
/// deadlocks, livelocks or admits two holders.
pub fn replay(replay: &Replay<'_>) -> Result<Replayed, SimError> {
    let (name, found) = match replay.lock {
        Subject::Ideal => {
            let ideal = Ideal::new(replay.program.locks.len());
            return play(replay, &Under::Ideal(&ideal));
        }
        Subject::Glibc => {
            let mutex = Kind::<Pthread>::by_word();
            let rwlock = Kind::<GlibcRw<Sim, false>>::by_word();
            let kind = |lock: &locklab_replay::Lock| -> &dyn LockKind {
                match lock.shared {
                    true => &rwlock,
                    false => &mutex,
                }
            };
            let kinds: Vec<&dyn LockKind> = replay.program.locks.iter().map(kind).collect();
            return play(replay, &Under::Kinds(&kinds));
        }
        Subject::Lock(name, Waiters::Spin) => {
            (name, catalogue::visit::<Sim, _>(name, Visited(replay)))
        }
        Subject::Lock(name, Waiters::SpinThenPark) => (
            name,
            catalogue::visit::<Parking<Lot>, _>(name, Visited(replay)),
        ),
        Subject::Lock(name, Waiters::Barging) => (
            name,
            catalogue::visit::<Parking<Lot>, _>(name, BehindAWord(replay)),
        ),
    };
    found
        .or_else(|| libraries::visit(name, Visited(replay)))
        .unwrap_or_else(|| Err(unknuser_lock(name)))
}

struct Visited<'a>(&'a Replay<'a>);

impl<P: Platform> Visitor<P> for Visited<'_> {
    type Output = Result<Replayed, SimError>;

    fn visit<L: RawLock<P>>(self) -> Self::Output {
        let kind = Kind::<L, P>::by_word();
        let kinds: Vec<&dyn LockKind> = vec![&kind; self.0.program.locks.len()];
        play(self.0, &Under::Kinds(&kinds))
    }
}

/// Runs with a word in front of each lock.
struct BehindAWord<'a>(&'a Replay<'a>);

impl<P: Platform> Visitor<P> for BehindAWord<'_> {
    type Output = Result<Replayed, SimError>;

    fn visit<L: RawLock<P>>(self) -> Self::Output {
        <Visited<'_> as Visitor<P>>::visit::<Barging<L, P>>(Visited(self.0))
    }
}

enum Under<'a> {
    /// The kind of each lock; all are of one platform.
    Kinds(&'a [&'a dyn LockKind]),
    Ideal(&'a Ideal),
}

impl Under<'_> {
    fn kinds(&self) -> &[&dyn LockKind] {
        match self {
            Self::Kinds(kinds) => kinds,
            Self::Ideal(_) => &[],
        }
    }

    fn readers_share(&self) -> bool {
        match self {
            Self::Kinds(kinds) => kinds.iter().any(|kind| kind.readers_share()),
            Self::Ideal(_) => true,
        }
    }
}

fn check(replay: &Replay<'_>) -> Result<usize, SimError> {
    let machine = replay.machine;
    let there = machine.hardware_threads();
    let hardware = replay.hardware_threads.unwrap_or(there);
    let fault = |what: String| Err(refused(what));
    let threads = replay.roles.len();
    if threads == 0 || threads > MOST_THREADS {
        return fault(format!(
            "{threads} threads of a program cannot be simulated; give 1 to {MOST_THREADS}"
        ));
    }
    if replay.program.locks.len() > MOST_LOCKS {
        return fault(format!(
            "the program has {} locks, and at most {MOST_LOCKS} can be simulated",
            replay.program.locks.len()
        ));
    }
    if hardware == 0 || hardware > there {
        return fault(format!(
            "{hardware} CPUs were asked for, but {} has {there}",
            machine.name
        ));
    }
    if replay
        .roles
        .iter()
        .any(|role| role.thread >= replay.program.threads.len())
    {
        return fault("a thread was asked for that the program does not have".to_owned());
    }
    Ok(hardware)
}

/// Returns the locks that a thread takes, each once.
fn taken(steps: &[Step], locks: usize) -> Vec<bool> {
    let mut taken = vec![false; locks];
    for step in steps {
        if let Step::Acquire { lock, .. } = step {
            taken[*lock as usize] = true;
        }
    }
    taken
}

fn play(replay: &Replay<'_>, under: &Under<'_>) -> Result<Replayed, SimError> {
    let hardware = check(replay)?;
    let (machine, program) = (replay.machine, replay.program);
    let (threads, locks) = (replay.roles.len(), program.locks.len());
    let order = Topology::new(machine).order(replay.placement, replay.seed);
    let used = &order[..hardware.min(threads)];
    let takes: Vec<Vec<bool>> = program
        .threads
        .iter()
        .map(|thread| taken(&thread.steps, locks))
        .collect();
    let steps = program.threads.iter().flat_map(|thread| &thread.steps);
    let longest = steps.map(|step| match step {
        Step::Work(ns) | Step::Idle(ns) => *ns,
        _ => 0,
    });
    let limits = Limits {
        warmup: u64::MAX,
        warmup_cycles: 0,
        acquisitions: u64::MAX,
        cycles: u64::MAX,
        precision: None,
        enough_after: None,
        longest_quiet_ns: longest.max().unwrap_or(0) as f64 * 4.0,
        readers_share: under.readers_share(),
        is_round: false,
    };
    let kinds = under.kinds();
    let of_locks: usize = kinds.iter().map(|kind| kind.lines().0).sum();
    let contexts = |role: &Role| -> usize {
        let of_lock = |(kind, &takes): (&&dyn LockKind, &bool)| usize::from(takes) * kind.lines().1;
        kinds.iter().zip(&takes[role.thread]).map(of_lock).sum()
    };
    let contexts: usize = replay.roles.iter().map(contexts).sum();
    let of_thread: usize = match kinds.first() {
        Some(kind) => kind.lines_of_thread().iter().sum(),
        None => 0,
    };
    let of_sleepers = match kinds.iter().any(|kind| kind.parks()) {
        true => libraries::lines_of_sleepers(threads),
        false => 0,
    };
    let lines = of_locks
        + contexts
        + threads * of_thread
        + program.channels
        + parking::lines()
        + of_sleepers;
    let system = Hypervisor::of_system(machine, threads, used);
    let engine = Engine::new(
        machine,
        match under {
            // What no lock can beat has no unlucky placement either.
            Under::Ideal(_) => system.without_queues(),
            Under::Kinds(_) => system,
        },
        threads,
        (lines, Vec::new()),
        replay.seed,
        Counts::new(
            match replay.lock {
                Subject::Ideal => "an ideal lock",
                Subject::Glibc => "glibc's lock",
                Subject::Lock(name, _) => name,
            },
            &machine.name,
            replay.seed,
            threads,
            // The counters are of one lock at least.
            locks.max(1),
            &limits,
        ),
        None,
    );
    let work = |ns: f64| ns.clamp(1.0, 1e15) as u64;
    let migration = |lock: &locklab_replay::Lock| {
        (lock.migration_ns.unwrap_or(0.0) * machine.get(FigureKey::CoreClockGhz)) as u64
    };
    let tally = Tally::new(
        threads,
        program.locks.iter().map(migration).collect(),
        program.channels,
        [work(replay.work_ns / 5.0), work(replay.work_ns)],
        replay.most_events,
    );
    engine.enter(|| play_in(&engine, replay, under, &takes, &tally));
    match engine.failure.take() {
        Some(error) => Err(error),
        None => Ok(replayed(&engine, replay, &tally)),
    }
}

fn play_in(
    engine: &Engine,
    replay: &Replay<'_>,
    under: &Under<'_>,
    takes: &[Vec<bool>],
    tally: &Tally,
) {
    let arena = &engine.memory.arena;
    let (program, threads) = (replay.program, replay.roles.len());
    parking::place(engine);
    let kinds = under.kinds();
    // What a thread has for all locks is of the platform's types.
    let of_threads = kinds.first();
    if let Some(kind) = of_threads
        && under.readers_share()
    {
        // One after the other, since each fills a line.
        let place = |thread| kind.place_reader(arena, format!("visible reader of {thread}"));
        let entries: Vec<*const ()> = (0..threads).map(place).collect();
        if let Some(first) = entries.first() {
            engine.visible.set((*first, entries.len()));
        }
    }
    let place = |(n, kind): (usize, &&dyn LockKind)| kind.place_lock(arena, format!("lock {n}"));
    let places: Vec<NonNull<()>> = kinds.iter().enumerate().map(place).collect();
    let locks = match under {
        Under::Kinds(kinds) => {
            for (kind, lock) in kinds.iter().zip(&places) {
                // SAFETY: just placed, by this kind, in the engine's arena.
                unsafe { kind.settle(*lock) };
            }
            Locks::Real(kinds, &places)
        }
        Under::Ideal(ideal) => Locks::Ideal(ideal),
    };
    let channels: Vec<&Word<u32>> = (0..program.channels)
        .map(|n| arena.place(format!("channel {n}"), Word::new(0)))
        .collect();
    let players: Vec<Player<'_>> = replay
        .roles
        .iter()
        .enumerate()
        .map(|(cpu, role)| {
            if let Some(kind) = of_threads {
                let label = format!("queue nodes of thread {cpu}");
                engine.cpus[cpu].nodes.set(kind.place_nodes(arena, label));
                if kinds.iter().any(|kind| kind.held_locks()) {
                    let label = format!("held locks of thread {cpu}");
                    engine.cpus[cpu].held.set(kind.place_held(arena, label));
                }
            }
            let takes = kinds.iter().zip(&takes[role.thread]).enumerate();
            let context = |(n, (kind, &takes)): (usize, (&&dyn LockKind, &bool))| {
                takes.then(|| {
                    let label = format!("context of lock {n} of thread {cpu}");
                    kind.place_context(arena, label)
                })
            };
            Player {
                locks,
                contexts: takes.map(context).collect(),
                steps: &program.threads[role.thread].steps,
                start: role.start,
                channels: &channels,
                tally,
            }
        })
        .collect();
    if kinds.iter().any(|kind| kind.parks()) {
        // The last, so that all else lies where it does for other locks.
        libraries::place_sleepers(engine);
    }
    let mut coroutines = Coroutines::default();
    for (cpu, player) in players.iter().enumerate() {
        // SAFETY: it borrows `players`, which is dropped after `coroutines`.
        unsafe { coroutine(&mut coroutines, engine, cpu, || player.run()) };
    }
    coroutines.run(engine);
}

fn replayed(engine: &Engine, replay: &Replay<'_>, tally: &Tally) -> Replayed {
    let outcome = outcome(engine);
    let cycles = outcome.seconds * 1e9 * engine.costs.clock_ghz;
    let of_all = cycles * replay.roles.len() as f64;
    let waited = tally.waited.get() as f64;
    Replayed {
        rate: tally.total.get() as f64 / (outcome.seconds * 1e9),
        acquisitions_per_s: outcome.acquisitions as f64 / outcome.seconds,
        wait: outcome.latency,
        waited: waited / of_all,
        burnt: tally.burnt.get() as f64 / cycles,
        jain: jain(replay, tally),
        locks: tally
            .locks
            .iter()
            .map(|lock| {
                (
                    lock.acquired.get(),
                    lock.waited.get() as f64 / waited.max(1.0),
                )
            })
            .collect(),
        seconds: outcome.seconds,
        awaited: tally.awaited.get(),
        forced: tally.forced.get(),
        cut: tally.halves(engine.counts.started.get(), engine.time.get()),
        trace_hash: outcome.trace_hash,
        events: outcome.events,
    }
}

/// Returns Jain's index of the work of the threads of the largest class, each by what its
/// sequence has.
fn jain(replay: &Replay<'_>, tally: &Tally) -> f64 {
    let of_class = replay
        .roles
        .iter()
        .zip(&tally.threads)
        .filter_map(|(role, done)| {
            let thread = &replay.program.threads[role.thread];
            (thread.class == 0 && thread.work_ns > 0.0)
                .then(|| done.work.get() as f64 / thread.work_ns)
        });
    let (mut count, mut sum, mut squares) = (0, 0.0, 0.0);
    for part in of_class {
        count += 1;
        sum += part;
        squares += part * part;
    }
    if squares > 0.0 {
        sum * sum / (f64::from(count) * squares)
    } else {
        1.0
    }
}
