//! Takes the machine from one state to the next: home,
//! checked, uploaded, loaded, executed, up, ran, collected, and home again.
//!
//! A kernel is *up* when it answers with the session's host key, with a boot id
//! that is not the one before, and with the token of this start on its command
//! line. Whatever happens, the machine is home before anything here returns,
//! or the error says where it is and how to get it back. A result must never be
//! taken from a kernel that has not proved which one it is.

mod returning;

use crate::cache::Cache;
use crate::settings::{BootFrom, TestMachineSettings};
use crate::test_machine::home::Home;
use crate::test_machine::patience::Patience;
use crate::test_machine::session::{Session, token};
use crate::test_machine::ssh::{NoAnswer, Ssh, To};
use locklab_harness::settings::Limit;
use locklab_host::error::Error;
use locklab_host::interrupt::last_words;
use locklab_host::process::{Launch, Running};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The limit of a boot or of a workload, unless the file has another.
pub(crate) const LIMIT: Limit = Limit::seconds(900);

/// Asks a system which boot it is.
const BOOT_ID: &str = "cat /proc/sys/kernel/random/boot_id";
/// The longest answer to a question that is asked again and again.
const LOOK: Duration = Duration::from_secs(20);

/// Says why a kernel gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Ctrl-C; the machine is home.
    Interrupted,
    /// Nothing more can be measured.
    Fatal(String),
    /// This start or run failed; the machine is home, and can start another.
    Failed {
        why: String,
        /// The lines of its console that matter, or of what it left behind.
        console: Vec<String>,
    },
}

/// Holds what is started.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) image: &'a Path,
    pub(crate) initramfs: &'a Path,
    /// The command line, without what every start has.
    pub(crate) cmdline: &'a str,
    /// Release and version by the image's header.
    pub(crate) version: &'a [String; 2],
}

/// Holds what a kernel says about itself once it is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(pub(crate) BTreeMap<String, String>);

impl Facts {
    fn read(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        Self(
            lines
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn token(&self) -> &str {
        let words = self.get("cmdline").split(' ');
        let mut tokens = words.filter_map(|word| word.strip_prefix(TOKEN));
        tokens.next().unwrap_or("")
    }
}

const TOKEN: &str = "locklab.token=";

/// Says where the machine is.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// It runs its own system, whose boot id was this.
    Home(String),
    /// It runs a measured kernel, or is on the way to it.
    Kernel(Up),
}

/// A measured kernel that answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Up {
    pub(crate) token: String,
    /// The boot id of the system from which it was started.
    before: String,
    pub(crate) facts: Facts,
    /// The time from the start to the first answer.
    pub(crate) seconds: f64,
}

/// A test machine in one session.
pub(crate) struct Machine<'a> {
    pub(crate) ssh: Ssh,
    pub(crate) session: Session,
    settings: TestMachineSettings,
    cache: &'a Cache<'a>,
    place: Place,
    home: Home,
    /// The pause between two questions whether it answers.
    pub(crate) pause: Duration,
    /// The longest answer to such a question.
    look: Duration,
    /// Says how often it is asked at most; only the limit ends this but in tests.
    looks: u32,
    console: Option<(Running, PathBuf)>,
    /// Holds what the console had printed when the present start began.
    console_from: u64,
    /// Says whether measured kernels have a watchdog, which then guards the starts.
    pub(crate) watchdog: bool,
    /// Seconds of the last way home.
    pub(crate) home_seconds: Option<f64>,
}

impl<'a> Machine<'a> {
    /// Looks at the machine, which must be home.
    pub(crate) fn at_home(
        cache: &'a Cache<'a>,
        session: Session,
        ssh: Ssh,
        settings: TestMachineSettings,
    ) -> Result<Self, Error> {
        let home = Home::ask(&ssh, session.path(), LOOK * 3, cache.interrupt);
        let home = home.map_err(|no| match no {
            NoAnswer::Interrupted => Error::Interrupted(format!(
                "interrupted; nothing was started on {}",
                ssh.destination()
            )),
            no => Error::Failed(format!(
                "{} does not answer as its own system: {}; try ssh {} by hand",
                ssh.destination(),
                no.why(),
                ssh.destination()
            )),
        })?;
        let place = Place::Home(home.get("boot-id").unwrap_or_default().to_owned());
        Ok(Self {
            ssh,
            session,
            settings,
            cache,
            place,
            home,
            pause: Duration::from_secs(2),
            look: LOOK,
            looks: u32::MAX,
            console: None,
            console_from: 0,
            watchdog: false,
            home_seconds: None,
        })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    fn limit(&self) -> Duration {
        self.settings.limit.unwrap_or(LIMIT).duration()
    }

    fn patience(&self) -> Patience {
        Patience::new(self.limit(), self.looks)
    }

    fn call(&self, to: To, command: &str, input: Option<&Path>) -> Result<String, NoAnswer> {
        let limit = self.limit();
        self.ssh
            .call(to, command, input, limit, self.cache.interrupt)
    }

    /// Starts the console's command, whose output is kept.
    pub(crate) fn listen(&mut self) -> Result<(), Trouble> {
        let Some(command) = &self.settings.console else {
            return Ok(());
        };
        let log = self.session.file("console");
        let running = shell(command, self.session.path()).start(&log);
        let running =
            running.map_err(|why| Trouble::Fatal(format!("[test_machine] console: {why}")))?;
        self.console = Some((running, log.with_extension("out")));
        Ok(())
    }

    /// Starts a kernel; the machine is up in it afterwards.
    pub(crate) fn start(&mut self, start: &Start<'_>) -> Result<Up, Trouble> {
        let (to, before) = match &self.place {
            Place::Home(id) => (To::Home, id.clone()),
            Place::Kernel(up) => (To::Kernel, up.facts.get("boot-id").to_owned()),
        };
        let token = token();
        if let Err(no) = self.load(to, start, &token) {
            if to == To::Home {
                self.forget();
            }
            return Err(self.not_started(to, &no));
        }
        let home = self.place.clone();
        // From here on it may be gone, whatever is heard of it.
        self.place = Place::Kernel(Up {
            token: token.clone(),
            before: before.clone(),
            ..Up::default()
        });
        last_words(Some(self.how_to_get_it_back()));
        match self.execute(to) {
            Ok(()) => {}
            Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
            Err(no) => {
                self.place = home;
                if to == To::Home {
                    self.forget();
                    last_words(None);
                }
                return Err(self.not_started(to, &no));
            }
        }
        self.wait_until_up(start, &token, &before, Instant::now())
    }

    /// Ends a start whose kernel did not run.
    fn not_started(&mut self, to: To, no: &NoAnswer) -> Trouble {
        match (no, to) {
            (NoAnswer::Interrupted, _) => self.interrupted(),
            (no, To::Home) => Trouble::Fatal(format!(
                "{} does not start the kernel: {}; it is in its own system, untouched",
                self.ssh.destination(),
                no.why()
            )),
            (no, To::Kernel) => {
                self.failed(format!("the next kernel cannot be started: {}", no.why()))
            }
        }
    }

    /// Uploads what is started, checks that it arrived, and loads it.
    fn load(&self, to: To, start: &Start<'_>, token: &str) -> Result<(), NoAnswer> {
        let cmdline = self.session.file("cmdline");
        let line = format!("{} {TOKEN}{token}\n", start.cmdline.trim());
        std::fs::write(&cmdline, line).map_err(|e| NoAnswer::Refused(e.to_string()))?;
        let program = self.session.file("test-machine");
        if to == To::Home {
            let folder = self.folder();
            let command = format!("umask 077; mkdir -p {folder} && cat >{folder}/test-machine");
            self.call(to, &command, Some(&program))?;
            self.expect_sum(to, "test-machine", &program)?;
            self.call(to, &format!("chmod 700 {folder}/test-machine"), None)?;
        }
        for (name, path) in [
            ("image", start.image),
            ("initramfs", start.initramfs),
            ("cmdline", cmdline.as_path()),
        ] {
            self.command(to, &format!("put {name}"), Some(path))?;
            self.expect_sum(to, name, path)?;
        }
        self.command(to, "load", None)?;
        if to == To::Home && self.watchdog {
            // What systemd holds is not ours to arm, and then it guards anyway.
            let seconds = self.limit().as_secs();
            let _ = self.command(to, &format!("watchdog {seconds}"), None);
        }
        Ok(())
    }

    /// Takes back what was loaded and uploaded to the machine's own system: a
    /// restart must not start it.
    fn forget(&self) {
        let (never, folder) = (AtomicBool::new(false), self.folder());
        let command = format!("{folder}/test-machine unload; rm -rf {folder}");
        let _ = self.ssh.call(To::Home, &command, None, LOOK, &never);
    }

    /// Returns the folder of the session in the machine's own system.
    fn folder(&self) -> String {
        self.home.folder().unwrap_or_else(|| "/run/locklab".into())
    }

    /// Has the machine's program do something.
    fn command(&self, to: To, command: &str, input: Option<&Path>) -> Result<String, NoAnswer> {
        match to {
            To::Home => self.call(
                to,
                &format!("{}/test-machine {command}", self.folder()),
                input,
            ),
            To::Kernel => self.call(to, command, input),
        }
    }

    fn expect_sum(&self, to: To, name: &str, path: &Path) -> Result<(), NoAnswer> {
        let command = match to {
            To::Home => format!("sha256sum {}/{name}", self.folder()),
            To::Kernel => format!("sum {name}"),
        };
        let there = self.call(to, &command, None)?;
        let here = sum(path).map_err(NoAnswer::Refused)?;
        if there.split(' ').next() == Some(here.as_str()) {
            return Ok(());
        }
        Err(NoAnswer::Refused(format!(
            "{name} did not arrive as it was sent"
        )))
    }

    fn execute(&mut self, to: To) -> Result<(), NoAnswer> {
        let heard = self
            .console
            .as_ref()
            .and_then(|(_, log)| log.metadata().ok());
        self.console_from = heard.map_or(0, |facts| facts.len());
        let command = match to {
            To::Home => format!("{}/test-machine exec", self.folder()),
            To::Kernel => "exec".to_owned(),
        };
        match self.look(to, &command) {
            // It may be gone before its answer is, or before the connection
            // ends.
            Ok(_) | Err(NoAnswer::Lost(_) | NoAnswer::TooLong) => Ok(()),
            Err(no) => Err(no),
        }
    }

    fn wait_until_up(
        &mut self,
        start: &Start<'_>,
        token: &str,
        before: &str,
        began: Instant,
    ) -> Result<Up, Trouble> {
        let (mut still_home, mut patience) = (false, self.patience());
        while patience.lasts() {
            match self.look(To::Kernel, "facts") {
                Ok(text) => {
                    let facts = Facts::read(&text);
                    // In a chain the kernel before answers until it is gone.
                    if facts.get("boot-id") != before {
                        return self.proved(start, token, facts, began);
                    }
                }
                Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
                Err(_) => match self.look(To::Home, BOOT_ID) {
                    Ok(id) if id.trim() != before => {
                        self.arrived(&id);
                        let why = "it came home by itself: the kernel panicked, or the machine \
                                   was reset";
                        return Err(self.failed(why.into()));
                    }
                    Ok(_) => still_home = true,
                    Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
                    Err(_) => still_home = false,
                },
            }
            std::thread::sleep(self.pause);
        }
        if still_home {
            self.arrived(before);
            return Err(Trouble::Fatal(format!(
                "{} did not leave its own system within {} s; nothing was measured",
                self.ssh.destination(),
                self.limit().as_secs()
            )));
        }
        let why = format!("the kernel was not up within {} s", self.limit().as_secs());
        Err(self.silent(why))
    }

    /// Returns whether what answers is the kernel that was started.
    fn proved(
        &mut self,
        start: &Start<'_>,
        token: &str,
        facts: Facts,
        began: Instant,
    ) -> Result<Up, Trouble> {
        let [release, version] = start.version;
        let found = [facts.get("release"), facts.get("version")];
        let up = Up {
            token: token.into(),
            before: match &self.place {
                Place::Home(id) => id.clone(),
                Place::Kernel(up) => up.before.clone(),
            },
            seconds: began.elapsed().as_secs_f64(),
            facts: facts.clone(),
        };
        self.place = Place::Kernel(up.clone());
        if facts.token() != token {
            return Err(self.failed("another kernel than the one that was started answered".into()));
        }
        if found != [release.as_str(), version.as_str()] {
            let why = format!(
                "the kernel that answered is {}, and not {release}",
                found.join(" ")
            );
            return Err(self.failed(why));
        }
        Ok(up)
    }

    /// Runs a plan in the kernel that is up, and returns its results.
    pub(crate) fn run(&mut self, name: &str, plan: &str) -> Result<String, Trouble> {
        let file = self.session.file("plan");
        let sent = std::fs::write(&file, plan)
            .map_err(|e| NoAnswer::Refused(e.to_string()))
            .and_then(|()| self.call(To::Kernel, &format!("put plan-{name}"), Some(&file)));
        // It is one command; nothing is asked while it measures.
        let ran = sent.and_then(|_| self.call(To::Kernel, &format!("run {name}"), None));
        match ran {
            Ok(results) => Ok(results),
            Err(NoAnswer::Interrupted) => Err(self.interrupted()),
            Err(NoAnswer::Refused(why)) => Ok(format!("failed {why}\n")),
            Err(NoAnswer::TooLong) => {
                let limit = self.limit().as_secs();
                Err(self.failed(format!("the workload did not end within {limit} s")))
            }
            Err(NoAnswer::Lost(why)) => self.collect(name, &why),
        }
    }

    /// Collects the results of a run whose connection broke.
    fn collect(&mut self, name: &str, why: &str) -> Result<String, Trouble> {
        let Place::Kernel(up) = self.place.clone() else {
            return Err(self.failed(why.into()));
        };
        self.cache.note(&format!(
            "the connection to {} broke while a workload ran ({why}); looking for its results",
            self.ssh.destination()
        ));
        let mut patience = self.patience();
        while patience.lasts() {
            match self.look(To::Kernel, "facts") {
                Ok(text) => {
                    let facts = Facts::read(&text);
                    let same = |key| facts.get(key) == up.facts.get(key);
                    if facts.token() != up.token || !same("boot-id") {
                        return Err(
                            self.failed("another kernel answers than the one that ran".into())
                        );
                    }
                    // Waits for the end of the run.
                    match self.call(To::Kernel, &format!("results {name}"), None) {
                        Ok(results) => return Ok(results),
                        Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
                        Err(_) => {}
                    }
                }
                Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
                Err(_) => match self.look(To::Home, BOOT_ID) {
                    Ok(id) => {
                        self.arrived(&id);
                        let why = "it came home by itself while a workload ran: the kernel \
                                   panicked, or the machine was reset";
                        return Err(self.failed(why.into()));
                    }
                    Err(NoAnswer::Interrupted) => return Err(self.interrupted()),
                    Err(_) => {}
                },
            }
            std::thread::sleep(self.pause);
        }
        Err(self.silent(format!("it no longer answers ({why})")))
    }

    /// Returns what the kernel that is up says about itself now.
    pub(crate) fn facts(&mut self) -> Result<Facts, Trouble> {
        match self.look(To::Kernel, "facts") {
            Ok(text) => Ok(Facts::read(&text)),
            Err(NoAnswer::Interrupted) => Err(self.interrupted()),
            Err(no) => Err(self.failed(format!("it no longer answers ({})", no.why()))),
        }
    }

    fn look(&self, to: To, command: &str) -> Result<String, NoAnswer> {
        let limit = self.look.min(self.limit());
        self.ssh
            .call(to, command, None, limit, self.cache.interrupt)
    }
}

fn shell(command: &str, folder: &Path) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), command.into()],
        environment: Vec::new(),
        folder: folder.into(),
        cpus: Vec::new(),
        fixed: false,
    }
}

/// Returns the SHA-256 of a file, as sha256sum prints it.
pub(crate) fn sum(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let hash = Sha256::digest(&bytes);
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns whether the machine stays in its kernel between two starts.
pub(crate) fn stays(settings: &TestMachineSettings) -> bool {
    settings.boot == BootFrom::Chain
}

#[cfg(test)]
mod tests;
