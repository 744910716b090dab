//! Chooses the locks that are ranked: those that were named, or all that do what is
//! needed. One that cannot is left out with the reason, and the others go on.

use super::arguments::RankSettings;
use crate::arguments::check_shared;
use crate::own;
use locklab_document::number::count;
use locklab_harness::ranking::{Question, Subject as Ranked};
use locklab_host::error::Error;
use locklab_native::subject::{self, Subject};
use locklab_user_lock::Source;

/// Copies of one lock that `--aa` ranks.
const COPIES: usize = 8;

/// Describes where locks are ranked, as far as it decides which can be.
pub(super) struct Place<'a> {
    /// The most threads that are asked for.
    pub(super) threads: usize,
    /// Says whether a lock works there; the message says where it does not.
    pub(super) works: &'a dyn Fn(&Subject) -> Result<(), String>,
}

/// Returns the locks of the arguments.
///
/// # Errors
/// [`Error::Usage`] if there is no lock of a name, one is named twice, today's
/// cannot be ranked, or fewer than two are left.
pub(super) fn question(args: &RankSettings, aa: bool, place: &Place) -> Result<Question, Error> {
    let usage = |text: String| Err(Error::Usage(text));
    let all = args.names.is_empty();
    if aa {
        return match (&args.names[..], &args.wanted.against) {
            ([name], None) => Ok(copies(&own::subject(name, &args.locks.own)?)),
            _ => usage("--aa ranks copies of one lock; name that one alone".into()),
        };
    }
    if let Some(twice) = args
        .names
        .iter()
        .enumerate()
        .find_map(|(i, name)| args.names[..i].contains(name).then_some(name))
    {
        return usage(format!(
            "{twice} is named twice; name each lock once (--aa ranks copies of one lock, and \
             shows what differs by chance)"
        ));
    }
    let mut asked: Vec<Subject> = if all {
        let every = subject::all().into_iter();
        every.chain(locklab_user_lock::registered()).collect()
    } else {
        let named = args
            .names
            .iter()
            .map(|name| own::subject(name, &args.locks.own));
        named.collect::<Result<_, _>>()?
    };
    let mut question = Question {
        against: args.wanted.against.is_some(),
        ..Question::default()
    };
    if let Some(today) = &args.wanted.against {
        let today = own::subject(today, &args.locks.own)?;
        if let Err(why) = fits(&today, place) {
            return usage(format!("{} cannot be ranked: {why}", today.info.name));
        }
        // What is in use is ranked whatever it lacks.
        asked.retain(|subject| subject.info.name != today.info.name);
        question.subjects.push(described(&today));
    }
    check_shared(&args.locks.turns.mix(), asked.iter())?;
    for subject in asked {
        let lacking = args
            .wanted
            .needs
            .iter()
            .find_map(|need| need.lacking(&subject));
        let name = subject.info.name;
        match (lacking, fits(&subject, place)) {
            (None, Ok(())) => question.subjects.push(described(&subject)),
            // Nobody asked for these.
            _ if all => {}
            (Some(why), _) | (None, Err(why)) => question.left_out.push((name.into(), why)),
        }
    }
    if args.wanted.against.is_none() {
        // All others are compared with the first, so that it should be the last
        // to fail.
        let is_own = |name: &str| matches!(Source::parse(name), Ok(Some(_)));
        question.subjects.sort_by_key(|ranked| is_own(&ranked.lock));
    }
    let left: Vec<String> = question
        .left_out
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    match question.subjects.len() {
        0 | 1 if !left.is_empty() => usage(format!(
            "a rank needs two locks, and {} left ({})",
            match question.subjects.len() {
                0 => "none is",
                _ => "one is",
            },
            left.join("; ")
        )),
        n @ (0 | 1) if all => usage(format!(
            "{} does all that is needed; ask for less, or name locks ('locklab locks' lists what \
             each can do)",
            match n {
                0 => "no lock".to_owned(),
                n => format!("only {}", count(n, "lock")),
            }
        )),
        0 | 1 => usage(
            "a rank needs two locks; name another, or none to rank all (--aa ranks copies of one)"
                .into(),
        ),
        _ => Ok(question),
    }
}

fn fits(subject: &Subject, place: &Place) -> Result<(), String> {
    let most = subject.info.max_cpus;
    if place.threads > most {
        return Err(format!("it serves at most {}", count(most, "thread")));
    }
    (place.works)(subject)
}

fn described(subject: &Subject) -> Ranked {
    Ranked {
        name: subject.info.name.to_owned(),
        lock: subject.info.name.to_owned(),
        bytes: subject.bytes as u64,
        bytes_per_waiter: subject.info.bytes_per_waiter as u64,
        context_free: subject.context_free,
    }
}

fn copies(subject: &Subject) -> Question {
    let one = described(subject);
    let copy = |number: usize| Ranked {
        name: format!("{} ({number})", one.name),
        ..one.clone()
    };
    Question {
        subjects: (1..=COPIES).map(copy).collect(),
        ..Question::default()
    }
}
