//! Each lock against the best that others have of the same algorithm, all
//! measured in one run: lock and unlock without contention, and two threads
//! contending.
//!
//! `cargo bench -p locklab-locks` (`-- --rounds N` for more, `-- --quick` to
//! see that it works, `-- NAME` for some). Every round measures every lock once, in an order
//! drawn anew; a ratio is the median over the rounds of ours divided by the
//! peer's of the same round.

mod contention;
mod tables;

use contention::{contend, pin, round_trip};
use core::hint::black_box;
use indicatif::{ProgressBar, ProgressStyle};
use locklab_locks::*;
use locklab_peers::{Contestant, InRust, Lock};
use std::collections::HashMap;
use std::time::Instant;

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

/// How often a measurement with contention is repeated for want of a quiet
/// moment, before its round goes without.
const ATTEMPTS: usize = 10;

fn main() {
    let options = options();
    let mut pairings = pairings();
    let mut peers = locklab_peers::all();
    if !options.names.is_empty() {
        let wanted = |name: &str| options.names.iter().any(|part| name.contains(part));
        pairings.retain(|pairing| wanted(pairing.ours.name()));
        peers.retain(|peer| pairings.iter().any(|p| p.peers.contains(&peer.name())));
        if pairings.is_empty() {
            // No error: cargo hands one filter to every benchmark there is.
            let names = options.names.join(" or ");
            println!("Nothing measured: no lock's name contains {names}.");
            return;
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

    tables::uncontended(&pairings, &samples, options.uncontended_rounds);
    if two {
        tables::contended(&pairings, &samples, &trips);
    } else {
        println!("\nNot measured: two threads contending. That needs two CPUs.");
    }
    tables::peers(&peers, &samples);
}
