//! A recording in windows, seen as one without gaps.
//!
//! Where recording would slow a program too much, operations that wait for nobody are
//! recorded in windows only ([`crate::Event::Window`]); those that may wait always are.
//! Here the time between windows takes none: whoever waits across it waits for as long as
//! the windows last. What a thread held when a window ended it no longer holds, unless it
//! waits for something all the while. So whoever reads knows nothing of windows, and all
//! times and counts are of the windows together. A reader that follows more of a thread than
//! its locks finds the end of a window among the thread's records, where what the thread held
//! is forgotten.
//!
//! It must never show an operation that was recorded in part.

use crate::event::{Attempt, Event};
use std::collections::VecDeque;
use std::ops::Range;

/// The windows of a recording, in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Holds when each lasts, and the time before it in windows.
    windows: Vec<(Range<u64>, u64)>,
    began: u64,
}

/// A time of a recording in windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The number of the window, or of the one before.
    window: usize,
    within: bool,
    /// The time without gaps.
    tick: u64,
}

impl Windows {
    /// Returns the windows of a recording that lasts so long, in the first of which it begins;
    /// `turns` are the times at which a window begins (`true`) or ends. `None` if it is all
    /// one window.
    pub(super) fn of(recording: &Range<u64>, mut turns: Vec<(u64, bool)>) -> Option<Self> {
        turns.sort_unstable();
        let mut windows: Vec<(Range<u64>, u64)> = Vec::new();
        let (mut since, mut before) = (Some(recording.start), 0);
        let mut close = |from: u64, to: u64| {
            windows.push((from..to, before));
            before += to - from;
        };
        for (tick, begins) in turns {
            let tick = tick.clamp(recording.start, recording.end.max(recording.start));
            match (begins, since) {
                (true, None) => since = Some(tick),
                (false, Some(from)) => {
                    close(from, tick.max(from));
                    since = None;
                }
                _ => {}
            }
        }
        if let Some(from) = since {
            close(from, recording.end.max(from));
        }
        (windows.len() > 1 || windows.iter().any(|(window, _)| window.end < recording.end))
            .then_some(Self {
                windows,
                began: recording.start,
            })
    }

    /// Returns their number.
    pub(super) fn count(&self) -> usize {
        self.windows.len()
    }

    /// Returns a time of the recording without gaps.
    pub(super) fn without_gaps(&self, tick: u64) -> u64 {
        self.place(tick, 0).tick
    }

    /// Returns how much of a stretch is in windows, and how much between them.
    fn split(&self, from: u64, to: u64) -> [u64; 2] {
        let within = self.without_gaps(to) - self.without_gaps(from);
        [within, (to - from).saturating_sub(within)]
    }

    /// Returns for how many ticks of each tick in windows threads waited for locks, and the
    /// same between them, from the records of all threads: those that wait are always
    /// recorded. `None` if too little is between them.
    pub(super) fn waiting<'a>(
        &self,
        recording: &Range<u64>,
        shortest: u64,
        threads: impl Iterator<Item = impl Iterator<Item = (u64, Event<'a>)>>,
    ) -> Option<[f64; 2]> {
        let all = self.split(recording.start, recording.end.max(recording.start));
        if all[1] < all[0] / 4 || all[0] == 0 {
            return None;
        }
        let mut waited = [0; 2];
        for records in threads {
            let mut since = None;
            for (tick, event) in records {
                match event {
                    Event::Request { access, .. } => {
                        since = (access.attempt != Attempt::Once).then_some(tick);
                    }
                    Event::Acquired | Event::Refused => {
                        if let Some(since) = since.take().filter(|since| tick - since > shortest) {
                            let split = self.split(since, tick);
                            waited[0] += split[0];
                            waited[1] += split[1];
                        }
                    }
                    _ => {}
                }
            }
        }
        Some([0, 1].map(|at| waited[at] as f64 / all[at] as f64))
    }

    /// Returns the time without gaps at which a window ends.
    fn end_of(&self, window: usize) -> u64 {
        let (window, before) = &self.windows[window];
        self.began + before + (window.end - window.start)
    }

    /// Returns the place of a time in this window or later.
    fn place(&self, tick: u64, from: usize) -> Place {
        let later = &self.windows[from..];
        let after = match later {
            // Most are in the window of the one before.
            [_, (next, _), ..] if tick < next.start => 1,
            [_] => 1,
            _ => later.partition_point(|(window, _)| window.start <= tick),
        };
        let number = from + after.saturating_sub(1);
        let (window, before) = &self.windows[number];
        Place {
            window: number,
            within: window.contains(&tick),
            tick: self.began + before + tick.clamp(window.start, window.end) - window.start,
        }
    }
}

/// An operation that goes on.
struct Pending<'a> {
    begin: Event<'a>,
    /// The time at which it began, with and without gaps.
    began: u64,
    since: u64,
    /// Says whether its begin was shown.
    shown: bool,
}

/// What the system said last of a thread's time with a CPU, and what is shown of it.
#[derive(Clone, Copy)]
struct CpuTimes {
    tick: u64,
    shown_tick: u64,
    ran: u64,
    shown_ran: u64,
}

/// The records of a thread without gaps.
pub(super) struct WithoutGaps<'a, E> {
    events: E,
    windows: &'a Windows,
    last: Place,
    pending: Option<Pending<'a>>,
    /// The locks that it holds, as far as the window knows.
    held: Vec<u64>,
    asked: Option<CpuTimes>,
    /// The least ticks of a wait in which the thread is switched, and how many such waits were
    /// not shown: the system counts them too.
    switch: u64,
    hidden: u64,
    ready: VecDeque<(u64, Event<'a>)>,
    ended: bool,
}

impl<'a, E> WithoutGaps<'a, E> {
    pub(super) fn of(events: E, windows: &'a Windows, switch: u64) -> Self {
        Self {
            events,
            windows,
            last: Place {
                window: 0,
                within: true,
                tick: 0,
            },
            pending: None,
            held: Vec::new(),
            asked: None,
            switch,
            hidden: 0,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Shows that the thread releases what it holds, as how long it does is not known, and
    /// that nothing is known of it until its next record.
    fn forget(&mut self, tick: u64) {
        for lock in self.held.drain(..).rev() {
            self.ready.push_back((tick, Event::Release { lock }));
            self.ready.push_back((tick, Event::Released));
        }
        self.ready
            .push_back((tick, Event::Window { begins: false }));
    }

    /// Takes the next record.
    fn take(&mut self, tick: u64, event: Event<'a>) {
        let place = self.windows.place(tick, self.last.window);
        let left = self.last.within && (!place.within || place.window != self.last.window);
        if left && self.pending.is_none() {
            self.forget(self.windows.end_of(self.last.window));
        }
        self.last = place;
        let Place {
            within, tick: now, ..
        } = place;
        match event {
            Event::Request { .. }
            | Event::Release { .. }
            | Event::Wait { .. }
            | Event::Join { .. }
            | Event::Sleep { .. } => {
                if within {
                    self.ready.push_back((now, event));
                }
                if let Event::Release { lock } | Event::Wait { lock, .. } = event
                    && let Some(at) = self.held.iter().rposition(|held| *held == lock)
                {
                    self.held.remove(at);
                }
                self.pending = Some(Pending {
                    begin: event,
                    began: tick,
                    since: now,
                    shown: within,
                });
            }
            Event::Acquired
            | Event::Refused
            | Event::Released
            | Event::Woken { .. }
            | Event::Joined
            | Event::Slept => self.ends(tick, now, within, event),
            Event::Signal { .. } | Event::Cost { .. } => {
                if within {
                    self.ready.push_back((now, event));
                }
            }
            Event::Switches {
                voluntary,
                involuntary,
                ran_ns,
                took,
            } => {
                let ran_ns = self.ran(tick, now, ran_ns);
                if within {
                    let event = Event::Switches {
                        voluntary: voluntary.saturating_sub(self.hidden),
                        involuntary,
                        ran_ns,
                        took,
                    };
                    self.ready.push_back((now, event));
                }
            }
            Event::Begin { .. }
            | Event::Image { .. }
            | Event::Module { .. }
            | Event::Stack { .. }
            | Event::Create { .. }
            | Event::Started { .. }
            | Event::Ended
            | Event::Kind { .. }
            | Event::Ran { .. }
            | Event::Window { .. } => self.ready.push_back((now, event)),
        }
    }

    /// Takes the end of an operation.
    fn ends(&mut self, tick: u64, now: u64, within: bool, event: Event<'a>) {
        let pending = self.pending.take();
        let shown = match &pending {
            None => within,
            Some(pending) => {
                let lasts = within || pending.since < now;
                if !pending.shown && lasts {
                    self.ready.push_back((pending.since, pending.begin));
                }
                pending.shown || lasts
            }
        };
        if !shown {
            let began = pending.map_or(tick, |pending| pending.began);
            let waited =
                !matches!(event, Event::Released) && tick.saturating_sub(began) >= self.switch;
            self.hidden += u64::from(waited);
            return;
        }
        self.ready.push_back((now, event));
        if let (Event::Acquired | Event::Woken { .. }, Some(pending)) = (event, pending)
            && let Event::Request { lock, .. } | Event::Wait { lock, .. } = pending.begin
        {
            self.held.push(lock);
        }
        if !within {
            self.forget(now);
        }
    }

    /// Returns for how long the thread had a CPU, as if it had one between windows for as
    /// large a part of the time as around them.
    fn ran(&mut self, tick: u64, now: u64, ran: u64) -> u64 {
        let shown_ran = self.asked.map_or(ran, |before| {
            let part = (now - before.shown_tick) as f64 / (tick - before.tick).max(1) as f64;
            before.shown_ran + (ran.saturating_sub(before.ran) as f64 * part.min(1.0)) as u64
        });
        self.asked = Some(CpuTimes {
            tick,
            shown_tick: now,
            ran,
            shown_ran,
        });
        shown_ran
    }
}

impl<'a, E: Iterator<Item = (u64, Event<'a>)>> Iterator for WithoutGaps<'a, E> {
    type Item = (u64, Event<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(record);
            }
            if self.ended {
                return None;
            }
            match self.events.next() {
                Some((tick, event)) => self.take(tick, event),
                None => {
                    self.ended = true;
                    let later = self.last.window + 1 < self.windows.windows.len();
                    if later && self.last.within && self.pending.is_none() {
                        self.forget(self.windows.end_of(self.last.window));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Access, Attempt, Event};
    use crate::header::Header;
    use crate::read::Trace;
    use crate::write::file;

    const LOCK: u64 = 0x100;

    /// What is shown of a thread that has the lock when the first window ends.
    const FORGOTTEN: [(u64, Event<'static>); 3] = [
        (100, Event::Release { lock: LOCK }),
        (100, Event::Released),
        (100, Event::Window { begins: false }),
    ];

    fn asks(attempt: Attempt) -> Event<'static> {
        Event::Request {
            lock: LOCK,
            stack: 0,
            access: Access {
                shared: false,
                attempt,
            },
        }
    }

    /// Returns the records of a thread, of a recording from 0 to 1000 with windows until 100
    /// and from 900.
    fn shown(records: &[(u64, Event<'static>)]) -> (Trace, Vec<(u64, Event<'static>)>) {
        let header = Header::new(1.0, 0, 8, "a machine", "program");
        let turns = [
            (100, Event::Window { begins: false }),
            (900, Event::Window { begins: true }),
        ];
        let threads = [records.to_vec(), turns.to_vec()];
        let trace = Trace::read(file(&header, &threads, 1000).unwrap()).unwrap();
        let only = |event: Event<'_>| match event {
            Event::Begin { .. } => None,
            Event::Request { .. } => Some(asks(Attempt::Waits)),
            Event::Acquired => Some(Event::Acquired),
            Event::Release { lock } => Some(Event::Release { lock }),
            Event::Released => Some(Event::Released),
            Event::Sleep { timed } => Some(Event::Sleep { timed }),
            Event::Slept => Some(Event::Slept),
            Event::Window { begins } => Some(Event::Window { begins }),
            event => panic!("{event:?}"),
        };
        let events = trace.events(&trace.threads[0]);
        let shown = events.filter_map(|(tick, event)| Some((tick, only(event)?)));
        let shown = shown.collect();
        (trace, shown)
    }

    #[test]
    fn the_time_between_windows_takes_none() {
        let (trace, _) = shown(&[(10, Event::Sleep { timed: true })]);
        assert_eq!((trace.info.began, trace.info.ended), (0, 200));
        let windows = trace.info.windows.unwrap();
        assert_eq!((windows.count, windows.share), (2, 0.2));
        assert_eq!(trace.threads.len(), 1, "who turns windows is no thread");
    }

    #[test]
    fn waits_are_known_between_windows_too() {
        let wait = |from, to| [(from, asks(Attempt::Waits)), (to, Event::Acquired)];
        let of = |waits: &[[(u64, Event<'static>); 2]]| {
            let header = Header::new(100.0, 0, 8, "a machine", "program");
            let turns = vec![
                (100, Event::Window { begins: false }),
                (900, Event::Window { begins: true }),
            ];
            let threads = [waits.concat(), turns];
            let trace = Trace::read(file(&header, &threads, 1000).unwrap()).unwrap();
            trace.waits_between_windows()
        };
        // Half of the windows, and a quarter of the time between them.
        let half = of(&[wait(0, 50), wait(200, 400), wait(920, 970)]).unwrap();
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert_eq!(of(&[wait(0, 50)]), Some(0.0));
        assert_eq!(of(&[wait(200, 400)]), None);
    }

    /// The thread waits between the windows, and for nothing else: the system has counted that.
    #[test]
    fn a_wait_between_windows_is_no_wait_that_no_record_explains() {
        let switches = |voluntary| Event::Switches {
            voluntary,
            involuntary: 0,
            ran_ns: 10,
            took: 1,
        };
        let of = |wait: u64| {
            let header = Header::new(100.0, 0, 8, "a machine", "program");
            let records = vec![
                (10, switches(3)),
                (400, asks(Attempt::Waits)),
                (400 + wait, Event::Acquired),
                (950, switches(4)),
            ];
            let turns = vec![
                (100, Event::Window { begins: false }),
                (900, Event::Window { begins: true }),
            ];
            let trace = Trace::read(file(&header, &[records, turns], 1000).unwrap()).unwrap();
            let events = trace.events(&trace.threads[0]);
            let counted = events.filter_map(|(_, event)| match event {
                Event::Switches { voluntary, .. } => Some(voluntary),
                _ => None,
            });
            counted.collect::<Vec<_>>()
        };
        assert_eq!(of(50), [3, 3]);
        // It took too little for a switch.
        assert_eq!(of(5), [3, 4]);
    }

    #[test]
    fn what_is_held_when_a_window_ends_is_no_longer_held() {
        let waits = asks(Attempt::Waits);
        let records = [
            (50, waits),
            (60, Event::Acquired),
            // Neither its release was recorded, nor what came before these two.
            (950, waits),
            (960, Event::Acquired),
        ];
        let (_, shown) = shown(&records);
        assert_eq!(shown[..2], records[..2]);
        assert_eq!(shown[2..5], FORGOTTEN);
        assert_eq!(shown[5..], [(150, waits), (160, Event::Acquired)]);
    }

    #[test]
    fn who_waits_across_the_gap_waits_in_the_windows() {
        let waits = asks(Attempt::Waits);
        let (_, across) = shown(&[(50, waits), (950, Event::Acquired)]);
        assert_eq!(across, [(50, waits), (150, Event::Acquired)]);
        // It begins to wait between the windows.
        let sleeps = Event::Sleep { timed: true };
        let (_, late) = shown(&[(500, sleeps), (950, Event::Slept)]);
        assert_eq!(late[..1], FORGOTTEN[2..]);
        assert_eq!(late[1..], [(100, sleeps), (150, Event::Slept)]);
        let (_, early) = shown(&[(50, waits), (500, Event::Acquired)]);
        assert_eq!(early[..2], [(50, waits), (100, Event::Acquired)]);
        assert_eq!(early[2..], FORGOTTEN);
        let (_, between) = shown(&[(400, waits), (500, Event::Acquired)]);
        assert_eq!(between, FORGOTTEN[2..]);
    }

    #[test]
    fn who_sleeps_all_the_while_still_holds_its_lock() {
        let waits = asks(Attempt::Waits);
        let records = [
            (50, waits),
            (60, Event::Acquired),
            (70, Event::Sleep { timed: true }),
            (950, Event::Slept),
            (960, Event::Release { lock: LOCK }),
            (961, Event::Released),
        ];
        let (_, shown) = shown(&records);
        let ticks: Vec<u64> = shown.iter().map(|(tick, _)| *tick).collect();
        assert_eq!(ticks, [50, 60, 70, 150, 160, 161]);
    }
}
