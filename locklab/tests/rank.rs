//! `locklab rank`: simulated rankings, whose figures are the same everywhere,
//! one on this machine, whose figures are not looked at, and bad arguments.

use assert_cmd::Command;
use serde_json::Value;

fn rank(arguments: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(["rank", "--quiet"]);
    command.args(arguments.split_whitespace());
    command
}

const SMALL: &str = "--on flat-16 --threads 1,8 --critical 1 --non-critical 1 --store :memory:";

#[test]
fn a_simulated_ranking_says_what_to_take() {
    let out = rank(&format!("ttas ticket mcs clh --against ttas {SMALL}"))
        .assert()
        .success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 72).collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert!(text.starts_with("4 locks, ranked against ttas\n"), "{text}");
    for part in [
        "simulation: the modelled machine flat-16",
        "Use `",
        "throughput, contended",
        "* may be the best",
        "in use today",
        "At 8 threads",
        "Simulated on a model.",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}

#[test]
fn a_simulated_ranking_says_how_often_such_a_direction_was_right() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("rank.html");
    let out = rank(&format!("ttas mcs {SMALL} --html {}", page.display()))
        .assert()
        .success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).replace("\n  ", " ");
    let out = rank(&format!("ttas mcs {SMALL} --json")).assert().success();
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    // The points are of one thread and of eight.
    for kind in ["uncontended", "contended, same socket"] {
        let score = format!("Of comparisons of this kind ({kind}) with published figures");
        assert!(text.contains(&score), "{text}");
        assert!(page.contains(&score), "{kind}");
        let mut caveats = found["caveats"].as_array().unwrap().iter();
        let said = caveats.find(|caveat| caveat.as_str().unwrap().starts_with(&score));
        let said = said.and_then(Value::as_str).unwrap();
        assert!(said.contains("95 % interval"), "{said}");
    }
}

#[test]
fn the_gate_ends_with_3_where_today_is_shown_worse() {
    let against = |today: &str| {
        rank(&format!(
            "mcs ttas --against {today} --fail-on worse {SMALL} --json"
        ))
        .assert()
    };
    against("ttas").code(3);
    let out = against("mcs");
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(found["kind"], "rank");
    let contended = &found["points"][1]["metrics"][0];
    assert_eq!(contended["set"], serde_json::json!(["mcs"]));
}

#[test]
fn needs_decide_who_is_ranked_and_who_lacks_something_is_named() {
    let out = rank(&format!(
        "mcs ticket ttas --needs no-context {SMALL} --json"
    ))
    .assert()
    .success();
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(found["locks"].as_array().unwrap().len(), 2);
    assert_eq!(found["left_out"][0]["name"], "mcs");
    let out = rank(&format!("--needs timeout {SMALL} --dry-run"))
        .assert()
        .success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(
        text.contains("mcs-timeout") && !text.contains("ticket"),
        "{text}"
    );
}

#[test]
fn an_interrupted_ranking_is_what_the_store_shows() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.sqlite");
    let store = store.to_str().unwrap();
    let on = "--on flat-16 --threads 4 --store";
    let first = rank(&format!("ticket mcs {on} {store}")).assert().success();
    let shown = Command::cargo_bin("locklab")
        .unwrap()
        .args(["results", "show", "--store", store])
        .assert()
        .success();
    let lead = |out: &[u8]| {
        let text = String::from_utf8_lossy(out).into_owned();
        let at = text.find("Use `").unwrap();
        text[at..at + 60].to_owned()
    };
    assert_eq!(
        lead(&first.get_output().stdout),
        lead(&shown.get_output().stdout)
    );
}

#[test]
fn a_measured_ranking_has_a_figure_of_each_lock_that_has_enough_blocks() {
    let out = rank(
        "ticket mcs ttas --threads 1,2 --time 1 --set slice_us=60 --pairs 8 --json --store :memory:",
    )
    .assert()
    .success();
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(found["provenance"]["source"], "hardware");
    assert_eq!(found["locks"].as_array().unwrap().len(), 3);
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    // On a busy machine a lock may lose blocks; then it has no rank.
    for lock in points
        .iter()
        .flat_map(|p| p["metrics"][0]["locks"].as_array().unwrap())
    {
        assert!(lock["of_best"].as_f64().unwrap() > 0.0);
        let blocks = lock["blocks"].as_u64().unwrap();
        assert!((1..=8).contains(&blocks), "{lock}");
    }
}

#[test]
fn what_makes_no_sense_is_said_in_a_sentence() {
    for (arguments, part) in [
        ("mcs --on flat-16", "a rank needs two locks"),
        ("mcs mcs --on flat-16", "mcs is named twice"),
        ("mcs tiket --on flat-16", "the closest are ticket"),
        (
            "mcs clh --needs no-context --on flat-16",
            "mcs: a thread must bring memory",
        ),
        (
            "mplock-clh ticket --on flat-16 --threads 600",
            "mplock-clh: it serves at most 512 threads",
        ),
        (
            "mcs ticket --needs fair --on flat-16",
            "'fair' is not one of try, timeout",
        ),
        (
            "--needs recursive,timeout --on flat-16",
            "no lock does all that is needed",
        ),
        (
            "mcs ticket --fail-on worse --on flat-16",
            "give --against LOCK",
        ),
        (
            "mcs clh --against mplock-clh --on flat-16 --threads 600",
            "mplock-clh cannot be ranked",
        ),
        ("mcs ticket --vcpus 4", "--vcpus is for simulated machines"),
        (
            "mcs ticket --time 4 --on flat-16",
            "--time is for this machine",
        ),
        ("mcs ticket --aa --on flat-16", "name that one alone"),
        (
            "mcs ticket --threads 1025 --on flat-16",
            "1025 threads on flat-16, where at most 1024 can be simulated",
        ),
        (
            "qspinlock ticket --threads 99 --on xeon-8380-vm --vcpus 80",
            "a virtual machine of 80 CPUs, whose own scheduler",
        ),
        (
            "mcs ticket --set operations=0 --on flat-16",
            "threads that do no operations show nothing; give --set operations=1000",
        ),
        (
            "mcs ticket --set operations=9 --set acquisitions=9 --on flat-16",
            "leave out one of the two",
        ),
        (
            "mcs ticket --set operations=9",
            "--set operations is for simulated machines; say which, with --on MACHINE",
        ),
        (
            "std pthread --preset burst --set distribution=fixed",
            "--preset burst says what distribution is; leave out one of the two",
        ),
        (
            "std pthread --set hold_sleep=5m",
            "'5m' is no time to sleep; give a number with its unit, such as 50us or 2ms",
        ),
        (
            "std pthread --set locks=2000 --threads 2",
            "2000 locks are built anew for every slice",
        ),
    ] {
        let out = rank(arguments)
            .args(["--store", ":memory:"])
            .assert()
            .code(2);
        let error = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(error.contains(part), "{arguments}: {error}");
    }
}

#[test]
fn copies_of_one_lock_are_not_told_apart() {
    let out = rank("mcs --aa --on flat-16 --threads 8 --json --store :memory:")
        .assert()
        .success();
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let point = &found["points"][0]["metrics"][0];
    assert_eq!(point["set"].as_array().unwrap().len(), 8);
}

/// Two at most were once measured on this machine in one run.
#[test]
fn three_locks_of_the_users_own_are_ranked_on_this_machine() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/more/user-lock/tests/c"
    );
    let names = ["ticket.c", "ttas.c", "mcs.c"];
    let files: Vec<String> = names
        .iter()
        .map(|name| format!("{folder}/{name}"))
        .collect();
    let out = rank("--threads 1 --critical 1 --non-critical 1 --time 1 --json --store :memory:")
        .args(files)
        .assert()
        .success();
    let found: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(found["locks"].as_array().unwrap().len(), names.len());
}
