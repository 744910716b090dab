//! The split of published experiments into those that may inform the model and
//! those that only judge it: `reference/split.toml`, by a rule that leaves no
//! choice.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The role of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Its misses may be investigated, to find what the model lacks.
    Structure,
    /// It is simulated to print its score, and nothing is changed after that.
    EvaluatedOnly,
    /// The same for locks that sleep and of more threads than CPUs.
    Sleeping,
    /// The same where the source does not name the machine.
    Unnamed,
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [
        Self::Structure,
        Self::EvaluatedOnly,
        Self::Sleeping,
        Self::Unnamed,
    ];

    /// Returns the name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Structure => "may inform structure",
            Self::EvaluatedOnly => "evaluated only",
            Self::Sleeping => "locks that sleep, and more threads than CPUs; evaluated only",
            Self::Unnamed => "the same on machines that nobody names; in no other score",
        }
    }

    /// Returns the name in documents.
    pub fn key(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::EvaluatedOnly => "evaluated-only",
            Self::Sleeping => "sleeping",
            Self::Unnamed => "unnamed",
        }
    }

    /// Returns the group of an experiment, by the name of its reference; `None` if the
    /// split does not have it.
    pub fn of(name: &str) -> Option<Self> {
        let has = |list: &[String]| list.iter().any(|known| known == name);
        let split = &*SPLIT;
        if has(&split.evaluated) || has(&split.later_evaluated) {
            Some(Self::EvaluatedOnly)
        } else if has(&split.structure) || has(&split.later_structure) || has(&split.used_before) {
            Some(Self::Structure)
        } else if has(&split.sleeping) {
            Some(Self::Sleeping)
        } else if has(&split.unnamed) {
            Some(Self::Unnamed)
        } else {
            None
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    used_before: Vec<String>,
    evaluated: Vec<String>,
    structure: Vec<String>,
    later_evaluated: Vec<String>,
    later_structure: Vec<String>,
    sleeping: Vec<String>,
    unnamed: Vec<String>,
}

static SPLIT: LazyLock<Split> = LazyLock::new(|| {
    toml::from_str(include_str!("../reference/split.toml")).expect("a test reads it")
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::EXPERIMENTS;
    use sha2::{Digest, Sha256};

    fn has(list: &[String], name: &str) -> bool {
        list.iter().any(|known| known == name)
    }

    #[test]
    fn the_lists_are_what_the_rule_makes_of_the_names() {
        let is_later =
            |name: &&str| has(&SPLIT.later_evaluated, name) || has(&SPLIT.later_structure, name);
        let apart = |name: &str| has(&SPLIT.sleeping, name) || has(&SPLIT.unnamed, name);
        let names = EXPERIMENTS.iter().map(|(name, ..)| *name);
        let (mut later, mut names): (Vec<&str>, Vec<&str>) = names
            .filter(|name| !has(&SPLIT.used_before, name) && !apart(name))
            .partition(is_later);
        let all = names.len() + SPLIT.used_before.len();
        assert_eq!(
            all + later.len() + SPLIT.sleeping.len() + SPLIT.unnamed.len(),
            EXPERIMENTS.len()
        );
        for (names, all, evaluated, structure) in [
            (&mut names, all, &SPLIT.evaluated, &SPLIT.structure),
            (
                &mut later,
                12,
                &SPLIT.later_evaluated,
                &SPLIT.later_structure,
            ),
        ] {
            names.sort_by_key(|name| Sha256::digest(name.as_bytes()));
            let evaluated_only = all.div_ceil(2);
            assert_eq!(*evaluated, names[..evaluated_only]);
            assert_eq!(*structure, names[evaluated_only..]);
        }
    }

    #[test]
    fn a_machine_that_is_not_named_has_a_group_of_its_own() {
        for (name, text) in EXPERIMENTS {
            let unnamed = has(&SPLIT.unnamed, name);
            if unnamed || has(&SPLIT.sleeping, name) {
                let mut lines = text.lines();
                let machine = lines.rfind(|line| line.starts_with("machine = "));
                assert_eq!(machine.unwrap().contains("not said"), unnamed, "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_in_no_group() {
        assert_eq!(Group::of("cna-kernel-4s"), Some(Group::EvaluatedOnly));
        assert_eq!(Group::of("virt-backoff"), Some(Group::Structure));
        assert_eq!(Group::of("mutexes-epyc-7571"), Some(Group::Sleeping));
        assert_eq!(Group::of("mutexes-zio"), Some(Group::Unnamed));
        assert_eq!(Group::of("nothing"), None);
    }
}
