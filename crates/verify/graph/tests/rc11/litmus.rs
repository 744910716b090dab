//! Litmus tests of the literature: store buffering, message passing, and the rest of the
//! family, with the strengths that decide them. What C11 allows but RC11 does not (a cycle
//! of program order and reads-from) is forbidden.

use super::program::{explore, parse};

/// A name, a program, what its reads read, and whether that is allowed.
type Litmus = (&'static str, &'static str, &'static [u64], bool);

const ALLOWED: bool = true;
const FORBIDDEN: bool = false;

const TESTS: &[Litmus] = &[
    // Store buffering.
    (
        "SB rlx",
        "W x 1 rlx; R y rlx | W y 1 rlx; R x rlx",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB rel acq",
        "W x 1 rel; R y acq | W y 1 rel; R x acq",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB sc",
        "W x 1 sc; R y sc | W y 1 sc; R x sc",
        &[0, 0],
        FORBIDDEN,
    ),
    (
        "SB sc, one read acq",
        "W x 1 sc; R y acq | W y 1 sc; R x sc",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB sc, one write rel",
        "W x 1 rel; R y sc | W y 1 sc; R x sc",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB sc fences",
        "W x 1 rlx; F sc; R y rlx | W y 1 rlx; F sc; R x rlx",
        &[0, 0],
        FORBIDDEN,
    ),
    (
        "SB one sc fence",
        "W x 1 rlx; F sc; R y rlx | W y 1 rlx; R x rlx",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB acq_rel fences",
        "W x 1 rlx; F acq_rel; R y rlx | W y 1 rlx; F acq_rel; R x rlx",
        &[0, 0],
        ALLOWED,
    ),
    (
        "SB fence and sc",
        "W x 1 rlx; F sc; R y rlx | W y 1 sc; R x sc",
        &[0, 0],
        FORBIDDEN,
    ),
    (
        "SB sc updates, rlx reads",
        "S x 1 sc; R y rlx | S y 1 sc; R x rlx",
        &[0, 0, 0, 0],
        ALLOWED,
    ),
    (
        "SB sc updates, sc reads",
        "S x 1 sc; R y sc | S y 1 sc; R x sc",
        &[0, 0, 0, 0],
        FORBIDDEN,
    ),
    (
        "SB updates of one third",
        "W x 1 rlx; U z 0 acq_rel; R y rlx | W y 1 rlx; U z 0 acq_rel; R x rlx",
        &[0, 0, 0, 0],
        FORBIDDEN,
    ),
    // Message passing.
    (
        "MP rlx",
        "W x 1 rlx; W y 1 rlx | R y rlx; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP rel acq",
        "W x 1 rlx; W y 1 rel | R y acq; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP rel rlx",
        "W x 1 rlx; W y 1 rel | R y rlx; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP rlx acq",
        "W x 1 rlx; W y 1 rlx | R y acq; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP sc",
        "W x 1 sc; W y 1 sc | R y sc; R x sc",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP fences",
        "W x 1 rlx; F rel; W y 1 rlx | R y rlx; F acq; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP rel fence, acq",
        "W x 1 rlx; F rel; W y 1 rlx | R y acq; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP rel, acq fence",
        "W x 1 rlx; W y 1 rel | R y rlx; F acq; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP rel fence only",
        "W x 1 rlx; F rel; W y 1 rlx | R y rlx; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP fences the wrong way",
        "W x 1 rlx; F acq; W y 1 rlx | R y rlx; F rel; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP await",
        "W x 1 rlx; W y 1 rel | A y 1 acq; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
    (
        "MP await rlx",
        "W x 1 rlx; W y 1 rlx | A y 1 rlx; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    // Release sequences.
    (
        "MP through an update",
        "W x 1 rlx; W y 1 rel | U y 1 rlx | R y acq; R x rlx",
        &[1, 2, 0],
        FORBIDDEN,
    ),
    (
        "MP through two updates",
        "W x 1 rlx; W y 1 rel | U y 1 rlx | U y 1 rlx | R y acq; R x rlx",
        &[1, 2, 3, 0],
        FORBIDDEN,
    ),
    (
        "MP through a store",
        "W x 1 rlx; W y 1 rel | R y rlx; W y 2 rlx | R y acq; R x rlx",
        &[1, 2, 0],
        ALLOWED,
    ),
    (
        "MP through its own store",
        "W x 1 rlx; W y 1 rel; W y 2 rlx | R y acq; R x rlx",
        &[2, 0],
        ALLOWED,
    ),
    (
        "MP through its own update",
        "W x 1 rlx; W y 1 rel; U y 1 rlx | R y acq; R x rlx",
        &[1, 2, 0],
        FORBIDDEN,
    ),
    // Load buffering: no cycle of program order and reads-from.
    (
        "LB rlx",
        "R x rlx; W y 1 rlx | R y rlx; W x 1 rlx",
        &[1, 1],
        FORBIDDEN,
    ),
    (
        "LB one each",
        "R x rlx; W y 1 rlx | R y rlx; W x 1 rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "LB rel acq",
        "R x acq; W y 1 rel | R y acq; W x 1 rel",
        &[1, 1],
        FORBIDDEN,
    ),
    // Independent reads of independent writes.
    (
        "IRIW rlx",
        "W x 1 rlx | W y 1 rlx | R x rlx; R y rlx | R y rlx; R x rlx",
        &[1, 0, 1, 0],
        ALLOWED,
    ),
    (
        "IRIW rel acq",
        "W x 1 rel | W y 1 rel | R x acq; R y acq | R y acq; R x acq",
        &[1, 0, 1, 0],
        ALLOWED,
    ),
    (
        "IRIW sc",
        "W x 1 sc | W y 1 sc | R x sc; R y sc | R y sc; R x sc",
        &[1, 0, 1, 0],
        FORBIDDEN,
    ),
    (
        "IRIW sc writes, acq reads",
        "W x 1 sc | W y 1 sc | R x acq; R y sc | R y acq; R x sc",
        &[1, 0, 1, 0],
        ALLOWED,
    ),
    (
        "IRIW sc fences",
        "W x 1 rlx | W y 1 rlx | R x rlx; F sc; R y rlx | R y rlx; F sc; R x rlx",
        &[1, 0, 1, 0],
        FORBIDDEN,
    ),
    (
        "IRIW acq_rel fences",
        "W x 1 rlx | W y 1 rlx | R x rlx; F acq_rel; R y rlx | R y rlx; F acq_rel; R x rlx",
        &[1, 0, 1, 0],
        ALLOWED,
    ),
    // Two writes each to two locations, seen by coherence alone.
    (
        "2+2W rlx",
        "W x 1 rlx; W y 2 rlx; R y rlx | W y 1 rlx; W x 2 rlx; R x rlx",
        &[1, 1],
        ALLOWED,
    ),
    (
        "2+2W sc",
        "W x 1 sc; W y 2 sc; R y sc | W y 1 sc; W x 2 sc; R x sc",
        &[1, 1],
        FORBIDDEN,
    ),
    (
        "2+2W sc fences",
        "W x 1 rlx; F sc; W y 2 rlx; R y rlx | W y 1 rlx; F sc; W x 2 rlx; R x rlx",
        &[1, 1],
        FORBIDDEN,
    ),
    (
        "2+2W rel",
        "W x 1 rel; W y 2 rel; R y acq | W y 1 rel; W x 2 rel; R x acq",
        &[1, 1],
        ALLOWED,
    ),
    // Write-to-read causality.
    (
        "WRC rlx",
        "W x 1 rlx | R x rlx; W y 1 rlx | R y rlx; R x rlx",
        &[1, 1, 0],
        ALLOWED,
    ),
    (
        "WRC rel acq",
        "W x 1 rel | R x acq; W y 1 rel | R y acq; R x acq",
        &[1, 1, 0],
        FORBIDDEN,
    ),
    (
        "WRC only the second",
        "W x 1 rlx | R x rlx; W y 1 rel | R y acq; R x rlx",
        &[1, 1, 0],
        FORBIDDEN,
    ),
    (
        "WRC only the first",
        "W x 1 rel | R x acq; W y 1 rlx | R y rlx; R x rlx",
        &[1, 1, 0],
        ALLOWED,
    ),
    (
        "ISA2 rel acq",
        "W x 1 rlx; W y 1 rel | R y acq; W z 1 rel | R z acq; R x rlx",
        &[1, 1, 0],
        FORBIDDEN,
    ),
    (
        "ISA2 one rlx",
        "W x 1 rlx; W y 1 rel | R y rlx; W z 1 rel | R z acq; R x rlx",
        &[1, 1, 0],
        ALLOWED,
    ),
    // Read-to-write causality.
    (
        "RWC rel acq",
        "W x 1 rel | R x acq; R y acq | W y 1 rel; R x acq",
        &[1, 0, 0],
        ALLOWED,
    ),
    (
        "RWC sc",
        "W x 1 sc | R x sc; R y sc | W y 1 sc; R x sc",
        &[1, 0, 0],
        FORBIDDEN,
    ),
    (
        "RWC sc fences",
        "W x 1 rlx | R x rlx; F sc; R y rlx | W y 1 rlx; F sc; R x rlx",
        &[1, 0, 0],
        FORBIDDEN,
    ),
    (
        "W+RWC",
        "W x 1 rlx; W y 1 rel | R y acq; F sc; R z rlx | W z 1 rlx; F sc; R x rlx",
        &[1, 0, 0],
        FORBIDDEN,
    ),
    (
        "W+RWC no fence",
        "W x 1 rlx; W y 1 rel | R y acq; R z rlx | W z 1 rlx; F sc; R x rlx",
        &[1, 0, 0],
        ALLOWED,
    ),
    // What RC11 weakens so that compilers to Power and ARM are right (PLDI 2017, figure 2).
    (
        "Z6.U",
        "W x 1 sc; W y 1 rel | U y 1 sc; R y rlx | W y 3 sc; R x sc",
        &[1, 3, 0],
        ALLOWED,
    ),
    (
        "Z6.U all sc",
        "W x 1 sc; W y 1 sc | U y 1 sc; R y sc | W y 3 sc; R x sc",
        &[1, 3, 0],
        FORBIDDEN,
    ),
    // R and S.
    (
        "R rlx",
        "W x 1 rlx; W y 1 rlx | W y 2 rlx; R x rlx | R y rlx; R y rlx",
        &[0, 1, 2],
        ALLOWED,
    ),
    (
        "R sc",
        "W x 1 sc; W y 1 sc | W y 2 sc; R x sc | R y sc; R y sc",
        &[0, 1, 2],
        FORBIDDEN,
    ),
    (
        "R sc fences",
        "W x 1 rlx; F sc; W y 1 rlx | W y 2 rlx; F sc; R x rlx | R y rlx; R y rlx",
        &[0, 1, 2],
        FORBIDDEN,
    ),
    (
        "S rel acq",
        "W x 2 rlx; W y 1 rel | R y acq; W x 1 rlx; R x rlx",
        &[1, 2],
        FORBIDDEN,
    ),
    (
        "S rlx",
        "W x 2 rlx; W y 1 rlx | R y rlx; W x 1 rlx; R x rlx",
        &[1, 2],
        ALLOWED,
    ),
    // Coherence.
    (
        "CoRR",
        "W x 1 rlx; W x 2 rlx | R x rlx; R x rlx",
        &[2, 1],
        FORBIDDEN,
    ),
    (
        "CoRR in order",
        "W x 1 rlx; W x 2 rlx | R x rlx; R x rlx",
        &[1, 2],
        ALLOWED,
    ),
    (
        "CoRR two readers",
        "W x 1 rlx | W x 2 rlx | R x rlx; R x rlx | R x rlx; R x rlx",
        &[1, 2, 2, 1],
        FORBIDDEN,
    ),
    ("CoRW", "R x rlx; W x 1 rlx", &[1], FORBIDDEN),
    (
        "CoRW2",
        "R x rlx; W x 1 rlx | W x 2 rlx; R x rlx; R x rlx",
        &[2, 1, 2],
        FORBIDDEN,
    ),
    ("CoWR", "W x 1 rlx; R x rlx", &[0], FORBIDDEN),
    (
        "CoWR2",
        "W x 1 rlx; R x rlx; R x rlx | W x 2 rlx",
        &[2, 1],
        FORBIDDEN,
    ),
    ("CoWW", "W x 1 rlx; W x 2 rlx; R x rlx", &[1], FORBIDDEN),
    // Updates are atomic.
    ("two additions", "U x 1 rlx | U x 1 rlx", &[0, 0], FORBIDDEN),
    (
        "two exchanges",
        "C x 0 1 rlx | C x 0 2 rlx",
        &[0, 0],
        FORBIDDEN,
    ),
    (
        "an exchange fails",
        "C x 0 1 rlx | C x 0 2 rlx",
        &[0, 1],
        ALLOWED,
    ),
    (
        "a store between",
        "U x 2 rlx; R x rlx | W x 1 rlx; R x rlx",
        &[0, 1, 2],
        FORBIDDEN,
    ),
    // A failed exchange has its own ordering.
    (
        "MP exchange fails",
        "W x 1 rlx; W y 1 rel | C y 0 2 acq_rel; R x rlx",
        &[1, 0],
        ALLOWED,
    ),
    (
        "MP exchange succeeds",
        "W x 1 rlx; W y 1 rel | C y 1 2 acq_rel; R x rlx",
        &[1, 0],
        FORBIDDEN,
    ),
];

#[test]
fn the_literature_agrees() {
    let mut wrong = Vec::new();
    for &(name, text, values, allowed) in TESTS {
        let (report, all) = explore(&parse(text));
        let seen = all.iter().any(|(seen, _)| seen == values);
        if seen != allowed || report.error.is_some() {
            wrong.push((name, report.error.map(|error| error.message)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
