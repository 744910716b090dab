//! The modules of a crate and what each of them imports, read from the source. It must
//! never judge what it finds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Every module of a crate with its file's items, tests left out.
pub(crate) struct Modules(pub(crate) BTreeMap<String, Vec<syn::Item>>);

impl Modules {
    /// Reads all modules below the file of a crate's root.
    pub(crate) fn of(root: &Path) -> Self {
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

    /// Returns every path that each module mentions.
    pub(crate) fn paths(&self) -> BTreeMap<String, Paths> {
        self.0
            .iter()
            .map(|(name, items)| {
                let mut paths = Paths::default();
                items
                    .iter()
                    .filter(|item| !is_conditional(attributes(item)))
                    .for_each(|item| paths.visit_item(item));
                (name.clone(), paths)
            })
            .collect()
    }

    /// Returns the module in which a path of the module `from` ends, if it is one of
    /// this crate; `names` is how many imported names are followed for it.
    pub(crate) fn resolve(
        &self,
        from: &str,
        path: &[String],
        paths: &BTreeMap<String, Paths>,
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
pub(crate) const MOST_NAMES: usize = 4;

/// Holds every path that the items of a module mention, in imports, code, attributes and
/// macros.
#[derive(Default)]
pub(crate) struct Paths {
    /// All of them.
    pub(crate) all: Vec<Vec<String>>,
    /// The path of each imported name.
    pub(crate) names: BTreeMap<String, Vec<String>>,
    /// The modules of which all names are imported.
    pub(crate) globs: Vec<Vec<String>>,
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
