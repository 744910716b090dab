//! No circle of modules: within a crate, a module must not import one that,
//! over any way, imports it. What exists is in `circles.txt`, which may only
//! shrink.

use crate::source;

use source::{MOST_NAMES, Modules, Paths};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of one crate and the modules that each imports. The crate's root
/// is "".
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the modules of a crate that each of them imports.
fn imports(modules: &Modules) -> Imports {
    let paths = modules.paths();
    let of = |(name, found): (&String, &Paths)| {
        let ends = found.all.iter();
        let ends = ends.filter_map(|path| modules.resolve(name, path, &paths, MOST_NAMES));
        let others = ends.filter(|end| end != name).collect();
        (name.clone(), others)
    };
    paths.iter().map(of).collect()
}

/// Returns the modules that are in a circle, each with one of its circles.
fn circles(imports: &Imports) -> BTreeMap<String, String> {
    imports
        .keys()
        .filter_map(|module| Some((module.clone(), circle(imports, module)?)))
        .collect()
}

/// Returns a shortest way from a module back to itself: `a -> b -> a`.
fn circle(imports: &Imports, module: &str) -> Option<String> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = std::collections::VecDeque::from([module]);
    while let Some(at) = next.pop_front() {
        for imported in &imports[at] {
            if imported == module {
                let mut way = vec![module, at];
                while let Some(earlier) = before.get(way[way.len() - 1]) {
                    way.push(earlier);
                }
                way.reverse();
                return Some(way.join(" -> "));
            }
            if !before.contains_key(imported.as_str()) {
                before.insert(imported, at);
                next.push_back(imported);
            }
        }
    }
    None
}

#[test]
fn no_module_is_in_a_circle_but_those_that_are_known() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeMap::new();
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let crates = below(&workspace.join("crates"));
    let crates = crates.iter().flat_map(|folder| below(folder));
    let beside = ["locklab", "xtask", "packaging"].map(|name| workspace.join(name));
    for folder in crates.chain(beside) {
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = folder.join(root);
            if root.exists() {
                let name = folder.file_name().unwrap().to_string_lossy().into_owned();
                for (module, circle) in circles(&imports(&Modules::of(&root))) {
                    let module = if module.is_empty() { "(root)" } else { &module };
                    found.insert(format!("{name} {module}"), circle);
                }
            }
        }
    }
    let known: BTreeSet<String> = include_str!("circles.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    let new: Vec<_> = found
        .iter()
        .filter(|(module, _)| !known.contains(*module))
        .map(|(module, circle)| format!("{module}: {circle}"))
        .collect();
    assert!(
        new.is_empty(),
        "modules import one another in a circle:\n{}",
        new.join("\n")
    );
    let gone: Vec<_> = known
        .iter()
        .filter(|module| !found.contains_key(*module))
        .map(String::as_str)
        .collect();
    assert!(
        gone.is_empty(),
        "no circle any more; take these out of xtask/tests/circles.txt:\n{}",
        gone.join("\n")
    );
}

#[test]
fn a_circle_is_found_over_imports_paths_and_macros() {
    let modules = |files: &[(&str, &str)]| {
        let items = |text: &str| syn::parse_file(text).unwrap().items;
        let named = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), items(text)));
        circles(&imports(&Modules(named.collect())))
    };
    let none = modules(&[
        ("", "pub use a::A;"),
        ("a", "use crate::b::{self, B}; #[cfg(test)] use crate::c;"),
        ("b", "use std::fmt;"),
        ("c", "fn f() { crate::a::f() }"),
    ]);
    assert_eq!(none, BTreeMap::new());
    let circle = modules(&[
        ("a", "use super::b::B;"),
        ("b", "fn f() { g!(1, crate::c::C { x: 2 }) }"),
        (
            "c",
            "impl X { fn f(&self) { let y: crate::a::Y = self.y(); } }",
        ),
        ("d", "use crate::a;"),
        ("", "pub use a::A;"),
    ]);
    assert_eq!(circle.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(circle["a"], "a -> b -> c -> a");
    // Over names that were imported, in code and in attributes.
    for user in [
        "use crate::b; fn f() { b::c::g() }",
        "use crate::b as d; type T = d::c::T;",
        "use crate::{b::{self}}; #[derive(Args)] struct S { #[arg(value_parser = b::c::f)] s: u8 }",
        "use super::*; fn f() { h!(b::c::g()) }",
        "use crate::b::c; fn f() { c::g() }",
    ] {
        let circle = modules(&[
            ("", ""),
            ("a", user),
            ("b", "pub mod c;"),
            ("b::c", "use crate::a::A;"),
        ]);
        assert_eq!(circle.keys().collect::<Vec<_>>(), ["a", "b::c"], "{user}");
    }
    // A type is no module, and neither is a crate.
    let none = modules(&[
        (
            "a",
            "use crate::b::B; use serde::b; fn f() { B::new(); b::c::g() }",
        ),
        ("b", "pub struct B;"),
        ("b::c", "use crate::a::A;"),
    ]);
    assert_eq!(none, BTreeMap::new());
    // What a child takes from its parent, and the parent hands on from it.
    let parent = modules(&[("", "pub use a::A;"), ("a", "use crate::B;")]);
    assert_eq!(parent.len(), 2);
}
