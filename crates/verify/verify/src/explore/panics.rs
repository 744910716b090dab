//! Panics of a model, which are promises that it breaks: reported, and not printed.
//!
//! Must never hide a panic of the checker itself.

use crate::limits::MAX_BRANCHES;
use std::any::Any;
use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` and keeps its panics, which are broken promises, from being printed.
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

/// Returns the first line of what a model says when it fails.
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

/// Returns whether a message says that.
pub(super) fn says_no_end(message: &str) -> bool {
    message.starts_with(NO_PROGRESS)
}

const NO_PROGRESS: &str = "no progress";
