//! The front-end model as a backend: a program in QEMU's user mode with
//! the plugin that counts instructions, L1i misses and what else a front end loses.
//!
//! The environment is fixed (variables, addresses, random numbers, name), so
//! that a single-threaded program gives the same counts each time. Figures
//! are a model's, and must be printed as such.

mod blocks;
pub mod change;
pub mod places;
pub mod report;
#[cfg(test)]
mod tests;

use crate::output::excerpt;
use locklab_frontend::icache::{Geometry, Prefetch};
use locklab_frontend::{Frontend, Processor};
use locklab_host::error::Error;
use locklab_host::process::{Ended, Launch, Trouble, find};
use places::Places;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A modelled cache and the origin of its geometry.
#[derive(Clone, Debug)]
pub struct Model {
    /// Bytes, ways and line size of the level-one instruction cache.
    pub geometry: Geometry,
    /// Says whether a miss brings in the next line too.
    pub next_line: bool,
    /// The origin of the geometry.
    pub source: &'static str,
    plugin: PathBuf,
    front: Option<Front>,
    sampled: bool,
    hashes: bool,
}

/// The processor whose front end is modelled.
#[derive(Clone, Debug)]
struct Front {
    processor: Processor,
    /// Holds the argument for the plugin: the processor's name, or its file.
    argument: String,
}

/// Returns the processor of this machine.
///
/// # Errors
/// [`Error::Usage`] if its front end is not known; the sentence names it.
pub fn processor_of_this_machine() -> Result<Processor, Error> {
    #[cfg(target_arch = "x86_64")]
    {
        let cpuid = raw_cpuid::CpuId::new();
        let vendor = cpuid.get_vendor_info();
        if let (Some(vendor), Some(version)) = (vendor, cpuid.get_feature_info()) {
            let (family, model) = (version.family_id(), version.model_id());
            let known = Processor::identified(vendor.as_str(), family.into(), model.into());
            return known.ok_or_else(|| {
                let names = Processor::names().collect::<Vec<_>>().join(", ");
                Error::Usage(format!(
                    "the front end of this processor ({}, family {family}, model {model}) is not \
                     known: name one with --processor ({names})",
                    vendor.as_str()
                ))
            });
        }
    }
    Err(Error::Usage(
        "this machine does not say what its processor is: name one with --processor".into(),
    ))
}

/// The result of an emulated execution.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The JSON document that the plugin wrote.
    pub report: Value,
    /// Says how the program ended.
    pub ended: Ended,
    /// Says where the front end lost cycles, if it was modelled.
    pub places: Option<Places>,
}

impl Counted {
    /// Returns the instructions that were executed.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.report["instructions"].as_u64().unwrap_or(0)
    }

    /// Misses of the L1i.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.report["l1i_misses"].as_u64().unwrap_or(0)
    }
}

/// Returns the geometry of this machine's L1i, if it reports one.
#[must_use]
pub fn geometry_of_this_machine(root: &Path) -> Option<Geometry> {
    let caches = root.join("sys/devices/system/cpu/cpu0/cache");
    for index in 0..8 {
        let folder = caches.join(format!("index{index}"));
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        if read("level")? != "1" || read("type")? != "Instruction" {
            continue;
        }
        let size = read("size")?;
        let kib: u32 = size.strip_suffix('K')?.parse().ok()?;
        let number = |name: &str| read(name)?.parse::<u32>().ok();
        return Geometry::new(
            kib.checked_mul(1024)?,
            number("ways_of_associativity")?,
            number("coherency_line_size")?,
        )
        .ok();
    }
    None
}

impl Model {
    /// Returns a model with the geometry of this machine, except for the values given.
    ///
    /// # Errors
    /// If the geometry is impossible, or the plugin is not built.
    pub fn new(
        size: Option<u32>,
        ways: Option<u32>,
        line: Option<u32>,
        next_line: bool,
    ) -> Result<Self, Error> {
        let here = geometry_of_this_machine(Path::new("/"));
        let base = here.unwrap_or_default();
        let given = size.is_some() || ways.is_some() || line.is_some();
        let geometry = Geometry::new(
            size.unwrap_or(base.size()),
            ways.unwrap_or(base.ways()),
            line.unwrap_or(base.line()),
        )
        .map_err(|e| Error::Usage(e.to_string()))?;
        Ok(Self {
            geometry,
            next_line,
            source: match (given, here) {
                (true, _) => "as given",
                (false, Some(_)) => "this machine's",
                (false, None) => "a usual one, since this machine does not say",
            },
            plugin: locklab_host::libraries::qemu_plugin()?,
            front: None,
            sampled: false,
            hashes: false,
        })
    }

    /// Models the front end of a processor too: that of this name or of this file, or, without
    /// either, that of this machine. The L1i is then that of the processor, unless `given`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the processor is not known, its file is wrong, or its micro-op cache
    /// cannot have lines of this length.
    pub fn with_processor(mut self, name: Option<&str>, given: bool) -> Result<Self, Error> {
        let (processor, argument) = match name {
            None => {
                let processor = processor_of_this_machine()?;
                let known = Processor::names()
                    .find(|name| Processor::named(name).as_ref() == Ok(&processor))
                    .unwrap_or_default();
                (processor, known.to_owned())
            }
            Some(file) if file.ends_with(".toml") => {
                let text = std::fs::read_to_string(file)
                    .map_err(|e| Error::Usage(format!("cannot read {file}: {e}")))?;
                let processor =
                    Processor::parse(&text).map_err(|e| Error::Usage(format!("{file}: {e}")))?;
                let path = std::path::absolute(file)
                    .map_err(|e| Error::Usage(format!("cannot read {file}: {e}")))?;
                (processor, path.display().to_string())
            }
            Some(name) => {
                let processor = Processor::named(name).map_err(|e| Error::Usage(e.to_string()))?;
                (processor, name.to_owned())
            }
        };
        if name.is_some() && !given {
            self.geometry = Geometry::new(
                processor.l1i_size.value as u32,
                processor.l1i_ways.value as u32,
                self.geometry.line(),
            )
            .map_err(|e| Error::Usage(e.to_string()))?;
            self.source = "the processor's";
        }
        Frontend::new(&processor, self.geometry, Prefetch::None)
            .map_err(|e| Error::Usage(e.to_string()))?;
        self.front = Some(Front {
            processor,
            argument,
        });
        Ok(self)
    }

    /// Simulates a sample after the first ten million instructions, where a front
    /// end is modelled: several times faster, and the report has the error that it makes.
    #[must_use]
    pub fn sampled(mut self, sampled: bool) -> Self {
        self.sampled = sampled;
        self
    }

    /// Predicts conditional branches by other hashes beside the usual one, where a front end is
    /// modelled: what a change of layout does to them is chance in part, and takes a band.
    #[must_use]
    pub fn with_other_hashes(mut self, hashes: bool) -> Self {
        self.hashes = hashes;
        self
    }

    /// Returns the processor whose front end is modelled.
    #[must_use]
    pub fn processor(&self) -> Option<&Processor> {
        self.front.as_ref().map(|front| &front.processor)
    }

    /// Runs `program` with `arguments` in `folder` under the model; its
    /// output goes to `log` (`.out`, `.err`), the execution counts of its
    /// blocks to `hot`.
    ///
    /// # Errors
    /// If QEMU is missing, the program is of a kind that it cannot
    /// run, or it left no report.
    pub fn count(
        &self,
        program: &str,
        arguments: &[String],
        folder: &Path,
        log: &Path,
        hot: Option<&Path>,
        (limit, interrupt): (Duration, &AtomicBool),
    ) -> Result<Counted, Error> {
        let file = find(program, &[]).ok_or_else(|| {
            Error::Failed(format!(
                "there is no program '{program}', or it may not be executed"
            ))
        })?;
        let launch = Launch {
            program: file.clone(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: [
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("HOME", "/"),
                ("LC_ALL", "C"),
                ("TZ", "UTC"),
                ("PYTHONHASHSEED", "0"),
            ]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
            folder: folder.to_owned(),
            cpus: Vec::new(),
            fixed: true,
        };
        let map = log.with_extension("map");
        let blocks = hot.map(|hot| (hot, map.as_path()));
        let read = |path: &Path| {
            let text = std::fs::read_to_string(path);
            text.map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())))
        };
        let name = Path::new(program).file_name().unwrap_or_default();
        let ended = self
            .emulated(&launch, name, log, blocks)?
            .run(log, limit, interrupt)
            .map_err(|trouble| match trouble {
                Trouble::Interrupted => {
                    Error::Interrupted("interrupted; there are no counts".into())
                }
                other => Error::Failed(other.to_string()),
            })?;
        let report = report(program, log, &ended)?;
        if let Some(hot) = hot {
            let text = blocks::in_the_file(&read(hot)?, &file, &read(&map)?)?;
            std::fs::write(hot, text)
                .map_err(|e| Error::Failed(format!("cannot write {}: {e}", hot.display())))?;
        }
        let places = self
            .processor()
            .map(|processor| {
                let sites = read(&log.with_extension("sites"))?;
                places::places(&sites, &file, &read(&map)?, processor)
            })
            .transpose()?;
        Ok(Counted {
            report,
            ended,
            places,
        })
    }

    /// Returns the launch of `launch` under the model: what it executes by itself is
    /// counted into the file that [`report()`] reads for the same `log`, what it
    /// starts is not. It is called `name`, wherever it lies. `blocks` are the
    /// files for the execution counts of its blocks and for where they lay.
    ///
    /// # Errors
    /// If QEMU is missing, a path has a comma, or the program is of a kind that
    /// QEMU cannot run.
    pub fn emulated(
        &self,
        launch: &Launch,
        name: &OsStr,
        log: &Path,
        blocks: Option<(&Path, &Path)>,
    ) -> Result<Launch, Error> {
        // QEMU does not follow symbolic links such as those in
        // /etc/alternatives to a script, so they are resolved first.
        let qemu = qemu_for(&launch.program)?;
        let qemu = find(qemu, &[]).ok_or_else(|| {
            Error::Failed(format!(
                "{qemu} is not installed; apt-get install qemu-user"
            ))
        })?;
        let counts = log.with_extension("json");
        let mut paths = vec![&*self.plugin, counts.as_path()];
        paths.extend(blocks.map(|(hot, _)| hot));
        let argument = self.front.as_ref().map(|front| Path::new(&front.argument));
        paths.extend(argument);
        if paths
            .iter()
            .any(|path| path.as_os_str().as_encoded_bytes().contains(&b','))
        {
            return Err(Error::Failed(
                "QEMU takes no path with a comma; use another folder".into(),
            ));
        }
        let mut plugin = format!(
            "{},out={},size={},ways={},line={}",
            self.plugin.display(),
            counts.display(),
            self.geometry.size(),
            self.geometry.ways(),
            self.geometry.line()
        );
        if self.next_line {
            plugin += ",prefetch=next-line";
        }
        if self.sampled && self.front.is_some() {
            plugin += ",sample=on";
        }
        if self.hashes && self.front.is_some() {
            plugin += ",hashes=on";
        }
        let mut arguments: Vec<OsString> = vec!["-seed".into(), "1".into()];
        let sites = log.with_extension("sites");
        let map = log.with_extension("map");
        if let Some(front) = &self.front {
            plugin += &format!(",processor={},sites={}", front.argument, sites.display());
        }
        if let Some((hot, _)) = blocks {
            plugin += &format!(",hot={}", hot.display());
        }
        let map = match blocks {
            Some((_, map)) => Some(map),
            None => self.front.as_ref().map(|_| map.as_path()),
        };
        if let Some(map) = map {
            arguments.extend(["-d".into(), blocks::LOG.into(), "-D".into(), map.into()]);
        }
        arguments.extend(["-0".into(), name.to_owned()]);
        let program = launch.program.clone();
        arguments.extend(["-plugin".into(), plugin.into(), program.into()]);
        arguments.extend(launch.arguments.iter().cloned());
        Ok(Launch {
            program: qemu,
            arguments,
            ..launch.clone()
        })
    }
}

/// Returns the plugin's report on a program that has ended.
///
/// # Errors
/// If the program left no counts, because it failed or became another program
/// by exec, or the report cannot be read.
pub fn report(program: &str, log: &Path, ended: &Ended) -> Result<Value, Error> {
    let read = |end| std::fs::read_to_string(log.with_extension(end)).unwrap_or_default();
    let text = read("json");
    if text.is_empty() {
        let program = program.to_owned();
        let said = read("err");
        return Err(match ended.failure() {
            Some(_) if said.lines().any(refuses_plugins) => Error::Failed(format!(
                "QEMU did not take the plugin, which is tested with QEMU 7.2 and 10.0; it said: {}",
                excerpt(&said)
            )),
            Some(status) => Error::Failed(format!(
                "{program} left no counts ({status}); it said: {}",
                excerpt(&said)
            )),
            None => Error::Failed(format!(
                "{program} left no counts: it became another program by exec; give that one"
            )),
        });
    }
    serde_json::from_str(&text)
        .map_err(|e| Error::Failed(format!("the plugin's report cannot be read: {e}")))
}

/// Returns whether a line of QEMU says that it takes no plugins, or not this one.
fn refuses_plugins(line: &str) -> bool {
    line.starts_with("qemu") && line.contains("plugin")
}

/// Returns the QEMU that runs a file.
fn qemu_for(file: &Path) -> Result<&'static str, Error> {
    let mut head = [0; 20];
    let read = std::fs::File::open(file).and_then(|mut f| f.read(&mut head));
    let length = read.map_err(|e| Error::Failed(format!("cannot read {}: {e}", file.display())))?;
    if head.starts_with(b"#!") {
        return Err(Error::Failed(format!(
            "{} is a script; give its interpreter and then the script",
            file.display()
        )));
    }
    if length < 20 || !head.starts_with(b"\x7fELF") {
        return Err(Error::Failed(format!(
            "{} is no ELF program",
            file.display()
        )));
    }
    match u16::from_le_bytes([head[18], head[19]]) {
        62 => Ok("qemu-x86_64"),
        3 => Ok("qemu-i386"),
        183 => Ok("qemu-aarch64"),
        243 => Ok("qemu-riscv64"),
        other => Err(Error::Failed(format!(
            "{} is for a machine (ELF number {other}) whose QEMU is not known here",
            file.display()
        ))),
    }
}
