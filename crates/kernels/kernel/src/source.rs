//! The tree a kernel is built from: unpacked or checked out into the cache,
//! then a copy of it with the recipe's changes.
//!
//! It must never change a tree that it was given. A copy shares the files that
//! are not changed (hard links), so it costs little; code that changes a file
//! therefore writes a new one beside it and renames, as `patch` does.

use crate::cache::{Cache, find, key, words};
use crate::changes::Changes;
use crate::inline_change;
use locklab_host::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A tree with a name for its content.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The path of the tree.
    pub path: PathBuf,
    /// A hash of its contents.
    pub key: String,
    /// The changes, as one patch.
    pub patch: String,
}

/// Returns the tree of a recipe, made if the cache does not have it. Paths of patches
/// are relative to `folder`.
///
/// # Errors
/// If there is no such source, a patch cannot be read or does not apply (the
/// message names the file and the hunk), a function cannot be marked, or the
/// disk is full; also after Ctrl-C.
pub fn tree(cache: &Cache<'_>, recipe: &Changes, folder: &Path) -> Result<Tree, Error> {
    // Concurrent commands would unpack, copy and change the same files.
    let _held = cache.hold(&cache.folder("trees")?, "prepares sources")?;
    let original = original(
        cache,
        recipe.source.as_deref().unwrap_or("debian:6.1"),
        folder,
    )?;
    let mut patches = Vec::new();
    for patch in &recipe.patches {
        let path = folder.join(patch);
        let text = std::fs::read(&path)
            .map_err(|e| Error::Usage(format!("cannot read the patch {}: {e}", path.display())))?;
        patches.push((std::path::absolute(&path).unwrap_or(path), text));
    }
    let inlining = [&recipe.always_inline, &recipe.noinline, &recipe.flatten];
    if patches.is_empty() && recipe.select.is_empty() && inlining.iter().all(|f| f.is_empty()) {
        return Ok(original);
    }
    let settings = format!(
        "{:?} {:?} {:?} {:?} 2",
        recipe.select, recipe.always_inline, recipe.noinline, recipe.flatten
    );
    let mut parts = vec![original.key.as_bytes(), settings.as_bytes()];
    parts.extend(patches.iter().map(|(_, text)| text.as_slice()));
    let name = key(parts);
    let trees = cache.folder("trees")?;
    let path = trees.join(&name);
    let shown = trees.join(format!("{name}.patch"));
    if let (true, Ok(patch)) = (path.is_dir(), std::fs::read_to_string(&shown)) {
        return Ok(Tree {
            path,
            key: name,
            patch,
        });
    }
    // It is renamed when it is complete: an interrupted copy is made again.
    let fresh = trees.join(format!("{name}.new"));
    copy(cache, &original.path, &fresh)?;
    let mut all = String::new();
    for (file, text) in &patches {
        apply(cache, &fresh, file)?;
        all.push_str(&String::from_utf8_lossy(text));
    }
    if !recipe.select.is_empty() {
        all.push_str(&select(&fresh, &recipe.select)?);
    }
    for patch in inline_change::patches(cache, &fresh, recipe)? {
        let file = trees.join(format!("{name}.inline.patch"));
        std::fs::write(&file, &patch).map_err(|e| cache.cannot_write(&file, &e))?;
        apply(cache, &fresh, &file)?;
        all.push_str(&patch);
    }
    std::fs::write(&shown, &all).map_err(|e| cache.cannot_write(&shown, &e))?;
    std::fs::rename(&fresh, &path).map_err(|e| cache.cannot_write(&path, &e))?;
    Ok(Tree {
        path,
        key: name,
        patch: all,
    })
}

/// Returns the unchanged tree.
fn original(cache: &Cache<'_>, source: &str, folder: &Path) -> Result<Tree, Error> {
    if let Some(version) = source.strip_prefix("debian:") {
        return debian(cache, version);
    }
    if let Some(rest) = source.strip_prefix("git:") {
        let Some((repository, revision)) = rest.rsplit_once('#') else {
            return Err(Error::Usage(format!(
                "the source '{source}' has no revision; write git:FOLDER#REVISION"
            )));
        };
        return revision_of(cache, &folder.join(repository), revision);
    }
    let path = folder.join(source);
    if !path.join("Kconfig").is_file() || !path.join("scripts").is_dir() {
        return Err(Error::Usage(format!(
            "{} is no kernel tree; write debian:6.1, a folder of one, or git:FOLDER#REVISION",
            path.display()
        )));
    }
    // make refuses to build elsewhere from such a tree.
    if path.join(".config").exists() || path.join("include/config").exists() {
        return Err(Error::Usage(format!(
            "{0} was built in, so nothing can be built from it elsewhere; name a revision \
             (git:{0}#HEAD), or run make mrproper there",
            path.display()
        )));
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    let content = content_of(&path)?;
    Ok(Tree {
        path,
        key: content,
        patch: String::new(),
    })
}

/// Returns Debian's source package, which must be installed.
fn debian(cache: &Cache<'_>, version: &str) -> Result<Tree, Error> {
    let archive = PathBuf::from(format!("/usr/src/linux-source-{version}.tar.xz"));
    let Ok(facts) = archive.metadata() else {
        return Err(Error::Failed(format!(
            "{} is missing; install it (apt-get install linux-source-{version})",
            archive.display()
        )));
    };
    use std::os::unix::fs::MetadataExt;
    let size = format!("{} {}", facts.len(), facts.mtime());
    let name = key([archive.as_os_str().as_encoded_bytes(), size.as_bytes()]);
    let sources = cache.folder("sources")?;
    let path = sources.join(&name);
    if !path.is_dir() {
        cache.note(&format!("unpacking {}", archive.display()));
        let fresh = sources.join(format!("{name}.new"));
        remove(&fresh)?;
        std::fs::create_dir_all(&fresh).map_err(|e| cache.cannot_write(&fresh, &e))?;
        let mut arguments = words(&["--extract", "--strip-components=1", "--file"]);
        arguments.push(archive.into());
        checked(
            cache,
            &find("tar", "tar xz-utils")?,
            &arguments,
            &fresh,
            &sources.join("tar"),
        )?;
        std::fs::rename(&fresh, &path).map_err(|e| cache.cannot_write(&path, &e))?;
    }
    Ok(Tree {
        path,
        key: name,
        patch: String::new(),
    })
}

fn revision_of(cache: &Cache<'_>, repository: &Path, revision: &str) -> Result<Tree, Error> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(repository)
            .args(arguments)
            .output();
        match output {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            Ok(output) => Err(Error::Failed(format!(
                "git does not find {revision} in {}: {}",
                repository.display(),
                String::from_utf8_lossy(&output.stderr)
                    .lines()
                    .next()
                    .unwrap_or_default()
            ))),
            Err(e) => Err(Error::Failed(format!(
                "cannot start git: {e} (apt-get install git)"
            ))),
        }
    };
    let commit = git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
    let sources = cache.folder("sources")?;
    let path = sources.join(&commit);
    if !path.is_dir() {
        cache.note(&format!("checking out {commit}"));
        let fresh = sources.join(format!("{commit}.new"));
        remove(&fresh)?;
        std::fs::create_dir_all(&fresh).map_err(|e| cache.cannot_write(&fresh, &e))?;
        let archive = sources.join(format!("{commit}.tar"));
        let output = format!("--output={}", archive.display());
        git(&["archive", "--format=tar", &output, &commit])?;
        let mut arguments = words(&["--extract", "--file"]);
        arguments.push(archive.clone().into());
        checked(
            cache,
            &find("tar", "tar")?,
            &arguments,
            &fresh,
            &sources.join("tar"),
        )?;
        let _ = std::fs::remove_file(&archive);
        std::fs::rename(&fresh, &path).map_err(|e| cache.cannot_write(&path, &e))?;
    }
    Ok(Tree {
        path,
        key: commit,
        patch: String::new(),
    })
}

/// Returns a hash of names, sizes and times: a tree is too large to be read.
fn content_of(path: &Path) -> Result<String, Error> {
    use std::os::unix::fs::MetadataExt;
    let mut list = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| Error::Failed(format!("cannot read {}: {e}", folder.display())))?;
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            if entry.file_name() == ".git" {
                continue;
            }
            if facts.is_dir() {
                folders.push(entry.path());
            } else {
                let (seconds, nanoseconds) = (facts.mtime(), facts.mtime_nsec());
                let size = facts.len();
                list.push(format!(
                    "{} {size} {seconds} {nanoseconds}",
                    entry.path().display()
                ));
            }
        }
    }
    list.sort();
    Ok(key(list.iter().map(String::as_bytes)))
}

/// Returns a copy of a tree, in place of what an interrupted copy left. One of the
/// cache shares its files.
///
/// # Errors
/// If a file cannot be read or written, as on a full disk.
pub fn copy(cache: &Cache<'_>, from: &Path, to: &Path) -> Result<(), Error> {
    remove(to)?;
    // Edits of a tree by its owner must not affect the copy.
    let ours = from.starts_with(&cache.root);
    let mut arguments = words(if ours {
        &["-al"]
    } else {
        &["-a", "--reflink=auto"]
    });
    arguments.extend([from.into(), to.into()]);
    let folder = cache.folder("trees")?;
    checked(
        cache,
        &find("cp", "coreutils")?,
        &arguments,
        &folder,
        &folder.join("cp"),
    )
}

fn apply(cache: &Cache<'_>, tree: &Path, patch: &Path) -> Result<(), Error> {
    let mut arguments = words(&[
        "-p1",
        "--forward",
        "--batch",
        "--no-backup-if-mismatch",
        "-i",
    ]);
    arguments.push(patch.into());
    let log = tree.with_extension("patch-log");
    let ended = cache.run(&find("patch", "patch")?, &arguments, tree, &log, HOUR)?;
    if ended.failure().is_none() {
        return Ok(());
    }
    let output = std::fs::read_to_string(log.with_extension("out")).unwrap_or_default();
    if output.contains("No space left") {
        return Err(cache.full());
    }
    Err(Error::Failed(format!(
        "the patch {} does not apply: {}",
        patch.display(),
        refused_hunk(&output)
    )))
}

/// Returns the first hunk that `patch` refused, with its file.
fn refused_hunk(output: &str) -> String {
    let mut file = "";
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("patching file ") {
            file = name.trim_matches('\'');
        } else if line.starts_with("Hunk #") && line.contains("FAILED") {
            let line = line.trim_end_matches('.');
            return format!("in {file}, {}", line.replacen("Hunk", "hunk", 1));
        } else if line.contains("can't find file to patch") {
            return "it names a file that the tree does not have".into();
        } else if line.contains("previously applied") {
            return format!("in {file}, it looks as if it was applied already");
        }
    }
    output.lines().last().unwrap_or("patch said nothing").into()
}

/// Adds selects to the architecture's Kconfig; returns the change as a patch.
fn select(tree: &Path, symbols: &[String]) -> Result<String, Error> {
    const FILE: &str = "arch/x86/Kconfig";
    let path = tree.join(FILE);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))?;
    let (changed, patch) = with_selects(&text, symbols).ok_or_else(|| {
        Error::Failed(format!("{FILE} has no 'config X86'; select does not work"))
    })?;
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, changed)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))?;
    Ok(patch)
}

fn with_selects(text: &str, symbols: &[String]) -> Option<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| *line == "config X86")? + 1;
    let after = lines.get(at)?;
    let added: String = symbols
        .iter()
        .map(|name| format!("\tselect {name}\n"))
        .collect();
    let mut changed = lines[..at].join("\n");
    changed.push('\n');
    changed.push_str(&added);
    changed.push_str(&lines[at..].join("\n"));
    changed.push('\n');
    let plus: String = added.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!(
        "--- a/arch/x86/Kconfig\n+++ b/arch/x86/Kconfig\n@@ -{at},2 +{at},{} @@\n config X86\n{plus} \
         {after}\n",
        2 + symbols.len()
    );
    Some((changed, patch))
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::Failed(format!(
            "cannot remove {}: {e}",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn checked(
    cache: &Cache<'_>,
    tool: &crate::cache::Tool,
    arguments: &[OsString],
    folder: &Path,
    log: &Path,
) -> Result<(), Error> {
    let ended = cache.run(tool, arguments, folder, log, HOUR)?;
    let Some(failure) = ended.failure() else {
        return Ok(());
    };
    let output = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
    if output.contains("No space left") {
        return Err(cache.full());
    }
    let first = output.lines().next().unwrap_or(&failure);
    Err(Error::Failed(format!("{} failed: {first}", tool.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn tiny(folder: &Path) -> PathBuf {
        let tree = folder.join("linux");
        for (file, text) in [
            ("Kconfig", ""),
            ("scripts/x", ""),
            (
                "arch/x86/Kconfig",
                "config 64BIT\n\nconfig X86\n\tdef_bool y\n",
            ),
            ("a.c", "one\ntwo\nthree\n"),
        ] {
            let path = tree.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        tree
    }

    fn cache<'a>(folder: &Path, interrupt: &'a AtomicBool) -> Cache<'a> {
        Cache {
            root: folder.join("cache"),
            interrupt,
            quiet: true,
        }
    }

    fn recipe(tree: &Path, change: impl FnOnce(&mut Changes)) -> Changes {
        let mut recipe = Changes {
            source: Some(tree.display().to_string()),
            ..Changes::default()
        };
        change(&mut recipe);
        recipe
    }

    #[test]
    fn a_changed_tree_is_a_copy_and_its_patch_applies() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = cache(folder.path(), &interrupt);
        let original = tiny(folder.path());
        let patch = folder.path().join("p");
        std::fs::write(
            &patch,
            "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        )
        .unwrap();
        let recipe = recipe(&original, |r| {
            r.select = vec!["A".into(), "B".into()];
            r.patches = vec!["p".into()];
        });
        let made = tree(&cache, &recipe, folder.path()).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(
            read(made.path.join("arch/x86/Kconfig")),
            "config 64BIT\n\nconfig X86\n\tselect A\n\tselect B\n\tdef_bool y\n"
        );
        assert_eq!(read(made.path.join("a.c")), "one\n2\nthree\n");
        assert_eq!(read(original.join("a.c")), "one\ntwo\nthree\n");
        // The shown patch makes the same tree.
        let whole = folder.path().join("whole");
        std::fs::write(&whole, &made.patch).unwrap();
        apply(&cache, &original, &whole).unwrap();
        assert_eq!(
            read(original.join("arch/x86/Kconfig")),
            read(made.path.join("arch/x86/Kconfig"))
        );
    }

    #[test]
    fn a_patch_that_does_not_apply_names_its_hunk() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = cache(folder.path(), &interrupt);
        let original = tiny(folder.path());
        let patch = folder.path().join("p");
        std::fs::write(
            &patch,
            "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n other\n-line\n+2\n",
        )
        .unwrap();
        let recipe = recipe(&original, |r| r.patches = vec!["p".into()]);
        let error = tree(&cache, &recipe, folder.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("in a.c, hunk #1 FAILED at 1"), "{error}");
    }

    #[test]
    fn a_folder_that_is_no_kernel_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = cache(folder.path(), &interrupt);
        let error = tree(&cache, &recipe(folder.path(), |_| {}), Path::new("")).unwrap_err();
        assert!(error.to_string().contains("no kernel tree"));
        let error = original(&cache, "git:x", Path::new("")).unwrap_err();
        assert!(error.to_string().contains("no revision"));
    }
}
