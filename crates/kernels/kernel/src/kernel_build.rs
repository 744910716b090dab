//! Collects what the workload `kernel-build` takes into the guest: files of the
//! kernel's own library with all headers that they include, the commands that
//! compiled them, and make with the compiler.
//!
//! Report 1 built a whole kernel; here it is as many files as the plan says, because a
//! translator takes seconds for each. Both kernels compile the same: what was built
//! for the baseline. Nothing here may differ between two runs, or counts do not repeat.

use crate::cache::find;
use crate::workload::Load;
use locklab_host::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The folder of the build's objects in the guest, in that of the source.
const OBJECTS: &str = "lab/build/objects";

/// The makefile, in the folder of the objects; the guest's program names it too.
const MAKEFILE: &str = "locklab.mk";

/// A file that was compiled, by what kbuild wrote down about it.
#[derive(Debug, PartialEq, Eq)]
struct Compiled {
    /// The compiler and its arguments, with OUT for the name of the output.
    command: String,
    /// Holds what it read, from the folder of the objects.
    read: Vec<String>,
}

/// Holds what an initramfs gets for it.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Files by their names in the guest.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// Programs of this machine, which lie at the same place in the guest.
    pub(crate) programs: Vec<PathBuf>,
}

/// Returns what the workload needs; `objects` is the folder of a build's objects.
///
/// # Errors
/// If the kernel was not built here, or by another compiler than gcc, or a file
/// cannot be read.
pub(crate) fn needed(load: &Load, objects: Option<&Path>) -> Result<Needed, Error> {
    let objects = objects.ok_or_else(|| {
        Error::Usage(
            "kernel-build compiles the source of the kernels, and these were not built here; give \
             [kernel] source instead of image"
                .into(),
        )
    })?;
    let all = compiled(objects)?;
    let number = usize::try_from(load.operations).unwrap_or(usize::MAX);
    // kbuild does not write down what every file includes.
    let options = "include/generated/autoconf.h";
    let mut paths: BTreeSet<&str> = BTreeSet::from([options]);
    for file in all.iter().take(number) {
        paths.extend(file.read.iter().map(String::as_str));
    }
    let mut needed = Needed::default();
    for path in paths {
        let to = match path.strip_prefix('/') {
            Some(absolute) => absolute.to_owned(),
            None => plain(&format!("{OBJECTS}/{path}")),
        };
        needed.files.push((to, read(&objects.join(path))?));
    }
    let makefile = makefile(&all, load.operations).into_bytes();
    needed
        .files
        .push((format!("{OBJECTS}/{MAKEFILE}"), makefile));
    needed
        .files
        .push((format!("{OBJECTS}/out/.keep"), Vec::new()));
    let gcc = find("gcc", "gcc")?.path;
    for part in ["cc1", "as"] {
        needed.programs.push(part_of(&gcc, part)?);
    }
    needed.programs.push(gcc);
    Ok(needed)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))
}

/// Returns the files of `lib/` that were compiled from C, in the order of their names.
fn compiled(objects: &Path) -> Result<Vec<Compiled>, Error> {
    let folder = objects.join("lib");
    let none = |why: String| {
        Error::Failed(format!(
            "kernel-build finds nothing to compile in {}: {why}",
            folder.display()
        ))
    };
    let entries = std::fs::read_dir(&folder).map_err(|e| none(e.to_string()))?;
    let mut found = BTreeMap::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && name.ends_with(".o.cmd") {
            let text = String::from_utf8_lossy(&read(&entry.path())?).into_owned();
            found.extend(parse(&text).map(|compiled| (name, compiled)));
        }
    }
    if found.is_empty() {
        return Err(none("it holds no file that gcc compiled from C".into()));
    }
    Ok(found.into_values().collect())
}

/// Returns what kbuild wrote down about one file; `None` if gcc did not compile it from C.
fn parse(text: &str) -> Option<Compiled> {
    let (target, rest) = text.strip_prefix("cmd_")?.split_once(" := ")?;
    let line = rest.lines().next()?;
    // objtool comes after it, which the guest has not.
    let command = line.split(" ; ").next()?.trim();
    let command = command.strip_prefix("ccache ").unwrap_or(command);
    let arguments = command.strip_prefix("gcc ")?;
    let source = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("source_{target} := ")))?
        .trim();
    if !source.ends_with(".c") {
        return None;
    }
    let words: Vec<&str> = arguments
        .split(' ')
        .map(|word| match word {
            _ if word == target => "OUT",
            // The file in which it notes what it read.
            _ if word.starts_with("-Wp,-MMD,") => "-Wp,-MMD,OUT.d",
            word => word,
        })
        .collect();
    let (_, list) = text.split_once(&format!("deps_{target} := \\\n"))?;
    let read = list.lines().take_while(|line| !line.trim().is_empty());
    let read = read
        .map(|line| line.trim().trim_end_matches('\\').trim())
        .filter(|path| !path.starts_with("$(wildcard") && !path.is_empty())
        .map(str::to_owned);
    Some(Compiled {
        command: format!("gcc {}", words.join(" ")),
        read: std::iter::once(source.to_owned()).chain(read).collect(),
    })
}

/// Compiles as many files as asked for, again from the first after the last.
fn makefile(all: &[Compiled], number: u64) -> String {
    let rule = |name: &str, file: &Compiled| {
        let command = file.command.replace("OUT", name);
        format!("{name}:\n\t{command}\n")
    };
    let names: Vec<String> = (0..number).map(|n| format!("out/{n}.o")).collect();
    let mut text = format!("all: {}\n", names.join(" "));
    text.push_str(&rule("out/warm.o", &all[0]));
    for (name, file) in names.iter().zip(all.iter().cycle()) {
        text.push_str(&rule(name, file));
    }
    text
}

/// Returns a program that gcc starts.
fn part_of(gcc: &Path, name: &str) -> Result<PathBuf, Error> {
    let output = Command::new(gcc)
        .arg(format!("-print-prog-name={name}"))
        .output()
        .map_err(|e| Error::Failed(format!("cannot start {}: {e}", gcc.display())))?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // One that it would look for on the path.
    if path.is_absolute() {
        return Ok(path);
    }
    Ok(find("as", "binutils")?.path)
}

/// Returns a path without `..` and `.`, which an archive does not have.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.extend(name.to_str()),
            _ => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    const CMD: &str = "cmd_lib/ctype.o := ccache gcc -Wp,-MMD,lib/.ctype.o.d -I../include -Ia;b \
        -DX='\"lib/ctype\"' -c -o lib/ctype.o ../lib/ctype.c   ; ./tools/objtool/objtool lib/ctype.o\n\n\
        source_lib/ctype.o := ../lib/ctype.c\n\ndeps_lib/ctype.o := \\\n    \
        $(wildcard include/config/SMP) \\\n  ../include/linux/ctype.h \\\n  \
        include/generated/bounds.h \\\n\nlib/ctype.o: $(deps_lib/ctype.o)\n";

    #[test]
    fn what_kbuild_wrote_down_is_compiled_again() {
        let file = parse(CMD).unwrap();
        assert_eq!(
            file.command
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            "gcc -Wp,-MMD,OUT.d -I../include -Ia;b -DX='\"lib/ctype\"' -c -o OUT ../lib/ctype.c"
        );
        assert_eq!(
            file.read,
            [
                "../lib/ctype.c",
                "../include/linux/ctype.h",
                "include/generated/bounds.h"
            ]
        );
        assert_eq!(parse(&CMD.replace("ccache gcc", "clang")), None);
        assert_eq!(parse(&CMD.replace("ctype.c", "ctype.S")), None);
        // One file three times, each with an output of its own.
        let text = makefile(&[file], 3);
        assert!(
            text.starts_with(
                "all: out/0.o out/1.o out/2.o\nout/warm.o:\n\tgcc -Wp,-MMD,out/warm.o.d"
            )
        );
        assert_eq!(text.matches("-c -o out/").count(), 4);
    }

    #[test]
    fn the_guest_gets_the_files_where_the_commands_look_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let objects = folder.path().join("linux/objects");
        let write = |path: &str, text: &str| {
            let path = objects.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let load = Load::new(Workload::KernelBuild);
        let why = needed(&load, None).unwrap_err().to_string();
        assert!(why.contains("source instead of image"), "{why}");
        write("lib/.ctype.o.cmd", "cmd_lib/ctype.o := clang\n");
        let why = needed(&load, Some(&objects)).unwrap_err();
        assert!(why.to_string().contains("gcc compiled from C"), "{why}");
        write("lib/.ctype.o.cmd", CMD);
        for path in ["../lib/ctype.c", "../include/linux/ctype.h"] {
            write(path, "int x;\n");
        }
        write("include/generated/bounds.h", "");
        write("include/generated/autoconf.h", "");
        let found = needed(&load, Some(&objects)).unwrap().files;
        for name in [
            "lab/build/lib/ctype.c",
            "lab/build/include/linux/ctype.h",
            "lab/build/objects/include/generated/autoconf.h",
            "lab/build/objects/locklab.mk",
        ] {
            assert!(found.iter().any(|(found, _)| found == name), "{name}");
        }
    }
}
