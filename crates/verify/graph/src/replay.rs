//! Writes an execution as a short string, and reads it back: which thread goes on for how
//! many events, and what was not the newest.
//!
//! `a4b2.1c3`: the first thread has four events, then the second has two, of which the
//! last reads (or is placed) one before the newest, then the third has three. A choice
//! without memory has its number after the dot.

use crate::event::{Kind, MAX_THREADS, Source};
use crate::graph::Graph;
use std::collections::VecDeque;
use std::fmt::Write;

/// What is to be done next: the thread, and how far from the newest.
pub(crate) type Guide = VecDeque<(usize, usize)>;

/// Returns the string of an execution.
pub(crate) fn encode(graph: &Graph) -> String {
    let mut text = String::new();
    let mut run = (usize::MAX, 0);
    let mut placed: Vec<Vec<usize>> = vec![Vec::new(); graph.locations.len()];
    let end = |text: &mut String, (thread, count): (usize, usize), choice: usize| {
        if count > 0 {
            // Writing to a string does not fail.
            let _ = write!(text, "{}{count}", char::from(b'a' + thread as u8));
            if choice > 0 {
                let _ = write!(text, ".{choice}");
            }
        }
    };
    // A read that waits sees the newest of all, so it comes last.
    let mut order = graph.linear();
    order.sort_by_key(|&id| graph.get(id).stuck);
    for id in order {
        let event = graph.get(id);
        if run.0 != id.thread() {
            end(&mut text, run, 0);
            run = (id.thread(), 0);
        }
        run.1 += 1;
        let newer = |placed: &[usize], position: usize| {
            placed.iter().filter(|&&other| other > position).count()
        };
        let choice = match event.kind {
            Kind::Choice(_) => event.value as usize,
            kind if kind.reads() => {
                let position = graph.position(event.location, event.source);
                newer(&placed[event.location as usize], position)
            }
            kind if kind.writes() || kind == Kind::PlainWrite => {
                let position = graph.position(event.location, Source::Write(id));
                let placed = &mut placed[event.location as usize];
                placed.push(position);
                newer(placed, position)
            }
            _ => 0,
        };
        if choice > 0 {
            end(&mut text, run, choice);
            run.1 = 0;
        }
    }
    end(&mut text, run, 0);
    text
}

/// Reads such a string.
pub(crate) fn decode(text: &str) -> Result<Guide, String> {
    let wrong = |at: usize| {
        format!(
            "the replay string {text:?} is wrong at its character {}",
            at + 1
        )
    };
    let bytes = text.trim().as_bytes();
    let number = |at: &mut usize| {
        let begin = *at;
        while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
            *at += 1;
        }
        let digits = std::str::from_utf8(&bytes[begin..*at]).ok();
        digits
            .and_then(|digits| digits.parse::<u16>().ok())
            .ok_or_else(|| wrong(begin))
    };
    let mut guide = Guide::new();
    let mut at = 0;
    while at < bytes.len() {
        let thread = usize::from(bytes[at].wrapping_sub(b'a'));
        if thread >= MAX_THREADS {
            return Err(wrong(at));
        }
        at += 1;
        let count = number(&mut at)?;
        guide.extend((0..count).map(|_| (thread, 0)));
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            let choice = number(&mut at)?;
            guide.back_mut().ok_or_else(|| wrong(at))?.1 = choice.into();
        }
    }
    Ok(guide)
}
