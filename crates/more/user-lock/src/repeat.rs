//! An unmodified spin loop may sleep when it can be shown to repeat.
//!
//! At each pause the registers that a call preserves and the stack from there
//! up to the entry of the lock's code are compared with those of an earlier
//! pause. If they are the same, this CPU has written nothing since, and all
//! its reads since then found the same in each byte, it will read the same
//! again until one of those words changes: all of them, in order, and not only
//! what it read last. A loop that counts, such as a bounded spin, differs in
//! its counter.

/// A word that a loop has read, with what it read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) address: usize,
    pub(crate) size: u8,
    pub(crate) value: u64,
    /// The memory order, as C numbers it.
    pub(crate) order: i32,
    /// The return address of the read.
    pub(crate) site: usize,
}

/// The most words that a loop may read and still sleep.
const MOST_WORDS: usize = 16;

/// The number of reads after which a round is too long to be stored.
const MOST_READS: u32 = 256;

/// A round of a loop that repeats.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The words that it reads.
    pub(crate) words: Vec<Read>,
    /// Its number of reads and pauses.
    pub(crate) reads: u32,
    pub(crate) pauses: u32,
}

/// The actions of one CPU's code since a pause to which its loop may return.
#[derive(Default)]
pub(crate) struct Loop {
    /// The stack above which its own frames lie.
    pub(crate) entry: usize,
    /// The registers and the stack at that pause.
    anchor: Vec<u8>,
    words: Vec<Read>,
    /// Holds what was read in each byte since then, and whether it was the same each
    /// time.
    bytes: Vec<(usize, u8)>,
    varied: bool,
    reads: u32,
    pauses: u32,
    /// Number of pauses after which the anchor is moved (Brent's algorithm to
    /// find a cycle); 0 if there is no anchor.
    reach: u32,
}

impl Loop {
    /// Begins a call of the lock's code that was entered with this stack.
    pub(crate) fn enter(&mut self, entry: usize) {
        self.entry = entry;
        self.forget();
    }

    /// Notes a write: earlier reads say nothing about what follows.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.reach = 0;
    }

    /// Notes a read.
    #[inline]
    pub(crate) fn has_read(&mut self, read: Read) {
        if self.reach == 0 {
            return;
        }
        self.reads += 1;
        if self.reads > MOST_READS {
            return self.forget();
        }
        for (place, value) in read.value.to_le_bytes()[..read.size.min(8).into()]
            .iter()
            .enumerate()
        {
            let address = read.address + place;
            match self.bytes.iter().find(|(byte, _)| *byte == address) {
                Some((_, before)) => self.varied |= before != value,
                None => self.bytes.push((address, *value)),
            }
        }
        match self
            .words
            .iter_mut()
            .find(|word| (word.address, word.size) == (read.address, read.size))
        {
            Some(word) => *word = read,
            None => self.words.push(read),
        }
    }

    /// Notes a pause, with these registers and this stack. Returns the round
    /// that has just ended, if it will now repeat.
    pub(crate) fn pause(&mut self, stack: &[u8]) -> Option<Round> {
        self.pauses += 1;
        let mut round = None;
        if self.reach > 0 && self.anchor == stack {
            if !self.varied && !self.words.is_empty() && self.words.len() <= MOST_WORDS {
                round = Some(Round {
                    words: self.words.clone(),
                    reads: self.reads,
                    pauses: self.pauses,
                });
            }
        } else if self.reach == 0 || self.pauses >= self.reach {
            self.reach = (self.reach * 2).clamp(1, 1 << 16);
            self.anchor.clear();
            self.anchor.extend_from_slice(stack);
        } else {
            return None;
        }
        self.words.clear();
        self.bytes.clear();
        (self.reads, self.pauses, self.varied) = (0, 0, false);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: u64) -> Read {
        Read {
            address: 64,
            size: 4,
            value,
            order: 0,
            site: 0,
        }
    }

    #[test]
    fn a_loop_that_repeats_is_found_and_one_that_counts_is_not() {
        let mut at = Loop::default();
        assert!(at.pause(b"one").is_none());
        at.has_read(read(1));
        let round = at.pause(b"one").unwrap();
        assert_eq!((round.words.len(), round.reads, round.pauses), (1, 1, 1));
        // It woke up with another value.
        at.has_read(read(2));
        assert_eq!(at.pause(b"one").unwrap().words[0].value, 2);
        at.forget();
        for counter in 0..100_u8 {
            at.has_read(read(1));
            assert!(at.pause(&[counter]).is_none());
        }
    }

    #[test]
    fn a_round_of_several_pauses_is_found() {
        let mut at = Loop::default();
        let mut found = None;
        for pause in 0..20_u8 {
            if pause % 3 == 0 {
                at.has_read(read(1));
            }
            found = found.or(at.pause(&[pause % 3]));
        }
        let round = found.unwrap();
        assert_eq!((round.reads, round.pauses), (1, 3));
    }

    #[test]
    fn a_round_that_read_two_values_of_a_word_would_not_read_both_again() {
        let mut at = Loop::default();
        at.pause(b"one");
        // A load saw an older value than the compare-and-swap that followed.
        at.has_read(read(1));
        at.has_read(read(3));
        assert!(at.pause(b"one").is_none());
        at.has_read(read(3));
        at.has_read(read(3));
        assert!(at.pause(b"one").is_some());
        // A byte of the same word, read by itself.
        at.has_read(read(0x103));
        at.has_read(Read {
            address: 65,
            size: 1,
            ..read(0)
        });
        assert!(at.pause(b"one").is_none());
    }

    #[test]
    fn a_write_ends_a_round() {
        let mut at = Loop::default();
        at.pause(b"one");
        at.has_read(read(1));
        at.forget();
        assert!(at.pause(b"one").is_none());
    }
}
