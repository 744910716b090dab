//! The verdicts on the locks of two other model checkers' suites, beside theirs.
//!
//! The files in c/peers are written from the algorithms, and weakened where the suites
//! weaken theirs. `peers.tsv` has the table; `UPDATE_GOLDEN=1` writes today's.

use locklab_user_lock::UserLock;
use locklab_verify::{Limits, Outcome, check};

/// Results of the tests of the suites Dat3M's (C11LocksTest, IMMLocksTest) and GenMC's (the
/// folders tests/correct and tests/wrong): the suite, the memory model, its program, what
/// is weakened there, its verdict; our file and flag. *bounded*: no violation within a
/// bound on loops; *doubted*: it fails, and the suite is not sure of that.
///
/// ARM8 has address dependencies: `+` behind a file takes them for orders, as --dependencies
/// does, and ours is then said to hang on them. The orders of the suites' futex are not ours
/// to weaken: so each such form is the mutex itself.
const PUBLISHED: &str = "\
Dat3M C11  ttas         -             bounded ttas.c         -
Dat3M C11  ttas         acq2rx        fails   ttas.c         -DACQ2RX
Dat3M C11  ttas         rel2rx        fails   ttas.c         -DREL2RX
Dat3M C11  ticketlock   -             holds   ticketlock.c   -
Dat3M C11  ticketlock   acq2rx        fails   ticketlock.c   -DACQ2RX
Dat3M C11  ticketlock   rel2rx        fails   ticketlock.c   -DREL2RX
Dat3M C11  mutex        -             bounded mutex.c        -
Dat3M C11  mutex        acq2rx_futex  bounded mutex.c        -
Dat3M C11  mutex        acq2rx_lock   fails   mutex.c        -DACQ2RX
Dat3M C11  mutex        rel2rx_futex  bounded mutex.c        -
Dat3M C11  mutex        rel2rx_unlock fails   mutex.c        -DREL2RX
Dat3M C11  spinlock     -             holds   spinlock.c     -
Dat3M C11  spinlock     acq2rx        fails   spinlock.c     -DACQ2RX
Dat3M C11  spinlock     rel2rx        fails   spinlock.c     -DREL2RX
Dat3M C11  mutex_musl   -             bounded mutex_musl.c   -
Dat3M C11  mutex_musl   acq2rx_futex  bounded mutex_musl.c   -
Dat3M C11  mutex_musl   acq2rx_lock   fails   mutex_musl.c   -DACQ2RX
Dat3M C11  mutex_musl   rel2rx_futex  bounded mutex_musl.c   -
Dat3M C11  mutex_musl   rel2rx_unlock fails   mutex_musl.c   -DREL2RX
Dat3M C11  clh_mutex    -             bounded clh_mutex.c    -
Dat3M C11  clh_mutex    acq2rx        fails   clh_mutex.c    -DACQ2RX
Dat3M C11  ticket_awnsb_mutex -       holds   ticket_awnsb.c -
Dat3M C11  ticket_awnsb_mutex acq2rx  fails   ticket_awnsb.c -DACQ2RX
Dat3M IMM  ticket_awnsb_mutex -       holds   ticket_awnsb.c -
Dat3M IMM  ticket_awnsb_mutex acq2rx  fails   ticket_awnsb.c -DACQ2RX
Dat3M ARM8 cna          -             holds   cna.c          -
Dat3M ARM8 cna          rel2rx_unlock1 fails  cna.c          -DGRANT1=memory_order_relaxed
Dat3M ARM8 cna          rel2rx_unlock2 fails  cna.c          -DGRANT2=memory_order_relaxed
Dat3M ARM8 cna          rel2rx_unlock3 fails  cna.c          -DGRANT3=memory_order_relaxed
Dat3M ARM8 cna          rel2rx_unlock4 fails  cna.c          -DGRANT4=memory_order_relaxed
Dat3M ARM8 cna          rel2rx_lock   holds   cna.c+         -DLINK=memory_order_relaxed
Dat3M ARM8 cna          acq2rx_lock   fails   cna.c          -DWAIT=memory_order_relaxed
Dat3M ARM8 cna          acq2rx_unlock holds   cna.c+         -DNEXT=memory_order_relaxed
Dat3M ARM8 cna          acq2rx_succ1  holds   cna.c+         -DFOUND1=memory_order_relaxed
Dat3M ARM8 cna          acq2rx_succ2  holds   cna.c+         -DFOUND2=memory_order_relaxed
Dat3M C11  linuxrwlock  -             doubted linuxrwlock.c  -
Dat3M IMM  linuxrwlock  -             bounded linuxrwlock.c  -
Dat3M IMM  linuxrwlock  acq2rx        fails   linuxrwlock.c  -DACQ2RX
Dat3M IMM  linuxrwlock  rel2rx        fails   linuxrwlock.c  -DREL2RX
GenMC RC11 linuxrwlocks -             holds   linuxrwlock.c  -
GenMC RC11 mcs_spinlock -             holds   mcs_spinlock.c -
GenMC RC11 mutex        -             holds   mutex.c        -
GenMC RC11 mutex_musl   -             holds   mutex_musl.c   -
GenMC RC11 twalock      -             holds   twalock.c      -
GenMC RC11 qspinlock    -             holds   ../qspinlock.c -
GenMC RC11 szymanski    -             holds   szymanski.c    -
GenMC RC11 dekker       rlx           fails   dekker.c       -DACQ2RX
";

/// Describes what the checker says of a file.
#[derive(Clone)]
struct Verdict {
    fails: bool,
    said: String,
}

/// Returns what the checker says of a file: the first promise that fails, if one does.
fn verdict(file: &str, flag: &str) -> Verdict {
    let (file, depends) = match file.strip_suffix('+') {
        Some(file) => (file, true),
        None => (file, false),
    };
    let path = format!("{}/tests/c/peers/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = match flag {
        "-" => Vec::new(),
        flag => vec![flag.to_owned()],
    };
    let mut lock = UserLock::named(&path, &flags).unwrap().unwrap();
    if depends {
        lock = lock.with_dependencies();
    }
    let limits = Limits {
        executions: 600,
        ..Limits::default()
    };
    let mut cut = 0;
    for property in lock.promises().unwrap() {
        match check(&property, limits, None).outcome {
            Outcome::Holds => {}
            Outcome::Cut => cut += 1,
            Outcome::Fails(failure) => {
                let said = failure.message.split(['\n', ',', ':']).next().unwrap_or("");
                let said = format!("fails: {}: {said}", property.name);
                return Verdict { fails: true, said };
            }
        }
    }
    let said = match cut {
        0 => "holds".to_owned(),
        1 => "holds but for 1 promise cut at 600 executions".to_owned(),
        cut => format!("holds but for {cut} promises cut at 600 executions"),
    };
    let said = match depends {
        true => format!("{said}, with dependencies"),
        false => said,
    };
    Verdict { fails: false, said }
}

#[test]
fn the_verdicts_of_other_suites_are_ours() {
    let mut table = "suite\tmodel\tprogram\tweakened\tits verdict\tours\n".to_owned();
    let mut known: Vec<([&str; 2], Verdict)> = Vec::new();
    let mut differ = Vec::new();
    for row in PUBLISHED.lines() {
        let words: Vec<&str> = row.split_whitespace().collect();
        let &[suite, model, program, weakened, theirs, file, flag] = &words[..] else {
            panic!("seven words: {row}");
        };
        let ours = match known.iter().find(|(of, _)| *of == [file, flag]) {
            Some((_, ours)) => ours.clone(),
            None => verdict(file, flag),
        };
        if ours.fails != ["fails", "doubted"].contains(&theirs) {
            differ.push(format!("{suite} {model} {program} {weakened}"));
        }
        let cells = [suite, model, program, weakened, theirs, &ours.said];
        table.push_str(&format!("{}\n", cells.join("\t")));
        known.push(([file, flag], ours));
    }
    // No execution of C11: additions continue the release sequence that a subtraction
    // acquires. For every other model the suite has it hold.
    assert_eq!(differ, ["Dat3M C11 linuxrwlock -"]);
    let path = format!("{}/tests/peers.tsv", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(table, golden, "UPDATE_GOLDEN=1 writes {path}");
}
