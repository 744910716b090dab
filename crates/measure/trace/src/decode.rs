//! Bytes to records.
//!
//! It must never panic, whatever the bytes are.

use crate::addresses::Addresses;
use crate::event::{Access, Attempt, Event, Frames, LockKind, Payload, kind};

/// Reads the records of a block.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    position: Position,
}

impl<'a> Decoder<'a> {
    /// Reads from the start of a block, or from a [`Event::Begin`].
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: Position::START,
        }
    }

    /// Returns the number of bytes of the records read so far.
    #[must_use]
    pub fn at(&self) -> usize {
        self.position.at
    }

    /// Returns whether it ended at bytes that are no record. A record cut off by the end
    /// of the bytes is not damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.position.damaged
    }
}

impl<'a> Iterator for Decoder<'a> {
    /// The time, and what happened then.
    type Item = (u64, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.position.next(self.bytes, |_, payload| Some(payload))
    }
}

/// Says how far the records of a block were read; the bytes are whoever reads it has them.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    at: usize,
    tick: u64,
    addresses: Addresses,
    /// Holds what else the last record says.
    then: Option<Event<'static>>,
    damaged: bool,
}

impl Position {
    /// The start of a block, or of what follows an [`Event::Begin`].
    pub(crate) const START: Self = Self {
        at: 0,
        tick: 0,
        addresses: Addresses::NONE,
        then: None,
        damaged: false,
    };

    /// Reads the next record of these bytes, which are the same at each call. `payload`
    /// says where the bytes of a record are found later, by their place and themselves.
    #[inline]
    pub(crate) fn next<'a, 'b>(
        &mut self,
        bytes: &'b [u8],
        payload: impl Fn(usize, &'b [u8]) -> Option<&'a [u8]>,
    ) -> Option<(u64, Event<'a>)> {
        if self.damaged {
            return None;
        }
        if let Some(event) = self.then.take() {
            return Some((self.tick, event));
        }
        let (&tag, rest) = bytes.get(self.at..)?.split_first()?;
        if tag == 0 {
            return None;
        }
        let mut body = Body {
            left: rest,
            overlong: false,
        };
        let since = body.number();
        if tag == kind::BEGIN {
            self.tick = 0;
            self.addresses = Addresses::NONE;
        }
        let of = |payload_bytes: &'b [u8], left: &[u8]| {
            payload(
                bytes.len() - left.len() - payload_bytes.len(),
                payload_bytes,
            )
        };
        let event = since.and_then(|_| self.body(tag, &mut body, of));
        self.damaged |= body.overlong;
        if self.damaged || event.is_none() {
            self.then = None;
        }
        let event = event.filter(|_| !self.damaged)?;
        self.tick = self.tick.saturating_add(since?);
        self.at = bytes.len() - body.left.len();
        Some((self.tick, event))
    }

    #[inline]
    fn body<'a, 'b>(
        &mut self,
        tag: u8,
        body: &mut Body<'b>,
        payload: impl Fn(&'b [u8], &[u8]) -> Option<&'a [u8]>,
    ) -> Option<Event<'a>> {
        let own = tag >> kind::OWN;
        let flag = own & 1 == 1;
        Some(match tag & ((1 << kind::OWN) - 1) {
            kind::BEGIN => Event::Begin {
                thread: body.number()?,
                image: body.number()?,
            },
            kind::IMAGE => Event::Image {
                process: body.number()?,
                parent: body.number()?,
                forked: flag,
            },
            kind::MODULE => {
                let from = body.number()?;
                Event::Module {
                    from,
                    to: from.wrapping_add(body.number()?),
                    offset: body.number()?,
                    path: {
                        let length = body.number()?;
                        Payload(payload(body.take(length)?, body.left)?)
                    },
                }
            }
            kind::STACK => Event::Stack {
                number: body.number()?,
                frames: {
                    let length = body.number()?.checked_mul(8)?;
                    Frames(payload(body.take(length)?, body.left)?.as_chunks().0)
                },
            },
            kind @ (kind::REQUEST | kind::TAKEN) => {
                let event = Event::Request {
                    lock: self.address(body)?,
                    stack: body.number()?,
                    access: Access {
                        shared: flag,
                        attempt: match own >> 1 {
                            0 => Attempt::Waits,
                            1 => Attempt::Timed,
                            2 => Attempt::Once,
                            _ => Attempt::FoundHeld,
                        },
                    },
                };
                self.then = (kind == kind::TAKEN).then_some(Event::Acquired);
                event
            }
            kind::ACQUIRED => Event::Acquired,
            kind::REFUSED => Event::Refused,
            kind @ (kind::RELEASE | kind::FREED) => {
                let lock = self.address(body)?;
                self.then = (kind == kind::FREED).then_some(Event::Released);
                Event::Release { lock }
            }
            kind::RELEASED => Event::Released,
            kind::WAIT => Event::Wait {
                condition: self.address(body)?,
                lock: self.address(body)?,
                stack: body.number()?,
                timed: flag,
            },
            kind::WOKEN => Event::Woken { timed_out: flag },
            kind::SIGNAL => Event::Signal {
                condition: self.address(body)?,
                broadcast: flag,
            },
            kind::CREATE => Event::Create {
                thread: body.number()?,
            },
            kind::JOIN => Event::Join {
                handle: body.number()?,
            },
            kind::JOINED => Event::Joined,
            kind::SLEEP => Event::Sleep { timed: flag },
            kind::SLEPT => Event::Slept,
            kind::STARTED => Event::Started {
                handle: body.number()?,
                task: body.number()?,
            },
            kind::ENDED => Event::Ended,
            kind::SWITCHES => Event::Switches {
                voluntary: body.number()?,
                involuntary: body.number()?,
                ran_ns: body.number()?,
                took: body.number()?,
            },
            kind::COST => Event::Cost {
                ticks: body.number()?,
            },
            kind::KIND => Event::Kind {
                lock: self.address(body)?,
                kind: LockKind(body.byte()?),
            },
            kind::WINDOW => Event::Window { begins: flag },
            kind::RAN => Event::Ran {
                thread: body.number()?,
                ran_ns: body.number()?,
            },
            _ => {
                self.damaged = true;
                return None;
            }
        })
    }

    #[inline]
    fn address(&mut self, body: &mut Body<'_>) -> Option<u64> {
        match body.byte()? {
            0 => {
                let address = body.number()?;
                self.addresses.remember(address);
                Some(address)
            }
            number => {
                let address = self.addresses.at(number - 1);
                self.damaged |= address.is_none();
                address
            }
        }
    }
}

/// The bytes of a record behind its first, and what follows.
struct Body<'a> {
    left: &'a [u8],
    overlong: bool,
}

impl<'a> Body<'a> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&byte, left) = self.left.split_first()?;
        self.left = left;
        Some(byte)
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        // Most numbers are small.
        if let [byte @ ..0x80, left @ ..] = self.left {
            self.left = left;
            return Some(u64::from(*byte));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        self.overlong = true;
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let (bytes, left) = self.left.split_at_checked(length)?;
        self.left = left;
        Some(bytes)
    }
}
