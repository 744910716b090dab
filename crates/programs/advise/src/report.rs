//! The advice as a report.

use crate::candidates::Candidate;
use crate::chart::chart;
use crate::gate::TOLERANCE;
use crate::here::Here;
use crate::json::data;
use crate::question::Question;
use crate::runs::Advice;
use crate::timeline::timeline;
use crate::validation;
use crate::verdict::Verdict;
use crate::words::{Summary, not_seen, paragraph, to_confirm};
use locklab_document::number::{count, grouped, percent, short, time};
use locklab_document::page::continued;
use locklab_document::{Column, ColumnGroup, Document, Labels, Part, Section, Table, Tone};
use locklab_replay::{Program, Site};
use locklab_sim::{Replayed, Waiters};
use locklab_trace::Info;
use serde_json::{Map, json};

/// A report of which the answer is that no other lock is worth trying.
#[must_use]
pub fn nothing(words: &str, waiting: f64, info: &Info) -> Document {
    let mut document = Document {
        title: format!("Locks of {}: what to do", of_program(&info.command)),
        head: vec![
            ("Command".to_owned(), info.command.clone()),
            ("Recorded on".to_owned(), info.machine.clone()),
        ],
        labels: Labels::new("today's lock", "another"),
        data: Map::from_iter(
            [
                ("schema", json!(1)),
                ("kind", json!("advice")),
                ("provenance", json!({ "source": "hardware" })),
                ("advice", json!(words)),
                ("recorded", json!({ "waiting_share": waiting })),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        ),
        ..Document::default()
    };
    document.push(Section::new("").with(Part::Prose(words.to_owned(), Tone::Lead)));
    document
}

/// Number of locks of the program that are shown.
const HOTTEST: usize = 5;

/// The report. `name` gives the name of a call site.
#[must_use]
pub fn document(
    advice: &Advice,
    program: &Program,
    question: &Question,
    info: &Info,
    name: &mut dyn FnMut(&Site) -> String,
) -> Document {
    let summaries: Vec<Summary<'_>> = advice.points.iter().filter_map(Summary::of).collect();
    let command = confirm(&summaries, program, question, &info.command);
    let mut document = Document {
        title: format!("Locks of {}: what to do", of_program(&info.command)),
        head: head(advice, program, question, info),
        labels: Labels::new("today's lock", "another"),
        data: data(
            advice,
            &summaries,
            program,
            question,
            (info, command.clone()),
        ),
        ..Document::default()
    };
    if advice.gate.passes() {
        let words = paragraph(advice, &summaries, program, question);
        document.push(Section::new("").with(Part::Prose(words, Tone::Lead)));
        if let Some(command) = command {
            document.push(
                Section::new("")
                    .prose("This confirms it here:")
                    .preformatted(command),
            );
        }
        for (machine, model) in question.machines.iter().enumerate() {
            let of_machine = summaries.iter().filter(|one| one.point.machine == machine);
            let of_machine: Vec<&Summary<'_>> = of_machine.collect();
            document.push(Section::new(format!("On {}", model.name)).note(&model.description));
            for summary in &of_machine {
                document.push(point(summary, question));
            }
            if of_machine.len() > 1 {
                document.push(chart(&of_machine, question));
            }
        }
    } else {
        document.push(shut(advice, program));
    }
    document.push(threads(program, name));
    document.push(locks(program));
    if let Some(timeline) = timeline(program) {
        document.push(timeline);
    }
    document.push(limits(program, &summaries, question));
    document
}

fn of_program(command: &str) -> &str {
    let word = command.split(' ').next().unwrap_or(command);
    word.rsplit('/').next().unwrap_or(word)
}

fn head(
    advice: &Advice,
    program: &Program,
    question: &Question,
    info: &Info,
) -> Vec<(String, String)> {
    let recorded = &program.recorded;
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let mut facts = vec![
        fact("Command", info.command.clone()),
        fact("Recorded on", info.machine.clone()),
        fact(
            "Window",
            format!(
                "{} of {}, from {}; {}",
                time(recorded.window_ns),
                time(recorded.whole_ns),
                time(recorded.from_ns),
                count(recorded.acquisitions as usize, "acquisition")
            ),
        ),
        fact(
            "Source",
            format!(
                "simulation of that window, on {} of each machine's band; nothing here was \
                 measured but the recording",
                count(question.draws, "machine")
            ),
        ),
        fact(
            "Gate",
            match &advice.gate.here {
                Here::Rate(ratio) => format!(
                    "under its own lock {:.2} times its recorded rate simulated, {ratio:.2} times \
                     replayed here by real threads",
                    advice.gate.ratio()
                ),
                Here::Not(why) => format!(
                    "under its own lock {:.2} times its recorded rate simulated; not replayed by \
                     real threads: {why}",
                    advice.gate.ratio()
                ),
            },
        ),
        fact(
            "Today's lock",
            match program.locks.iter().any(|lock| lock.shared) {
                true => {
                    "glibc's normal mutex, and its rwlock where threads read, simulated by \
                         their descriptions (pthread, pthread-rwlock)"
                }
                false => "glibc's normal mutex, simulated by its description (futex)",
            }
            .to_owned(),
        ),
    ];
    if let Some(fewer) = &advice.gate.fewer {
        facts.push(fact("Fewer threads", fewer.words()));
    }
    facts
}

/// The command that confirms the advice here.
fn confirm(
    summaries: &[Summary<'_>],
    program: &Program,
    question: &Question,
    command: &str,
) -> Option<String> {
    let number = to_confirm(summaries, program, question)?;
    let Candidate { lock, waiters } = &question.locks[number];
    // A lock that sleeps by itself has no other policy.
    let wait = match waiters {
        Waiters::Spin => "spin",
        Waiters::SpinThenPark if lock.starts_with("futex") => {
            let words = format!("--experiment-lock {lock} -- {command}");
            return Some(format!(
                "locklab compare --baseline-lock pthread \\\n  {}",
                continued("", &words, ["\\", "  "])
            ));
        }
        Waiters::SpinThenPark => "spin-then-park",
    };
    let command = command.replace('\'', "'\\''");
    let experiment = format!("locklab run --lock {lock} --wait {wait} -- {command}");
    // Within single quotes a line cannot be continued: the quotes end before.
    let quoted = |option: &str, words: &str| {
        let begin = format!("  {option} '");
        format!("{}'", continued(&begin, words, ["'\\", "'"]))
    };
    Some(format!(
        "locklab compare \\\n{} \\\n{}",
        quoted("--baseline", &command),
        quoted("--experiment", &experiment)
    ))
}

fn point(summary: &Summary<'_>, question: &Question) -> Section {
    let point = summary.point;
    let today = &point.today[0];
    let mut rows = vec![row("today's", None, today, "")];
    for (number, verdict) in &summary.locks {
        if let Ok(runs) = &point.locks[*number] {
            let lock = question.locks[*number].name();
            rows.push(row(&lock, Some(*verdict), &runs[0], verdict.class.word()));
        }
    }
    rows.push(row(
        "(ideal)",
        Some(summary.bound),
        &point.ideal[0],
        "bound",
    ));
    let table = Table {
        groups: vec![
            ColumnGroup::new("", vec![Column::words("lock", 14)]),
            ColumnGroup::new(
                "rate by today's",
                vec![
                    Column::new("model", 5),
                    Column::new("band", 9),
                    Column::words("", 9),
                ],
            ),
            ColumnGroup::new("wait", vec![Column::new("p50", 7), Column::new("p99", 7)]),
            ColumnGroup::new("", vec![Column::new("CPUs", 4), Column::new("fair", 4)]),
        ],
        rows,
    };
    let others = match point.running - point.threads.min(point.running) {
        0 => String::new(),
        others => format!(" and {} of other classes", count(others, "thread")),
    };
    let failed = point
        .locks
        .iter()
        .zip(&question.locks)
        .filter_map(|(runs, lock)| {
            let why = runs.as_ref().err()?;
            let first = why.lines().next().unwrap_or(why);
            Some(format!("{} could not be simulated: {first}", lock.name()))
        });
    let what_ifs = point.what_ifs.iter().map(|(name, run)| match run {
        Ok(run) => format!("if {name}: {:.2}", run.rate / today.rate.max(1e-12)),
        Err(why) => format!(
            "if {name}: not known ({})",
            why.lines().next().unwrap_or(why)
        ),
    });
    Section::minor(format!("{}{others}", count(point.threads, "thread")))
        .with(Part::Table(table))
        .prose(format!(
            "Under today's lock {:.2} threads compute at a time, under an ideal one {:.2}: up to \
             {:.2} times as many in the band. The limit then is {}.",
            today.rate,
            point.ideal[0].rate,
            summary.bound.high,
            summary.limit(question)
        ))
        .prose("The hottest lock used otherwise, as rate by today's:")
        .items(what_ifs.collect())
        .items(failed.collect())
}

fn row(name: &str, verdict: Option<Verdict>, run: &Replayed, word: &str) -> Vec<String> {
    let (ratio, band) = match verdict {
        Some(of) => (
            format!("{:.2}", of.ratio),
            format!("{:.2}-{:.2}", of.low, of.high),
        ),
        None => ("1".into(), String::new()),
    };
    vec![
        name.to_owned(),
        ratio,
        band,
        word.to_owned(),
        time(run.wait.p50),
        time(run.wait.p99),
        format!("{:.1}", run.burnt),
        format!("{:.2}", run.jain),
    ]
}

/// No advice, and why.
fn shut(advice: &Advice, program: &Program) -> Section {
    let gate = &advice.gate;
    Section::new("")
        .with(Part::Prose(
            format!(
                "No advice: under its own lock, as recorded, {}; it must be within {:.0} %. (Of the \
                 threads {:.2} compute at a time in the simulation, {:.2} did.)",
                gate.misses(),
                100.0 * TOLERANCE,
                gate.simulated.rate,
                gate.recorded,
            ),
            Tone::Lead,
        ))
        .prose("What the recording does not see, or the model does not know:")
        .items(not_seen(program, gate))
}

fn threads(program: &Program, name: &mut dyn FnMut(&Site) -> String) -> Section {
    let classes = program.classes.iter().enumerate().map(|(number, class)| {
        let sites: Vec<String> = class
            .sites
            .iter()
            .map(|(site, part)| format!("{} % {}", percent(100.0 * part), name(site)))
            .collect();
        format!(
            "class {}: {}{}, {} acquisitions/s each, at work {} % of the time: {}",
            number + 1,
            count(class.threads, "thread"),
            if class.scales {
                ""
            } else {
                " (a role: always as many)"
            },
            short(class.acquisitions_per_s),
            percent(100.0 * class.work),
            sites.join("; ")
        )
    });
    let mut section = Section::new("Threads, as recorded").items(classes.collect());
    if program.recorded.left_out_threads > 0 {
        section = section.note(format!(
            "Left out: {} without a lock in the window.",
            count(program.recorded.left_out_threads, "thread")
        ));
    }
    section
}

fn locks(program: &Program) -> Section {
    let all: f64 = program.locks.iter().map(|lock| lock.waited_ns).sum();
    let rows = program.locks.iter().take(HOTTEST).map(|lock| {
        vec![
            format!("{:#x}", lock.address),
            grouped(lock.acquired),
            grouped(lock.contended),
            match all > 0.0 {
                true => format!("{} %", percent(100.0 * lock.waited_ns / all)),
                false => "-".into(),
            },
            time(lock.held_ns / lock.acquired.max(1) as f64),
        ]
    });
    let columns = vec![
        Column::words("lock", 16),
        Column::new("acquired", 9),
        Column::new("contended", 9),
        Column::new("of waiting", 10),
        Column::new("held", 8),
    ];
    let recorded = &program.recorded;
    Section::new("Locks, as recorded")
        .with(Part::Table(Table::new(columns, rows.collect())))
        .note(format!(
            "{} that several threads use; {} that one uses count as work.",
            count(program.locks.len() + recorded.left_out_locks.0, "lock"),
            grouped(recorded.private_locks as u64)
        ))
}

fn limits(program: &Program, summaries: &[Summary<'_>], question: &Question) -> Section {
    let mut items = vec![
        "Work takes as long as where it was recorded, on every machine; what threads do to one \
         another's caches outside the locks is not simulated."
            .to_owned(),
        "Candidates spin and then sleep, keeping their turn, as under 'locklab run --wait \
         spin-then-park'; those with :spin never sleep. Under the default of 'run' and 'compare', \
         barging, running threads may pass sleepers, which is not simulated."
            .to_owned(),
        "All locks of the program become the candidate; its rwlocks too, with readers where it \
         has any."
            .to_owned(),
        "Figures of a machine's [scheduler] that are assumed vary by a factor of two in the band."
            .to_owned(),
    ];
    if question
        .fewer
        .as_ref()
        .is_some_and(|fewer| fewer.growth.is_ok())
    {
        items.push(
            "Holds grow as a power of the number of threads that run at a time, fitted to two \
             recordings; what is done between holds does not."
                .to_owned(),
        );
    }
    if program.recorded.preempted_ns > 0.0 {
        items.push(format!(
            "Of what was recorded as work, {} was taken away: there were more ready threads than \
             CPUs.",
            time(program.recorded.preempted_ns)
        ));
    }
    items.extend(validation::sentences(
        summaries.iter().map(|s| s.point),
        question,
    ));
    Section::new("What this rests on").items(items)
}
