//! The reader-writer lock of glibc in two kinds, one that prefers readers and one that
//! prefers writers, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Info, RawLock};

/// The mark in the word of readers that writers have it, or had it last.
const WRITING: u32 = 1;
/// The mark that a writer holds it or will, the primary one.
const WRITER: u32 = 2;
/// The mark that readers sleep on the word until a phase of writers begins.
const READERS_WAIT: u32 = 4;
/// Each reader that has it or waits for it.
const READER: u32 = 8;
/// No reader is admitted from here on: there is room for those that are refused.
const TOO_MANY: u32 = 1 << 31;
/// The mark in the words on which threads sleep that somebody does.
const SLEPT: u32 = 2;
/// The mark in the count of waiting writers that one of them is the primary writer now.
const HANDED: u32 = 1;
/// Each writer that waits for another.
const WAITING: u32 = 2;

/// Counts the writers that wait for another, of which one may have been handed the lock.
#[repr(transparent)]
struct WaitingWriters<P: Platform>(P::U32);

impl<P: Platform> WaitingWriters<P> {
    fn come(&self) {
        self.0.fetch_add(WAITING, Ordering::Relaxed);
    }

    fn go(&self) {
        self.0.fetch_sub(WAITING, Ordering::Relaxed);
    }

    fn is_handed_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HANDED != 0
    }

    /// Hands the lock to one of them; returns whether there is one.
    fn hand_over(&self) -> bool {
        let mut waiting = self.0.load(Ordering::Relaxed);
        while waiting != 0 {
            let handed = waiting | HANDED;
            // H10: pairs with H11.
            match self
                .0
                .compare_exchange(waiting, handed, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => waiting = now,
            }
        }
        false
    }

    /// Becomes the primary writer, if the lock is handed over and no other has it yet.
    fn accept(&self) -> bool {
        let mut waiting = self.0.load(Ordering::Relaxed);
        while waiting & HANDED != 0 {
            let left = (waiting - WAITING) & !HANDED;
            // H11: pairs with H10.
            match self
                .0
                .compare_exchange(waiting, left, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => waiting = now,
            }
        }
        false
    }
}

/// Sleeps while a writer waits for readers.
fn let_writer_go_first<P: Platform>(readers: &P::U32) {
    let mut seen = readers.load(Ordering::Relaxed);
    while seen & (WRITER | WRITING) == WRITER && seen >= READER {
        let marked = seen | READERS_WAIT;
        // Nothing is published by it.
        if seen != marked
            && let Err(now) =
                readers.compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed)
        {
            seen = now;
            continue;
        }
        P::wait(readers, marked);
        seen = readers.load(Ordering::Relaxed);
    }
}

/// A lock in a phase of readers or of writers.
///
/// A reader adds itself and has it at once in the phase of readers; in the other phase it
/// begins that of readers if no writer holds it, and otherwise sleeps until the writer has
/// begun it. The last reader begins the phase of writers if a writer waits. A release by a
/// writer leaves the phase as it is unless readers wait, so that another writer gets it
/// cheaply. Nobody spins, but for the time in which another says that it has begun a phase.
///
/// The default kind prefers readers: a writer's release begins their phase if one waits.
/// With `WRITERS_FIRST`, a release hands the lock to a writer that waits, and a reader that
/// comes in a phase of readers sleeps if a writer waits. It must not read twice at once.
///
/// **Follows:** `pthread_rwlock_t` of glibc 2.25 and later, of the kinds
/// `PTHREAD_RWLOCK_PREFER_READER_NP` and `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`,
/// from the comment on its algorithm and T. Riegel's announcement, 2016. A downgrade is
/// added; glibc has none.
///
/// **Size:** 16 bytes. **Per waiter:** nothing. **Fairness:** none; those that go first may
/// keep the others out for ever.
///
/// At most 2^28 readers hold it at once, including leaked guards: [`GlibcRw::read`] panics
/// beyond that, and [`GlibcRw::try_read`] returns `false`.
#[repr(C)]
pub struct GlibcRw<P: Platform = NativePlatform, const WRITERS_FIRST: bool = false> {
    readers: P::U32,
    /// 1 in the phase of writers, with [`SLEPT`]: the word on which readers, and the
    /// primary writer, sleep until it changes.
    phase: P::U32,
    /// The word on which other writers sleep: [`SLEPT`] if one does.
    writers: P::U32,
    /// Those that wait for another, where writers go first.
    waiting: WaitingWriters<P>,
}

impl<P: Platform, const WRITERS_FIRST: bool> GlibcRw<P, WRITERS_FIRST> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            readers: P::U32::ZERO,
            phase: P::U32::ZERO,
            writers: P::U32::ZERO,
            waiting: WaitingWriters(P::U32::ZERO),
        }
    }

    /// Sleeps while the phase is `old`.
    #[cold]
    #[inline(never)]
    fn await_end_of(&self, old: u32) {
        loop {
            // H1: pairs with H2.
            let phase = self.phase.load(Ordering::Acquire);
            if phase & 1 != old {
                return;
            }
            let slept = old | SLEPT;
            let marked = phase == slept
                || self
                    .phase
                    .compare_exchange(phase, slept, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok();
            if marked {
                P::wait(&self.phase, slept);
            }
        }
    }

    /// Tells who sleeps of the phase that has begun in `readers`.
    fn begin(&self, phase: u32) {
        // H2: pairs with H1.
        if self.phase.swap(phase, Ordering::Release) & SLEPT != 0 {
            P::wake_all(&self.phase);
        }
    }

    /// Changes `readers` in one step; returns what it was and what it is.
    #[inline(always)]
    fn change(&self, to: impl Fn(u32) -> u32) -> (u32, u32) {
        let mut was = self.readers.load(Ordering::Relaxed);
        loop {
            let new = to(was);
            // H3: pairs with itself and with H4 to H7. It acquires for who is told of the
            // phase that it may begin.
            let changed =
                self.readers
                    .compare_exchange(was, new, Ordering::AcqRel, Ordering::Relaxed);
            match changed {
                Ok(_) => return (was, new),
                Err(now) => was = now,
            }
        }
    }

    #[inline(always)]
    fn take(&self, seen: u32, new: u32) -> Result<u32, u32> {
        // H4: pairs with H3.
        self.readers
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Becomes the primary writer after another; returns what `readers` is then, or `None`
    /// if that one has handed the lock over.
    #[cold]
    #[inline(never)]
    fn await_other_writers(&self) -> Option<u32> {
        if WRITERS_FIRST {
            self.waiting.come();
        }
        let mut has_slept = false;
        let found = loop {
            let readers = self.readers.load(Ordering::Relaxed);
            if readers & WRITER == 0 {
                if self.take(readers, readers | WRITER).is_err() {
                    continue;
                }
                if WRITERS_FIRST {
                    self.waiting.go();
                }
                break Some(readers | WRITER);
            }
            if WRITERS_FIRST && self.waiting.accept() {
                break None;
            }
            // H8: pairs with H9, which comes after the release: either that sees this, or
            // the next line sees the release.
            self.writers.swap(SLEPT, Ordering::AcqRel);
            let is_held = self.readers.load(Ordering::Relaxed) & WRITER != 0;
            if is_held && !(WRITERS_FIRST && self.waiting.is_handed_over()) {
                P::wait(&self.writers, SLEPT);
                has_slept = true;
            }
        };
        if has_slept {
            // Others may sleep still.
            self.writers.store(SLEPT, Ordering::Relaxed);
        }
        found
    }

    /// Waits for writers and for readers; `was` is what `readers` was.
    #[cold]
    #[inline(never)]
    fn wait_to_write(&self, was: u32) {
        let mut readers = was | WRITER;
        if was & WRITER != 0 {
            match self.await_other_writers() {
                Some(now) => readers = now,
                None => return,
            }
        }
        while readers & WRITING == 0 {
            if readers < READER {
                match self.take(readers, readers | WRITING) {
                    Ok(_) => return self.phase.store(1, Ordering::Relaxed),
                    Err(now) => readers = now,
                }
            } else {
                self.await_end_of(0);
                P::relax();
                // H6: pairs with H3.
                readers = self.readers.load(Ordering::Acquire);
            }
        }
        // As in `wait_to_read`.
        self.await_end_of(0);
    }

    fn wake_other_writer(&self) {
        // H9: pairs with H8.
        if self.writers.swap(0, Ordering::AcqRel) & SLEPT != 0 {
            P::wake(&self.writers);
        }
    }

    /// Acquires for reading.
    ///
    /// # Panics
    /// If 2^28 readers hold the lock already.
    #[inline(always)]
    pub fn read(&self) {
        if WRITERS_FIRST {
            let_writer_go_first::<P>(&self.readers);
        }
        // H5: pairs with H3.
        let readers = self.readers.fetch_add(READER, Ordering::Acquire);
        if readers & (WRITING | TOO_MANY) != 0 {
            self.wait_to_read(readers + READER);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self, mut readers: u32) {
        if readers - READER >= TOO_MANY {
            // SAFETY: it is counted, and is no longer.
            unsafe { self.read_unlock() };
            panic!("a reader-writer lock is held by 2^28 readers: guards have been leaked");
        }
        while readers & WRITING != 0 {
            if readers & WRITER == 0 {
                match self.take(readers, readers & !WRITING) {
                    Ok(_) => return self.begin(0),
                    Err(now) => readers = now,
                }
            } else {
                self.await_end_of(1);
                P::relax();
                // H6': as H6.
                readers = self.readers.load(Ordering::Acquire);
            }
        }
        // Who began the phase may not have said so yet, and must not say it after the next
        // one has begun.
        self.await_end_of(1);
    }

    /// Acquires for reading if no writer holds it, none waits that goes first, and there is
    /// room; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        let mut seen = self.readers.load(Ordering::Relaxed);
        loop {
            let refused = seen & WRITER != 0 && (WRITERS_FIRST || seen & WRITING != 0);
            if refused || seen >= TOO_MANY {
                return false;
            }
            match self.take(seen, (seen & !WRITING) + READER) {
                Ok(_) => {
                    if seen & WRITING != 0 {
                        self.begin(0);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        let (was, now) = self.change(|readers| match readers - READER {
            left if left < READER && left & WRITER != 0 => (left | WRITING) & !READERS_WAIT,
            left => left,
        });
        if now & WRITING != 0 {
            self.begin(1);
            if was & READERS_WAIT != 0 {
                P::wake_all(&self.readers);
            }
        }
    }

    /// Makes the writer a reader, without any other holder in between; readers that wait
    /// enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        self.change(|readers| (readers & !(WRITER | WRITING)) + READER);
        self.begin(0);
        self.wake_other_writer();
    }
}

impl<P: Platform, const WRITERS_FIRST: bool> Default for GlibcRw<P, WRITERS_FIRST> {
    fn default() -> Self {
        Self {
            readers: P::U32::new(0),
            phase: P::U32::new(0),
            writers: P::U32::new(0),
            waiting: WaitingWriters(P::U32::new(0)),
        }
    }
}

// SAFETY: a writer has it in the phase of writers only, in which no reader gets it, and one
// writer is the primary one; a phase of writers begins when no reader is there.
unsafe impl<P: Platform, const WRITERS_FIRST: bool> RawLock<P> for GlibcRw<P, WRITERS_FIRST> {
    type Ctx = ();

    const INFO: Info = Info {
        name: match WRITERS_FIRST {
            true => "glibc-rw-w",
            false => "glibc-rw",
        },
        summary: match WRITERS_FIRST {
            true => "glibc's rwlock, as described: writers go first",
            false => "glibc's rwlock, as described: readers go first",
        },
        parks: true,
        readers_share: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "pthread_rwlock_t of glibc 2.25; Riegel 2016",
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader.
    fn about_to_wrap() -> Self {
        Self {
            readers: P::U32::new(TOO_MANY - READER),
            ..Self::default()
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // H7: pairs with H3.
        let readers = self.readers.fetch_or(WRITER, Ordering::Acquire);
        // The phase of writers has been said by who had it last.
        if readers & (WRITER | WRITING) != WRITING {
            self.wait_to_write(readers);
        }
    }

    unsafe fn try_lock(&self, _: &()) -> bool {
        let mut seen = self.readers.load(Ordering::Relaxed);
        while seen & WRITER == 0 && (seen < READER || WRITERS_FIRST && seen & WRITING != 0) {
            match self.take(seen, seen | WRITER | WRITING) {
                Ok(_) => {
                    if seen & WRITING == 0 {
                        self.phase.store(1, Ordering::Relaxed);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        let readers = self.readers.load(Ordering::Relaxed);
        Some(readers & WRITER != 0 || readers >= READER)
    }

    unsafe fn unlock(&self, _: &()) {
        let is_handed_over = WRITERS_FIRST && self.waiting.hand_over();
        if !is_handed_over {
            let (_, now) = self.change(|readers| match readers >= READER {
                true => readers & !(WRITER | WRITING),
                false => readers & !WRITER,
            });
            if now & WRITING == 0 {
                self.begin(0);
            }
        }
        self.wake_other_writer();
    }

    #[inline(always)]
    unsafe fn read_lock(&self, _: &()) {
        self.read();
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, _: &()) {
        // SAFETY: of the caller.
        unsafe { Self::read_unlock(self) }
    }
}

crate::lock_api_impl::shared!(GlibcRw, WRITERS_FIRST: bool);
