//! Compares changes of time that the front-end model predicts with measured ones, for real
//! programs in several layouts, and prints the table of results/frontend.md: `cargo build
//! --release -p locklab -p locklab-qemu-plugin`, then `cargo run --release -p
//! locklab-validation --bin layouts -- [--locklab FILE] [--folder FOLDER] [--step NAME]
//! [--pairs N] [--processor NAME]`, on an idle machine. The steps are build, predict, measure
//! and table; without one all are carried out, and what a step found stays in the folder.
//!
//! Needs Debian's apt-get with access to source packages, gcc and ld.lld. The model must never
//! be fitted to these programs: its penalties are those of microbenchmarks.

mod inputs;
mod programs;
mod table;

use locklab_native::work::Calibration;
use programs::{PROGRAMS, Program, Source};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Options of every build.
const COMMON: &str = "-O2 -w -g0 -ffunction-sections -fuse-ld=lld";
/// The metric that is predicted: time on a CPU, user and system, in ms.
const TIME: &str = "task-clock";
/// Layouts and the options that make them; the first is the baseline.
const LAYOUTS: [(&str, &str); 4] = [
    ("plain", ""),
    ("outlined", "-fno-inline"),
    (
        "packed",
        "-fno-align-functions -fno-align-jumps -fno-align-loops -fno-align-labels",
    ),
    ("shuffled", "-Wl,--shuffle-sections=.text*=7"),
];

/// Holds what the command line says.
struct Options {
    locklab: PathBuf,
    folder: PathBuf,
    step: Option<String>,
    pairs: String,
    processor: Option<String>,
}

fn main() -> Result<ExitCode, String> {
    let options = options()?;
    let does = |step: &str| options.step.as_deref().is_none_or(|only| only == step);
    std::fs::create_dir_all(&options.folder).map_err(|e| e.to_string())?;
    if does("build") {
        inputs::write(&options.folder.join("inputs"))?;
        sources(&options.folder)?;
        for program in &PROGRAMS {
            if let Err(why) = build(&options.folder, program) {
                println!("left out: {}: {why}", program.name);
            }
        }
    }
    if does("predict") {
        // A prediction does not depend on what else runs, and takes minutes.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        each(&options, "predicted", predict, cpus)?;
    }
    if does("measure") {
        let clock = 1.0 / Calibration::measure().cycle_ns;
        println!("the core runs at {clock:.2} GHz");
        each(&options, "measured", measure, 1)?;
        store(&options.folder.join("clock.json"), &json!(clock))?;
    }
    if does("table") {
        let read = |name: &str| -> Result<Value, String> {
            let path = options.folder.join(name);
            let text = std::fs::read_to_string(&path)
                .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
        };
        let clock = read("clock.json")?.as_f64().ok_or("no clock")?;
        print!(
            "{}",
            table::table(&read("predicted.json")?, &read("measured.json")?, clock)
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        locklab: "target/release/locklab".into(),
        folder: "target/layouts".into(),
        step: None,
        pairs: "10".into(),
        processor: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--locklab" => options.locklab = value.into(),
            "--folder" => options.folder = value.into(),
            "--pairs" => options.pairs = value,
            "--processor" => options.processor = Some(value),
            "--step" if ["build", "predict", "measure", "table"].contains(&value.as_str()) => {
                options.step = Some(value);
            }
            _ => return Err(format!("there is no {word} {value}")),
        }
    }
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| e.to_string());
    options.locklab = absolute(&options.locklab)?;
    options.folder = absolute(&options.folder)?;
    Ok(options)
}

/// Downloads the source packages and unpacks them, each into a folder of its name.
fn sources(folder: &Path) -> Result<(), String> {
    let debian: Vec<&str> = PROGRAMS
        .iter()
        .filter_map(|program| match program.source {
            Source::Debian(name) => Some(name),
            Source::Crate(..) => None,
        })
        .filter(|name| !folder.join("sources").join(name).is_dir())
        .collect();
    if debian.is_empty() {
        return Ok(());
    }
    // A list of sources of its own: that of the system stays as it is.
    let script = format!(
        "set -e; mkdir -p apt/lists/partial apt/cache/archives/partial sources archives
         server=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d/*.sources \
            /etc/apt/sources.list.d/*.list 2>/dev/null | grep -v -e security -e snapshot | head -1)
         . /etc/os-release; echo \"deb-src $server $VERSION_CODENAME main\" > apt/sources.list
         options=\"-o Dir::Etc::sourcelist=$PWD/apt/sources.list -o Dir::Etc::sourceparts=/dev/null
            -o Dir::State::lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt/cache\"
         apt-get $options update > apt/log 2>&1; cd archives
         apt-get $options source --download-only {} > ../apt/log 2>&1
         for name in {}; do
            mkdir -p ../sources/$name.new
            tar -x -C ../sources/$name.new -f $(ls ${{name}}_*.orig.tar.* | grep -v asc | head -1)
            # Most archives hold one folder; its contents are wanted.
            if [ $(ls ../sources/$name.new | wc -l) = 1 ]; then
                mv ../sources/$name.new/* ../sources/$name; rmdir ../sources/$name.new
            else mv ../sources/$name.new ../sources/$name; fi
         done",
        debian.join(" "),
        debian.join(" ")
    );
    shell(folder, &script, &[])
}

fn build(folder: &Path, program: &Program) -> Result<(), String> {
    let from = match program.source {
        Source::Debian(name) => folder.join("sources").join(name),
        Source::Crate(name, within) => crate_sources(name)?.join(within),
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/layouts");
    for (layout, flags) in LAYOUTS {
        let out = binary(folder, program, layout);
        if out.is_file() {
            continue;
        }
        println!("building {} {layout}", program.name);
        let flags = format!("{COMMON} {flags}");
        let variables = [
            ("FLAGS", flags.as_str()),
            ("OUT", &out.display().to_string()),
            ("HERE", &here.display().to_string()),
        ];
        std::fs::create_dir_all(out.parent().ok_or("no folder")?).map_err(|e| e.to_string())?;
        shell(&from, program.build, &variables)?;
    }
    Ok(())
}

/// Returns the newest unpacked sources of a crate in Cargo's registry.
fn crate_sources(name: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registry = home.ok_or("no HOME")?.join("registry/src");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let wanted = format!("{name}-");
    let crates = folders(&registry)
        .into_iter()
        .flat_map(|index| folders(&index));
    let mut found: Vec<PathBuf> = crates
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&wanted))
        })
        .collect();
    found.sort();
    found
        .pop()
        .ok_or_else(|| format!("no sources of {name} in {}", registry.display()))
}

fn binary(folder: &Path, program: &Program, layout: &str) -> PathBuf {
    // The same length of path in each layout: it moves the stack.
    folder
        .join("programs")
        .join(layout)
        .join(program.name.replace([' ', '\''], "-"))
}

fn shell(folder: &Path, script: &str, variables: &[(&str, &str)]) -> Result<(), String> {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .envs(variables.iter().copied())
        .output()
        .map_err(|e| format!("sh: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: {}",
        output.status,
        said.lines().last().unwrap_or_default()
    ))
}

/// A step for one change: baseline and experiment, and the arguments of both.
type Step = fn(&Options, [String; 2], &[String]) -> Result<Value, String>;

/// Runs a step for each program and layout, so many at a time, and stores what it found after
/// each.
fn each(options: &Options, name: &str, step: Step, at_once: usize) -> Result<(), String> {
    // Layout by layout, so that a step that is cut short has whole layouts.
    let all: Vec<(&str, &Program)> = LAYOUTS[1..]
        .iter()
        .flat_map(|(layout, _)| PROGRAMS.iter().map(|program| (*layout, program)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || -> Result<(), String> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(layout, program)) = all.get(number) else {
                return Ok(());
            };
            let change = change(options, program, layout);
            if !change.builds.iter().all(|path| Path::new(path).is_file()) {
                continue;
            }
            let value = step(options, change.builds, &change.arguments);
            let mut found = found.lock().map_err(|e| e.to_string())?;
            match value {
                Ok(value) => {
                    let one = json!({"program": program.name, "layout": layout, "value": value});
                    found.insert(number, one);
                }
                Err(why) => println!("{name}: {} {layout}: {why}", program.name),
            }
            println!("{name}: {} {layout}", program.name);
            let in_order: Vec<&Value> = found.values().collect();
            store(
                &options.folder.join(format!("{name}.json")),
                &json!(in_order),
            )?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .map_err(|_| format!("{name}: a worker panicked"))?
        })
    })
}

/// A change of layout: baseline and experiment, and the arguments of both.
struct Change {
    builds: [String; 2],
    arguments: Vec<String>,
}

/// Returns the change from the first layout to this one.
fn change(options: &Options, program: &Program, layout: &str) -> Change {
    let inputs = options.folder.join("inputs").display().to_string();
    let arguments = program
        .arguments
        .split_whitespace()
        .map(|word| word.replace("{inputs}", &inputs))
        .map(|word| word.replace("{query}", inputs::QUERY));
    let builds = [LAYOUTS[0].0, layout];
    Change {
        builds: builds.map(|layout| {
            binary(&options.folder, program, layout)
                .display()
                .to_string()
        }),
        arguments: arguments.collect(),
    }
}

fn store(path: &Path, value: &Value) -> Result<(), String> {
    std::fs::write(path, format!("{value:#}\n"))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Runs Locklab, which prints one JSON document.
fn locklab(options: &Options, arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new(&options.locklab)
        .args(["--json", "--quiet"])
        .args(arguments)
        .current_dir(&options.folder)
        .output()
        .map_err(|e| format!("{}: {e}", options.locklab.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        said.lines().last().unwrap_or("no output").to_owned()
    })
}

/// Returns what the model says of both builds.
fn predict(
    options: &Options,
    [baseline, experiment]: [String; 2],
    arguments: &[String],
) -> Result<Value, String> {
    let mut list = vec!["frontend", "--baseline", &baseline];
    if let Some(processor) = &options.processor {
        list.extend(["--processor", processor]);
    }
    list.extend(["--", &experiment]);
    list.extend(arguments.iter().map(String::as_str));
    let document = locklab(options, &list)?;
    match document.get("change") {
        Some(change) => Ok(change.clone()),
        None => Err("the report has no change".into()),
    }
}

/// Returns the times of both builds, in pairs.
fn measure(
    options: &Options,
    [baseline, experiment]: [String; 2],
    arguments: &[String],
) -> Result<Value, String> {
    let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let command = |program: &str| format!("'{program}' {}", quoted.join(" "));
    let document = locklab(
        options,
        &[
            "compare",
            "--baseline",
            &command(&baseline),
            "--experiment",
            &command(&experiment),
            "--pairs",
            &options.pairs,
            "--store",
            ":memory:",
        ],
    )?;
    let metrics = document["workloads"][0]["metrics"].as_array();
    let time = metrics
        .into_iter()
        .flatten()
        .find(|metric| metric["name"] == TIME)
        .ok_or("the comparison has no task-clock")?;
    Ok(time.clone())
}
