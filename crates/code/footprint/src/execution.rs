//! Turns counts (by address or symbol) into stretches of an image's code. Exists
//! because a count of an address does not say how long the instruction there is. Must
//! never drop a count in silence: what lies outside the image's code is summed and
//! reported.

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions};
use object::{Architecture, Object};

use crate::elf::{Code, Elf, Symbol};
use crate::error::not_linked;
use crate::hot::{Executed, Place};
use crate::names::normalise;
use locklab_host::error::Error;

/// Returns the stretches, and the sum of counts that are not in this image.
pub(crate) fn place(
    elf: &Elf<'_>,
    symbols: &[Symbol<'_>],
    counts: &[(Place, u64)],
) -> Result<(Vec<Executed>, u64), Error> {
    if !elf.is_linked() {
        return Err(not_linked(elf.label()));
    }
    let code = elf.code()?;
    let architecture = elf.file().architecture();
    let functions = by_name(symbols);
    let mut placed = Vec::with_capacity(counts.len());
    let mut unplaced = 0u64;
    for (place, count) in counts {
        let before = placed.len();
        match place {
            Place::Address(address) => {
                if let Some(bytes) = instruction_bytes(&code, architecture, *address) {
                    placed.push(Executed {
                        address: *address,
                        bytes,
                        count: *count,
                    });
                }
            }
            Place::Block { address, bytes } => {
                if is_code(&code, *address, *bytes) {
                    placed.push(Executed {
                        address: *address,
                        bytes: *bytes,
                        count: *count,
                    });
                }
            }
            Place::Symbol(name) => {
                let parts = functions.get(name.as_str());
                let parts = parts.or_else(|| functions.get(normalise(name).as_str()));
                if let Some(parts) = parts {
                    spread(parts, *count, &mut placed);
                }
            }
        }
        if placed.len() == before {
            unplaced = unplaced.saturating_add(*count);
        }
    }
    Ok((placed, unplaced))
}

/// Returns the functions by their symbol and by the name they are compared under.
fn by_name(symbols: &[Symbol<'_>]) -> HashMap<String, Vec<(u64, u64)>> {
    let mut functions: HashMap<String, Vec<(u64, u64)>> = HashMap::new();
    for symbol in symbols.iter().filter(|s| s.is_function()) {
        let part = (symbol.address, symbol.bytes);
        let name = normalise(&symbol.name);
        if name != symbol.name {
            let exact = functions.entry(symbol.name.to_string()).or_default();
            exact.push(part);
        }
        functions.entry(name).or_default().push(part);
    }
    functions
}

/// Shares a count among the clones and parts of a name by their size, since
/// it does not say which of them ran.
fn spread(parts: &[(u64, u64)], count: u64, placed: &mut Vec<Executed>) {
    let whole: u128 = parts.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
    let mut left = count;
    for (at, (address, bytes)) in parts.iter().enumerate() {
        let share = match at + 1 == parts.len() {
            true => left,
            // Below `count`, so it fits; `whole` holds at least this part.
            false => (u128::from(count) * u128::from(*bytes) / whole) as u64,
        };
        left -= share;
        placed.push(Executed {
            address: *address,
            bytes: *bytes,
            count: share,
        });
    }
}

/// Returns whether the whole range is code of the image.
fn is_code(code: &[Code<'_>], address: u64, bytes: u64) -> bool {
    let at = code.partition_point(|(range, _)| range.start <= address);
    let within = at.checked_sub(1).and_then(|at| code.get(at));
    within.is_some_and(|(range, _)| {
        let end = address.checked_add(bytes);
        end.is_some_and(|end| end <= range.end)
    })
}

/// Returns the length of the instruction at an address, if code of the image is there.
fn instruction_bytes(code: &[Code<'_>], architecture: Architecture, address: u64) -> Option<u64> {
    let at = code.partition_point(|(range, _)| range.start <= address);
    let (range, data) = code.get(at.checked_sub(1)?)?;
    let start = usize::try_from(address - range.start).ok()?;
    let bytes = data.get(start..).filter(|bytes| !bytes.is_empty())?;
    let width = match architecture {
        Architecture::X86_64 | Architecture::X86_64_X32 => 64,
        Architecture::I386 => 32,
        // Compressed instructions have other than 11 in the two low bits.
        Architecture::Riscv32 | Architecture::Riscv64 if bytes[0] & 3 != 3 => return Some(2),
        _ => return Some(4),
    };
    let mut decoder = Decoder::with_ip(width, bytes, address, DecoderOptions::NONE);
    Some(decoder.decode().len().max(1) as u64)
}
