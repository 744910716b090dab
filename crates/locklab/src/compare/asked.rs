//! What a comparison is asked to do: an experiment file and the flags, which
//! win over it. Must never run anything.

use super::arguments::CompareArgs;
use super::experiment::File;
use super::{Inline, Spec, Subject};
use crate::cli::Common;
use crate::workloads::{Asked, NAMES, Pattern};
use locklab_host::topology::Topology;

/// What a file and the flags ask for; flags win.
pub(super) fn spec(
    args: &CompareArgs,
    common: &Common,
    topology: &Topology,
) -> Result<Spec, String> {
    let file = match &args.file {
        Some(path) => File::read(path)?,
        None => File::default(),
    };
    let mut baseline = file.baseline;
    let mut experiment = file.experiment;
    let pairs = [
        (
            &mut baseline,
            (
                &args.baseline,
                &args.baseline_lock,
                &args.baseline_build,
                &args.baseline_env,
            ),
        ),
        (
            &mut experiment,
            (
                &args.experiment,
                &args.experiment_lock,
                &args.experiment_build,
                &args.experiment_env,
            ),
        ),
    ];
    for (subject, (command, lock, build, env)) in pairs {
        if command.is_some() {
            subject.command.clone_from(command);
        }
        if lock.is_some() {
            subject.lock.clone_from(lock);
        }
        if build.is_some() {
            subject.build.clone_from(build);
        }
        for one in env {
            let (name, value) = one
                .split_once('=')
                .filter(|(n, _)| !n.is_empty())
                .ok_or_else(|| format!("'{one}' sets no variable; write NAME=VALUE"))?;
            subject.env.insert(name.into(), value.into());
        }
        check_subject(subject)?;
    }
    if let Some(inline) = &args.inline {
        let [b, e] = Inline::parse_pair(inline)?;
        (baseline.inline, experiment.inline) = (Some(b), Some(e));
    }
    if args.aa {
        experiment = baseline.clone();
    }
    let mut workloads = file.workload;
    if !args.workload.is_empty() {
        let asked = args.workload.iter().map(|name| Asked::parse(name));
        workloads = asked.collect::<Result<_, _>>()?;
    }
    let command = (!args.command.is_empty())
        .then(|| shlex::try_join(args.command.iter().map(String::as_str)))
        .transpose()
        .map_err(|e| format!("the command after -- cannot be written as a line: {e}"))?;
    let has_command = command.is_some() || baseline.command.is_some();
    if workloads.is_empty() && has_command {
        workloads.push(Asked {
            name: "command".into(),
            ..Asked::default()
        });
    }
    if workloads.is_empty() {
        return Err(format!(
            "nothing to run; give --workload ({}), or --baseline CMD --experiment CMD, or an \
             experiment file ('locklab compare --example' prints one)",
            NAMES.map(|(name, _)| name).join(", ")
        ));
    }
    for asked in &mut workloads {
        if let Some(scale) = args.scale {
            asked.scale = Some(scale);
        }
        if asked.name == "command" {
            if let Some(command) = &command {
                asked.command = Some(command.clone());
            }
            for metric in &args.metric {
                asked.metric.push(Pattern::parse(metric)?);
            }
        }
        asked.make()?;
    }
    let builds_itself = |asked: &Asked| asked.name == "call-sites";
    if args.inline.is_some() && args.build.is_none() && !workloads.iter().all(builds_itself) {
        return Err(
            "--inline is of call-sites, which builds its own program; for another give --build \
             CMD, which builds it twice"
                .into(),
        );
    }
    for (n, asked) in workloads.iter().enumerate() {
        if workloads[..n]
            .iter()
            .any(|other| other.title() == asked.title())
        {
            return Err(format!(
                "there are two workloads '{}'; give one of them another title",
                asked.title()
            ));
        }
    }
    let delta = args.delta.or(file.delta).unwrap_or(1.0);
    if !(delta > 0.0 && delta < 100.0) {
        return Err(format!(
            "--delta {delta} is no margin; give a percentage above 0 and below 100"
        ));
    }
    let pairs = args.pairs.or(file.pairs).unwrap_or(20);
    if pairs == 0 || pairs > 100_000 {
        return Err(format!(
            "{pairs} pairs show nothing; give --pairs 8 or more"
        ));
    }
    let time_limit = args.time_limit.or(file.time_limit).unwrap_or(120.0);
    if !(time_limit > 0.0 && time_limit <= 1e7) {
        return Err(format!(
            "a time limit of {time_limit} s is none; give seconds above 0"
        ));
    }
    let pin = match &args.pin {
        Some(list) => list
            .0
            .iter()
            .map(|cpu| usize::try_from(*cpu).map_err(|e| e.to_string()))
            .collect::<Result<Vec<_>, _>>()?,
        None => file.pin.unwrap_or_default(),
    };
    if let Some(cpu) = pin.iter().find(|cpu| !topology.order.contains(cpu)) {
        return Err(format!(
            "CPU {cpu} cannot be pinned to; this process may use {}",
            locklab_host::topology::ranges(&topology.order)
        ));
    }
    Ok(Spec {
        baseline,
        experiment,
        workloads,
        pairs,
        warm_up: args.warm_up.or(file.warm_up).unwrap_or(1),
        // The flag has a default, so only another value can win.
        seed: match file.seed {
            Some(seed) if common.seed == 1 => seed,
            _ => common.seed,
        },
        delta: delta / 100.0,
        time_limit,
        pin,
        counters: args.counters.or(file.counters).unwrap_or_default(),
        aa: args.aa,
    })
}

/// Names of locks and folders, before anything runs.
fn check_subject(subject: &Subject) -> Result<(), String> {
    if let Some(lock) = &subject.lock
        && lock != "pthread"
    {
        if lock != "pthread-interposed" && crate::native::subject::find(lock)?.peer {
            return Err(format!(
                "'{lock}' cannot be put under pthread mutexes; 'locklab locks' lists those that can"
            ));
        }
        locklab_host::libraries::preload_library()?;
    }
    match &subject.build {
        Some(build) if !build.is_dir() => Err(format!(
            "there is no folder {}; a build is the folder with its programs",
            build.display()
        )),
        _ => Ok(()),
    }
}
