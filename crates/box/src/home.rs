//! The machine's own system: what it is, whether kernels can be started from
//! it, and how a measured kernel finds its network. It must never change
//! anything there.

use crate::ssh::{NoAnswer, Ssh, To};
use locklab_doctor::{Check, State};
use locklab_kernel::settings::BoxSettings;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PROBE: &str = include_str!("probe.sh");

/// What the machine's own system says.
#[derive(Clone, Debug, Default)]
pub struct Home {
    facts: BTreeMap<String, Vec<String>>,
}

/// How a measured kernel gets on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) mac: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) prefix: u32,
    pub(crate) gateway: Option<Ipv4Addr>,
    pub(crate) port: u16,
    /// Modules of the card and its buses, the outermost bus last, and of what else
    /// is needed before a workload.
    pub(crate) drivers: Vec<String>,
}

/// The memory that images, the initramfs and the measured kernel's copy of
/// them take, in KiB; less is refused by kexec with an unclear message.
const MEMORY_KIB: u64 = 512 * 1024;

impl Home {
    /// Asks the machine.
    pub(crate) fn ask(
        ssh: &Ssh,
        folder: &Path,
        limit: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, NoAnswer> {
        let script = folder.join("probe.sh");
        std::fs::write(&script, PROBE).map_err(|e| NoAnswer::Lost(e.to_string()))?;
        let text = ssh.call(To::Home, "exec sh -s", Some(&script), limit, interrupt)?;
        let home = Self::read(&text);
        match home.get("end") {
            Some(_) => Ok(home),
            None => Err(NoAnswer::Refused(
                "what answers there is no Linux system with a shell".into(),
            )),
        }
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut facts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            // /proc/cpuinfo and /proc/meminfo have the name again.
            let value = match key {
                "processor" | "microcode" | "memory" => {
                    value.split_once(':').map_or(value, |(_, value)| value)
                }
                _ => value,
            };
            facts
                .entry(key.into())
                .or_default()
                .push(value.trim().into());
        }
        Self { facts }
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.facts.get(key).map_or(&[], Vec::as_slice)
    }

    /// What it says about this, if anything.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }

    /// The folder in memory from which a program of ours can be started.
    pub(crate) fn folder(&self) -> Option<String> {
        self.get("folder").map(|folder| format!("{folder}/locklab"))
    }

    /// The processor, for reports.
    #[must_use]
    pub fn processor(&self) -> String {
        let name = self.get("processor").unwrap_or("an unknown processor");
        format!("{name}, {} CPUs", self.get("cpus").unwrap_or("?"))
    }

    /// Why what is measured there are no times of a processor, if so.
    #[must_use]
    pub fn translated(&self) -> Option<String> {
        let name = self.get("processor")?;
        name.contains("QEMU TCG").then(|| {
            format!(
                "the processor is QEMU's translator ({name}): its times are not those of any \
                 processor, and mean nothing"
            )
        })
    }

    /// The network of the connection, or what the settings say instead.
    ///
    /// # Errors
    /// Why it cannot be told, and which setting tells it.
    pub(crate) fn network(&self, settings: &BoxSettings) -> Result<Network, String> {
        let connection: Vec<&str> = self
            .get("connection")
            .map_or_else(Vec::new, |text| text.split(' ').collect());
        let port = connection.get(3).and_then(|port| port.parse().ok());
        let typed = settings.ip.as_deref().map(|text| {
            let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
            (address.to_owned(), prefix.parse::<u32>().ok())
        });
        let (address, prefix) = match (&typed, connection.get(2)) {
            (Some((address, prefix)), _) => (address.as_str(), *prefix),
            (None, Some(address)) => (*address, None),
            (None, None) => ("", None),
        };
        let address: Ipv4Addr = address.parse().map_err(|_| {
            format!(
                "'{address}' is not an IPv4 address for measured kernels; give [box] ip = \
                 \"192.0.2.7/24\""
            )
        })?;
        let routes = self.routes();
        let link = routes
            .iter()
            .filter(|route| route.gateway.is_unspecified() && !route.mask.is_unspecified())
            .find(|route| u32::from(address) & u32::from(route.mask) == u32::from(route.to));
        let prefix = prefix
            .or(link.map(|route| u32::from(route.mask).count_ones()))
            .filter(|prefix| *prefix <= 32)
            .ok_or_else(|| {
                format!("no network of {address} is known; give [box] ip with /PREFIX")
            })?;
        let interface = link
            .map(|route| route.interface.as_str())
            .unwrap_or_default();
        let card = |name: &str| -> Option<&str> {
            let cards = self
                .all("card")
                .iter()
                .filter_map(|card| card.split_once(' '));
            cards
                .into_iter()
                .find(|(card, _)| *card == name)
                .map(|(_, mac)| mac)
        };
        let mac = settings.mac.as_deref().or(card(interface)).ok_or_else(|| {
            format!(
                "{address} is not that of a network card ('{interface}' is a bridge, a bond or \
                 unknown); give the card's address in [box] mac"
            )
        })?;
        let mac = mac.to_lowercase();
        if mac.split(':').count() != 6 || mac.chars().any(|c| c != ':' && !c.is_ascii_hexdigit()) {
            return Err(format!(
                "[box] mac = \"{mac}\" is no address of a network card"
            ));
        }
        let default = routes.iter().find(|route| {
            route.interface == interface && route.mask.is_unspecified() && route.to.is_unspecified()
        });
        let gateway = match &settings.gateway {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| format!("[box] gateway = \"{text}\" is not an IPv4 address"))?,
            ),
            None => default.map(|route| route.gateway),
        };
        let of_card = |card: &str| {
            card.split_once(' ')
                .map(|(name, mac)| (name.to_owned(), mac.to_lowercase()))
        };
        let name = self
            .all("card")
            .iter()
            .filter_map(|c| of_card(c))
            .find(|(_, m)| *m == mac);
        let drivers = self
            .all("driver")
            .iter()
            .filter_map(|driver| driver.split_once(' '));
        let drivers = drivers
            .filter(|(card, _)| name.as_ref().is_some_and(|(name, _)| name == card))
            .map(|(_, module)| module.to_owned())
            .collect();
        Ok(Network {
            mac,
            address,
            prefix,
            gateway,
            port: port.unwrap_or(22),
            drivers,
        })
    }

    fn routes(&self) -> Vec<Route> {
        let route = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            let address = |at: usize| {
                let number = u32::from_str_radix(words.get(at)?, 16).ok()?;
                // The kernel prints the bytes as they lie in memory.
                Some(Ipv4Addr::from(number.to_le_bytes()))
            };
            Some(Route {
                interface: (*words.first()?).to_owned(),
                to: address(1)?,
                gateway: address(2)?,
                mask: address(3)?,
            })
        };
        self.all("route").iter().filter_map(route).collect()
    }

    /// Why no kernel can be started from here, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.checks(&BoxSettings::default())
            .into_iter()
            .find(|check| check.state == State::Missing && check.part == STARTING)
            .map(|check| match check.remedy {
                Some(remedy) => format!("{}: {}; {remedy}", check.name, check.found),
                None => format!("{}: {}", check.name, check.found),
            })
    }

    /// Everything that decides what can be measured on the machine.
    #[must_use]
    pub fn checks(&self, settings: &BoxSettings) -> Vec<Check> {
        let mut checks = self.starting(settings);
        checks.extend(self.returning(settings));
        checks.extend(self.measuring());
        checks
    }

    fn starting(&self, settings: &BoxSettings) -> Vec<Check> {
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
            Err(why) => (State::Missing, why, ""),
        };
        add("Network", state, found, remedy);
        checks
    }

    fn returning(&self, settings: &BoxSettings) -> Vec<Check> {
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
                "give [box] power_cycle, such as an ipmitool command",
            ),
        }
        match &settings.console {
            Some(command) => add("Console", State::Ok, command, ""),
            None => add(
                "Console",
                State::Limited,
                "no command: the last lines of a kernel that dies are not seen",
                "give [box] console, such as ipmitool sol activate",
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

/// A route of the machine's own system.
struct Route {
    interface: String,
    to: Ipv4Addr,
    gateway: Ipv4Addr,
    mask: Ipv4Addr,
}

#[cfg(test)]
pub(crate) const EXAMPLE: &str = "boot-id home-1\nrelease 6.1.0\nmachine x86_64\nuser 0\ncpus 8\n\
    processor model name	: Example 9000\nmemory MemAvailable:    8000000 kB\n\
    kexec-loaded 0\nkexec-disabled 0\nlockdown [none] integrity confidentiality\n\
    connection 192.0.2.9 51000 192.0.2.7 2222\nfolder /dev/shm\nsha256sum /usr/bin/sha256sum\n\
    users 0\nload 0.01 0.02 0.03 1/200 77\n\
    route Iface Destination Gateway Mask\nroute eno1 00000000 010200C0 00000000\n\
    route eno1 000200C0 00000000 00FFFFFF\ncard eno1 52:54:00:AA:BB:CC\n\
    driver eno1 igb\ndriver eno1 pcieport\nend yes\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_that_of_the_connection_unless_the_file_says_otherwise() {
        let home = Home::read(EXAMPLE);
        let network = home.network(&BoxSettings::default()).unwrap();
        assert_eq!(network.mac, "52:54:00:aa:bb:cc");
        assert_eq!(network.address.to_string(), "192.0.2.7");
        assert_eq!((network.prefix, network.port), (24, 2222));
        assert_eq!(network.gateway.unwrap().to_string(), "192.0.2.1");
        assert_eq!(network.drivers, ["igb", "pcieport"]);
        let other = BoxSettings {
            ip: Some("198.51.100.3/29".into()),
            mac: Some("52:54:00:00:00:01".into()),
            gateway: Some("198.51.100.1".into()),
            ..BoxSettings::default()
        };
        let network = home.network(&other).unwrap();
        assert_eq!(
            (network.prefix, network.mac.as_str()),
            (29, "52:54:00:00:00:01")
        );
        // A bridge has the address, and no card of that name.
        let bridge = Home::read(&EXAMPLE.replace("route eno1", "route br0"));
        let why = bridge.network(&BoxSettings::default()).unwrap_err();
        assert!(why.contains("[box] mac"), "{why}");
        let ipv6 = Home::read(&EXAMPLE.replace("192.0.2.7", "2001:db8::7"));
        let why = ipv6.network(&BoxSettings::default()).unwrap_err();
        assert!(why.contains("[box] ip"), "{why}");
    }

    #[test]
    fn what_keeps_kernels_from_being_started_is_found_and_said() {
        let refusal = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from), "{from}");
            Home::read(&EXAMPLE.replace(from, to))
                .refusal()
                .unwrap_or_default()
        };
        assert_eq!(refusal("users 0", "users 0"), "");
        for (from, to, needle) in [
            ("[none] integrity", "none [integrity]", "Secure Boot"),
            (
                "kexec-disabled 0",
                "kexec-disabled 1",
                "kexec_load_disabled is set",
            ),
            ("kexec-loaded 0\n", "", "no kexec"),
            ("user 0\ncpus", "user 1000\ncpus", "root"),
            ("8000000", "80000", "78 MiB"),
            ("folder /dev/shm\n", "", "tmpfs"),
            ("x86_64", "aarch64", "only x86_64"),
        ] {
            let why = refusal(from, to);
            assert!(why.contains(needle), "{to}: {why}");
        }
    }

    #[test]
    fn a_translator_is_never_taken_for_a_processor() {
        let home = Home::read(&EXAMPLE.replace("Example 9000", "QEMU TCG CPU version 2.5+"));
        assert!(home.translated().unwrap().contains("mean nothing"));
        assert_eq!(Home::read(EXAMPLE).translated(), None);
    }
}
