//! Intentional inlining: functions marked `__always_inline`, `noinline` or
//! `flatten` in the source, by Coccinelle, as a readable patch.
//!
//! Because a compiler may stop inlining callees when their caller is
//! duplicated, a list of functions is one change. A function that is not
//! found is an error: a change that does nothing would be judged "flat".

use crate::cache::{Cache, find, words};
use crate::changes::Changes;
use locklab_host::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The attribute, for which the kernel has no name of its own.
const FLATTEN: &str = "__attribute__((flatten))";
/// A word that Coccinelle accepts as an attribute, in its place.
const PLACE: &str = "__locklab_flatten";
/// The suffix of the names of marked definitions until all are marked.
const DONE: &str = "__locklab_done";

/// Returns one patch for each function and mark, in the recipe's order. They touch
/// neighbouring lines only where two functions are neighbours.
///
/// # Errors
/// If Coccinelle is missing or fails, or a function has no definition that it
/// finds.
pub fn patches(cache: &Cache<'_>, tree: &Path, recipe: &Changes) -> Result<Vec<String>, Error> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (names, mark) in [
        (&recipe.always_inline, "__always_inline"),
        (&recipe.noinline, "noinline"),
        (&recipe.flatten, FLATTEN),
    ] {
        wanted.extend(names.iter().map(|name| (name.as_str(), mark)));
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let spatch = find("spatch", "coccinelle")?;
    let work = cache.folder("cocci")?;
    let mut all = Vec::new();
    for file_marks in by_file(tree, &wanted)? {
        let (file, marks) = file_marks;
        let script = work.join("change.cocci");
        let text: String = marks.iter().map(|(name, mark)| rules(name, mark)).collect();
        std::fs::write(&script, text).map_err(|e| cache.cannot_write(&script, &e))?;
        let mut arguments = words(&["--very-quiet", "--no-includes", "--sp-file"]);
        arguments.push(script.clone().into());
        arguments.push(file.clone().into());
        let log = work.join("spatch");
        let ended = cache.run(&spatch, &arguments, tree, &log, Duration::from_secs(1800))?;
        let read = |end: &str| std::fs::read_to_string(log.with_extension(end)).unwrap_or_default();
        if let Some(failure) = ended.failure() {
            let stderr = read("err");
            return Err(Error::Failed(format!(
                "Coccinelle failed on {}: {}",
                file.display(),
                stderr.lines().next().unwrap_or(&failure)
            )));
        }
        let diff = relative(&read("out"), &file);
        for (name, mark) in &marks {
            let there = diff
                .lines()
                .any(|line| line.starts_with('+') && line.contains(mark));
            if !there || !diff.contains(name) {
                return Err(Error::Failed(format!(
                    "Coccinelle does not see the definition of {name} in {}; mark it by a patch \
                     of your own",
                    file.display()
                )));
            }
        }
        all.push(diff);
    }
    Ok(all)
}

type Marks<'a> = Vec<(&'a str, &'a str)>;

/// Returns the functions by the file that defines them.
fn by_file<'a>(
    tree: &Path,
    wanted: &[(&'a str, &'a str)],
) -> Result<Vec<(PathBuf, Marks<'a>)>, Error> {
    let mut found: Vec<(PathBuf, Marks<'a>)> = Vec::new();
    let sources = sources(tree);
    for (name, mark) in wanted {
        let file = sources.iter().find(|file| {
            std::fs::read(tree.join(file))
                .is_ok_and(|text| defines(&String::from_utf8_lossy(&text), name))
        });
        let Some(file) = file else {
            return Err(Error::Failed(format!(
                "no file of kernel/, arch/x86/, include/, mm/, fs/, lib/ or net/ defines the \
                 function {name}"
            )));
        };
        match found.iter_mut().find(|(other, _)| other == file) {
            Some((_, marks)) => marks.push((name, mark)),
            None => found.push((file.clone(), vec![(name, mark)])),
        }
    }
    Ok(found)
}

/// Returns the files that may define a function, those of the kernel's core first.
fn sources(tree: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for start in [
        "kernel/sched",
        "kernel",
        "arch/x86",
        "include",
        "mm",
        "lib",
        "fs",
        "net",
    ] {
        let mut here = Vec::new();
        let mut folders = vec![tree.join(start)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "c" || end == "h")
                    && let Ok(short) = path.strip_prefix(tree)
                    && !files.contains(&short.to_owned())
                {
                    here.push(short.to_owned());
                }
            }
        }
        here.sort();
        files.append(&mut here);
    }
    files
}

/// Returns whether a text has a definition at the left edge: the name, its
/// parameters, and a brace before any semicolon.
fn defines(text: &str, name: &str) -> bool {
    let mut from = 0;
    while let Some(at) = text[from..].find(name) {
        let (start, end) = (from + at, from + at + name.len());
        from = end;
        let line = &text[text[..start].rfind('\n').map_or(0, |n| n + 1)..start];
        let whole_word = !line.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let starts =
            line.is_empty() || line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if whole_word && starts && !line.contains(['=', '(', '#']) && text[end..].starts_with('(') {
            let rest = &text[end..];
            let brace = rest.find("\n{");
            let semicolon = rest.find(';');
            if brace.is_some_and(|b| semicolon.is_none_or(|s| b < s)) {
                return true;
            }
        }
    }
    false
}

/// Returns the semantic patch of one function: its present inlining attributes give
/// way to the mark, in each of its definitions (one a branch of an `#ifdef`).
/// A definition that is done gets a different name until all are, so that no
/// later rule matches it.
fn rules(name: &str, mark: &str) -> String {
    let word = if mark == FLATTEN { PLACE } else { mark };
    // The compiler accepts `inline` with flatten and not with noinline.
    let old = if mark == FLATTEN {
        "  inline"
    } else {
        "- inline"
    };
    let head = format!("type T;\nparameter list P;\nattribute name {word};\n@@\n");
    // A definition that has the mark already keeps it once.
    let has = format!("  static\n  {word}\n  T\n- {name}\n+ {name}{DONE}\n  (P)\n  {{ ... }}\n\n");
    let body = format!("+ {word}\n  T\n- {name}\n+ {name}{DONE}\n  (P)\n  {{ ... }}\n\n");
    format!(
        "@@\n{head}{has}@@\n{head}  static\n{old}\n{body}@@\n{head}  static\n{body}@@\n{head}{body}\
         @@\ntype T;\nparameter list P;\n@@\n  T\n- {name}{DONE}\n+ {name}\n  (P)\n  {{ ... }}\n\n"
    )
}

/// Returns Coccinelle's diff with the names that `patch -p1` takes.
fn relative(diff: &str, file: &Path) -> String {
    diff.lines()
        .filter(|line| !line.starts_with("diff "))
        .map(|line| {
            if line.starts_with("--- ") {
                format!("--- a/{}\n", file.display())
            } else if line.starts_with("+++ ") {
                format!("+++ b/{}\n", file.display())
            } else if let Some(added) = line.strip_prefix('+') {
                // The line is formatted in the kernel's style.
                let mut added = added.to_owned();
                for mark in ["__always_inline", "noinline", PLACE] {
                    added = added.replace(&format!("  {mark}"), &format!(" {mark}"));
                    if added.starts_with(&format!(" {mark}")) {
                        added.remove(0);
                    }
                }
                format!("+{}\n", added.replace(PLACE, FLATTEN))
            } else {
                format!("{line}\n")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_definition_is_told_from_a_call_and_a_declaration() {
        let text = "int g(int a);\nstatic inline int\nf(int a)\n\t__releases(x)\n{\n\tg(a);\n}\n";
        assert!(defines(text, "f"));
        assert!(!defines(text, "g"));
        assert!(!defines("int xf(void)\n{\n}\n", "f"));
    }

    #[test]
    fn coccinelle_marks_what_was_asked_for() {
        if find("spatch", "coccinelle").is_err() {
            println!("skipped: spatch is missing (apt-get install coccinelle)");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("linux");
        std::fs::create_dir_all(tree.join("kernel/sched")).unwrap();
        std::fs::write(
            tree.join("kernel/sched/core.c"),
            "#ifdef CONFIG_X\nstatic __always_inline void one(int a)\n{\n\ta = 0;\n}\n#elif \
             defined(CONFIG_SMP)\nstatic void one(int a)\n{\n\ta--;\n}\n#else\nstatic inline void \
             one(int a)\n{\n\ta++;\n}\n#endif\n\nstatic struct rq *two(struct t *prev)\n\
             {\n\tone(1);\n\treturn 0;\n}\n\nint three(void)\n{\n\treturn 3;\n}\n",
        )
        .unwrap();
        let interrupt = AtomicBool::new(false);
        let cache = Cache {
            root: folder.path().join("c"),
            interrupt: &interrupt,
            quiet: true,
        };
        let recipe = Changes {
            always_inline: vec!["one".into(), "two".into()],
            flatten: vec!["three".into()],
            ..Changes::default()
        };
        let made = patches(&cache, &tree, &recipe).unwrap();
        assert_eq!(made.len(), 1);
        let head = "--- a/kernel/sched/core.c";
        assert!(made[0].lines().any(|l| l == head), "{}", made[0]);
        // Coccinelle decides where lines break.
        let added: String = made[0]
            .lines()
            .filter_map(|l| l.strip_prefix('+'))
            .collect();
        let added: Vec<&str> = added.split_whitespace().collect();
        let added = added.join(" ");
        // Both definitions of one() that had no mark, and two().
        assert_eq!(added.matches("__always_inline").count(), 3, "{}", made[0]);
        assert!(!made[0].contains("__locklab"), "{}", made[0]);
        assert_eq!(
            added.matches("__attribute__((flatten))").count(),
            1,
            "{}",
            made[0]
        );
        let none = Changes {
            noinline: vec!["four".into()],
            ..Changes::default()
        };
        let error = patches(&cache, &tree, &none).unwrap_err();
        assert!(
            error.to_string().contains("defines the function four"),
            "{error}"
        );
    }
}
