//! The advice in words: what a model says of locks, machines and other uses of a lock, and
//! what would make it better. It must never name a size that the model is too far off for.

use crate::gate::{Gate, TOLERANCE};
use crate::here::Here;
use crate::question::Question;
use crate::runs::{Advice, Point};
use crate::validation::{CONFIDENCE, CONFIDENCE_NOTHING};
use crate::verdict::{Class, FLAT, Verdict};
use locklab_document::contention_profile::ContentionProfile;
use locklab_preload_run::Judged;
use locklab_replay::Program;
use locklab_sim::Waiters;
use locklab_trace::Info;

/// Describes what a report knows besides the simulations.
pub(crate) struct Context<'a> {
    /// Holds what the recording's header says.
    pub(crate) info: &'a Info,
    /// Holds who waited for which lock, over the whole recording.
    pub(crate) used: &'a ContentionProfile,
    /// Holds what no lock can exceed, by the recording.
    pub(crate) judged: Judged,
    /// Says why the lock that is waited for most cannot be replaced, as a clause.
    pub(crate) kept: Option<String>,
    /// Says whether most of the waiting is for locks that the program brings itself.
    pub(crate) own: bool,
    /// The part of all threads' time that the model repeats as it was recorded, because it
    /// does not understand what was waited for.
    pub(crate) repeated: f64,
    /// Says whether the question is about the machine and the threads of the recording.
    pub(crate) as_recorded: bool,
    /// Says how the lock to try did in a replay by real threads here, by today's.
    pub(crate) tried: Here,
    /// Says why nothing could be simulated, if so.
    pub(crate) not_simulated: Option<String>,
}

/// Describes what is known of a point.
pub(crate) struct Summary<'a> {
    pub(crate) point: &'a Point,
    /// The ideal lock by today's.
    pub(crate) bound: Verdict,
    /// The candidates that could be simulated, best first, by their places in
    /// the question.
    pub(crate) locks: Vec<(usize, Verdict)>,
}

impl<'a> Summary<'a> {
    /// Judges what was simulated at a point, by a model that is off by so much.
    pub(crate) fn of(point: &'a Point, doubt: f64) -> Option<Self> {
        let mut locks: Vec<(usize, Verdict)> = point
            .locks
            .iter()
            .enumerate()
            .filter_map(|(number, runs)| {
                let runs = runs.as_ref().ok()?;
                Some((number, Verdict::of(runs, &point.today)?.doubted(doubt)))
            })
            .collect();
        locks.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
        Some(Self {
            point,
            bound: Verdict::of(&point.ideal, &point.today)?,
            locks,
        })
    }

    /// Returns a text such as `xeon-8380-2s with 32 threads`.
    pub(crate) fn place(&self, question: &Question) -> String {
        let machine = &question.machines[self.point.machine];
        format!("{} with {} threads", machine.name, self.point.threads)
    }

    /// Returns the most that a lock can gain, in percent.
    pub(crate) fn most(&self) -> f64 {
        (100.0 * (self.bound.high - 1.0)).max(0.0)
    }

    /// Returns what an ideal lock is limited by.
    pub(crate) fn limit(&self, question: &Question) -> &'static str {
        let (ideal, free) = (self.point.ideal[0].rate, self.point.free.rate);
        let machine = &question.machines[self.point.machine];
        let there = machine.hardware_threads();
        let cpus = there.min(self.point.running) as f64;
        if ideal < (1.0 - FLAT) * free {
            "what is done under the locks"
        } else if free > 0.9 * cpus && self.point.running <= there {
            "what the threads compute"
        } else if free > 0.9 * cpus {
            "the CPUs"
        } else {
            "waits for other threads, sleeps and I/O"
        }
    }
}

/// Returns a percentage as it is said.
pub(crate) fn percent(of: f64) -> String {
    if of < 9.95 {
        format!("{of:.1} %")
    } else {
        format!("{of:.0} %")
    }
}

/// Lists words: `a`, `a and b`, `a, b and c`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Returns what no lock can beat, over all points.
pub(crate) fn bound(summaries: &[Summary<'_>], question: &Question) -> String {
    let mut by_gain: Vec<&Summary<'_>> = summaries.iter().collect();
    by_gain.sort_by(|a, b| b.most().total_cmp(&a.most()));
    let Some(most) = by_gain.first() else {
        return String::new();
    };
    if summaries.len() == 1 || most.most() < 100.0 * FLAT {
        let place = match summaries {
            [one] => format!(" on {}", one.place(question)),
            _ => " anywhere".to_owned(),
        };
        return format!(
            "No lock can gain more than {}{place}.",
            percent(most.most())
        );
    }
    let places: Vec<String> = by_gain
        .iter()
        .take(4)
        .map(|summary| format!("{} on {}", percent(summary.most()), summary.place(question)))
        .collect();
    let rest = match by_gain.len() {
        0..=4 => "",
        _ => ", less elsewhere",
    };
    format!("No lock can gain more than {}{rest}.", list(&places))
}

/// Returns the first line of a failure; a deadlock has more.
pub(crate) fn first_line(why: &impl std::fmt::Display) -> String {
    let why = why.to_string();
    why.lines().next().unwrap_or(&why).to_owned()
}

/// Returns the candidates in words: those that help somewhere and harm nowhere, those
/// that change nothing, those that must not be taken.
fn classes(summaries: &[Summary<'_>], question: &Question, sizes: bool) -> String {
    let (mut help, mut flat, mut harm) = (Vec::new(), Vec::new(), Vec::new());
    for (number, lock) in question.locks.iter().enumerate() {
        let of_lock = |summary: &Summary<'_>| {
            let found = summary.locks.iter().find(|(place, _)| *place == number);
            found.map(|(_, verdict)| *verdict)
        };
        let verdicts: Vec<Verdict> = summaries.iter().filter_map(of_lock).collect();
        let any = |class| verdicts.iter().any(|verdict| verdict.class == class);
        if verdicts.is_empty() {
            continue;
        }
        if any(Class::Collapses) {
            harm.push(lock.name());
        } else if any(Class::Worse) {
            continue;
        } else if any(Class::Helps) {
            let best = verdicts
                .iter()
                .map(|verdict| verdict.ratio)
                .fold(0.0, f64::max);
            help.push((best, lock.name()));
        } else if verdicts.iter().all(|verdict| verdict.class == Class::Flat) {
            flat.push(lock.name());
        }
    }
    help.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut words = Vec::new();
    if !help.is_empty() {
        let names: Vec<String> = help
            .iter()
            .map(|(best, name)| match sizes {
                true => format!("{name} (up to {best:.2} times today's rate)"),
                false => name.clone(),
            })
            .collect();
        words.push(format!("These locks are worth a try: {}.", list(&names)));
    } else if summaries
        .iter()
        .any(|summary| summary.most() >= 100.0 * FLAT)
    {
        words.push("No lock that was tried is shown to help everywhere.".to_owned());
    }
    if !flat.is_empty() {
        words.push(format!("The rate stays the same under {}.", list(&flat)));
    }
    if !harm.is_empty() {
        words.push(format!(
            "On some machine the rate collapses under {}.",
            list(&harm)
        ));
    }
    words.join(" ")
}

/// Returns the best change that is no lock, if it is worth more than any lock, and more than
/// the model may be off.
pub(crate) fn what_if(
    summaries: &[Summary<'_>],
    question: &Question,
    gate: &Gate,
) -> Option<String> {
    if !gate.gives_sizes() {
        return None;
    }
    let shown = gate.spread().exp();
    let mut best: Option<(f64, String)> = None;
    for summary in summaries {
        let today = summary.point.today.first()?.rate;
        let lock = summary
            .locks
            .first()
            .map_or(1.0, |(_, verdict)| verdict.ratio);
        for (name, run) in &summary.point.what_ifs {
            let Ok(run) = run else { continue };
            let ratio = run.rate / today;
            let more = ratio > shown && ratio > lock.max(1.0) + FLAT;
            if more && best.as_ref().is_none_or(|(most, _)| ratio > *most) {
                let place = summary.place(question);
                best = Some((
                    ratio,
                    format!(
                        "Using the lock otherwise gains more than another lock does: if {name}, the \
                         rate is {ratio:.2} times today's on {place}."
                    ),
                ));
            }
        }
    }
    best.map(|(_, words)| words)
}

/// Returns the lock to confirm first: the best that helps somewhere, collapses nowhere, and
/// can take the place of a program's locks. Where the program has more threads than
/// its machine has CPUs, its waiters sleep: there those that only spin collapse.
pub(crate) fn to_confirm(
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
) -> Option<usize> {
    let crowded = program.threads.len() > program.running();
    let spins = |number: usize| question.locks[number].waiters == Waiters::Spin;
    let collapses = |number: usize| {
        summaries.iter().any(|summary| {
            summary
                .locks
                .iter()
                .any(|(lock, verdict)| *lock == number && verdict.class == Class::Collapses)
        })
    };
    let helping = summaries.iter().flat_map(|summary| &summary.locks);
    helping
        .filter(|(number, verdict)| verdict.class == Class::Helps && !collapses(*number))
        .filter(|(number, _)| question.locks[*number].can_be_tried())
        .filter(|(number, _)| !(crowded && spins(*number)))
        .max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
        .map(|(number, _)| *number)
}

/// Returns what else the simulations say, a sentence each.
pub(crate) fn besides(
    advice: &Advice,
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
) -> Vec<String> {
    let sizes = advice.gate.gives_sizes();
    let some = summaries
        .iter()
        .any(|summary| summary.most() >= 100.0 * FLAT);
    let mut words = Vec::new();
    if some && !question.locks.is_empty() {
        words.push(classes(summaries, question, sizes));
    }
    let mut limits: Vec<&str> = summaries
        .iter()
        .map(|summary| summary.limit(question))
        .collect();
    limits.dedup();
    if let [limit] = limits[..] {
        words.push(format!(
            "With a lock that costs nothing, {limit} would limit the rate."
        ));
    }
    words.extend(what_if(summaries, question, &advice.gate));
    if !program.can_be_extrapolated() {
        words.push(
            "Only the recorded number of threads was simulated, because most of what threads wait \
             for is not known."
                .to_owned(),
        );
    }
    words.push(format!(
        "With the recorded locks the model gave {:.2} times the program's own rate. {}",
        advice.gate.ratio(),
        match some {
            true => CONFIDENCE,
            false => CONFIDENCE_NOTHING,
        }
    ));
    words.retain(|words| !words.is_empty());
    words
}

/// Returns what would make the answer better: what the recording does not see or the model
/// does not know, and what to do about it.
pub(crate) fn not_seen(program: &Program, gate: &Gate) -> Vec<String> {
    let recorded = &program.recorded;
    let lived = recorded.window_ns * program.threads.len() as f64;
    let part = |ns: f64| percent(100.0 * ns / lived.max(1.0));
    let mut reasons = Vec::new();
    if recorded.unmatched_ns > 0.05 * lived {
        reasons.push(format!(
            "For {} of the time threads waited for something that was not recorded: I/O, \
             semaphores, locks of other libraries, or conditions that no recorded signal ended.",
            part(recorded.unmatched_ns)
        ));
    }
    if let Some(others) = recorded.shared_with {
        reasons.push(format!(
            "Other programs used {others:.1} CPUs during the recording, and hardly one was free. \
             Record it on an idle machine."
        ));
    }
    if recorded.preempted_ns > 0.05 * lived {
        reasons.push(format!(
            "For {} of the time threads were ready to run while other threads had the CPUs.",
            part(recorded.preempted_ns)
        ));
    }
    if recorded.left_out_locks.1 > 0.05 {
        reasons.push(format!(
            "{} of the waiting is for locks that were left out: only the most contended are simulated.",
            percent(100.0 * recorded.left_out_locks.1)
        ));
    }
    if gate.ratio() > 1.0 + TOLERANCE {
        reasons.push(
            "The program waits for something that looks like work: memory that several threads \
             write, locks of its own that spin, or I/O too short to be recorded."
                .to_owned(),
        );
    }
    if gate.ratio() < 1.0 - TOLERANCE {
        reasons.push(
            "The model makes the locks or the operating system slower than they are here. \
             'locklab machine fit' measures this machine, and 'locklab advise --here FILE' takes \
             what it wrote."
                .to_owned(),
        );
    }
    let predicted = gate.predicted().unwrap_or(1.0);
    if predicted > 1.0 + TOLERANCE {
        reasons.push(
            "With more threads something besides the holds takes longer: memory that several \
             threads write outside the locks, or a wait that looks like work."
                .to_owned(),
        );
    }
    if predicted < 1.0 - TOLERANCE {
        reasons.push(
            "With fewer threads the program waited for something that more threads do not wait \
             for, or it did other work."
                .to_owned(),
        );
    }
    if gate.forced() > 0.01 {
        reasons.push(format!(
            "{} % of the waits for other threads were cut short, because no thread of the \
             simulation would have ended them.",
            locklab_document::number::percent(100.0 * gate.forced())
        ));
    }
    if reasons.is_empty() && gate.fewer.is_none() {
        reasons.push(
            "A second recording with another number of threads shows how holds grow. 'locklab \
             advise FILE FILE2' takes both."
                .to_owned(),
        );
    }
    reasons
}
