//! Rankings: what the words say of the figures, the report against golden
//! files, and the gate.

use crate::common::golden::golden;
use crate::common::{Random, context, fact, judged, xml};
use locklab_document::render::{Colour, html, json, junit, text};
use locklab_harness::experiment::{
    Cell, Design, Experiment, Invalid, Key, Labels, Order, Pair, Placement, Provenance, Sample,
    Source, Values,
};
use locklab_harness::gate::{FailOn, fails, too_few_pairs};
use locklab_harness::matrix::metrics;
use locklab_harness::ranking::{Question, Subject};
use locklab_harness::report::document;
use locklab_workload::Waits;
use serde_json::json;

/// A lock of a synthetic ranking: its name, whether its waiters bring nothing,
/// and its rate and p99 at each point.
struct Lock {
    name: &'static str,
    lean: bool,
    at: Vec<(f64, f64)>,
}

fn lock(name: &'static str, lean: bool, at: &[(f64, f64)]) -> Lock {
    Lock {
        name,
        lean,
        at: at.to_vec(),
    }
}

/// Returns the ranking of these locks at 1, 4 and 32 threads of 16 CPUs, as many
/// points as the locks have; noise of half a percent.
fn ranking(against: bool, blocks: u32, locks: &[Lock]) -> Experiment {
    let mut random = Random::new();
    let subjects = locks.iter().map(|lock| Subject {
        name: lock.name.into(),
        lock: lock.name.into(),
        bytes: if lock.lean { 4 } else { 8 },
        bytes_per_waiter: if lock.lean { 0 } else { 16 },
        context_free: lock.lean,
    });
    let question = Question {
        subjects: subjects.collect(),
        against,
        left_out: vec![("std".into(), "it cannot be simulated".into())],
        ..Question::default()
    };
    let mut run = |(rate, p99): (f64, f64), mood: f64| Sample {
        values: Values::from([
            (
                "ops_per_s".to_owned(),
                rate * mood * (1.0 + 0.005 * random.next()),
            ),
            (
                "latency_p99".to_owned(),
                p99 / mood * (1.0 + 0.005 * random.next()),
            ),
        ]),
        ..Sample::default()
    };
    let mut cells = Vec::new();
    for (point, threads) in [1_usize, 4, 32]
        .into_iter()
        .enumerate()
        .take(locks[0].at.len())
    {
        let moods: Vec<f64> = (0..blocks).map(|b| 1.0 + 0.1 * f64::from(b % 3)).collect();
        let reference: Vec<Sample> = moods.iter().map(|m| run(locks[0].at[point], *m)).collect();
        for other in &locks[1..] {
            let key = Key::point(threads, 1, 32).of_lock(other.name);
            let mut cell = Cell::new(key, metrics(threads, Waits::All, Source::Backend));
            cell.oversubscribed = threads > 16;
            for (index, mood) in (0..).zip(&moods) {
                cell.pairs.push(Pair {
                    index,
                    order: Order::Together,
                    baseline: reference[index as usize].clone(),
                    experiment: run(other.at[point], *mood),
                });
            }
            cells.push(cell);
        }
    }
    Experiment {
        kind: "rank".into(),
        labels: Labels::new(locks[0].name, question.others()),
        spec: json!(question),
        design: Design {
            seed: 7,
            ..Design::usual(blocks)
        },
        provenance: Provenance::Hardware("Example 9000, 16 CPUs".into()),
        facts: vec![fact("Machine", "Example 9000, 1 socket, 16 CPUs")],
        caveats: vec![],
        cells,
        interrupted: None,
    }
}

/// Returns four locks at three points: one leads under contention, one alone.
fn mixed(against: bool) -> Experiment {
    ranking(
        against,
        12,
        &[
            lock(
                "qspinlock",
                true,
                &[(5e7, 10.0), (6.2e6, 800.0), (3e4, 9e7)],
            ),
            lock("clh", false, &[(4.4e7, 12.0), (1e7, 400.0), (2e4, 9e7)]),
            lock("mcs", false, &[(4.3e7, 12.0), (9.6e6, 420.0), (2e4, 9e7)]),
            lock("futex", true, &[(4.9e7, 11.0), (4e6, 3000.0), (4e6, 5e6)]),
        ],
    )
}

/// `tas` does half as many operations again as `mcs`, in streaks of 40, so that within
/// a millisecond one thread has nearly all.
#[test]
fn what_one_thread_keeps_is_said() {
    let mut experiment = ranking(
        false,
        16,
        &[
            lock("tas", true, &[(5e7, 10.0), (1.5e7, 800.0)]),
            lock("mcs", false, &[(4.9e7, 10.0), (1e7, 400.0)]),
        ],
    );
    for cell in &mut experiment.cells {
        let several = cell.key.number("threads") > Some(1);
        for pair in &mut cell.pairs {
            for (sample, share, streak) in [
                (&mut pair.baseline, 0.1, 40.0),
                (&mut pair.experiment, 0.98, 1.02),
            ] {
                let ops = sample.values["ops_per_s"];
                let share = if several { share } else { 1.0 };
                sample
                    .values
                    .insert("equal_share_per_s".into(), share * ops);
                sample.values.insert("streak_mean".into(), streak);
            }
        }
    }
    let said = lead(&experiment).join(" ");
    assert!(
        said.contains(
            "`tas` has more operations, because one thread keeps it: 98 % of its acquisitions \
             follow its own; at equal share `mcs` has 6.53 times as many."
        ),
        "{said}"
    );
    assert!(!lead(&mixed(false)).join(" ").contains("keeps it"));
}

fn lead(experiment: &Experiment) -> Vec<String> {
    let document = document(experiment, &judged(experiment), &context());
    let summary = document.data["summary"].as_array().unwrap();
    summary.iter().map(|s| s.as_str().unwrap().into()).collect()
}

#[test]
fn the_words_follow_the_figures() {
    let contended = |rates: &[f64]| -> Experiment {
        let names = ["today", "clh", "mcs", "ticket"];
        let locks: Vec<Lock> = names
            .iter()
            .zip(rates)
            .map(|(name, rate)| lock(name, *name == "ticket", &[(1e7, 10.0), (*rate, 1e9 / rate)]))
            .collect();
        let mut experiment = ranking(true, 16, &locks);
        // One point only: that of four threads.
        experiment
            .cells
            .retain(|cell| cell.key.number("threads") == Some(4));
        experiment
    };
    for (rates, words) in [
        (
            [6.2e6, 1e7, 8e6, 9.6e6],
            "Use `clh` for throughput (1.61 times today's `today`). Use `ticket` if waiters bring no \
             queue node (0.96 of the best).",
        ),
        (
            [1e7, 1e7, 1e7, 1e7],
            "No difference that matters: keep `today`, which is shown within 1 % of the best.",
        ),
        (
            [1.1e7, 1e7, 1e7, 1e7],
            "No difference that matters: keep `today`, which is shown within 1 % of the best.",
        ),
    ] {
        assert_eq!(lead(&contended(&rates))[0], words);
    }
    // So few blocks, with such noise, show nothing.
    let mut few = contended(&[1e7, 1.03e7, 1e7, 1e7]);
    few.design.pairs = 8;
    for (number, cell) in few.cells.iter_mut().enumerate() {
        cell.pairs.truncate(8);
        for pair in &mut cell.pairs {
            let disturbed = if (pair.index as usize + number).is_multiple_of(2) {
                0.9
            } else {
                1.1
            };
            let rate = pair.experiment.values.get_mut("ops_per_s").unwrap();
            *rate *= disturbed;
        }
    }
    let words = &lead(&few)[0];
    assert!(
        words.starts_with("Keep `today`: nothing was shown to be better; it may be up to"),
        "{words}"
    );
    // Fewer show nothing whatever the noise, so nothing is recommended.
    few.cells.iter_mut().for_each(|cell| cell.pairs.truncate(3));
    let words = "With 3 blocks of 4 locks nothing can be shown: it takes 8 (--pairs).";
    assert_eq!(lead(&few), [words]);
    // Without a lock of today the next one is named.
    let mut open = contended(&[6e6, 1e7, 8e6, 7e6]);
    open.spec["against"] = json!(false);
    assert!(lead(&open)[0].starts_with("Use `clh` for throughput (1.25 times `mcs`, the next)"));
}

#[test]
fn text_of_a_ranking() {
    let experiment = mixed(true);
    let document = document(&experiment, &judged(&experiment), &context());
    let text = text(&document, Colour::Plain);
    assert!(text.lines().all(|line| line.len() <= 72), "{text}");
    golden("rank.txt", &text);
}

#[test]
fn json_of_a_ranking() {
    let experiment = mixed(true);
    let document = document(&experiment, &judged(&experiment), &context());
    golden("rank.json", &format!("{:#}\n", json(&document)));
}

#[test]
fn a_page_of_a_ranking_has_its_picture() {
    let experiment = mixed(false);
    let page = html(&document(&experiment, &judged(&experiment), &context()));
    let page = page.replace("<!DOCTYPE html>", "");
    let found = xml(&page);
    let named = |name: &str| {
        found
            .descendants()
            .filter(|n| n.attribute("class").is_some_and(|c| c.starts_with("name ")))
            .any(|n| n.text() == Some(name))
    };
    assert!(["clh", "mcs", "futex", "qspinlock"].into_iter().all(named));
}

#[test]
fn the_gate_fails_where_today_is_shown_worse() {
    let experiment = mixed(true);
    let gate =
        |experiment: &Experiment, words: &[FailOn]| fails(words, experiment, &judged(experiment));
    assert_eq!(gate(&experiment, &[FailOn::Worse]), Ok(Some(FailOn::Worse)));
    let mut alone = experiment.clone();
    alone
        .cells
        .retain(|cell| cell.key.number("threads") == Some(1));
    assert_eq!(gate(&alone, &[FailOn::Worse, FailOn::Unclear]), Ok(None));
    // A lock that crashed does not fail what is in use, unless that is asked.
    alone.cells[2].stopped = Some("given up after 3 failed pairs".into());
    alone.cells[2].pairs.truncate(2);
    assert_eq!(gate(&alone, &[FailOn::Worse]), Ok(None));
    assert_eq!(
        gate(&alone, &[FailOn::Incomplete]),
        Ok(Some(FailOn::Incomplete))
    );
    let document = document(&experiment, &judged(&experiment), &context());
    let cases = junit(&document, &["worse"]);
    assert!(cases.contains("failures=\"2\""), "{cases}");
    for cell in &mut alone.cells {
        for pair in &mut cell.pairs {
            pair.baseline = Sample::invalid(Invalid::Failed("it crashed".into()));
        }
    }
    let refused = gate(&alone, &[FailOn::Worse]).unwrap_err().to_string();
    assert!(refused.contains("judged nothing"), "{refused}");
}

#[test]
fn a_lock_that_crashed_is_named_and_the_others_stand() {
    let mut experiment = mixed(false);
    let crashed = |cell: &&mut Cell| cell.key.lock() == Some("mcs");
    for cell in experiment.cells.iter_mut().filter(crashed) {
        cell.pairs.truncate(3);
        cell.stopped = Some("given up after 3 failed pairs; the last because it crashed".into());
    }
    let document = document(&experiment, &judged(&experiment), &context());
    let text = text(&document, Colour::Plain);
    assert!(text.contains("the others stand"), "{text}");
    let ranked = document.data["points"][1]["metrics"][0]["locks"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = ranked.iter().map(|l| l["lock"].as_str().unwrap()).collect();
    assert_eq!(names, ["clh", "qspinlock", "futex"]);
}

#[test]
fn too_few_blocks_are_announced() {
    let warned = |blocks: u32| {
        too_few_pairs(&ranking(
            false,
            blocks,
            &[
                lock("a", true, &[(1.0, 1.0)]),
                lock("b", true, &[(1.0, 1.0)]),
            ],
        ))
    };
    assert!(warned(7).unwrap().contains("--pairs 8"));
    assert_eq!(warned(8), None);
}

/// Far apart, the order of two locks is another one.
#[test]
fn where_the_host_moved_the_cpus_the_best_of_each_place_is_named() {
    let locks = [
        lock("ticket", true, &[(1e6, 9.0), (4e6, 9.0)]),
        lock("mcs", false, &[(1e6, 9.0), (5e6, 9.0)]),
        lock("clh", false, &[(1e6, 9.0), (4.5e6, 9.0)]),
    ];
    let mut experiment = ranking(false, 80, &locks);
    for cell in &mut experiment.cells {
        if cell.key.number("threads") == Some(1) {
            continue;
        }
        let slower = cell.key.lock() == Some("mcs");
        for pair in &mut cell.pairs {
            let far = pair.index % 4 == 0;
            for sample in pair.samples_mut() {
                sample.placement = Some(Placement {
                    before: 50.0,
                    after: 50.0,
                    typical: Some(if far { 400.0 } else { 50.0 }),
                });
            }
            if far && slower {
                *pair.experiment.values.get_mut("ops_per_s").unwrap() *= 0.5;
            }
        }
    }
    let text = text(
        &document(&experiment, &judged(&experiment), &context()),
        Colour::Plain,
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "The most operations with 4 threads, by the place of their CPUs: \"near\" mcs (60 \
                blocks), \"far\" clh (20 blocks).";
    assert!(words.contains(said), "{text}");
}

/// A lock that left while the machine was fast must not look faster than those that
/// stayed.
#[test]
fn figures_of_a_lock_that_left_are_those_of_all_blocks() {
    let locks = [
        lock("ticket", true, &[(4e6, 9.0)]),
        lock("mcs", false, &[(3e6, 9.0)]),
    ];
    let mut experiment = ranking(false, 24, &locks);
    for pair in &mut experiment.cells[0].pairs[12..] {
        *pair.baseline.values.get_mut("ops_per_s").unwrap() *= 0.25;
        pair.experiment.values.clear();
    }
    let verdicts = judged(&experiment);
    let figures = &verdicts.ranking.unwrap().points[0].metrics[0].figures;
    let [ticket, mcs] = [0, 1].map(|lock| figures[lock].unwrap().value);
    assert!((mcs / ticket - 0.75).abs() < 0.05, "{mcs} of {ticket}");
}

#[test]
fn readers_and_writers_are_ranked_apart() {
    let mut experiment = mixed(false);
    for cell in &mut experiment.cells {
        cell.metrics = metrics(4, Waits::ByUse, Source::Backend);
        for pair in &mut cell.pairs {
            for sample in pair.samples_mut() {
                let p99 = sample.values["latency_p99"];
                for (name, value) in [
                    ("read_latency_p999", p99),
                    ("read_starved", 0.0),
                    ("write_latency_p999", 3.0 * p99),
                    ("write_starved", 0.02),
                ] {
                    sample.values.insert(name.into(), value);
                }
            }
        }
    }
    let report = document(&experiment, &judged(&experiment), &context());
    let shown = text(&report, Colour::Plain);
    for words in [
        "writers' p99.9, ns",
        "Waits of readers and of writers at 4 threads",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    let table = shown
        .split("Waits of readers and of writers at 4 threads")
        .nth(1);
    assert!(
        table.is_some_and(|table| table.contains("0.020")),
        "{shown}"
    );
    assert!(json(&report).to_string().contains("write_starved"));
}
