//! Checks whether kernels can be started from the machine's own system, whether it
//! comes back when one fails, and what can be measured there: one check each,
//! with its remedy. It must never ask the machine itself.

use super::Home;
use crate::settings::TestMachineSettings;
use locklab_native::doctor::{Check, State};

/// The memory that images, the initramfs and the measured kernel's copy of
/// them take, in KiB; less is refused by kexec with an unclear message.
const MEMORY_KIB: u64 = 512 * 1024;

const STARTING: &str = "Starting kernels";
const RETURNING: &str = "When one does not come back";
const MEASURING: &str = "What is measured";

pub(crate) fn check(
    part: &'static str,
    name: &str,
    state: State,
    found: String,
    remedy: &str,
) -> Check {
    Check {
        part,
        name: name.into(),
        state,
        found,
        remedy: (state != State::Ok && !remedy.is_empty()).then(|| remedy.to_owned()),
    }
}

impl Home {
    /// Returns why no kernel can be started from here, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.checks(&TestMachineSettings::default())
            .into_iter()
            .find(|check| check.state == State::Missing && check.part == STARTING)
            .map(|check| match check.remedy {
                Some(remedy) => format!("{}: {}; {remedy}", check.name, check.found),
                None => format!("{}: {}", check.name, check.found),
            })
    }

    /// Returns everything that decides what can be measured on the machine.
    #[must_use]
    pub fn checks(&self, settings: &TestMachineSettings) -> Vec<Check> {
        let mut checks = self.starting(settings);
        checks.extend(self.returning(settings));
        checks.extend(self.measuring());
        checks
    }

    fn starting(&self, settings: &TestMachineSettings) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut add = |name: &str, state: State, found: String, remedy: &str| {
            checks.push(check(STARTING, name, state, found, remedy));
        };
        let machine = self.get("machine").unwrap_or("unknown");
        let state = if machine == "x86_64" {
            State::Ok
        } else {
            State::Missing
        };
        add(
            "Architecture",
            state,
            machine.into(),
            "only x86_64 is supported",
        );
        let user = self.get("user").unwrap_or("unknown");
        let state = if user == "0" {
            State::Ok
        } else {
            State::Missing
        };
        let found = if user == "0" {
            "root".into()
        } else {
            format!("user {user}")
        };
        add(
            "User",
            state,
            found,
            "a kernel is loaded by root: give ssh:root@...",
        );
        let lockdown = self.get("lockdown").unwrap_or("[none]");
        let locked = !lockdown.contains("[none]");
        let state = if locked { State::Missing } else { State::Ok };
        let remedy = "turn off Secure Boot, or lockdown= on its kernel's command line";
        add("Lockdown", state, lockdown.into(), remedy);
        let (state, found) = match (self.get("kexec-loaded"), self.get("kexec-disabled")) {
            (None, _) => (State::Missing, "its kernel has no kexec".to_owned()),
            (_, Some("1")) => (State::Missing, "kexec_load_disabled is set".to_owned()),
            (Some("1"), _) => (
                State::Limited,
                "another kernel is loaded, and will be replaced".into(),
            ),
            _ => (State::Ok, "its kernel can start another".into()),
        };
        add(
            "kexec",
            state,
            found,
            "start it with a kernel that has CONFIG_KEXEC_FILE, and leave the sysctl at 0",
        );
        let memory = self
            .get("memory")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let state = match memory {
            Some(kib) if kib < MEMORY_KIB => State::Missing,
            Some(_) => State::Ok,
            None => State::Unknown,
        };
        let found = memory.map_or("unknown".into(), |kib| {
            format!("{} MiB available", kib / 1024)
        });
        add(
            "Memory",
            state,
            found,
            "images and initramfs are kept in memory, twice while they are loaded",
        );
        let (state, found) = match self.folder() {
            Some(folder) => (State::Ok, format!("{folder}, in memory")),
            None => (
                State::Missing,
                "none in memory from which a program starts".into(),
            ),
        };
        add(
            "Folder",
            state,
            found,
            "mount a tmpfs without noexec on /dev/shm",
        );
        let there = self.get("sha256sum").is_some();
        let state = if there { State::Ok } else { State::Missing };
        let found = if there {
            "sha256sum is there"
        } else {
            "there is no sha256sum"
        };
        add("Checksum", state, found.into(), "install coreutils there");
        let (state, found, remedy) = match self.network(settings) {
            Ok(network) => (
                State::Ok,
                format!(
                    "{}/{} on {}, {}",
                    network.address,
                    network.prefix,
                    network.mac,
                    network
                        .gateway
                        .map_or("no gateway".into(), |g| format!("through {g}"))
                ),
                "",
            ),
            Err(why) => (State::Missing, why.into(), ""),
        };
        add("Network", state, found, remedy);
        checks
    }

    fn returning(&self, settings: &TestMachineSettings) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut add = |name: &str, state: State, found: &str, remedy: &str| {
            checks.push(check(RETURNING, name, state, found.into(), remedy));
        };
        match &settings.power_cycle {
            Some(command) => add("Power cycle", State::Ok, command, ""),
            None => add(
                "Power cycle",
                State::Limited,
                "no command: a kernel that hangs stays until somebody comes",
                "give [test_machine] power_cycle, such as an ipmitool command",
            ),
        }
        match &settings.console {
            Some(command) => add("Console", State::Ok, command, ""),
            None => add(
                "Console",
                State::Limited,
                "no command: the last lines of a kernel that dies are not seen",
                "give [test_machine] console, such as ipmitool sol activate",
            ),
        }
        let yes = |key: &str| self.get(key).is_some();
        let (state, found) = if yes("watchdog") {
            (
                State::Ok,
                "there; armed if measured kernels have its driver too",
            )
        } else {
            (
                State::Limited,
                "none: nothing in the machine restarts a kernel that hangs",
            )
        };
        add("Watchdog", state, found, "");
        let (state, found) = if yes("pstore") {
            (
                State::Ok,
                "there: what a kernel says when it panics may survive it",
            )
        } else {
            (State::Limited, "none")
        };
        add("pstore", state, found, "");
        let (state, found) = if yes("systemd") {
            (State::Ok, "systemctl kexec stops services and unmounts")
        } else {
            (
                State::Limited,
                "no systemd: file systems are made read-only, services are not stopped",
            )
        };
        add("Leaving home", state, found, "");
        checks
    }

    fn measuring(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut add = |name: &str, state: State, found: String, remedy: &str| {
            checks.push(check(MEASURING, name, state, found, remedy));
        };
        let (state, found) = match self.translated() {
            Some(why) => (State::Limited, why),
            None => (State::Ok, self.processor()),
        };
        add("Processor", state, found, "");
        let microcode = self.get("microcode").unwrap_or("unknown");
        add("Microcode", State::Ok, microcode.into(), "");
        let counters = self.get("counters").is_some();
        let (state, found) = if counters {
            (
                State::Ok,
                "there; misses of user and kernel are counted in alternate pairs",
            )
        } else {
            (
                State::Limited,
                "none: time is measured, and nothing is counted",
            )
        };
        add("Counters", state, found.into(), "");
        let set = |value: Option<&str>, here: &str| match value {
            Some(value) => format!("{value}; {here}"),
            None => "not there".to_owned(),
        };
        let quiet = "off in measured kernels, for its counter";
        add(
            "NMI watchdog",
            State::Ok,
            set(self.get("nmi-watchdog"), quiet),
            "",
        );
        let governor = "performance in measured kernels only";
        add(
            "Governor",
            State::Ok,
            set(self.get("governor"), governor),
            "",
        );
        let turbo = self
            .get("no-turbo")
            .map(|value| if value == "1" { "off" } else { "on" });
        let boost = self
            .get("boost")
            .map(|value| if value == "0" { "off" } else { "on" });
        add(
            "Turbo",
            State::Ok,
            set(turbo.or(boost), "off in measured kernels only"),
            "",
        );
        let smt = self
            .get("smt")
            .map(|value| if value == "1" { "on" } else { "off" });
        add(
            "SMT",
            State::Ok,
            set(smt, "as it is, unless cmdline has nosmt"),
            "",
        );
        let users: u64 = self.get("users").and_then(|n| n.parse().ok()).unwrap_or(0);
        let state = if users > 0 { State::Limited } else { State::Ok };
        let remedy = "they lose their sessions when a kernel is started: ask them";
        add("Logged in", state, format!("{users} others"), remedy);
        let load = self.get("load").unwrap_or("unknown");
        let first: f64 = load
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0.0);
        let state = if first > 1.0 {
            State::Limited
        } else {
            State::Ok
        };
        add(
            "Load",
            state,
            load.into(),
            "what runs there is stopped when a kernel is started",
        );
        checks
    }
}
