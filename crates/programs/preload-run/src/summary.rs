//! The summary of a run when the program has ended: notes, the profile, JSON.
//!
//! It only turns data into text; it reads nothing and prints nothing.

use crate::names::{Chosen, GLIBC, all_with_readers};
use crate::profile::{Place, Summary};
use crate::runtimes::Runtime;
use crate::wait::Wait;
use locklab_document::contention_profile::{ContentionProfile, Counts, Used};
use locklab_document::{Document, Section};

mod data;

/// The most lines of each kind in the text of a place.
const MOST: usize = 3;

impl Summary {
    /// Returns a convoy, if there was one: the lock was handed to sleeping threads, and
    /// was idle until they ran, for a tenth of the run or more.
    fn convoy(&self, chosen: &Chosen) -> Option<String> {
        if self.handoffs < 100 || self.idle < 0.1 * self.seconds {
            return None;
        }
        let remedy = match chosen.wait {
            Wait::SpinThenPark => {
                "--wait barging lets running threads pass sleepers; the locks 'futex', \
                 'futex-adaptive' and 'pthread' are never handed to a sleeper"
            }
            Wait::Barging | Wait::Spin => {
                "no running thread wanted it in that time; the locks 'futex', 'futex-adaptive' \
                 and 'pthread' are never handed to a sleeper"
            }
        };
        Some(format!(
            "convoy: '{}' was handed to a sleeping thread {} times and stood idle until that thread \
             ran, for {} of a run of {}; {remedy}",
            chosen.lock,
            self.handoffs,
            time(self.idle * 1e9),
            time(self.seconds * 1e9),
        ))
    }

    /// Returns a note that a program uses locks other than those that were replaced,
    /// where that is known of its runtime.
    fn not_replaced(&self, chosen: &Chosen, program: &str) -> Option<String> {
        let waits = chosen.lock != GLIBC && chosen.wait != Wait::Spin;
        let own = Runtime::of_name(program)
            .filter(|_| self.images > 0 && waits)?
            .locks;
        let contended = match self.sleeps {
            0 => "0 pthread mutexes contended (no thread slept for one)".into(),
            1 => "a thread slept for a pthread mutex once".into(),
            sleeps => format!("threads slept for pthread mutexes {sleeps} times"),
        };
        Some(format!("{contended}; {own}, which --lock does not replace"))
    }

    /// Returns the notes for the user below the table.
    pub(crate) fn notes(&self, chosen: &Chosen, program: &str) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.convoy(chosen));
        notes.extend(self.not_replaced(chosen, program));
        if self.rwlocks_of_glibc && chosen.lock != GLIBC && !chosen.rwlock_is_named {
            notes.push(format!(
                "the program's rwlocks stayed glibc's, because '{}' has no readers; --rwlock puts \
                 them on {}",
                chosen.lock,
                all_with_readers().join(", ")
            ));
        }
        if self.kept_rwlocks > 0 {
            notes.push(format!(
                "{} process-shared rwlocks stayed glibc's",
                self.kept_rwlocks
            ));
        }
        if self.kept_mutexes > 0 || self.kept_operations > 0 {
            notes.push(format!(
                "{} robust, process-shared or priority mutexes kept glibc's lock ({} operations)",
                self.kept_mutexes, self.kept_operations
            ));
        }
        if self.kept_conditions > 0 {
            notes.push(format!(
                "{} process-shared condition variables stayed glibc's",
                self.kept_conditions
            ));
        }
        if self.outside > 0 {
            notes.push(format!(
                "{} acquisitions found the lock's queue full and bypassed it: more \
                 threads live than it has places",
                self.outside
            ));
        }
        notes
    }

    /// Returns what ran without the interposer, if anything did. `without` says what kept
    /// it out, and `status` how the program ended.
    pub(crate) fn not_interposed(&self, without: &[String], status: u8) -> Option<String> {
        let did_not = "did not load the interposer, and";
        let whys = without.join(", ");
        match (self.images, without.is_empty()) {
            (1.., true) => None,
            (0, true) => Some(format!(
                "the program {did_not} ran on its own locks, if it ran"
            )),
            // Its loader takes no library of glibc's, and gives up.
            (0, false) if status == 127 => {
                Some(format!("the program {did_not} did not run: {whys}"))
            }
            (0, false) => Some(format!(
                "the program {did_not} ran on its own locks: {whys}"
            )),
            (1.., false) => Some(format!(
                "a part of the program {did_not} ran on its own locks: {whys}"
            )),
        }
    }

    /// Returns the profile as a report: text, HTML.
    pub(crate) fn document(&self, chosen: &Chosen, program: &str) -> Document {
        let fact = |name: &str, text: String| (name.to_owned(), text);
        let mut document = Document {
            title: format!("Mutexes of {program}"),
            head: vec![
                fact(
                    "Lock",
                    if chosen.lock == GLIBC {
                        "pthread (glibc's own)".into()
                    } else {
                        format!("{} ({})", chosen.lock, chosen.wait.name())
                    },
                ),
                fact("Ran for", time(self.seconds * 1e9)),
                fact(
                    "Source",
                    "hardware; the timing itself makes each acquisition slower".into(),
                ),
            ],
            ..Document::default()
        };
        if self.places.is_empty() {
            document.push(Section::new("").prose("No mutex was taken."));
            return document;
        }
        document.push(Section::new("").prose(self.lead()));
        document.push(
            ContentionProfile::section("Places", &self.used(), self.places.len()).note(
                "A place is the first caller outside wrappers of locks where a mutex was \
                 initialised or first locked.",
            ),
        );
        for (number, place) in self.places.iter().enumerate() {
            let section = Section::minor(format!("#{} {}", number + 1, place.name));
            document.push(section.items(self.items(place)));
        }
        document
    }

    /// Returns the first sentences of a profile: how much was waited, and where the most.
    fn lead(&self) -> String {
        let all: f64 = self.places.iter().map(|place| place.counts.waited).sum();
        let waited = |place: &&Place| place.counts.waited;
        let most = self
            .places
            .iter()
            .max_by(|a, b| waited(a).total_cmp(&waited(b)));
        let Some(most) = most.filter(|_| all > 0.0) else {
            return "No thread waited for a mutex.".into();
        };
        format!(
            "On average over the run {:.2} threads waited for mutexes; {} % of that was for {}.",
            self.share(all),
            percent(100.0 * most.counts.waited / all),
            most.name
        )
    }

    /// Returns each place as a row of the table of locks, in the order of the places.
    fn used(&self) -> Vec<Used> {
        let used = self.places.iter().map(|place| Used {
            name: place.name.clone(),
            kind: None,
            locks: place.mutexes.len() as u64,
            counts: Counts {
                acquired: Some(place.counts.acquired),
                contended: place.counts.contended,
                waited_ns: Some(place.counts.waited),
                longest_ns: Some(place.counts.longest_wait),
                held_ns: Some(place.counts.held),
            },
            spent: None,
        });
        used.collect()
    }

    /// Returns the share of these nanoseconds in the run time of the program.
    fn share(&self, nanoseconds: f64) -> f64 {
        nanoseconds / (self.seconds * 1e9).max(1.0)
    }

    /// Returns the lines on functions that waited, functions that held, and the busiest
    /// of several mutexes.
    fn items(&self, place: &Place) -> Vec<String> {
        let mut items = vec![format!(
            "{:.2} % of the acquisitions waited; {:.2} threads waited on average over the run; \
             the mutexes were held for {:.1} % of it, added up",
            100.0 * place.counts.contended as f64 / place.counts.acquired.max(1) as f64,
            self.share(place.counts.waited),
            100.0 * self.share(place.counts.held)
        )];
        for (role, side) in [
            ("waited", &place.waited_by),
            ("held while others waited", &place.held_by),
        ] {
            let all: f64 = side.iter().map(|(_, _, time)| time).sum();
            for (who, _, time) in side.iter().take(MOST) {
                items.push(format!(
                    "{role}: {who} {:.0}%",
                    100.0 * time / all.max(1e-9)
                ));
            }
        }
        if place.counts.most_waiters > 0 {
            items.push(format!(
                "waiters at once, at most: {}",
                place.counts.most_waiters
            ));
        }
        if place.mutexes.len() > 1 {
            for mutex in place.mutexes.iter().take(MOST) {
                let who = mutex
                    .address
                    .map_or("several".into(), |address| format!("{address:#x}"));
                items.push(format!(
                    "mutex {who}: acquired {}, {:.2} waiters, held {:.1}%",
                    mutex.counts.acquired,
                    self.share(mutex.counts.waited),
                    100.0 * self.share(mutex.counts.held)
                ));
            }
        }
        items
    }
}

use locklab_document::number::percent;
pub(crate) use locklab_document::number::time;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::choose;

    #[test]
    fn a_convoy_is_said_with_its_remedy_and_a_short_one_is_not() {
        let chosen = |wait| choose("mcs", Some(wait)).unwrap();
        let mut summary = Summary {
            images: 1,
            sleeps: 15_900,
            handoffs: 15_803,
            idle: 0.51,
            seconds: 0.53,
            ..Summary::default()
        };
        let [note] = &summary.notes(&chosen(Wait::SpinThenPark), "sh")[..] else {
            panic!("one note");
        };
        assert_eq!(
            note,
            "convoy: 'mcs' was handed to a sleeping thread 15803 times and stood idle until that \
             thread ran, for 510 ms of a run of 530 ms; --wait barging lets running threads pass \
             sleepers; the locks 'futex', 'futex-adaptive' and 'pthread' are never handed to a \
             sleeper"
        );
        summary.idle = 0.04;
        assert!(summary.notes(&chosen(Wait::SpinThenPark), "sh").is_empty());
    }

    #[test]
    fn a_program_whose_locks_are_others_hears_of_it() {
        let mcs = choose("mcs", None).unwrap();
        let mut summary = Summary {
            images: 1,
            ..Summary::default()
        };
        assert_eq!(
            summary.notes(&mcs, "python3.11"),
            [
                "0 pthread mutexes contended (no thread slept for one); Python's threading.Lock \
                 is a semaphore, which --lock does not replace"
            ]
        );
        summary.sleeps = 2;
        assert_eq!(
            summary.notes(&mcs, "java"),
            [
                "threads slept for pthread mutexes 2 times; Java's synchronized and \
                 java.util.concurrent use locks of the virtual machine, which --lock does not \
                 replace"
            ]
        );
        assert!(summary.notes(&mcs, "server").is_empty());
    }

    #[test]
    fn what_ran_without_the_interposer_is_said_with_its_reason() {
        let of_images = |images| Summary {
            images,
            ..Summary::default()
        };
        let musl = ["m is built for musl".to_owned()];
        let said = |images, status| of_images(images).not_interposed(&musl, status);
        assert_eq!(of_images(1).not_interposed(&[], 127), None);
        assert!(
            said(0, 127)
                .unwrap()
                .ends_with("did not run: m is built for musl")
        );
        assert!(
            said(0, 0)
                .unwrap()
                .ends_with("its own locks: m is built for musl")
        );
        assert!(said(1, 0).unwrap().starts_with("a part of the program"));
    }

    #[test]
    fn rwlocks_that_stayed_glibcs_are_said_unless_that_was_asked() {
        let summary = Summary {
            images: 1,
            rwlocks_of_glibc: true,
            kept_rwlocks: 2,
            ..Summary::default()
        };
        let mcs = choose("mcs", None).unwrap();
        let [why, shared] = &summary.notes(&mcs, "server")[..] else {
            panic!("two notes");
        };
        assert!(
            why.starts_with(
                "the program's rwlocks stayed glibc's, because 'mcs' has no readers; --rwlock \
                 puts them on rw-queued, phase-fair, bravo"
            ),
            "{why}"
        );
        assert_eq!(shared, "2 process-shared rwlocks stayed glibc's");
        let asked = mcs.with_rwlock(GLIBC).unwrap();
        assert_eq!(summary.notes(&asked, "server").len(), 1);
    }

    #[test]
    fn a_profile_says_who_waited_and_who_held_for_how_much_of_the_run() {
        use crate::profile::{Counts, Mutex};
        let counts = Counts {
            acquired: 1000,
            contended: 250,
            waited: 3e9,
            longest_wait: 2e7,
            most_waiters: 3,
            holds: 1000,
            held: 1.5e9,
            longest_hold: 4e6,
        };
        let mutex = |address| Mutex {
            address: Some(address),
            counts,
        };
        let summary = Summary {
            images: 1,
            seconds: 2.0,
            places: vec![Place {
                name: "DB::DB db.cc:7 (server)".into(),
                counts,
                mutexes: vec![mutex(0x1000), mutex(0x2000)],
                waited_by: vec![("DB::put db.cc:20 (server)".into(), 200, 3e9)],
                held_by: vec![("DB::flush db.cc:40 (server)".into(), 9, 1e9)],
            }],
            ..Summary::default()
        };
        let chosen = choose(GLIBC, None).unwrap();
        let document = summary.document(&chosen, "server");
        let text =
            locklab_document::render::text(&document, locklab_document::render::Colour::Plain);
        crate::golden::golden("run-profile.txt", &text);
        assert!(
            text.lines().all(|line| line.chars().count() <= 72),
            "{text}"
        );
        let html = locklab_document::render::html(&document);
        assert!(html.contains("DB::flush"), "{html}");
    }
}
