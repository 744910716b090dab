//! A part of an experiment's cells, so that several processes or nodes of a cluster measure
//! one experiment: each its chunk, into a store of its own, which `results merge` joins.
//!
//! A chunk has every cell of the experiment, and those of other chunks are not run. So a
//! sample depends on its cell and its number alone, never on how the cells were divided. It
//! must never decide where or when a chunk is run.

use crate::experiment::Cell;
use locklab_host::error::Error;
use serde::Serialize;
use std::str::FromStr;

/// Begins the reason why a cell was not run.
const ELSEWHERE: &str = "left to another chunk than";

/// A chunk, written as `3/8`: the third of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Chunk {
    number: usize,
    of: usize,
}

impl FromStr for Chunk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err("a chunk is a number and how many there are, such as 3/8".into()),
        }
    }
}

impl Chunk {
    /// Takes every `of`-th cell, and marks the others as left to other chunks.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are fewer cells than chunks.
    pub fn take(self, cells: &mut [Cell]) -> Result<(), Error> {
        let Self { number, of } = self;
        if of > cells.len() {
            return Err(Error::Usage(format!(
                "--chunk {number}/{of}: there are {} cells, so give at most so many chunks",
                cells.len()
            )));
        }
        for (index, cell) in cells.iter_mut().enumerate() {
            if index % of != number - 1 {
                cell.stopped = Some(format!(
                    "{ELSEWHERE} {number}/{of}; 'results merge' joins them"
                ));
            }
        }
        Ok(())
    }
}

/// Returns whether a cell was left to another chunk.
pub(crate) fn is_elsewhere(cell: &Cell) -> bool {
    let why = cell.stopped.as_deref();
    why.is_some_and(|why| why.starts_with(ELSEWHERE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Key;

    fn cells(count: u64) -> Vec<Cell> {
        let cell = |length| Cell::new(Key::point(1, length, 1), vec![]);
        (0..count).map(cell).collect()
    }

    #[test]
    fn chunks_have_every_cell_once() {
        let mut taken = vec![0; 7];
        for number in 1..=3 {
            let chunk: Chunk = format!("{number}/3").parse().unwrap();
            let mut cells = cells(7);
            chunk.take(&mut cells).unwrap();
            for (cell, taken) in cells.iter().zip(&mut taken) {
                *taken += usize::from(!is_elsewhere(cell));
            }
        }
        assert_eq!(taken, [1; 7]);
    }

    #[test]
    fn what_is_no_chunk_is_said() {
        for text in ["", "3", "0/2", "3/2", "a/b", "1/0", "-1/2"] {
            assert!(text.parse::<Chunk>().is_err(), "{text}");
        }
        let error = "2/2".parse::<Chunk>().unwrap().take(&mut cells(1));
        assert!(error.unwrap_err().to_string().contains("there are 1 cells"));
    }
}
