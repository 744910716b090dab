//! Readers, lines, several locks and times outside that vary: the same options
//! in a matrix, a ranking and a file. All but the last are simulated,
//! so their figures are the same everywhere.

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;

fn locklab(line: &str) -> Command {
    let mut command = Command::cargo_bin("locklab").unwrap();
    command.args(line.split_whitespace());
    command.args(["--quiet", "--store", ":memory:"]);
    command
}

fn json(line: &str) -> Value {
    let out = locklab(line).arg("--json").assert().success();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

const SMALL: &str = "--on flat-16 --threads 8 --critical 30 --non-critical 8";

#[test]
fn readers_decide_between_a_mutex_and_a_reader_writer_lock() {
    let ratio = |reads: u32| {
        let line = format!("matrix mcs phase-fair {SMALL} --pairs 8 --reads {reads}");
        json(&line)["cells"][0]["ratio"].as_f64().unwrap()
    };
    let (writers, readers) = (ratio(0), ratio(99));
    assert!(writers < 1.1 && readers > 2.0, "{writers} and {readers}");
    let text = locklab(&format!(
        "matrix mcs phase-fair {SMALL} --pairs 8 --reads 99"
    ))
    .assert()
    .success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert!(text.contains("99 % of the acquisitions read"), "{text}");
    assert!(text.contains("readers held a lock at once"), "{text}");
}

#[test]
fn each_number_of_locks_has_a_table_and_cells_of_its_own() {
    let line = "matrix ticket mcs --on flat-16 --threads 8,16 --critical 1 --non-critical 1 \
                --pairs 8 --set locks=1,8 --set choice=zipf --set lines=2 --set distribution=exponential";
    let found = json(line);
    let cells = found["cells"].as_array().unwrap();
    let locks: Vec<&Value> = cells.iter().map(|cell| &cell["locks"]).collect();
    assert_eq!(locks, [1, 1, 8, 8]);
    let rate = |cell: usize| cells[cell]["baseline"]["ops_per_s"].as_f64().unwrap();
    assert!(rate(2) > 1.5 * rate(0));
    let text = locklab(line).assert().success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    for part in [
        "Non-critical length 1, 1 lock",
        "Non-critical length 1, 8 locks",
        "8 locks: ",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 72).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn lengths_in_nanoseconds_are_those_of_the_model_s_clock() {
    let line = "matrix ticket mcs --on flat-16 --threads 1 --critical 300 --non-critical 700 \
                --unit ns --pairs 8";
    let found = json(line);
    let rate = found["cells"][0]["baseline"]["ops_per_s"].as_f64().unwrap();
    // A turn takes the two lengths, a little more outside, and the lock.
    assert!((0.8e6..1.0e6).contains(&rate), "{rate}");
}

#[test]
fn a_ranking_has_them_too() {
    let line =
        format!("rank mcs ticket bravo {SMALL} --reads 95 --set locks=1,4 --set nested=true");
    locklab(&line)
        .assert()
        .code(2)
        .stderr(contains("nested takes two"));
    let line = format!("rank mcs ticket bravo {SMALL} --reads 95 --set locks=1,4");
    let found = json(&line);
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[1]["locks"], 4);
    assert_eq!(points[0]["metrics"][0]["set"], serde_json::json!(["bravo"]));
}

#[test]
fn a_file_says_what_the_command_line_can() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let text = "kind = 'matrix'\nbaseline = 'mcs'\nexperiment = 'bravo'\non = 'flat-16'\n\
                threads = [8]\ncritical = [30]\nnon_critical = [8]\npairs = 8\nreads = 99\n";
    std::fs::write(&file, text).unwrap();
    let of_file = json(&format!("compare {}", file.display()));
    let typed = json(&format!("matrix mcs bravo {SMALL} --pairs 8 --reads 99"));
    assert_eq!(of_file["cells"], typed["cells"]);
}

#[test]
fn a_ranking_is_a_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let text = "kind = 'rank'\ncandidates = ['mcs', 'ticket', 'bravo']\non = 'flat-16'\n\
                threads = [8]\ncritical = [30]\nnon_critical = [8]\nreads = 95\n\
                needs = ['try']\nagainst = 'ticket'\n";
    std::fs::write(&file, text).unwrap();
    let of_file = json(&format!("compare {}", file.display()));
    let typed = format!("rank mcs ticket bravo {SMALL} --reads 95 --needs try --against ticket");
    assert_eq!(of_file["points"], json(&typed)["points"]);
    std::fs::write(&file, text.replace("'try'", "'fair'")).unwrap();
    locklab(&format!("compare {}", file.display()))
        .assert()
        .code(2)
        .stderr(contains("'fair' is not one of try"));
}

#[test]
fn what_makes_no_sense_is_said_in_a_sentence() {
    for (line, part) in [
        (
            "matrix mcs ticket --on flat-16 --reads 90",
            "readers can share none of these locks",
        ),
        (
            "matrix mcs ticket --reads 90",
            "name one that does (rw-queued, phase-fair, bravo",
        ),
        (
            "rank mcs ticket --on flat-16 --reads 90",
            "readers can share none of these locks",
        ),
        (
            "matrix mcs bravo --on flat-16 --reads 101",
            "--reads 0 to 100",
        ),
        (
            "matrix mcs bravo --on flat-16 --critical 3 --set lines=5",
            "length 3 touches, which is 4",
        ),
        (
            "matrix mcs bravo --critical 3 --set lines=5",
            "length 3 touches, which is 4",
        ),
        (
            "matrix mcs ticket --on flat-16 --set locks=0",
            "0 locks cannot be run",
        ),
        (
            "matrix mcs ticket --on flat-16 --set choice=zipf",
            "--set locks=2 or more",
        ),
        (
            "matrix mcs ticket --on flat-16 --set distribution=normal",
            "unknown variant `normal`, expected one of `fixed`",
        ),
        (
            "matrix mcs ticket --set workload=fstat --set lines=2",
            "fstat touches no lines",
        ),
        (
            "matrix mcs ticket --on amd64-8 --set workload=fstat --set lines=2",
            "fstat touches no lines",
        ),
    ] {
        let error = locklab(line).assert().code(2);
        let error = String::from_utf8_lossy(&error.get_output().stderr).into_owned();
        assert!(error.contains(part), "{line}: {error}");
    }
}

/// Here, where no figure is looked at.
#[test]
fn a_matrix_of_readers_runs_here() {
    let line = "matrix ticket rw-queued --threads 2 --critical 4 --non-critical 8 --time 1 \
                --pairs 8 --reads 80 --set lines=3 --set locks=2 --set nested=true --set distribution=bursty --latency";
    let found = json(line);
    let cell = &found["cells"][0];
    assert_eq!(cell["locks"], 2);
    assert!(cell["baseline"]["ops_per_s"].as_f64().unwrap() > 0.0);
}
