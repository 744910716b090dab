//! Two CPUs at work at once, on lines that they share. Measures nothing by itself.

use locklab_host::topology;
use std::sync::atomic::AtomicUsize;

/// A word that shares no line, and no pair of lines, with another.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Line(pub(super) AtomicUsize);

/// Runs `code` on two CPUs at once, which it tells which of them it is on; returns what both
/// found.
pub(super) fn on_both<T: Clone + Send>(
    cpus: [usize; 2],
    code: impl Fn(usize) -> Vec<T> + Sync,
) -> Vec<T> {
    let code = &code;
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|which| {
            scope.spawn(move || {
                topology::pin_to(cpus[which]);
                code(which)
            })
        });
        threads
            .map(|thread| thread.join().unwrap_or_default())
            .concat()
    })
}
