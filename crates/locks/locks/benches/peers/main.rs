//! Each lock against others' locks of the same algorithm, side by side:
//! lock and unlock without contention, back to back and at a program's distance,
//! and two threads contending.
//!
//! `cargo bench -p locklab-locks` (`-- --blocks N` for narrower intervals,
//! `-- --quick` to see that it works, `-- NAME` for some). Ours and a peer run
//! in short slices, one after the other, a coin deciding which goes first; the
//! slices of a block are summed, and the judge decides over the blocks: slower,
//! faster, or shown equal within 1 %. No figure is a ratio of two runs that were
//! made at different times.

mod alone;
mod contention;
mod tables;

use alone::{SLICES, alone, distances};
use contention::{Contended, contend, pin, round_trip};
use indicatif::{ProgressBar, ProgressStyle};
use locklab_judge::{
    Comparison, Direction, Family, Judged, Order, Pair, Settings, Side, coin, fork_seed, judge,
};
use locklab_locks::host::*;
use locklab_locks::kernel::*;
use locklab_locks::queue::*;
use locklab_locks::spin::*;
use locklab_locks::*;
use locklab_peers::{Contestant, InRust, Lock};

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

/// Makes a contestant, in memory of its own: another place each time.
type Make = fn() -> Box<dyn Contestant>;

/// One of ours, and whom it is measured against.
struct Pairing {
    ours: Make,
    peers: &'static [&'static str],
    /// Says whether the peers have the same algorithm. If not, nobody has, and
    /// they are what a user would take instead.
    same: bool,
}

fn pairings() -> Vec<Pairing> {
    fn ours<L: RawLock<N>>() -> Box<dyn Contestant> {
        Box::new(InRust::new(L::INFO.name, Ours(L::default())))
    }
    let word: &[_] = &["ck cas", "spin SpinMutex", "spinning_top"];
    let same: Vec<(Make, &[_])> = vec![
        (ours::<Tas>, &["ck fas"]),
        (ours::<TasWord>, &["ck fas"]),
        (ours::<Ttas>, &["ck fas", "spin SpinMutex", "spinning_top"]),
        (
            ours::<TtasWord>,
            &["ck fas", "spin SpinMutex", "spinning_top"],
        ),
        (ours::<VirtSpin>, word),
        (ours::<VirtSpinDelay>, word),
        (
            ours::<VirtSpinBackoff>,
            &["ck cas_eb", "spinning_top backoff"],
        ),
        (ours::<Ticket>, &["ck ticket", "spin TicketMutex"]),
        (ours::<TicketProp>, &["ck ticket_pb"]),
        (ours::<Anderson>, &["ck anderson"]),
        (ours::<Clh>, &["ck clh", "clhlock"]),
        (ours::<Mcs>, &["ck mcs", "mcslock"]),
    ];
    let big: &[_] = &["parking_lot Reentrant"];
    let other: Vec<(Make, &[_])> = vec![
        (ours::<QSpinlock>, word),
        (ours::<QSpinlockVirt>, word),
        (ours::<QSpinlockPv>, &["parking_lot", "std Mutex"]),
        (ours::<MplockTicket>, big),
        (ours::<MplockTicketPadded>, big),
        (ours::<MplockAnderson>, big),
        (ours::<MplockClh>, big),
        (ours::<MplockMcs>, big),
    ];
    let pairing = |same| move |(ours, peers)| Pairing { ours, peers, same };
    same.into_iter()
        .map(pairing(true))
        .chain(other.into_iter().map(pairing(false)))
        .collect()
}

struct Options {
    /// Locks of ours whose names contain one of these; all, if there is none.
    names: Vec<String>,
    blocks: u64,
}

fn options() -> Options {
    let mut options = Options {
        names: Vec::new(),
        blocks: 60,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.blocks = 8,
            "--blocks" => {
                let blocks = arguments.next().and_then(|blocks| blocks.parse().ok());
                let Some(blocks) = blocks.filter(|&blocks: &u64| blocks >= 8) else {
                    eprintln!("--blocks wants a number of 8 or more, as in --blocks 60");
                    std::process::exit(2);
                };
                options.blocks = blocks;
            }
            // Cargo passes this to every benchmark.
            flag if flag.starts_with('-') => {}
            name => options.names.push(name.to_owned()),
        }
    }
    options
}

/// One of ours against one peer.
struct Duel {
    ours: &'static str,
    peer: &'static str,
    same: bool,
    /// Nanoseconds of a pair of lock and unlock, block by block, at each
    /// distance.
    alone: [Vec<Pair>; DISTANCES],
    /// Two threads: what the peer (first) and ours did, block by block, and which was
    /// measured first.
    together: Vec<([Contended; 2], Order)>,
}

impl Duel {
    /// Returns a figure of two threads as the judge's pairs.
    fn together(&self, figure: impl Fn(&Contended) -> f64) -> Vec<Pair> {
        let pair = |([peer, ours], order): &([Contended; 2], Order)| {
            Pair::new(figure(peer), figure(ours), *order)
        };
        self.together.iter().map(pair).collect()
    }
}

/// Says how often a measurement with contention is repeated for want of a quiet
/// moment, before its block goes without.
const ATTEMPTS: usize = 10;

/// The distances at which a lock is measured alone: 0, 10 and 30 ns.
const DISTANCES: usize = 3;

/// Returns both sides of one slice each, in the order of the coin; `None` if one of
/// them could not be measured.
fn both<T>(order: Order, mut of: impl FnMut(Side) -> Option<T>) -> Option<[T; 2]> {
    let [first, second] = order.sides();
    let (a, b) = (of(first)?, of(second)?);
    Some(match first {
        Side::Baseline => [a, b],
        Side::Experiment => [b, a],
    })
}

fn main() {
    let options = options();
    let mut duels = duels(&options);
    if duels.is_empty() {
        // This is no error: cargo hands one filter to every benchmark there is.
        println!(
            "Nothing measured: no lock's name contains {}.",
            options.names.join(" or ")
        );
        return;
    }
    if !locklab_peers::HAS_CK {
        println!("Concurrency Kit is left out: install libck-dev and build again.");
    }
    let makers: Vec<Make> = pairings().iter().map(|pairing| pairing.ours).collect();
    let make = |name: &str| -> Option<Box<dyn Contestant>> {
        let ours = makers.iter().map(|make| make());
        ours.chain(locklab_peers::all())
            .find(|contestant| contestant.name() == name)
    };
    // Drawn on stderr, and only if that is a terminal.
    let bar = ProgressBar::new(options.blocks).with_style(
        ProgressStyle::with_template("{bar:40} {percent}%, {eta} left")
            .expect("a constant template"),
    );
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
    let distances = distances();
    let mut trips = Vec::new();
    // All duels take their blocks in turn, so that a restless minute meets all.
    for block in 0..options.blocks {
        trips.extend(two.then(round_trip));
        for (number, duel) in duels.iter_mut().enumerate() {
            let seed = fork_seed(fork_seed(1, number as u64), block);
            let (Some(peer), Some(ours)) = (make(duel.peer), make(duel.ours)) else {
                continue;
            };
            let (peer, ours) = (peer.as_ref(), ours.as_ref());
            std::thread::scope(|scope| {
                // It has a thread of its own: this one stays free to move.
                scope.spawn(|| {
                    pin(0);
                    for (at, pairs) in distances.iter().zip(&mut duel.alone) {
                        pairs.extend(alone(peer, ours, at, seed));
                    }
                });
            });
            if two {
                let slices = both(coin(seed, SLICES), |side| {
                    let contestant = if side == Side::Baseline { peer } else { ours };
                    (0..ATTEMPTS).find_map(|_| contend(contestant))
                });
                duel.together
                    .extend(slices.map(|slices| (slices, coin(seed, SLICES))));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    tables::print(&duels, &distances, options.blocks, two.then_some(&*trips));
}

/// Returns every lock of ours that was asked for against each of its peers that is
/// there.
fn duels(options: &Options) -> Vec<Duel> {
    let there: Vec<String> = locklab_peers::all()
        .iter()
        .map(|peer| peer.name().to_owned())
        .collect();
    let mut duels = Vec::new();
    for Pairing { ours, peers, same } in pairings() {
        let name = ours().name().to_owned();
        let wanted = |part: &String| name.contains(part.as_str());
        if !options.names.is_empty() && !options.names.iter().any(wanted) {
            continue;
        }
        let name: &'static str = name.leak();
        for peer in peers.iter().filter(|peer| there.iter().any(|t| t == *peer)) {
            duels.push(Duel {
                ours: name,
                peer,
                same,
                alone: Default::default(),
                together: Vec::new(),
            });
        }
    }
    duels
}

/// Returns the judge's answers on these pairs of each duel.
fn judged(duels: &[Duel], pairs: impl Fn(&Duel) -> Vec<Pair>, better: Direction) -> Vec<Judged> {
    let settings = Settings {
        // Each line is read by itself, and with others of the same lock.
        family: Family::FalseDiscovery,
        ..Settings::default()
    };
    let comparisons: Vec<Comparison> = duels
        .iter()
        .map(|duel| Comparison::primary(pairs(duel), better))
        .collect();
    judge(&comparisons, &settings).expect("settings that make sense")
}
