//! When may an unmodified spin loop sleep? When it can be shown to repeat.
//!
//! At each pause the registers that a call preserves and the stack from there
//! up to the entry of the lock's code are compared with those of an earlier
//! pause. If they are the same, and this CPU has written nothing since, it
//! will go on reading what it has read since until one of those words changes.
//! A loop that counts, such as a bounded spin, differs in its counter.

/// A word that a loop has read, with what it read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) address: usize,
    pub(crate) size: u8,
    pub(crate) value: u64,
    /// The memory order, as C numbers it.
    pub(crate) order: i32,
    /// Where the read returns to.
    pub(crate) site: usize,
}

/// Words that a loop may read and still sleep.
const MOST_WORDS: usize = 16;

/// Reads after which a round is too long to be kept.
const MOST_READS: u32 = 256;

/// A round of a loop that repeats.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// What it reads.
    pub(crate) words: Vec<Read>,
    /// How many reads and pauses it has.
    pub(crate) reads: u32,
    pub(crate) pauses: u32,
}

/// What one CPU's code has done since a pause that its loop may come back to.
#[derive(Default)]
pub(crate) struct Loop {
    /// The stack above which its own frames lie.
    pub(crate) entry: usize,
    /// The pause: the registers and the stack.
    anchor: Vec<u8>,
    words: Vec<Read>,
    reads: u32,
    pauses: u32,
    /// Pauses after which the anchor is put anew (Brent's way to find a
    /// cycle); 0: there is none.
    reach: u32,
}

impl Loop {
    /// Of code that was entered with this stack.
    pub(crate) fn enter(&mut self, entry: usize) {
        self.entry = entry;
        self.forget();
    }

    /// It has written: what it has seen before says nothing of what follows.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.reach = 0;
    }

    /// It has read.
    #[inline]
    pub(crate) fn has_read(&mut self, read: Read) {
        if self.reach == 0 {
            return;
        }
        self.reads += 1;
        if self.reads > MOST_READS {
            return self.forget();
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

    /// It pauses, with these registers and this stack. The round that it has
    /// come to the end of, if it will now repeat.
    pub(crate) fn pause(&mut self, stack: &[u8]) -> Option<Round> {
        self.pauses += 1;
        let mut round = None;
        if self.reach > 0 && self.anchor == stack {
            if !self.words.is_empty() && self.words.len() <= MOST_WORDS {
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
        (self.reads, self.pauses) = (0, 0);
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
        // Awake again, with another value.
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
    fn a_write_ends_a_round() {
        let mut at = Loop::default();
        at.pause(b"one");
        at.has_read(read(1));
        at.forget();
        assert!(at.pause(b"one").is_none());
    }
}
