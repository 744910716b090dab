//! A page of text that survives a mail: ASCII-friendly lines of 72 columns.
//!
//! Wraps whatever comes from outside (names, reasons, facts about a machine),
//! so that no input makes a line longer.

use textwrap::core::{Fragment, display_width};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, wrap_algorithms};

/// Columns of a text report.
pub const COLUMNS: usize = 72;

/// Lines of a report, none wider than [`COLUMNS`].
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Writes a title and the line under it.
    pub fn title(&mut self, text: &str) {
        let lines = wrap(text);
        let widest = lines.iter().map(|l| display_width(l)).max().unwrap_or(0);
        self.lines(&lines);
        self.line(&"=".repeat(widest));
    }

    /// Writes a heading, with an empty line before it.
    pub fn heading(&mut self, text: &str) {
        self.blank();
        self.lines(&wrap(text));
    }

    /// Writes running text.
    pub fn paragraph(&mut self, text: &str) {
        self.lines(&wrap(text));
    }

    /// Writes one item of a list.
    pub fn item(&mut self, text: &str) {
        self.hanging("- ", text);
    }

    /// Writes `name  value`, the values in one column.
    pub fn facts(&mut self, facts: &[(String, String)]) {
        let name_width = facts
            .iter()
            .map(|(name, _)| display_width(&one_line(name)))
            .max()
            .unwrap_or(0)
            .min(24);
        for (name, value) in facts {
            let name = one_line(name);
            let gap = (name_width + 2).saturating_sub(display_width(&name)).max(2);
            let head = format!("{name}{}", " ".repeat(gap));
            if display_width(&head) > name_width + 2 {
                self.lines(&wrap(&name));
                self.hanging(&" ".repeat(name_width + 2), value);
            } else {
                self.hanging(&head, value);
            }
        }
    }

    /// Writes a line that is known to fit: a row of a table. `width` is what the
    /// reader sees of it, without colours.
    pub fn row(&mut self, line: &str, width: usize) {
        debug_assert!(width <= COLUMNS, "{width}: {line}");
        self.text.push_str(line.trim_end_matches(' '));
        self.text.push('\n');
    }

    /// Writes an empty line, unless there is one already.
    pub fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Returns the page as text, each line ended.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// Writes text with a head before its first line; the others line up with it.
    pub fn hanging(&mut self, head: &str, text: &str) {
        let indent = " ".repeat(display_width(head));
        let options = options().initial_indent(head).subsequent_indent(&indent);
        self.lines(&wrap_with(text, options));
    }

    fn lines(&mut self, lines: &[String]) {
        for line in lines {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// Returns text as lines of a page, with a head before the first; the others line up
/// with it.
#[must_use]
pub fn wrapped(head: &str, text: &str) -> String {
    let mut page = Page::default();
    page.hanging(head, text);
    page.text.truncate(page.text.trim_end().len());
    page.finish()
}

/// Returns a command behind a `begin`, on lines that the shell joins to the same: one that goes
/// on ends as `end` says, and the next begins as `next` says. Every space stays, since
/// the command may quote some. Longer words have a line of their own.
#[must_use]
pub fn continued(begin: &str, command: &str, [end, next]: [&str; 2]) -> String {
    let of = |word| Word { word, end };
    let words: Vec<Word> = command.split_inclusive(' ').map(of).collect();
    let width = |head| (COLUMNS - display_width(head).min(COLUMNS)) as f64;
    let lines = wrap_algorithms::wrap_first_fit(&words, &[width(begin), width(next)]);
    let lines: Vec<String> = lines
        .into_iter()
        .map(|words| words.iter().map(|word| word.word).collect())
        .collect();
    format!("{begin}{}", lines.join(&format!("{end}\n{next}")))
}

/// A word with the spaces behind it, and what stands there if it ends a line.
#[derive(Debug)]
struct Word<'a> {
    word: &'a str,
    end: &'a str,
}

impl Fragment for Word<'_> {
    fn width(&self) -> f64 {
        display_width(self.word) as f64
    }

    fn whitespace_width(&self) -> f64 {
        0.0
    }

    fn penalty_width(&self) -> f64 {
        display_width(self.end) as f64
    }
}

fn wrap(text: &str) -> Vec<String> {
    wrap_with(text, options())
}

fn wrap_with(text: &str, options: Options) -> Vec<String> {
    textwrap::wrap(&one_line(text), options)
        .into_iter()
        .map(|l| l.into_owned())
        .collect()
}

/// Selects first fit and breaks at spaces only, so that a name with hyphens can be
/// copied: the algorithm that looks ahead lets a line grow too long where it
/// finds that prettier.
fn options() -> Options<'static> {
    Options::new(COLUMNS)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
}

/// Returns the text without control characters: a machine's name must not move the cursor.
#[must_use]
pub fn one_line(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| {
            if c.is_control() || c == '\u{2028}' {
                ' '
            } else {
                c
            }
        })
        .collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_line_is_too_long(
            title in ".{0,200}",
            facts in proptest::collection::vec((".{0,90}", "\\PC{0,300}"), 0..6),
            item in "[a-z0-9/_.]{0,300}",
        ) {
            let mut page = Page::default();
            page.title(&title);
            page.facts(&facts);
            page.item(&item);
            page.paragraph(&item);
            for line in page.finish().lines() {
                prop_assert!(display_width(line) <= COLUMNS, "{line}");
            }
        }
    }

    #[test]
    fn a_long_command_is_on_lines_that_the_shell_joins() {
        let words = "db_bench --benchmarks=readwhilewriting --threads=8 --use_existing_db \
                     --num=200000";
        assert_eq!(
            continued("  --baseline '", words, ["'\\", "'"]),
            "  --baseline 'db_bench --benchmarks=readwhilewriting --threads=8 '\\\n\
             '--use_existing_db --num=200000"
        );
        assert_eq!(continued("x ", "a b", ["\\", "  "]), "x a b");
        assert_eq!(continued("x ", "", ["\\", "  "]), "x ");
    }

    proptest! {
        #[test]
        fn every_space_of_a_command_stays(command in "[a-z ]{0,300}") {
            let lines = continued("'", &command, ["'\\", "'"]);
            let joined = lines.replace("'\\\n'", "");
            prop_assert_eq!(joined, format!("'{}", command));
            for line in lines.lines() {
                let long = line.trim_matches(&['\'', '\\'][..]).trim().contains(' ');
                prop_assert!(!long || display_width(line) <= COLUMNS, "{line}");
            }
        }
    }

    #[test]
    fn a_name_is_not_broken_at_its_hyphens() {
        let text = "x ".repeat(30) + "locklab matrix --non-critical 32 mcs-timeout";
        let lines = wrapped("  ", &text);
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(
            lines.ends_with("  matrix --non-critical 32 mcs-timeout"),
            "{lines}"
        );
    }
}
