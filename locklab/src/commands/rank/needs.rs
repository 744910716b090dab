//! `--needs`: what a lock must be able to do, and which locks can, by the facts
//! of the catalogue. Nothing is stated of a lock here.

use locklab_locks::Fairness;
use locklab_native::subject::Subject;
use serde::Deserialize;
use std::str::FromStr;

/// Names what a lock must be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Need {
    /// An attempt that does not wait.
    Try,
    /// A wait that can be given up.
    Timeout,
    /// First come, first served.
    Fifo,
    /// Its holder may acquire it again.
    Recursive,
    /// It works between processes.
    SharedMemory,
    /// A thread brings nothing of its own.
    NoContext,
    /// The lock has at most so many bytes.
    Bytes(usize),
}

/// The words of the command line, except for bytes.
const WORDS: [(&str, Need); 6] = [
    ("try", Need::Try),
    ("timeout", Need::Timeout),
    ("fifo", Need::Fifo),
    ("recursive", Need::Recursive),
    ("shared-memory", Need::SharedMemory),
    ("no-context", Need::NoContext),
];

impl FromStr for Need {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let word = word.trim();
        if let Some((_, need)) = WORDS.iter().find(|(name, _)| *name == word) {
            return Ok(*need);
        }
        let bytes = word.strip_prefix("bytes<=").map(str::parse);
        match bytes {
            Some(Ok(bytes)) => Ok(Self::Bytes(bytes)),
            _ => Err(format!(
                "'{word}' is not one of {}, bytes<=N",
                WORDS.map(|(name, _)| name).join(", ")
            )),
        }
    }
}

impl TryFrom<String> for Need {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        word.parse()
    }
}

impl Need {
    /// Returns why a lock does not do; `None` if it does.
    pub(super) fn lacking(self, subject: &Subject) -> Option<String> {
        let info = &subject.info;
        let (has, why) = match self {
            Self::Try => (info.try_lock, "it has no try_lock".to_owned()),
            Self::Timeout => (info.timeout, "a wait cannot be given up".into()),
            Self::Fifo => (
                info.fairness == Fairness::Fifo,
                "it does not serve first come, first served".into(),
            ),
            Self::Recursive => (info.recursive, "its holder may not acquire it again".into()),
            Self::SharedMemory => (
                info.shared_memory,
                "it does not work between processes".into(),
            ),
            Self::NoContext => (
                subject.context_free,
                "a thread must bring memory of its own".into(),
            ),
            Self::Bytes(most) => (
                subject.bytes <= most,
                format!("it has {} bytes", subject.bytes),
            ),
        };
        (!has).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_native::subject;

    #[test]
    fn needs_are_read_and_a_wrong_one_is_told_the_others() {
        assert_eq!("no-context".parse(), Ok(Need::NoContext));
        assert_eq!("bytes<=8".parse(), Ok(Need::Bytes(8)));
        for wrong in ["bytes<=", "bytes<8", "fair", ""] {
            let error = Need::from_str(wrong).unwrap_err();
            assert!(
                error.contains("shared-memory") && error.contains("bytes<=N"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_catalogue_says_who_can() {
        let can = |need: Need, name: &str| need.lacking(&subject::find(name).unwrap()).is_none();
        assert!(can(Need::Fifo, "ticket") && !can(Need::Fifo, "ttas"));
        assert!(can(Need::NoContext, "qspinlock") && !can(Need::NoContext, "mcs"));
        assert!(can(Need::Bytes(4), "ticket") && !can(Need::Bytes(4), "anderson"));
        assert!(can(Need::Timeout, "mcs-timeout") && !can(Need::Timeout, "mcs"));
        assert!(can(Need::Recursive, "mplock-mcs") && !can(Need::Recursive, "mcs"));
        assert!(can(Need::SharedMemory, "ttas") && !can(Need::SharedMemory, "mcs"));
    }
}
