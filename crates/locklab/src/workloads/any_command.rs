//! `command`: any command, its figure by regular expression or JSON path;
//! without one, its elapsed time decides.
//!
//! One run is the command from start to end. Invalid: an exit status other
//! than 0, a signal, the time limit, output without the figure.

use super::{Asked, Fault, Figures, Pattern, Place, Workload, output};
use crate::compare::lab::Lab;
use crate::compare::{Metric, Source, Subject};

pub(super) struct AnyCommand {
    command: Option<String>,
    metrics: Vec<(Pattern, Place)>,
}

impl AnyCommand {
    pub(super) fn new(asked: &Asked) -> Result<Self, String> {
        let places = asked.metric.iter().map(|p| Ok((p.clone(), p.place()?)));
        Ok(Self {
            command: asked.command.clone(),
            metrics: places.collect::<Result<_, String>>()?,
        })
    }

    fn words(&self, subject: &Subject) -> Result<Vec<String>, String> {
        let Some(command) = subject.command.as_ref().or(self.command.as_ref()) else {
            return Err(
                "there is no command to run; give --baseline and --experiment, or one command \
                 after --"
                    .into(),
            );
        };
        let build = subject.build.as_ref().map(|b| b.display().to_string());
        if command.contains("{build}") && build.is_none() {
            return Err(format!(
                "'{command}' speaks of {{build}} and there is none; give --baseline-build and \
                 --experiment-build"
            ));
        }
        let command = command.replace("{build}", &build.unwrap_or_default());
        // What only a shell understands is left to one.
        if command.contains(['|', '&', ';', '<', '>', '$', '`', '*', '~', '\n']) {
            return Ok(vec!["/bin/sh".into(), "-c".into(), command]);
        }
        match shlex::split(&command) {
            Some(words) if !words.is_empty() => Ok(words),
            _ => Err(format!(
                "'{command}' is no command: a quote is open, or it is empty"
            )),
        }
    }
}

impl Workload for AnyCommand {
    fn about(&self) -> String {
        match self.command.as_ref() {
            Some(command) => format!("'{command}', from start to end."),
            None => "The command, from start to end.".into(),
        }
    }

    fn setup(&self, lab: &Lab) -> Vec<(String, String)> {
        vec![("CPUs".into(), lab.cpus_text())]
    }

    fn metrics(&self) -> Vec<Metric> {
        if self.metrics.is_empty() {
            return vec![Metric::lower("elapsed", "s", Source::Process)];
        }
        self.metrics.iter().map(|(p, _)| p.metric()).collect()
    }

    fn check(&self, subjects: [&Subject; 2], _: &Lab) -> Result<(), String> {
        for subject in subjects {
            let words = self.words(subject)?;
            if locklab_host::process::find(&words[0], &Lab::folders(subject)).is_none() {
                return Err(if words[0].contains('/') {
                    format!("there is no program {}; check the path", words[0])
                } else {
                    format!(
                        "there is no program '{0}' in PATH; 'apt-file search bin/{0}' names its \
                         Debian package",
                        words[0]
                    )
                });
            }
        }
        Ok(())
    }

    fn run(&mut self, subject: &Subject, lab: &mut Lab) -> Result<Figures, Fault> {
        let words = self.words(subject).map_err(Fault::Hopeless)?;
        let ended = lab.run(subject, &words[0], &words[1..], &lab.cpus.clone())?;
        ended.check()?;
        let mut figures = ended.figures();
        for (pattern, place) in &self.metrics {
            let number = match output::read(&pattern.name, place, &ended.out) {
                // Some programs report on standard error.
                Err(fault) => match place.read(&ended.err) {
                    Some(number) => number,
                    None if ended.out.trim().is_empty() => {
                        return Err(output::read(&pattern.name, place, &ended.err)
                            .err()
                            .unwrap_or(fault));
                    }
                    None => return Err(fault),
                },
                Ok(number) => number,
            };
            figures.insert(pattern.name.clone(), number);
        }
        Ok(figures)
    }
}
