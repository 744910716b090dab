//! Makes `locks.rs`: the source of the locks, with a switch at each token that
//! can be changed.
//!
//! What is left as it is, because no execution of a model depends on it, or
//! something else changes it: constants by themselves and functions that make
//! constants (their uses are changed), tests, formatting, how long is paused
//! and how often is read before something else is tried, and what an access of
//! memory does (the checker's platform changes that). What is behind `macro!`
//! is not looked into.

mod build {
    pub(crate) mod switches;
}

use build::switches::{Constants, Switches};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::{Attribute, File, Item};

fn main() {
    println!("cargo::rerun-if-changed=locks");
    println!("cargo::rerun-if-changed=library-models");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=build.rs");
    let crates = ["locks", "library-models"].map(|link| (link, Crate::read(link)));
    let mut constants = Constants::default();
    let files = crates.iter().flat_map(|(_, of)| &of.files);
    files.for_each(|(_, file)| constants.add(file));
    let mut switches = Switches::new(constants);
    let [items, models] = crates.map(|(link, mut of)| {
        switches.folder = link;
        inlined(of.root.items, Path::new(""), &mut of.files, &mut switches)
    });
    let sites = switches.sites.iter().map(|(file, line, column, change)| {
        quote!(crate::switch::Site { file: #file, line: #line, column: #column, change: #change })
    });
    let all = quote! {
        #(#items)*
        pub mod library_models { #(#models)* }
        pub(crate) mod sites {
            pub static SITES: &[crate::switch::Site] = &[#(#sites),*];
        }
    };
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("locks.rs");
    fs::write(out, all.to_string()).expect("OUT_DIR can be written");
}

/// The files of the crate, by their paths below its folder.
type Files = Vec<(PathBuf, File)>;

/// The source of a crate.
struct Crate {
    root: File,
    files: Files,
}

impl Crate {
    /// Reads the crate to whose source `link` is a link.
    fn read(link: &str) -> Self {
        let folder = fs::canonicalize(link).expect("a link to the source of a crate");
        let mut files = Vec::new();
        let root = read(&folder.join("lib.rs"), &folder, &mut files);
        Self { root, files }
    }
}

/// Reads a file and those of its modules.
fn read(path: &Path, folder: &Path, files: &mut Files) -> File {
    let mut text = fs::read_to_string(path).expect("a file of the locks");
    if folder.ends_with("library-models/src") {
        // They are a module here, beside the locks that are their public crate.
        text = text.replace("crate::", "crate::library_models::");
        text = text.replace("locklab_locks::", "crate::");
    }
    let file = syn::parse_file(&text).expect("the locks are Rust");
    let inner = match path.file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "mod.rs") => path.with_file_name(""),
        _ => path.with_extension(""),
    };
    for item in &file.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && !is_left_out(&module.attrs)
        {
            let name = module.ident.to_string();
            let beside = inner.join(format!("{name}.rs"));
            let path = if beside.exists() {
                beside
            } else {
                inner.join(name).join("mod.rs")
            };
            let inner = read(&path, folder, files);
            let below = path
                .strip_prefix(folder)
                .expect("below the folder")
                .to_owned();
            files.push((below, inner));
        }
    }
    file
}

/// Returns the items with each module in its place.
fn inlined(
    items: Vec<Item>,
    inside: &Path,
    files: &mut Files,
    switches: &mut Switches,
) -> Vec<TokenStream> {
    let mut all = Vec::new();
    for mut item in items {
        let attributes = switches::attributes_mut(&mut item);
        if attributes
            .as_ref()
            .is_some_and(|attributes| is_left_out(attributes))
        {
            continue;
        }
        match item {
            Item::Mod(module) if module.content.is_none() => {
                let name = module.ident.to_string();
                let is_it = |below: &Path| {
                    below == inside.join(format!("{name}.rs"))
                        || below == inside.join(&name).join("mod.rs")
                };
                let at = files.iter().position(|(below, _)| is_it(below));
                let (below, file) = files.remove(at.expect("read before"));
                switches.enter(&below);
                let inside = inside.join(&name);
                let mut items = inlined(file.items, &inside, files, switches);
                if below.ends_with("mplock/mod.rs") {
                    items.push(quote!(
                        pub use locklab_locks::BigLock;
                    ));
                }
                switches.leave();
                let (visibility, ident) = (&module.vis, &module.ident);
                all.push(quote!(#visibility mod #ident { #(#items)* }));
            }
            // The checker knows it from the locks themselves.
            Item::Trait(ref of) if of.ident == "BigLock" => {}
            mut item => {
                switches.item(&mut item);
                all.push(item.to_token_stream());
            }
        }
    }
    all
}

/// Returns whether it is for tests and documentation only.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        attribute.path().is_ident("cfg") && (text.contains("test") || text.contains("doctest"))
    })
}

use build::switches;
