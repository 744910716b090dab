//! A ranking end to end on this machine. Nothing here asserts on time.

use super::*;
use crate::plan::Spec;
use locklab_harness::experiment::{Invalid, Order, Pair};
use locklab_harness::ranking::Subject;
use locklab_harness::verdicts::judge;
use locklab_judge::Family;
use locklab_workload::Cells;

fn ranking(names: &[&str], threads: &[usize], blocks: u32) -> (RankedSlices, Experiment) {
    let subject = |(number, name): (usize, &&str)| Subject {
        name: format!("{name} {number}"),
        lock: (*name).to_owned(),
        ..Subject::default()
    };
    let question = Question {
        subjects: names.iter().enumerate().map(subject).collect(),
        early: true,
        ..Question::default()
    };
    let native = Native::probe();
    let spec = Spec {
        cells: Cells {
            threads: threads.to_vec(),
            ..Cells::default()
        },
        time: Duration::from_millis(50),
        slice: Some(Duration::from_micros(60)),
        ..Spec::new(names[0], names[1])
    };
    let plan = Plan::new(spec, &native).unwrap();
    let design = Design {
        pairs: blocks,
        seed: 3,
        delta: 0.01,
        family: Family::FalseDiscovery,
        aa: false,
        retry: 0,
    };
    native
        .ranking(question, plan, design, Arc::default())
        .unwrap()
}

fn turn(cell: usize, pair: u32) -> Turn {
    Turn {
        cell,
        pair,
        order: Order::Together,
        seed: 7,
    }
}

#[test]
fn all_locks_of_a_point_share_a_block_and_its_reference() {
    let (mut ranked, mut experiment) = ranking(&["ticket", "mcs", "clh", "ttas"], &[1, 2], 2);
    assert_eq!(experiment.cells.len(), 6);
    for number in 0..2 {
        for index in 0..6 {
            let cell = experiment.cells[index].clone();
            let [baseline, own] = ranked.run_together(&cell, &turn(index, number)).unwrap();
            let unsound = |s: &Sample| matches!(s.invalid, Some(Invalid::CheckFailed(_)));
            assert!(!unsound(&baseline) && !unsound(&own));
            experiment.cells[index].pairs.push(Pair {
                index: number,
                order: Order::Together,
                baseline,
                experiment: own,
            });
        }
    }
    for of_point in experiment.cells.chunks(3) {
        for number in 0..2 {
            let first = &of_point[0].pairs[number].baseline;
            assert!(
                of_point
                    .iter()
                    .all(|cell| cell.pairs[number].baseline == *first)
            );
        }
    }
    let verdicts = judge(&experiment).unwrap();
    let points = verdicts.ranking.unwrap().points;
    assert_eq!(points.len(), 2);
    assert_eq!(points[0].metrics[0].standings.len(), 4);
}

#[test]
fn a_lock_that_has_left_is_not_measured_and_its_samples_are_kept() {
    let (mut ranked, mut experiment) = ranking(&["ticket", "mcs", "clh"], &[1], 16);
    // The machine is played: clh is far behind in the first seven blocks.
    let looks = ranked.question.looks(16);
    let look = u32::try_from(looks.interim()[0]).unwrap();
    for (lock, rates) in ranked.points[0].rates.iter_mut().enumerate() {
        let rate = |block: u32| [1e7, 0.99e7, 1e6][lock] + f64::from(block * 7 % 11);
        *rates = (0..look - 1).map(rate).collect();
    }
    let cell = experiment.cells[1].clone();
    ranked.run_together(&cell, &turn(1, look - 1)).unwrap();
    // What the machine says in this block is its own business; play it too.
    ranked.points[0].gone = vec![false, false, true];
    let cell = &mut experiment.cells[1];
    assert_eq!(ranked.interim(cell), Interim::Open);
    cell.pairs.push(Pair {
        index: look - 1,
        order: Order::Together,
        baseline: Sample::default(),
        experiment: Sample::default(),
    });
    assert_eq!(ranked.interim(cell), Interim::Decided);
    let cell = experiment.cells[0].clone();
    ranked.run_together(&cell, &turn(0, look)).unwrap();
    let (_, samples) = ranked.points[0].block.as_ref().unwrap();
    assert!(samples[0].is_some() && samples[2].is_none());
    assert_eq!(ranked.points[0].rates[2].len(), look as usize);
}

#[test]
fn too_many_locks_are_refused_in_a_sentence() {
    let native = Native::probe();
    let plan = Plan::new(Spec::new("ticket", "mcs"), &native).unwrap();
    let design = ranking(&["ticket", "mcs"], &[1], 8).0.design;
    let question = Question {
        subjects: vec![Subject::default(); 65],
        ..Question::default()
    };
    let refused = native.ranking(question, plan, design, Arc::default());
    assert!(
        refused
            .err()
            .unwrap()
            .to_string()
            .contains("65 locks are more than the 64")
    );
}
