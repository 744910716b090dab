//! The verdicts on the locks of two other model checkers' suites, beside theirs.
//!
//! The files in c/peers are written from the algorithms, and weakened where the suites
//! weaken theirs. `peers.tsv` has the table; `UPDATE_GOLDEN=1` writes today's.

use locklab_own_lock::OwnLock;
use locklab_verify::{Limits, Outcome, check};

/// No violation within a bound on loops, which the suite calls UNKNOWN.
const BOUNDED: &str = "holds (bounded)";
const HOLDS: &str = "holds";
const FAILS: &str = "fails";

/// Suite, memory model, its program, what is weakened, its verdict; our file and flag.
type Row = [&'static str; 7];

/// From the tests of the suites: Dat3M (C11LocksTest, IMMLocksTest), GenMC (the folders
/// tests/correct and tests/wrong).
const PUBLISHED: [Row; 30] = [
    ["Dat3M", "C11", "ttas", "", BOUNDED, "ttas.c", ""],
    [
        "Dat3M", "C11", "ttas", "acq2rx", FAILS, "ttas.c", "-DACQ2RX",
    ],
    [
        "Dat3M", "C11", "ttas", "rel2rx", FAILS, "ttas.c", "-DREL2RX",
    ],
    ["Dat3M", "C11", "ticketlock", "", HOLDS, "ticketlock.c", ""],
    [
        "Dat3M",
        "C11",
        "ticketlock",
        "acq2rx",
        FAILS,
        "ticketlock.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "C11",
        "ticketlock",
        "rel2rx",
        FAILS,
        "ticketlock.c",
        "-DREL2RX",
    ],
    ["Dat3M", "C11", "mutex", "", BOUNDED, "mutex.c", ""],
    // Our futex orders nothing, so the file is as weak as that already.
    [
        "Dat3M",
        "C11",
        "mutex",
        "acq2rx_futex",
        BOUNDED,
        "mutex.c",
        "",
    ],
    [
        "Dat3M",
        "C11",
        "mutex",
        "acq2rx_lock",
        FAILS,
        "mutex.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "C11",
        "mutex",
        "rel2rx_futex",
        BOUNDED,
        "mutex.c",
        "",
    ],
    [
        "Dat3M",
        "C11",
        "mutex",
        "rel2rx_unlock",
        FAILS,
        "mutex.c",
        "-DREL2RX",
    ],
    ["Dat3M", "C11", "spinlock", "", HOLDS, "spinlock.c", ""],
    [
        "Dat3M",
        "C11",
        "spinlock",
        "acq2rx",
        FAILS,
        "spinlock.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "C11",
        "spinlock",
        "rel2rx",
        FAILS,
        "spinlock.c",
        "-DREL2RX",
    ],
    [
        "Dat3M",
        "C11",
        "mutex_musl",
        "",
        BOUNDED,
        "mutex_musl.c",
        "",
    ],
    [
        "Dat3M",
        "C11",
        "mutex_musl",
        "acq2rx_futex",
        BOUNDED,
        "mutex_musl.c",
        "",
    ],
    [
        "Dat3M",
        "C11",
        "mutex_musl",
        "acq2rx_lock",
        FAILS,
        "mutex_musl.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "C11",
        "mutex_musl",
        "rel2rx_futex",
        BOUNDED,
        "mutex_musl.c",
        "",
    ],
    [
        "Dat3M",
        "C11",
        "mutex_musl",
        "rel2rx_unlock",
        FAILS,
        "mutex_musl.c",
        "-DREL2RX",
    ],
    ["Dat3M", "C11", "clh_mutex", "", BOUNDED, "clh_mutex.c", ""],
    [
        "Dat3M",
        "C11",
        "clh_mutex",
        "acq2rx",
        FAILS,
        "clh_mutex.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "IMM",
        "linuxrwlock",
        "",
        BOUNDED,
        "linuxrwlock.c",
        "",
    ],
    [
        "Dat3M",
        "IMM",
        "linuxrwlock",
        "acq2rx",
        FAILS,
        "linuxrwlock.c",
        "-DACQ2RX",
    ],
    [
        "Dat3M",
        "IMM",
        "linuxrwlock",
        "rel2rx",
        FAILS,
        "linuxrwlock.c",
        "-DREL2RX",
    ],
    [
        "GenMC",
        "RC11",
        "linuxrwlocks",
        "",
        HOLDS,
        "linuxrwlock.c",
        "",
    ],
    [
        "GenMC",
        "RC11",
        "mcs_spinlock",
        "",
        HOLDS,
        "mcs_spinlock.c",
        "",
    ],
    ["GenMC", "RC11", "mutex", "", HOLDS, "mutex.c", ""],
    ["GenMC", "RC11", "mutex_musl", "", HOLDS, "mutex_musl.c", ""],
    ["GenMC", "RC11", "twalock", "", HOLDS, "twalock.c", ""],
    [
        "GenMC", "RC11", "dekker", "rlx", FAILS, "dekker.c", "-DACQ2RX",
    ],
];

/// What the checker says of a file: the first promise that fails, if one does.
fn verdict(file: &str, flag: &str) -> String {
    let path = format!("{}/tests/c/peers/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = (!flag.is_empty())
        .then(|| flag.to_owned())
        .into_iter()
        .collect();
    let lock = OwnLock::named(&path, &flags).unwrap().unwrap();
    let limits = Limits {
        executions: 300,
        ..Limits::default()
    };
    for property in lock.promises().unwrap() {
        if let Outcome::Fails(failure) = check(&property, limits, None).outcome {
            let said = failure.message.split(['\n', ',']).next().unwrap_or("");
            return format!("fails: {}: {said}", property.name);
        }
    }
    HOLDS.to_owned()
}

#[test]
fn the_verdicts_of_other_suites_are_ours() {
    let mut table = "suite\tmodel\tprogram\tweakened\tits verdict\tours\tagrees\n".to_owned();
    let mut known: Vec<([&str; 2], String)> = Vec::new();
    let mut differ = Vec::new();
    for row in PUBLISHED {
        let [suite, model, program, weakened, theirs, file, flag] = row;
        let ours = match known.iter().find(|(of, _)| *of == [file, flag]) {
            Some((_, ours)) => ours.clone(),
            None => verdict(file, flag),
        };
        known.push(([file, flag], ours.clone()));
        let agrees = theirs.starts_with(&ours[..5]);
        if !agrees {
            differ.push(format!("{suite} {program} {weakened}: {ours}"));
        }
        let cells = [suite, model, program, weakened, theirs, &ours];
        let agrees = if agrees { "yes" } else { "no" };
        table.push_str(&format!("{}\t{agrees}\n", cells.join("\t")));
    }
    assert_eq!(differ, [""; 0]);
    let path = format!("{}/tests/peers.tsv", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(table, golden, "UPDATE_GOLDEN=1 writes {path}");
}
