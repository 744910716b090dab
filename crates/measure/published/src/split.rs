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
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Structure, Self::EvaluatedOnly, Self::Sleeping];

    /// Returns the name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Structure => "may inform structure",
            Self::EvaluatedOnly => "evaluated only",
            Self::Sleeping => "locks that sleep, and more threads than CPUs; evaluated only",
        }
    }

    /// Returns the name in documents.
    pub fn key(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::EvaluatedOnly => "evaluated-only",
            Self::Sleeping => "sleeping",
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
}

static SPLIT: LazyLock<Split> = LazyLock::new(|| {
    toml::from_str(include_str!("../reference/split.toml")).expect("a test reads it")
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::EXPERIMENTS;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_lists_are_what_the_rule_makes_of_the_names() {
        let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
        let is_later =
            |name: &&str| has(&SPLIT.later_evaluated, name) || has(&SPLIT.later_structure, name);
        let names = EXPERIMENTS.iter().map(|(name, ..)| *name);
        let (mut later, mut names): (Vec<&str>, Vec<&str>) = names
            .filter(|name| !has(&SPLIT.used_before, name) && !has(&SPLIT.sleeping, name))
            .partition(is_later);
        let all = names.len() + SPLIT.used_before.len();
        assert_eq!(all + later.len() + SPLIT.sleeping.len(), EXPERIMENTS.len());
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
    fn an_unknown_name_is_in_no_group() {
        assert_eq!(Group::of("cna-kernel-4s"), Some(Group::EvaluatedOnly));
        assert_eq!(Group::of("virt-backoff"), Some(Group::Structure));
        assert_eq!(Group::of("mutexes-zio"), Some(Group::Sleeping));
        assert_eq!(Group::of("nothing"), None);
    }
}
