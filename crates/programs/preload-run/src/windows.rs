//! When a program is recorded in windows: so that recording takes no more of its threads'
//! time than a small part.
//!
//! The recorder says what it takes of the threads' time. Where that is little, all is one
//! window. It must never decide by what this machine is: only by what was timed.

use locklab_document::number::{count, percent};
use locklab_trace::{BLOCK, Encoder, Event, Header, InWindows};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The part of the threads' time that the recorder may take by its own clock. What it does to
/// their caches costs as much again or more: MariaDB ran at 0.91 of its rate with 0.024.
const ASKED: f64 = 0.01;
/// The length of a window: each lock is taken often in it, and each thread has a CPU several
/// times, and yet a short program has windows in all of its phases.
const WINDOW: Duration = Duration::from_millis(25);
/// Sets how many windows the first is long, in which it is found out what recording takes.
const FIRST: u32 = 4;
/// The least part of the time that is in windows.
const LEAST: f64 = 0.02;

/// What turns windows on and off while a program runs.
pub(crate) struct Windows {
    end: Sender<()>,
    turning: JoinHandle<()>,
}

impl Windows {
    /// Begins; `ticks` reads the clock of the recording.
    pub(crate) fn begin(header: &'static Header, file: File, ticks: fn(&Header) -> u64) -> Self {
        let (end, ended) = channel();
        let mut turns = Turns {
            header,
            file,
            ticks,
            encoder: Encoder::default(),
            room: None,
        };
        Self {
            end,
            turning: std::thread::spawn(move || turns.until(&ended)),
        }
    }

    /// Ends, in a window.
    pub(crate) fn end(self) {
        drop(self.end);
        // It cannot panic, and there is nothing to say of it.
        let _ = self.turning.join();
    }
}

struct Turns {
    header: &'static Header,
    file: File,
    ticks: fn(&Header) -> u64,
    encoder: Encoder,
    /// Says where in the file the next turn is written, once there is one, and the end of
    /// the room for them.
    room: Option<(usize, usize)>,
}

impl Turns {
    fn until(&mut self, ended: &Receiver<()>) {
        let goes_on = |time| matches!(ended.recv_timeout(time), Err(RecvTimeoutError::Timeout));
        let mut window = FIRST * WINDOW;
        loop {
            let before = self.header.spent();
            if !goes_on(window) {
                return;
            }
            window = WINDOW;
            let after = self.header.spent();
            let since = |at: usize| after[at].saturating_sub(before[at]) as f64;
            let gap = gap(window, since(0), since(1));
            if gap.is_zero() {
                continue;
            }
            // What is later is not part of the window, and a thread sees its end later.
            let tick = (self.ticks)(self.header);
            if !self.write(tick, false) {
                return;
            }
            self.header.set_window(false);
            let goes_on = goes_on(gap);
            self.header.set_window(true);
            let tick = (self.ticks)(self.header);
            self.write(tick, true);
            if !goes_on {
                return;
            }
        }
    }

    /// Writes a turn; returns whether there was room.
    fn write(&mut self, tick: u64, begins: bool) -> bool {
        let event = Event::Window { begins };
        let mut bytes = [0; BLOCK];
        if let Some((at, end)) = self.room
            && let Some(used) = self.encoder.write(tick, &event, &mut bytes[..end - at])
        {
            self.room = Some((at + used, end));
            return self.file.write_all_at(&bytes[..used], at as u64).is_ok();
        }
        let Some(at) = self.header.claim() else {
            return false;
        };
        let thread = self
            .header
            .threads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let begin = Event::Begin {
            thread: thread.into(),
            image: 0,
        };
        let mut used = 0;
        for event in [begin, event] {
            used += self
                .encoder
                .write(tick, &event, &mut bytes[used..])
                .unwrap_or(0);
        }
        self.room = Some((at + used, at + BLOCK));
        self.file.write_all_at(&bytes[..used], at as u64).is_ok()
    }
}

/// Returns how long no window is to be behind one of this length, in which recording took
/// so much of the time for which threads were active.
#[must_use]
pub fn gap(window: Duration, spent: f64, active: f64) -> Duration {
    if active <= 0.0 || spent <= ASKED * active {
        return Duration::ZERO;
    }
    let part = (ASKED * active / spent).max(LEAST);
    window.mul_f64(1.0 / part - 1.0)
}

/// Returns the note that a recording is of windows only.
#[must_use]
pub fn in_windows(windows: InWindows) -> String {
    format!(
        "To keep the program at its speed, it was recorded in {}, {} % of the time. Whatever \
         is said here is of the windows.",
        count(windows.count, "window"),
        percent(100.0 * windows.share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_leaves_recording_its_part_of_the_time() {
        let window = Duration::from_millis(100);
        assert_eq!(gap(window, 0.0, 0.0), Duration::ZERO);
        assert_eq!(gap(window, 10.0, 1000.0), Duration::ZERO);
        // A tenth of the threads' time: one window of ten.
        assert_eq!(gap(window, 100.0, 1000.0), window * 9);
        assert_eq!(gap(window, 250.0, 1000.0), window * 24);
        assert!(gap(window, f64::MAX, 1.0) <= window * 49);
    }
}
