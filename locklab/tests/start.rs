//! Started without what a process usually has: a sentence, never a crash, and
//! never success where the output went nowhere.

use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output, Stdio};

fn locklab(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("locklab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the command with a limit of the process, as `ulimit` sets it.
fn limited(
    arguments: &[&str],
    limit: libc::__rlimit_resource_t,
    value: u64,
    user: Option<u32>,
) -> Output {
    let mut command = locklab(arguments);
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            let limits = libc::rlimit {
                rlim_cur: value,
                rlim_max: value,
            };
            libc::setrlimit(limit, &raw const limits);
            if let Some(user) = user {
                libc::setuid(user);
            }
            Ok(())
        });
    }
    command.output().unwrap()
}

/// Asserts a single sentence on standard error, and exit code 1.
fn one_sentence(output: &Output, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{:?}: {text}", output.status);
    assert!(text.starts_with("locklab: "), "{text}");
    assert!(text.contains(words), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_small_stack_is_a_sentence() {
    for arguments in [&["locks"][..], &["--help"], &["matrix", "mcs", "ticket"]] {
        let output = limited(arguments, libc::RLIMIT_STACK, 64 << 10, None);
        assert_eq!(output.status.signal(), None, "{arguments:?}");
        one_sentence(&output, "ulimit -s 8192");
    }
    let output = limited(&["locks"], libc::RLIMIT_STACK, 1 << 20, None);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn no_room_for_a_thread_is_a_sentence() {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    // The limit does not hold for root.
    let user = root.then_some(65_534);
    if !limited(&["--version"], libc::RLIMIT_NPROC, 1, user)
        .status
        .success()
    {
        println!("skipped: another user cannot run the command where it lies");
        return;
    }
    let arguments = [
        "matrix",
        "mcs",
        "ticket",
        "--on",
        "flat-16",
        "--threads",
        "2",
        "--quiet",
        "--store",
        ":memory:",
    ];
    one_sentence(
        &limited(&arguments, libc::RLIMIT_NPROC, 1, user),
        "ulimit -u",
    );
}

#[test]
fn output_that_goes_nowhere_is_not_success() {
    for arguments in [&["--help"][..], &["--version"], &["locks"], &["doctor"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = locklab(arguments).stdout(full).output().unwrap();
        one_sentence(&output, "cannot write");
        let mut closed = locklab(arguments);
        // SAFETY: as above.
        unsafe {
            closed.pre_exec(|| {
                libc::close(1);
                Ok(())
            });
        }
        one_sentence(&closed.output().unwrap(), "standard output is closed");
    }
    // Output sent there is discarded on purpose.
    let output = locklab(&["--help"]).stdout(Stdio::null()).output().unwrap();
    assert!(output.status.success());
}

/// Notes go to standard error; when it is full they are lost, and the result
/// and the exit code are the same.
#[test]
fn a_message_that_cannot_be_written_is_no_failure() {
    let small = ["--threads", "1", "--critical", "0", "--non-critical", "1"];
    let matrix = ["matrix", "mcs", "ticket", "--on", "flat-16", "--pairs", "8"];
    let store = ["--store", ":memory:"];
    let measured = [&matrix[..], &small, &store].concat();
    for (arguments, code, words) in [
        (&measured[..], 0, "ticket"),
        (&["matrix", "mcs", "no-such-lock"], 2, ""),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = locklab(arguments).stderr(full).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(words), "{text}");
    }
}

/// A file of an experiment given to a command that takes names.
#[test]
fn a_file_in_place_of_a_name_is_sent_to_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, "kind = 'matrix'\n").unwrap();
    let file = path.to_str().unwrap();
    let compare = format!("'locklab compare {file}' runs the file of an experiment");
    for (arguments, words) in [
        (&["matrix", file][..], &*compare),
        (&["rank", file], &compare),
        (&["rank", file, "mcs", "--on", "flat-16"], &compare),
    ] {
        let output = locklab(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

/// Interrupts a command when the program that it runs has made a file.
fn interrupted(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let began = folder.path().join("began");
    let script = format!(": > {}; sleep 600; true", began.display());
    let mut command = locklab(arguments);
    command.args(["--", "sh", "-c", &script]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while !began.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_kept_nowhere_is_not_called_stored() {
    let compare = ["compare", "--store", ":memory:", "--set", "counters=none"];
    let output = interrupted(&compare);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    let said = "interrupted; --store :memory: keeps nothing, so the same command begins anew";
    assert!(text.contains(said), "{text}");
    let lengths = ["--threads", "1", "--critical", "0", "--non-critical", "1"];
    let matrix = ["matrix", "mcs", "ticket", "--on", "flat-16", "--pairs", "8"];
    let full = ["--store", ":memory:", "--html", "/dev/full"];
    let output = locklab(&[&matrix[..], &lengths, &full].concat()).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot write /dev/full"), "{text}");
    assert!(!text.contains("stored"), "{text}");
}

/// As every interrupted command: 130, which README.md names.
#[test]
fn an_interrupted_model_of_the_cache_is_no_failure() {
    if !crate::icache_command::ready() {
        return;
    }
    let output = interrupted(&["frontend"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert_eq!(text, "locklab: interrupted; there are no counts\n");
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (arguments, code, words) in [
        (["machine", "fit", "--force", path], 2, "Is a directory"),
        (["results", "list", "--store", path], 1, "it is a folder"),
        (["results", "merge", path, path], 1, "it is a folder"),
    ] {
        let output = locklab(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

/// `machine fit` writes over nothing unasked, is silent when it is asked to be, and knows the
/// cycle that a matrix knows; `machine check --locks` takes the file, and no other machine's.
#[test]
fn a_fitted_machine_can_be_checked_and_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.toml");
    let path = file.to_str().unwrap();
    let fit = |more: &[&str]| {
        let mut command = locklab(&["machine", "fit", path]);
        command.args(more).output().unwrap()
    };
    let first = fit(&["-q"]);
    let words = String::from_utf8_lossy(&first.stderr).into_owned();
    if words.contains("only one CPU") {
        println!("skipped: {words}");
        return;
    }
    assert!(first.status.success(), "{words}");
    assert_eq!((first.stdout.len(), words.as_str()), (0, ""));
    let text = std::fs::read_to_string(&file).unwrap();
    let check = |file: &str| {
        let arguments = ["machine", "check", file, "--locks", "--dry-run"];
        locklab(&arguments).output().unwrap()
    };
    let planned = check(path);
    let words = String::from_utf8_lossy(&planned.stdout);
    assert!(words.contains("locks in 9 blocks of"), "{planned:?}");
    // The clock of this machine, but not its CPUs.
    let other = folder.path().join("other.toml");
    let cores = text
        .lines()
        .find(|line| line.starts_with("cores = "))
        .unwrap();
    std::fs::write(&other, text.replace(cores, "cores = 97")).unwrap();
    let refused = check(other.to_str().unwrap());
    let words = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(
        words.contains("is the model of another machine: it has "),
        "{words}"
    );
    // The clock was measured by another way than memory: 0.50 was written where it is 2.1.
    let clock = text.lines().find(|line| line.starts_with("clock_ghz"));
    let value = clock.unwrap().split("value = ").nth(1).unwrap();
    let value: f64 = value.split(',').next().unwrap().parse().unwrap();
    assert!(value > 0.6, "{value}");
    std::fs::write(&file, "of the user\n").unwrap();
    let again = fit(&[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, "of the user\n");
    std::fs::write(&file, &text).unwrap();
    let shown = locklab(&["machine", "show", path]).output().unwrap();
    assert!(shown.status.success());
}

#[test]
fn what_is_hidden_is_not_suggested_and_sentences_are_whole() {
    for typed in ["workload-progam", "workload-programm", "workload"] {
        let output = locklab(&[typed]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(!text.contains("'workload-program'"), "{text}");
    }
    let typed = locklab(&["matrx"]).output().unwrap();
    let text = String::from_utf8_lossy(&typed.stderr);
    assert!(text.contains("'matrix'"), "{text}");
    let doctor = locklab(&["doctor"]).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(!text.contains("limited by In their place"), "{text}");
}

#[test]
fn numbers_that_are_none_are_refused_in_plain_words() {
    for (arguments, words) in [
        (
            "--threads -1",
            "'-1' is not a whole number from 1 to 16383; write a list as 1,2,4..64",
        ),
        (
            "--threads 1-4",
            "'1-4' is not a whole number from 1 to 16383; write a list as 1,2,4..64, and a \
             range as 1..4",
        ),
        ("--critical 1.5", "'1.5' is not a whole number from 0 to"),
        ("--set slice_us=1.5", "--set slice_us=1.5: invalid type"),
        (
            "--pairs many",
            "'many' is not a whole number, which --pairs <N> takes",
        ),
        ("--pairs -3", "-3 is not in 0..=4294967295"),
        (
            "--delta wide",
            "'wide' is not a number, which --delta <PERCENT> takes",
        ),
        (
            "--html /no/such/folder/x.html",
            "cannot write /no/such/folder/x.html",
        ),
    ] {
        let words_typed = format!("matrix tas ticket --store :memory: {arguments}");
        let words_typed: Vec<&str> = words_typed.split(' ').collect();
        let output = locklab(&words_typed).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
        assert!(!text.contains("invalid digit"), "{text}");
        assert!(output.stdout.is_empty(), "nothing may have run");
    }
}

/// Returns the names of the subcommands in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    commands
        .take_while(|line| !line.is_empty())
        // A description that is continued is indented further.
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Help follows the terminal down to 64 columns. Output that is not a terminal
/// has no width of its own, so it comes from `COLUMNS`.
#[test]
fn help_fits_the_terminal() {
    let mut paths = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(path) = paths.pop() {
        for columns in [64, 80, 200] {
            let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
            words.push("--help");
            let mut command = locklab(&words);
            let output = command.env("COLUMNS", columns.to_string()).output();
            let help = String::from_utf8(output.unwrap().stdout).unwrap();
            assert!(help.contains("Usage:"), "{words:?}: {help}");
            for line in help.lines() {
                let width = line.chars().count();
                // Longer lines are hard to read on any terminal.
                assert!(width <= columns.min(80), "{words:?}, {columns}: {line}");
            }
            if columns == 80 {
                for name in subcommands(&help) {
                    paths.push([path.as_slice(), &[name]].concat());
                }
            }
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen} commands only");
}

/// Returns the options under a heading of a help text.
fn options_under(help: &str, heading: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != heading).skip(1);
    let section = below.take_while(|line| line.is_empty() || line.starts_with(' '));
    let first = |line: &str| {
        // A short name may stand before the long one.
        let mut words = line.split_whitespace().take(2);
        words.find(|word| word.starts_with("--")).map(str::to_owned)
    };
    let options = section.filter_map(first);
    options.collect()
}

/// An option does not stand under the heading of those declared before it.
#[test]
fn options_stand_under_their_own_heading() {
    for command in [
        &["matrix"][..],
        &["rank"],
        &["compare"],
        &["kernel", "bisect"],
    ] {
        let output = locklab(&[command, &["--help"]].concat()).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let statistics = options_under(&help, "Statistics:");
        let design = ["--pairs", "--delta", "--seed", "--retry"];
        assert_eq!(statistics, design, "{command:?}");
        let own = options_under(&help, "Locks of your own:");
        assert!(own.len() <= 1, "{command:?}: {own:?}");
        let here = options_under(&help, "On this machine:");
        assert!(!here.contains(&"--on".to_owned()), "{command:?}: {here:?}");
    }
}

/// Lists and descriptions are reports too: 72 columns, so that they can be
/// mailed.
#[test]
fn lists_fit_a_mail() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.sqlite");
    let list = locklab(&["machine", "list"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let machines = list.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = machines
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(names.contains(&"amd64-8"), "{list}");
    let doctor = ["doctor", "--store", store.to_str().unwrap()];
    let mut commands = vec![vec!["locks"], vec!["machine", "list"], doctor.into()];
    commands.extend(names.iter().map(|name| vec!["machine", "show", name]));
    for words in commands {
        let output = locklab(&words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 3, "{words:?}: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 72, "{words:?}: {line}");
        }
    }
}
