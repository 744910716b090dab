//! Hot text: how many bytes of code, and how many cache lines, hold nearly
//! all that was executed. This, not the size of the file, is what has to fit
//! into an instruction cache. Pure: counts in, sizes out; must never read a
//! file or know where counts come from.

use serde::{Deserialize, Serialize};

use locklab_host::error::Error;

/// A stretch of code and how many instructions were executed in it: one
/// instruction, a basic block or a function, as fine as the counts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Address of its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Executed instructions, or samples in proportion to them.
    pub count: u64,
}

/// The code that holds a share of all executed instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotText {
    /// Sum of all counts.
    pub executed: u64,
    /// Bytes of code, the fewest that reach the share.
    pub bytes: u64,
    /// Cache lines that these bytes touch.
    pub lines: u64,
    /// Bytes of code that were executed at all.
    pub executed_bytes: u64,
    /// Cache lines that were executed from at all.
    pub executed_lines: u64,
}

/// The share of executed instructions that reports speak of.
pub const SHARE: f64 = 0.99;
/// Bytes of a cache line on x86-64 and most AArch64 machines.
pub const LINE_BYTES: u64 = 64;

/// Returns the hottest code that together holds `share` (0 to 1) of the executed
/// instructions, and the lines of `line_bytes` that it touches. Stretches are
/// taken by instructions executed a byte, the densest first; overlapping ones
/// (two names of one function) count once in bytes. `line_bytes` 0 is read as
/// 1.
///
/// ```
/// use locklab_footprint::{Executed, hot_text};
/// let code = [
///     Executed { address: 0x1000, bytes: 4, count: 990 },
///     Executed { address: 0x2000, bytes: 4, count: 10 },
/// ];
/// let hot = hot_text(&code, 0.99, 64);
/// assert_eq!((hot.bytes, hot.lines), (4, 1));
/// assert_eq!((hot.executed_bytes, hot.executed_lines), (8, 2));
/// ```
pub fn hot_text(code: &[Executed], share: f64, line_bytes: u64) -> HotText {
    let mut ran: Vec<Executed> = code.iter().copied().filter(|c| c.count > 0).collect();
    let executed = ran.iter().fold(0u64, |sum, c| sum.saturating_add(c.count));
    ran.sort_by(|a, b| {
        let density = |x: &Executed, y: &Executed| u128::from(x.count) * u128::from(y.bytes);
        let by_density = density(b, a).cmp(&density(a, b));
        by_density.then(a.address.cmp(&b.address))
    });
    let needed = (executed as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
    let mut reached = 0u64;
    let hot = ran.iter().take_while(|c| {
        let wanted = reached < needed;
        reached = reached.saturating_add(c.count);
        wanted
    });
    let (bytes, lines) = extent(hot.copied().collect(), line_bytes.max(1));
    let (executed_bytes, executed_lines) = extent(ran, line_bytes.max(1));
    HotText {
        executed,
        bytes,
        lines,
        executed_bytes,
        executed_lines,
    }
}

/// Returns the bytes covered, and lines touched, by stretches that may overlap.
fn extent(mut code: Vec<Executed>, line_bytes: u64) -> (u64, u64) {
    code.sort_by_key(|c| c.address);
    let (mut bytes, mut lines) = (0u64, 0u64);
    let (mut behind, mut next_line) = (0u64, 0u64);
    for c in code {
        let start = c.address.max(behind);
        let end = c.address.saturating_add(c.bytes);
        if start >= end {
            continue;
        }
        bytes += end - start;
        behind = end;
        let first = (start / line_bytes).max(next_line);
        let last = (end - 1) / line_bytes;
        lines += (last + 1).saturating_sub(first);
        next_line = last + 1;
    }
    (bytes, lines)
}

/// Names the place where a count was taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// An instruction's address in the file (as `nm` and `objdump` print it:
    /// what runs elsewhere must have its load address taken off).
    Address(u64),
    /// Instructions one after another, entered at the first of them.
    Block {
        /// The address, as in [`Place::Address`].
        address: u64,
        /// The length of all its instructions, in bytes.
        bytes: u64,
    },
    /// A function, by its symbol or its demangled name.
    Symbol(String),
}

/// Reads counts as text: a line holds an address (`0x401000`) or a symbol,
/// then blanks or a comma, then a count. Empty lines and lines that start
/// with `#` are passed over.
///
/// Or, if the first line is [`BLOCKS`], blocks with the number of their
/// instructions and executions, as the i-cache model writes them; those that
/// are not of the program itself are passed over.
///
/// # Errors
/// [`Error::Usage`] names the first line that is of another form.
pub fn parse_counts(text: &str) -> Result<Vec<(Place, u64)>, Error> {
    let lines = text.lines().enumerate().map(|(at, line)| (at, line.trim()));
    let mut lines = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let parse = if lines.next_if(|(_, line)| *line == BLOCKS).is_some() {
        parse_block
    } else {
        |line: &str| parse_count(line).map(Some)
    };
    lines
        .filter_map(|(at, line)| {
            let count = parse(line).ok_or_else(|| {
                Error::Usage(format!(
                    "line {} of the counts ({:?}) is not an address or symbol and a count; write \
                     for example 0x401000 12.",
                    at + 1,
                    line.chars().take(60).collect::<String>()
                ))
            });
            count.transpose()
        })
        .collect()
}

/// The first line of counts of blocks.
pub const BLOCKS: &str = "address,bytes,instructions,executions,place";
/// The place of a block of the program's own file.
pub const PROGRAM: &str = "program";

/// Reads the line of a block; returns `Some(None)` for a block of another file.
fn parse_block(line: &str) -> Option<Option<(Place, u64)>> {
    let mut fields = line.split(',');
    let address = fields.next()?.strip_prefix("0x")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (bytes, instructions, executions) = (number()?, number()?, number()?);
    let count = instructions.saturating_mul(executions);
    let program = fields.next()? == PROGRAM;
    Some(program.then_some((Place::Block { address, bytes }, count)))
}

fn parse_count(line: &str) -> Option<(Place, u64)> {
    let is_gap = |c: char| c == ',' || c.is_whitespace();
    // From the end: demangled names have blanks of their own.
    let (place, count) = line.rsplit_once(is_gap)?;
    let place = place.trim_end_matches(is_gap);
    let count = count.parse().ok()?;
    let place = match place.strip_prefix("0x") {
        Some(hex) => Place::Address(u64::from_str_radix(hex, 16).ok()?),
        None if place.is_empty() => return None,
        None => Place::Symbol(place.to_string()),
    };
    Some((place, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_program_count_by_their_instructions() {
        let text = format!("{BLOCKS}\n0x1000,8,2,5,program\n0x4000001000,8,2,7,elsewhere\n");
        assert_eq!(
            parse_counts(&text).unwrap(),
            [(
                Place::Block {
                    address: 0x1000,
                    bytes: 8
                },
                10
            )]
        );
        let error = parse_counts(&format!("{BLOCKS}\n0x1000,8,program\n")).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn at(address: u64, bytes: u64, count: u64) -> Executed {
        Executed {
            address,
            bytes,
            count,
        }
    }

    #[test]
    fn the_densest_code_comes_first() {
        // 100 executed in 4 bytes beat 100 in 400.
        let code = [at(0, 400, 100), at(1024, 4, 100)];
        let hot = hot_text(&code, 0.5, 64);
        assert_eq!((hot.bytes, hot.lines), (4, 1));
    }

    #[test]
    fn an_instruction_across_a_line_boundary_touches_two() {
        let hot = hot_text(&[at(62, 4, 1)], 1.0, 64);
        assert_eq!((hot.bytes, hot.lines), (4, 2));
    }

    #[test]
    fn two_names_of_one_function_count_once() {
        let hot = hot_text(&[at(0, 100, 5), at(0, 100, 5), at(50, 70, 5)], 1.0, 64);
        assert_eq!((hot.executed, hot.bytes, hot.lines), (15, 120, 2));
    }

    #[test]
    fn nothing_executed_is_no_text() {
        assert_eq!(hot_text(&[], 0.99, 64), HotText::default());
        assert_eq!(hot_text(&[at(0, 10, 0)], 0.99, 64), HotText::default());
    }

    #[test]
    fn counts_are_read_and_bad_ones_named() {
        let text = "# a comment\n0x401000 12\n\nmain, 3\nfoo::bar<a, b>\t7\n";
        assert_eq!(
            parse_counts(text).unwrap(),
            [
                (Place::Address(0x40_1000), 12),
                (Place::Symbol("main".into()), 3),
                (Place::Symbol("foo::bar<a, b>".into()), 7),
            ]
        );
        for bad in ["main", "0xzz 1", "main -1", "12", ", 3"] {
            let error = parse_counts(&format!("# one\n{bad}")).unwrap_err();
            assert!(error.to_string().starts_with("line 2 "), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        })]

        #[test]
        fn more_of_the_share_never_needs_less_text(
            code in proptest::collection::vec((0u64..5000, 0u64..200, 0u64..1000), 0..60),
            line in 0u64..200,
        ) {
            let code: Vec<_> = code.into_iter().map(|(a, b, c)| at(a, b, c)).collect();
            let mut before = HotText::default();
            for share in [0.0, 0.3, 0.9, 0.99, 1.0] {
                let hot = hot_text(&code, share, line);
                prop_assert!(hot.bytes >= before.bytes && hot.lines >= before.lines);
                prop_assert!(hot.bytes <= hot.executed_bytes);
                prop_assert!(hot.lines <= hot.executed_lines);
                before = hot;
            }
            // Against the plain definition: every byte, every line, in a set.
            let bytes: std::collections::HashSet<u64> = code.iter()
                .filter(|c| c.count > 0)
                .flat_map(|c| c.address..c.address + c.bytes)
                .collect();
            let lines: std::collections::HashSet<u64> =
                bytes.iter().map(|b| b / line.max(1)).collect();
            prop_assert_eq!(before.executed_bytes, bytes.len() as u64);
            prop_assert_eq!(before.executed_lines, lines.len() as u64);
        }

        #[test]
        fn extreme_numbers_do_not_panic(
            code in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..20),
            share in any::<f64>(),
            line in any::<u64>(),
        ) {
            let code: Vec<_> = code.into_iter().map(|(a, b, c)| at(a, b, c)).collect();
            hot_text(&code, share, line);
        }
    }
}
