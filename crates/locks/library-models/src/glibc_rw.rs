//! The reader-writer lock of glibc in two kinds, one that prefers readers and one that
//! prefers writers, as it is described.

mod waiting;

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Info, RawLock};
use waiting::{OtherWriters, Phase, WaitingWriters};

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
/// cheaply. Other writers sleep only while it lets them, which it takes back just before it
/// releases. Nobody spins, but while another says that, or that it has begun a phase.
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
    phase: Phase<P>,
    others: OtherWriters<P>,
    /// The writers that wait for another, where writers go first.
    waiting: WaitingWriters<P>,
}

impl<P: Platform, const WRITERS_FIRST: bool> GlibcRw<P, WRITERS_FIRST> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            readers: P::U32::ZERO,
            phase: Phase::new(),
            others: OtherWriters::new(),
            waiting: WaitingWriters::new(),
        }
    }

    /// Sleeps while the phase is `old`; returns what `readers` is then.
    fn readers_after(&self, old: u32) -> u32 {
        self.phase.await_end_of(old);
        // H6: pairs with H3.
        let readers = self.readers.load(Ordering::Acquire);
        if readers & WRITING == old {
            // Who has begun this phase has not said so yet.
            P::relax();
        }
        readers
    }

    /// Changes `readers` in one step; returns what it was and what it is.
    #[inline(always)]
    fn change(&self, to: impl Fn(u32) -> u32) -> (u32, u32) {
        let mut was = self.readers.load(Ordering::Relaxed);
        loop {
            let new = to(was);
            // H3: pairs with itself and with H4 to H7. It acquires because a thread may begin
            // the phase as soon as it learns of it.
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

    /// Becomes the primary writer after another; `readers` is what it was when that one was
    /// seen. Returns what it is then, or `None` if that one has handed the lock over.
    #[cold]
    #[inline(never)]
    fn await_other_writers(&self, mut readers: u32) -> Option<u32> {
        if WRITERS_FIRST {
            self.waiting.come();
        }
        let mut has_slept = false;
        let found = loop {
            if readers & WRITER == 0 {
                if let Err(now) = self.take(readers, readers | WRITER) {
                    readers = now;
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
            has_slept |= self.others.sleep();
            readers = self.readers.load(Ordering::Relaxed);
        };
        self.others.may_sleep(has_slept);
        found
    }

    /// Waits for writers and for readers; `was` is what `readers` was.
    #[cold]
    #[inline(never)]
    fn wait_to_write(&self, was: u32) {
        let mut readers = was | WRITER;
        if was & WRITER != 0 {
            match self.await_other_writers(was) {
                Some(now) => readers = now,
                None => return,
            }
        } else {
            self.others.may_sleep(false);
        }
        while readers & WRITING == 0 {
            if readers < READER {
                match self.take(readers, readers | WRITING) {
                    Ok(_) => return self.phase.begin_alone(),
                    Err(now) => readers = now,
                }
            } else {
                readers = self.readers_after(0);
            }
        }
        // As in `wait_to_read`.
        self.phase.await_end_of(0);
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
                    Ok(_) => return self.phase.begin(0),
                    Err(now) => readers = now,
                }
            } else {
                readers = self.readers_after(1);
            }
        }
        // Who began the phase may not have said so yet, and must not say it after the next
        // one has begun.
        self.phase.await_end_of(1);
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
                        self.phase.begin(0);
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
            self.phase.begin(1);
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
        let sleep = self.others.may_sleep_no_more();
        self.change(|readers| (readers & !(WRITER | WRITING)) + READER);
        self.phase.begin(0);
        self.others.wake(sleep);
    }
}

impl<P: Platform, const WRITERS_FIRST: bool> Default for GlibcRw<P, WRITERS_FIRST> {
    fn default() -> Self {
        Self {
            readers: P::U32::new(0),
            phase: Phase::default(),
            others: OtherWriters::default(),
            waiting: WaitingWriters::default(),
        }
    }
}

// SAFETY: a writer has it in the phase of writers only, in which no reader gets it, and one
// writer is the primary one; a phase of writers begins when no reader is there.
unsafe impl<P: Platform, const WRITERS_FIRST: bool> RawLock<P> for GlibcRw<P, WRITERS_FIRST> {
    type Ctx = ();

    const INFO: Info = Info {
        name: match WRITERS_FIRST {
            true => "pthread-rwlock-w",
            false => "pthread-rwlock",
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
        promises: match WRITERS_FIRST {
            false => "writer tries, reader asks, readers at the limit, loses races",
            true => {
                "writer tries, reader asks, readers at the limit, readers wait, readers try \
                behind, readers looked before, loses races"
            }
        },
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
        if readers & (WRITER | WRITING) == WRITING {
            self.others.may_sleep(false);
        } else {
            self.wait_to_write(readers);
        }
    }

    unsafe fn try_lock(&self, _: &()) -> bool {
        let mut seen = self.readers.load(Ordering::Relaxed);
        while seen & WRITER == 0 && (seen < READER || WRITERS_FIRST && seen & WRITING != 0) {
            match self.take(seen, seen | WRITER | WRITING) {
                Ok(_) => {
                    if seen & WRITING == 0 {
                        self.phase.begin_alone();
                    }
                    self.others.may_sleep(false);
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
        let sleep = self.others.may_sleep_no_more();
        let is_handed_over = WRITERS_FIRST && self.waiting.hand_over();
        if !is_handed_over {
            let (_, now) = self.change(|readers| match readers >= READER {
                true => readers & !(WRITER | WRITING),
                false => readers & !WRITER,
            });
            if now & WRITING == 0 {
                self.phase.begin(0);
            }
        }
        self.others.wake(sleep);
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
