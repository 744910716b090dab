//! Reads a machine from TOML.
//!
//! A figure is written `{ value = 51, source = "..." }` or `{ value = 140,
//! assumption = "...", band = [120, 160] }`; a whole table may have a
//! `source` for those of its figures that are plain numbers. An error names
//! file, line and key and says what is allowed. There is no other way to make
//! a machine, so the files that ship with Locklab are checked like any other.

use crate::check::{Access, Benchmark, Check, Operation, State};
use crate::distance::Distance;
use crate::machine::{
    Arbitration, Arch, BUILTIN, FIGURES, Figure, FigureKey, FigureKind, Machine, Origin,
};
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Machine {
    /// Returns one of the machines that ship with Locklab.
    pub fn builtin(name: &str) -> Option<Self> {
        let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
        let file = format!("machines/{name}.toml");
        Some(Self::parse(&file, text).expect("a test reads each of them"))
    }

    /// Returns a built-in machine by its name, or any machine by the path of its file.
    ///
    /// # Errors
    /// [`Error`] if there is neither a built-in machine of this name nor
    /// such a file, or the file has a fault.
    pub fn named(name: &str) -> Result<Self, Error> {
        if let Some(machine) = Self::builtin(name) {
            return Ok(machine);
        }
        if name.ends_with(".toml") || name.contains('/') {
            return Self::read(Path::new(name));
        }
        let known: Vec<_> = BUILTIN.iter().map(|(name, _)| *name).collect();
        Err(Error::Usage(format!(
            "there is no machine called `{name}`; there are {}, and any machine file by its path",
            known.join(", ")
        )))
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read,
    /// [`Error::Usage`] if it has a fault.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| {
            Error::Usage(format!(
                "cannot read the machine file {}: {source}",
                path.display()
            ))
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Parses the text of a file called `file`.
    ///
    /// # Errors
    /// [`Error::Usage`] for the first fault.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let fault = |at: usize, what: String| {
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            Error::Usage(format!("{file}:{line}: {what}"))
        };
        let root = DeTable::parse(text).map_err(|error| {
            fault(
                error.span().map_or(0, |span| span.start),
                format!("not TOML: {}", error.message()),
            )
        })?;
        Reader {
            root: root.get_ref(),
            end: text.trim_end().len(),
        }
        .machine()
        .map_err(|(at, what)| fault(at, what))
    }
}

/// The table of what `machine check --locks` found.
pub const CHECKED: &str = "checked";

/// A fault: where in the text, and what.
type Fault = (usize, String);
type Value<'a> = Spanned<DeValue<'a>>;

struct Reader<'a> {
    root: &'a DeTable<'a>,
    /// The position at which something missing is reported.
    end: usize,
}

impl Reader<'_> {
    fn machine(&self) -> Result<Machine, Fault> {
        self.known_keys()?;
        let mut figures = BTreeMap::new();
        let mut places = BTreeMap::new();
        let mut defaulted = Vec::new();
        for kind in FIGURES {
            let (figure, at) = self.figure(kind, &mut defaulted)?;
            figures.insert(kind.key, figure);
            places.insert(kind.key, at);
        }
        let (arbitration, arbitration_origin) = self.arbitration()?;
        let mut machine = Machine {
            name: self.text("name")?,
            description: self.text("description")?,
            arch: self.arch()?,
            arbitration,
            arbitration_origin,
            figures,
            defaulted,
            checks: self.checks()?,
            checked: None,
        };
        machine.checked = self.checked(&machine.digest())?;
        match machine.contradiction() {
            None => Ok(machine),
            Some((key, what)) => Err((places[&key], what)),
        }
    }

    /// Checks that all keys are known: a misspelt key must not silently mean the default.
    fn known_keys(&self) -> Result<(), Fault> {
        for (table, value) in self.root {
            let name = table.get_ref().as_ref();
            if ["name", "description", "arch", "check", CHECKED].contains(&name) {
                continue;
            }
            let prefix = format!("{name}.");
            let mut keys: Vec<_> = FIGURES
                .iter()
                .filter_map(|kind| kind.key.name().strip_prefix(&prefix))
                .collect();
            let DeValue::Table(inner) = value.get_ref() else {
                return Err((
                    table.span().start,
                    format!(
                        "`{name}` is no key of a machine file; at the top are name, description, arch and the tables {}",
                        tables()
                    ),
                ));
            };
            if keys.is_empty() {
                return Err((
                    table.span().start,
                    format!(
                        "`[{name}]` is no table of a machine file; there are {}",
                        tables()
                    ),
                ));
            }
            keys.push("source");
            if name == "directory" {
                keys.push("arbitration");
            }
            for (key, _) in inner {
                if !keys.contains(&key.get_ref().as_ref()) {
                    return Err((
                        key.span().start,
                        format!(
                            "`{name}.{}` is no key of a machine file; `[{name}]` has {}",
                            key.get_ref(),
                            keys.join(", ")
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn find(&self, table: &str, key: &str) -> Option<&Value<'_>> {
        self.root.get(table)?.get_ref().get(key)
    }

    fn text(&self, key: &str) -> Result<String, Fault> {
        match self.root.get(key) {
            None => Err((self.end, format!("`{key}` is missing; it is a text"))),
            Some(value) => string(key, value),
        }
    }

    fn arch(&self) -> Result<Arch, Fault> {
        let value = self.root.get("arch");
        match value.and_then(|value| value.get_ref().as_str()) {
            Some("x86_64") => Ok(Arch::X86_64),
            Some("aarch64") => Ok(Arch::Aarch64),
            _ => Err((
                value.map_or(self.end, |value| value.span().start),
                "`arch` must be \"x86_64\" or \"aarch64\"".to_owned(),
            )),
        }
    }

    fn arbitration(&self) -> Result<(Arbitration, Origin), Fault> {
        let allowed = || {
            let names: Vec<_> = Arbitration::ALL.iter().map(|(name, _)| *name).collect();
            format!(
                "`directory.arbitration` must be {{ value = ..., assumption or source = \"...\" }} with a value of {}",
                names.join(", ")
            )
        };
        let Some(entry) = self.find("directory", "arbitration") else {
            return Ok((
                Arbitration::Random,
                Origin::Assumption("the default: no vendor says".to_owned()),
            ));
        };
        let found = entry
            .get_ref()
            .get("value")
            .and_then(|value| value.get_ref().as_str())
            .and_then(|name| Arbitration::ALL.iter().find(|(known, _)| *known == name));
        let Some((_, arbitration)) = found else {
            return Err((entry.span().start, allowed()));
        };
        Ok((*arbitration, origin("directory.arbitration", entry)?))
    }

    /// Returns what a check of every lock found, if that was with these figures.
    fn checked(&self, digest: &str) -> Result<Option<String>, Fault> {
        let text = |key: &str| -> Result<Option<String>, Fault> {
            let entry = self.find(CHECKED, key);
            entry
                .map(|entry| string(&format!("{CHECKED}.{key}"), entry))
                .transpose()
        };
        let [found, figures] = [text("found")?, text("figures")?];
        Ok(found.filter(|_| figures.as_deref() == Some(digest)))
    }

    /// Returns the published microbenchmarks.
    fn checks(&self) -> Result<Vec<Check>, Fault> {
        let Some(value) = self.root.get("check") else {
            return Ok(Vec::new());
        };
        let Some(entries) = value.get_ref().as_array() else {
            return Err((
                value.span().start,
                "`check` must be tables, each `[[check]]`".to_owned(),
            ));
        };
        entries.iter().map(check).collect()
    }

    fn figure(
        &self,
        kind: &FigureKind,
        defaulted: &mut Vec<FigureKey>,
    ) -> Result<(Figure, usize), Fault> {
        let (table, key) = kind
            .key
            .name()
            .split_once('.')
            .expect("every key has a table");
        let Some(entry) = self.find(table, key) else {
            return match kind.default {
                Some(value) => {
                    defaulted.push(kind.key);
                    let figure = Figure {
                        value,
                        origin: Origin::Assumption("the format's default".to_owned()),
                        band: None,
                    };
                    Ok((figure, self.end))
                }
                None => Err((
                    self.root
                        .get(table)
                        .map_or(self.end, |table| table.span().start),
                    format!(
                        "`{}` is missing: {} ({} to {}{}{})",
                        kind.key,
                        kind.meaning,
                        kind.allowed.0,
                        kind.allowed.1,
                        if kind.unit.is_empty() { "" } else { " " },
                        kind.unit
                    ),
                )),
            };
        };
        let at = entry.span().start;
        let check = |place: &Value<'_>| -> Result<f64, Fault> {
            let value = number(kind.key.name(), place)?;
            kind.check(value)
                .map_err(|what| (place.span().start, what.into()))?;
            Ok(value)
        };
        let DeValue::Table(fields) = entry.get_ref() else {
            // A plain number under a table with a source.
            let value = check(entry)?;
            let source = self.find(table, "source").ok_or_else(|| {
                (
                    at,
                    format!("`{}` does not say where it comes from: write {{ value = {value}, source = \"...\" }} or assumption = \"...\", or give `[{table}]` a source", kind.key),
                )
            })?;
            let origin = Origin::Source(string(&format!("{table}.source"), source)?);
            return Ok((
                Figure {
                    value,
                    origin,
                    band: None,
                },
                at,
            ));
        };
        for (field, _) in fields {
            if !["value", "source", "assumption", "band"].contains(&field.get_ref().as_ref()) {
                return Err((
                    field.span().start,
                    format!(
                        "`{}.{}` is no key: a figure has value, source or assumption, and band",
                        kind.key,
                        field.get_ref()
                    ),
                ));
            }
        }
        let value = fields
            .get("value")
            .ok_or_else(|| (at, format!("`{}` has no value", kind.key)))?;
        let value = check(value)?;
        let band = match fields.get("band") {
            None => None,
            Some(band) => {
                let ends = band.get_ref().as_array().filter(|ends| ends.len() == 2);
                let Some(ends) = ends else {
                    return Err((
                        band.span().start,
                        format!("`{}.band` must be [lowest, highest]", kind.key),
                    ));
                };
                let (low, high) = (check(&ends[0])?, check(&ends[1])?);
                if !(low <= value && value <= high) {
                    return Err((
                        band.span().start,
                        format!(
                            "`{}` is {value}, outside its own band of {low} to {high}",
                            kind.key
                        ),
                    ));
                }
                Some((low, high))
            }
        };
        let figure = Figure {
            value,
            origin: origin(kind.key.name(), entry)?,
            band,
        };
        Ok((figure, at))
    }
}

/// Returns one published microbenchmark.
fn check(entry: &Value<'_>) -> Result<Check, Fault> {
    const KEYS: [&str; 9] = [
        "benchmark",
        "operation",
        "distance",
        "state",
        "threads",
        "ns",
        "fraction",
        "source",
        "chose",
    ];
    let at = entry.span().start;
    let DeValue::Table(fields) = entry.get_ref() else {
        return Err((at, "`check` must be tables, each `[[check]]`".to_owned()));
    };
    for (field, _) in fields {
        if !KEYS.contains(&field.get_ref().as_ref()) {
            return Err((
                field.span().start,
                format!(
                    "`check.{}` is no key; a check has {}",
                    field.get_ref(),
                    KEYS.join(", ")
                ),
            ));
        }
    }
    let text = |key: &str| -> Result<String, Fault> {
        let missing = || (at, format!("`check.{key}` is missing; it is a text"));
        string(
            &format!("check.{key}"),
            fields.get(key).ok_or_else(missing)?,
        )
    };
    let count = || -> Result<usize, Fault> {
        let value = fields
            .get("threads")
            .ok_or_else(|| (at, "`check.threads` is missing".to_owned()))?;
        match number("check.threads", value)? {
            n if n >= 1.0 && n.fract() == 0.0 => Ok(n as usize),
            _ => Err((
                value.span().start,
                "`check.threads` must be a whole number of threads".to_owned(),
            )),
        }
    };
    let one_of = |key: &str, names: &[&str]| -> Result<usize, Fault> {
        let found = text(key)?;
        names.iter().position(|name| *name == found).ok_or_else(|| {
            let place = fields.get(key).map_or(at, |value| value.span().start);
            let what = format!(
                "`check.{key}` is \"{found}\"; there are {}",
                names.join(", ")
            );
            (place, what)
        })
    };
    let distance = || {
        const ALL: [Distance; 3] = [Distance::Cluster, Distance::Socket, Distance::Remote];
        one_of("distance", &["cluster", "socket", "remote"]).map(|n| ALL[n])
    };
    let access = |access| -> Result<Benchmark, Fault> {
        const ALL: [State; 3] = [State::Modified, State::Shared, State::Memory];
        let state = one_of("state", &["modified", "shared", "memory"]).map(|n| ALL[n])?;
        Ok(Benchmark::Access {
            access,
            state,
            distance: distance()?,
        })
    };
    let names = [
        "ping-pong",
        "load",
        "store",
        "compare-and-swap",
        "contended-fetch-add",
        "contended-compare-and-swap",
        "ticket",
        "test-and-test-and-set",
        "fixed-work",
        "own-time",
    ];
    let operation = || {
        let names = Operation::ALL.map(|(name, _)| name);
        one_of("operation", &names).map(|n| Operation::ALL[n].1)
    };
    let benchmark = match one_of("benchmark", &names)? {
        0 => Benchmark::PingPong {
            distance: distance()?,
        },
        1 => access(Access::Load)?,
        2 => access(Access::Store)?,
        3 => access(Access::CompareAndSwap)?,
        4 => Benchmark::FetchAdd { threads: count()? },
        5 => Benchmark::CompareAndSwap { threads: count()? },
        6 => Benchmark::Ticket { threads: count()? },
        7 => Benchmark::TestAndTestAndSet { threads: count()? },
        8 => Benchmark::FixedWork {
            operation: operation()?,
            threads: count()?,
        },
        _ => Benchmark::OwnTime {
            operation: operation()?,
            threads: count()?,
        },
    };
    let fraction = benchmark.is_fraction();
    let (key, other) = if fraction {
        ("fraction", "ns")
    } else {
        ("ns", "fraction")
    };
    if let Some(value) = fields.get(other) {
        return Err((
            value.span().start,
            format!("`check.{other}` is not what this benchmark gives; write `{key}`"),
        ));
    }
    let published = fields.get(key).ok_or_else(|| {
        (
            at,
            format!("`check.{key}` is missing; it is what was published"),
        )
    })?;
    let figure = number(&format!("check.{key}"), published)?;
    if figure <= 0.0 || (fraction && figure > 1.0) {
        let allowed = if fraction { "from 0 to 1" } else { "above 0" };
        return Err((
            published.span().start,
            format!("`check.{key}` is {figure}; it must be {allowed}"),
        ));
    }
    let chose = match fields.get("chose") {
        None => None,
        Some(value) => {
            let key = string("check.chose", value)?;
            if key.parse::<FigureKey>().is_err() {
                return Err((
                    value.span().start,
                    format!("`check.chose` is \"{key}\", which is no figure of a machine"),
                ));
            }
            Some(key)
        }
    };
    Ok(Check {
        benchmark,
        ns: figure,
        source: text("source")?,
        chose,
    })
}

fn tables() -> String {
    let mut names: Vec<_> = FIGURES.iter().map(|kind| kind.key.table()).collect();
    names.dedup();
    names.join(", ")
}

fn string(key: &str, value: &Value<'_>) -> Result<String, Fault> {
    match value.get_ref().as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err((
            value.span().start,
            format!("`{key}` must be a text that is not empty"),
        )),
    }
}

fn number(key: &str, value: &Value<'_>) -> Result<f64, Fault> {
    let text = match value.get_ref() {
        DeValue::Integer(integer) => integer.as_str().replace('_', ""),
        DeValue::Float(float) => float.as_str().replace('_', ""),
        _ => String::new(),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err((value.span().start, format!("`{key}` must be a number"))),
    }
}

fn origin(key: &str, entry: &Value<'_>) -> Result<Origin, Fault> {
    match (
        entry.get_ref().get("source"),
        entry.get_ref().get("assumption"),
    ) {
        (Some(source), None) => Ok(Origin::Source(string(&format!("{key}.source"), source)?)),
        (None, Some(why)) => Ok(Origin::Assumption(string(
            &format!("{key}.assumption"),
            why,
        )?)),
        _ => Err((
            entry.span().start,
            format!("`{key}` must have either a source or an assumption, and not both"),
        )),
    }
}
