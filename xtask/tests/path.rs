//! Holds the paths of `CONTRIBUTING.md` to the source: from `main` to the report of a
//! matrix a newcomer opens at most thirty files, to that of an advice 25.
//!
//! Each file is imported by one that comes before, or adds to one. No list can be kept short by leaving a
//! file out: what many files of a path import is on it, or in the list beneath of what is
//! looked up.

mod source;

use source::{MOST_NAMES, Modules, Paths};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each path, with the most files that it may have.
const PATHS: [(&str, usize); 2] = [("The path of a matrix", 30), ("The path of an advice", 25)];

/// How many files of a path must import a file for it to be one that the lists name.
const MANY: usize = 4;

/// The lists of a section: the path in order, and what is looked up on the way.
struct Lists<'a> {
    path: Vec<&'a str>,
    looked_up: BTreeSet<&'a str>,
}

impl<'a> Lists<'a> {
    fn of(text: &'a str, title: &str) -> Self {
        let section = text.split("\n## ").find(|s| s.starts_with(title));
        let section = section.expect("CONTRIBUTING.md has the section");
        let is_step = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
        let steps = section.lines().filter(is_step);
        let (_, rest) = section.split_once("\nLooked up").unwrap_or_default();
        let quoted = rest.split("\n\n").next().unwrap_or_default().split('`');
        Self {
            path: steps
                .map(|line| line.split('`').nth(1).expect("a line has a file"))
                .collect(),
            looked_up: quoted.filter(|word| word.ends_with(".rs")).collect(),
        }
    }
}

/// The crates of the workspace that were read so far.
struct Workspace {
    root: PathBuf,
    /// The folder of each crate, by the name that code has for it.
    folders: BTreeMap<String, String>,
    /// Their modules, and the paths that each mentions.
    crates: BTreeMap<String, (Modules, BTreeMap<String, Paths>)>,
}

impl Workspace {
    fn of(root: &Path) -> Self {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let folders = manifest.lines().filter_map(|line| {
            let (name, rest) = line.split_once(" = { path = \"")?;
            Some((name.replace('-', "_"), rest.split('"').next()?.to_owned()))
        });
        let mut folders: BTreeMap<String, String> = folders.collect();
        folders.insert("locklab".into(), "locklab".into());
        Self {
            root: root.to_owned(),
            folders,
            crates: BTreeMap::new(),
        }
    }

    /// Returns the crate of a file, as code names it, and the file's module.
    fn module_of(&self, file: &str) -> (String, String) {
        let mut all = self.folders.iter();
        let found = all.find(|(_, folder)| file.starts_with(&format!("{folder}/src/")));
        let (name, folder) = found.unwrap_or_else(|| panic!("{file} is of no crate"));
        let module = &file[folder.len() + "/src/".len()..file.len() - ".rs".len()];
        let module = match module {
            "lib" | "main" => String::new(),
            module => module.trim_end_matches("/mod").replace('/', "::"),
        };
        (name.clone(), module)
    }

    /// Returns the file of a module: its own, or the one around it.
    fn file_of(&self, name: &str, module: &str) -> String {
        let source = format!("{}/src", self.folders[name]);
        let mut module = module.replace("::", "/");
        while !module.is_empty() {
            for file in [
                format!("{source}/{module}.rs"),
                format!("{source}/{module}/mod.rs"),
            ] {
                if self.root.join(&file).exists() {
                    return file;
                }
            }
            module = module
                .rsplit_once('/')
                .map_or("", |(around, _)| around)
                .into();
        }
        format!("{source}/lib.rs")
    }

    fn read(&mut self, name: &str) {
        if !self.crates.contains_key(name) {
            let root = format!("{}/src/lib.rs", self.folders[name]);
            let modules = Modules::of(&self.root.join(root));
            let paths = modules.paths();
            self.crates.insert(name.to_owned(), (modules, paths));
        }
    }

    /// Returns the files of the workspace that a file imports, each where it is declared.
    fn imports(&mut self, file: &str) -> BTreeSet<String> {
        let (name, module) = self.module_of(file);
        let mentioned: Vec<Vec<String>> = match file.ends_with("/main.rs") {
            true => {
                let mut paths = Modules::of(&self.root.join(file)).paths();
                paths.remove("").unwrap_or_default().all
            }
            false => {
                self.read(&name);
                self.crates[&name].1[&module].all.clone()
            }
        };
        let ends = mentioned
            .iter()
            .filter_map(|path| self.end(&name, &module, path));
        ends.filter(|end| end != file).collect()
    }

    /// Returns the file in which a path ends that is mentioned in a module.
    fn end(&mut self, name: &str, module: &str, path: &[String]) -> Option<String> {
        let first = path.first()?;
        if self.folders.contains_key(first) {
            self.read(first);
            return Some(self.handed_on(first, &path[1..]));
        }
        self.read(name);
        let (modules, paths) = &self.crates[name];
        // What was imported from another crate, under its name here.
        if let Some(import) = paths[module].names.get(first)
            && self.folders.contains_key(&import[0])
            && path.len() > 1
        {
            let whole = [import, &path[1..]].concat();
            return self.end(name, module, &whole);
        }
        let found = modules.resolve(module, path, paths, MOST_NAMES)?;
        if found.is_empty() && path.len() > 1 && first == "crate" {
            return Some(self.handed_on(name, &path[1..]));
        }
        Some(self.file_of(name, &found))
    }

    /// Returns the file of what a crate has under this path, wherever its root took it from.
    fn handed_on(&mut self, name: &str, path: &[String]) -> String {
        let (modules, paths) = &self.crates[name];
        let whole: Vec<String> = ["crate".to_owned()].iter().chain(path).cloned().collect();
        let found = modules.resolve("", &whole, paths, MOST_NAMES);
        match found {
            Some(module) if !module.is_empty() => self.file_of(name, &module),
            _ => {
                let from = path.first().and_then(|first| paths[""].names.get(first));
                let from = from.filter(|from| from.len() > 1).cloned();
                match from {
                    Some(from) => self.end(name, "", &from).unwrap_or_default(),
                    None => self.file_of(name, ""),
                }
            }
        }
    }
}

/// Returns what is wrong with lists, if something is; `imports` gives what a file imports.
fn fault(
    lists: &Lists<'_>,
    most: usize,
    mut imports: impl FnMut(&str) -> Option<BTreeSet<String>>,
) -> Option<String> {
    let path = &lists.path;
    if path.is_empty() || path.len() > most {
        return Some(format!("{} files are not 1 to {most}", path.len()));
    }
    let mut importers: BTreeMap<String, usize> = BTreeMap::new();
    for (number, file) in path.iter().enumerate() {
        if path[..number].contains(file) {
            return Some(format!("{file} is listed twice"));
        }
        let Some(imported) = imports(file) else {
            return Some(format!("there is no {file}"));
        };
        let before = &path[..number];
        // A module adds to a type of another without being imported by it, or is split off.
        let adds = before.iter().any(|earlier| {
            let folder = earlier.trim_end_matches(".rs");
            let rest = file.strip_prefix(folder);
            imported.contains(*earlier) || rest.is_some_and(|rest| rest.starts_with('/'))
        });
        if number > 0 && !importers.contains_key(*file) && !adds {
            return Some(format!(
                "no file before {file} imports it, and it adds to none"
            ));
        }
        for file in imported {
            *importers.entry(file).or_default() += 1;
        }
    }
    let many = importers.iter().filter(|(_, files)| **files >= MANY);
    let many = many.map(|(file, _)| file.as_str());
    let missing: Vec<&str> = many
        .clone()
        .filter(|file| !path.contains(file) && !lists.looked_up.contains(file))
        .collect();
    if !missing.is_empty() {
        return Some(format!(
            "{MANY} files of the path import each of {missing:?}"
        ));
    }
    let many: BTreeSet<&str> = many.collect();
    let idle: Vec<_> = lists.looked_up.difference(&many).collect();
    (!idle.is_empty()).then(|| format!("too few files of the path import {idle:?}"))
}

#[test]
fn each_path_is_as_it_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let mut workspace = Workspace::of(root);
    let mut imports = |file: &str| {
        let is_there = root.join(file).is_file();
        is_there.then(|| workspace.imports(file))
    };
    for (title, most) in PATHS {
        let lists = Lists::of(&text, title);
        assert_eq!(fault(&lists, most, &mut imports), None, "{title}");
    }
}

#[test]
fn a_list_that_is_wrong_is_found() {
    let imports = |file: &str| {
        let files: &[&str] = match file {
            "main.rs" => &["lib.rs", "used.rs"],
            "lib.rs" => &["deep.rs", "used.rs"],
            "deep.rs" => &["end.rs", "used.rs"],
            "end.rs" => &["used.rs"],
            "used.rs" | "alone.rs" => &[],
            _ => return None,
        };
        Some(files.iter().map(|file| (*file).to_owned()).collect())
    };
    let of = |path: &[&'static str], looked_up: &[&'static str]| {
        let lists = Lists {
            path: path.to_vec(),
            looked_up: looked_up.iter().copied().collect(),
        };
        fault(&lists, 5, imports)
    };
    let good = ["main.rs", "lib.rs", "deep.rs", "end.rs"];
    assert_eq!(of(&good, &["used.rs"]), None);
    assert_eq!(of(&[&good[..], &["used.rs"]].concat(), &[]), None);
    let says = |path: &[&'static str], looked_up: &[&'static str], words: &str| {
        let found = of(path, looked_up).unwrap_or_default();
        assert!(found.contains(words), "{found}");
    };
    says(&[], &[], "0 files are not");
    says(&["main.rs"; 6], &[], "6 files are not");
    says(&["main.rs"; 2], &[], "twice");
    says(&["gone.rs"], &[], "there is no");
    says(&["main.rs", "alone.rs"], &[], "no file before alone.rs");
    says(&good, &[], "import each of [\"used.rs\"]");
    says(&good[..3], &["used.rs"], "too few files");
}
