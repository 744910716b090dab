//! The comparison as plain text of at most 72 columns, to be pasted into a
//! mail. Exists so that a mailing list can read what the JSON holds. Must never
//! show less than was requested without stating how much was left out.

use crate::elf::Class;
use crate::footprint::{CallSites, Footprint, HotPair, InlinedCopies, Pair};
use locklab_document::page::Page;
use locklab_document::{COLUMNS, Column, Table, render as forms};

/// Holds the columns that a name has of a line, behind three columns of figures.
const NAME: usize = COLUMNS - 35;

/// Returns the report, with at most `rows` rows in each table of symbols.
pub fn render(footprint: &Footprint, rows: usize) -> String {
    let mut report = Report {
        page: Page::default(),
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
    let page = &mut report.page;
    if let Some(why) = uncounted(footprint) {
        page.heading(&format!("By bloat-o-meter: not counted, because {why}"));
    } else {
        let rules = &footprint.bloat_o_meter.rules;
        page.heading(&format!("By bloat-o-meter, with the rules of {rules}:"));
        let totals = footprint.bloat_o_meter.totals.to_string();
        totals.lines().for_each(|line| page.paragraph(line));
    }
    report.notes(&footprint.notes);
    report.page.finish()
}

/// Returns why symbols cannot be compared, if a side has none: a change of 0.00 %
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
    page: Page,
    rows: usize,
}

impl Report {
    /// Writes a table of figures under these titles and widths, and of what they are.
    fn table(&mut self, figures: &[(&str, usize)], name: &str, rows: Vec<Vec<String>>) {
        let mut columns: Vec<Column> = figures.iter().map(|(t, w)| Column::new(*t, *w)).collect();
        // An empty column is a second space before the names.
        columns.extend([Column::words("", 0), Column::words(name, 0)]);
        let table = forms::table(&Table::new(columns, rows));
        for line in table.lines() {
            self.page.row(line, line.chars().count());
        }
    }

    /// Writes both sides of each row, and their difference.
    fn pairs(&mut self, name: &str, pairs: &[(Pair, String)], left: usize, noun: &str) {
        let row = |(pair, name): &(Pair, String)| {
            let (old, new) = (pair.baseline.to_string(), pair.experiment.to_string());
            let delta = signed(pair.delta());
            vec![old, new, delta, String::new(), shortened(name, NAME)]
        };
        let mut rows: Vec<_> = pairs.iter().map(row).collect();
        rows.extend(rest(3, left, noun));
        let figures = [("baseline", 10), ("experiment", 11), ("delta", 10)];
        self.table(&figures, name, rows);
    }

    /// Writes the pairs that differ, as many as are shown.
    fn changed(&mut self, name: &str, changed: &[(Pair, String)], noun: &str) {
        let shown = changed.len().min(self.rows);
        self.pairs(name, &changed[..shown], changed.len() - shown, noun);
    }

    fn heading(&mut self, f: &Footprint) {
        let title = "Footprint: the sizes of two builds, old against new";
        self.page.paragraph(title);
        let sides = [
            ("Baseline", &f.inputs.baseline),
            ("Experiment", &f.inputs.experiment),
        ];
        self.page.facts(&sides.map(|(side, input)| {
            let images = match input.images {
                1 => String::new(),
                images => format!(" ({images} ELF images)"),
            };
            let path = shortened_left(&input.path, COLUMNS - 12 - images.len());
            (side.to_owned(), format!("{path}{images}"))
        }));
    }

    fn totals(&mut self, f: &Footprint) {
        self.page.heading("Bytes");
        let mut pairs = Vec::new();
        if uncounted(f).is_none() {
            pairs.push((f.text, "function symbols, as nm counts".to_owned()));
        }
        let classes = f.classes.iter().filter(|c| c.bytes != Pair::default());
        pairs.extend(classes.map(|c| (c.bytes, format!("sections: {}", c.class.name()))));
        self.pairs("", &pairs, 0, "");
    }

    fn sections(&mut self, f: &Footprint) {
        let is_loaded = |class| !matches!(class, Class::Debug | Class::Other);
        let sections = f.sections.iter().filter(|s| is_loaded(s.class));
        let changed = differing(sections.map(|s| (s.bytes, s.name.clone())));
        if !changed.is_empty() {
            self.page.heading("Loaded sections that changed");
            self.changed("section", &changed, "sections");
        }
    }

    fn symbols(&mut self, f: &Footprint) {
        if let Some(why) = uncounted(f) {
            let text = format!("Functions: not compared, because {why}");
            return self.page.heading(&text);
        }
        let c = f.changes;
        self.page.heading(&format!(
            "Functions: {} added, {} removed, {} grown, {} shrunk, {} of the same size",
            c.added, c.removed, c.grown, c.shrunk, c.same
        ));
        let changed = differing(f.symbols.iter().map(|s| (s.bytes, s.name.clone())));
        if !changed.is_empty() {
            self.changed("function", &changed, "functions");
        }
        let data = f.data.iter();
        let data = data.map(|s| (s.bytes, format!("{} ({})", s.name, s.class.name())));
        let changed = differing(data);
        if !changed.is_empty() {
            let (some, all) = (changed.len(), f.data.len());
            self.page
                .heading(&format!("Data: {some} of {all} symbols changed"));
            self.changed("symbol", &changed, "symbols");
        }
    }

    fn files(&mut self, f: &Footprint) {
        // The end of a path is more informative than its start.
        let path = |path: &str| shortened_left(path, NAME);
        let changed = differing(f.files.iter().map(|s| (s.bytes, path(&s.path))));
        if !changed.is_empty() {
            let (some, all) = (changed.len(), f.files.len());
            self.page
                .heading(&format!("Files: functions changed in {some} of {all}"));
            self.changed("file", &changed, "files");
        }
    }

    fn inlined(&mut self, inlined: &InlinedCopies) {
        let is_changed = |p: Pair| p.delta() != 0;
        let functions = inlined.functions.iter();
        let changed: Vec<_> = functions
            .filter(|f| is_changed(f.call_sites) || is_changed(f.bytes))
            .collect();
        self.page.heading(&format!(
            "Inlined copies, from debug information: {} of {} functions changed",
            changed.len(),
            inlined.functions.len()
        ));
        if changed.is_empty() {
            return;
        }
        let above = format!("{:>20}{:>22}", "call sites", "bytes of code");
        self.page.row(&above, above.len());
        let shown = changed.iter().take(self.rows);
        let mut rows: Vec<_> = shown
            .map(|f| {
                let (calls, bytes) = (f.call_sites, f.bytes);
                let figures = [
                    calls.baseline,
                    calls.experiment,
                    bytes.baseline,
                    bytes.experiment,
                ];
                let mut row: Vec<_> = figures.iter().map(ToString::to_string).collect();
                let name = shortened(&f.name, COLUMNS - 52);
                row.extend([signed(bytes.delta()), String::new(), name]);
                row
            })
            .collect();
        rows.extend(rest(5, changed.len().saturating_sub(self.rows), ""));
        let figures = ["old", "new", "old", "new", "delta"];
        let mut widths = [9; 5];
        widths[0] = 10;
        let figures: Vec<_> = figures.into_iter().zip(widths).collect();
        self.table(&figures, "function", rows);
    }

    fn call_sites(&mut self, sites: &CallSites) {
        self.page.heading(&format!(
            "Inlined copies of {} and their bytes",
            shortened(&sites.function, 36)
        ));
        // Asked for by name, so all of them are shown.
        let rows = sites.sites.iter().flat_map(|site| {
            let caller = match &site.through {
                Some(through) => format!("{}, through {through}", site.caller),
                None => site.caller.clone(),
            };
            let place = format!("{}:{}", site.file, site.line);
            let (old, new) = (site.copies.baseline, site.copies.experiment);
            let delta = signed(site.bytes.delta());
            let row = [old.to_string(), new.to_string(), delta, String::new()];
            let (caller, place) = (shortened(&caller, 44), shortened_left(&place, 44));
            let empty = [const { String::new() }; 4];
            [(row, caller), (empty, place)].map(|(row, name)| [&row[..], &[name]].concat())
        });
        let figures = [("old", 8), ("new", 7), ("delta", 9)];
        let name = "caller, and the line of the call";
        self.table(&figures, name, rows.collect());
    }

    fn hot(&mut self, hot: &HotPair) {
        let percent = hot.share * 100.0;
        self.page.heading(&format!(
            "Hot text: the lines with {percent} % of executed instructions"
        ));
        let (old, new) = (hot.text.baseline, hot.text.experiment);
        let pair = |baseline, experiment, name: &str| {
            let pair = Pair {
                baseline,
                experiment,
            };
            (pair, name.to_owned())
        };
        let lines = format!("lines of {} bytes", hot.line_bytes);
        let (bytes, touched) = ("bytes executed at all", "lines executed at all");
        let pairs = [
            pair(old.bytes, new.bytes, "bytes"),
            pair(old.lines, new.lines, &lines),
            pair(old.executed_bytes, new.executed_bytes, bytes),
            pair(old.executed_lines, new.executed_lines, touched),
            pair(old.executed, new.executed, "instructions counted"),
            (hot.unplaced, "counted outside the file".to_owned()),
        ];
        self.pairs("", &pairs, 0, "");
    }

    fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            self.page.heading("Notes");
        }
        for note in notes.iter().take(self.rows) {
            self.page.item(note);
        }
        let left = notes.len().saturating_sub(self.rows);
        if left > 0 {
            self.page.item(&format!("... and {left} more notes"));
        }
    }
}

/// Returns those of which the two sides differ.
fn differing(pairs: impl Iterator<Item = (Pair, String)>) -> Vec<(Pair, String)> {
    pairs.filter(|(pair, _)| pair.delta() != 0).collect()
}

/// Returns the row that says how many rows were left out behind so many figures.
fn rest(figures: usize, left: usize, noun: &str) -> Option<Vec<String>> {
    let mut row = vec![String::new(); figures + 1];
    row.push(format!("... and {left} more {noun}"));
    (left > 0).then_some(row)
}

fn signed(delta: i64) -> String {
    match delta {
        0 => String::from("0"),
        delta => format!("{delta:+}"),
    }
}

/// Returns the start of a name that is too long for its column.
fn shortened(name: &str, room: usize) -> String {
    let name = printable(name);
    if name.chars().count() <= room {
        return name;
    }
    let kept: String = name.chars().take(room.saturating_sub(3)).collect();
    kept + "..."
}

/// Returns the end of a path that is too long for its column.
fn shortened_left(path: &str, room: usize) -> String {
    let path = printable(path);
    let chars = path.chars().count();
    if chars <= room {
        return path;
    }
    let kept = path.chars().skip(chars - room.saturating_sub(3));
    format!("...{}", kept.collect::<String>())
}

/// Returns a name that can be printed: a file may hold anything in its names, an escape
/// sequence among others.
fn printable(name: &str) -> String {
    let is_plain = |c: char| !c.is_control();
    name.chars()
        .map(|c| if is_plain(c) { c } else { '?' })
        .collect()
}
