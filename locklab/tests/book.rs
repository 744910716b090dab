//! Holds the book (`docs/`), the results and the README to the command.
//!
//! A fenced block marked `console` is what a reader types and sees. Each of
//! its lines that starts with `$ locklab` must be a command line that the
//! command accepts. What measures nothing on this machine is also run, the
//! simulations included, and what the book shows of its output must be there.
//! Measured figures cannot be repeated: their page names the day and the
//! processor.
//!
//! `UPDATE_GOLDEN=1 cargo test -p locklab --test suite book::` puts the figures
//! of today in the place of those that have changed; what differs in words as
//! well is left to the author, and the test fails.

use clap::Parser;
use locklab::cli::{Cli, Command};
use locklab::commands::machine::MachineCommand;
use locklab::commands::results::ResultsCommand;
use locklab_published::EXPERIMENTS;
use pulldown_cmark::{CodeBlockKind, Event, Options, Tag, TagEnd, TextMergeStream};
use std::path::{Path, PathBuf};

/// The mark where the book leaves something out.
const LEFT_OUT: &str = "[...]";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns every page of the book and of the results, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let folders = ["docs", "results"].map(|folder| root().join(folder));
    let mut pages: Vec<_> = folders
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|page| root().join(page)))
        .collect();
    pages.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    pages.into_iter().map(read).collect()
}

fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    let parser = pulldown_cmark::Parser::new_ext(text, Options::ENABLE_TABLES);
    TextMergeStream::new(parser)
}

/// One command of a `console` block: its words, and what follows it there.
struct Typed {
    page: String,
    words: Vec<String>,
    shown: String,
}

/// Returns every `$ locklab` of the book.
fn typed() -> Vec<Typed> {
    let mut found = Vec::new();
    for (page, text) in pages() {
        let page = page.strip_prefix(root()).unwrap();
        let page = page.to_string_lossy().into_owned();
        let mut console = false;
        for event in events(&text) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    console = &*language == "console";
                }
                Event::End(TagEnd::CodeBlock) => console = false,
                Event::Text(block) if console => {
                    // A command may go on after a backslash.
                    let block = block.replace("\\\n", " ");
                    for part in block.split("\n$ ").map(|p| p.trim_start_matches("$ ")) {
                        let (line, shown) = part.split_once('\n').unwrap_or((part, ""));
                        let words = shlex::split(line)
                            .unwrap_or_else(|| panic!("{page}: open quotes in: {line}"));
                        let words = after_clone(words);
                        if words.first().is_some_and(|word| word == "locklab") {
                            let (page, shown) = (page.clone(), shown.to_owned());
                            found.push(Typed { page, words, shown });
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns what a reader types who has only cloned the project: that is more.
fn after_clone(words: Vec<String>) -> Vec<String> {
    match words.strip_prefix(&["cargo", "run", "--release", "--"].map(String::from)) {
        Some(rest) => [&["locklab".to_owned()], rest].concat(),
        None => words,
    }
}

/// Returns whether its output is the same wherever it runs, and soon there.
fn is_repeatable(cli: &Cli, words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|w| w == word);
    match &cli.command {
        Command::Locks(_) | Command::Footprint(_) => true,
        Command::Results(results) => matches!(results.command, ResultsCommand::Schema { .. }),
        Command::Machine(machine) => !matches!(machine.command, MachineCommand::Fit { .. }),
        Command::Verify(_) => !has("--mutants"),
        // Not the locks of a kernel, whose source may not be here.
        Command::Matrix(_) | Command::Rank(_) => {
            cli.common.dry_run || has("--on") && !words.iter().any(|w| w.starts_with("kernel:"))
        }
        Command::Reproduce(_) => cli.common.dry_run || is_simulated(words),
        _ => cli.common.dry_run,
    }
}

/// Returns whether all experiments that `reproduce` names are simulated, and not all
/// that there are.
fn is_simulated(words: &[String]) -> bool {
    let known = |name: &String| EXPERIMENTS.iter().any(|(known, ..)| known == name);
    words.len() > 2 && words[2..].iter().all(known)
}

#[test]
fn every_command_of_the_book_is_one() {
    let typed = typed();
    assert!(typed.len() >= 20, "{} commands found", typed.len());
    for Typed { page, words, .. } in typed {
        if let Err(error) = Cli::try_parse_from(&words) {
            assert!(!error.use_stderr(), "{page}: {}\n{error}", words.join(" "));
        }
    }
}

#[test]
fn what_the_book_shows_is_what_the_command_prints() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut ran, mut wrong) = (0, Vec::new());
    let mut folders: Vec<(String, tempfile::TempDir)> = Vec::new();
    for Typed { page, words, shown } in typed() {
        let Ok(cli) = Cli::try_parse_from(&words) else {
            continue;
        };
        if !is_repeatable(&cli, &words) {
            continue;
        }
        let line = words.join(" ");
        // A page's commands use what those before them made.
        if folders.last().is_none_or(|(of, _)| *of != page) {
            folders.push((page.clone(), tempfile::tempdir().unwrap()));
        }
        let folder = folders.last().unwrap().1.path();
        let needs_compiler = words.iter().any(|word| word.ends_with(".c"));
        if matches!(cli.command, Command::Footprint(_)) && !compile_what_the_book_compares(folder)
            || needs_compiler && !has_compiler()
        {
            println!("skipped: no C compiler for {page}: {line}");
            continue;
        }
        let output = assert_cmd::Command::cargo_bin("locklab")
            .unwrap()
            .args(&words[1..])
            .current_dir(folder)
            .env("XDG_DATA_HOME", folder)
            .env("XDG_CACHE_HOME", folder)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{page}: {line}\n{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut rest = &*printed;
        for piece in shown
            .split(LEFT_OUT)
            .map(|piece| piece.trim_matches('\n'))
            .filter(|piece| !piece.trim().is_empty())
        {
            if let Some(at) = rest.find(piece) {
                rest = &rest[at + piece.len()..];
            } else if let Some(now) = update.then(|| of_today(piece, rest)).flatten() {
                put(&page, piece, &now);
            } else {
                wrong.push(format!(
                    "{page}: {line}\ndoes not print (any more):\n{piece}\nbut:\n{rest}"
                ));
            }
        }
        ran += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(ran >= 15, "{ran} commands ran");
}

fn has_compiler() -> bool {
    let compiler = std::process::Command::new("cc").arg("--version").output();
    compiler.is_ok_and(|output| output.status.success())
}

/// Returns the lines of an output that differ from these in figures and signs only.
fn of_today(piece: &str, printed: &str) -> Option<String> {
    let words = |line: &str| -> String {
        let is_word = |c: &char| c.is_alphabetic() && *c != 'm';
        let letters: String = line.chars().filter(is_word).collect();
        format!("{letters} {}", line.split_whitespace().count())
    };
    let wanted: Vec<String> = piece.lines().map(words).collect();
    let lines: Vec<&str> = printed.lines().collect();
    let fits = |found: &&[&str]| {
        found
            .iter()
            .map(|line| words(line))
            .eq(wanted.iter().cloned())
    };
    let found = lines.windows(wanted.len()).find(fits)?;
    Some(found.join("\n"))
}

/// Puts a part of a page in the place of another.
fn put(page: &str, old: &str, new: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replacen(old, new, 1)).unwrap();
}

/// Returns the two programs of the book's footprint, from the files that it shows.
fn compile_what_the_book_compares(folder: &Path) -> bool {
    let text = std::fs::read_to_string(root().join("docs/footprint.md")).unwrap();
    let mut is_c = false;
    let mut sources = Vec::new();
    for event in events(&text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                is_c = &*language == "c";
            }
            Event::Text(block) if is_c => sources.push(block.into_string()),
            Event::End(TagEnd::CodeBlock) => is_c = false,
            _ => {}
        }
    }
    let [source] = &sources[..] else {
        panic!("the page shows one C file, not {}", sources.len());
    };
    std::fs::write(folder.join("unlock.c"), source).unwrap();
    ["never", "always"].iter().all(|inline| {
        std::process::Command::new("cc")
            .args(["-O2", "-g", &format!("-DINLINE_{inline}"), "-o", inline])
            .arg("unlock.c")
            .current_dir(folder)
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// The README has the scores of the page on accuracy, which a test of the published figures
/// holds, and that of locks that sleep from the results.
#[test]
fn the_readme_has_the_scores_of_the_results() {
    let page = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let row = |page: &str, start: &str, number: usize| -> Vec<String> {
        let row = page
            .lines()
            .filter(|line| line.starts_with(start))
            .nth(number);
        let words = row
            .unwrap_or_else(|| panic!("no row {start}"))
            .split_whitespace();
        words.map(str::to_owned).collect()
    };
    let evaluated = row(&page("docs/accuracy.md"), "evaluated-only", 0);
    let [_, direction, _, _, factor, ..] = &evaluated[..] else {
        panic!("the scores have other columns: {evaluated:?}");
    };
    let direction: f64 = direction.parse().unwrap();
    // Informing figures come first, then those that only evaluate, then locks that sleep.
    let sleeping = row(&page("results/simulator.md"), "all figures", 2);
    let readme = page("README.md");
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        format!("the direction of {direction:.0} % of the published figures"),
        format!("a median error of a factor of {factor}"),
        format!("of mutexes that sleep [{} %]", sleeping[3]),
    ] {
        assert!(readme.contains(&sentence), "not in README.md: {sentence}");
    }
}

/// The README is read in a few minutes, and the chapter on the model checker is
/// for users: what they do not need stands elsewhere.
#[test]
fn the_first_pages_are_short() {
    let page = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let lines = page("README.md").lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
    let words = page("docs/verify.md").split_whitespace().count();
    assert!(words <= 2_000, "verify.md has {words} words");
}

/// Holds the line of a page that has `mark` to what is counted, or writes it there.
fn assert_line(page: &str, mark: &str, line: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let old = text.lines().find(|old| old.contains(mark));
    let old = old.unwrap_or_else(|| panic!("{page} has no line with '{mark}'"));
    if old != line && std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(path, text.replace(old, line)).unwrap();
    }
    assert_eq!(old, line, "{page}; UPDATE_GOLDEN=1 writes it");
}

/// The README says how many locks there are, by the list of `locklab locks`.
#[test]
fn the_number_of_locks_is_that_of_the_list() {
    let all = locklab_native::subject::all();
    let theirs = all.iter().filter(|lock| lock.peer).count();
    let line = format!(
        "- {} locks, from test-and-set to the queued spinlock, written from papers, and {} of \
         libraries.",
        all.len() - theirs,
        theirs
    );
    assert_line("README.md", "locks, from test-and-set", &line);
}

/// A table repeats figures of the console blocks that are its evidence; both
/// must change together.
#[test]
fn tables_have_the_figures_of_their_evidence() {
    let page = |name: &str| std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    let (choosing, reports) = (page("choosing.md"), page("reproduce.md"));
    let sections: Vec<&str> = choosing.split("\n### ").skip(1).collect();
    let mut checked = 0;
    for row in choosing.lines().filter(|line| line.contains("| S [")) {
        let (_, evidence) = row.split_once("| S [").unwrap();
        let (number, after) = evidence.split_once("](").unwrap();
        let section = sections
            .iter()
            .find(|s| s.starts_with(&format!("{number}. ")));
        let section = *section.unwrap_or_else(|| panic!("no evidence {number}"));
        // The last of them is on another page.
        let other = if section.contains("](reproduce.md)") {
            &*reports
        } else {
            ""
        };
        let figures = after.split([' ', ',', ';', ')', '|']);
        for figure in figures.filter(|f| f.contains('.') && f.parse::<f64>().is_ok()) {
            let shown = section.contains(figure) || other.contains(figure);
            assert!(
                shown,
                "choosing.md: evidence {number} does not show {figure}: {row}"
            );
            checked += 1;
        }
    }
    let (table, blocks) = reports.split_once("## Do it yourself").unwrap();
    for line in blocks.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, theirs, ours, _, "%"] = fields[..]
            && theirs.parse::<f64>().is_ok()
        {
            assert!(
                table.contains(ours),
                "reproduce.md: the table lacks {ours}: {line}"
            );
            checked += 1;
        }
    }
    assert!(checked > 8, "{checked} figures checked");
}

/// Returns the anchors that mdBook and GitHub give to the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut heading = None;
    for event in events(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), _) => all.extend(heading.take()),
            (Event::Text(part) | Event::Code(part), Some(text)) => {
                let part = part.to_lowercase().replace(' ', "-");
                let kept = |c: &char| c.is_alphanumeric() || "-_".contains(*c);
                text.extend(part.chars().filter(kept));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn every_relative_link_leads_somewhere() {
    for (page, text) in pages() {
        for event in events(&text) {
            let (Event::Start(Tag::Link { dest_url, .. })
            | Event::Start(Tag::Image { dest_url, .. })) = event
            else {
                continue;
            };
            if dest_url.contains("://") {
                continue;
            }
            let (file, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: no {dest_url}", page.display());
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let known = anchors(&text).iter().any(|known| known == anchor);
                assert!(known, "{}: no heading {dest_url}", page.display());
            }
        }
    }
}

/// A miss of the simulator that no experiment could settle would be an excuse.
#[test]
fn each_miss_of_the_simulator_names_what_would_settle_it() {
    let chapter = std::fs::read_to_string(root().join("results/simulator.md")).unwrap();
    let (_, misses) = chapter.split_once("### What it misses").unwrap();
    let (misses, _) = misses.split_once("\n## ").unwrap();
    let (mut rows, mut is_table) = (0, false);
    for line in misses.lines() {
        let Some(cells) = line.strip_prefix("| ") else {
            is_table = false;
            continue;
        };
        let cells: Vec<&str> = cells
            .trim_end_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let last = cells.last().copied().unwrap_or_default();
        if last == "what would settle it" {
            is_table = true;
        } else if is_table && !cells[0].starts_with("---") {
            rows += 1;
            assert!(!last.is_empty(), "nothing settles: {line}");
            let is_met = last.starts_with("no miss");
            assert!(!(is_met && line.contains("missed")), "{line}");
        }
    }
    assert!(rows >= 20, "{rows} rows");
}
