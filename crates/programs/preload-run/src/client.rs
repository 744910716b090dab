//! A client of a program on the same machine, such as a load generator: how much CPU time its
//! processes have had. What has ended, and whose parent has not waited for it, is not seen.

use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::time::Duration;

/// The processes of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Client {
    /// The process of this number.
    Process(u32),
    /// Every process of this name, as far as the kernel keeps it: 15 bytes.
    Command(String),
}

impl Client {
    /// Returns what is named: a number is that of a process.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name.parse() {
            Ok(process) => Self::Process(process),
            Err(_) => Self::Command(name.rsplit('/').next().unwrap_or(name).to_owned()),
        }
    }

    /// Returns the CPU time of its processes that live, with that of their children that
    /// have ended; `None` if there is no such process.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        let of = |process: u32| fs::read_to_string(format!("/proc/{process}/stat")).ok();
        let times: Vec<Duration> = match self {
            Self::Process(process) => of(*process)
                .and_then(|stat| Some(parse(&stat)?.1))
                .into_iter()
                .collect(),
            Self::Command(name) => {
                let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
                let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
                let stats = numbers.filter_map(of);
                let named = stats.filter_map(|stat| {
                    let (comm, time) = parse(&stat)?;
                    let kept = name.as_bytes().iter().take(15);
                    comm.bytes().eq(kept.copied()).then_some(time)
                });
                named.collect()
            }
        };
        (!times.is_empty()).then(|| times.into_iter().sum())
    }
}

/// Returns the name and the CPU time of a process's `stat`.
fn parse(stat: &str) -> Option<(&str, Duration)> {
    // A name may have any character, also brackets.
    let (from, to) = (stat.find('(')?, stat.rfind(')')?);
    let fields = stat.get(to + 1..)?.split_whitespace();
    // As a user and in the kernel: its own, and that of its children.
    let ticks: u64 = fields
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let time = Duration::from_secs_f64(ticks as f64 / per_second as f64);
    Some((stat.get(from + 1..to)?, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_number_and_its_name() {
        let own = Client::Process(std::process::id()).cpu_time();
        assert!(own.is_some());
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        let named = Client::named(&format!("/usr/bin/{}", name.trim_end()));
        assert!(named.cpu_time() >= own);
        assert_eq!(Client::named("17"), Client::Process(17));
        assert_eq!(Client::Command("no such program".into()).cpu_time(), None);
    }

    #[test]
    fn a_name_may_have_brackets() {
        let second = sysconf(SysconfVar::CLK_TCK).unwrap().unwrap();
        let stat = format!("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 {second} 0 {second} {second} 20 0");
        let (name, time) = parse(&stat).unwrap();
        assert_eq!((name, time), ("a) b", Duration::from_secs(3)));
        assert_eq!(parse("7 a S"), None);
    }
}
