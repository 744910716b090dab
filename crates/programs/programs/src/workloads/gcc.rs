//! `gcc`: compiling one large preprocessed C file, a free stand-in for
//! 502.gcc_r: a large user program with a large footprint of its own.
//!
//! Install: gcc. A run is one `gcc -O2 -c`. User time decides, because it is
//! what the compiler does. The file is generated, the same each time, or given
//! as `path`. Invalid: an exit status other than 0.

use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_host::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

pub(super) struct Gcc {
    functions: u64,
    path: Option<PathBuf>,
}

impl Gcc {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            functions: spec.scaled(500, 1),
            path: spec.path.clone(),
        }
    }
}

/// Returns C of many functions that differ: switches, loops, structures, calls.
fn source(functions: u64) -> String {
    let mut text = String::from(
        "typedef unsigned long word;
struct item { word key, value; struct item *next; };
struct table { struct item *slots[64]; word count; };
",
    );
    for n in 0..functions {
        let (a, b, c) = (n * 2_654_435_761 % 251 + 3, n % 7 + 2, n * 31 % 61 + 1);
        let _ = writeln!(
            text,
            "static word look_{n}(struct table *t, word key) {{
  struct item *i = t->slots[(key * {a}u) % 64];
  for (; i; i = i->next)
    if (i->key == key + {c}) return i->value ^ {b};
  return t->count;
}}
word step_{n}(struct table *t, const word *code, word length) {{
  word stack[16] = {{0}}, top = 0, sum = {c};
  for (word at = 0; at < length; at++) {{
    switch (code[at] % {cases}) {{",
            cases = b + 9
        );
        for case in 0..(b + 8) {
            let _ = writeln!(
                text,
                "    case {case}: sum = sum * {} + stack[(top + {case}) % 16]; \
                 stack[top++ % 16] = look_{n}(t, sum >> {}); break;",
                a + case,
                case % 13 + 1
            );
        }
        let _ = writeln!(
            text,
            "    default: for (word k = 0; k < 8; k++) sum += stack[k] * code[(at + k) % length];
    }}
  }}"
        );
        if n > 0 {
            let _ = writeln!(
                text,
                "  if (sum % {a} == 0) sum ^= step_{}(t, code, length / 2);",
                n - 1
            );
        }
        text.push_str("  return sum;\n}\n");
    }
    text
}

impl Workload for Gcc {
    fn about(&self) -> String {
        match &self.path {
            Some(path) => format!("gcc -O2 -c of {}.", path.display()),
            None => format!(
                "gcc -O2 -c of a made-up C file of {} functions.",
                2 * self.functions
            ),
        }
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        vec![("CPUs".into(), launcher.cpus_text())]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::lower("user", "s", Source::Process)]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            program("gcc", "gcc", subject)?;
        }
        match &self.path {
            Some(path) if !path.is_file() => {
                Err(Error::Usage(format!("there is no file {}", path.display())))
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let folder = launcher.fresh("gcc")?;
        let input = match &self.path {
            Some(path) => std::path::absolute(path)
                .map_err(|e| Fault::Unrunnable(format!("{}: {e}", path.display())))?,
            None => {
                // This is the suffix of preprocessed files.
                let file = folder.join("input.i");
                std::fs::write(&file, source(self.functions)).map_err(|e| {
                    Fault::Unrunnable(format!("cannot write {}: {e}", file.display()))
                })?;
                file
            }
        };
        let arguments = [
            "-O2".into(),
            "-w".into(),
            "-c".into(),
            input.into_os_string(),
            "-o".into(),
            folder.join("output.o").into_os_string(),
        ];
        let cpus = launcher.cpus.clone();
        let done = launcher.run(subject, "gcc", &arguments, &cpus)?;
        done.check()?;
        Ok(done.figures())
    }
}
