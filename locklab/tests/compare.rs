//! `locklab compare` as a user runs it: any command, and what goes wrong. The programs of
//! its workloads are in `workloads`.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("locklab").unwrap();
        command
            .arg("compare")
            .args(["--store", &self.path("store.sqlite")])
            .args(arguments)
            .timeout(std::time::Duration::from_secs(300));
        command
    }

    /// Runs the command; returns exit code, standard output, standard error.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// Returns what the store gives back.
    fn export(&self, format: &[&str]) -> String {
        let output = Command::cargo_bin("locklab")
            .unwrap()
            .args(["results", "export"])
            .args(format)
            .args(["--store", &self.path("store.sqlite")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.run(&[&["--json", "--quiet"], arguments].concat());
        let json = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out} {err}"));
        (code, json)
    }
}

pub(crate) const EIGHT: [&str; 4] = ["--pairs", "8", "--set", "counters=none"];

#[test]
fn any_command_by_pattern_and_by_path() {
    let bench = Bench::new();
    let arguments = [
        "--baseline",
        "echo '{\"rate\": {\"ops\": 100}} done'",
        "--experiment",
        "echo '{\"rate\": {\"ops\": 150}} done'",
        "--metric",
        r#"rate[ops/s]:higher="ops": ([0-9]+)"#,
    ];
    let (code, json) = bench.json(&[&arguments, &EIGHT[..]].concat());
    assert_eq!(code, 0, "{json:#}");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["provenance"]["source"], "hardware");
    let metric = &json["workloads"][0]["metrics"][0];
    assert_eq!(metric["name"], "rate");
    assert_eq!(metric["unit"], "ops/s");
    assert_eq!(metric["primary"], true);
    assert_eq!(metric["verdict"], "better");
    assert_eq!(
        (&metric["baseline"], &metric["experiment"]),
        (&100.0.into(), &150.0.into())
    );
    assert!((metric["delta_percent"].as_f64().unwrap() - 50.0).abs() < 1e-9);
    // What the kernel accounts is there too, as screening.
    let names: Vec<&str> = json["workloads"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"elapsed") && names.contains(&"max-rss"),
        "{names:?}"
    );

    // The same again from the store, and a regression as an exit code.
    let show = Command::cargo_bin("locklab")
        .unwrap()
        .args(["results", "--store", &bench.path("store.sqlite"), "show"])
        .output()
        .unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    assert!(
        shown.contains("rate [ops/s]") && shown.contains("+50.00%  **+"),
        "{shown}"
    );
    let worse = [
        "--baseline",
        "echo 3",
        "--experiment",
        "echo 2",
        "--metric",
        "x:higher=(.)",
    ];
    let (code, _, _) = bench.run(&[&worse, &EIGHT[..], &["--fail-on", "worse"]].concat());
    assert_eq!(code, 3);
    let json_path = [
        "--metric",
        "x:lower=json:a[0]",
        "--",
        "echo",
        "{\"a\": [2.5]}",
    ];
    let (code, json) = bench.json(&[&EIGHT[..], &json_path].concat());
    assert_eq!(code, 0);
    assert_eq!(json["workloads"][0]["metrics"][0]["baseline"], 2.5);
    assert_eq!(json["workloads"][0]["metrics"][0]["verdict"], "flat");
}

#[test]
fn two_builds_two_environments_and_their_logs() {
    let bench = Bench::new();
    for (build, number) in [("old", "4"), ("new", "2")] {
        let folder = bench.folder.path().join(build);
        std::fs::create_dir(&folder).unwrap();
        let program = folder.join("tool");
        std::fs::write(&program, format!("#!/bin/sh\necho {number} $EXTRA\n")).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let logs = bench.path("logs");
    let settings = [
        format!("baseline.build={}", bench.path("old")),
        format!("experiment.build={}", bench.path("new")),
        format!("logs={logs}"),
    ];
    let builds: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
    for command in [vec!["--", "tool"], vec!["--", "{build}/tool"]] {
        let metric = ["--metric", "x:lower=^([0-9])"];
        let (code, json) = bench.json(&[&builds[..], &metric, &EIGHT[..], &command].concat());
        assert_eq!(code, 0, "{json:#}");
        assert_eq!(json["workloads"][0]["metrics"][0]["verdict"], "better");
    }
    let log = Path::new(&logs).join("command-003-experiment.out");
    assert_eq!(std::fs::read_to_string(log).unwrap().trim(), "2");
    let environments = [
        "--set",
        "baseline.env.N='7'",
        "--set",
        "experiment.env.N='9'",
        "--metric",
        "n:higher=([0-9])",
        "--",
        "sh",
        "-c",
        "echo $N",
    ];
    let (_, json) = bench.json(&[&EIGHT[..], &environments].concat());
    assert_eq!(json["workloads"][0]["metrics"][0]["experiment"], 9.0);
}

#[test]
fn one_run_of_forty_fails_and_the_rest_stand() {
    let bench = Bench::new();
    let counter = bench.path("runs");
    // Two warm-ups and forty runs: the twentieth fails.
    let script = format!("echo x >> {counter}; [ $(wc -l < {counter}) -ne 20 ] && echo 5");
    let arguments = [
        "--metric",
        "x:higher=([0-9])",
        "--set",
        "counters=none",
        "--",
        "sh",
        "-c",
    ];
    let (code, json) = bench.json(&[&arguments[..], &[script.as_str()]].concat());
    assert_eq!(code, 0, "{json:#}");
    let workload = &json["workloads"][0];
    assert_eq!(workload["pairs"], 20);
    assert_eq!(workload["pairs_set_aside"].as_array().unwrap().len(), 1);
    assert_eq!(workload["metrics"][0]["verdict"], "flat");
    assert!(
        workload["summary"]
            .as_str()
            .unwrap()
            .contains("1 of 20 pairs does not count")
    );
}

#[test]
fn what_goes_wrong_is_one_sentence() {
    let bench = Bench::new();
    let missing = bench.path("missing");
    let build = format!("baseline.build={missing}");
    let bad_file = bench.path("bad.toml");
    std::fs::write(&bad_file, "kind = 'compare'\nworkloads = 3\n").unwrap();
    for (arguments, part) in [
        (vec![], "nothing to run"),
        (vec!["--baseline", "true"], "there is no command to run"),
        (
            vec!["--workload", "nginx-chrun"],
            "did you mean nginx-churn?",
        ),
        (vec!["--workload", "fstat:fast"], "is no variant"),
        (
            vec!["--workload", "fstat", "--baseline-lock", "mcss"],
            "the closest are mcs",
        ),
        (vec!["--workload", "fstat", "--pairs", "0"], "zero"),
        (vec!["--workload", "fstat", "--delta", "0"], "is no margin"),
        (
            vec!["--workload", "fstat", "--scale", "0"],
            "not between 0 and",
        ),
        (
            vec!["--workload", "fstat", "--run-limit", "0"],
            "a time limit of 0 s leaves no time",
        ),
        (
            vec!["--workload", "fstat", "--time-limit", "60"],
            "write --run-limit",
        ),
        (
            vec!["--workload", "fstat", "--pin", "4000"],
            "cannot be pinned to",
        ),
        (vec!["--workload", "fstat,fstat"], "two workloads"),
        (
            vec!["--workload", "fstat", "--metric", "x:higher=(.)"],
            "--metric is for the workload 'command'",
        ),
        (
            vec!["--workload", "fstat", "--set", &build],
            "there is no folder",
        ),
        (
            vec!["--baseline", "true", "--metric", "x:higher=("],
            "no regular expression",
        ),
        (
            vec!["--baseline", "true", "--set", "baseline.env"],
            "write KEY=VALUE",
        ),
        (vec![missing.as_str()], "cannot read"),
        (vec![bad_file.as_str()], "line 2: unknown field"),
        (
            vec![
                "--set",
                "counters=hardware",
                "--workload",
                "fstat",
                "--scale",
                "0",
            ],
            "scale",
        ),
    ] {
        let (code, out, err) = bench.run(&arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
        let part = part.replace("zero", "0 pairs show nothing");
        assert!(err.contains(&part), "{arguments:?}: {err}");
    }
}

#[test]
fn a_file_of_the_old_form_is_refused_with_the_line_to_write() {
    let bench = Bench::new();
    let file = bench.path("old.toml");
    std::fs::write(
        &file,
        "# two locks\n\npairs = 8\n[[workload]]\nname = 'fstat'\n",
    )
    .unwrap();
    let (code, out, err) = bench.run(&[&file]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("old.toml, line 3: "), "{err}");
    assert!(
        err.contains("write kind = \"compare\" above this line"),
        "{err}"
    );
    // What is for programs is refused where something else is compared.
    std::fs::write(
        &file,
        "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\n",
    )
    .unwrap();
    let (code, _, err) = bench.run(&[&file, "--workload", "gcc"]);
    assert_eq!(code, 2);
    assert!(err.contains("--workload is for programs"), "{err}");
}

#[test]
fn a_workload_that_cannot_run_says_why_and_the_next_goes_on() {
    let bench = Bench::new();
    let file = bench.path("two.toml");
    std::fs::write(
        &file,
        "kind = 'compare'\n\
         [[workload]]\nname = 'command'\ntitle = 'absent'\ncommand = 'no-such-program-of-ours'\n\
         [[workload]]\nname = 'command'\ntitle = 'silent'\ncommand = 'echo usage: prog'\n\
         metric = [{name = 'x', better = 'higher', pattern = 'x=(.)'}]\n\
         [[workload]]\nname = 'command'\ntitle = 'there'\ncommand = 'echo 1'\n\
         metric = [{name = 'x', better = 'higher', pattern = '(.)'}]\n",
    )
    .unwrap();
    let (code, out, err) = bench.run(&[&[file.as_str()], &EIGHT[..]].concat());
    assert_eq!(code, 1);
    assert!(
        err.contains("absent: there is no program 'no-such-program-of-ours'"),
        "{err}"
    );
    assert!(err.contains("it says: usage: prog"), "{err}");
    assert!(err.contains("not complete: absent; silent"), "{err}");
    assert!(out.contains("x is equal within"), "{out}");
    assert!(out.contains("Not run: absent, silent."), "{out}");
}

#[test]
fn a_run_that_hangs_is_killed_with_its_children() {
    let bench = Bench::new();
    let pids = bench.path("pids");
    let script = format!("sleep 1000 & echo $! >> {pids}; wait");
    let (code, out, err) = bench.run(&[
        "--run-limit",
        "0.2",
        "--pairs",
        "8",
        "--set",
        "counters=none",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!(code, 1, "{out}");
    assert!(
        err.contains("ran longer than 0.2 s and was killed with its children"),
        "{err}"
    );
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
}

#[test]
fn a_full_disk_is_told_and_the_report_is_printed() {
    let bench = Bench::new();
    let (code, out, err) =
        bench.run(&[&["--html", "/dev/full"], &EIGHT[..], &["--", "true"]].concat());
    assert_eq!(code, 1);
    assert!(
        err.contains("cannot write /dev/full: No space left on device"),
        "{err}"
    );
    assert!(out.contains("Conclusion"), "{out}");
}

#[test]
fn ctrl_c_reports_what_is_there_and_resume_goes_on() {
    let bench = Bench::new();
    let runs = bench.path("runs");
    std::fs::create_dir(&runs).unwrap();
    // The tenth run, the second of its pair, waits for a file that the second
    // session has.
    let script = format!(
        "touch {runs}/$$; if [ $(ls {runs} | wc -l) -ge 10 ] && [ ! -e {runs}/go ]; then sleep \
         1000; fi; echo 1"
    );
    let arguments = [
        "--pairs",
        "8",
        "--set",
        "counters=none",
        "--metric",
        "x:higher=(.)",
    ];
    let tail = ["--", "sh", "-c", script.as_str()];
    let program = assert_cmd::cargo::cargo_bin("locklab");
    let child = std::process::Command::new(program)
        .args(["compare", "--store", &bench.path("store.sqlite")])
        .args(arguments)
        .args(tail)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..6000 {
        if std::fs::read_dir(&runs).unwrap().count() >= 10 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child.id() as i32),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("--resume continues"), "{err}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("Not complete: interrupted by a signal")
    );

    // The half of a pair is stored, as such; only whole pairs are kept.
    let halves = |bench: &Bench| {
        let lines = bench.export(&["--json"]);
        let runs: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let kept = runs.iter().filter(|run| run["state"] == "kept");
        let half = runs
            .iter()
            .filter(|run| run["invalid"] == "interrupted before it ran");
        (kept.count(), half.count())
    };
    assert_eq!(halves(&bench), (6, 1));

    std::fs::write(Path::new(&runs).join("go"), "").unwrap();
    let (code, out, err) = bench.run(&[&arguments[..], &["--resume"], &tail].concat());
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("Going on with experiment 1: 3 pairs are there"),
        "{err}"
    );
    assert!(out.contains("x is equal within"), "{out}");
    assert_eq!(halves(&bench), (16, 1));
}

#[test]
fn a_comparison_is_exported_run_by_run() {
    let bench = Bench::new();
    let arguments = [
        "--baseline",
        "echo v=4",
        "--experiment",
        "echo v=5",
        "--metric",
        "v:higher=v=(.)",
    ];
    let (code, _, err) = bench.run(&[&EIGHT[..], &arguments].concat());
    assert_eq!(code, 0, "{err}");
    let csv = bench.export(&[]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    assert_eq!(
        head[..6],
        ["experiment", "workload", "pair", "side", "subject", "order"]
    );
    let rows: Vec<Vec<&str>> = lines.collect();
    let of_v = |side: &str, value: f64| {
        let is = |row: &&Vec<&str>| {
            row[at("side")] == side
                && row[at("v")].parse() == Ok(value)
                && row[at("state")] == "kept"
        };
        rows.iter().filter(is).count()
    };
    assert_eq!((of_v("baseline", 4.0), of_v("experiment", 5.0)), (8, 8));
    assert_eq!(bench.export(&["--json"]).lines().count(), 16);
}

/// One source, built by a command of the user's with unlock inlined or not.
#[test]
fn a_build_command_makes_both_sides_of_inlining() {
    let bench = Bench::new();
    let source = bench.path("prog.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\nint main(void) { printf(\"v=%d\\n\", LOCKLAB_UNLOCK_INLINE + 4); }\n",
    )
    .unwrap();
    let build = format!("cc $CFLAGS -o {{out}}/prog {source} && echo {{inline}} > {{out}}/word");
    let arguments = [
        "--inline",
        "unlock=never|always",
        "--metric",
        "v:higher=v=(.)",
    ];
    let tail = ["--build", build.as_str(), "--", "prog"];
    let (code, json) = bench.json(&[&EIGHT[..], &arguments, &tail].concat());
    assert_eq!(code, 0, "{json}");
    let metric = &json["workloads"][0]["metrics"][0];
    assert_eq!(
        (&metric["baseline"], &metric["experiment"]),
        (&4.0.into(), &5.0.into())
    );
    assert!(json["footprint"].is_object(), "{json}");

    let refused = |tail: &[&str], part: &str| {
        let (code, _, err) = bench.run(&[&EIGHT[..], &arguments, tail].concat());
        assert_ne!(code, 0);
        assert!(err.contains(part), "{err}");
        assert_eq!(
            err.lines().filter(|l| l.starts_with("locklab:")).count(),
            1,
            "{err}"
        );
    };
    refused(&["--", "prog"], "give --build");
    refused(
        &["--build", "exit 3", "--", "prog"],
        "'exit 3' failed (exit status 3)",
    );
    refused(&["--build", "true", "--", "prog"], "left nothing in");
}

#[test]
fn a_dry_run_runs_nothing_and_the_example_is_whole() {
    let bench = Bench::new();
    let (code, out, _) = bench.run(&["--workload", "nginx-churn,gcc", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("ab -n 20000 -c 80") && out.contains("gcc -O2"),
        "{out}"
    );
    assert!(!Path::new(&bench.path("store.sqlite")).exists());
    let mut example = Command::cargo_bin("locklab").unwrap();
    let printed = example
        .args(["results", "schema", "example"])
        .output()
        .unwrap();
    assert!(printed.status.success());
    let example = String::from_utf8(printed.stdout).unwrap();
    let file = bench.path("example.toml");
    std::fs::write(
        &file,
        example.replace("lock = \"mcs\"", "lock = \"pthread\""),
    )
    .unwrap();
    let (code, _, err) = bench.run(&[&file, "--dry-run"]);
    assert_eq!(code, 0, "{err}");
}
