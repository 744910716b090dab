//! Records to bytes.
//!
//! It runs inside the program that is recorded: it must never allocate, panic
//! or call anything.

use crate::addresses::Addresses;
use crate::event::{Access, Attempt, Event, kind};
use core::sync::atomic::{AtomicU8, Ordering};

/// The most bytes of a record without its payload.
pub const MOST: usize = 64;

/// Writes the records of a thread.
#[derive(Clone, Debug)]
pub struct Encoder {
    tick: u64,
    addresses: Addresses,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            tick: 0,
            addresses: Addresses::NONE,
        }
    }
}

/// The bytes of a record behind its first, which is written last.
struct Body<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Body<'_> {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        // There is room for all that `MOST` and the payload allow.
        if let Some(place) = self.bytes.get_mut(self.used) {
            *place = byte;
        }
        self.used += 1;
    }

    #[inline(always)]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn payload(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.byte(byte);
        }
    }
}

impl Encoder {
    /// Returns the time of the last record.
    #[inline(always)]
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// Writes what happened at `tick` to the start of `to`, whose bytes are
    /// zeros; returns the number of bytes used. `None`, with nothing written or
    /// remembered, if there may not be room: then the rest of `to` stays zeros,
    /// and the next record goes elsewhere, behind an [`Event::Begin`].
    ///
    /// A time before that of the last record counts as that: counters of
    /// several CPUs differ by a few ticks.
    #[inline(always)]
    pub fn write(&mut self, tick: u64, event: &Event<'_>, to: &mut [u8]) -> Option<usize> {
        self.record(tick, event, false, to)
    }

    /// Writes an operation that ended when it began, in one record: a request
    /// that was granted at once, or a release that woke nobody. It is read as two
    /// events of the same time. Otherwise as [`Self::write`].
    #[inline(always)]
    pub fn write_whole(&mut self, tick: u64, event: &Event<'_>, to: &mut [u8]) -> Option<usize> {
        self.record(tick, event, true, to)
    }

    #[inline(always)]
    fn record(
        &mut self,
        tick: u64,
        event: &Event<'_>,
        whole: bool,
        to: &mut [u8],
    ) -> Option<usize> {
        let payload = match event {
            Event::Module { path, .. } => path.0.len(),
            Event::Stack { frames, .. } => frames.0.len() * 8,
            _ => 0,
        };
        if to.len() < MOST + payload {
            return None;
        }
        let (first, bytes) = to.split_first_mut()?;
        let mut body = Body { bytes, used: 0 };
        if let Event::Begin { .. } = event {
            *self = Self::default();
        }
        body.number(tick.saturating_sub(self.tick));
        self.tick = self.tick.max(tick);
        let tag = match self.body(event, &mut body) {
            tag if whole => kind::whole(tag),
            tag => tag,
        };
        let used = 1 + body.used;
        // SAFETY: a byte that this thread alone writes. Release: who sees it,
        // in another process after this one was killed, sees the rest.
        unsafe { AtomicU8::from_ptr(first) }.store(tag, Ordering::Release);
        Some(used)
    }

    #[inline(always)]
    fn body(&mut self, event: &Event<'_>, body: &mut Body<'_>) -> u8 {
        let flag = |kind: u8, flag: bool| kind | u8::from(flag) << kind::OWN;
        match *event {
            Event::Begin { thread, image } => {
                body.number(thread);
                body.number(image);
                kind::BEGIN
            }
            Event::Image {
                process,
                parent,
                forked,
            } => {
                body.number(process);
                body.number(parent);
                flag(kind::IMAGE, forked)
            }
            Event::Module {
                from,
                to,
                offset,
                path,
            } => {
                body.number(from);
                body.number(to.wrapping_sub(from));
                body.number(offset);
                body.number(path.0.len() as u64);
                body.payload(path.0);
                kind::MODULE
            }
            Event::Stack { number, frames } => {
                body.number(number);
                body.number(frames.0.len() as u64);
                body.payload(frames.0.as_flattened());
                kind::STACK
            }
            Event::Request {
                lock,
                stack,
                access,
            } => {
                self.address(lock, body);
                body.number(stack);
                kind::REQUEST | own_bits(access) << kind::OWN
            }
            Event::Acquired => kind::ACQUIRED,
            Event::Refused => kind::REFUSED,
            Event::Release { lock } => {
                self.address(lock, body);
                kind::RELEASE
            }
            Event::Released => kind::RELEASED,
            Event::Wait {
                condition,
                lock,
                stack,
                timed,
            } => {
                self.address(condition, body);
                self.address(lock, body);
                body.number(stack);
                flag(kind::WAIT, timed)
            }
            Event::Woken { timed_out } => flag(kind::WOKEN, timed_out),
            Event::Signal {
                condition,
                broadcast,
            } => {
                self.address(condition, body);
                flag(kind::SIGNAL, broadcast)
            }
            Event::Create { thread } => {
                body.number(thread);
                kind::CREATE
            }
            Event::Join { handle } => {
                body.number(handle);
                kind::JOIN
            }
            Event::Joined => kind::JOINED,
            Event::Sleep { timed } => flag(kind::SLEEP, timed),
            Event::Slept => kind::SLEPT,
            Event::Started { handle, task } => {
                body.number(handle);
                body.number(task);
                kind::STARTED
            }
            Event::Ended => kind::ENDED,
            Event::Switches {
                voluntary,
                involuntary,
                ran_ns,
                took,
            } => {
                body.number(voluntary);
                body.number(involuntary);
                body.number(ran_ns);
                body.number(took);
                kind::SWITCHES
            }
            Event::Kind { lock, kind } => {
                self.address(lock, body);
                body.byte(kind.0);
                kind::KIND
            }
            Event::Ran { thread, ran_ns } => {
                body.number(thread);
                body.number(ran_ns);
                kind::RAN
            }
            Event::Window { begins } => flag(kind::WINDOW, begins),
            Event::Cost { ticks } => {
                body.number(ticks);
                kind::COST
            }
        }
    }

    /// Writes an address: the number of its place, or a 0 and all of it.
    #[inline(always)]
    fn address(&mut self, address: u64, body: &mut Body<'_>) {
        let (place, there) = self.addresses.remember(address);
        if there {
            body.byte(1 + place);
        } else {
            body.byte(0);
            body.number(address);
        }
    }
}

#[inline(always)]
fn own_bits(access: Access) -> u8 {
    let attempt = match access.attempt {
        Attempt::Waits => 0,
        Attempt::Timed => 2,
        Attempt::Once => 4,
        Attempt::FoundHeld => 6,
    };
    attempt | u8::from(access.shared)
}
