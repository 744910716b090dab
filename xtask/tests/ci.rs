//! The action for GitHub and the template for GitLab: their steps, run here as a
//! runner runs them, with a command in place of the released one that says what it
//! was asked.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// A step of the action: its script and its environment.
#[derive(Default)]
struct Step {
    name: String,
    run: String,
    environment: BTreeMap<String, String>,
}

/// Reads the inputs with their defaults, and the steps. The action keeps to plain
/// keys and values of one line, so that this reads all of it.
fn action() -> (BTreeMap<String, String>, Vec<Step>) {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let (mut inputs, mut steps) = (BTreeMap::new(), Vec::<Step>::new());
    let mut part = "";
    let mut input = "";
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim().trim_matches('"');
        match (indent, part, key) {
            (0, ..) => part = key,
            (2, "inputs", _) => {
                input = key;
                inputs.insert(input.to_owned(), String::new());
            }
            (4, "inputs", "default") => {
                inputs.insert(input.to_owned(), value.to_owned());
            }
            (4, "runs", "- name") => steps.push(Step {
                name: value.to_owned(),
                ..Step::default()
            }),
            (6, "runs", "run") => steps.last_mut().unwrap().run = value.to_owned(),
            (8, "runs", _) => {
                let environment = &mut steps.last_mut().unwrap().environment;
                environment.insert(key.to_owned(), value.to_owned());
            }
            _ => {}
        }
    }
    (inputs, steps)
}

/// The folder of the repository, whose name a shell reads otherwise.
const REPO: &str = "it's a repo";

/// A repository with a base and a change, and commands that stand in for others.
struct Place {
    folder: tempfile::TempDir,
    base: String,
}

fn sh(folder: &Path, script: &str) -> Output {
    let done = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
    done
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        sh(
            at,
            "mkdir \"it's a repo\" bin temp && cd \"it's a repo\" && git init -q && git config user.email a@b.c &&
             git config user.name a && echo base > side && git add side && git commit -qm base &&
             echo head > side && git commit -qam head",
        );
        let base = sh(&at.join(REPO), "git rev-parse HEAD~1").stdout;
        let place = Self {
            base: String::from_utf8(base).unwrap().trim().to_owned(),
            folder,
        };
        // Runs both sides once, as the real one would, and keeps what they say.
        place.command(
            "locklab",
            r#"for word in "$@"; do printf '%s\n' "$word"; done > "$OUT/words"
while [ $# -gt 0 ]; do
    case $1 in
    --baseline | --experiment)
        eval "$2" > "$OUT/ran$1"
        eval "$(printf %s "$2" | sed 's/eval.*/pwd'"'"'/')" > "$OUT/folder$1"
        ;;
    --markdown) echo '| a table |' > "$2" ;;
    esac
    shift
done
exit "${CODE:-0}""#,
        );
        fs::write(place.folder.path().join("comments"), "").unwrap();
        place.command(
            "gh",
            r#"echo "$@" >> "$OUT/gh"
case $* in *--paginate*) cat "$OUT/comments"; exit 0 ;; esac
for word in "$@"; do case $word in body=@*) cat "${word#body=@}" > "$OUT/comment" ;; esac; done"#,
        );
        place
    }

    fn command(&self, name: &str, script: &str) {
        let file = self.folder.path().join("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a script as a step, in the repository.
    fn run(&self, script: &str, environment: &[(&str, &str)]) -> Output {
        let at = self.folder.path();
        let path = format!(
            "{}:{}",
            at.join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(at.join(REPO))
            .env("PATH", path)
            .env("OUT", at)
            .env("RUNNER_TEMP", at.join("temp"))
            .env("GITHUB_STEP_SUMMARY", at.join("summary"))
            .env("GITHUB_OUTPUT", at.join("output"))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_WORKFLOW", "w")
            .env("GITHUB_JOB", "j")
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    fn file(&self, name: &str) -> String {
        let file = self.folder.path().join(name);
        fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    }
}

/// Returns the steps of the action, with these inputs, in a repository.
fn steps(place: &Place, given: &[(&str, &str)], code: &str) -> Vec<(String, Output)> {
    let (mut inputs, steps) = action();
    for (name, value) in given {
        assert!(inputs.contains_key(*name), "there is no input {name}");
        inputs.insert((*name).to_owned(), (*value).to_owned());
    }
    let filled = |text: &str| {
        let mut text = text.replace("${{ github.action_path }}", &root().display().to_string());
        text = text.replace("${{ github.event.pull_request.number }}", "7");
        for (name, value) in &inputs {
            text = text.replace(&format!("${{{{ inputs.{name} }}}}"), value);
        }
        assert!(
            !text.contains("${{ inputs"),
            "{text}: an input that does not exist"
        );
        text
    };
    let run = |step: &Step| {
        let environment: Vec<(String, String)> = step
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), filled(value)))
            .collect();
        let mut all: Vec<(&str, &str)> = vec![("CODE", code)];
        all.extend(environment.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        (step.name.clone(), place.run(&filled(&step.run), &all))
    };
    steps.iter().map(run).collect()
}

#[test]
fn the_action_compares_a_change_with_its_base_and_comments() {
    let place = Place::new();
    let base = place.base.clone();
    let done = steps(
        &place,
        &[
            (
                "run",
                "cat side built | tr '\\n' ' '; echo \"it's $((1 + 1))\"",
            ),
            ("build", "echo built > built"),
            ("base", &base),
            ("metric", "rate[1/s]:higher=([0-9.]+)"),
            ("retry", "2"),
        ],
        "0",
    );
    let names: Vec<&str> = done.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["Install Locklab", "Compare with the base", "Comment"]
    );
    for (name, output) in &done {
        assert!(output.status.success(), "{name}: {output:?}");
    }
    // Each side ran in its own folder, built.
    assert_eq!(place.file("ran--baseline"), "base built it's 2\n");
    assert_eq!(place.file("ran--experiment"), "head built it's 2\n");
    let words = place.file("words");
    for option in [
        "--pairs\n40\n",
        "--retry\n2\n",
        "--delta\n1\n",
        "--fail-on\nworse\n",
        "--github\n",
        "--junit\n",
    ] {
        assert!(words.contains(option), "{option}: {words}");
    }
    assert!(words.contains("--metric\nrate[1/s]:higher=([0-9.]+)\n"));
    // Reports name the commits, and not the folders that they were built in.
    let name = format!("--name\nbase {}", &base[..7]);
    assert!(words.contains(&name), "{words}");
    // No comment has the marker, so there is a new one; that of another job is left alone.
    let asked = place.file("gh");
    assert!(
        asked.contains("api --silent repos/o/r/issues/7/comments"),
        "{asked}"
    );
    assert_eq!(
        place.file("comment"),
        "<!-- locklab: w j -->\n| a table |\n"
    );
    assert!(
        place
            .file("output")
            .starts_with("verdict=passed\nreports=/")
    );
    // Both sides ran in fresh folders of equal length.
    let [base, head] = ["folder--baseline", "folder--experiment"].map(|name| place.file(name));
    assert!(base != head && base.len() == head.len(), "{base}{head}");
    assert!(!base.contains(REPO) && !head.contains(REPO));
    // The folders are gone.
    let worktrees = sh(&place.folder.path().join(REPO), "git worktree list | wc -l").stdout;
    assert_eq!(String::from_utf8(worktrees).unwrap().trim(), "1");
}

#[test]
fn a_regression_fails_the_step_and_is_commented_all_the_same() {
    let place = Place::new();
    let base = place.base.clone();
    let done = steps(&place, &[("run", "cat side"), ("base", &base)], "3");
    let codes: Vec<Option<i32>> = done
        .iter()
        .map(|(_, output)| output.status.code())
        .collect();
    assert_eq!(codes, [Some(0), Some(3), Some(0)]);
    assert!(place.file("output").starts_with("verdict=worse\n"));
    assert!(place.file("comment").ends_with("| a table |\n"));
}

/// The comment of this job is renewed, whole lines of it, and what is open is closed.
#[test]
fn the_comment_of_the_job_is_renewed() {
    let place = Place::new();
    let reports = place.folder.path().join("reports");
    fs::create_dir(&reports).unwrap();
    let long = format!("<details>\n{}", "\u{e9}t\u{e9}\n".repeat(20_000));
    fs::write(reports.join("report.md"), long).unwrap();
    fs::write(place.folder.path().join("comments"), "42\n43\n").unwrap();
    let script = root().join("packaging/ci/comment.sh").display().to_string();
    let reports = reports.display().to_string();
    let output = place.run(&script, &[("REPORTS", &reports), ("PULL_REQUEST", "7")]);
    assert!(output.status.success(), "{output:?}");
    let asked = place.file("gh");
    assert!(
        asked.contains("--method PATCH repos/o/r/issues/comments/42 "),
        "{asked}"
    );
    let comment = place.file("comment");
    assert!(comment.len() < 61_000 && comment.contains("</details>\n"));
    assert!(comment.ends_with("(The rest is in the summary of the job.)\n"));
}

/// A submodule is a part of both sides.
#[test]
fn a_side_has_its_submodules() {
    let place = Place::new();
    sh(
        &place.folder.path().join(REPO),
        "git init -q ../sub && cd ../sub && git config user.email a@b.c && git config user.name a
         echo part > part && git add part && git commit -qm part && cd - > /dev/null
         git -c protocol.file.allow=always submodule --quiet add ../sub sub
         git commit -qm 'a submodule' && echo more > side && git commit -qam more",
    );
    let script = root().join("packaging/ci/compare.sh").display().to_string();
    let output = place.run(
        &script,
        &[
            ("RUN", "cat side sub/part"),
            ("BASE", "HEAD^1"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
            ("GIT_CONFIG_VALUE_0", "always"),
        ],
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.file("ran--baseline"), "head\npart\n");
    assert_eq!(place.file("ran--experiment"), "more\npart\n");
}

/// Nothing is installed that only has the name: a wheel is one of the release, by its hash.
#[test]
fn a_wheel_is_installed_by_its_hash_or_not_at_all() {
    let place = Place::new();
    fs::remove_file(place.folder.path().join("bin/locklab")).unwrap();
    let script = root().join("packaging/ci/install.sh").display().to_string();
    let output = place.run(&script, &[("WHEEL", "/nonexistent")]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("names no wheel"), "{said}");
    let script = fs::read_to_string(root().join("packaging/ci/install.sh")).unwrap();
    assert!(script.contains("--require-hashes"));
}

#[test]
fn what_cannot_be_compared_is_one_sentence() {
    let place = Place::new();
    let script = root().join("packaging/ci/compare.sh").display().to_string();
    let refused = |environment: &[(&str, &str)], code: i32, says: &str| {
        let output = place.run(&script, environment);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(says), "{text}");
    };
    refused(
        &[("RUN", "true"), ("BASE", "")],
        2,
        "there is no commit to compare with",
    );
    let base = place.base.as_str();
    refused(
        &[("RUN", "true"), ("BASE", base), ("BUILD", "exit 4")],
        1,
        "the build failed in",
    );
}

/// GitLab runs the same script.
#[test]
fn the_template_of_gitlab_names_what_is_there() {
    let text = fs::read_to_string(root().join("packaging/ci/gitlab.yml")).unwrap();
    for script in ["install.sh", "compare.sh"] {
        assert!(text.contains(script));
        assert!(root().join("packaging/ci").join(script).exists());
    }
    let compare = fs::read_to_string(root().join("packaging/ci/compare.sh")).unwrap();
    for name in ["BASE", "PAIRS", "FAIL_ON"] {
        assert!(
            text.contains(&format!("    {name}: ")) && compare.contains(name),
            "{name}"
        );
    }
    assert!(
        compare.contains("$reports/junit.xml") && text.contains("junit: locklab-reports/junit.xml")
    );
}

/// Of a pull request, what it was merged with is the base: commits of others since the branch
/// began are on both sides.
#[test]
fn the_base_of_a_pull_request_is_what_it_was_merged_with() {
    let (inputs, _) = action();
    let base = &inputs["base"];
    assert!(base.contains("== 'pull_request' && 'HEAD^1' ||"), "{base}");
    let place = Place::new();
    sh(
        &place.folder.path().join(REPO),
        "git checkout -qb other HEAD~1 && echo other > other && git add other && \
         git commit -qm 'of others' && git merge -q --no-edit -",
    );
    let done = steps(
        &place,
        &[("run", "cat side other"), ("base", "HEAD^1")],
        "0",
    );
    assert!(
        done.iter().all(|(_, output)| output.status.success()),
        "{done:?}"
    );
    assert_eq!(place.file("ran--baseline"), "base\nother\n");
    assert_eq!(place.file("ran--experiment"), "head\nother\n");
}

/// Scripts run on machines of others, whose shells differ.
#[test]
fn shellcheck_finds_no_fault_in_the_scripts_of_the_action() {
    let listed = sh(
        &root(),
        "git ls-files 'crates/measure/samples/*.sh' 'packaging/ci/*.sh'",
    )
    .stdout;
    let listed = String::from_utf8(listed).unwrap();
    let found = Command::new("shellcheck")
        .args(["--severity", "warning"])
        .args(listed.lines())
        .current_dir(root())
        .output();
    let Ok(found) = found else {
        println!("skipped: shellcheck is missing");
        return;
    };
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        listed.lines().count() > 2 && found.status.success(),
        "{said}"
    );
}
