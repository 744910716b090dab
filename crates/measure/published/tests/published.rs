//! Published experiments, end to end. Only those that may inform the model's
//! structure are simulated here: the others never are but to print a score.

use locklab_published::{EXPERIMENTS, Group, Reproduction, reproduce};

fn simulated(name: &str) -> Reproduction {
    assert_eq!(Group::of(name), Some(Group::Structure), "{name}");
    let report = reproduce(name, 1, 2, |_, _| {}).unwrap();
    for figure in &report.figures {
        println!("{name}: {figure:?}");
    }
    report
}

#[test]
fn every_figure_of_a_small_experiment_is_beside_a_published_one() {
    for name in ["libslock-uncontended", "spinlocks-5700x3d"] {
        let report = simulated(name);
        assert_eq!(report.agreement.figures, report.figures.len());
        let published = |figure: &locklab_published::Reproduced| figure.published.is_some();
        assert!(report.figures.iter().all(published), "{name}");
        assert!(report.figures.iter().all(|figure| figure.ours > 0.0));
        assert!(report.agreement.median_factor_error.unwrap() >= 1.0);
    }
}

#[test]
fn a_document_keeps_the_shape_that_others_rely_on() {
    let report = simulated("libslock-uncontended");
    let document = serde_json::to_value(&report).unwrap();
    assert_eq!(document["name"], "libslock-uncontended");
    assert_eq!(document["group"], "structure");
    let figure = &document["figures"][0];
    assert_eq!(figure["name"], "tas_over_ttas threads=1");
    assert!(figure["published"].is_f64() && figure["ours"].is_f64());
    // Four figures are too few for a rank correlation.
    assert!(document["agreement"]["spearman"].is_null());
    assert!(document["agreement"]["mean_abs_log_error"].is_f64());
}

#[test]
fn an_unknown_name_is_refused_with_the_names_that_there_are() {
    let error = reproduce("cna", 1, 1, |_, _| {}).unwrap_err().to_string();
    for (name, ..) in EXPERIMENTS {
        assert!(error.contains(name), "{error}");
    }
}
