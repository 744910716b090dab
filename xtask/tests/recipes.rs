//! The recipes of `docs/adding-*.md` name the files that each addition touches.
//! A file that has moved, a test that has another name now, or a list that is
//! not in its file any more makes a recipe wrong, and this test fails.

use std::path::{Path, PathBuf};

/// The words in a recipe for something that its reader names.
const NAMED_BY_THE_READER: [&str; 3] = ["NAME", "LOCK", "FILE"];

/// Endings of the files of this repository.
const ENDINGS: [&str; 6] = ["rs", "toml", "tsv", "txt", "md", "c"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns every file of the repository that a person writes, from its root.
fn files() -> Vec<String> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let mut files: Vec<String> = listed.unwrap_or_default().lines().map(Into::into).collect();
    // A package of the sources has no git.
    if files.is_empty() {
        walk(root(), &mut files);
    }
    files.retain(|file| root().join(file).exists());
    files
}

fn walk(folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != "target" && name != ".git" {
                walk(&path, files);
            }
        } else if let Ok(path) = path.strip_prefix(root()) {
            files.push(path.to_string_lossy().into_owned());
        }
    }
}

/// Returns the recipes, with their text.
fn recipes() -> Vec<(String, String)> {
    let pages = std::fs::read_dir(root().join("docs")).unwrap();
    let paths: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths
        .into_iter()
        .filter(|path| name(path).starts_with("adding-"))
        .map(|path| (name(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// Returns the text between backticks of one line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_named_by_the_reader(word: &str) -> bool {
    NAMED_BY_THE_READER.iter().any(|part| word.contains(part))
}

fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    word.chars().all(plain)
        && (ENDINGS.contains(&ending)
            || ["crates/", "docs/", "machines/"]
                .iter()
                .any(|folder| word.starts_with(folder)))
}

/// Returns the files that a path of a recipe may mean: it may be the end of one.
fn meant<'a>(word: &str, files: &'a [String]) -> Vec<&'a String> {
    let end = format!("/{word}");
    let folder = format!("{}/", word.trim_end_matches('/'));
    let is_meant =
        |file: &&String| **file == word || file.ends_with(&end) || file.starts_with(&folder);
    files.iter().filter(is_meant).collect()
}

#[test]
fn every_file_of_a_recipe_is_there() {
    let (files, recipes) = (files(), recipes());
    assert!(recipes.len() >= 5, "{} recipes", recipes.len());
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (page, text) in &recipes {
        for word in text.lines().flat_map(code) {
            if !is_path(word) || is_named_by_the_reader(word) {
                continue;
            }
            match meant(word, &files).is_empty() {
                true => wrong.push(format!("{page}: there is no {word}")),
                false => right += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right > 30, "{right} files found in the recipes");
}

/// In a table of a recipe, the first column has files and what stands in them,
/// the last the test that covers it.
#[test]
fn what_a_recipe_says_of_a_file_is_in_it() {
    let files = files();
    let read = |file: &String| std::fs::read_to_string(root().join(file)).unwrap_or_default();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (page, text) in recipes() {
        for row in text.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let [place, .., covered] = cells[..] else {
                continue;
            };
            let known = |word: &&str| is_path(word) && !is_named_by_the_reader(word);
            let of: Vec<&String> = code(place)
                .filter(known)
                .flat_map(|word| meant(word, &files))
                .collect();
            let stands = |word: &str| {
                let item = word.rsplit("::").next().unwrap_or(word);
                of.iter().any(|file| read(file).contains(item))
            };
            for word in code(place).filter(|word| !is_path(word)) {
                match of.is_empty() || stands(word) {
                    true => right += 1,
                    false => wrong.push(format!("{page}: no {word} in {place}")),
                }
            }
            for test in code(covered).filter(|word| word.contains('_') && !word.contains(' ')) {
                let is_test = |file: &&String| file.ends_with(".rs");
                let item = format!("fn {test}(");
                let found = is_path(test)
                    || files
                        .iter()
                        .filter(is_test)
                        .any(|f| read(f).contains(&item));
                match found {
                    true => right += 1,
                    false => wrong.push(format!("{page}: there is no test {test}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(right >= 8, "{right} words checked");
}

/// The recipe of a machine: a file of the folder is one of the command only by
/// its line in `builtin!`.
#[test]
fn every_file_of_a_machine_ships() {
    let text = std::fs::read_to_string(root().join("crates/measure/sim/src/machine.rs")).unwrap();
    let (_, list) = text.rsplit_once("builtin!").unwrap();
    let machines: Vec<String> = files()
        .into_iter()
        .filter_map(|file| {
            let name = file.strip_prefix("machines/")?.strip_suffix(".toml")?;
            Some(name.to_owned())
        })
        .collect();
    assert!(machines.len() > 10, "{machines:?}");
    for name in machines {
        assert!(
            list.contains(&format!("\"{name}\"")),
            "{name} is not listed"
        );
    }
}
