//! Decides what each operation of a lock may answer. It is a machine that knows who
//! holds a lock and who is on the way, and nothing of how the lock works.
//!
//! Whoever runs a lock tells it when an operation begins and what it answers;
//! it says whether that answer can be right. The lock itself need not be
//! wrong in a way that its users notice: a `try_lock` that fails on a free lock
//! loses no update.
//!
//! It must never ask for more than the interface promises in the memory model
//! that it is told of, and never change what the lock does.

use std::fmt;

/// Names what a thread asks of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It asks to hold it alone, however long that takes.
    Lock,
    /// Acquires it, if that needs no waiting.
    TryLock,
    /// Acquires it, unless the time is over before, or it would be a deadlock.
    LockUntil,
    /// It asks to undo one acquisition.
    Unlock,
    /// It asks to undo all of them.
    ReleaseAll,
    /// It asks to acquire so many times.
    AcquireCount(u32),
    /// Asks whether this thread holds it.
    Held,
    /// It asks to hold it beside others.
    Read,
    /// Acquires it for reading, if that needs no waiting.
    TryRead,
    /// It asks to undo one acquisition beside others.
    ReadUnlock,
    /// It asks to let others read, and go on reading.
    Downgrade,
}

/// Holds what a lock answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done; of what may fail: it has succeeded.
    Done,
    /// It has failed; of [`Operation::Held`]: no.
    No,
    /// Counts the levels of recursion that there were.
    Levels(u32),
}

/// An answer that no lock of this interface can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Two hold it, and one of them alone.
    TwoHolders,
    /// It is released by one that does not hold it.
    NotHeld,
    /// An attempt fails, and nobody else is on the way, inside, or on the way
    /// out.
    FailsOnFree,
    /// An attempt fails although this thread holds a recursive lock.
    FailsForHolder,
    /// An acquisition is given up before its time.
    GivesUpEarly,
    /// The lock says of its holder that it is none, or the other way round.
    Held,
    /// The levels are miscounted.
    Levels,
    /// A thread has done so much on its way in, and has neither the lock nor a place
    /// that it keeps.
    NoPlace {
        /// Limits what is promised to suffice.
        most: u32,
    },
    /// A waiter was overtaken more often than it can be.
    Overtaken {
        /// Counts how often it was overtaken.
        times: u32,
        /// Limits how often it can be.
        most: u32,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two holders at once",
            Self::NotHeld => "the lock is released by one that does not hold it",
            Self::FailsOnFree => "an attempt fails, and nobody holds or wants the lock",
            Self::FailsForHolder => "an attempt fails for the holder of a recursive lock",
            Self::GivesUpEarly => "an acquisition is given up before its time",
            Self::Held => "the lock is wrong about who holds it",
            Self::Levels => "levels are miscounted",
            Self::NoPlace { most } => {
                return write!(
                    f,
                    "after {most} accesses a thread that wants the lock keeps no place, \
                     and others still overtake it"
                );
            }
            Self::Overtaken { times, most } => {
                return write!(
                    f,
                    "a waiter is overtaken {times} times by later ones, {most} at most are promised"
                );
            }
        })
    }
}

/// Describes which promises the machine compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Says whether its holder may acquire it again.
    pub recursive: bool,
    /// Says whether an acquisition may be given up for another reason than time.
    pub detects_deadlocks: bool,
    /// Says whether a read sees the newest value. If not, an attempt may fail by what this
    /// thread has not yet seen undone: all that ended since it held the lock alone for the last
    /// time.
    pub sequentially_consistent: bool,
    /// Limits the accesses that a thread makes, whatever the others do, before it has the lock
    /// or waits where it keeps its place; `None`: any number.
    pub accesses: Option<u32>,
    /// Limits how often a thread that waits may be overtaken by those that came after it;
    /// `None`: any number of times.
    pub overtakes: Option<u32>,
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    operation: Operation,
    /// The number of the event that began it.
    began: u64,
    /// The accesses that it has made.
    accesses: u32,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// One inside the interrupt of another.
    under_way: Vec<UnderWay>,
    /// Counts how often it holds the lock alone.
    levels: u32,
    /// Counts how often it holds it beside others.
    reads: u32,
    /// The time at which it last stopped using the lock.
    left: u64,
    /// The time at which it last began to hold the lock alone.
    entered: u64,
    /// Says whether a context that it gave up may still be in the queue.
    gave_up: bool,
    /// The time since which it has waited where it cannot lose its place.
    waits: Option<u64>,
    /// Counts how often it has been overtaken since.
    overtaken: u32,
}

impl Thread {
    fn uses(&self) -> bool {
        self.levels > 0 || self.reads > 0 || !self.under_way.is_empty()
    }
}

/// The state of one lock, as far as its users can know it.
#[derive(Clone, Debug)]
pub struct Reference {
    interface: Interface,
    threads: Vec<Thread>,
    /// The number of events so far: calls, and their answers.
    now: u64,
}

impl Reference {
    /// Returns a free lock with room for so many threads.
    pub fn new(interface: Interface, threads: usize) -> Self {
        Self {
            interface,
            threads: vec![Thread::default(); threads],
            // What happened never is before everything else.
            now: 1,
        }
    }

    /// Notes that thread `who` calls an operation.
    ///
    /// # Errors
    /// It must not be called now.
    pub fn begin(&mut self, who: usize, operation: Operation) -> Result<(), Wrong> {
        self.now += 1;
        let began = self.now;
        let thread = &mut self.threads[who];
        let held = match operation {
            Operation::Unlock => {
                let held = thread.levels > 0;
                thread.levels = thread.levels.saturating_sub(1);
                held
            }
            Operation::ReadUnlock => {
                let held = thread.reads > 0;
                thread.reads = thread.reads.saturating_sub(1);
                held
            }
            Operation::Downgrade => {
                let held = thread.levels == 1;
                thread.levels = 0;
                thread.reads += 1;
                held
            }
            _ => true,
        };
        thread.under_way.push(UnderWay {
            operation,
            began,
            accesses: 0,
        });
        if held { Ok(()) } else { Err(Wrong::NotHeld) }
    }

    /// Notes that thread `who` waits without limit: if that is for the lock, it keeps its
    /// place, and who comes from now on comes after it. Not so if it has given
    /// up before, and first waits for its context.
    pub fn waits(&mut self, who: usize) {
        self.now += 1;
        let now = self.now;
        let thread = &mut self.threads[who];
        let last = thread.under_way.last();
        if last.is_some_and(|last| last.operation == Operation::Lock) && !thread.gave_up {
            thread.waits.get_or_insert(now);
        }
    }

    /// Notes that thread `who` is about to access memory.
    ///
    /// # Errors
    /// It has done so too often, if it is on its way in and keeps no place yet.
    pub fn accesses(&mut self, who: usize) -> Result<(), Wrong> {
        let thread = &mut self.threads[who];
        let placed = thread.waits.is_some();
        let (Some(last), Some(most)) = (thread.under_way.last_mut(), self.interface.accesses)
        else {
            return Ok(());
        };
        last.accesses += 1;
        if last.operation == Operation::Lock && !placed && last.accesses > most {
            return Err(Wrong::NoPlace { most });
        }
        Ok(())
    }

    /// Returns how often thread `who` holds the lock alone.
    pub fn levels(&self, who: usize) -> u32 {
        self.threads[who].levels
    }

    /// Returns the last operation that thread `who` has begun answers. `in_time`: an
    /// acquisition that is given up could have had more time.
    ///
    /// # Errors
    /// The answer is wrong.
    ///
    /// # Panics
    /// If it has begun none.
    pub fn end(&mut self, who: usize, answer: Answer, in_time: bool) -> Result<(), Wrong> {
        self.now += 1;
        let under_way = self.threads[who].under_way.pop();
        let UnderWay {
            operation, began, ..
        } = under_way.expect("an operation has begun");
        let result = self.judged(who, operation, began, answer, in_time);
        let now = self.now;
        let thread = &mut self.threads[who];
        if !thread.uses() {
            thread.left = now;
        }
        result
    }

    fn judged(
        &mut self,
        who: usize,
        operation: Operation,
        began: u64,
        answer: Answer,
        in_time: bool,
    ) -> Result<(), Wrong> {
        use Operation::{
            AcquireCount, Downgrade, Held, Lock, LockUntil, Read, ReadUnlock, ReleaseAll, TryLock,
            TryRead, Unlock,
        };
        match (operation, answer) {
            (Lock | TryLock | LockUntil, Answer::Done) => self.enters(who, began, 1),
            (AcquireCount(0), _) => Ok(()),
            (AcquireCount(levels), _) => self.enters(who, began, levels),
            (Read | TryRead, Answer::Done) => self.reads(who),
            (LockUntil, Answer::No) => {
                let busy = self.busy(who, began);
                self.threads[who].gave_up = true;
                self.threads[who].waits = None;
                if !busy {
                    return Err(Wrong::FailsOnFree);
                }
                if in_time && !self.interface.detects_deadlocks {
                    return Err(Wrong::GivesUpEarly);
                }
                Ok(())
            }
            (TryLock, Answer::No) if self.interface.recursive && self.threads[who].levels > 0 => {
                Err(Wrong::FailsForHolder)
            }
            (TryLock | TryRead, Answer::No) => {
                if self.busy(who, began) || self.threads[who].gave_up {
                    Ok(())
                } else {
                    Err(Wrong::FailsOnFree)
                }
            }
            (ReleaseAll, answer) => {
                let levels = std::mem::take(&mut self.threads[who].levels);
                if answer == Answer::Levels(levels) {
                    Ok(())
                } else {
                    Err(Wrong::Levels)
                }
            }
            (Held, answer) => {
                // While it is on its way, it may be served at any time.
                let thread = &self.threads[who];
                let holds = thread.levels > 0;
                if (answer == Answer::Done) == holds || !thread.under_way.is_empty() {
                    Ok(())
                } else {
                    Err(Wrong::Held)
                }
            }
            (Unlock | ReadUnlock | Downgrade | Lock | Read, _) => Ok(()),
            (TryLock | LockUntil | TryRead, Answer::Levels(_)) => Err(Wrong::Levels),
        }
    }

    fn enters(&mut self, who: usize, began: u64, levels: u32) -> Result<(), Wrong> {
        let recursive = self.interface.recursive;
        let alone = self.threads.iter().enumerate().all(|(other, thread)| {
            (other == who && recursive) || (thread.levels == 0 && thread.reads == 0)
        });
        // One that comes back after it has given up may have kept its place.
        let comes = self.threads[who].levels == 0 && !self.threads[who].gave_up;
        let now = self.now;
        let thread = &mut self.threads[who];
        thread.levels += levels;
        thread.entered = now;
        thread.gave_up = false;
        thread.waits = None;
        thread.overtaken = 0;
        if !alone {
            return Err(Wrong::TwoHolders);
        }
        if comes { self.overtakes(began) } else { Ok(()) }
    }

    /// Notes that one that began then has entered: those that waited before are overtaken.
    fn overtakes(&mut self, began: u64) -> Result<(), Wrong> {
        let Some(most) = self.interface.overtakes else {
            return Ok(());
        };
        for thread in &mut self.threads {
            if thread.waits.is_some_and(|since| since < began) {
                thread.overtaken += 1;
                let times = thread.overtaken;
                if times > most {
                    return Err(Wrong::Overtaken { times, most });
                }
            }
        }
        Ok(())
    }

    fn reads(&mut self, who: usize) -> Result<(), Wrong> {
        let alone = self.threads.iter().all(|thread| thread.levels == 0);
        self.threads[who].reads += 1;
        self.threads[who].waits = None;
        if alone {
            Ok(())
        } else {
            Err(Wrong::TwoHolders)
        }
    }

    /// Returns whether an attempt of `who` that began then may fail by what others do, or by
    /// what this thread itself has begun and not ended.
    fn busy(&self, who: usize, began: u64) -> bool {
        let seen = if self.interface.sequentially_consistent {
            began
        } else {
            self.threads[who].entered
        };
        let mut threads = self.threads.iter().enumerate();
        threads.any(|(other, thread)| thread.uses() || (other != who && thread.left > seen))
    }
}
