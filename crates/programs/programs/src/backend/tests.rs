//! Comparisons under a workload that is made up: whether a program against
//! itself is called different, and what becomes of faults.

use super::*;
use crate::counters::Mode;
use crate::subject::Subject;
use crate::workloads::WorkloadSpec;
use locklab_harness::experiment::{Order, Values};
use locklab_harness::progress::Progress;
use locklab_harness::runner::{Outcome, Runner, Stop};
use locklab_harness::settings::Limit;
use locklab_harness::store::{Recorder, Store};
use locklab_harness::verdicts::judge;
use locklab_judge::{Family, Verdict};
use std::cell::RefCell;
use std::rc::Rc;
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
    absent: Option<Error>,
    /// The subject and the seed of every run, and what was counted.
    log: Rc<RefCell<Vec<(String, u64, Filter)>>>,
}

impl MadeUp {
    fn new(seed: u64, effect: f64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            last: 0.0,
            runs: 0,
            effect,
            fail_at: None,
            absent: None,
            log: Rc::default(),
        }
    }

    fn failing(seed: u64, effect: f64, run: u32, fault: Fault) -> Self {
        Self {
            fail_at: Some((run, fault)),
            ..Self::new(seed, effect)
        }
    }

    /// Returns from -1 to 1 (xorshift).
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
    fn setup(&self, _: &Launcher) -> Facts {
        vec![("Runs so far".into(), self.runs.to_string())]
    }
    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher("rate", "ops/s", Source::Output),
            Metric::lower("faults", "", Source::Process),
        ]
    }
    fn check(&self, _: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        self.absent.clone().map_or(Ok(()), Err)
    }
    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        self.runs += 1;
        let run = (subject.label(), launcher.seed, launcher.filter);
        self.log.borrow_mut().push(run);
        if let Some((run, fault)) = &self.fail_at
            && *run == self.runs
        {
            return Err(fault.clone());
        }
        self.last = 0.5 * self.last + 0.02 * self.random();
        let drift = f64::from(self.runs) * 1e-4;
        let effect = if subject.label() == "new" {
            self.effect
        } else {
            1.0
        };
        let rate = 1e6 * effect * (self.last + drift).exp();
        let figures = [("rate", rate), ("faults", f64::from(self.runs % 3))];
        Ok(figures.map(|(n, v)| (n.to_owned(), v)).into())
    }
}

fn subject(name: &str) -> Subject {
    Subject {
        name: Some(name.into()),
        ..Subject::default()
    }
}

fn spec(workloads: usize) -> Spec {
    Spec {
        baseline: subject("old"),
        experiment: subject("new"),
        workloads: (0..workloads)
            .map(|n| WorkloadSpec {
                title: Some(format!("made-up-{n}")),
                ..WorkloadSpec::default()
            })
            .collect(),
        warm_up: 1,
        run_limit: Limit::seconds(1),
        pin: vec![],
        counters: Mode::None,
    }
}

fn backend(made_up: Vec<MadeUp>) -> Programs {
    let never = Arc::new(AtomicBool::new(false));
    let launcher = Launcher::new(vec![0], Duration::from_secs(1), never).unwrap();
    let spec = spec(made_up.len());
    let workloads = made_up
        .into_iter()
        .map(|w| Box::new(w) as Box<dyn Workload>);
    let root = tempfile::tempdir().unwrap();
    let environment = Environment::read_from(root.path());
    Programs::with_workloads(spec, environment, machine(), launcher, workloads.collect())
}

fn machine() -> Machine {
    Machine {
        name: "Example".into(),
        kernel: "Linux 6.1".into(),
        compiler: "rustc".into(),
        host: "here".into(),
        cpus: vec![0],
    }
}

fn design(seed: u64) -> Design {
    Design {
        seed,
        family: Family::Holm,
        ..Design::usual(20)
    }
}

fn run_into(backend: &mut Programs, seed: u64, recorder: &mut Recorder) -> (Experiment, Outcome) {
    let mut experiment = backend.experiment(design(seed));
    let outcome = Runner {
        design: &design(seed),
        recorder,
        progress: &Progress::hidden(),
        deadline: None,
        interrupt: &AtomicBool::new(false),
        undecided: &|_| Vec::new(),
    }
    .run(backend, &mut experiment.cells);
    (experiment, outcome)
}

fn run(seed: u64, made_up: MadeUp) -> (Experiment, Outcome) {
    run_into(&mut backend(vec![made_up]), seed, &mut Recorder::nowhere())
}

fn verdict(experiment: &Experiment) -> Verdict {
    let judged = judge(experiment).unwrap();
    judged.cells[0].verdict().unwrap().clone()
}

#[test]
fn a_program_against_itself_is_not_called_different() {
    let called = (1..=20)
        .map(|seed| verdict(&run(seed, MadeUp::new(seed, 1.0)).0))
        .filter(|v| !matches!(v, Verdict::Flat { .. } | Verdict::Unclear { .. }))
        .count();
    assert!(called <= 1, "{called} of 20");
}

#[test]
fn a_true_effect_is_found() {
    for (effect, wanted) in [(1.08, Verdict::Better), (0.93, Verdict::Worse)] {
        let (experiment, _) = run(1, MadeUp::new(7, effect));
        assert_eq!(verdict(&experiment), wanted);
        // The metric that was zero at times has no ratio, and is named.
        let judged = judge(&experiment).unwrap();
        assert_eq!(judged.cells[0].zero, ["faults"]);
    }
}

#[test]
fn the_coin_orders_the_pairs_and_the_seed_repeats_it() {
    let orders = |seed| -> Vec<Order> {
        let (experiment, _) = run(seed, MadeUp::new(1, 1.0));
        experiment.cells[0].pairs.iter().map(|p| p.order).collect()
    };
    let first = orders(3);
    assert_eq!(first.len(), 20);
    assert_eq!(orders(3), first);
    assert_ne!(orders(4), first);
    assert!(first.contains(&Order::BaselineFirst) && first.contains(&Order::ExperimentFirst));
}

/// The order that is recorded is the order that ran; both runs of a pair
/// draw the same and count the same misses.
#[test]
fn the_record_is_what_ran() {
    let made_up = MadeUp::new(1, 1.0);
    let log = Rc::clone(&made_up.log);
    let (experiment, _) = run(5, made_up);
    let log = log.borrow();
    let (warm_up, runs) = log.split_at(2);
    assert_eq!(
        (warm_up[0].0.as_str(), warm_up[1].0.as_str()),
        ("old", "new")
    );
    let mut seeds = Vec::new();
    for (pair, ran) in experiment.cells[0].pairs.iter().zip(runs.chunks(2)) {
        let first = if pair.order == Order::BaselineFirst {
            "old"
        } else {
            "new"
        };
        assert_eq!(ran[0].0, first);
        assert_ne!(ran[0].0, ran[1].0);
        assert_eq!((ran[0].1, ran[0].2), (ran[1].1, ran[1].2));
        seeds.push(ran[0].1);
    }
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 20);
    let user = runs.iter().filter(|run| run.2 == Filter::User).count();
    assert_eq!(user, 20);
    // The set-up is that of the end, not that of the beginning.
    assert_eq!(
        experiment.cells[0].facts,
        [("Runs so far".into(), "42".into())]
    );
}

#[test]
fn one_failed_run_costs_its_pair_alone() {
    let failed = Fault::Failed("exit status 1".into());
    let (experiment, _) = run(1, MadeUp::failing(1, 1.2, 9, failed));
    let pairs = &experiment.cells[0].pairs;
    assert_eq!(pairs.len(), 20);
    assert_eq!(pairs.iter().filter(|p| p.invalid().is_some()).count(), 1);
    assert_eq!(verdict(&experiment), Verdict::Better);
}

#[test]
fn a_failed_check_ends_the_workload_without_a_verdict_and_the_next_goes_on() {
    let failed = Fault::CheckFailed("3 requests failed".into());
    let mut absent = MadeUp::new(2, 1.0);
    absent.absent = Some(Error::Usage(
        "nginx is not installed; apt-get install nginx-light".into(),
    ));
    let mut all = backend(vec![
        MadeUp::failing(1, 1.2, 30, failed),
        absent,
        MadeUp::new(3, 1.2),
    ]);
    let (experiment, outcome) = run_into(&mut all, 1, &mut Recorder::nowhere());
    assert_eq!(outcome.stopped, None);
    assert!(matches!(verdict(&experiment), Verdict::Invalid(_)));
    let stopped = |cell: usize| experiment.cells[cell].stopped.as_deref().unwrap_or("");
    assert!(stopped(0).contains("3 requests failed"));
    assert!(stopped(1).contains("apt-get install nginx-light"));
    assert_eq!((stopped(2), experiment.cells[2].pairs.len()), ("", 20));
}

#[test]
fn a_warm_up_that_fails_twice_is_the_reason() {
    let made_up = MadeUp::failing(1, 1.0, 1, Fault::Failed("once".into()));
    assert_eq!(run(1, made_up).0.cells[0].stopped, None);
    let made_up = MadeUp::failing(1, 1.0, 1, Fault::Unrunnable("no loop devices".into()));
    let stopped = run(1, made_up).0.cells[0].stopped.clone();
    assert_eq!(stopped.as_deref(), Some("no loop devices"));
}

#[test]
fn an_interrupted_run_leaves_whole_pairs_and_a_half_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.sqlite")).unwrap();
    let mut programs = backend(vec![MadeUp::failing(1, 1.0, 20, Fault::Interrupted)]);
    let empty = programs.experiment(design(1));
    let id = store.begin("key", "test", &empty).unwrap();
    let mut recorder = Recorder::new(store, id);
    let (experiment, outcome) = run_into(&mut programs, 1, &mut recorder);
    assert_eq!(outcome.stopped, Some(Stop::Interrupted));
    assert_eq!(experiment.cells[0].pairs.len(), 8);
    let (samples, _) = recorder.with(|store, id| store.samples(Some(id))).unwrap();
    assert_eq!(samples.len(), 18);
    let half = |invalid: &Option<Invalid>| matches!(invalid, Some(Invalid::Interrupted(_)));
    let halves = samples.iter().filter(|s| half(&s.sample.invalid)).count();
    assert_eq!(halves, 1);
}

#[test]
fn resume_depends_on_the_question_and_bias_on_the_baseline_alone() {
    let one = backend(vec![MadeUp::new(1, 1.0)]);
    let mut other = backend(vec![MadeUp::new(1, 1.0)]);
    let cell = one.cells().remove(0);
    assert_eq!(one.fingerprint(), other.fingerprint());
    other.spec.experiment = subject("newer");
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.bias_fingerprint(&cell), other.bias_fingerprint(&cell));
    other.spec.pin = vec![0];
    assert_ne!(one.bias_fingerprint(&cell), other.bias_fingerprint(&cell));
    assert!(one.bias_fingerprint(&cell).is_some());
}
