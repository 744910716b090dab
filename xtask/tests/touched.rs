//! Counts how many files an addition touches: a lock, a metric of a matrix, a format of
//! samples, a rule of `advise`, a column of `locklab locks`.
//!
//! A file that has a list of all that there is must be touched for one more. So
//! the lists are looked for in the source: the files in which nearly all locks,
//! or all of a kind, stand close together. They must be the files that the recipe
//! names, and no more of them than it may be.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Tells whether a file is code or its data: not prose, which may name anything, and
/// nothing that a test writes.
fn is_source(path: &str) -> bool {
    let ends = [".rs", ".tsv", ".txt", ".h", ".c"];
    ends.iter().any(|end| path.ends_with(end)) && !path.contains("/golden/")
}

/// Finds the source files below a folder, from the root.
fn sources(folder: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        // A link is to what stands elsewhere too.
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && name != "target" {
            sources(&path, found);
        } else if kind.is_file() && is_source(&path) {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["crates", "locklab", "xtask", "benches", "packaging"] {
        sources(folder, &mut found);
    }
    found.sort();
    let mut texts = Vec::new();
    for path in found {
        // This test names what it looks for.
        if path != "xtask/tests/touched.rs"
            && let Ok(text) = std::fs::read_to_string(root().join(&path))
        {
            texts.push((path, text));
        }
    }
    texts
}

/// Returns the words of a line: names in Rust, and names with dashes.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.split(move |c| !is_inside(c))
        .map(|word| word.trim_matches('-'))
        .filter(|word| !word.is_empty())
}

/// Lines that a member of a list takes, at most.
const LINES: usize = 4;

/// Returns the files with a list of these, each by any of its names: where at least
/// `most` of them stand within [`LINES`] lines each.
fn lists(sources: &[(String, String)], members: &[Vec<String>], most: usize) -> BTreeSet<String> {
    assert!(members.len() >= 3 && most >= 3, "{members:?}");
    let window = LINES * members.len();
    let has_list = |text: &str| {
        let mut named: Vec<(usize, usize)> = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let words: BTreeSet<&str> = words(text).collect();
            let here = members
                .iter()
                .enumerate()
                .filter(|(_, names)| names.iter().any(|name| words.contains(name.as_str())));
            named.extend(here.map(|(member, _)| (line, member)));
        }
        named.iter().enumerate().any(|(at, (first, _))| {
            let near = named[at..]
                .iter()
                .take_while(|(line, _)| line < &(first + window));
            let found: BTreeSet<usize> = near.map(|(_, member)| *member).collect();
            found.len() >= most
        })
    };
    let with_list = sources.iter().filter(|(_, text)| has_list(text));
    with_list.map(|(path, _)| path.clone()).collect()
}

/// Returns the rows of the table that follows `heading` in a recipe: the files of the
/// first column, and whether every addition touches them.
fn table(page: &str, heading: &str) -> Vec<(Vec<String>, bool)> {
    let text = read(page);
    let (_, below) = text.split_once(heading).expect("the heading is there");
    let rows = below.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let code = cells[0].split('`').skip(1).step_by(2);
        let files = code.filter(|word| word.contains('/') || word.ends_with(".md"));
        (
            files.map(Into::into).collect(),
            !cells[1].trim_start().starts_with("only "),
        )
    })
    .collect()
}

/// Fails unless every one of `places` stands in the table; returns the number of
/// files that every addition touches.
fn touched(table: &[(Vec<String>, bool)], places: &BTreeSet<String>) -> usize {
    let named: Vec<&String> = table.iter().flat_map(|(files, _)| files).collect();
    let missing: Vec<&String> = places.iter().filter(|p| !named.contains(p)).collect();
    assert!(missing.is_empty(), "the recipe does not name {missing:#?}");
    let always = table.iter().filter(|(_, always)| *always);
    always.map(|(files, _)| files.len()).sum()
}

const LOCKS: &str = "crates/locks/locks/src/";
const RECORD: &str = "crates/verify/verify/verified.tsv";

/// A lock of the catalogue: its type and name, the group, and the rest of its
/// line.
struct Lock {
    names: Vec<String>,
    group: String,
    line: String,
}

/// Returns every lock of the catalogue, in its order, which the record has too.
fn locks() -> Vec<Lock> {
    let text = read(&format!("{LOCKS}catalogue.rs"));
    let (_, list) = text.rsplit_once("catalogue! {").expect("the list");
    let record = read(RECORD);
    let mut names = record
        .lines()
        .skip(1)
        .map(|line| line.split('\t').next().unwrap());
    let (mut locks, mut group) = (Vec::new(), String::new());
    for line in list.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            group = name.to_owned();
        } else if line.ends_with(',') && line.starts_with(char::is_uppercase) {
            let of = words(line).next().unwrap();
            let name = names.next().expect("a line of the record for each lock");
            locks.push(Lock {
                names: vec![of.to_owned(), name.to_owned()],
                group: group.clone(),
                line: line.to_owned(),
            });
        }
    }
    locks
}

#[test]
fn a_new_lock_touches_at_most_seven_files() {
    let (sources, locks) = (all_sources(), locks());
    assert!(locks.len() >= 40, "{} locks", locks.len());
    let names = |is_in: &dyn Fn(&Lock) -> bool| -> Vec<Vec<String>> {
        let of = locks.iter().filter(|lock| is_in(lock));
        of.map(|lock| lock.names.clone()).collect()
    };
    let all = names(&|_| true);
    let every = lists(&sources, &all, all.len() * 9 / 10);
    // Else nothing would be found wherever it stands.
    assert!(
        every.contains(&format!("{LOCKS}catalogue.rs")),
        "{every:#?}"
    );
    assert!(every.contains(RECORD), "{every:#?}");
    let mut places = every;
    for kind in [
        names(&|lock| lock.line.contains("visit_timed")),
        names(&|lock| lock.line.contains("=> [") && lock.group != "big_locks"),
        names(&|lock| lock.group == "shared_locks"),
    ] {
        places.extend(lists(&sources, &kind, kind.len()));
    }
    let table = table(
        "docs/adding-a-lock.md",
        "A lock is registered in these places",
    );
    assert!(table[0].0 == [format!("{LOCKS}NAME.rs")], "{:?}", table[0]);
    assert!(touched(&table, &places) <= 7, "{table:#?}");
    let mut checker = sources;
    checker.retain(|(path, _)| path.starts_with("crates/verify/verify/src"));
    let names_locks = lists(&checker, &all, all.len() / 4);
    assert!(names_locks.is_empty(), "a list of names: {names_locks:#?}");
}

#[test]
fn a_new_metric_of_a_matrix_touches_at_most_three_files() {
    let text = read("crates/measure/harness/src/matrix.rs");
    let constants = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("pub const ")?.split_once(": &str = ")?;
        (name != "KIND").then(|| vec![name.to_owned(), value.trim_matches(['"', ';']).to_owned()])
    });
    let metrics: Vec<Vec<String>> = constants.collect();
    assert!(metrics.len() >= 13, "{metrics:?}");
    // A simulation does not have those of windows and of CPU time.
    let places = lists(&all_sources(), &metrics, metrics.len() * 3 / 4);
    assert!(places.len() >= 3, "{places:#?}");
    let table = table("docs/adding-a-figure.md", "For a matrix of locks");
    assert!(touched(&table, &places) <= 3, "{table:#?}");
}

#[test]
fn a_new_format_of_samples_touches_at_most_three_files() {
    let text = read("crates/measure/samples/src/formats/mod.rs");
    let (_, forms) = text.split_once("const FORMS").expect("the table");
    let (forms, _) = forms.split_once("\n];").expect("its end");
    let rows = forms
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\""));
    let names = rows.filter_map(|row| Some(vec![row.split_once('"')?.0.to_owned()]));
    let formats: Vec<Vec<String>> = names.collect();
    assert!(formats.len() >= 20, "{formats:?}");
    // A name such as `go` or `csv` stands anywhere: nearly all must stand together.
    let places = lists(&all_sources(), &formats, formats.len() * 9 / 10);
    assert_eq!(places.len(), 1, "the table and no other list: {places:#?}");
    let table = table("docs/adding-a-figure.md", "## A format of samples");
    assert!(touched(&table, &places) <= 3, "{table:#?}");
}

#[test]
fn a_new_rule_of_advise_touches_two_files() {
    let text = read("crates/programs/advise/src/rules.rs");
    let (_, list) = text.split_once("const RULES: ").expect("the rules");
    let (list, _) = list.split_once("\n];").expect("their end");
    let rows = list.lines().filter_map(|row| row.trim().strip_prefix('('));
    let rules: Vec<Vec<String>> = rows
        .filter_map(|row| Some(vec![row.split_once(',')?.0.to_owned()]))
        .collect();
    assert!(rules.len() >= 5, "{rules:?}");
    let places = lists(&all_sources(), &rules, rules.len());
    assert_eq!(places.len(), 1, "the table and no other list: {places:#?}");
    let table = table("docs/adding-a-figure.md", "## A rule of `advise`");
    assert!(touched(&table, &places) <= 2, "{table:#?}");
}

#[test]
fn a_new_column_of_locks_touches_one_place() {
    const TABLE: &str = "locklab/src/lock_table.rs";
    let text = read(TABLE);
    let (_, list) = text.split_once("const COLUMNS: ").expect("the columns");
    let (list, _) = list.split_once("\n];").expect("their end");
    // Of each column its title and its field.
    let quoted: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let columns: Vec<Vec<String>> = quoted
        .iter()
        .filter(|text| text.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .filter(|text| !["x", ""].contains(text))
        .map(|text| vec![format!("\"{text}\"")])
        .collect();
    assert!(columns.len() >= 20, "{columns:?}");
    let quotes = |text: &str| {
        let of = columns.iter().filter(|column| text.contains(&column[0]));
        of.count()
    };
    let sources = all_sources();
    let with_list = sources
        .iter()
        .filter(|(_, text)| quotes(text) * 4 >= columns.len() * 3);
    let places: Vec<&String> = with_list.map(|(path, _)| path).collect();
    assert_eq!(places, [TABLE]);
    // It is there in one place: nothing else of the file names a column.
    let (code, _) = text.split_once("#[cfg(test)]").expect("tests");
    let outside = code.replace(list, "");
    let twice: Vec<_> = columns.iter().filter(|c| outside.contains(&c[0])).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
