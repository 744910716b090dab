//! The program as it would be if its locks were used otherwise: what can be
//! changed that is no lock.

use crate::program::{Program, Step};
use locklab_judge::fork_seed;

impl Program {
    /// Returns the program as if the work under a lock took `factor` times as long.
    #[must_use]
    pub fn with_holds_of(&self, lock: u32, factor: f64) -> Self {
        let mut changed = self.clone();
        for thread in &mut changed.threads {
            let mut held = false;
            for step in &mut thread.steps {
                match step {
                    Step::Acquire { lock: other, .. } if *other == lock => held = true,
                    Step::Release { lock: other } if *other == lock => held = false,
                    Step::Work(ns) if held => *ns = (*ns as f64 * factor) as u64,
                    _ => {}
                }
            }
        }
        changed
    }

    /// Returns the program as if a lock were several, of which each acquisition takes one
    /// by chance.
    #[must_use]
    pub fn with_split(&self, lock: u32, parts: u32, seed: u64) -> Self {
        let mut changed = self.clone();
        let first = changed.locks.len() as u32;
        if let Some(one) = self.locks.get(lock as usize) {
            for _ in 1..parts {
                changed.locks.push(*one);
            }
        }
        for (number, thread) in changed.threads.iter_mut().enumerate() {
            let seed = fork_seed(seed, number as u64);
            let mut drawn = 0;
            let mut part = lock;
            for step in &mut thread.steps {
                match step {
                    Step::Acquire { lock: other, .. } if *other == lock => {
                        drawn += 1;
                        let chosen = fork_seed(seed, drawn) % u64::from(parts.max(1));
                        part = match chosen as u32 {
                            0 => lock,
                            chosen => first + chosen - 1,
                        };
                        *other = part;
                    }
                    Step::Release { lock: other } if *other == lock => *other = part,
                    _ => {}
                }
            }
        }
        changed
    }

    /// Returns the program as if all but one in `writes` acquisitions of a lock let others
    /// read.
    #[must_use]
    pub fn with_readers_of(&self, lock: u32, writes: u64) -> Self {
        let mut changed = self.clone();
        let mut count = 0;
        for step in changed
            .threads
            .iter_mut()
            .flat_map(|thread| &mut thread.steps)
        {
            if let Step::Acquire {
                lock: other,
                shared,
            } = step
                && *other == lock
            {
                count += 1;
                *shared = count % writes.max(1) != 0;
            }
        }
        changed
    }

    /// Returns the program as if there were no locks, and no thread harmed another.
    #[must_use]
    pub fn without_locks(&self) -> Self {
        let mut changed = self.clone();
        for thread in &mut changed.threads {
            let keep = |step: &Step| !matches!(step, Step::Acquire { .. } | Step::Release { .. });
            thread.steps.retain(keep);
        }
        changed
    }
}
