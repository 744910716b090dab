//! Holds the paths of `CONTRIBUTING.md` to the source: from `main` to the report of a
//! matrix a newcomer opens at most thirty files, to that of an advice 25, and each is
//! named by one that comes before.

use std::path::Path;

/// Each path, with the most files that it may have.
const PATHS: [(&str, usize); 2] = [("The path of a matrix", 30), ("The path of an advice", 25)];

/// Returns the files of a list, in order.
fn files<'a>(text: &'a str, path: &str) -> Vec<&'a str> {
    let section = text.split("\n## ").find(|s| s.starts_with(path));
    let lines = section.expect("CONTRIBUTING.md has the section").lines();
    lines
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split('`').nth(1).expect("a line has a file"))
        .collect()
}

/// Returns the name by which other files know this one: its module, or its crate.
fn name(file: &str) -> String {
    let path = Path::new(file);
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    match stem(path).as_str() {
        "lib" => stem(path.parent().unwrap().parent().unwrap()),
        module => module.to_owned(),
    }
}

/// Returns whether a text has this word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).any(|found| found == word)
}

/// Returns what is wrong with a list, if something is; `read` gives the text of a file.
fn fault(files: &[&str], most: usize, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    if files.is_empty() || files.len() > most {
        return Some(format!("{} files are not 1 to {most}", files.len()));
    }
    let mut before = String::new();
    for (number, file) in files.iter().enumerate() {
        if files[..number].contains(file) {
            return Some(format!("{file} is listed twice"));
        }
        let Some(text) = read(file) else {
            return Some(format!("there is no {file}"));
        };
        if number > 0 && !has_word(&before, &name(file)) {
            return Some(format!("no file before {file} names it"));
        }
        before += &text;
    }
    None
}

#[test]
fn each_path_is_as_it_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let read = |file: &str| std::fs::read_to_string(root.join(file)).ok();
    for (path, most) in PATHS {
        assert_eq!(fault(&files(&text, path), most, read), None, "{path}");
    }
}

#[test]
fn a_list_that_is_wrong_is_found() {
    let read = |file: &str| match file {
        "a/src/main.rs" => Some("fn main() { a::run() }".to_owned()),
        "a/src/lib.rs" => Some("mod deep;".to_owned()),
        "a/src/deep.rs" | "a/src/shallow.rs" => Some(String::new()),
        _ => None,
    };
    let of = |files: &[&str]| fault(files, 30, read);
    let good = ["a/src/main.rs", "a/src/lib.rs", "a/src/deep.rs"];
    assert_eq!(of(&good), None);
    assert!(of(&[]).is_some());
    assert!(of(&["a/src/main.rs"; 31]).unwrap().starts_with("31 files"));
    assert!(of(&["a/src/main.rs"; 2]).unwrap().ends_with("twice"));
    assert!(of(&["a/src/gone.rs"]).unwrap().starts_with("there is no"));
    let unnamed = [good[0], good[1], "a/src/shallow.rs"];
    assert!(of(&unnamed).unwrap().starts_with("no file before"));
}
