// SPDX-License-Identifier: GPL-2.0-or-later
//! The plugin's arguments: `-plugin FILE,out=PATH,size=32768,...`.

use std::path::PathBuf;

use locklab_frontend::icache::{Geometry, Prefetch};
use locklab_frontend::{Frontend, Processor};

use crate::sampling::Lengths;

/// The plugin's settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) geometry: Geometry,
    pub(crate) prefetch: Prefetch,
    /// Count between markers only, not the whole program.
    pub(crate) markers: bool,
    /// Names the file of the report.
    pub(crate) out: PathBuf,
    /// Names the file of the executions of each block.
    pub(crate) hot: Option<PathBuf>,
    /// The processor whose front end is modelled beside the L1i.
    pub(crate) processor: Option<Processor>,
    /// Names the file of the events of each block.
    pub(crate) sites: Option<PathBuf>,
    /// Simulate a part of the blocks only, of these lengths.
    pub(crate) sample: Option<Lengths>,
    /// Predict conditional branches by other hashes too.
    pub(crate) hashes: bool,
    /// Report the counts of this vCPU alone.
    pub(crate) vcpu: Option<usize>,
}

impl Arguments {
    /// Reads `name=value` arguments. `system` is whether a whole machine is
    /// emulated: without markers its firmware, boot and kernel cannot be
    /// distinguished from what is to be measured, so there they are required.
    ///
    /// # Errors
    /// A message for the user that names the argument: unknown, not of the form
    /// `name=value`, or with a value out of range; or that `out` is missing, or
    /// that markers are off for a whole machine.
    pub(crate) fn parse<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        system: bool,
    ) -> Result<Self, String> {
        let (mut size, mut ways, mut line) = (None, None, None);
        let (mut prefetch, mut markers) = (Prefetch::None, system);
        let (mut out, mut hot, mut sites, mut processor) = (None, None, None, None);
        let (mut sample, mut hashes, mut vcpu) = (None, false, None);
        for argument in arguments {
            let Some((name, value)) = argument.split_once('=') else {
                return Err(format!(
                    "argument '{argument}' is not of the form name=value"
                ));
            };
            match name {
                "size" => size = Some(number(name, value)?),
                "ways" => ways = Some(number(name, value)?),
                "line" => line = Some(number(name, value)?),
                "prefetch" => {
                    prefetch = match value {
                        "none" | "off" => Prefetch::None,
                        "next-line" => Prefetch::NextLine,
                        _ => return Err(format!("prefetch={value}: give none or next-line")),
                    }
                }
                "markers" => markers = switch(name, value)?,
                "hashes" => hashes = switch(name, value)?,
                "vcpu" => vcpu = Some(number(name, value)? as usize),
                "sample" => {
                    sample = match value {
                        "on" => Some(Lengths::default()),
                        "off" => None,
                        _ => Some(Lengths::parse(value).ok_or_else(|| {
                            format!(
                                "sample={value}: give on, off, or EXACT/PERIOD/WARM-UP/INTERVAL \
                                 in instructions, the last two shorter than a period"
                            )
                        })?),
                    }
                }
                "out" => out = Some(path(name, value)?),
                "hot" => hot = Some(path(name, value)?),
                "processor" => processor = Some(read_processor(value)?),
                "sites" => sites = Some(path(name, value)?),
                _ => {
                    return Err(format!(
                        "unknown argument '{name}': there are out, size, ways, line, prefetch, \
                         markers, hot, processor, sites, sample, hashes and vcpu"
                    ));
                }
            }
        }
        if system && !markers {
            return Err(
                "markers=off is for single programs: in a whole machine the firmware and \
                        the boot would be counted too"
                    .into(),
            );
        }
        if sites.is_some() && (processor.is_none() || markers) {
            return Err(
                "sites=PATH needs processor=NAME and markers=off: events of blocks come from a \
                 whole program"
                    .into(),
            );
        }
        if sample.is_some() && (processor.is_none() || markers) {
            return Err(
                "sample=on needs processor=NAME and markers=off: the sample is of a whole program"
                    .into(),
            );
        }
        if hashes && processor.is_none() {
            return Err("hashes=on needs processor=NAME, whose predictor they are for".into());
        }
        if vcpu.is_some() && !system {
            return Err("vcpu=N is for a whole machine: a program has threads instead".into());
        }
        let default = Geometry::default();
        let usual =
            processor
                .as_ref()
                .map_or((default.size(), default.ways()), |processor: &Processor| {
                    (
                        processor.l1i_size.value as u32,
                        processor.l1i_ways.value as u32,
                    )
                });
        let geometry = Geometry::new(
            size.unwrap_or(usual.0),
            ways.unwrap_or(usual.1),
            line.unwrap_or(default.line()),
        )
        .map_err(|e| e.to_string())?;
        if let Some(processor) = &processor {
            Frontend::new(processor, geometry, prefetch).map_err(|e| e.to_string())?;
        }
        Ok(Arguments {
            geometry,
            prefetch,
            markers,
            out: out.ok_or("argument out=PATH is missing: the report needs a file")?,
            hot,
            processor,
            sites,
            sample,
            hashes,
            vcpu,
        })
    }
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{name}={value}: give on or off")),
    }
}

fn number(name: &str, value: &str) -> Result<u32, String> {
    value
        .parse()
        .map_err(|_| format!("{name}={value}: give a whole number"))
}

/// Returns the processor of this name, or of this file if it ends in `.toml`.
fn read_processor(value: &str) -> Result<Processor, String> {
    if !value.ends_with(".toml") {
        return Processor::named(value).map_err(|e| e.to_string());
    }
    let text = std::fs::read_to_string(value).map_err(|e| format!("cannot read {value}: {e}"))?;
    Processor::parse(&text).map_err(|e| format!("{value}: {e}"))
}

/// Returns an absolute path, for the program may change its folder before it ends.
fn path(name: &str, value: &str) -> Result<PathBuf, String> {
    std::path::absolute(value).map_err(|e| format!("{name}={value}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str, system: bool) -> Result<Arguments, String> {
        Arguments::parse(arguments.split_terminator(','), system)
    }

    #[test]
    fn defaults() {
        let program = parse("out=/tmp/o", false).unwrap();
        assert_eq!(program.geometry, Geometry::default());
        assert_eq!((program.markers, program.prefetch), (false, Prefetch::None));
        assert_eq!((program.out, program.hot), (PathBuf::from("/tmp/o"), None));
        assert!(parse("out=/tmp/o", true).unwrap().markers);
    }

    #[test]
    fn everything_given() {
        let all = "size=65536,ways=4,line=32,prefetch=next-line,markers=on,out=/a,hot=/b";
        let all = parse(all, false).unwrap();
        assert_eq!(all.geometry, Geometry::new(65536, 4, 32).unwrap());
        assert_eq!((all.markers, all.prefetch), (true, Prefetch::NextLine));
        assert_eq!((all.out, all.hot), ("/a".into(), Some("/b".into())));
    }

    #[test]
    fn errors_say_what_to_do() {
        for (arguments, system, said) in [
            ("", false, "out=PATH is missing"),
            ("out", false, "name=value"),
            ("out=o,size=32K", false, "size=32K: give a whole number"),
            ("out=o,ways=3", false, "choose a size"),
            ("out=o,line=48", false, "power of two"),
            ("out=o,colour=red", false, "unknown argument 'colour'"),
            ("out=o,markers=maybe", false, "on or off"),
            ("out=o,prefetch=maybe", false, "next-line"),
            ("out=o,markers=off", true, "whole machine"),
            ("out=", false, "out="),
            ("out=o,processor=486", false, "zen-3"),
            ("out=o,processor=no.toml", false, "cannot read no.toml"),
            ("out=o,processor=zen-3,line=32", false, "shorter than"),
            ("out=o,sites=s", false, "needs processor=NAME"),
            ("out=o,sample=some", false, "give on, off, or"),
            ("out=o,sample=on", false, "needs processor=NAME"),
            ("out=o,hashes=on", false, "needs processor=NAME"),
            ("out=o,hashes=some", false, "on or off"),
            ("out=o,vcpu=0", false, "whole machine"),
            ("out=o,vcpu=last", true, "whole number"),
            ("out=o,sample=on,processor=zen-3", true, "markers=off"),
            (
                "out=o,sites=s,processor=zen-3,markers=on",
                false,
                "markers=off",
            ),
        ] {
            let error = parse(arguments, system).unwrap_err();
            assert!(error.contains(said), "{arguments}: {error}");
        }
    }
}
