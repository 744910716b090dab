//! The first paragraph: what to do, what it gains, what nothing can exceed.
//!
//! It has three sentences at most. It must never name a size that the model is too far off
//! for.

use crate::confirm::wait_option;
use crate::context::Context;
use crate::question::Question;
use crate::runs::Advice;
use crate::words::{Summary, bound, percent, to_confirm, what_if};
use locklab_document::number;
use locklab_replay::Program;

/// What to do, what it gains and what nothing can exceed, in three sentences at most.
pub(crate) fn paragraph(
    advice: Option<&Advice>,
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
    context: &Context<'_>,
) -> String {
    let mut words = Vec::new();
    let to_try = advice.and_then(|advice| {
        let number = to_confirm(summaries, program, question)?;
        Some((advice, number))
    });
    if let Some(kept) = &context.kept {
        words.push(format!("Keep the lock: {kept}."));
    } else if let Some((advice, number)) = to_try {
        words.extend(a_try(advice, number, summaries, question));
    } else if let Some(advice) = advice {
        let sizes = advice.gate.gives_sizes();
        words.push(match what_if(summaries, question).filter(|_| sizes) {
            Some(otherwise) => otherwise,
            None => {
                "Keep the lock as it is: none of those that were tried is shown to help.".to_owned()
            }
        });
    }
    if words.len() < 2
        && let Some(spent) = context.used.spent()
        && let (Some(remedy), Some((part, cause))) = (spent.remedy(), spent.parts().first())
    {
        words.push(format!(
            "{} % of the waiting is {cause}: {remedy}.",
            number::percent(100.0 * part)
        ));
    }
    words.push(match context.as_recorded {
        true => measured_bound(advice, summaries, context),
        false => bound(summaries, question),
    });
    words.retain(|words| !words.is_empty());
    words.join(" ")
}

/// The lock to try, and what it gains.
fn a_try(
    advice: &Advice,
    number: usize,
    summaries: &[Summary<'_>],
    question: &Question,
) -> Option<String> {
    let lock = &question.locks[number];
    let of_lock = |summary: &Summary<'_>| {
        let mut locks = summary.locks.iter();
        let (_, verdict) = locks.find(|(place, _)| *place == number)?;
        Some((summary.place(question), *verdict))
    };
    let (place, verdict) = summaries
        .iter()
        .filter_map(of_lock)
        .max_by(|one, two| one.1.ratio.total_cmp(&two.1.ratio))?;
    let name = format!("{}{}", lock.lock, wait_option(lock));
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
            "Try {name}: it is ahead of today's lock in every variant of the model, which at \
             {:.2} times the recorded rate is too far off to say by how much.",
            advice.gate.ratio()
        ),
    })
}

/// What no lock can exceed, by the recording itself; more if the model says so.
fn measured_bound(
    advice: Option<&Advice>,
    summaries: &[Summary<'_>],
    context: &Context<'_>,
) -> String {
    let share = |part: f64| number::percent(100.0 * part);
    let modelled = advice
        .filter(|advice| advice.gate.gives_sizes())
        .map_or(0.0, |_| {
            summaries.iter().map(Summary::most).fold(0.0, f64::max)
        });
    let most = (100.0 * context.bound.most()).max(modelled);
    let interval = context
        .bound
        .interval
        .map_or_else(String::new, |[low, high]| {
            format!(" ({} to {} %)", share(low), share(high))
        });
    format!(
        "No lock can gain more than {}: as recorded, threads spend {} %{interval} of the time in \
         which they have work waiting for locks or waking those that do.",
        percent(most),
        share(context.bound.share)
    )
}
