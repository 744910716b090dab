//! Tests that, whatever a recording is, its program holds locks in pairs, and nothing
//! panics.

#[allow(dead_code, reason = "every file of tests uses a part")]
use crate::common;

use common::{Records, trace};
use locklab_replay::{Limits, Program, Step};
use locklab_trace::{Access, Attempt, Event};
use proptest::prelude::*;
use std::collections::HashSet;

fn event() -> impl Strategy<Value = Event<'static>> {
    let address = || (1_u64..4).prop_map(|number| number * 0x100);
    let access = (any::<bool>(), 0_usize..3).prop_map(|(shared, attempt)| Access {
        shared,
        attempt: [Attempt::Waits, Attempt::Timed, Attempt::Once][attempt],
    });
    prop_oneof![
        4 => (address(), 0_u64..3, access).prop_map(|(lock, stack, access)| Event::Request {
            lock,
            stack,
            access
        }),
        4 => Just(Event::Acquired),
        1 => Just(Event::Refused),
        4 => address().prop_map(|lock| Event::Release { lock }),
        4 => Just(Event::Released),
        1 => (address(), address(), any::<bool>()).prop_map(|(condition, lock, timed)| {
            let stack = 1;
            Event::Wait { condition, lock, stack, timed }
        }),
        1 => any::<bool>().prop_map(|timed_out| Event::Woken { timed_out }),
        1 => (address(), any::<bool>()).prop_map(|(condition, broadcast)| Event::Signal {
            condition,
            broadcast
        }),
        1 => (0_u64..4).prop_map(|thread| Event::Create { thread }),
        1 => (0_u64..4).prop_map(|handle| Event::Join { handle }),
        1 => Just(Event::Joined),
        1 => any::<bool>().prop_map(|timed| Event::Sleep { timed }),
        1 => Just(Event::Slept),
        1 => (0_u64..4).prop_map(|handle| Event::Started { handle, task: 1 }),
        1 => Just(Event::Ended),
        1 => any::<u64>().prop_map(|ticks| Event::Cost { ticks }),
    ]
}

fn records() -> impl Strategy<Value = Records> {
    let since = prop_oneof![8 => 0_u64..2000, 1 => 0_u64..1 << 40];
    prop::collection::vec((since, event()), 0..200).prop_map(|events| {
        let mut at = 0_u64;
        let timed = events.into_iter().map(|(since, event)| {
            at += since;
            (at, event)
        });
        timed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn locks_are_held_in_pairs(
        threads in prop::collection::vec(records(), 1..5),
        cpus in 1_usize..4,
        acquisitions in 1_usize..200,
        locks in 0_usize..4,
        count in 1_usize..20,
    ) {
        let limits = Limits { acquisitions, locks, ..Limits::default() };
        let Ok(program) = Program::of(&trace(&threads, cpus), &limits) else {
            return Ok(());
        };
        prop_assert!(program.locks.len() <= locks);
        let (mut posts, mut awaits) = (vec![0; program.channels], vec![0; program.channels]);
        for thread in &program.threads {
            let mut held = HashSet::new();
            for step in &thread.steps {
                match *step {
                    Step::Acquire { lock, .. } => {
                        prop_assert!((lock as usize) < program.locks.len());
                        prop_assert!(held.insert(lock), "acquired while held");
                    }
                    Step::Release { lock } => prop_assert!(held.remove(&lock)),
                    Step::Post { channel, times } => posts[channel as usize] += times,
                    Step::Await { channel } => awaits[channel as usize] += 1,
                    Step::Work(_) | Step::Idle(_) => {}
                }
            }
            prop_assert!(held.is_empty(), "held at the end");
            prop_assert!(thread.class < program.classes.len());
        }
        // Whoever waits is waited for by nobody who is not there.
        for (posts, awaits) in posts.iter().zip(&awaits) {
            prop_assert!(posts >= awaits);
        }
        for role in program.cast(Some(count), 1) {
            prop_assert!(role.start <= program.threads[role.thread].steps.len());
        }
    }
}
