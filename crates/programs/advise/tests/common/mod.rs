//! An answer to a recording, as tests of several kinds ask for one.

use locklab_advise::{Candidate, Request};
use locklab_preload_run::Symbols;
use locklab_sim::Machine;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the answer in JSON, without a replay: on a model of the machine that recorded, or on
/// what can be known of it.
pub(crate) fn answer(file: &Path, here: Option<Machine>) -> Value {
    let asked = Request {
        file,
        other: None,
        on: Vec::new(),
        here,
        threads: Vec::new(),
        locks: vec![Candidate::named("futex-adaptive").unwrap()],
        replay: false,
        draws: 2,
        seed: 1,
        workers: 2,
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    let answer = asked
        .read()
        .and_then(|asking| asking.answer(&mut Symbols::default(), &interrupt, |_, _| {}))
        .unwrap();
    Value::Object(answer.document.data)
}
