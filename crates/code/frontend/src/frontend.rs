//! The front end: executes blocks one after the other and counts what it loses. The next
//! block says how the one before ended, so nothing is needed but the order of blocks.

use crate::icache::{Cache, Fetch, Geometry, Prefetch, Tally};

use crate::branch::Kind;
use crate::conditional::Conditional;
use crate::events::{Event, EventTally};
use crate::ops::{Ops, Window};
use crate::processor::Processor;
use crate::site::{CacheMismatch, Site, l2_geometry};
use crate::stretch::Stretch;
use crate::targets::{Found, Popped, Targets};

/// Says which ways a conditional branch has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Habit {
    #[default]
    Unseen,
    Taken,
    NotTaken,
    Both,
}

/// Describes what is known of a branch.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Says where it went last.
    target: u64,
    /// One more than the flushes that had happened when it was executed last; 0 for never.
    flushes: u32,
    habit: Habit,
    /// An indirect branch that has gone to several targets.
    several: bool,
}

/// The front end of one CPU.
#[derive(Debug)]
pub struct Frontend<'s> {
    l1i: Cache,
    l2: Cache,
    ops: Ops,
    targets: Targets,
    conditional: Conditional,
    records: Vec<Record>,
    before: Option<&'s Site>,
    stretch: Stretch,
    /// Counts blocks: the time of every table.
    now: u64,
    /// Instructions since the last redirect.
    since_redirect: u64,
    decoding: bool,
    lead: u64,
    return_fallback: bool,
    barrier_direct: bool,
    /// Events of each block, by number, if they are wanted.
    by_site: Option<Vec<[u32; Event::COUNT]>>,
    /// The weight of an event there.
    weight: u32,
}

impl<'s> Frontend<'s> {
    /// Makes a front end with empty caches, whose L1i is `l1i`.
    ///
    /// # Errors
    /// [`CacheMismatch`] if `l1i` does not fit the processor's other caches.
    pub fn new(
        processor: &Processor,
        l1i: Geometry,
        prefetch: Prefetch,
    ) -> Result<Self, CacheMismatch> {
        Ok(Frontend {
            l1i: Cache::new(l1i, prefetch),
            l2: Cache::new(l2_geometry(processor, l1i)?, Prefetch::None),
            ops: Ops::new(processor),
            targets: Targets::new(processor),
            conditional: Conditional::new(processor),
            records: Vec::new(),
            before: None,
            stretch: Stretch::new(processor),
            now: 0,
            since_redirect: 0,
            decoding: false,
            lead: processor.lead.value as u64,
            return_fallback: processor.return_fallback.value == 1.0,
            barrier_direct: processor.barrier_direct.value == 1.0,
            by_site: None,
            weight: 1,
        })
    }

    /// Notes the events of each block from now on.
    pub fn note_sites(&mut self) {
        self.by_site.get_or_insert_default();
    }

    /// Predicts conditional branches by other hashes too from now on.
    pub fn try_other_hashes(&mut self, processor: &Processor) {
        self.conditional.try_other_hashes(processor);
    }

    /// Notes each event of a block `weight` times from now on: 0 for what is not counted, more
    /// than 1 for a part that stands for others.
    pub fn weigh(&mut self, weight: u32) {
        self.weight = weight;
    }

    /// Goes on after blocks that were not executed here: what ran before is unknown, and so is
    /// where calls that were made then return to, which counts as predicted.
    pub fn resume(&mut self) {
        self.before = None;
        self.targets.resume();
        self.since_redirect = self.lead;
    }

    /// Returns the events of the blocks, by their numbers; none unless they are noted.
    pub fn sites(&self) -> &[[u32; Event::COUNT]] {
        self.by_site.as_deref().unwrap_or_default()
    }

    /// Starts anew with another thread: nothing ran before.
    pub fn restart(&mut self) {
        self.before = None;
        self.l1i.clear();
    }

    /// Executes a block once. What it loses is counted on `events`, and its instructions and
    /// lines on `tally`.
    #[inline]
    pub fn run(&mut self, site: &'s Site, tally: &Tally, events: &EventTally) {
        self.now += 1;
        match self.before {
            Some(before) => self.leave(before, site.start, events),
            None => self.stretch.begin(site.start),
        }
        self.stretch.run(site.block.instructions());
        self.since_redirect += site.block.instructions();
        if !self.l1i.hit(site.block, tally) {
            self.fetch(site, site.block, tally, events);
        }
        self.operations(site, site.window, events);
        if let Some(more) = &site.more {
            for &block in &more.blocks {
                self.fetch(site, block, tally, events);
            }
            for &window in &more.windows {
                self.operations(site, window, events);
            }
        }
        self.before = Some(site);
    }

    #[cold]
    fn fetch(
        &mut self,
        site: &Site,
        block: crate::icache::Block,
        tally: &Tally,
        events: &EventTally,
    ) {
        // The block's own instructions are in it already.
        let before = self.since_redirect - site.block.instructions();
        let redirected = before < self.lead;
        let mut missed = [0_u32; 2];
        let l2 = &mut self.l2;
        self.l1i.run_with(block, tally, |line, why| {
            let hit = l2.fetch(line);
            if why == Fetch::Demand {
                missed[usize::from(!hit)] += 1;
            }
        });
        for (missed, [after, streamed]) in missed.into_iter().zip([
            [Event::L1Redirected, Event::L1Streamed],
            [Event::L2Redirected, Event::L2Streamed],
        ]) {
            // Only the first line waits for the redirect; the predictor runs ahead of others.
            let waits = u32::from(redirected && missed > 0);
            self.count(site.number, after, waits, events);
            self.count(site.number, streamed, missed - waits, events);
        }
        if missed != [0, 0] {
            // While it waited, the predictor ran ahead.
            self.since_redirect = self.since_redirect.max(self.lead);
        }
    }

    #[inline(always)]
    fn operations(&mut self, site: &Site, window: Window, events: &EventTally) {
        if self.ops.run(window, self.now) {
            self.decoding = false;
        } else {
            self.decode(site, window.starts.count_ones(), events);
        }
    }

    #[cold]
    fn decode(&mut self, site: &Site, instructions: u32, events: &EventTally) {
        self.count(site.number, Event::Decoded, instructions, events);
        if !self.decoding {
            self.decoding = true;
            self.count(site.number, Event::DecodeSwitch, 1, events);
        }
    }

    /// Counts an event of the block with this number.
    #[inline]
    fn count(&mut self, site: u32, event: Event, n: u32, events: &EventTally) {
        if n == 0 {
            return;
        }
        events.add(event, n.into());
        if let Some(by_site) = &mut self.by_site {
            let index = site as usize;
            if index >= by_site.len() {
                by_site.resize((index + 1).next_multiple_of(1 << 12), [0; Event::COUNT]);
            }
            let count = &mut by_site[index][event as usize];
            *count = count.saturating_add(n * self.weight);
        }
    }

    /// Leaves the block before towards `start`.
    #[inline(always)]
    fn leave(&mut self, before: &Site, start: u64, events: &EventTally) {
        // The most frequent kind first, by a branch of its own.
        if before.kind == Kind::Conditional {
            return self.conditional(before, start, events);
        }
        self.leave_otherwise(before, start, events);
    }

    fn leave_otherwise(&mut self, before: &Site, start: u64, events: &EventTally) {
        match before.kind {
            Kind::None => {
                if start != before.next {
                    self.count(before.number, Event::Interruption, 1, events);
                    self.stretch.begin(start);
                    self.since_redirect = 0;
                }
            }
            Kind::Conditional => {}
            Kind::Jump => self.direct(before, start, events),
            Kind::Call => {
                self.direct(before, start, events);
                self.targets.call(before.next);
            }
            Kind::IndirectJump => self.indirect(before, start, events),
            Kind::IndirectCall => {
                self.indirect(before, start, events);
                self.targets.call(before.next);
            }
            Kind::Return => self.returned(before, start, events),
            Kind::Privilege | Kind::AddressSpace | Kind::Barrier => {
                let event = match before.kind {
                    Kind::Privilege => Event::Privilege,
                    Kind::AddressSpace => Event::AddressSpace,
                    _ => {
                        self.targets.flush(self.barrier_direct, self.now);
                        Event::Barrier
                    }
                };
                self.count(before.number, event, 1, events);
                self.stretch.begin(start);
                self.since_redirect = 0;
            }
        }
    }

    /// Notes that a branch was taken to `start`, whether or not it was predicted.
    #[inline(always)]
    fn goes_to(&mut self, before: &Site, start: u64, events: &EventTally) {
        events.add(Event::Taken, 1);
        let late = self.stretch.end(before.next);
        self.stretch.begin(start);
        self.count(before.number, Event::Fetching, late, events);
    }

    /// Returns the record of a branch.
    #[inline(always)]
    fn record(&mut self, branch: u32) -> &mut Record {
        let index = branch as usize;
        if index >= self.records.len() {
            self.records
                .resize((index + 1).next_multiple_of(1 << 12), Record::default());
        }
        &mut self.records[index]
    }

    #[inline(always)]
    fn conditional(&mut self, before: &Site, start: u64, events: &EventTally) {
        let taken = start != before.next;
        let habit = self.record(before.branch).habit;
        let right = match (habit, taken) {
            (Habit::Taken, true) => true,
            (Habit::NotTaken, false) => return,
            _ => self.changeable(before, habit, taken, events),
        };
        if !right {
            self.count(before.number, Event::Direction, 1, events);
            self.since_redirect = 0;
        }
        if taken {
            self.taken(before, start, right, events);
        }
    }

    /// Asks the predictor about a branch that may go both ways; returns whether it was right.
    fn changeable(
        &mut self,
        before: &Site,
        habit: Habit,
        taken: bool,
        events: &EventTally,
    ) -> bool {
        let address = before.branch_address();
        let known = match habit {
            Habit::Unseen => {
                let habit = if taken { Habit::Taken } else { Habit::NotTaken };
                self.record(before.branch).habit = habit;
                return self.conditional.unseen(taken, events);
            }
            Habit::Both => true,
            Habit::Taken | Habit::NotTaken => false,
        };
        if !known {
            self.conditional.always(address, !taken);
            self.record(before.branch).habit = Habit::Both;
        }
        self.conditional.branch(address, taken, events)
    }

    #[inline(always)]
    fn direct(&mut self, before: &Site, start: u64, events: &EventTally) {
        self.taken(before, start, true, events);
    }

    /// Notes that a branch was taken, to a target that its instruction has or the
    /// return stack knew, if it was `predicted`.
    #[inline(always)]
    fn taken(&mut self, before: &Site, start: u64, predicted: bool, events: &EventTally) {
        self.goes_to(before, start, events);
        self.conditional.pass(before.branch_address(), start);
        let flushes = self.targets.flushes + 1;
        let found = self
            .targets
            .find(before.branch, before.branch_address(), self.now);
        let record = self.record(before.branch);
        let seen = std::mem::replace(&mut record.flushes, flushes);
        if found != Found::First && predicted {
            self.lookup_failed(before.number, found, seen != 0 && seen != flushes, events);
        }
    }

    #[cold]
    fn lookup_failed(&mut self, site: u32, found: Found, flushed: bool, events: &EventTally) {
        let event = match (found, flushed) {
            (Found::Second, false) => Event::TargetSlow,
            (Found::Second, true) => Event::FlushedSlow,
            (_, false) => Event::TargetDecoded,
            (_, true) => Event::FlushedDecoded,
        };
        self.count(site, event, 1, events);
        if found == Found::Nowhere {
            self.since_redirect = 0;
        }
    }

    fn indirect(&mut self, before: &Site, start: u64, events: &EventTally) {
        self.goes_to(before, start, events);
        let flushes = self.targets.flushes + 1;
        let found = self
            .targets
            .find(before.branch, before.branch_address(), self.now);
        let record = *self.record(before.branch);
        let mut predicted =
            (found != Found::Nowhere && record.flushes == flushes).then_some(record.target);
        if record.several {
            let on_path =
                self.targets
                    .on_path(before.branch_address(), self.conditional.path(), start);
            predicted = on_path.or(predicted);
        }
        self.conditional.pass(before.branch_address(), start);
        let several = record.several || record.flushes != 0 && record.target != start;
        *self.record(before.branch) = Record {
            target: start,
            flushes,
            several,
            ..record
        };
        if predicted == Some(start) {
            if found == Found::Second {
                self.lookup_failed(before.number, found, false, events);
            }
            return;
        }
        let flushed = record.flushes != 0 && record.flushes != flushes;
        let event = if flushed {
            Event::FlushedPrediction
        } else {
            Event::Indirect
        };
        self.count(before.number, event, 1, events);
        self.since_redirect = 0;
    }

    #[inline(always)]
    fn returned(&mut self, before: &Site, start: u64, events: &EventTally) {
        let by_stack = self.targets.pop();
        let record = self.record(before.branch);
        let last = std::mem::replace(&mut record.target, start);
        let right = match by_stack {
            Popped::Address(address) => address == start,
            Popped::Empty => self.return_fallback && last == start,
            Popped::Unknown => true,
        };
        if right {
            self.count(before.number, Event::Returned, 1, events);
        } else {
            self.count(before.number, Event::Return, 1, events);
            self.since_redirect = 0;
        }
        self.taken(before, start, right, events);
    }
}
