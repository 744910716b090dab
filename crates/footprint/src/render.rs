//! The comparison as plain text of at most 72 columns, to be pasted into a
//! mail. Exists so that a mailing list can read what the JSON holds. Must never
//! show less than was requested without stating how much was left out.

use std::fmt::{Display, Write};

use crate::elf::Class;
use crate::footprint::{CallSites, Footprint, HotPair, InlinedCopies, Pair};

const WIDTH: usize = 72;

/// The report, with at most `rows` rows in each table of symbols.
pub fn render(footprint: &Footprint, rows: usize) -> String {
    let mut report = Report {
        text: String::new(),
        rows,
    };
    report.heading(footprint);
    report.totals(footprint);
    report.sections(footprint);
    report.symbols(footprint);
    report.files(footprint);
    if let Some(inlined) = &footprint.inlined {
        report.inlined(inlined);
        if let Some(sites) = &inlined.call_sites {
            report.call_sites(sites);
        }
    }
    if let Some(hot) = &footprint.hot {
        report.hot(hot);
    }
    if let Some(why) = uncounted(footprint) {
        report.line(&format!("\nAs bloat-o-meter counts: nothing, {why}"));
    } else {
        let rules = &footprint.bloat_o_meter.rules;
        report.line(&format!("\nAs bloat-o-meter counts, rules of {rules}:"));
        report.line(&footprint.bloat_o_meter.totals.to_string());
    }
    report.notes(&footprint.notes);
    report.text
}

/// Why symbols cannot be compared, if a side has none: a change of 0.00 %
/// would say that they were.
fn uncounted(f: &Footprint) -> Option<&'static str> {
    match (f.text.baseline, f.text.experiment) {
        (0, 0) if f.data.is_empty() => Some("neither side has function symbols"),
        (0, 0) => None,
        (0, _) => Some("the baseline has no function symbols"),
        (_, 0) => Some("the experiment has no function symbols"),
        _ => None,
    }
}

struct Report {
    text: String,
    rows: usize,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Three columns of figures, and what they are of.
    fn row(&mut self, figures: [&dyn Display; 3], name: &str) {
        let mut line = String::new();
        // Writing to a string cannot fail.
        for (figure, width) in figures.iter().zip([10, 12, 11]) {
            let _ = write!(line, "{figure:>width$}");
        }
        let room = WIDTH.saturating_sub(line.len() + 2);
        let _ = write!(line, "  {}", shortened(name, room));
        self.line(&line);
    }

    fn figures(&mut self, pair: Pair, name: &str) {
        let delta = signed(pair.delta());
        self.row([&pair.baseline, &pair.experiment, &delta], name);
    }

    fn rest(&mut self, left: usize, what: &str) {
        if left > 0 {
            self.line(&format!("{:33}  ... and {left} more {what}", ""));
        }
    }

    fn heading(&mut self, f: &Footprint) {
        self.line("Footprint: what two builds hold, old against new\n");
        for (side, input) in [
            ("Baseline", &f.inputs.baseline),
            ("Experiment", &f.inputs.experiment),
        ] {
            let images = match input.images {
                1 => String::new(),
                images => format!(" ({images} ELF images)"),
            };
            let room = WIDTH - 12 - images.len();
            let path = shortened_left(&input.path, room);
            self.line(&format!("{side:<12}{path}{images}"));
        }
    }

    fn totals(&mut self, f: &Footprint) {
        self.line("\nBytes");
        self.row([&"baseline", &"experiment", &"delta"], "");
        if uncounted(f).is_none() {
            self.figures(f.text, "function symbols, as nm counts");
        }
        for class in &f.classes {
            if class.bytes != Pair::default() {
                self.figures(class.bytes, &format!("sections: {}", class.class.name()));
            }
        }
    }

    fn sections(&mut self, f: &Footprint) {
        let is_loaded = |class| !matches!(class, Class::Debug | Class::Other);
        let changed: Vec<_> = f
            .sections
            .iter()
            .filter(|s| is_loaded(s.class) && s.bytes.delta() != 0)
            .collect();
        if changed.is_empty() {
            return;
        }
        self.line("\nLoaded sections that changed");
        self.row([&"baseline", &"experiment", &"delta"], "section");
        for section in changed.iter().take(self.rows) {
            self.figures(section.bytes, &section.name);
        }
        self.rest(changed.len().saturating_sub(self.rows), "sections");
    }

    fn symbols(&mut self, f: &Footprint) {
        if let Some(why) = uncounted(f) {
            self.line(&format!("\nFunctions: not compared, {why}"));
            return;
        }
        let c = f.changes;
        self.line(&format!(
            "\nFunctions: {} added, {} removed, {} grown, {} shrunk, {} of the same size",
            c.added, c.removed, c.grown, c.shrunk, c.same
        ));
        let changed: Vec<_> = f.symbols.iter().filter(|s| s.bytes.delta() != 0).collect();
        if !changed.is_empty() {
            self.row([&"baseline", &"experiment", &"delta"], "function");
        }
        for symbol in changed.iter().take(self.rows) {
            self.figures(symbol.bytes, &symbol.name);
        }
        self.rest(changed.len().saturating_sub(self.rows), "functions");

        let changed: Vec<_> = f.data.iter().filter(|s| s.bytes.delta() != 0).collect();
        if changed.is_empty() {
            return;
        }
        self.line(&format!(
            "\nData: {} of {} symbols changed",
            changed.len(),
            f.data.len()
        ));
        self.row([&"baseline", &"experiment", &"delta"], "symbol");
        for symbol in changed.iter().take(self.rows) {
            let name = format!("{} ({})", symbol.name, symbol.class.name());
            self.figures(symbol.bytes, &name);
        }
        self.rest(changed.len().saturating_sub(self.rows), "symbols");
    }

    fn files(&mut self, f: &Footprint) {
        let changed: Vec<_> = f.files.iter().filter(|s| s.bytes.delta() != 0).collect();
        if changed.is_empty() {
            return;
        }
        self.line(&format!(
            "\nFiles: the functions of {} of {} changed",
            changed.len(),
            f.files.len()
        ));
        self.row([&"baseline", &"experiment", &"delta"], "file");
        for file in changed.iter().take(self.rows) {
            // The end of a path is more informative than its start.
            let path = shortened_left(&file.path, WIDTH - 35);
            self.figures(file.bytes, &path);
        }
        self.rest(changed.len().saturating_sub(self.rows), "files");
    }

    fn inlined(&mut self, inlined: &InlinedCopies) {
        let is_changed = |p: Pair| p.delta() != 0;
        let changed: Vec<_> = inlined
            .functions
            .iter()
            .filter(|f| is_changed(f.call_sites) || is_changed(f.bytes))
            .collect();
        self.line(&format!(
            "\nInlined copies, from debug information: {} of {} functions changed",
            changed.len(),
            inlined.functions.len()
        ));
        if changed.is_empty() {
            return;
        }
        self.line(&format!("{:>20}{:>22}", "call sites", "bytes of code"));
        let mut line = String::new();
        for head in ["old", "new", "old", "new", "delta"] {
            let _ = write!(line, "{head:>10}");
        }
        self.line(&format!("{line}  function"));
        for f in changed.iter().take(self.rows) {
            let mut line = String::new();
            for figure in [
                f.call_sites.baseline,
                f.call_sites.experiment,
                f.bytes.baseline,
                f.bytes.experiment,
            ] {
                let _ = write!(line, "{figure:>10}");
            }
            let _ = write!(line, "{:>10}", signed(f.bytes.delta()));
            let room = WIDTH.saturating_sub(line.len() + 2);
            self.line(&format!("{line}  {}", shortened(&f.name, room)));
        }
        let left = changed.len().saturating_sub(self.rows);
        if left > 0 {
            self.line(&format!("{:50}  ... and {left} more", ""));
        }
    }

    fn call_sites(&mut self, sites: &CallSites) {
        self.line(&format!(
            "\nInlined copies of {}, and their bytes",
            shortened(&sites.function, 36)
        ));
        self.line(&format!(
            "{:>8}{:>8}{:>10}  caller, and the line of the call",
            "old", "new", "delta"
        ));
        // Asked for by name, so all of them are shown.
        for site in &sites.sites {
            let line = format!(
                "{:>8}{:>8}{:>10}  ",
                site.copies.baseline,
                site.copies.experiment,
                signed(site.bytes.delta())
            );
            let caller = match &site.through {
                Some(through) => format!("{}, through {through}", site.caller),
                None => site.caller.clone(),
            };
            let room = WIDTH - line.len();
            self.line(&format!("{line}{}", shortened(&caller, room)));
            let place = format!("{}:{}", site.file, site.line);
            self.line(&format!("{:30}{}", "", shortened_left(&place, WIDTH - 30)));
        }
    }

    fn hot(&mut self, hot: &HotPair) {
        let percent = hot.share * 100.0;
        self.line(&format!(
            "\nHot text: holds {percent} % of executed instructions"
        ));
        self.row([&"baseline", &"experiment", &"delta"], "");
        let (old, new) = (hot.text.baseline, hot.text.experiment);
        let mut row = |baseline, experiment, name: &str| {
            let pair = Pair {
                baseline,
                experiment,
            };
            self.figures(pair, name);
        };
        let lines = format!("lines of {} bytes", hot.line_bytes);
        row(old.bytes, new.bytes, "bytes");
        row(old.lines, new.lines, &lines);
        row(
            old.executed_bytes,
            new.executed_bytes,
            "bytes executed at all",
        );
        row(
            old.executed_lines,
            new.executed_lines,
            "lines executed at all",
        );
        row(old.executed, new.executed, "instructions counted");
        row(
            hot.unplaced.baseline,
            hot.unplaced.experiment,
            "counted outside the file",
        );
    }

    fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            self.line("\nNotes");
        }
        for note in notes.iter().take(self.rows) {
            let mut line = String::from("-");
            for word in note.split_whitespace() {
                if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
                    self.line(&line);
                    line = String::from(" ");
                }
                line.push(' ');
                line.push_str(word);
            }
            self.line(&line);
        }
        let left = notes.len().saturating_sub(self.rows);
        if left > 0 {
            self.line(&format!("- ... and {left} more notes"));
        }
    }
}

fn signed(delta: i64) -> String {
    match delta {
        0 => String::from("0"),
        delta => format!("{delta:+}"),
    }
}

/// The start of a name that is too long for its column.
fn shortened(name: &str, room: usize) -> String {
    let name = printable(name);
    if name.chars().count() <= room {
        return name;
    }
    let kept: String = name.chars().take(room.saturating_sub(3)).collect();
    kept + "..."
}

/// The end of a path that is too long for its column.
fn shortened_left(path: &str, room: usize) -> String {
    let path = printable(path);
    let chars = path.chars().count();
    if chars <= room {
        return path;
    }
    let kept = path.chars().skip(chars - room.saturating_sub(3));
    format!("...{}", kept.collect::<String>())
}

/// A file may hold anything in its names, an escape sequence among others.
fn printable(name: &str) -> String {
    let is_plain = |c: char| !c.is_control();
    name.chars()
        .map(|c| if is_plain(c) { c } else { '?' })
        .collect()
}
