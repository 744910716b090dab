//! Sessions of `locklab compare` on a workload that is made up: whether a
//! program against itself is called different, and what becomes of faults.

use locklab::compare::lab::Lab;
use locklab::compare::records::Recorder;
use locklab::compare::session::{Listener, Session};
use locklab::compare::{Measured, Measurement, Metric, Source, Spec, Subject, verdicts};
use locklab::counters::{Counters, Mode};
use locklab::workloads::{Asked, Fault, Figures, Workload};
use locklab_judge::Verdict;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A rate with noise that remembers the run before, and drifts.
struct MadeUp {
    state: u64,
    last: f64,
    runs: u32,
    effect: f64,
    fail_at: Option<(u32, Fault)>,
}

impl MadeUp {
    fn new(seed: u64, effect: f64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            last: 0.0,
            runs: 0,
            effect,
            fail_at: None,
        }
    }

    /// From -1 to 1 (xorshift).
    fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

impl Workload for MadeUp {
    fn about(&self) -> String {
        "Made up.".into()
    }
    fn setup(&self, _: &Lab) -> Vec<(String, String)> {
        vec![]
    }
    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher("rate", "ops/s", Source::Output),
            Metric::lower("faults", "", Source::Process),
        ]
    }
    fn check(&self, _: [&Subject; 2], _: &Lab) -> Result<(), String> {
        Ok(())
    }
    fn run(&mut self, subject: &Subject, _: &mut Lab) -> Result<Figures, Fault> {
        self.runs += 1;
        if let Some((run, fault)) = &self.fail_at
            && *run == self.runs
        {
            return Err(fault.clone());
        }
        self.last = 0.5 * self.last + 0.02 * self.random();
        let drift = f64::from(self.runs) * 1e-4;
        let effect = if subject.name.as_deref() == Some("new") {
            self.effect
        } else {
            1.0
        };
        let rate = 1e6 * effect * (self.last + drift).exp();
        let figures = [("rate", rate), ("faults", f64::from(self.runs % 3))];
        Ok(figures.map(|(n, v)| (n.to_owned(), v)).into())
    }
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Listener for Notes {
    fn progress(&mut self, done: u64, of: u64, _: &str) {
        assert!(done < of);
    }
    fn note(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

fn session(seed: u64, made_up: MadeUp) -> (Measured, Notes) {
    let subject = |name: &str| Subject {
        name: Some(name.into()),
        ..Subject::default()
    };
    let spec = Spec {
        baseline: subject("old"),
        experiment: subject("new"),
        workloads: vec![Asked::default()],
        pairs: 20,
        warm_up: 1,
        seed,
        delta: 0.01,
        time_limit: 1.0,
        pin: vec![],
        counters: Mode::None,
        aa: false,
    };
    let mut measured = Measured {
        machine: "Example".into(),
        environment: vec![],
        caveats: vec![],
        workloads: vec![Measurement {
            name: "made-up".into(),
            about: made_up.about(),
            setup: vec![],
            metrics: made_up.metrics(),
            bias_band: None,
            pairs: vec![],
            stopped: None,
        }],
        interrupted: None,
        spec,
    };
    let mut lab = Lab::new(
        None,
        vec![0],
        vec![],
        Duration::from_secs(1),
        Arc::new(AtomicBool::new(false)),
        Counters::none(),
    )
    .unwrap();
    let mut notes = Notes::default();
    let mut workloads: Vec<Box<dyn Workload>> = vec![Box::new(made_up)];
    Session {
        spec: &measured.spec,
        lab: &mut lab,
        recorder: &mut Recorder::nowhere(),
        listener: &mut notes,
    }
    .run(&mut workloads, &mut measured.workloads);
    (measured, notes)
}

fn verdict(measured: &Measured) -> Verdict {
    let judged = verdicts::judge(measured).unwrap();
    judged.workloads[0]
        .primary()
        .unwrap()
        .judged
        .verdict
        .clone()
}

#[test]
fn a_program_against_itself_is_not_called_different() {
    let called = (1..=20)
        .map(|seed| verdict(&session(seed, MadeUp::new(seed, 1.0)).0))
        .filter(|v| !matches!(v, Verdict::Flat { .. } | Verdict::Unclear { .. }))
        .count();
    assert!(called <= 1, "{called} of 20");
}

#[test]
fn a_true_effect_is_found() {
    for (effect, wanted) in [(1.08, Verdict::Better), (0.93, Verdict::Worse)] {
        let (measured, _) = session(1, MadeUp::new(7, effect));
        assert_eq!(verdict(&measured), wanted);
        // The metric that was zero at times has no ratio, and is named.
        let judged = verdicts::judge(&measured).unwrap();
        assert_eq!(judged.workloads[0].zero, ["faults"]);
    }
}

#[test]
fn the_coin_orders_the_pairs_and_the_seed_repeats_it() {
    let orders = |seed| -> Vec<bool> {
        let (measured, _) = session(seed, MadeUp::new(1, 1.0));
        measured.workloads[0]
            .pairs
            .iter()
            .map(|p| p.baseline_first)
            .collect()
    };
    let first = orders(3);
    assert_eq!(first.len(), 20);
    assert_eq!(orders(3), first);
    assert_ne!(orders(4), first);
    assert!(first.contains(&true) && first.contains(&false));
}

#[test]
fn one_failed_run_costs_its_pair_alone() {
    let mut made_up = MadeUp::new(1, 1.2);
    made_up.fail_at = Some((9, Fault::Failed("exit status 1".into())));
    let (measured, _) = session(1, made_up);
    assert_eq!(measured.workloads[0].pairs.len(), 20);
    let invalid = measured.workloads[0]
        .pairs
        .iter()
        .filter(|p| p.invalid().is_some());
    assert_eq!(invalid.count(), 1);
    assert_eq!(verdict(&measured), Verdict::Better);
}

#[test]
fn a_failed_check_ends_the_workload_without_a_verdict() {
    let mut made_up = MadeUp::new(1, 1.2);
    made_up.fail_at = Some((30, Fault::CheckFailed("3 requests failed".into())));
    let (measured, notes) = session(1, made_up);
    assert!(matches!(verdict(&measured), Verdict::Invalid(_)));
    assert!(
        measured.workloads[0]
            .stopped
            .as_ref()
            .unwrap()
            .contains("check failed")
    );
    assert_eq!(notes.0.len(), 1);
}

#[test]
fn an_interrupted_session_says_so_and_keeps_its_pairs() {
    let mut made_up = MadeUp::new(1, 1.0);
    made_up.fail_at = Some((20, Fault::Interrupted));
    let (measured, _) = session(1, made_up);
    assert_eq!(
        measured.workloads[0].stopped.as_deref(),
        Some("interrupted")
    );
    assert_eq!(measured.workloads[0].pairs.len(), 8);
}
