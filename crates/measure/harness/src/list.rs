//! List arguments: `1,2,4..64`.
//!
//! A range `b..c` continues from b to c by the rule of the numbers before it:
//! with two of them, by the common ratio if there is one (1,2,4..64), else by
//! the common step (1,3,5..9); with one, by the step (2,4..8); with none, by
//! one (1..8). c itself is always in the list (1,2,4..100 ends 32,64,100). This
//! module only parses; the meaning of a number is the caller's.

use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The longest list that is accepted.
const MOST: usize = 4096;

/// Parses a list of numbers.
///
/// # Errors
/// If an item is empty or not a number, a range is falling or follows no rule,
/// or the list is too long.
pub fn parse(text: &str) -> Result<Vec<u64>, Error> {
    parse_within(text, 0, u64::MAX)
}

/// Parses a list of numbers from `least` to `most`.
///
/// # Errors
/// Parses as [`parse`] does; the error for what is no whole number names that range.
pub fn parse_within(text: &str, least: u64, most: u64) -> Result<Vec<u64>, Error> {
    let mut list = Vec::new();
    let number = |item: &str| number(item, text, (least, most));
    for item in text.split(',') {
        match item.split_once("..") {
            None => list.push(number(item)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                extend(&mut list, from, to, text)?;
            }
        }
        if list.len() > MOST {
            return Err(Error::Usage(format!(
                "'{text}' has more than {MOST} numbers; make it shorter"
            )));
        }
    }
    Ok(list)
}

fn extend(list: &mut Vec<u64>, from: u64, to: u64, text: &str) -> Result<(), Error> {
    if to < from {
        return Err(Error::Usage(format!(
            "'{text}' has a falling range; write the smaller number first"
        )));
    }
    let next: Box<dyn Fn(u64) -> Option<u64>> = match *list.as_slice() {
        [.., a, b] if a > 0 && b > a && b % a == 0 && b.checked_mul(b / a) == Some(from) => {
            Box::new(move |n| n.checked_mul(b / a))
        }
        [.., a, b] if b > a && b.checked_add(b - a) == Some(from) => {
            Box::new(move |n| n.checked_add(b - a))
        }
        [b] if from > b => Box::new(move |n| n.checked_add(from - b)),
        [] => Box::new(|n| n.checked_add(1)),
        _ => {
            return Err(Error::Usage(format!(
                "'{text}': the numbers before '..' rise by no common step or ratio; write them as \
                 1,2,4..64 or 1,3,5..9"
            )));
        }
    };
    let mut n = from;
    while n < to {
        list.push(n);
        if list.len() > MOST {
            return Err(Error::Usage(format!(
                "'{text}' has more than {MOST} numbers; make it shorter"
            )));
        }
        match next(n) {
            Some(after) => n = after,
            None => break,
        }
    }
    list.push(to);
    Ok(())
}

fn number(item: &str, text: &str, (least, most): (u64, u64)) -> Result<u64, Error> {
    let item = item.trim();
    if item.is_empty() {
        return Err(Error::Usage(format!(
            "'{text}' has an empty item; write a list without spaces, as 1,2,4..64"
        )));
    }
    item.parse().map_err(|_| {
        let range = match item.split_once('-') {
            Some((from, to)) if !from.is_empty() => format!(", and a range as {from}..{to}"),
            _ => String::new(),
        };
        Error::Usage(format!(
            "'{item}' is not a whole number from {least} to {most}; write a list as \
             1,2,4..64{range}"
        ))
    })
}

/// A list of numbers: `1,2,4..64` on a command line, an array in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OneOrMore", into = "Vec<u64>")]
#[schemars(with = "Vec<u64>")]
pub struct Numbers(pub Vec<u64>);

/// One number, or a list of them.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a list of whole numbers, such as [1, 4], is expected"
)]
enum OneOrMore {
    One(u64),
    More(Vec<u64>),
}

impl From<OneOrMore> for Numbers {
    fn from(given: OneOrMore) -> Self {
        Self(match given {
            OneOrMore::One(number) => vec![number],
            OneOrMore::More(numbers) => numbers,
        })
    }
}

impl From<Numbers> for Vec<u64> {
    fn from(numbers: Numbers) -> Self {
        numbers.0
    }
}

/// Returns the numbers in a value of `--set`, if it is a list of them.
pub(crate) fn numbers(text: &str) -> Option<Vec<u64>> {
    text.contains([',', '.']).then(|| parse(text).ok())?
}

impl FromStr for Numbers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map(Self)
    }
}

/// Numbers of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cpus(pub Vec<usize>);

impl FromStr for Cpus {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let cpu =
            |n: u64| usize::try_from(n).map_err(|_| Error::Usage(format!("there is no CPU {n}")));
        parse(text)?
            .into_iter()
            .map(cpu)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_go_on_as_the_numbers_before() {
        for (text, list) in [
            ("7", vec![7]),
            ("1..4", vec![1, 2, 3, 4]),
            ("2,4..8", vec![2, 4, 6, 8]),
            ("1,2,4..64", vec![1, 2, 4, 8, 16, 32, 64]),
            ("0,1,2,4..16", vec![0, 1, 2, 4, 8, 16]),
            ("1,2,4..12", vec![1, 2, 4, 8, 12]),
            ("1,3,5..9", vec![1, 3, 5, 7, 9]),
            ("5..5", vec![5]),
        ] {
            assert_eq!(parse(text), Ok(list), "{text}");
        }
    }

    #[test]
    fn bad_lists_are_refused_with_a_sentence() {
        for text in [
            "",
            "1,,2",
            "a",
            "-1",
            "4..1",
            "1,5,6..9",
            "0..99999999",
            "1..",
            "1e3",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("18446744073709551615..18446744073709551615").is_ok());
        assert!(parse("99999999999999999999").is_err());
    }
}
