//! Runs one model: to its end with any number of preemptions if that comes
//! soon enough, otherwise with as many as it does come with; or to the first
//! execution that breaks a promise.
//!
//! Must never call an exploration that was cut short complete.

use crate::execution::{self, Again, FEW, MANY, Rounds, RoundsLeftOut};
use crate::journal::Journal;
use crate::property::Property;
use crate::trace::{self, Step};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far a model is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Executions after which the exploration is cut.
    pub executions: u64,
    /// Steps after which it is cut, of all of them.
    pub steps: u64,
    /// Time after which it is cut.
    pub duration: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            executions: u64::MAX,
            steps: u64::MAX,
            duration: Duration::MAX,
        }
    }
}

/// What is left of limits as an exploration goes on.
#[derive(Clone, Copy)]
struct Budget {
    limits: Limits,
    began: Instant,
    /// The steps of this process until then.
    before: u64,
}

impl Budget {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            began: Instant::now(),
            before: Journal::current().steps(),
        }
    }

    fn spent(&self) -> u64 {
        Journal::current().steps() - self.before
    }

    /// So many executions, and what is left of the rest.
    fn left(&self, executions: u64) -> Limits {
        Limits {
            executions,
            steps: self.limits.steps.saturating_sub(self.spent()),
            duration: self.limits.duration.saturating_sub(self.began.elapsed()),
        }
    }
}

/// What came of exploring a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every execution within the bound keeps the promise.
    Holds,
    /// No execution explored breaks it, but some were left out that are within
    /// every bound: [`Explored::left_out`] says which.
    Cut,
    /// One execution breaks it.
    Fails(Failure),
}

/// An execution that breaks a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The promise that is broken, as a sentence.
    pub message: String,
    /// What each thread did, in order.
    pub trace: Vec<Step>,
}

/// An exploration's outcome and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explored {
    /// What came of it.
    pub outcome: Outcome,
    /// The most preemptions in an execution; `None`: any number.
    pub preemptions: Option<usize>,
    /// How many executions were run within that bound.
    pub executions: u64,
    /// How long that took, other bounds included: CPU time, if it had a
    /// process of its own.
    pub took: Duration,
    /// Of one that was cut, what was left out, a sentence each.
    pub left_out: Vec<String>,
    /// Of one that was cut, how many schedules of it were drawn beyond what was explored.
    pub schedules: u64,
    /// In how many of its executions two reads of a word came in either order.
    pub reads: Reads,
}

/// How far the order of two reads of a word was explored, which matters where one of the
/// readers writes it afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Either order, in all that was explored.
    Either,
    /// Either order, in a second exploration of so many executions.
    Within {
        /// Its bound on preemptions; `None`: any number.
        preemptions: Option<usize>,
        /// How many executions it had.
        executions: u64,
    },
    /// One order only.
    #[default]
    One,
}

impl Reads {
    /// Returns whether either order was explored within this bound on preemptions.
    #[must_use]
    pub fn reach(self, bound: Option<usize>) -> bool {
        match (self, bound) {
            (Self::Either, _)
            | (
                Self::Within {
                    preemptions: None, ..
                },
                _,
            ) => true,
            (Self::Within { preemptions, .. }, bound) => bound.is_some() && preemptions >= bound,
            (Self::One, _) => false,
        }
    }
}

impl Explored {
    /// A failure that ended the process of the exploration.
    pub(crate) fn crashed(failure: Failure, preemptions: Option<usize>, executions: u64) -> Self {
        Self {
            outcome: Outcome::Fails(failure),
            preemptions,
            executions,
            took: Duration::ZERO,
            left_out: Vec::new(),
            schedules: 0,
            reads: Reads::One,
        }
    }
}

struct LimitReached;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`, whose panics are broken promises: they are reported, not
/// printed.
pub(crate) fn silently<R>(body: impl FnOnce() -> R) -> R {
    quiet_panics();
    let before = SILENT.replace(true);
    let result = body();
    SILENT.set(before);
    result
}

fn quiet_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // Shuttle prints each panic, of whatever it is, from its first run
        // on: so let that hook come first, and ours around it.
        let nothing = shuttle::scheduler::RoundRobinScheduler::new(1);
        shuttle::Runner::new(nothing, shuttle::Config::new()).run(|| ());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                before(info);
            }
        }));
    });
}

/// Does what loom and shuttle do once in a process.
pub(crate) fn warm_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        quiet_panics();
        silently(|| loom::model(loom::thread::yield_now));
    });
}

/// The share of the executions that may go to any number of preemptions
/// before a bound is tried.
const UNBOUNDED_SHARE: u64 = 4;

/// A bound on preemptions makes the number of fruitless reads matter: where
/// one would let another thread run for nothing, the equal execution without
/// it costs a preemption.
const BOUNDED_PRUNE_AFTER: u32 = 2;

/// How much the limit of executions is stretched for one preemption, without
/// which nothing is proven.
const ONE_SHARE: u64 = 10;

/// The same for the bound that is aimed at.
const AIM_SHARE: u64 = 2;

/// The next bound has at least so many times the executions of this one.
const GROWTH: u64 = 2;

/// And the second so many times those of the first, in most models.
const AIM_GROWTH: u64 = 5;

/// The steps for the further rounds of loops that are no waits: at least so many, for
/// each of the executions allowed, and at most so many times those of the exploration
/// without them.
const ROUND_STEPS: u64 = 100;
const ROUND_SHARE: u64 = 2;

/// The steps of a lock that is not of the catalogue, for each of the executions allowed:
/// its author waits for the result.
const OWN_STEPS: u64 = 150;

/// The part of the executions allowed that goes to each bound of a second exploration, in
/// which reads come in either order: it may not take longer than the first.
const READS_SHARE: u64 = 4;

/// Explores a model with reads in either order ([`Setting::reads_conflict`]), up to the
/// bound of a first exploration, as far as so few executions reach. Returns the
/// exploration that failed instead, if one does.
///
/// [`Setting::reads_conflict`]: execution::Setting
fn explore_reads(
    property: &Property,
    first: &Explored,
    limits: Limits,
) -> Result<Reads, Box<Explored>> {
    let mut property = property
        .clone()
        .with(|setting| setting.reads_conflict = true);
    // The first exploration had one.
    property.needs_witness = false;
    let limits = Limits {
        executions: limits.executions / READS_SHARE,
        ..limits
    };
    let mut reached = Reads::One;
    let bounds = [None].into_iter().chain((1..).map(Some));
    for bound in bounds {
        let explored = explore_within(&property, bound, pruning(bound), limits);
        match explored.outcome {
            Outcome::Fails(_) => return Err(Box::new(explored)),
            Outcome::Holds => {
                reached = Reads::Within {
                    preemptions: bound,
                    executions: explored.executions,
                };
            }
            Outcome::Cut if bound.is_some() => break,
            Outcome::Cut => {}
        }
        if reached.reach(first.preemptions) {
            break;
        }
    }
    Ok(reached)
}

/// One schedule is drawn for so many of the executions allowed, where some were left out.
const DRAWN_SHARE: u64 = 16;

/// What such an execution is called.
const SCHEDULE: &str = "random schedule";

/// The most of those.
const MOST_DRAWN: u64 = 10_000;

/// Explores the model of a property, then with reads in either order if they were not, and
/// where executions were left out, runs random fair schedules of it: one of those may break
/// the promise after a round that no exploration comes to.
pub(crate) fn explore_fully(property: &Property, limits: Limits) -> Explored {
    let start = Instant::now();
    let mut explored = explore(property, limits);
    if property.drawn.is_some() || matches!(explored.outcome, Outcome::Fails(_)) {
        return explored;
    }
    explored.reads = match property.setting.reads_conflict {
        true => Reads::Either,
        false => match explore_reads(property, &explored, limits) {
            Ok(reads) => reads,
            Err(fails) => return *fails,
        },
    };
    explored.took = start.elapsed();
    // An interrupt comes before an access by its number, which another schedule has not.
    if explored.outcome != Outcome::Cut || property.setting.interrupts {
        return explored;
    }
    let model = property.model.clone();
    let schedules = Property {
        drawn: Some((limits.executions / DRAWN_SHARE).min(MOST_DRAWN)),
        needs_witness: false,
        model: Arc::new(move || execution::in_a_drawn_schedule(|| model())),
        ..property.clone()
    };
    let limits = Limits {
        duration: limits.duration.saturating_sub(explored.took),
        ..limits
    };
    let drawn = explore_drawn(&schedules, limits, SCHEDULE);
    let outcome = match drawn.outcome {
        fails @ Outcome::Fails(_) => fails,
        _ => Outcome::Cut,
    };
    Explored {
        outcome,
        schedules: drawn.executions,
        took: explored.took + drawn.took,
        ..explored
    }
}

/// Explores the model of a property, as far as the limits allow. Where that leaves out
/// rounds of a loop that is no wait, follows those too: first with nobody in between,
/// which is cheap and finds what comes after the last round, then each.
pub(crate) fn explore(property: &Property, limits: Limits) -> Explored {
    let most = match property.loops_are_code {
        true => limits.executions.saturating_mul(OWN_STEPS),
        false => u64::MAX,
    };
    let limits = Limits {
        steps: limits.steps.min(most),
        ..limits
    };
    let before = Journal::current().steps();
    let (few, beyond, alike) = follow(property, Rounds::Few, limits);
    if matches!(few.outcome, Outcome::Fails(_)) || (beyond.is_empty() && !alike) {
        return few;
    }
    let steps = Journal::current().steps() - before;
    let at_least = limits.executions.saturating_mul(ROUND_STEPS);
    let budget = Budget::new(Limits {
        steps: at_least.max(steps.saturating_mul(ROUND_SHARE)),
        duration: limits.duration.saturating_sub(few.took),
        ..limits
    });
    let mut half = budget.left(limits.executions);
    half.steps /= 2;
    let (alone, beyond_alone, _) = follow(property, Rounds::AtOnce, half);
    let both = few.and(alone);
    if matches!(both.outcome, Outcome::Fails(_)) {
        return both;
    }
    if beyond.is_empty() && beyond_alone.is_empty() {
        return both;
    }
    let rest = budget.left(limits.executions);
    let (each, beyond_each, _) = follow(property, Rounds::Each, rest);
    let (took, complete) = (both.took + each.took, each.outcome == Outcome::Holds);
    if matches!(each.outcome, Outcome::Fails(_)) || (complete && beyond_each.is_empty()) {
        return Explored { took, ..each };
    }
    let (beyond, rounds) = match complete {
        true => (beyond_each, MANY),
        false if beyond.is_empty() => (beyond_alone, MANY),
        false => (beyond, FEW),
    };
    Explored {
        outcome: Outcome::Cut,
        left_out: rounds_left_out(&beyond, rounds),
        took,
        ..both
    }
}

/// Explores with loops followed so far: also what was left out of them, and whether
/// there were rounds that were only known to be alike.
fn follow(property: &Property, rounds: Rounds, limits: Limits) -> (Explored, RoundsLeftOut, bool) {
    execution::begin_rounds(rounds);
    let explored = explore_bounds(property, limits);
    let (beyond, alike) = execution::take_left_out();
    execution::begin_rounds(Rounds::Few);
    (explored, beyond, alike)
}

impl Explored {
    /// Both together: complete as far as both are.
    fn and(self, other: Self) -> Self {
        let outcome = match (self.outcome, other.outcome) {
            (fails @ Outcome::Fails(_), _) | (_, fails @ Outcome::Fails(_)) => fails,
            (Outcome::Holds, Outcome::Holds) => Outcome::Holds,
            _ => Outcome::Cut,
        };
        let bounds = [self.preemptions, other.preemptions];
        Self {
            outcome,
            preemptions: bounds.into_iter().flatten().min(),
            executions: self.executions + other.executions,
            took: self.took + other.took,
            left_out: [self.left_out, other.left_out].concat(),
            schedules: 0,
            reads: Reads::One,
        }
    }
}

/// A sentence for each loop whose rounds after so many were left out.
fn rounds_left_out(beyond: &RoundsLeftOut, rounds: u32) -> Vec<String> {
    let sentence = |(place, executions): (&crate::journal::Place, &u64)| {
        format!(
            "what the loop at {place}, which counts or writes while it waits, does in turn with \
             others after its round {rounds}, in {executions} executions"
        )
    };
    beyond.iter().map(sentence).collect()
}

/// The same, with loops followed as far as is set.
fn explore_bounds(property: &Property, limits: Limits) -> Explored {
    if property.drawn.is_some() {
        let drawn = explore_drawn(property, limits, "program");
        // As many as are allowed: there is no end that they could come to.
        let outcome = match drawn.outcome {
            Outcome::Cut => Outcome::Holds,
            outcome => outcome,
        };
        return Explored { outcome, ..drawn };
    }
    let budget = Budget::new(limits);
    let left = |executions| budget.left(executions);
    let done = |explored| Explored {
        took: budget.began.elapsed(),
        ..explored
    };
    let any = explore_within(
        property,
        None,
        pruning(None),
        left(limits.executions / UNBOUNDED_SHARE),
    );
    if any.outcome != Outcome::Cut {
        return done(any);
    }
    let mut spent = any.executions;
    let mut reached: Option<Explored> = None;
    let mut before = 0;
    for preemptions in 1.. {
        let mut executions = limits.executions.saturating_sub(spent);
        // Not begun if it would not end.
        let mut growth = GROWTH;
        if preemptions == 1 {
            executions = limits.executions.saturating_mul(ONE_SHARE);
        } else if preemptions <= property.aim {
            executions = limits.executions.saturating_mul(AIM_SHARE);
            growth = AIM_GROWTH;
        } else if let Some(reached) = &reached {
            growth = growth.max(reached.executions / before.max(1));
        }
        if let Some(reached) = &reached
            && reached.executions.saturating_mul(growth) > executions
        {
            break;
        }
        before = reached.as_ref().map_or(0, |reached| reached.executions);
        let bound = Some(preemptions);
        let next = explore_within(property, bound, pruning(bound), left(executions));
        spent += next.executions;
        match next.outcome {
            Outcome::Holds => reached = Some(next),
            Outcome::Cut => break,
            Outcome::Fails(_) => return done(next),
        }
    }
    done(match reached {
        Some(reached) => reached,
        None => Explored {
            executions: spent,
            preemptions: Some(1),
            left_out: match any.left_out.is_empty() {
                true => vec![format!(
                    "executions with one preemption, after the first {spent}: \
                     --executions N allows more"
                )],
                false => any.left_out,
            },
            ..any
        },
    })
}

/// A branch more than this in one execution: the lock makes no progress. A wait
/// that looks for deadlocks reads six words a turn, so four CPUs that all wait a
/// while take half of it.
const MAX_BRANCHES: usize = 10_000;

/// After how many fruitless reads of one wait an execution is pruned.
pub(crate) fn pruning(preemptions: Option<usize>) -> Option<u32> {
    Some(preemptions.map_or(1, |_| BOUNDED_PRUNE_AFTER))
}

/// The most accesses before which an interrupt is tried.
const MOST_ACCESSES: u32 = 100;

/// The share of the executions that go to one of those accesses.
const INTERRUPT_SHARE: u64 = 16;

/// Explores the model of a property with at most so many preemptions. Without
/// pruning, few models of three threads end.
pub(crate) fn explore_within(
    property: &Property,
    preemptions: Option<usize>,
    prune_after: Option<u32>,
    limits: Limits,
) -> Explored {
    if property.drawn.is_some() {
        return explore_drawn(property, limits, "program");
    }
    if !property.setting.interrupts {
        return explore_once(property, preemptions, prune_after, limits);
    }
    let start = Instant::now();
    let budget = Budget::new(limits);
    let of_one = limits.executions.div_ceil(INTERRUPT_SHARE);
    let mut executions = 0;
    let mut outcome = Outcome::Holds;
    let mut left_out = Vec::new();
    let mut at = [0; 2];
    while at.iter().all(|&access| access < MOST_ACCESSES) {
        execution::interrupt_at(at);
        let explored = explore_once(property, preemptions, prune_after, budget.left(of_one));
        executions += explored.executions;
        if explored.outcome != Outcome::Holds {
            (outcome, left_out) = (explored.outcome, explored.left_out);
        }
        if matches!(outcome, Outcome::Fails(_)) {
            break;
        }
        at = match execution::interrupted() {
            0 => break,
            1 => [at[0] + 1, 0],
            _ => [at[0], at[1] + 1],
        };
    }
    Explored {
        outcome,
        preemptions,
        executions,
        took: start.elapsed(),
        left_out,
        schedules: 0,
        reads: Reads::One,
    }
}

/// Runs the programs of a property that draws them, each in the one order that it draws
/// too.
fn explore_drawn(property: &Property, limits: Limits, what: &str) -> Explored {
    execution::configure(None, property.setting);
    let start = Instant::now();
    let all = property.drawn.unwrap_or(0);
    let programs = all.min(limits.executions);
    let mut executions = 0;
    let mut outcome = if programs < all {
        Outcome::Cut
    } else {
        Outcome::Holds
    };
    for program in 0..programs {
        if start.elapsed() >= limits.duration {
            outcome = Outcome::Cut;
            break;
        }
        execution::draw_execution(program);
        let one = Limits {
            executions: 1,
            ..limits
        };
        executions += 1;
        let failed = run_once(property, None, one).outcome;
        if let Outcome::Fails(Failure { message, trace }) = failed {
            if what == SCHEDULE && message.starts_with(NO_PROGRESS) {
                // It is not known to have no end: the others may not have had their turn.
                executions -= 1;
                continue;
            }
            outcome = Outcome::Fails(Failure {
                message: format!("{message} ({what} {program})"),
                trace,
            });
            break;
        }
    }
    Explored {
        outcome,
        preemptions: None,
        executions,
        took: start.elapsed(),
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::One,
    }
}

/// The same, with no interrupt or one before one access.
fn explore_once(
    property: &Property,
    preemptions: Option<usize>,
    prune_after: Option<u32>,
    limits: Limits,
) -> Explored {
    execution::configure(prune_after, property.setting);
    execution::take_witness();
    run_once(property, preemptions, limits)
}

/// The same, as configured.
fn run_once(property: &Property, preemptions: Option<usize>, limits: Limits) -> Explored {
    let start = Instant::now();
    let budget = Budget::new(limits);
    let mut executions;
    let mut left_out = Vec::new();
    let outcome = loop {
        let model = property.model.clone();
        let counter = Arc::new(AtomicU64::new(0));
        let counted = counter.clone();
        let mut builder = loom::model::Builder::new();
        builder.max_branches = MAX_BRANCHES;
        builder.preemption_bound = preemptions;
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        builder.checkpoint_interval = usize::MAX;
        builder.location = false;
        builder.log = false;
        execution::end();
        let run = AssertUnwindSafe(|| {
            builder.check(move || {
                let count = counted.fetch_add(1, Ordering::Relaxed);
                if count >= limits.executions
                    || (count > 0 && budget.spent() >= limits.steps)
                    || (count % 256 == 255 && start.elapsed() >= limits.duration)
                {
                    panic_any(LimitReached);
                }
                Journal::current()
                    .executions
                    .fetch_add(1, Ordering::Relaxed);
                execution::begin();
                model();
                execution::end();
            });
        });
        let result = silently(|| catch_unwind(run));
        executions = counter.load(Ordering::Relaxed);
        match result {
            Ok(()) => break Outcome::Holds,
            Err(payload) if payload.is::<LimitReached>() => {
                executions -= 1;
                break Outcome::Cut;
            }
            Err(payload) if payload.is::<Again>() => {}
            Err(payload) if has_no_end(&*payload) && execution::last_loop().is_some() => {
                let here = execution::last_loop().expect("just seen");
                execution::leave_out(here);
                left_out.push(format!(
                    "what the loop at {here} does after {MAX_BRANCHES} steps of an execution, and \
                     all executions after that one"
                ));
                break Outcome::Cut;
            }
            Err(payload) => {
                break Outcome::Fails(Failure {
                    message: message(&*payload),
                    trace: trace::steps(&Journal::current().entries()),
                });
            }
        }
    };
    let outcome = match outcome {
        Outcome::Holds if property.needs_witness && !execution::take_witness() => {
            Outcome::Fails(Failure {
                message: "no execution does what at least one must do".into(),
                trace: Vec::new(),
            })
        }
        outcome => outcome,
    };
    Explored {
        outcome,
        preemptions,
        executions,
        took: start.elapsed(),
        left_out,
        schedules: 0,
        reads: Reads::One,
    }
}

/// Whether an execution ended because it has too many steps.
fn has_no_end(payload: &(dyn Any + Send)) -> bool {
    message(payload).starts_with(NO_PROGRESS)
}

const NO_PROGRESS: &str = "no progress";

/// The first line of what a model says when it fails.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("the model failed without a message");
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.unwrap_or(text);
    if first.starts_with("Causality violation") {
        "two accesses are not ordered: one does not see the other's writes".into()
    } else if first.starts_with("Model exceeded") {
        format!("{NO_PROGRESS}: {MAX_BRANCHES} steps without an end")
    } else {
        first.into()
    }
}
