//! Says what a reader does first: the first paragraph (what to do, what it gains, what nothing
//! can exceed), by one table of rules.
//!
//! The first row of [`RULES`] that says something is the advice; a new rule is a row and its
//! function, and no other change. A rule must never name a size that the model is too far off
//! for, nor a lock to try whose band has 1 in it.

use crate::candidate::Candidate;
use crate::confirm::wait_option;
use crate::here::Here;
use crate::question::Question;
use crate::runs::Advice;
use crate::words::{Context, Summary, bound, to_confirm, what_if};
use locklab_document::number;
use locklab_replay::Program;

/// Describes what rules may look at.
pub(crate) struct Facts<'a> {
    /// Holds the simulations, if there are any.
    pub(crate) advice: Option<&'a Advice>,
    /// Holds what they say of each machine and number of threads.
    pub(crate) summaries: &'a [Summary<'a>],
    pub(crate) program: &'a Program,
    pub(crate) question: &'a Question,
    pub(crate) context: &'a Context<'a>,
}

/// What a rule says where it applies.
type Rule = fn(&Facts<'_>) -> Option<String>;

/// The rules: the first that applies is the advice; and whether a command confirms it.
const RULES: [(Rule, bool); 6] = [
    (must_stay, false),
    (contradicted_here, false),
    (on_full_cpus, false),
    (another_lock, true),
    (used_otherwise, false),
    (as_it_is, false),
];

/// The lock that is waited for most is of a kind that is not replaced.
fn must_stay(facts: &Facts<'_>) -> Option<String> {
    let kept = facts.context.kept.as_ref()?;
    Some(format!("Keep the lock: {kept}."))
}

/// The lock that the model gives most was not ahead when real threads replayed the program here.
fn contradicted_here(facts: &Facts<'_>) -> Option<String> {
    let lock = &facts.question.locks[facts.to_try()?];
    let Here::Rate(ratio) = &facts.context.tried else {
        return None;
    };
    (*ratio <= 1.0).then(|| {
        format!(
            "Keep the lock as it is: the model is for {}, and replayed here by real threads the \
             program had {ratio:.2} times today's rate with it.",
            lock.name()
        )
    })
}

/// Another lock or another use helps in the model, but others had the CPUs while it was recorded.
fn on_full_cpus(facts: &Facts<'_>) -> Option<String> {
    let others = facts.context.info.shared_with_others()?;
    another_lock(facts).or_else(|| used_otherwise(facts))?;
    Some(format!(
        "Keep the lock as it is until the program is recorded on an idle machine: other programs \
         used {others:.1} CPUs during the recording, and the model is of free CPUs."
    ))
}

/// A lock helps in every variant of the model, on every machine.
fn another_lock(facts: &Facts<'_>) -> Option<String> {
    let mut words = a_try(facts)?;
    match &facts.context.tried {
        Here::Rate(ratio) => {
            words += &format!(" Replayed here by real threads, it had {ratio:.2} times the rate.");
        }
        Here::Not(why) => words += &format!(" That was not replayed here: {why}."),
    }
    Some(words)
}

/// The same lock, held shorter, split, or with readers, gains more.
fn used_otherwise(facts: &Facts<'_>) -> Option<String> {
    what_if(facts.summaries, facts.question, &facts.advice?.gate)
}

/// Nothing that was simulated is shown to help.
fn as_it_is(facts: &Facts<'_>) -> Option<String> {
    facts.advice?;
    Some("Keep the lock as it is: no lock that was tried is shown to help.".into())
}

impl Facts<'_> {
    /// Returns the lock to try, by its place in the question.
    fn to_try(&self) -> Option<usize> {
        self.advice?;
        to_confirm(self.summaries, self.program, self.question)
    }

    /// Returns what the first rule that applies says, and whether a command confirms it.
    fn first(&self) -> Option<(String, bool)> {
        let mut rules = RULES.iter();
        rules.find_map(|(says, confirms)| Some((says(self)?, *confirms)))
    }

    /// Returns the lock that a command can put in the place of today's, if that is the advice.
    pub(crate) fn to_confirm(&self) -> Option<&Candidate> {
        let number = self.to_try().filter(|_| !self.context.own)?;
        self.first().filter(|(_, confirms)| *confirms)?;
        Some(&self.question.locks[number])
    }

    /// Returns what to do, what it gains and what nothing can exceed, in a few sentences.
    pub(crate) fn paragraph(&self) -> String {
        let context = self.context;
        let (mut words, mut is_a_try) = (Vec::new(), false);
        if let Some((says, confirms)) = self.first() {
            (words, is_a_try) = (vec![says], confirms);
        }
        if let Some(spent) = context.used.spent()
            && let Some((part, cause, remedy)) = match context.kept {
                Some(_) => spent.largest_but_waking(),
                None => spent.largest(),
            }
            && !is_a_try
        {
            words.push(format!(
                "{} % of the waiting is {cause}: {remedy}.",
                number::percent(100.0 * part)
            ));
        }
        words.push(match context.as_recorded {
            true => context.judged.words.clone(),
            false => bound(self.summaries, self.question),
        });
        words.retain(|words| !words.is_empty());
        words.join(" ")
    }
}

/// Returns the lock to try, and what it gains.
fn a_try(facts: &Facts<'_>) -> Option<String> {
    let (advice, number) = (facts.advice?, facts.to_try()?);
    let question = facts.question;
    let lock = &question.locks[number];
    let of_lock = |summary: &Summary<'_>| {
        let mut locks = summary.locks.iter();
        let (_, verdict) = locks.find(|(place, _)| *place == number)?;
        Some((summary.place(question), *verdict))
    };
    let (place, verdict) = facts
        .summaries
        .iter()
        .filter_map(of_lock)
        .max_by(|one, two| one.1.ratio.total_cmp(&two.1.ratio))?;
    let name = match facts.context.own {
        // 'run' cannot put it there.
        true => format!("{} in the place of the program's own lock", lock.lock),
        false => format!("{}{}", lock.lock, wait_option(lock)),
    };
    Some(match advice.gate.gives_sizes() {
        true => {
            let [low, high] = verdict.widened(advice.gate.spread());
            format!(
                "Try {name}: on {place} the model gives it {:.2} times today's rate ({low:.2} to \
                 {high:.2} with 90 % confidence).",
                verdict.ratio
            )
        }
        false => format!(
            "Try {name}: in every variant of the model it is ahead of today's lock by more than the \
             model is off, which gives {:.2} times the recorded rate and cannot say by how much.",
            advice.gate.ratio()
        ),
    })
}
