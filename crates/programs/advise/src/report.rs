//! The advice as a report.

use crate::chart::chart;
use crate::confirm::confirm;
use crate::gate::Gate;
use crate::here::Here;
use crate::json::data;
use crate::question::Question;
use crate::rules::Facts;
use crate::runs::Advice;
use crate::validation;
use crate::verdict::Verdict;
use crate::words::{Context, Summary, besides, first_line, not_seen};
use locklab_document::contention_profile::{Bound, ContentionProfile};
use locklab_document::number::{count, grouped, percent, short, time};
use locklab_document::{Column, ColumnGroup, Document, Labels, Part, Section, Table, Tone};
use locklab_replay::{Program, Site};
use locklab_sim::Replayed;
use locklab_trace::Info;
use serde_json::{Map, json};

/// Returns a report of which the answer is that no other lock is worth trying.
#[must_use]
pub(crate) fn nothing(words: &str, bound: &Bound, info: &Info) -> Document {
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
                ("bound", bound.json()),
                ("recorded", json!({ "waiting_share": bound.share })),
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

/// Returns the report. `name` gives the name of a call site.
#[must_use]
pub(crate) fn document(facts: &Facts<'_>, name: &mut dyn FnMut(&Site) -> String) -> Document {
    let Facts {
        advice,
        summaries,
        program,
        question,
        context,
    } = *facts;
    let info = context.info;
    let command = facts.to_confirm().and_then(|lock| confirm(lock, info));
    let words = facts.paragraph();
    let mut document = Document {
        title: format!("Locks of {}: what to do", of_program(&info.command)),
        head: head(advice, program, question, context),
        labels: Labels::new("today's lock", "another"),
        data: data(
            advice,
            summaries,
            program,
            question,
            (context, &words, command.clone()),
        ),
        ..Document::default()
    };
    document.push(Section::new("").with(Part::Prose(words, Tone::Lead)));
    if let Some(command) = command {
        document.push(
            Section::new("")
                .prose("This confirms it here:")
                .preformatted(command)
                .note(
                    "It compares how long the program takes; of one that runs for a fixed time, \
                     --metric 'rate:higher=REGEX' finds the rate in its output.",
                ),
        );
    }
    document.push(waits(context));
    if let Some(advice) = advice {
        let besides = besides(advice, summaries, program, question);
        document.push(Section::new("What the model says besides").items(besides));
        for (machine, model) in question.machines.iter().enumerate() {
            let of_machine = summaries.iter().filter(|one| one.point.machine == machine);
            let of_machine: Vec<&Summary<'_>> = of_machine.collect();
            document.push(Section::new(format!("On {}", model.name)).note(&model.description));
            for summary in &of_machine {
                document.push(point(summary, question, &advice.gate));
            }
            if of_machine.len() > 1 {
                document.push(chart(&of_machine, question));
            }
        }
    }
    document.push(threads(program, name));
    document.push(locks(program, context.used));
    let better = match advice {
        Some(advice) => not_seen(program, &advice.gate),
        None => Vec::new(),
    };
    if !better.is_empty() {
        document.push(Section::new("What would make this better").items(better));
    }
    document.push(limits(program, summaries, question));
    document
}

/// Returns where the time of the waits went, as recorded.
fn waits(context: &Context<'_>) -> Section {
    let parts = context
        .used
        .spent()
        .map_or_else(Vec::new, |spent| spent.parts());
    let parts = parts
        .into_iter()
        .map(|(part, words)| format!("{} % {words}", percent(100.0 * part)));
    Section::new("Where the waiting goes, as recorded").items(parts.collect())
}

fn of_program(command: &str) -> &str {
    let word = command.split(' ').next().unwrap_or(command);
    word.rsplit('/').next().unwrap_or(word)
}

fn head(
    advice: Option<&Advice>,
    program: &Program,
    question: &Question,
    context: &Context<'_>,
) -> Vec<(String, String)> {
    let (recorded, info) = (&program.recorded, context.info);
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
                "simulation of that window, on {} of each machine's band; only the recording was \
                 measured",
                count(question.draws, "machine")
            ),
        ),
        fact("Model", model(advice, context)),
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
    if let Some(fewer) = advice.and_then(|advice| advice.gate.fewer.as_ref()) {
        facts.push(fact("Fewer threads", fewer.words()));
    }
    facts
}

/// Returns how far the model is from the recording, in words.
fn model(advice: Option<&Advice>, context: &Context<'_>) -> String {
    let repeated = match context.repeated {
        0.0 => String::new(),
        part => format!(
            "; for {} % of the threads' time the model repeats recorded delays, because it does \
             not know what was waited for",
            percent(100.0 * part)
        ),
    };
    let Some(advice) = advice else {
        let why = context
            .not_simulated
            .as_deref()
            .unwrap_or("it was not asked for");
        return format!("not simulated: {why}{repeated}");
    };
    let here = match &advice.gate.here {
        Here::Rate(ratio) => {
            format!("replayed here by real threads it has {ratio:.2} times that rate")
        }
        Here::Not(why) => format!("it was not replayed by real threads: {why}"),
    };
    format!(
        "simulated under its own lock, the program has {:.2} times its recorded rate; \
         {here}{repeated}",
        advice.gate.ratio()
    )
}

fn point(summary: &Summary<'_>, question: &Question, gate: &Gate) -> Section {
    let point = summary.point;
    let today = &point.today[0];
    let mut rows = vec![row("today's", None, (today, gate), "")];
    for (number, verdict) in &summary.locks {
        if let Ok(runs) = &point.locks[*number] {
            let lock = question.locks[*number].name();
            rows.push(row(
                &lock,
                Some(*verdict),
                (&runs[0], gate),
                verdict.class.word(),
            ));
        }
    }
    rows.push(row(
        "(ideal)",
        Some(summary.bound),
        (&point.ideal[0], gate),
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
            let why = first_line(runs.as_ref().err()?);
            Some(format!("{} could not be simulated: {why}", lock.name()))
        });
    let sizes = gate.gives_sizes();
    let what_ifs = point.what_ifs.iter().filter(|_| sizes);
    let what_ifs = what_ifs.map(|(name, run)| match run {
        Ok(run) => format!(
            "If {name}, the rate is {:.2} times today's.",
            run.rate / today.rate.max(1e-12)
        ),
        Err(why) => format!("If {name}, the rate is not known: {}.", first_line(why)),
    });
    let mut sized: Vec<String> = Vec::new();
    if sizes {
        sized.push(format!(
            "Under today's lock {:.2} threads compute at a time. Under an ideal lock {:.2} do, up to \
             {:.2} times as many in the band. The limit is then {}.",
            today.rate,
            point.ideal[0].rate,
            summary.bound.high,
            summary.limit(question)
        ));
        sized.extend(what_ifs);
    }
    Section::minor(format!("{}{others}", count(point.threads, "thread")))
        .with(Part::Table(table))
        .items(sized)
        .items(failed.collect())
}

fn row(
    name: &str,
    verdict: Option<Verdict>,
    (run, gate): (&Replayed, &Gate),
    word: &str,
) -> Vec<String> {
    let (ratio, band) = match verdict {
        Some(_) if !gate.gives_sizes() => ("-".into(), "-".into()),
        Some(of) => {
            let [low, high] = of.widened(gate.spread());
            (format!("{:.2}", of.ratio), format!("{low:.2}-{high:.2}"))
        }
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

fn threads(program: &Program, name: &mut dyn FnMut(&Site) -> String) -> Section {
    let classes = program.classes.iter().enumerate().map(|(number, class)| {
        let sites: Vec<String> = class
            .sites
            .iter()
            .map(|(site, part)| format!("{} % {}", percent(100.0 * part), name(site)))
            .collect();
        format!(
            "Class {}: {}{}, {} acquisitions/s each, at work {} % of the time: {}",
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

fn locks(program: &Program, used: &ContentionProfile) -> Section {
    let recorded = &program.recorded;
    ContentionProfile::section("Locks, as recorded", &used.locks, HOTTEST).note(format!(
        "The simulated window has {} that several threads use. Locks that one thread uses ({}) \
         count as work.",
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
         spin-then-park'; those with :spin never sleep. Running threads may pass those with \
         :barging, as under the default of 'run' and 'compare'."
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
