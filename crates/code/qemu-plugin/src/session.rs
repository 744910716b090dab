// SPDX-License-Identifier: GPL-2.0-or-later
//! One run of QEMU: its settings, which parts of it were measured, and the
//! report at the end of each.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use locklab_frontend::icache::marker::Marker;
use locklab_frontend::icache::{Geometry, Prefetch};
use locklab_frontend::{Frontend, Processor};

use crate::api::Id;
use crate::arguments::Arguments;
use crate::report::{self, Target};
use crate::sampling::Lengths;
use crate::seen::{ByMode, Mode, Seen};
use crate::translate::Translator;
use crate::vcpu;

/// Holds the state of a whole run.
pub(crate) struct Session {
    arguments: Arguments,
    target: Target,
    process: u32,
    measured: Mutex<Measured>,
    translator: Mutex<Translator>,
}

/// The parts between markers, or the one part that is the whole run.
#[derive(Default)]
pub(crate) struct Measured {
    /// Each vCPU's counts when the open part began.
    open: Option<Vec<ByMode>>,
    /// The vCPU whose counts the parts have; that of all, if none is named.
    only: Option<usize>,
    /// The closed parts, in order.
    pub(crate) parts: Vec<ByMode>,
    pub(crate) begins: u64,
    pub(crate) ends: u64,
    pub(crate) spans: Spans,
}

/// The spans within the measured parts, all together.
#[derive(Default)]
pub(crate) struct Spans {
    /// The counts of each vCPU when its open span began.
    open: HashMap<usize, ByMode>,
    pub(crate) ended: u64,
    pub(crate) total: ByMode,
}

static SESSION: OnceLock<Session> = OnceLock::new();

/// Is true while a part is open, for callbacks that count only then.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Returns the session, once the plugin is installed.
pub(crate) fn get() -> Option<&'static Session> {
    SESSION.get()
}

/// Returns the session, unless this is a forked child. A child has its parent's
/// counts, which the parent reports, and perhaps a lock that another of its
/// parent's threads held.
fn get_own() -> Option<&'static Session> {
    get().filter(|session| session.process == std::process::id())
}

/// Starts the session.
pub(crate) fn start(arguments: Arguments, target: Target) -> &'static Session {
    SESSION.get_or_init(|| {
        let measured = Measured {
            open: (!arguments.markers).then(Vec::new),
            only: arguments.vcpu,
            ..Measured::default()
        };
        OPEN.store(measured.open.is_some(), Relaxed);
        Session {
            translator: Mutex::new(Translator::new(&arguments, target.system)),
            measured: Mutex::new(measured),
            process: std::process::id(),
            arguments,
            target,
        }
    })
}

/// Returns whether the part that runs now is measured.
pub(crate) fn is_open() -> bool {
    OPEN.load(Relaxed)
}

impl Session {
    pub(crate) fn geometry(&self) -> Geometry {
        self.arguments.geometry
    }

    /// Returns the lengths of the sample, if a part of the blocks is simulated only.
    pub(crate) fn sample(&self) -> Option<Lengths> {
        self.arguments.sample
    }

    /// Returns the processor whose front end is modelled.
    pub(crate) fn processor(&self) -> Option<&Processor> {
        self.arguments.processor.as_ref()
    }

    pub(crate) fn prefetch(&self) -> Prefetch {
        self.arguments.prefetch
    }

    /// Returns a new front end, if a processor is modelled.
    pub(crate) fn frontend(&self) -> Option<Frontend<'static>> {
        let processor = self.arguments.processor.as_ref()?;
        // The arguments were tried when they were read.
        let mut frontend = Frontend::new(processor, self.geometry(), self.prefetch()).ok()?;
        if self.arguments.sites.is_some() {
            frontend.note_sites();
        }
        if self.arguments.hashes {
            frontend.try_other_hashes(processor);
        }
        Some(frontend)
    }

    pub(crate) fn translator(&self) -> MutexGuard<'_, Translator> {
        self.translator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, measured: &Measured) {
        let vcpus = vcpu::read_all().len();
        if let Some(only) = self.arguments.vcpu.filter(|only| *only >= vcpus) {
            // The file stays empty, which is no result.
            eprintln!("locklab: there is no vCPU {only}: the machine has {vcpus}, from 0 on");
            return;
        }
        let translator = self.translator();
        let rewritten = translator.rewritten();
        let mut written = report::write(&self.arguments, &self.target, measured, rewritten);
        if let (Some(path), Some(hot)) = (&self.arguments.hot, &translator.hot) {
            written = written.and(hot.write(path));
        }
        if let Err(error) = written {
            eprintln!("locklab: {error}");
        }
    }
}

/// A marker in translated code.
pub(crate) struct MarkerSite {
    pub(crate) marker: Marker,
    pub(crate) mode: Mode,
    /// Instructions of its block that come after it.
    pub(crate) after: u64,
}

/// Runs when a vCPU executes a marker; the userdata is a
/// `&'static MarkerSite`.
pub(crate) extern "C" fn on_marker(vcpu: c_uint, site: *mut c_void) {
    let Some(session) = get_own() else { return };
    // SAFETY: registered with a `&'static MarkerSite`.
    let site = unsafe { &*site.cast::<MarkerSite>() };
    let span = matches!(site.marker, Marker::SpanBegin | Marker::SpanEnd);
    if span && !is_open() {
        return;
    }
    let mut counts = vcpu::read_all();
    // The block is counted as a whole when it is entered; what comes after a
    // marker belongs to the other side of it.
    if let Some(here) = counts.get_mut(vcpu as usize) {
        let here = &mut here[site.mode as usize].counts.instructions;
        *here = here.saturating_sub(match site.marker {
            Marker::Begin | Marker::SpanBegin => site.after,
            Marker::End | Marker::SpanEnd => site.after + 1,
        });
    }
    let mut measured = session.measured();
    match site.marker {
        Marker::Begin => measured.begin(counts),
        Marker::End => {
            measured.end(&counts);
            session.report(&measured);
        }
        Marker::SpanBegin | Marker::SpanEnd => {
            let vcpu = vcpu as usize;
            if let Some(&here) = counts.get(vcpu) {
                measured.spans.mark(site.marker, vcpu, here);
            }
        }
    }
    OPEN.store(measured.open.is_some(), Relaxed);
}

/// Runs when QEMU ends.
pub(crate) extern "C" fn on_exit(_id: Id, _userdata: *mut c_void) {
    let Some(session) = get_own() else { return };
    let mut measured = session.measured();
    measured.close(&vcpu::read_all());
    OPEN.store(false, Relaxed);
    session.report(&measured);
    if let (Some(path), Some(sites)) = (&session.arguments.sites, &session.translator().sites) {
        // SAFETY: the program has ended. Threads that it left behind are in the kernel or are
        // ended with it; what one of them still counts is lost or not.
        let events = unsafe { vcpu::read_sites() };
        if let Err(error) = sites.write(path, &events) {
            eprintln!("locklab: {error}");
        }
    }
}

impl Spans {
    /// Opens a span of a vCPU, which begins anew if one is open, or closes the open one.
    fn mark(&mut self, marker: Marker, vcpu: usize, here: ByMode) {
        if marker == Marker::SpanBegin {
            self.open.insert(vcpu, here);
        } else if let Some(before) = self.open.remove(&vcpu) {
            self.ended += 1;
            for (mode, now) in here.into_iter().enumerate() {
                self.total[mode] = self.total[mode] + (now - before[mode]);
            }
        }
    }
}

impl Measured {
    /// Opens a part; one that is open begins anew.
    fn begin(&mut self, counts: Vec<ByMode>) {
        self.begins += 1;
        self.open = Some(counts);
    }

    fn end(&mut self, counts: &[ByMode]) {
        self.ends += 1;
        self.close(counts);
    }

    /// Closes the open part, if there is one.
    fn close(&mut self, counts: &[ByMode]) {
        let Some(before) = self.open.take() else {
            return;
        };
        let mut part = ByMode::default();
        for (vcpu, now) in counts.iter().enumerate() {
            if self.only.is_some_and(|only| only != vcpu) {
                continue;
            }
            // A vCPU that appeared since began with nothing.
            let before = before.get(vcpu).copied().unwrap_or_default();
            for mode in [Mode::User, Mode::Kernel] {
                let mode = mode as usize;
                part[mode] = part[mode] + (now[mode] - before[mode]);
            }
        }
        self.parts.push(part);
    }

    /// Returns the counts of all parts together.
    pub(crate) fn total(&self) -> ByMode {
        let sum = |mode: usize| {
            self.parts
                .iter()
                .fold(Seen::default(), |sum, part| sum + part[mode])
        };
        [sum(0), sum(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_frontend::icache::Counts;

    fn counts(user: u64, kernel: u64) -> ByMode {
        let count = |n| Seen {
            counts: Counts {
                instructions: n,
                fetches: n / 4,
                misses: n / 100,
            },
            ..Seen::default()
        };
        [count(user), count(kernel)]
    }

    #[test]
    fn parts_add_up_over_vcpus() {
        let mut measured = Measured::default();
        measured.begin(vec![counts(1000, 5000)]);
        measured.end(&[counts(1400, 5200), counts(300, 0)]);
        measured.begin(vec![counts(2000, 6000), counts(300, 0)]);
        measured.end(&[counts(2000, 6100), counts(400, 0)]);
        assert_eq!(measured.parts.len(), 2);
        assert_eq!(measured.total()[0].counts.instructions, 400 + 300 + 100);
        assert_eq!(measured.total()[1].counts.instructions, 200 + 100);
    }

    #[test]
    fn one_vcpu_can_be_reported_alone() {
        let mut measured = Measured {
            only: Some(1),
            ..Measured::default()
        };
        measured.begin(vec![counts(1000, 5000), counts(10, 20)]);
        measured.end(&[counts(1400, 5200), counts(310, 25)]);
        assert_eq!(measured.total()[0].counts.instructions, 300);
        assert_eq!(measured.total()[1].counts.instructions, 5);
    }

    #[test]
    fn spans_are_of_one_vcpu_each_and_begin_anew() {
        let mut spans = Spans::default();
        spans.mark(Marker::SpanEnd, 0, counts(1, 1));
        spans.mark(Marker::SpanBegin, 0, counts(0, 100));
        spans.mark(Marker::SpanBegin, 1, counts(0, 7));
        spans.mark(Marker::SpanBegin, 0, counts(0, 150));
        spans.mark(Marker::SpanEnd, 0, counts(0, 180));
        spans.mark(Marker::SpanEnd, 1, counts(0, 9));
        assert_eq!((spans.ended, spans.total[1].counts.instructions), (2, 32));
    }

    #[test]
    fn an_end_without_a_begin_measures_nothing() {
        let mut measured = Measured::default();
        measured.end(&[counts(1000, 0)]);
        assert_eq!((measured.parts.len(), measured.ends), (0, 1));
        assert_eq!(measured.total(), ByMode::default());
    }
}
