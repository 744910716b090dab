//! `call-sites`: what inlining unlock costs a user program of many call
//! sites: the report on inlining spin_unlock() in miniature, without a kernel.
//!
//! Install: gcc, lld, qemu-user. The program has as many functions as call
//! sites; each takes a lock, does a little of its own, and releases it. The
//! baseline calls one unlock, the experiment has a copy in each function (a
//! byte store, a preemption count and its check, as a preemptible kernel has
//! them). Each pair is linked in a random order of its functions, the same
//! for both, so that layout and inlining are separate effects. A run
//! links, measures native throughput, which decides, and counts instructions
//! and L1i misses under the model. Invalid: a link, a run or a count that
//! failed.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::icache::Model;
use crate::launcher::Launcher;
use crate::subject::{Inline, Subject};
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::{INSTRUCTIONS_MODELLED, L1I_MISSES, TEXT, THROUGHPUT};
use locklab_host::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(super) struct CallSites {
    sites: u64,
    native_calls: u64,
    modelled_calls: u64,
    path: Option<PathBuf>,
}

impl CallSites {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        Self {
            sites: spec.threads.unwrap_or(256).into(),
            native_calls: spec.scaled(10_000_000, 1),
            modelled_calls: spec.scaled(200_000, 1),
            path: spec.path.clone(),
        }
    }

    fn folder(&self, launcher: &Launcher) -> PathBuf {
        launcher
            .scratch()
            .join(format!("call-sites-{}", self.sites))
    }

    /// Returns the object of one side, compiled once a session.
    fn object(&self, inline: Inline, launcher: &mut Launcher) -> Result<PathBuf, Fault> {
        let folder = self.folder(launcher);
        let object = folder.join(format!("{}.o", inline.word()));
        if object.is_file() {
            return Ok(object);
        }
        let io = |e: std::io::Error| Fault::Unrunnable(format!("{}: {e}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(io)?;
        let source_file = match &self.path {
            Some(path) => std::path::absolute(path).map_err(io)?,
            None => {
                let file = folder.join("program.c");
                std::fs::write(&file, source(self.sites)).map_err(io)?;
                file
            }
        };
        let value = u8::from(inline == Inline::Always);
        let arguments = [
            "-O2".into(),
            "-w".into(),
            "-ffunction-sections".into(),
            "-fno-pie".into(),
            format!("-DLOCKLAB_INLINE_UNLOCK={value}"),
            "-c".into(),
            source_file.display().to_string(),
            "-o".into(),
            object.display().to_string(),
        ];
        launcher.tool("gcc", &arguments, &[])?;
        Ok(object)
    }

    fn link(&self, object: &Path, seed: u64, launcher: &mut Launcher) -> Result<PathBuf, Fault> {
        let file = object.with_extension("elf");
        let arguments = [
            "-static".into(),
            "-no-pie".into(),
            "-fuse-ld=lld".into(),
            // 0 would mean no shuffling.
            format!("-Wl,--shuffle-sections=.text.*={}", seed % 0x7fff_ffff + 1),
            object.display().to_string(),
            "-o".into(),
            file.display().to_string(),
        ];
        launcher.tool("gcc", &arguments, &[])?;
        Ok(file)
    }
}

/// Returns C of `sites` functions, each with one lock and one unlock.
fn source(sites: u64) -> String {
    let mut text = String::from(
        r#"#include <stdio.h>
#include <stdlib.h>
#include <time.h>
struct lock { unsigned char held; };
static struct lock the_lock;
static unsigned long table[64];
int preempt_count = 1;
volatile int need_resched;
__attribute__((noinline, cold)) void schedule(void) { need_resched = 0; }
__attribute__((noinline)) void lock_slow(struct lock *l) {
  while (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE)) ;
}
/* Out of line on both sides, as in the kernel. */
__attribute__((noinline)) void acquire(struct lock *l) {
  preempt_count++;
  if (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE)) lock_slow(l);
}
#if LOCKLAB_INLINE_UNLOCK
static inline __attribute__((always_inline))
#else
__attribute__((noinline))
#endif
void release(struct lock *l) {
  __atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
  __asm__ volatile("" ::: "memory");
  if (--preempt_count == 0 && need_resched) schedule();
}
"#,
    );
    for n in 0..sites {
        let (a, b) = (n * 7 % 64, n * 2_654_435_761 % 1021 + 3);
        let _ = writeln!(
            text,
            "__attribute__((noinline)) void site_{n}(unsigned long x) {{ acquire(&the_lock); \
             table[{a}] += x * {b}u ^ {n}u; table[(x + {n}) % 64] ^= table[{a}] >> {}; \
             release(&the_lock); }}",
            n % 13 + 1
        );
    }
    text += "static void (*const sites[])(unsigned long) = {";
    // Each once, in an order that is not that of the file: an odd step goes
    // through a power of two, and what lies beyond is passed over.
    let whole = sites.next_power_of_two();
    let step = (whole * 5 / 8) | 1;
    for n in (0..whole).map(|n| n * step % whole).filter(|n| *n < sites) {
        let _ = write!(text, "site_{n},");
    }
    let _ = write!(
        text,
        r#"}};
int main(int argc, char **argv) {{
  unsigned long calls = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000, done = 0;
  struct timespec a, b;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
  while (done < calls)
    for (unsigned n = 0; n < {sites}u && done < calls; n++, done++) sites[n](done);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
  double seconds = (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9;
  printf("throughput %f\n", done / (seconds > 0 ? seconds : 1e-9));
  return table[3] == 1;
}}
"#
    );
    text
}

impl Workload for CallSites {
    fn about(&self) -> String {
        let what = match &self.path {
            Some(path) => path.display().to_string(),
            None => format!("A program of {} call sites of unlock", self.sites),
        };
        format!(
            "{what}, linked anew in a random order of its functions for each pair; {} calls \
             native, {} under the model.",
            self.native_calls, self.modelled_calls
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        let model = match Model::new(None, None, None, false) {
            Ok(model) => format!("{} ({})", model.geometry, model.source),
            Err(why) => why.to_string(),
        };
        vec![
            ("L1i model".into(), model),
            (
                "CPU".into(),
                locklab_host::topology::ranges(&launcher.cpu(0)),
            ),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::higher(THROUGHPUT, "calls/CPU s", Source::Output),
            Metric::lower(L1I_MISSES, "", Source::Model),
            Metric::lower(INSTRUCTIONS_MODELLED, "", Source::Model),
            Metric::lower(TEXT, "bytes", Source::File),
        ]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        if subjects[0].inline.is_none() && subjects[1].inline.is_none() {
            return Err(Error::Usage(
                "nothing says what to inline; give --inline 'unlock=never|always' (baseline, then \
                 experiment)"
                    .into(),
            ));
        }
        let usual = Subject::default();
        program("gcc", "gcc", &usual)?;
        program("ld.lld", "lld", &usual)?;
        program("qemu-x86_64", "qemu-user", &usual)?;
        match &self.path {
            Some(path) if !path.is_file() => {
                Err(Error::Usage(format!("there is no file {}", path.display())))
            }
            _ => Ok(Model::new(None, None, None, false).map(|_| ())?),
        }
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let inline = subject.inline.unwrap_or(Inline::Never);
        let object = self.object(inline, launcher)?;
        // The same order for both sides of a pair.
        let file = self.link(&object, launcher.seed, launcher)?;
        let name = file.display().to_string();
        let cpu = launcher.cpu(0);
        let done = launcher.run(subject, &name, &[self.native_calls.to_string()], &cpu)?;
        done.check()?;
        let mut figures = done.figures();
        let throughput = output_metric::find(THROUGHPUT, r"(?m)^throughput ([0-9.]+)$", &done.out)?;
        figures.insert(THROUGHPUT.into(), throughput);

        let model = Model::new(None, None, None, false)?;
        let log = self.folder(launcher).join("model");
        let counted = model
            .count(
                &name,
                &[self.modelled_calls.to_string()],
                &self.folder(launcher),
                &log,
                None,
                (launcher.limit, &launcher.interrupt),
            )
            .map_err(|e| Fault::Failed(e.to_string()))?;
        if let Some(status) = counted.ended.failure() {
            return Err(Fault::Failed(format!("under the model: {status}")));
        }
        figures.insert(L1I_MISSES.into(), counted.misses() as f64);
        figures.insert(INSTRUCTIONS_MODELLED.into(), counted.instructions() as f64);
        let options = locklab_footprint::Options {
            inlined: false,
            ..locklab_footprint::Options::default()
        };
        // The object, without what a static C library adds.
        let footprint = locklab_footprint::compare(&object, &object, &options)
            .map_err(|e| Fault::Unrunnable(e.to_string()))?;
        figures.insert(TEXT.into(), footprint.text.baseline as f64);
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn every_site_is_called_once_a_round() {
        for sites in [1, 2, 3, 100, 256] {
            let text = source(sites);
            let table = text.split("sites[])(unsigned long) = {").nth(1).unwrap();
            let table = table.split('}').next().unwrap();
            let mut names: Vec<&str> = table.split(',').filter(|n| !n.is_empty()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len() as u64, sites);
        }
    }
}
