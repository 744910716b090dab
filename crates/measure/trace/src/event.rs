//! Holds what a record says.
//!
//! Times are in ticks of the processor's counter, or in nanoseconds where there
//! is none; [`crate::Info::nanoseconds_per_tick`] converts them.

/// Describes how a lock is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Says whether other readers may hold it too.
    pub shared: bool,
    /// Says for how long the thread would wait.
    pub attempt: Attempt,
}

/// Says for how long a thread would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It waits until it has the lock.
    Waits,
    /// It waits until a deadline.
    Timed,
    /// It tries once, without waiting.
    Once,
    /// It waits until it has the lock, which it found held: its kernel said so, whoever held
    /// it.
    FoundHeld,
}

/// Describes what a lock is that the C library has to keep, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LockKind(pub u8);

impl LockKind {
    /// It survives the end of the thread that holds it.
    pub const ROBUST: Self = Self(1);
    /// Several processes share it.
    pub const SHARED: Self = Self(2);
    /// It changes the priority of the thread that holds it.
    pub const PRIORITY: Self = Self(4);
    /// The program makes it of a mutex and a condition. No recorder writes this: who reads
    /// a recording finds it.
    pub const MADE: Self = Self(8);
    /// The program brings it and says what it does with it: `locklab-record`, `locklab_record.h`.
    pub const OWN: Self = Self(16);

    /// Returns the kinds of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether it is of all these kinds.
    #[must_use]
    pub fn is(self, kind: Self) -> bool {
        self.0 & kind.0 == kind.0
    }

    /// Returns the kinds in words, such as `robust, process-shared`; empty of a plain lock.
    #[must_use]
    pub fn words(self) -> String {
        let kinds = [
            (Self::ROBUST, "robust"),
            (Self::SHARED, "process-shared"),
            (Self::PRIORITY, "of priorities"),
            (Self::MADE, "made of a mutex and a condition"),
            (Self::OWN, "the program's own"),
        ];
        let names = kinds.iter().filter(|(kind, _)| self.is(*kind));
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// Names what happened. Locks and conditions are given by their addresses, stacks by
/// numbers of the thread, which an [`Event::Stack`] explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The records from here on are of this thread.
    Begin {
        /// Its number in the recording, from 0.
        thread: u64,
        /// The number of its program image, from 0: a fork and an `exec` begin
        /// another.
        image: u64,
    },
    /// Means what the image is; by its first thread.
    Image {
        /// The number of the process.
        process: u64,
        /// Holds that of its parent.
        parent: u64,
        /// Says whether a fork began it, and not an `exec`.
        forked: bool,
    },
    /// A mapped part of a file of the image.
    Module {
        /// The lowest mapped address.
        from: u64,
        /// The address after the last.
        to: u64,
        /// Offset in the file of the first address.
        offset: u64,
        /// The path of the file.
        path: Payload<'a>,
    },
    /// The calls that a number of this thread stands for.
    Stack {
        /// Holds what later events of the thread call the stack.
        number: u64,
        /// Addresses after the calls, from the call of the lock outwards.
        frames: Frames<'a>,
    },
    /// The thread asks for a lock.
    Request {
        /// The address of the lock in the image.
        lock: u64,
        /// The number of the stack of calls, as in [`Event::Stack`].
        stack: u64,
        /// Says whether it reads, and whether it would wait.
        access: Access,
    },
    /// It has the lock that it asked for.
    Acquired,
    /// It does not get the lock, and waits no longer.
    Refused,
    /// It begins to release a lock.
    Release {
        /// The address of the lock in the image.
        lock: u64,
    },
    /// The release has ended: whoever had to be woken is.
    Released,
    /// It begins to wait for a condition, which releases the lock.
    Wait {
        /// The address of the condition variable in the image.
        condition: u64,
        /// The address of the lock in the image.
        lock: u64,
        /// The number of the stack of calls, as in [`Event::Stack`].
        stack: u64,
        /// Says whether there is a deadline.
        timed: bool,
    },
    /// That wait has ended, and the thread has the lock again.
    Woken {
        /// Says whether the deadline ended it.
        timed_out: bool,
    },
    /// It wakes waiters of a condition.
    Signal {
        /// The address of the condition variable in the image.
        condition: u64,
        /// Says whether it wakes all of them.
        broadcast: bool,
    },
    /// It makes another thread.
    Create {
        /// The number that the other will have in the recording.
        thread: u64,
    },
    /// It begins to wait for the end of a thread.
    Join {
        /// The other's `pthread_t`, as in its [`Event::Started`].
        handle: u64,
    },
    /// That wait has ended.
    Joined,
    /// It begins to sleep, or to wait until a file has something for it.
    Sleep {
        /// Says whether only the time ends it.
        timed: bool,
    },
    /// That has ended.
    Slept,
    /// The thread has begun to run.
    Started {
        /// Its `pthread_t`, by which others join it.
        handle: u64,
        /// Its number in the system.
        task: u64,
    },
    /// The thread ends. Destructors of its data may still take locks.
    Ended,
    /// Says how often the system took the CPU from the thread, and for how long it had
    /// one, since its start. It stands before the record that ends a long stretch which
    /// is no wait, with the same time ([`Event::LONG_NS`]).
    Switches {
        /// Switches because it waited.
        voluntary: u64,
        /// Because others were to run.
        involuntary: u64,
        /// Nanoseconds of CPU time.
        ran_ns: u64,
        /// Ticks that the recorder took to ask for these.
        took: u64,
    },
    /// A lock is of a kind that keeps the C library's own code whatever lock is put under
    /// the program. It stands before the first request of a thread for it.
    Kind {
        /// The address of the lock in the image.
        lock: u64,
        /// Holds what it is.
        kind: LockKind,
    },
    /// Says for how long another thread of the image has had a CPU since its start, when the
    /// image ends while that thread waits or works on.
    Ran {
        /// Its number in the recording.
        thread: u64,
        /// Nanoseconds of CPU time.
        ran_ns: u64,
    },
    /// From here on operations that wait for nobody are recorded too, or no longer. In a file
    /// it is of no thread of the program, and holds for all. Among the records of a thread as
    /// they are read, without gaps, it says where nothing is known any more of what the thread
    /// has.
    Window {
        /// Says whether they are.
        begins: bool,
    },
    /// Means what the recording of the last operation took, of those that were timed for
    /// that; one of [`Event::COST_EVERY`].
    Cost {
        /// Ticks of the recording's clock.
        ticks: u64,
    },
}

impl Event<'_> {
    /// One operation of so many of a thread is timed for [`Event::Cost`]. An odd number, so
    /// that of a thread that acquires and releases in turn both are.
    pub const COST_EVERY: u32 = 63;
    /// The nanoseconds without a record, or more where asking takes long, after which the
    /// system is asked for [`Event::Switches`]: a thread that has lost its CPU does not
    /// have it back sooner.
    pub const LONG_NS: u64 = 20_000;
}

/// Bytes of a record that have a length of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a>(pub &'a [u8]);

/// Addresses, as they lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a>(pub &'a [[u8; 8]]);

impl<'a> Frames<'a> {
    /// Returns the addresses, from the innermost call outwards.
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'a {
        self.0.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// Numbers of the kinds, which are the low five bits of a record's first byte;
/// 0 is the end. The high three bits are the kind's own.
pub(crate) mod kind {
    pub(crate) const BEGIN: u8 = 1;
    pub(crate) const IMAGE: u8 = 2;
    pub(crate) const MODULE: u8 = 3;
    pub(crate) const STACK: u8 = 4;
    pub(crate) const REQUEST: u8 = 5;
    pub(crate) const ACQUIRED: u8 = 6;
    pub(crate) const REFUSED: u8 = 7;
    pub(crate) const RELEASE: u8 = 8;
    pub(crate) const RELEASED: u8 = 9;
    pub(crate) const WAIT: u8 = 10;
    pub(crate) const WOKEN: u8 = 11;
    pub(crate) const SIGNAL: u8 = 12;
    pub(crate) const CREATE: u8 = 13;
    pub(crate) const JOIN: u8 = 14;
    pub(crate) const JOINED: u8 = 15;
    pub(crate) const STARTED: u8 = 16;
    pub(crate) const ENDED: u8 = 17;
    pub(crate) const SWITCHES: u8 = 18;
    pub(crate) const COST: u8 = 19;
    /// A request with the event that it was granted, at the same time.
    pub(crate) const TAKEN: u8 = 20;
    /// A release with its end, at the same time.
    pub(crate) const FREED: u8 = 21;
    pub(crate) const SLEEP: u8 = 22;
    pub(crate) const SLEPT: u8 = 23;
    pub(crate) const KIND: u8 = 24;
    pub(crate) const RAN: u8 = 25;
    pub(crate) const WINDOW: u8 = 26;

    /// Says where the kind's own bits begin.
    pub(crate) const OWN: u32 = 5;

    /// Returns the first byte of the record that says the same and that it ended at
    /// once.
    #[inline(always)]
    pub(crate) const fn whole(tag: u8) -> u8 {
        const KIND: u8 = (1 << OWN) - 1;
        match tag & KIND {
            REQUEST => tag & !KIND | TAKEN,
            RELEASE => tag & !KIND | FREED,
            _ => tag,
        }
    }
}
