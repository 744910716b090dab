//! No circle of modules: within a crate, a module must not import one that,
//! over any way, imports it. What exists is in `circles.txt`, which may only
//! shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// The modules of one crate and the modules that each imports. The crate's root
/// is "".
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Every module of a crate with its file's items, tests left out.
struct Modules(BTreeMap<String, Vec<syn::Item>>);

impl Modules {
    fn of(root: &Path) -> Self {
        let mut modules = Self(BTreeMap::new());
        let folder = root.parent().expect("a file has a folder");
        modules.read(root, folder, String::new());
        modules
    }

    /// Reads the module `name` from `file`, whose children are in `folder`.
    fn read(&mut self, file: &Path, folder: &Path, name: String) {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let beside = file.parent().expect("a file has a folder");
        self.add(parsed.items, (beside, folder), name);
    }

    /// Adds a module whose file is `beside` others, and whose children are in
    /// `folder`.
    fn add(&mut self, items: Vec<syn::Item>, (beside, folder): (&Path, &Path), name: String) {
        let mut own = Vec::new();
        for item in items {
            let syn::Item::Mod(module) = item else {
                own.push(item);
                continue;
            };
            if is_conditional(&module.attrs) {
                continue;
            }
            let child = module.ident.to_string();
            let full = join(&name, &child);
            match (module.content, path_of(&module.attrs)) {
                (Some((_, items)), _) => self.add(items, (beside, &folder.join(&child)), full),
                (None, Some(path)) => {
                    let file = beside.join(path);
                    self.read(&file, &folder.join(&child), full);
                }
                (None, None) => {
                    let files = [
                        folder.join(format!("{child}.rs")),
                        folder.join(&child).join("mod.rs"),
                    ];
                    if let Some(file) = files.iter().find(|file| file.exists()) {
                        self.read(file, &folder.join(&child), full);
                    }
                }
            }
        }
        self.0.insert(name, own);
    }

    fn imports(&self) -> Imports {
        let paths: BTreeMap<&str, Paths> = self
            .0
            .iter()
            .map(|(name, items)| {
                let mut paths = Paths::default();
                items
                    .iter()
                    .filter(|item| !is_conditional(attributes(item)))
                    .for_each(|item| paths.visit_item(item));
                (name.as_str(), paths)
            })
            .collect();
        let of = |(name, found): (&&str, &Paths)| {
            let ends = found.all.iter();
            let ends = ends.filter_map(|path| self.resolve(name, path, &paths, MOST_NAMES));
            let others = ends.filter(|end| end != name).collect();
            ((*name).to_owned(), others)
        };
        paths.iter().map(of).collect()
    }

    /// Returns the module in which a path of the module `from` ends, if it is one of
    /// this crate; `names` is how many imported names are followed for it.
    fn resolve(
        &self,
        from: &str,
        path: &[String],
        paths: &BTreeMap<&str, Paths>,
        names: usize,
    ) -> Option<String> {
        let first = path.first()?.as_str();
        let mut at = match first {
            "crate" => String::new(),
            "self" => from.to_owned(),
            "super" => parent(from)?,
            child if self.0.contains_key(&join(from, child)) => join(from, child),
            name => {
                // A module under the name by which it was imported.
                let names = names.checked_sub(1)?;
                let imports = &paths[from];
                let named = imports.names.get(name).filter(|path| path[0] != name);
                let named = named.and_then(|path| self.resolve(from, path, paths, names));
                let named = named.filter(|module| {
                    let end = imports.names[name].last().map(String::as_str);
                    module.rsplit("::").next() == end
                });
                named.or_else(|| {
                    let one = [name.to_owned()];
                    let mut globs = imports.globs.iter().filter_map(|glob| {
                        let module = self.resolve(from, glob, paths, names)?;
                        let there = self.resolve(&module, &one, paths, names)?;
                        (module != from).then_some(there)
                    });
                    globs.next()
                })?
            }
        };
        for segment in &path[1..] {
            if segment == "super" {
                at = parent(&at)?;
                continue;
            }
            let next = join(&at, segment);
            if !self.0.contains_key(&next) {
                break;
            }
            at = next;
        }
        Some(at)
    }
}

fn join(name: &str, child: &str) -> String {
    if name.is_empty() {
        child.to_owned()
    } else {
        format!("{name}::{child}")
    }
}

fn parent(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    Some(
        name.rsplit_once("::")
            .map_or("", |(parent, _)| parent)
            .to_owned(),
    )
}

/// Returns whether an item is only for tests or documentation.
fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let tokens = list.tokens.to_string();
        list.path.is_ident("cfg") && ["test", "doc"].contains(&tokens.as_str())
    })
}

fn path_of(attributes: &[syn::Attribute]) -> Option<PathBuf> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(path),
                ..
            }) if pair.path.is_ident("path") => Some(PathBuf::from(path.value())),
            _ => None,
        }
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

/// The most imported names that are followed to resolve one path.
const MOST_NAMES: usize = 4;

/// Every path that the items of a module mention, in imports, code, attributes and
/// macros.
#[derive(Default)]
struct Paths {
    all: Vec<Vec<String>>,
    /// The path of each imported name.
    names: BTreeMap<String, Vec<String>>,
    /// The modules of which all names are imported.
    globs: Vec<Vec<String>>,
}

impl Paths {
    fn import(&mut self, name: &syn::Ident, path: Vec<String>) {
        if let Some(end) = path.last() {
            let name = if name == "self" {
                end.clone()
            } else {
                name.to_string()
            };
            self.names.insert(name, path.clone());
        }
        self.all.push(path);
    }

    fn tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.tree(&path, &inner.tree);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(prefix, tree);
                }
            }
            syn::UseTree::Name(name) => {
                if name.ident != "self" {
                    path.push(name.ident.to_string());
                }
                self.import(&name.ident, path);
            }
            syn::UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    path.push(rename.ident.to_string());
                }
                self.import(&rename.rename, path);
            }
            syn::UseTree::Glob(_) => {
                self.globs.push(path.clone());
                self.all.push(path);
            }
        }
    }

    /// Paths in the tokens of a macro or an attribute.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) => {
                    self.end(&mut path);
                    path.push(name.to_string());
                }
                _ => self.end(&mut path),
            }
            colons = 0;
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.all.push(std::mem::take(path));
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A name alone is imported, or of this module.
        if path.segments.len() > 1 {
            let segments = path.segments.iter().map(|part| part.ident.to_string());
            self.all.push(segments.collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
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
                for (module, circle) in circles(&Modules::of(&root).imports()) {
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
        circles(&Modules(named.collect()).imports())
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
