//! Shows an execution as a person reads it: what happens in memory, the lives of threads,
//! and who holds a lock.
//!
//! It must add nothing that the execution does not have.

use super::calls::told;
use super::client::READER;
use super::world::{Owner, with};
use locklab_graph::{Failure, Kind, Place, Source as From};
use locklab_verify::Step;

/// Returns an execution as a person reads it: what happens in memory, and the lives of
/// threads.
pub(super) fn steps(failure: &Failure) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for (number, step) in failure.steps.iter().enumerate() {
        let address = step.location.map(|(address, _)| address as usize);
        let ours = |address| with(|world| world.owner(address).map(|(owner, _)| owner));
        let owner = address.and_then(ours);
        let hidden = |address| with(|world| world.is_result(address));
        if address.is_some_and(hidden) || owner == Some(Owner::Waits) {
            continue;
        }
        let name = address.map_or_else(String::new, |at| with(|world| world.name(at)));
        let shown = |value| with(|world| world.shown(value));
        let sleeps = address.is_some_and(|at| with(|world| world.is_futex(at)));
        let value = shown(step.value);
        let what = match step.kind {
            Kind::Load | Kind::Await => format!("{name} is {value}"),
            Kind::PlainWrite if owner == Some(Owner::Data) => "IS INSIDE".to_owned(),
            Kind::PlainRead if owner == Some(Owner::Data) => "READS INSIDE".to_owned(),
            // Who is counted in, and not out.
            Kind::UpdateWrite if owner == Some(Owner::Data) => {
                let before = failure.steps[..number].iter().rev();
                let mut own = before.filter(|before| before.id.thread == step.id.thread);
                match step
                    .value
                    .wrapping_sub(own.next().map_or(0, |read| read.value))
                {
                    1 => "IS INSIDE".to_owned(),
                    READER => "READS INSIDE".to_owned(),
                    _ => "LEAVES".to_owned(),
                }
            }
            _ if owner == Some(Owner::Data) => continue,
            // Its value is that of the last write, which the race may leave open.
            Kind::PlainRead => format!("reads {name}"),
            Kind::UpdateRead => {
                let next = failure.steps[number + 1..]
                    .iter()
                    .find(|next| next.id.thread == step.id.thread);
                match next.filter(|next| next.kind == Kind::UpdateWrite) {
                    Some(next) if sleeps => told(&name, step.value, next.value),
                    None if sleeps => format!("sleeps: {name}"),
                    Some(next) => format!("{name} {value} > {}", shown(next.value)),
                    None => format!("{name} is {value}"),
                }
            }
            Kind::Store | Kind::PlainWrite => format!("{name} = {value}"),
            Kind::Fence => format!("fence ({:?})", step.order).to_lowercase(),
            Kind::Spawn(thread) => format!("creates thread {thread}"),
            Kind::Join(thread) => format!("joins thread {thread}"),
            Kind::Free => format!("frees {name}"),
            Kind::Choice(of) => format!("choice {value} of {of}"),
            _ => continue,
        };
        let stale = match step.source {
            Some(source) if !is_newest(failure, number, source) => ", an old value",
            _ => "",
        };
        let waits = if step.waits && !sleeps { ", waits" } else { "" };
        let (file, line) = match step.place {
            Place::Source { file, line, .. } => (file.to_owned(), line),
            Place::Address(_) => (String::new(), 0),
        };
        // The lives of threads that are ours.
        if line == 0 && owner.is_none() {
            continue;
        }
        all.push(Step {
            thread: step.id.thread.into(),
            file,
            line,
            what: format!("{what}{stale}{waits}"),
        });
    }
    all
}

/// Returns whether nothing was written between a read's source and the read.
fn is_newest(failure: &Failure, read: usize, source: From) -> bool {
    let step = &failure.steps[read];
    let before = &failure.steps[..read];
    let writes =
        |other: &&locklab_graph::Step| other.location == step.location && other.position.is_some();
    let last = before.iter().rev().find(writes).map(|write| write.id);
    match source {
        From::Initial => last.is_none(),
        From::Write(write) => last == Some(write),
    }
}
