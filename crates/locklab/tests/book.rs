//! Holds the book (`docs/`) and the README to the command.
//!
//! A fenced block marked `console` is what a reader types and sees. Each of
//! its lines that starts with `$ locklab` must be a command line that the
//! command accepts; what takes no time and needs no other program is also
//! run, and what the book shows of its output must be there. Measurements and
//! simulations are not run here: their figures name their day.

use clap::Parser;
use locklab::cli::{Cli, Command};
use locklab::commands::machine::MachineCommand;
use pulldown_cmark::{CodeBlockKind, Event, Options, Tag, TagEnd, TextMergeStream};
use std::path::{Path, PathBuf};

/// Where the book leaves something out.
const LEFT_OUT: &str = "[...]";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every page, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let chapters = std::fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<_> = chapters
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain([root().join("README.md")])
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

/// Every `$ locklab` of the book.
fn typed() -> Vec<Typed> {
    let mut found = Vec::new();
    for (page, text) in pages() {
        let page = page.file_name().unwrap().to_string_lossy().into_owned();
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

/// Whether it ends at once, wherever it runs.
fn is_quick(cli: &Cli) -> bool {
    match &cli.command {
        Command::Locks(_) | Command::Schema(_) | Command::Footprint(_) => true,
        Command::Machine(machine) => !matches!(machine.command, MachineCommand::Fit { .. }),
        _ => cli.common.dry_run,
    }
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
    let folder = tempfile::tempdir().unwrap();
    let has_compiler = compile_what_the_book_compares(folder.path());
    let mut ran = 0;
    for Typed { page, words, shown } in typed() {
        let Ok(cli) = Cli::try_parse_from(&words) else {
            continue;
        };
        if !is_quick(&cli) {
            continue;
        }
        if matches!(cli.command, Command::Footprint(_)) && !has_compiler {
            println!("skipped: no C compiler for {page}: {}", words.join(" "));
            continue;
        }
        let output = assert_cmd::Command::cargo_bin("locklab")
            .unwrap()
            .args(&words[1..])
            .current_dir(folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap();
        let line = words.join(" ");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{page}: {line}\n{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut rest = &*printed;
        for piece in shown
            .split(LEFT_OUT)
            .map(str::trim)
            .filter(|p| !p.is_empty())
        {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => panic!("{page}: {line}\ndoes not print (any more):\n{piece}\nbut:\n{rest}"),
            }
        }
        ran += 1;
    }
    assert!(ran >= 8, "{ran} commands ran");
}

/// The two programs of the book's footprint, from the files that it shows.
fn compile_what_the_book_compares(folder: &Path) -> bool {
    let text = std::fs::read_to_string(root().join("docs/tour.md")).unwrap();
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
        panic!("the tour shows one C file, not {}", sources.len());
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

/// The anchors that mdBook and GitHub give to the headings of a page.
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
