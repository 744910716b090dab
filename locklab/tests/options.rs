//! Holds options to their meaning: no file of the user's is lost, a former name is answered
//! with today's, and what is typed wrongly gets the sentence that helps.

use clap::Command as Tree;
use locklab::cli::{former, whole};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn locklab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("locklab"));
    command.current_dir(folder).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Asserts that a command line is refused in one sentence with these words.
fn refused(folder: &Path, line: &str, words: &str) {
    let arguments = shlex::split(line).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = locklab(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {text}");
    assert!(text.contains(words), "{line}: {text}");
    assert_eq!(text.lines().count(), 1, "{line}: {text}");
    assert!(output.stdout.is_empty(), "{line}: nothing may have run");
}

/// A simulation that takes no time.
const SMALL: &str = "matrix tas mcs --on flat-16 --threads 2 --critical 1 --non-critical 1 --pairs 8 \
                     -q --store :memory:";

#[test]
fn no_file_of_the_user_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let recording = [&locklab_trace::MAGIC[..], &[0; 64]].concat();
    std::fs::write(at("mine.trace"), &recording).unwrap();
    for name in ["notes", "notes.md", "notes.tsv"] {
        std::fs::write(at(name), "of the user").unwrap();
    }
    std::fs::write(at("mine.c"), "int of_the_user;\n").unwrap();
    for option in ["html", "markdown", "junit", "sarif", "perfetto"] {
        let line = format!("{SMALL} --{option} mine.trace");
        for line in [line.clone(), format!("{line} --force")] {
            refused(folder.path(), &line, "a recording is never overwritten");
        }
        let line = format!("{SMALL} --{option} notes");
        refused(folder.path(), &line, "add --force to overwrite it");
    }
    for (line, words) in [
        ("record -o mine.trace -- true", "never overwritten"),
        ("record -o mine.trace --force -- true", "never overwritten"),
        ("record -o notes -- true", "name another file"),
        ("verify tas --steps mine.trace", "never overwritten"),
        ("verify tas --mutants --update notes.md", "add --force"),
        ("verify tas --mutants --update notes.tsv", "add --force"),
        (
            "run --lock pthread --profile --html notes -- true",
            "add --force",
        ),
        ("machine fit notes", "add --force"),
        ("locks -o mine.c", "name another file"),
    ] {
        refused(folder.path(), line, words);
    }
    assert_eq!(std::fs::read(at("mine.trace")).unwrap(), recording);
    assert_eq!(std::fs::read(at("notes")).unwrap(), b"of the user");
    // Reports of Locklab itself are renewed, and others by --force.
    let files = "--html a.html --markdown a.md --junit a.xml --sarif a.sarif --perfetto a.json";
    let line = format!("{SMALL} {files}");
    for line in [&line, &line, &format!("{SMALL} --force --html notes")] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = locklab(folder.path(), &arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {text}");
    }
    assert!(
        std::fs::read_to_string(at("notes"))
            .unwrap()
            .contains("<html")
    );
}

#[test]
fn a_former_name_is_answered_with_the_name_of_today() {
    let folder = tempfile::tempdir().unwrap();
    for (line, words) in [
        (
            "matrix tas mcs --on flat-16 --trace x",
            "write --perfetto FILE",
        ),
        ("rank tas mcs --trace=x", "write --replay FILE"),
        ("verify tas --trace x", "write --steps FILE"),
        (
            "matrix tas mcs --workload fstat",
            "write --set workload=fstat",
        ),
        (
            "matrix tas mcs --slice-us 200",
            "write --set slice_us=VALUE",
        ),
        (
            "compare --baseline-build a -- b",
            "write --set baseline.build=DIR",
        ),
        ("record --seconds 3 -- true", "write --time SECONDS"),
        ("icache -- true", "write locklab frontend"),
        ("trace x.trace", "write locklab results show FILE"),
        ("screen gcc", "write locklab frontend --workload LIST"),
        ("kernel compare x.toml", "write locklab compare FILE"),
        ("--seed 3 locks", "write it behind the command"),
    ] {
        refused(folder.path(), line, words);
    }
    let file =
        "kind = 'matrix'\nbaseline = 'tas'\nexperiment = 'mcs'\non = 'flat-16'\ntrace = 'x'\n";
    std::fs::write(folder.path().join("m.toml"), file).unwrap();
    refused(folder.path(), "compare m.toml", "write perfetto = \"FILE\"");
    let file = "kind = 'rank'\ncandidates = ['tas', 'mcs']\ntrace = 'none.trace'\n";
    std::fs::write(folder.path().join("r.toml"), file).unwrap();
    let output = locklab(folder.path(), &["compare", "r.toml"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("none.trace"), "{text}");
}

#[test]
fn what_is_typed_wrongly_gets_the_sentence_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    for (line, words) in [
        ("run --lock mcs ls -l", "locklab run --lock mcs -- ls -l"),
        (
            "record ls",
            "put -- before the program: locklab record -- ls",
        ),
        ("matrix tas mcs clh", "locklab rank compares any number"),
        ("compare true false true", "is a third"),
        ("compare 'sleep 1'", "a comparison needs two"),
        (
            "matrix tas mcs --set slice=9",
            "--set slice=9: unknown field",
        ),
        ("matrix tas mcs --threads 1 4", "write --threads 1,4"),
        ("matrix tas mcs --threads 1, 4", "write --threads 1,4"),
        (
            "matrix tas mcs --fail-on worse unclear",
            "write --fail-on worse,unclear",
        ),
        ("judge a b --apart -1h", "--apart"),
    ] {
        refused(folder.path(), line, words);
    }
    // An option that is none is no item of the list before it.
    let typed = [
        "matrix",
        "tas",
        "mcs",
        "--fail-on",
        "worse, unclear",
        "--no",
    ];
    let said = String::from_utf8_lossy(&locklab(folder.path(), &typed).stderr).into_owned();
    assert!(said.contains("unexpected argument '--no'"), "{said}");
    let output = locklab(
        folder.path(),
        &[
            "matrix",
            "tas",
            "mcs",
            "--on",
            "flat-16",
            "--pairs",
            "3",
            "--dry-run",
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Too few: with 3 pairs no verdict"), "{text}");
    let threads = [
        "rank",
        "tas",
        "mcs",
        "--on",
        "flat-16",
        "--dry-run",
        "--threads",
        "1, 4",
    ];
    assert!(locklab(folder.path(), &threads).status.success());
}

#[test]
fn a_name_that_is_not_utf_8_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"b\xe9");
    for arguments in [
        &["judge", "a.json"][..],
        &["matrix", "tas"],
        &["rank", "tas"],
        &["compare"],
        &["verify"],
        &["compare", "true"],
    ] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("locklab"));
        let output = command
            .current_dir(folder.path())
            .args(arguments)
            .arg(name)
            .output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    // A report names the file as far as it is text.
    let file = folder.path().join(name);
    std::fs::write(&file, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n").unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("locklab"));
    let output = command
        .args(["judge", "--format", "csv"])
        .args([&file, &file])
        .output();
    let output = output.unwrap();
    assert_ne!(output.status.code(), Some(101), "{output:?}");
}

/// The command in a report is the one that was typed, as a shell reads it.
#[test]
fn the_command_of_a_report_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a;b&c|d<e>(f)*?#~`g' $h.html";
    let arguments: Vec<&str> = SMALL
        .split_whitespace()
        .chain(["--json", "--html", name])
        .collect();
    let output = locklab(folder.path(), &arguments);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut commands = Vec::new();
    texts(&report, &mut |text| {
        if text.starts_with("locklab matrix ") {
            commands.push(text.to_owned());
        }
    });
    assert!(!commands.is_empty(), "{report:#}");
    for command in commands {
        let script = format!("printf '%s\\n' {command}");
        let read = Command::new("sh").args(["-c", &script]).output().unwrap();
        let read = String::from_utf8_lossy(&read.stdout).into_owned();
        let words: Vec<&str> = read.lines().skip(1).collect();
        assert_eq!(words, arguments, "{script}");
    }
}

/// Calls `see` with every text of a document.
fn texts(value: &serde_json::Value, see: &mut dyn FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => see(text),
        serde_json::Value::Array(list) => list.iter().for_each(|value| texts(value, see)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| texts(value, see)),
        _ => {}
    }
}

/// Calls `see` with every command that is shown, and the words that name it.
fn every_command(tree: &Tree, words: &[&str], see: &mut dyn FnMut(&[&str], &Tree)) {
    see(words, tree);
    for below in tree.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            every_command(below, &[words, &[below.get_name()]].concat(), see);
        }
    }
}

/// Calls `see` with every option that is shown, and the words that name its command.
fn every_option(see: &mut dyn FnMut(&str, &clap::Arg)) {
    every_command(&whole(), &["locklab"], &mut |words, command| {
        for option in command
            .get_arguments()
            .filter(|option| !option.is_hide_set())
        {
            if option
                .get_long()
                .is_some_and(|name| !["help", "version"].contains(&name))
            {
                see(&words.join(" "), option);
            }
        }
    });
}

/// Returns what an option means: the first part of its sentence, and the name of its value.
fn meaning(option: &clap::Arg) -> String {
    let help = option
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let first = help
        .split([':', ';', ',', '[', '.'])
        .next()
        .unwrap_or_default();
    let values = option.get_value_names().unwrap_or_default();
    let values: Vec<&str> = match option.get_action().takes_values() {
        true => values.iter().map(AsRef::as_ref).collect(),
        false => Vec::new(),
    };
    format!("{} ({})", first.trim(), values.join(" "))
}

#[test]
fn an_option_means_the_same_in_every_command() {
    let mut meanings: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    every_option(&mut |command, option| {
        let mut names = vec![format!("--{}", option.get_long().unwrap())];
        names.extend(option.get_short().map(|short| format!("-{short}")));
        for name in names {
            let of = meanings.entry(name).or_default();
            of.entry(meaning(option))
                .or_default()
                .push(command.to_owned());
        }
    });
    let two: Vec<_> = meanings.iter().filter(|(_, of)| of.len() > 1).collect();
    assert!(two.is_empty(), "two meanings: {two:#?}");
    let nothing: Vec<_> = meanings
        .iter()
        .filter(|(_, of)| of.contains_key(" ()"))
        .collect();
    assert!(nothing.is_empty(), "without help: {nothing:#?}");
}

#[test]
fn there_are_few_commands_and_few_options() {
    let mut options = BTreeSet::new();
    every_option(&mut |_, option| {
        options.insert(option.get_long().unwrap().to_owned());
    });
    let tree = whole();
    let shown = tree
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let commands: Vec<&str> = shown.map(Tree::get_name).collect();
    assert!(
        commands.len() <= 16,
        "{} commands: {commands:?}",
        commands.len()
    );
    assert!(
        options.len() <= 100,
        "{} options: {options:?}",
        options.len()
    );
}

/// `-h` is what most people need, on one page; the rest is under `--help`.
#[test]
fn short_help_fits_a_page_and_has_no_default_of_another_command() {
    let mut seen = 0;
    every_command(&whole(), &[], &mut |words, _| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("locklab"));
        command.args(words).arg("-h").env("COLUMNS", "80");
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().count();
        assert!(
            lines <= 60,
            "locklab {} -h has {lines} lines: {text}",
            words.join(" ")
        );
        seen += 1;
    });
    assert!(seen > 20, "{seen} commands only");
    for command in whole().get_subcommands() {
        let others = whole();
        let others = others.get_subcommands().map(Tree::get_name);
        let others: Vec<&str> = others.filter(|name| *name != command.get_name()).collect();
        for option in command.get_arguments() {
            let help = option.get_long_help().or(option.get_help());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let default = help.split_once("[default: ").map_or("", |(_, text)| text);
            let default = default.split(']').next().unwrap_or_default();
            let words: Vec<&str> = default.split(|c: char| !c.is_alphanumeric()).collect();
            for other in ["ranking"].iter().chain(&others) {
                let stands = words.contains(other) && !["machine", "locks"].contains(other);
                assert!(
                    !stands,
                    "{} {}: {help}",
                    command.get_name(),
                    option.get_id()
                );
            }
        }
    }
}

/// A former name is one that no command has, and its sentence names one that a command has.
#[test]
fn former_names_are_gone_and_the_names_of_today_are_there() {
    let tree = whole();
    let mut all = BTreeSet::new();
    let mut of_command: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    every_option(&mut |command, option| {
        let name = format!("--{}", option.get_long().unwrap());
        let top = command.split(' ').nth(1).unwrap_or_default();
        of_command
            .entry(top.to_owned())
            .or_default()
            .insert(name.clone());
        all.insert(name);
    });
    assert!(former::options().count() > 40);
    for [command, old, today] in former::options() {
        assert!(tree.find_subcommand(command).is_some(), "{command}");
        assert!(!of_command[command].contains(old), "{command} has {old}");
        let named = today
            .split([' ', '=', ','])
            .find(|word| word.starts_with("--"));
        assert!(named.is_none_or(|name| all.contains(name)), "{today}");
        if let Some(line) = today.strip_prefix("locklab ") {
            let command = line.split(' ').next().unwrap();
            assert!(tree.find_subcommand(command).is_some(), "{today}");
        }
    }
    for (old, today) in former::COMMANDS {
        let command = today.split(' ').nth(1).unwrap();
        assert!(tree.find_subcommand(command).is_some(), "{today}");
        assert!(tree.find_subcommand(old).is_none(), "{old}");
    }
    for name in locklab_harness::settings::WITHOUT_OPTION {
        let option = format!("--{}", name.replace('_', "-"));
        assert!(
            name == "locks" || !all.contains(&option),
            "{option} is an option"
        );
    }
}
