//! Concurrency Kit, through the loops of `ck.c`.

use crate::{Contestant, Counts};
use std::sync::Once;
use std::sync::atomic::AtomicBool;

struct Ck {
    name: &'static str,
    uncontended: unsafe extern "C" fn(u64),
    apart: unsafe extern "C" fn(u64, u64) -> u64,
    contended: unsafe extern "C" fn(u32, *const Counts, *const AtomicBool) -> u64,
}

impl Contestant for Ck {
    fn name(&self) -> &str {
        self.name
    }

    fn uncontended(&self, pairs: u64) {
        // SAFETY: the locks were initialised by `all`.
        unsafe { (self.uncontended)(pairs) }
    }

    fn apart(&self, pairs: u64, steps: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (self.apart)(pairs, steps) }
    }

    fn contended(&self, me: u32, counts: &Counts, stop: &AtomicBool) -> u64 {
        // SAFETY: as above; both outlive the call and have the layout that C
        // expects, and `counts` is only touched under the lock.
        unsafe { (self.contended)(me, counts, stop) }
    }
}

macro_rules! contestants {
    ($($name:literal: $uncontended:ident, $apart:ident, $contended:ident;)*) => {
        unsafe extern "C" {
            fn locklab_ck_init();
            $(fn $uncontended(pairs: u64);
            fn $apart(pairs: u64, steps: u64) -> u64;
            fn $contended(me: u32, counts: *const Counts, stop: *const AtomicBool) -> u64;)*
        }

        pub(crate) fn all() -> Vec<Box<dyn Contestant>> {
            static INIT: Once = Once::new();
            // SAFETY: once, before any use.
            INIT.call_once(|| unsafe { locklab_ck_init() });
            vec![$(Box::new(Ck {
                name: $name,
                uncontended: $uncontended,
                apart: $apart,
                contended: $contended,
            })),*]
        }
    };
}

contestants! {
    "ck fas": locklab_ck_fas_uncontended, locklab_ck_fas_apart, locklab_ck_fas_contended;
    "ck cas": locklab_ck_cas_uncontended, locklab_ck_cas_apart, locklab_ck_cas_contended;
    "ck cas_eb": locklab_ck_cas_eb_uncontended, locklab_ck_cas_eb_apart, locklab_ck_cas_eb_contended;
    "ck ticket": locklab_ck_ticket_uncontended, locklab_ck_ticket_apart, locklab_ck_ticket_contended;
    "ck ticket_pb": locklab_ck_ticket_pb_uncontended, locklab_ck_ticket_pb_apart, locklab_ck_ticket_pb_contended;
    "ck mcs": locklab_ck_mcs_uncontended, locklab_ck_mcs_apart, locklab_ck_mcs_contended;
    "ck clh": locklab_ck_clh_uncontended, locklab_ck_clh_apart, locklab_ck_clh_contended;
    "ck anderson": locklab_ck_anderson_uncontended, locklab_ck_anderson_apart, locklab_ck_anderson_contended;
}
