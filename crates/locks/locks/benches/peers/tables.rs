//! Prints what was measured and judged as one table of 72 columns.

use crate::alone::{Distance, SLICES};
use crate::contention::Contended;
use crate::{DISTANCES, Duel, judged};
use locklab_judge::{Direction, Judged, Verdict};
use locklab_peers::keeping_explains;
use std::fmt::Write;

fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns a verdict on ours in a word of at most eight letters.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "faster",
        Verdict::Worse => "SLOWER",
        Verdict::Flat { .. } => "equal",
        Verdict::Unclear { .. } => "unclear",
        Verdict::Invalid(_) => "too few",
    }
}

/// Returns ours / peer with its limits, and the verdict.
fn columns(judged: &Judged) -> String {
    match (&judged.estimate, &judged.verdict) {
        (Some(estimate), verdict) if !matches!(verdict, Verdict::Invalid(_)) => {
            let ratio = estimate.ratio();
            format!(
                "{:.3} {:.3}-{:.3} {:<7}",
                ratio.value,
                ratio.low,
                ratio.high,
                word(verdict)
            )
        }
        (_, verdict) => format!("{:>17} {:<7}", "", word(verdict)),
    }
}

/// Prints all tables.
pub(crate) fn print(
    duels: &[Duel],
    distances: &[Distance; DISTANCES],
    blocks: u64,
    trips: Option<&[f64]>,
) {
    println!(
        "Ours against each peer: {blocks} blocks, judged; limits are of 95 %.\n\
         Alone: one thread, time of a pair of lock and unlock (below 1 is\n\
         better), {SLICES} slices a block."
    );
    let mut verdicts = String::new();
    for (number, at) in distances.iter().enumerate() {
        let title = match number {
            0 => "back to back".to_owned(),
            _ => format!("{:.0} ns apart", at.ns),
        };
        match number {
            0 => println!("\nBack to back, {} pairs a slice.", at.pairs),
            _ => println!(
                "\nAt a program's distance: {:.1} ns of work in the critical section and as\n\
                 much before the next, part of the time; {} pairs a slice.",
                at.ns, at.pairs
            ),
        }
        println!("{:<20} {:<21} {:>5}  ours / peer", "ours", "peer", "ns");
        let alone = judged(
            duels,
            |duel| duel.alone[number].clone(),
            Direction::LowerIsBetter,
        );
        for (duel, judged) in duels.iter().zip(&alone) {
            let pairs = &duel.alone[number];
            let ns: Vec<f64> = pairs.iter().map(|pair| pair.experiment).collect();
            println!(
                "{:<20}{}{:<21} {:>5.2}  {}",
                duel.ours,
                mark(duel),
                duel.peer,
                median(&ns),
                columns(judged).trim_end()
            );
        }
        let _ = writeln!(verdicts, "{title:>16} {}", count(duels, &alone));
    }
    let Some(trips) = trips else {
        println!("\nNot measured: two threads contending. That needs two CPUs.");
        return;
    };
    println!(
        "\nTwo threads on two CPUs: operations a second (above 1 is better), and\n\
         million handoffs a second of ours and the peer. Cache-line round trip\n\
         {:.0} to {:.0} ns.",
        minimum(trips),
        trips.iter().copied().fold(0.0, f64::max)
    );
    println!(
        "{:<20} {:<21} {:>11}  ours / peer",
        "ours", "peer", "handoffs"
    );
    let together = together(duels, |two| two.operations);
    for (duel, judged) in duels.iter().zip(&together) {
        let [peer, ours] = sides(duel, |two| two.handoffs / 1e6);
        println!(
            "{:<20}{}{:<21} {ours:>5.2} {peer:>5.2}  {}",
            duel.ours,
            mark(duel),
            duel.peer,
            columns(judged).trim_end()
        );
    }
    println!(
        "\nThe same at equal share: twice the operations of the slower thread in\n\
         each millisecond; and of 100 acquisitions how many follow one of the\n\
         same thread, of ours and the peer."
    );
    println!(
        "{:<20} {:<21} {:>11}  ours / peer",
        "ours", "peer", "follow own"
    );
    let shared = self::together(duels, |two| two.at_equal_share);
    for (duel, judged) in duels.iter().zip(&shared) {
        let [peer, ours] = sides(duel, |two| 100.0 * two.kept());
        println!(
            "{:<20}{}{:<21} {ours:>5.1} {peer:>5.1}  {}",
            duel.ours,
            mark(duel),
            duel.peer,
            columns(judged).trim_end()
        );
    }
    let both = duels.iter().zip(&together);
    let kept: Vec<String> = both
        .filter_map(|(duel, judged)| kept(duel, judged))
        .collect();
    if !kept.is_empty() {
        println!("\n{}", kept.join("\n"));
    }
    println!(
        "\nequal: shown equal within 1 %. unclear: neither shown to differ nor\n\
         shown to be equal; --blocks with a larger number settles it.\n\
         too few: other programs left too few quiet moments.\n\
         ~: no peer has this algorithm; what a user would take instead."
    );
    for (title, judged) in [("two threads", &together), ("equal share", &shared)] {
        let _ = writeln!(verdicts, "{title:>16} {}", count(duels, judged));
    }
    print!("Against the same algorithm:\n{verdicts}");
}

/// Returns the judge's answers on a figure of two threads.
fn together(duels: &[Duel], figure: fn(&Contended) -> f64) -> Vec<Judged> {
    judged(
        duels,
        |duel| duel.together(figure),
        Direction::HigherIsBetter,
    )
}

/// Returns the median of a figure of two threads, of the peer and of ours.
fn sides(duel: &Duel, figure: fn(&Contended) -> f64) -> [f64; 2] {
    [0, 1].map(|side| {
        let values: Vec<f64> = duel
            .together
            .iter()
            .map(|(two, _)| figure(&two[side]))
            .collect();
        median(&values)
    })
}

/// Returns where one side does more operations because one thread keeps it: it hands the lock
/// over less often than the other does. `None` where that is not the reason.
fn kept(duel: &Duel, judged: &Judged) -> Option<String> {
    let [peer, ours] = sides(duel, |two| two.handoffs);
    let [peer_keeps, we_keep] = sides(duel, |two| 100.0 * two.kept());
    let (who, than, keeps, other) = match judged.verdict {
        Verdict::Worse if peer < ours => (duel.peer, duel.ours, peer_keeps, we_keep),
        Verdict::Better if ours < peer => (duel.ours, duel.peer, we_keep, peer_keeps),
        _ => return None,
    };
    if !keeping_explains(keeps, other) {
        return None;
    }
    Some(format!(
        "{who} does more operations than {than}, because one thread keeps\n\
         it: {keeps:.1} % of its acquisitions follow its own ({other:.1} % of the other's)."
    ))
}

fn mark(duel: &Duel) -> char {
    if duel.same { ' ' } else { '~' }
}

/// Returns how many of each verdict against peers of the same algorithm.
fn count(duels: &[Duel], judged: &[Judged]) -> String {
    ["faster", "equal", "SLOWER", "unclear", "too few"]
        .into_iter()
        .map(|wanted| {
            let same = duels.iter().zip(judged).filter(|(duel, _)| duel.same);
            let found = same.filter(|(_, j)| word(&j.verdict) == wanted).count();
            format!("{found} {}", wanted.to_lowercase())
        })
        .collect::<Vec<_>>()
        .join(", ")
}
