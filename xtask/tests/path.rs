//! Holds the paths of `CONTRIBUTING.md` to the source: the walk that a newcomer takes from
//! `main` to a report, call by call.
//!
//! A step is a file and the functions at which the walk enters it. Each of them is called
//! by a function at which an earlier step entered a file, or by one that such a function
//! calls within its file. So no step between two others can be left out to keep a list
//! short. The walk enters no file more than twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Each path, with the most files that it may have.
const PATHS: [(&str, usize); 3] = [
    ("The path of a simulated matrix", 35),
    ("The path of a measured matrix", 40),
    ("The path of an advice", 30),
];

/// How often a walk may enter a file.
const MOST_ENTRIES: usize = 2;

/// Names that many types have, which say nothing without their type.
const COMMON: [&str; 5] = ["new", "of", "open", "start", "named"];

/// One step of a walk: a file, and the functions at which it is entered.
struct Step<'a> {
    file: &'a str,
    functions: Vec<&'a str>,
}

/// Returns the steps of a section: lines that begin with a number, then a file and functions
/// in backticks.
fn steps<'a>(text: &'a str, title: &str) -> Vec<Step<'a>> {
    let section = text.split("\n## ").find(|s| s.starts_with(title));
    let section = section.expect("CONTRIBUTING.md has the section");
    let is_step = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let step = |line: &'a str| {
        let entry = line.split(": ").next().unwrap_or_default();
        let mut quoted = entry.split('`').skip(1).step_by(2);
        Step {
            file: quoted.next().expect("a line has a file"),
            functions: quoted.collect(),
        }
    };
    section.lines().filter(is_step).map(step).collect()
}

/// Returns the bodies of the functions of a source file, by name, without tests. A function
/// ends at the first closing line that has its indentation, as `cargo fmt` lays it out.
fn functions(text: &str) -> BTreeMap<String, String> {
    let mut bodies = BTreeMap::<String, String>::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    let end = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    for line in text[..end].lines() {
        let content = line.trim_start();
        if content.starts_with("//") {
            continue;
        }
        let indentation = line.len() - content.len();
        if let Some(name) = declared(content) {
            open.push((indentation, name.to_owned()));
        } else {
            for (_, name) in &open {
                let body = bodies.entry(name.clone()).or_default();
                body.push_str(content);
                body.push('\n');
            }
        }
        // A declaration may go over several lines; its end has its indentation.
        let closes = content.starts_with('}') || content.ends_with(['}', ';']);
        open.retain(|(at, _)| !(closes && *at == indentation));
    }
    bodies
}

/// Returns the name of the function that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        word.starts_with("pub") || matches!(word, "const" | "unsafe" | "extern" | "\"C\"" | "in")
    };
    let is_declared = before
        .split([' ', '(', ')'])
        .filter(|word| !word.is_empty())
        .all(|word| is_qualifier(word) || matches!(word, "crate" | "super"));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_declared && end > 0).then(|| &after[..end])
}

/// Returns the names of what a body calls or hands on as a function: `call` of `call(…)`,
/// `x.call(…)` and `Type::call`, the last also with its type.
fn calls(body: &str) -> BTreeSet<&str> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut rest = body;
    while let Some(start) = rest.find(|c: char| c.is_lowercase() || c == '_') {
        let before = &body[..body.len() - rest.len() + start];
        let name = &rest[start..];
        let end = name.find(|c| !in_name(c)).unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        rest = after;
        if before.ends_with(in_name) {
            continue;
        }
        let owner = before.strip_suffix("::").map(|before| {
            let start = before.rfind(|c| !in_name(c)).map_or(0, |at| at + 1);
            before.len() - start
        });
        if owner.is_some() || after.starts_with(['(', ')', ',']) || after.starts_with("::<") {
            found.insert(name);
        }
        if let Some(length) = owner {
            let start = before.len() - "::".len() - length;
            let whole = start..before.len() + name.len();
            found.insert(&body[whole]);
        }
    }
    found
}

/// Returns the names that functions of a file call, followed through the calls of one
/// function of the file by another.
fn reached(bodies: &BTreeMap<String, String>, entered: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let names = entered.iter().filter_map(|name| name.rsplit("::").next());
    let mut next: Vec<String> = names.map(str::to_owned).collect();
    while let Some(name) = next.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(body) = bodies.get(&name) else {
            continue;
        };
        for word in calls(body) {
            if bodies.contains_key(word) {
                next.push(word.to_owned());
            }
            found.insert(word.to_owned());
        }
    }
    found
}

/// Returns what is wrong with a walk, if something is; `read` gives the text of a file.
fn fault(steps: &[Step<'_>], most: usize, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let files: BTreeSet<&str> = steps.iter().map(|step| step.file).collect();
    if files.is_empty() || files.len() > most {
        return Some(format!("{} files are not 1 to {most}", files.len()));
    }
    let mut called = BTreeSet::new();
    let mut entries = BTreeMap::<&str, usize>::new();
    for (
        number,
        Step {
            file,
            functions: at,
        },
    ) in steps.iter().enumerate()
    {
        let times = entries.entry(file).or_default();
        *times += 1;
        if *times > MOST_ENTRIES {
            return Some(format!("{file} is entered more than {MOST_ENTRIES} times"));
        }
        let Some(text) = read(file) else {
            return Some(format!("there is no {file}"));
        };
        if at.is_empty() {
            return Some(format!("{file} is entered at no function"));
        }
        let bodies = functions(&text);
        for function in at {
            let name = function.rsplit("::").next().unwrap_or_default();
            if !bodies.contains_key(name) {
                return Some(format!("{file} has no function {function}"));
            }
            if name == *function && COMMON.contains(&name) {
                return Some(format!("{file}: {name} has many callers; name its type"));
            }
            if number > 0 && !called.contains(*function) {
                return Some(format!("no step before calls {function} of {file}"));
            }
        }
        called.extend(reached(&bodies, at));
    }
    None
}

#[test]
fn each_path_is_a_walk_from_call_to_call() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let read = |file: &str| std::fs::read_to_string(root.join(file)).ok();
    for (title, most) in PATHS {
        let steps = steps(&text, title);
        assert_eq!(fault(&steps, most, read), None, "{title}");
        let last = steps.last().map(|step| step.file);
        assert_eq!(
            last,
            Some("crates/measure/document/src/render/text.rs"),
            "{title} ends with a report"
        );
    }
}

#[test]
fn a_walk_that_is_wrong_is_found() {
    let read = |file: &str| {
        let text = match file {
            "main.rs" => "fn main() {\n    lib::run();\n}\n",
            "lib.rs" => {
                "pub fn run() {\n    deep();\n}\n\nfn deep() {\n    end::end();\n}\n\n\
                 pub fn later() {\n    alone();\n}\n"
            }
            "end.rs" => "pub(crate) fn end() {\n    1;\n}\n",
            "alone.rs" => "fn alone() {\n    1;\n}\n",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let of = |walk: &[(&'static str, &'static str)]| {
        let step = |&(file, function): &(&'static str, &'static str)| Step {
            file,
            functions: (!function.is_empty())
                .then_some(function)
                .into_iter()
                .collect(),
        };
        fault(&walk.iter().map(step).collect::<Vec<_>>(), 3, read).unwrap_or_default()
    };
    let good = [("main.rs", "main"), ("lib.rs", "run"), ("end.rs", "end")];
    assert_eq!(of(&good), "");
    let says = |walk: &[(&'static str, &'static str)], words: &str| {
        assert!(of(walk).contains(words), "{}", of(walk));
    };
    says(&[], "0 files are not");
    says(
        &[&good[..], &[("alone.rs", "alone")]].concat(),
        "4 files are not",
    );
    says(
        &[good[0], good[1], ("alone.rs", "alone")],
        "no step before calls alone",
    );
    says(&[good[0], good[2]], "no step before calls end");
    says(&[good[0], ("main.rs", "main")], "no step before calls main");
    says(&[good[0], ("gone.rs", "run")], "there is no");
    says(&[good[0], ("lib.rs", "gone")], "no function gone");
    says(&[good[0], ("lib.rs", "")], "at no function");
    let often = [good[0], good[1], good[1], good[1]];
    assert!(!of(&often).is_empty());
}
