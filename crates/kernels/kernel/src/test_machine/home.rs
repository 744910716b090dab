//! The machine's own system: what it is, whether kernels can be started from
//! it, and how a measured kernel finds its network. It must never change
//! anything there.

pub(crate) mod checks;

use crate::settings::TestMachineSettings;
use crate::test_machine::ssh::{NoAnswer, Ssh, To};
use locklab_host::error::Error;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PROBE: &str = include_str!("probe.sh");

/// Holds what the machine's own system says.
#[derive(Clone, Debug, Default)]
pub struct Home {
    facts: BTreeMap<String, Vec<String>>,
}

/// Says how a measured kernel gets on the network.
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

impl Home {
    /// Asks the machine for all of this by one script.
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

    /// Returns what it says about this, if anything.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }

    /// Returns the folder in memory from which a program of ours can be started.
    pub(crate) fn folder(&self) -> Option<String> {
        self.get("folder").map(|folder| format!("{folder}/locklab"))
    }

    /// Returns the processor, for reports.
    #[must_use]
    pub fn processor(&self) -> String {
        let name = self.get("processor").unwrap_or("an unknown processor");
        format!("{name}, {} CPUs", self.get("cpus").unwrap_or("?"))
    }

    /// Returns why what is measured there are no times of a processor, if so.
    #[must_use]
    pub fn translated(&self) -> Option<String> {
        let name = self.get("processor")?;
        name.contains("QEMU TCG").then(|| {
            format!(
                "the processor is QEMU's translator ({name}): its times are not the times of any \
                 processor, and mean nothing"
            )
        })
    }

    /// Returns the network of the connection, or what the settings say instead.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot be told; the sentence says which setting tells it.
    pub(crate) fn network(&self, settings: &TestMachineSettings) -> Result<Network, Error> {
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
            Error::Usage(format!(
                "'{address}' is not an IPv4 address for measured kernels; give [test_machine] ip = \
                 \"192.0.2.7/24\""
            ))
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
                Error::Usage(format!(
                    "no network of {address} is known; give [test_machine] ip with /PREFIX"
                ))
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
            Error::Usage(format!(
                "{address} is not the address of a network card ('{interface}' is a bridge, a bond or \
                 unknown); give the card's address in [test_machine] mac"
            ))
        })?;
        let mac = mac.to_lowercase();
        if mac.split(':').count() != 6 || mac.chars().any(|c| c != ':' && !c.is_ascii_hexdigit()) {
            return Err(Error::Usage(format!(
                "[test_machine] mac = \"{mac}\" is no address of a network card"
            )));
        }
        let default = routes.iter().find(|route| {
            route.interface == interface && route.mask.is_unspecified() && route.to.is_unspecified()
        });
        let gateway = match &settings.gateway {
            Some(text) => Some(text.parse().map_err(|_| {
                Error::Usage(format!(
                    "[test_machine] gateway = \"{text}\" is not an IPv4 address"
                ))
            })?),
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
        let network = home.network(&TestMachineSettings::default()).unwrap();
        assert_eq!(network.mac, "52:54:00:aa:bb:cc");
        assert_eq!(network.address.to_string(), "192.0.2.7");
        assert_eq!((network.prefix, network.port), (24, 2222));
        assert_eq!(network.gateway.unwrap().to_string(), "192.0.2.1");
        assert_eq!(network.drivers, ["igb", "pcieport"]);
        let other = TestMachineSettings {
            ip: Some("198.51.100.3/29".into()),
            mac: Some("52:54:00:00:00:01".into()),
            gateway: Some("198.51.100.1".into()),
            ..TestMachineSettings::default()
        };
        let network = home.network(&other).unwrap();
        assert_eq!(
            (network.prefix, network.mac.as_str()),
            (29, "52:54:00:00:00:01")
        );
        // A bridge has the address, and no card of that name.
        let bridge = Home::read(&EXAMPLE.replace("route eno1", "route br0"));
        let why = bridge
            .network(&TestMachineSettings::default())
            .unwrap_err()
            .to_string();
        assert!(why.contains("[test_machine] mac"), "{why}");
        let ipv6 = Home::read(&EXAMPLE.replace("192.0.2.7", "2001:db8::7"));
        let why = ipv6
            .network(&TestMachineSettings::default())
            .unwrap_err()
            .to_string();
        assert!(why.contains("[test_machine] ip"), "{why}");
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
