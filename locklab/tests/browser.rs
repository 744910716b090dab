//! Pages in a real browser: Chromium without a window, and axe-core where it is installed.
//!
//! Every page is shown in frames of one document, as wide as a telephone and as a screen,
//! light, dark and on paper; a script in each frame says what it finds wrong. Must never
//! reach a network.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The names under which distributions have Chromium.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What each frame runs: it adds to `wrong` what does not fit or cannot be read.
const PROBE: &str = r##"
window.wrong = [];
window.onerror = function (message) { wrong.push("error: " + message); };
window.addEventListener("load", function () {
  var width = document.documentElement.clientWidth;
  var most = document.documentElement.scrollWidth;
  if (most > width) { wrong.push("the page scrolls to " + most + " of " + width + " pixels"); }
  document.querySelectorAll("main *").forEach(function (element) {
    // What may be wider lies in a region that scrolls by itself, except on paper.
    if (!PAPER && element.closest(".wide, pre")) { return; }
    var right = element.getBoundingClientRect().right;
    if (right > width + 1) { wrong.push(element.outerHTML.slice(0, 90) + " ends at " + right); }
  });
  document.querySelectorAll("svg").forEach(function (picture) {
    var view = picture.viewBox.baseVal;
    picture.querySelectorAll("polygon, polyline, text").forEach(function (part) {
      var box = part.getBBox();
      if (view.height && !part.hasAttribute("transform") && (0 > box.y || box.y + box.height > view.height + 1)) {
        wrong.push("outside of its picture: " + part.outerHTML.slice(0, 90));
      }
    });
    var size = parseFloat(getComputedStyle(picture.querySelector("text") || picture).fontSize);
    var scale = view.width ? picture.getBoundingClientRect().width / view.width : 1;
    if (picture.closest("main") && !PAPER && picture.querySelector("text") && 7 > size * scale) {
      wrong.push("text of " + size * scale + " pixels in " + picture.getAttribute("aria-label"));
    }
  });
  if (document.querySelectorAll("main").length !== 1) { wrong.push("not one main part"); }
  document.querySelectorAll("p, li, td").forEach(function (text) {
    if (text.textContent.includes("`")) { wrong.push("a grave accent: " + text.textContent); }
  });
  document.querySelectorAll("nav a, h2 a, h3 a").forEach(function (link) {
    if (!document.getElementById(link.getAttribute("href").slice(1))) {
      wrong.push("a link to nowhere: " + link.outerHTML);
    }
  });
  // The script sorts a table by its last column and puts it in order again.
  document.querySelectorAll("table.sorts th button").forEach(function (button) { button.click(); });
  var done = function () { parent.postMessage({ name: window.name, wrong: wrong }, "*"); };
  if (!window.axe || PAPER) { done(); return; }
  axe.run(document, { resultTypes: ["violations"] }).then(function (result) {
    result.violations.forEach(function (violation) {
      wrong.push("axe: " + violation.id + ": " + violation.nodes[0].html.slice(0, 120));
    });
    done();
  });
});
"##;

/// Returns the program, if one of them runs.
fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let tried = std::process::Command::new(name).arg("--version").output();
        tried.is_ok_and(|output| output.status.success())
    })
}

/// Returns axe-core's script, if npm put it into `target/tools` (`cargo xtask test` asks it to).
fn axe() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/tools/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(path).ok()
}

/// Runs a command that writes a page, which has the sentences of its JSON, and returns it.
fn page(folder: &Path, arguments: &str) -> String {
    let path: PathBuf = folder.join("page.html");
    let output = Command::cargo_bin("locklab")
        .unwrap()
        .env("XDG_DATA_HOME", folder)
        .args(arguments.split_whitespace())
        .args(["--quiet", "--json", "--html"])
        .arg(&path)
        .output()
        .unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = page.replace("<code>", "").replace("</code>", "");
    let sentences = ["summary", "caveats"].map(|key| found[key].as_array());
    let mut sentences = sentences.into_iter().flatten().flatten().peekable();
    assert!(sentences.peek().is_some(), "{arguments}: {found}");
    for sentence in sentences {
        let sentence = sentence.as_str().unwrap().replace('`', "");
        let sentence = sentence.replace('&', "&amp;").replace('<', "&lt;");
        let sentence = sentence.replace('>', "&gt;");
        assert!(shown.contains(&sentence), "{arguments}: {sentence}");
    }
    page
}

/// Returns what hyperfine exports of forty commands with long names.
fn hyperfine(factor: f64) -> String {
    let time = |command: u32, run: u32| factor * f64::from(100 + command + run % 7) / 1e3;
    let result = |command: u32| {
        let times: Vec<f64> = (0..12).map(|run| time(command, run)).collect();
        serde_json::json!({
            "command": format!("./a-folder/with_a_long_name/benchmark --of-this {command}"),
            "times": times,
        })
    };
    let results: Vec<_> = (0..40).map(result).collect();
    serde_json::json!({ "results": results }).to_string()
}

/// Returns a document with each page in frames of several widths and media.
fn frames(pages: &[(&str, String)], axe: &str) -> String {
    let mut frames = String::new();
    for (name, page) in pages {
        for (medium, width) in [
            ("light", 400),
            ("dark", 1280),
            ("paper", 760),
            ("light", 1280),
        ] {
            let page = match medium {
                "dark" => page.replace("(prefers-color-scheme: dark)", "(min-width: 1px)"),
                "paper" => page.replace("@media print", "@media all"),
                _ => page.clone(),
            };
            let paper = medium == "paper";
            let probe =
                format!("<script>var PAPER = {paper};{PROBE}</script><script>{axe}</script>");
            let page = page.replacen("<head>", &format!("<head>{probe}"), 1);
            let page = page.replace('&', "&amp;").replace('"', "&quot;");
            frames.push_str(&format!(
                "<iframe name=\"{name}, {medium}, {width}\" width=\"{width}\" height=\"900\" srcdoc=\"{page}\"></iframe>"
            ));
        }
    }
    format!(
        "<!DOCTYPE html><title>frames</title><script>\
         window.onmessage = function (event) {{ \
         var said = document.createElement('p'); said.className = 'said'; \
         said.textContent = JSON.stringify(event.data); document.body.appendChild(said); \
         }};</script><body>{frames}"
    )
}

#[test]
fn pages_fit_read_and_work_in_a_browser() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium (apt-get install chromium)");
        return;
    };
    let axe = axe();
    if axe.is_none() {
        println!("note: axe-core is missing (npm install --prefix target/tools axe-core)");
    }
    let folder = tempfile::tempdir().unwrap();
    let of = |arguments: &str| page(folder.path(), arguments);
    let samples = folder.path().display();
    for (side, factor) in [("old", 1.0), ("new", 1.2)] {
        let path = folder.path().join(format!("{side}.json"));
        std::fs::write(path, hyperfine(factor)).unwrap();
    }
    let pages = [
        (
            "matrix",
            of(
                "matrix ticket mcs --on flat-16 --threads 1,4,16 --critical 0,4 --non-critical 1,32 --pairs 8",
            ),
        ),
        (
            "rank",
            of(
                "rank ticket mcs clh ttas --on flat-16 --threads 1,4,16 --critical 1 --non-critical 1 --against ticket",
            ),
        ),
        (
            "judge",
            of(&format!("judge {samples}/old.json {samples}/new.json")),
        ),
    ];
    let document = folder.path().join("frames.html");
    std::fs::write(
        &document,
        frames(&pages, axe.as_deref().unwrap_or_default()),
    )
    .unwrap();
    let output = std::process::Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=60000",
            "--window-size=1400,1000",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", document.display()))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = printed
        .split("<p class=\"said\">")
        .skip(1)
        .filter_map(|rest| rest.split("</p>").next())
        .collect();
    assert_eq!(
        said.len(),
        4 * pages.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let wrong: Vec<&&str> = said
        .iter()
        .filter(|one| !one.ends_with("\"wrong\":[]}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
