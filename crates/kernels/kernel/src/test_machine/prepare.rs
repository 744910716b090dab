//! Prepares the kernels of an experiment file on a test machine: looks at the
//! machine, makes the kernels for it, and boots the baseline once as a trial that
//! does not count.

use crate::cache::{Cache, key};
use crate::guest::{FirstProgram, first_program};
use crate::layout::Form;
use crate::making::{Making, ReadyVariant, Setting};
use crate::recipe;
use crate::settings::{Target, TestMachineSettings};
use crate::test_machine::backend::{RemoteKernels, counters, metrics, uncounted};
use crate::test_machine::disk::{self, Disk};
use crate::test_machine::home::Home;
use crate::test_machine::session::Session;
use crate::test_machine::ssh::{Ssh, To};
use crate::test_machine::states::{LIMIT, Machine, Trouble};
use crate::test_machine::torture;
use crate::workload::{Load, Workload};
use crate::{Plan, equipped, find_programs, with_metrics};
use locklab_harness::backend::Backend as _;
use locklab_harness::experiment::{Cell, Experiment, Facts, Labels, Provenance, Source};
use locklab_host::error::Error;
use locklab_judge::Side;
use locklab_native::doctor::Check;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Looks at a test machine without changing it: its name and processor, and
/// everything that decides what can be measured there.
///
/// # Errors
/// [`Error::Failed`] if it does not answer, or is no Linux system;
/// [`Error::Interrupted`] after Ctrl-C.
pub fn doctor(
    cache: &Cache<'_>,
    target: &Target,
    settings: &TestMachineSettings,
) -> Result<(String, Vec<Check>), Error> {
    let session = Session::without_keys()?;
    let ssh = Ssh::new(target.destination(), session.path())?;
    let machine = Machine::at_home(cache, session, ssh, settings.clone())?;
    let home = machine.home();
    let name = format!("{} ({})", home.processor(), target.destination());
    let mut checks = home.checks(settings);
    checks.extend(disk::checks(home, settings.scratch_disk.as_deref()));
    Ok((name, checks))
}

/// Makes everything that `plan` needs: the backend, and the experiment
/// that it will carry out. The machine is home afterwards.
///
/// # Errors
/// If a program is missing or the machine cannot start kernels, which is found
/// before anything is built; if the trial boot fails; also after Ctrl-C.
pub fn prepare<'a>(
    cache: &'a Cache<'a>,
    plan: &Plan,
    target: &Target,
) -> Result<(RemoteKernels<'a>, Experiment), Error> {
    let mut plan = plan.clone();
    let settings = plan.experiment.machine.clone();
    let mut caveats = Vec::new();
    find_programs(&plan.loads)?;
    let session = Session::new(cache)?;
    let ssh = Ssh::new(target.destination(), session.path())?;
    let mut machine = Machine::at_home(cache, session, ssh, settings.clone())?;
    if let Some(why) = machine.home().refusal() {
        return Err(Error::Failed(format!(
            "no kernel can be started on {}: {why}",
            target.destination()
        )));
    }
    let (in_qemu, torture) = torture::in_qemu(cache, &mut plan, &mut caveats)?;
    let mut network = machine.home().network(&settings)?;
    let disk = match plan.loads.iter().find_map(|load| load.disk.as_ref()) {
        Some(serial) => Some(Disk::find(machine.home(), serial)?),
        None => None,
    };
    if let Some(disk) = &disk {
        network.drivers.extend(disk.drivers.iter().cloned());
    }
    let program = first_program(cache, FirstProgram::TestMachine)?;
    std::fs::copy(&program, machine.session.file("test-machine"))
        .map_err(|e| cache.cannot_write(&program, &e))?;
    configure(cache, &mut plan, &machine, target, &network.drivers)?;
    let asked = plan.loads.iter().map(|load| load.workload);
    let experiment = equipped(cache, &plan.experiment, asked)?;
    let mut making = Making::new(cache, &plan, &experiment, Form::BzImage);
    let made = making.cells(|_, _, _| Ok(()))?;
    let translated = machine.home().translated();
    let source = match translated {
        Some(_) => Source::Emulation,
        None => Source::Output,
    };
    let name = format!("{}, {}", machine.home().processor(), target.destination());
    let provenance = match &translated {
        Some(_) => Provenance::Model(name.clone()),
        None => Provenance::Hardware(name.clone()),
    };
    caveats.extend(translated.map(|why| format!("The figures mean nothing: {why}.")));
    machine.listen()?;
    let mut remote = RemoteKernels {
        cache,
        limit: settings.limit.unwrap_or(LIMIT).duration(),
        machine,
        settings,
        network,
        cells: made
            .iter()
            .map(|(_, load, ready)| ready.clone().map(|r| (r, (*load).clone())))
            .collect(),
        cycle: None,
        lock_profile: plan.experiment.guests.lock_profile,
        prepared: empty(&plan),
    };
    let first = remote.cells.iter().next().cloned();
    let trial = match first {
        Some((variant, _)) => remote.trial(&variant)?,
        None => Trial::default(),
    };
    let mut facts = vec![("Test machine".to_owned(), name)];
    facts.extend(disk.map(|disk| ("Scratch disk".to_owned(), disk.fact)));
    facts.extend(trial.facts);
    facts.extend(in_qemu);
    if let Some(load) = torture {
        facts.extend(torture::on_machine(&mut remote, &load, trial.cpus)?);
    }
    let setting = Setting {
        facts,
        caveats,
        provenance,
        clock_unit: "nanoseconds",
    };
    let (mut cells, _) = with_metrics(made, |load| {
        let load = Load {
            vcpus: trial.cpus,
            ..load.clone()
        };
        metrics(&load, &trial.counters, source)
    });
    for (_, load) in remote.cells.iter_mut() {
        load.vcpus = trial.cpus;
    }
    for (number, cell) in cells.iter_mut().enumerate() {
        let ready = remote.cells.get(number);
        let lengths = ready.and_then(|(_, load)| load.lengths.as_ref());
        let left_out = lengths.and_then(|lengths| lengths.left_out(trial.cpus));
        cell.facts
            .extend(left_out.map(|text| ("Left out".to_owned(), text)));
    }
    remote.prepared = making.experiment(setting, cells);
    let experiment = remote.experiment(plan.design.clone());
    Ok((remote, experiment))
}

/// Returns the experiment before anything is known about it.
fn empty(plan: &Plan) -> Experiment {
    Experiment {
        kind: recipe::KIND.into(),
        labels: Labels::default(),
        spec: serde_json::Value::Null,
        design: plan.design.clone(),
        provenance: Provenance::Hardware(String::new()),
        facts: Vec::new(),
        caveats: Vec::new(),
        cells: Vec::<Cell>::new(),
        interrupted: None,
    }
}

/// Takes the machine's own configuration for kernels that are built, unless the
/// file has one: the ready one has no ACPI and no network driver.
fn configure(
    cache: &Cache<'_>,
    plan: &mut Plan,
    machine: &Machine<'_>,
    target: &Target,
    drivers: &[String],
) -> Result<(), Error> {
    let kernel = &mut plan.experiment.kernel;
    let ready = matches!(
        kernel.config.as_deref(),
        None | Some("workloads" | "test-machine" | "box")
    );
    if plan.experiment.has_images() || !ready {
        return Ok(());
    }
    let folder = folder_of(cache, target.destination())?;
    for (name, command) in [("config", CONFIG), ("lsmod", LSMOD)] {
        let limit = Duration::from_secs(60);
        let ssh = &machine.ssh;
        let text = ssh.call(To::Home, command, None, limit, cache.interrupt);
        let text = text.map_err(|no| {
            Error::Failed(format!(
                "the {name} of {}'s own kernel cannot be read: {}; give [kernel] config a file of \
                 options for this machine",
                target.destination(),
                no.why()
            ))
        })?;
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| cache.cannot_write(&path, &e))?;
    }
    // Checked before anything is compiled: make leaves out what it does not know.
    let path = folder.join("drivers");
    let lines: String = drivers.iter().map(|name| format!("{name}\n")).collect();
    std::fs::write(&path, lines).map_err(|e| cache.cannot_write(&path, &e))?;
    plan.experiment.kernel.config = Some(format!("test-machine:{}", folder.display()));
    Ok(())
}

const CONFIG: &str = "cat /boot/config-$(uname -r) 2>/dev/null || zcat /proc/config.gz";
/// Prints the modules as lsmod does: make reads the first word of each line but the first.
const LSMOD: &str = "echo Module Size Used; cat /proc/modules";

/// Returns what is kept of a machine between sessions.
fn folder_of(cache: &Cache<'_>, destination: &str) -> Result<PathBuf, Error> {
    cache.folder(&format!("test-machines/{}", key([destination.as_bytes()])))
}

/// Returns the time of a boot from home to home, by the last session with a machine.
#[must_use]
pub(crate) fn last_cycle(cache: &Cache<'_>, target: &Target) -> Option<Duration> {
    let name = key([target.destination().as_bytes()]);
    let path = cache
        .root
        .join(format!("test-machines/{name}/cycle-seconds"));
    let seconds: f64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Holds what the trial boot found.
#[derive(Default)]
struct Trial {
    cpus: u64,
    counters: Vec<String>,
    facts: Facts,
}

impl RemoteKernels<'_> {
    /// Makes the first boot of a session: of the baseline, as a trial that does not
    /// count. It finds out what is counted there, and that every workload runs.
    fn trial(&mut self, variant: &ReadyVariant) -> Result<Trial, Error> {
        self.cache
            .note("trial boot of the baseline, which does not count");
        let began = Instant::now();
        let explained = |trouble| match trouble {
            Trouble::Failed { why, console } => {
                let lines = console.iter().map(|line| format!("\n    {line}"));
                let lines: String = lines.collect();
                Error::Failed(format!(
                    "the trial boot of the baseline failed: {why}{lines}"
                ))
            }
            other => other.into(),
        };
        let (up, _) = self.start(variant, Side::Baseline, 0).map_err(explained)?;
        let mut trial = Trial {
            cpus: up.facts.get("cpus").parse().unwrap_or(1),
            ..Trial::default()
        };
        let mut missing = Vec::new();
        for mode in ["kernel", "user"] {
            let load = Load {
                vcpus: trial.cpus,
                ..Load::new(Workload::Boot)
            };
            let found = self
                .run_load("trial", &load, Some(mode))
                .map_err(explained)?;
            let found = found.map_err(|why| Error::Failed(format!("the trial boot: {why}")))?;
            trial
                .counters
                .extend(counters(&found).map(|(name, _)| name.to_owned()));
            missing.extend(uncounted(&found));
        }
        let loads: Vec<Load> = self.cells.loads(&variant.name).cloned().collect();
        for load in loads {
            let load = Load {
                vcpus: trial.cpus,
                ..load
            };
            let found = self.run_load("trial", &load, None).map_err(explained)?;
            found.map_err(|why| {
                Error::Failed(format!("the trial of {}: {why}", load.workload.name()))
            })?;
        }
        self.machine.watchdog = up.facts.get("watchdog") == "yes";
        self.machine.go_home().map_err(explained)?;
        let cycle = began.elapsed();
        self.cycle = Some(cycle);
        if let Ok(folder) = folder_of(self.cache, self.machine.ssh.destination()) {
            // Only for the next dry run; without it that says so.
            let _ = std::fs::write(folder.join("cycle-seconds"), cycle.as_secs().to_string());
        }
        let home = self.machine.home_seconds.unwrap_or_default();
        trial.facts = vec![
            (
                "Trial".into(),
                format!(
                    "up in {:.0} s, home in {home:.0} s; it does not count",
                    up.seconds
                ),
            ),
            (
                "Settings".into(),
                settings_of(&up.facts, self.machine.home()),
            ),
        ];
        if !missing.is_empty() {
            trial.facts.push(("Not counted".into(), missing.join(", ")));
        }
        Ok(trial)
    }
}

/// Returns what a measured kernel has set, in one line.
fn settings_of(facts: &crate::test_machine::states::Facts, home: &Home) -> String {
    let or = |value: &str| match value {
        "" => "not there".to_owned(),
        value => value.to_owned(),
    };
    let turbo = match (facts.get("no-turbo"), facts.get("boost")) {
        ("1", _) | (_, "0") => "off",
        ("", "") => "not there",
        _ => "on",
    };
    let smt = match facts.get("smt") {
        "1" => "on",
        "0" => "off",
        _ => "not there",
    };
    format!(
        "{} CPUs, governor {}, turbo {turbo}, SMT {smt}, microcode {}",
        or(facts.get("cpus")),
        or(facts.get("governor")),
        or(home.get("microcode").unwrap_or_default())
    )
}
