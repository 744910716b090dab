//! Tests what a file claims of its lock, and what is assumed of it: each promise
//! judges only that.

use locklab_user_lock::UserLock;
use locklab_verify::{Limits, Outcome, check};

fn lock(file: &str, flags: &[&str]) -> UserLock {
    let path = format!("{}/tests/c/claims/{file}", env!("CARGO_MANIFEST_DIR"));
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    UserLock::named(&path, &flags).unwrap().unwrap()
}

/// Returns each promise that is broken, when it is asked for, with what is said.
fn breaks(lock: &UserLock) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let limits = Limits {
        executions: 300,
        ..Limits::default()
    };
    let promises = lock.promises().unwrap().into_iter();
    promises.filter_map(
        move |property| match check(&property, limits, None).outcome {
            Outcome::Fails(failure) => Some((property.name, failure.message)),
            _ => None,
        },
    )
}

fn broken(lock: &UserLock) -> Vec<(&'static str, String)> {
    breaks(lock).collect()
}

#[test]
fn a_lock_is_judged_by_as_much_nesting_as_it_claims() {
    for file in ["one_node.c", "waits_once.c"] {
        assert_eq!(broken(&lock(file, &[])), [], "{file}");
    }
    for (file, claims) in [
        ("one_node.c", "-DNESTING=2"),
        ("one_node.c", "-DCLAIMS_NOTHING"),
        ("waits_once.c", "-DCLAIMS_NOTHING"),
    ] {
        let names = breaks(&lock(file, &[claims])).map(|(name, _)| name);
        let nesting = names
            .take_while(|name| *name != "exclusion")
            .any(|name| name.starts_with("nesting") || name == "interrupted anywhere");
        assert!(nesting, "{file} {claims}");
    }
}

#[test]
fn a_lock_that_rests_on_dependencies_is_judged_with_them() {
    assert!(breaks(&lock("relaxed_link.c", &[])).next().is_some());
    let with = lock("relaxed_link.c", &[]).with_dependencies();
    assert_eq!(broken(&with), []);
    assert!(with.assumptions().contains("on which these verdicts hang"));
    let relaxed = lock("relaxed_link.c", &["-DRELAXED"]).with_dependencies();
    assert!(breaks(&relaxed).next().is_some());
}

fn written(body: &str) -> UserLock {
    // It is compiled again when it is checked.
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join("mine.c");
    let head = "#include <locklab_lock.h>
#include <stdatomic.h>
struct l { _Atomic int free, turn; };
LOCKLAB_LOCK(mine, struct l, lab_no_context);
";
    std::fs::write(&path, [head, body].concat()).unwrap();
    UserLock::named(path.to_str().unwrap(), &[])
        .unwrap()
        .unwrap()
}

/// Each is one sentence that has the line.
#[test]
fn what_a_file_does_wrong_has_its_line() {
    for (body, said) in [
        // No lab_init, and a loop that does not pause.
        (
            "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\twhile (!atomic_exchange(&l->free, 0)); }
void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_store(&l->free, 1); }
",
            "after 0 acquisitions and releases, at mine.c:6; there is no lab_init",
        ),
        // It releases twice: the turn of one who waits is passed over.
        (
            "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tint mine = atomic_fetch_add(&l->free, 1);
\twhile (atomic_load(&l->turn) != mine) lab_relax(); }
void lab_unlock(void *p, void *c) { struct l *l = p; (void)c;
\tatomic_fetch_add(&l->turn, 1);
\tatomic_fetch_add(&l->turn, 1); }
",
            "mine.c:7",
        ),
        // No loop ends, and no access is made.
        (
            "void lab_lock(void *p, void *c) { struct l *l = p; (void)c;
\tif (atomic_fetch_add(&l->free, 1)) for (volatile int on = 1; on;); }
void lab_unlock(void *p, void *c) { struct l *l = p; (void)c; atomic_fetch_sub(&l->free, 1); }
",
            "mine.c:6",
        ),
    ] {
        let found = breaks(&written(body)).any(|(_, message)| message.contains(said));
        assert!(found, "{said}");
    }
}

#[test]
fn readers_that_starve_a_writer_break_what_it_claims() {
    let broken_of = |flags: &[&str]| broken(&lock("stream.c", flags));
    let all = broken_of(&[]);
    let (_, message) = all
        .iter()
        .find(|(name, _)| *name == "readers pass a writer")
        .expect("it is broken");
    assert!(message.contains("0 at most are claimed"), "{message}");
    assert_eq!(broken_of(&["-DFAIR"]), []);
}
