//! Appends to the report of a matrix what the simulator knows: to a simulated one the
//! figures that only a simulation can give, read back from the samples, so that a
//! stored report has them too; to a measured one the command that goes beyond the
//! limits of its machine.

use locklab_document::{Column, Document, Part, Section, Table};
use locklab_harness::experiment::{AT_ONCE, Cell, Experiment, Provenance};
use locklab_harness::verdicts::Verdicts;
use locklab_sim::{Distance, Outcome, can_be_simulated};
use serde_json::{Value, json};

/// Appends to the report of a matrix what hardware cannot show, or what this machine
/// cannot.
pub fn append(experiment: &Experiment, _: &Verdicts, report: &mut Document) {
    match experiment.provenance {
        Provenance::Simulation(_) => append_simulated(experiment, report),
        Provenance::Hardware(_) => {
            let section = |text| Section::new("What this machine cannot show").prose(text);
            report
                .sections
                .extend(larger_machine(experiment).map(section));
        }
        Provenance::Model(_) => {}
    }
}

/// Appends what hardware cannot show, from the samples: a paragraph that explains
/// the tables, a table for each lock, and as JSON every outcome and a hash of all
/// of them.
fn append_simulated(experiment: &Experiment, report: &mut Document) {
    let Some(first) = experiment.cells.first() else {
        return;
    };
    let place = |axis: &str| first.key.number(axis).unwrap_or_default();
    let shown: Vec<&Cell> = experiment
        .cells
        .iter()
        .filter(|cell| {
            ["critical", "non_critical", AT_ONCE]
                .iter()
                .all(|axis| cell.key.number(axis) == first.key.number(axis))
        })
        .collect();
    let labels = &experiment.labels;
    let tables = [&labels.baseline, &labels.experiment]
        .into_iter()
        .enumerate()
        .map(|(side, lock)| {
            let rows = shown.iter().filter_map(|cell| {
                let pair = cell.pairs.first()?;
                let outcome = outcome(&pair.samples()[side].detail)?;
                Some(row(cell.key.number("threads")?, &outcome))
            });
            let columns = COLUMNS.map(|(title, width)| Column::new(title, width));
            let table = Table::new(columns.into(), rows.collect());
            Section::minor(lock.as_str()).with(Part::Table(table))
        });
    let samples = experiment.cells.iter().flat_map(|cell| &cell.pairs);
    let details: Vec<&Value> = samples
        .flat_map(|pair| pair.samples())
        .map(|sample| &sample.detail)
        .collect();
    let outcomes: Vec<Outcome> = details.iter().filter_map(|d| outcome(d)).collect();
    let hash = Outcome::hash_of_all(&outcomes);
    let about = format!(
        "Critical length {}, non-critical length {}, one seed. For one acquisition: lines \
         moved, waiting for lines and for the lock (mean, ns). Longest wait, us. Handoffs in \
         percent: to another thread of the same core, the cluster, the socket, another \
         socket; the rest are the same thread again. {} Trace hash of all runs: {hash:016x}.",
        place("critical"),
        place("non_critical"),
        steadiness(&outcomes),
    );
    let about = match outcomes.iter().map(|run| run.most_readers).max() {
        None | Some(0) => about,
        Some(most) => format!("{about} At most {most} readers held a lock at once."),
    };
    let simulation = json!({
        "trace_hash": format!("{hash:016x}"),
        "runs": details,
    });
    report.push(Section::new("What hardware cannot show").prose(about));
    report.sections.extend(tables);
    report.data.insert("simulation".into(), simulation);
}

/// Returns a sentence on how long runs warmed up, how precise each is by itself, and
/// whether any still drifted.
fn steadiness(outcomes: &[Outcome]) -> String {
    let warm = outcomes.iter().map(|run| run.warmup);
    let (Some(least), Some(most)) = (warm.clone().min(), warm.max()) else {
        return String::new();
    };
    let drifting = outcomes.iter().filter(|run| run.steady == Some(false));
    let drifting = drifting.count();
    let mut widths: Vec<f64> = outcomes.iter().filter_map(|run| run.half_width).collect();
    widths.sort_by(f64::total_cmp);
    let precise = match (widths.get(widths.len() / 2), widths.last()) {
        (Some(half), Some(worst)) => format!(
            "each run's rate is known to +-{:.1} % (half of them) or better, +-{:.1} % at worst",
            100.0 * half,
            100.0 * worst
        ),
        _ => "runs are too short to say how precise each is".to_owned(),
    };
    let warm = match least == most {
        true => most.to_string(),
        false => format!("{least} to {most}"),
    };
    format!(
        "Warm-up of {warm} acquisitions; {precise}; {drifting} of {} still drifted.",
        outcomes.len()
    )
}

fn outcome(detail: &Value) -> Option<Outcome> {
    serde_json::from_value(detail.clone()).ok()
}

/// The columns of a lock's table, each with its width.
const COLUMNS: [(&str, usize); 10] = [
    ("threads", 7),
    ("lines", 6),
    ("line ns", 7),
    ("lock ns", 7),
    ("longest", 7),
    ("core", 4),
    ("cluster", 7),
    ("socket", 6),
    ("other", 5),
    ("starved", 7),
];

fn row(threads: u64, run: &Outcome) -> Vec<String> {
    let share = |distance: Distance| {
        let part = run.handoffs[distance as usize] as f64 / run.acquisitions.max(1) as f64;
        format!("{:.0}", 100.0 * part)
    };
    let starved = match run.starved.len() {
        0 => String::new(),
        starved => starved.to_string(),
    };
    vec![
        threads.to_string(),
        format!("{:.1}", run.lines_moved),
        format!("{:.0}", run.line_wait_ns),
        format!("{:.0}", run.lock_wait_ns),
        format!("{:.0}", run.longest_wait_ns / 1e3),
        share(Distance::Core),
        share(Distance::Cluster),
        share(Distance::Socket),
        share(Distance::Remote),
        starved,
    ]
}

/// The number of threads at once with which a machine shows the benefit of queues.
const MANY: u64 = 64;

/// Returns the closing paragraph of a report from hardware; `None` where the machine
/// had enough CPUs, or where the locks cannot be simulated.
fn larger_machine(experiment: &Experiment) -> Option<String> {
    let at_once = experiment
        .cells
        .iter()
        .filter(|cell| !cell.oversubscribed)
        .filter_map(|cell| cell.key.number("threads"))
        .max()?;
    let labels = &experiment.labels;
    let known = [&labels.baseline, &labels.experiment]
        .into_iter()
        .all(|name| can_be_simulated(name));
    if at_once >= MANY || !known {
        return None;
    }
    let virtual_machine = experiment
        .facts
        .iter()
        .any(|(name, _)| name == "Hypervisor");
    let machine = if virtual_machine {
        "xeon-8380-vm"
    } else {
        "xeon-8380-2s"
    };
    let locks = if labels.baseline == labels.experiment {
        format!("{} --aa", labels.baseline)
    } else {
        format!("{} {}", labels.baseline, labels.experiment)
    };
    Some(format!(
        "No more than {at_once} of these threads ran at once: what the locks do with more, and \
         across sockets, this machine cannot show. A model of one that can takes seconds, and \
         its figures are marked as simulated: `locklab matrix {locks} --on {machine}`."
    ))
}
