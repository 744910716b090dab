//! `locklab verify` as a user runs it. What it finds does not depend on the
//! machine, so its tables are golden files.

use crate::common::golden::golden;
use assert_cmd::Command;

fn locklab() -> Command {
    Command::cargo_bin("locklab").unwrap()
}

/// Small enough for a test, large enough that nothing is cut.
const SMALL: [&str; 3] = ["--at-most", "executions=4000,schedules=50", "--quiet"];

#[test]
fn the_table() {
    let out = locklab()
        .args(["verify", "ticket", "mcs"])
        .args(SMALL)
        .assert();
    let out = out.success().stderr("");
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(
        text.lines().all(|line| line.chars().count() <= 72),
        "{text}"
    );
    golden("verify.txt", &text);
}

/// A page has no room for the names of locks beside the longest names of promises.
#[test]
fn a_long_name_of_a_promise_gets_each_lock_a_table() {
    let out = locklab()
        .args(["verify", "malthusian", "ticket", "--quiet"])
        .args(["--at-most", "executions=20,schedules=2"])
        .assert();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.contains("\nmalthusian\npromise  "), "{text}");
    assert!(text.contains("\n\nticket\npromise  "), "{text}");
    assert!(!text.contains("- lock"), "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    for (option, ending) in [("--steps", ""), ("--update", ".md"), ("--update", ".tsv")] {
        let file = folder.path().join(format!("no/folder/trace{ending}"));
        let arguments = ["verify", "--mutants", option, file.to_str().unwrap()];
        let out = locklab().args(arguments).assert().code(2);
        let said = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(said.contains("cannot write"), "{option}: {said}");
    }
}

#[test]
fn the_table_of_mutants() {
    let out = locklab()
        .args(["verify", "mcs", "--mutants"])
        .args(SMALL)
        .assert();
    let out = out.success().stderr("");
    golden(
        "verify_mutants.txt",
        &String::from_utf8_lossy(&out.get_output().stdout),
    );
}

#[test]
fn the_shape_that_others_rely_on() {
    let out = locklab()
        .args(["verify", "ticket", "--mutants", "--json", "--seed", "3"])
        .args(SMALL)
        .assert();
    let out = out.success().stderr("");
    let json: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["provenance"]["kind"], "model");
    assert_eq!(json["provenance"]["seed"], 3);
    let lock = &json["locks"][0];
    assert_eq!(lock["name"], "ticket");
    let argued = lock["argued"].as_array().unwrap().len() as u64;
    let killed = lock["killed"].as_u64().unwrap();
    assert_eq!(lock["mutants"].as_u64().unwrap(), killed + argued);
    assert_eq!(lock["survivors"].as_array().unwrap().len(), 0);
    for kind in ["orderings", "structure", "planted"] {
        assert!(lock[kind]["killed"].as_u64().unwrap() > 0, "{kind}");
    }
    let properties = lock["properties"].as_array().unwrap();
    let sum: u64 = properties
        .iter()
        .map(|p| p["executions"].as_u64().unwrap())
        .sum();
    assert_eq!(lock["executions"], sum);
    let checkers: Vec<&str> = properties
        .iter()
        .map(|p| p["checker"].as_str().unwrap())
        .collect();
    assert!(checkers.contains(&"loom") && checkers.contains(&"shuttle"));
}

#[test]
fn what_was_cut_is_said_and_no_failure() {
    let few = [
        "verify",
        "qspinlock-pv",
        "--at-most",
        "executions=5",
        "--at-most",
        "schedules=1",
    ];
    let out = locklab().args(few).assert().code(0);
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.lines().any(|line| line.ends_with("  cut")), "{text}");
    assert!(text.contains("left out:"), "{text}");
    let out = locklab()
        .args(few)
        .args(["--fail-on", "cut", "--json"])
        .assert()
        .code(3);
    let document: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let properties = document["locks"][0]["properties"].as_array().unwrap();
    for property in properties {
        let left_out = property["left_out"].as_array().unwrap();
        assert_eq!(
            left_out.is_empty(),
            property["outcome"] != "cut",
            "{property}"
        );
    }
}

#[test]
fn bad_arguments_are_said_and_nothing_runs() {
    for (args, said) in [
        (&["verify", "tiket"][..], "ticket"),
        (&["verify", "pthread"], "cannot be verified"),
        (&["verify", "tas", "--at-most", "executions=0"], "0"),
        (
            &["verify", "tas", "--thorough", "--at-most", "executions=9"],
            "--thorough",
        ),
        (&["verify", "tas", "--update", "file.md"], "--mutants"),
    ] {
        let out = locklab().args(args).assert().code(2).stdout("");
        let text = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

#[test]
fn the_named_bugs_and_the_steps_of_failures_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (bugs, trace) = (folder.path().join("bugs.md"), folder.path().join("trace"));
    locklab()
        .args(["verify", "ticket", "--mutants", "--update"])
        .arg(&bugs)
        .arg("--steps")
        .arg(&trace)
        .args(SMALL)
        .assert()
        .success();
    let bugs = std::fs::read_to_string(bugs).unwrap();
    assert!(
        bugs.contains("| ticket | tickets are compared by size, which fails when they wrap |"),
        "{bugs}"
    );
    assert!(!bugs.contains("**not known**"), "{bugs}");
    let trace = std::fs::read_to_string(trace).unwrap();
    assert_eq!(trace, "no promise is broken\n");
}

#[test]
fn a_record_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("verified.tsv");
    let out = locklab()
        .args(["verify", "ticket", "--mutants", "--update"])
        .arg(&record)
        .args(SMALL)
        .assert();
    out.success();
    let lines = std::fs::read_to_string(&record).unwrap();
    let first = lines.lines().nth(1).unwrap();
    assert!(first.starts_with("ticket\t"), "{lines}");
}

#[test]
fn dry_run_says_what_would_run() {
    let out = locklab()
        .args(["verify", "mcs", "--dry-run"])
        .assert()
        .success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.starts_with("mcs: exclusion; "), "{text}");
}

/// Of a file of one's own: what its models reach, and the names of its words.
#[test]
fn the_coverage_of_an_user_lock() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/more/user-lock/tests/c"
    );
    let coverage = |file: &str| {
        let path = std::path::Path::new(folder).join(file);
        let arguments = [
            "verify",
            path.to_str().unwrap(),
            "--coverage",
            "--at-most",
            "executions=600",
        ];
        let out = locklab().args(arguments).assert();
        let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
        let Some((_, table)) = text.split_once("coverage of") else {
            panic!("no table: {out}");
        };
        table.to_owned()
    };
    for (file, row, values) in [
        ("ticket.c", "4/4 6/6 2/2 - 0", "owner: 0 1 2"),
        ("rwlock.c", "8/8 8/8 5/5 - 0", "state: 0 1 2 4"),
    ] {
        let text = coverage(file);
        let found = text.lines().find(|line| line.starts_with(file));
        let found: Vec<&str> = found.expect("its row").split_whitespace().collect();
        assert_eq!(found[1..].join(" "), row, "{text}");
        assert!(text.contains(values), "{text}");
        assert!(!text.contains("struct:"), "{text}");
    }
    // Code that no model calls is listed with its line.
    let dead = tempfile::tempdir().unwrap();
    let path = dead.path().join("dead.c");
    let text = std::fs::read_to_string(format!("{folder}/ticket.c")).unwrap()
        + "void never(union ticket *l)\n{\n\tatomic_store_explicit(&l->word, 1, memory_order_relaxed);\n}\n";
    std::fs::write(&path, text).unwrap();
    let text = coverage(path.to_str().unwrap());
    for said in [
        "6/7",
        "dead.c:45: atomic_store_explicit",
        "never is executed",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}
