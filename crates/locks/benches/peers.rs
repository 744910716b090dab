//! Each lock against the best that others have of the same algorithm, all
//! measured in one run: lock and unlock without contention, and two threads
//! contending.
//!
//! `cargo bench -p locklab-locks` (`-- --rounds N` for more, `-- --quick` to
//! see that it works, `-- NAME` for some). Every round measures every lock once, in an order
//! drawn anew; a ratio is the median over the rounds of ours divided by the
//! peer's of the same round.

use core::hint::black_box;
use indicatif::{ProgressBar, ProgressStyle};
use locklab_locks::*;
use locklab_peers::{Contestant, Counts, InRust, Lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

type N = NativePlatform;

/// A lock of ours.
struct Ours<L>(L);

impl<L: RawLock<N>> Lock for Ours<L> {
    type Thread = L::Ctx;
    // CLH: nodes circulate.
    const THREAD_STAYS: bool = size_of::<L::Ctx>() == size_of::<ClhHandle>();

    #[inline(always)]
    fn pair(&self, ctx: &mut L::Ctx, critical: impl FnOnce()) {
        // SAFETY: one context a thread, which stays until the lock goes.
        unsafe {
            self.0.lock(ctx);
            critical();
            self.0.unlock(ctx);
        }
    }
}

/// One of ours, and whom it is measured against.
struct Pairing {
    ours: Box<dyn Contestant>,
    peers: &'static [&'static str],
    /// Whether the peers have the same algorithm. If not, nobody has, and
    /// they are what a user would take instead.
    same: bool,
}

fn pairings() -> Vec<Pairing> {
    fn ours<L: RawLock<N>>() -> Box<dyn Contestant> {
        Box::new(InRust::new(L::INFO.name, Ours(L::default())))
    }
    let word: &[_] = &["ck cas", "spin SpinMutex", "spinning_top"];
    let same: Vec<(_, &[_])> = vec![
        (ours::<Tas>(), &["ck fas"]),
        (
            ours::<Ttas>(),
            &["ck fas", "spin SpinMutex", "spinning_top"],
        ),
        (ours::<VirtSpin>(), word),
        (ours::<VirtSpinDelay>(), word),
        (
            ours::<VirtSpinBackoff>(),
            &["ck cas_eb", "spinning_top backoff"],
        ),
        (ours::<Ticket>(), &["ck ticket", "spin TicketMutex"]),
        (ours::<TicketProp>(), &["ck ticket_pb"]),
        (ours::<Anderson>(), &["ck anderson"]),
        (ours::<Clh>(), &["ck clh", "clhlock"]),
        (ours::<Mcs>(), &["ck mcs", "mcslock"]),
    ];
    let big: &[_] = &["parking_lot Reentrant"];
    let other: Vec<(_, &[_])> = vec![
        (ours::<QSpinlock>(), word),
        (ours::<QSpinlockVirt>(), word),
        (ours::<QSpinlockPv>(), &["parking_lot", "std Mutex"]),
        (ours::<MplockTicket>(), big),
        (ours::<MplockTicketPadded>(), big),
        (ours::<MplockAnderson>(), big),
        (ours::<MplockClh>(), big),
        (ours::<MplockMcs>(), big),
    ];
    let pairing = |same| move |(ours, peers)| Pairing { ours, peers, same };
    same.into_iter()
        .map(pairing(true))
        .chain(other.into_iter().map(pairing(false)))
        .collect()
}

/// Pairs in one measurement without contention: some 50 µs.
const PAIRS: u64 = 20_000;
/// Length of one measurement with contention.
const CONTENDED: Duration = Duration::from_millis(2);

struct Options {
    /// Locks of ours whose names contain one of these; all, if there is none.
    names: Vec<String>,
    uncontended_rounds: usize,
    contended_rounds: usize,
}

fn options() -> Options {
    let mut options = Options {
        names: Vec::new(),
        uncontended_rounds: 300,
        contended_rounds: 40,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => {
                options.uncontended_rounds = 5;
                options.contended_rounds = 2;
            }
            "--rounds" => {
                let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
                let Some(rounds) = rounds.filter(|&rounds: &usize| rounds > 0) else {
                    eprintln!("--rounds wants a number above 0, as in --rounds 300");
                    std::process::exit(2);
                };
                options.uncontended_rounds = rounds;
                options.contended_rounds = rounds.div_ceil(8);
            }
            // What cargo passes to every benchmark.
            flag if flag.starts_with('-') => {}
            name => options.names.push(name.to_owned()),
        }
    }
    options
}

/// What was measured of one lock, by round.
#[derive(Default)]
struct Samples {
    /// ns a pair, without contention.
    pair_ns: Vec<f64>,
    /// Operations a second of two threads together.
    ops: Vec<f64>,
    /// Changes of owner a second.
    handoffs: Vec<f64>,
}

/// NaN stands for a measurement that there is not.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Median over rounds of `ours / theirs`.
fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

/// Nails this thread to the `index`-th CPU that the process may use.
#[cfg(target_os = "linux")]
fn pin(index: usize) {
    // SAFETY: a zeroed set is an empty one; the calls read and write it.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
            return;
        }
        let cpus = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        if let Some(cpu) = cpus.clone().nth(index).or(cpus.clone().next()) {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut one);
            libc::sched_setaffinity(0, size, &raw const one);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

/// How often this thread was taken off its CPU against its will.
#[cfg(target_os = "linux")]
fn preemptions() -> libc::c_long {
    // SAFETY: a zeroed rusage is a valid one, and the call writes it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

#[cfg(not(target_os = "linux"))]
fn preemptions() -> i64 {
    0
}

/// Two threads on a lock: operations and handoffs a second. `None` if one of
/// them was preempted on the way: then the other had the lock to itself, or
/// waited.
fn contend(contestant: &dyn Contestant) -> Option<(f64, f64)> {
    let mut counts = Counts::default();
    let stop = AtomicBool::new(false);
    let arrived = AtomicU32::new(0);
    let arrive = || {
        arrived.fetch_add(1, Ordering::AcqRel);
        // Spun, not slept: both run when it begins.
        while arrived.load(Ordering::Acquire) < 2 {
            core::hint::spin_loop();
        }
    };
    let work = |me| {
        pin(me as usize);
        arrive();
        let before = preemptions();
        let begin = Instant::now();
        let pairs = contestant.contended(me, &counts, &stop);
        (pairs, begin.elapsed().as_secs_f64(), preemptions() - before)
    };
    let work = &work;
    let [a, b] = std::thread::scope(|scope| {
        let threads = [0, 1].map(|me| scope.spawn(move || work(me)));
        // Once: each waking may take one of them off its CPU.
        std::thread::sleep(CONTENDED);
        stop.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().unwrap())
    });
    let seconds = f64::midpoint(a.1, b.1);
    let late = seconds < CONTENDED.as_secs_f64() / 2.0;
    // On a machine of two CPUs this thread takes one of them to end it all.
    (!late && a.2 + b.2 <= 1).then(|| {
        (
            (a.0 + b.0) as f64 / seconds,
            counts.handoffs() as f64 / seconds,
        )
    })
}

/// How often a measurement with contention is repeated for want of a quiet
/// moment, before its round goes without.
const ATTEMPTS: usize = 10;

/// The round trip of a cache line between the two CPUs, in ns: what
/// contended figures depend on most.
fn round_trip() -> f64 {
    const TRIPS: u32 = 2_000;
    #[repr(align(64))]
    struct Line(AtomicU32);
    let ball = &Line(AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for trip in 0..TRIPS {
                while ball.0.load(Ordering::Acquire) != 2 * trip + 1 {
                    core::hint::spin_loop();
                }
                ball.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        scope
            .spawn(|| {
                pin(0);
                let mut shortest = f64::INFINITY;
                for batch in 0..TRIPS / 100 {
                    let begin = Instant::now();
                    for trip in batch * 100..(batch + 1) * 100 {
                        ball.0.store(2 * trip + 1, Ordering::Release);
                        while ball.0.load(Ordering::Acquire) != 2 * trip + 2 {
                            core::hint::spin_loop();
                        }
                    }
                    shortest = shortest.min(begin.elapsed().as_nanos() as f64 / 100.0);
                }
                shortest
            })
            .join()
            .unwrap()
    })
}

fn main() {
    let options = options();
    let mut pairings = pairings();
    let mut peers = locklab_peers::all();
    if !options.names.is_empty() {
        let wanted = |name: &str| options.names.iter().any(|part| name.contains(part));
        pairings.retain(|pairing| wanted(pairing.ours.name()));
        peers.retain(|peer| pairings.iter().any(|p| p.peers.contains(&peer.name())));
        if pairings.is_empty() {
            let names = options.names.join(" or ");
            eprintln!("no lock is called {names}; `locklab locks` lists them");
            std::process::exit(2);
        }
    }
    if !locklab_peers::HAS_CK {
        println!("Concurrency Kit is left out: install libck-dev and build again.");
    }
    let contestants: Vec<&dyn Contestant> = pairings
        .iter()
        .map(|pairing| pairing.ours.as_ref())
        .chain(peers.iter().map(AsRef::as_ref))
        .collect();
    let mut samples: HashMap<&str, Samples> = HashMap::new();
    let mut order: Vec<usize> = (0..contestants.len()).collect();
    let mut random = fastrand::Rng::with_seed(1);

    // Drawn on stderr, and only if that is a terminal.
    let bar = ProgressBar::new((options.uncontended_rounds + 8 * options.contended_rounds) as u64)
        .with_style(
            ProgressStyle::with_template("{bar:40} {percent}%, {eta} left")
                .expect("a constant template"),
        );
    std::thread::scope(|scope| {
        // A thread of its own: this one stays free to move.
        scope.spawn(|| {
            pin(0);
            for contestant in &contestants {
                contestant.uncontended(black_box(PAIRS));
            }
            for _ in 0..options.uncontended_rounds {
                random.shuffle(&mut order);
                for &index in &order {
                    let begin = Instant::now();
                    contestants[index].uncontended(black_box(PAIRS));
                    let ns = begin.elapsed().as_nanos() as f64 / PAIRS as f64;
                    let samples = samples.entry(contestants[index].name()).or_default();
                    samples.pair_ns.push(ns);
                }
                bar.inc(1);
            }
        });
    });
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
    let mut trips = Vec::new();
    if two {
        for _ in 0..options.contended_rounds {
            random.shuffle(&mut order);
            trips.push(round_trip());
            for &index in &order {
                let (ops, handoffs) = (0..ATTEMPTS)
                    .find_map(|_| contend(contestants[index]))
                    .unwrap_or((f64::NAN, f64::NAN));
                let samples = samples.entry(contestants[index].name()).or_default();
                samples.ops.push(ops);
                samples.handoffs.push(handoffs);
            }
            bar.inc(8);
        }
    }
    bar.finish_and_clear();

    print_uncontended(&pairings, &samples, options.uncontended_rounds);
    if two {
        print_contended(&pairings, &samples, &trips);
    } else {
        println!("\nNot measured: two threads contending. That needs two CPUs.");
    }
    print_peers(&peers, &samples);
}

/// The peer with the least time without contention, of those that are there.
fn fastest<'a>(names: &[&'a str], samples: &HashMap<&str, Samples>) -> Option<&'a str> {
    names
        .iter()
        .copied()
        .filter(|name| samples.contains_key(name))
        .min_by(|a, b| {
            let [a, b] = [a, b].map(|name| median(samples[name].pair_ns.iter().copied()));
            a.total_cmp(&b)
        })
}

fn mark(same: bool) -> char {
    if same { ' ' } else { '~' }
}

fn print_uncontended(pairings: &[Pairing], samples: &HashMap<&str, Samples>, rounds: usize) {
    println!("Lock and unlock, no contention: ns a pair, {rounds} rounds of {PAIRS} pairs");
    println!(
        "{:<22}{:>5} {:>6}   {:<22}{:>5} {:>6}",
        "", "min", "median", "fastest peer", "min", "ratio"
    );
    for Pairing { ours, peers, same } in pairings {
        let name = ours.name();
        let times = &samples[name].pair_ns;
        print!(
            "{name:<22}{:>5.2} {:>6.2}  ",
            minimum(times),
            median(times.iter().copied())
        );
        match fastest(peers, samples) {
            Some(peer) => println!(
                "{}{peer:<22}{:>5.2} {:>6.2}",
                mark(*same),
                minimum(&samples[peer].pair_ns),
                ratio(times, &samples[peer].pair_ns)
            ),
            None => println!("none here"),
        }
    }
    println!("ratio: ours / peer, median over rounds; below 1.00 ours is faster.");
    println!("~: nobody has this algorithm; what a user would take instead.");
}

fn print_contended(pairings: &[Pairing], samples: &HashMap<&str, Samples>, trips: &[f64]) {
    println!(
        "\nTwo threads on two CPUs: million operations and handoffs a second\n\
         (medians). Cache-line round trip {:.0} to {:.0} ns, median {:.0}.",
        minimum(trips),
        trips.iter().copied().fold(0.0, f64::max),
        median(trips.iter().copied())
    );
    println!(
        "{:<22}{:>6} {:>7}   {:<22}{:>6} {:>6}",
        "", "Mops/s", "handoff", "peer", "Mops/s", "ratio"
    );
    let mega = |values: &[f64]| median(values.iter().copied()) / 1e6;
    for Pairing { ours, peers, same } in pairings {
        let (name, Samples { ops, handoffs, .. }) = (ours.name(), &samples[ours.name()]);
        print!("{name:<22}{:>6.1} {:>7.2}  ", mega(ops), mega(handoffs));
        match fastest(peers, samples) {
            Some(peer) => println!(
                "{}{peer:<22}{:>6.1} {:>6.2}",
                mark(*same),
                mega(&samples[peer].ops),
                ratio(ops, &samples[peer].ops)
            ),
            None => println!("none here"),
        }
    }
    println!("ratio: ours / peer, median over rounds; above 1.00 ours does more.");
    println!("Few handoffs: one owner keeps taking the lock again.");
    let all = || samples.values().flat_map(|samples| &samples.ops);
    let missing = all().filter(|ops| ops.is_nan()).count();
    if missing > 0 {
        println!(
            "{missing} of {} measurements had no moment without preemption (NaN: none had).\n\
             Other programs want these CPUs; try again when they rest.",
            all().count()
        );
    }
}

fn print_peers(peers: &[Box<dyn Contestant>], samples: &HashMap<&str, Samples>) {
    println!("\nAll peers: ns a pair without contention; two threads as above");
    println!(
        "{:<22}{:>5} {:>6} {:>8} {:>8}",
        "", "min", "median", "Mops/s", "handoff"
    );
    for peer in peers {
        let samples = &samples[peer.name()];
        println!(
            "{:<22}{:>5.2} {:>6.2} {:>8.1} {:>8.2}",
            peer.name(),
            minimum(&samples.pair_ns),
            median(samples.pair_ns.iter().copied()),
            median(samples.ops.iter().copied()) / 1e6,
            median(samples.handoffs.iter().copied()) / 1e6
        );
    }
}
