//! The front-end model on programs whose losses are known, in the real QEMU; skipped without
//! it.

use super::change::{change, counted};
use super::places::Symbols;
use super::report::{changed, json, text};
use super::{Counted, Model};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A sum over calls of a small function, out of line or not.
const SOURCE: &str = "
    static ATTRIBUTE int step(int n, int s) { return s + (n ^ s >> 3); }
    int main(void) {
        volatile int kept = 0;
        int s = 0;
        for (int n = 0; n < 200000; n++)
            s = step(n, s);
        kept = s;
        return 0;
    }";

fn build(folder: &Path, name: &str, attribute: &str) -> Option<String> {
    let source = folder.join(format!("{name}.c"));
    std::fs::write(&source, SOURCE.replace("ATTRIBUTE", attribute)).unwrap();
    let program = folder.join(name);
    let built = Command::new("gcc")
        .args(["-O1", "-static", "-o"])
        .args([&program, &source])
        .status();
    built.ok()?.success().then(|| program.display().to_string())
}

fn run(model: &Model, program: &str, folder: &Path) -> Counted {
    let limit = (Duration::from_secs(300), &AtomicBool::new(false));
    let log = folder.join("run");
    model
        .count(program, &[], folder, &log, None, limit)
        .unwrap()
}

#[test]
fn two_builds_that_differ_in_one_function() {
    let model = Model::new(None, None, None, false)
        .and_then(|model| model.with_processor(Some("zen-3"), false))
        .map(|model| model.with_other_hashes(true));
    let Ok(model) = model else {
        println!("skipped: the plugin is missing");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let outlined = build(folder, "outlined", "__attribute__((noinline))");
    let inlined = build(folder, "inlined", "inline __attribute__((always_inline))");
    let (Some(outlined), Some(inlined)) = (outlined, inlined) else {
        println!("skipped: gcc is missing");
        return;
    };
    if locklab_host::process::find("qemu-x86_64", &[]).is_none() {
        println!("skipped: qemu-user is missing");
        return;
    }
    assert!(Symbols::read(Path::new(&outlined)).unwrap().has("step"));
    assert!(!Symbols::read(Path::new(&inlined)).unwrap().has("step"));
    let (before, after) = (
        run(&model, &outlined, folder),
        run(&model, &inlined, folder),
    );
    let (old_instructions, old) = counted(&before.report).unwrap();
    let (new_instructions, new) = counted(&after.report).unwrap();
    let change = change(
        model.processor().unwrap(),
        (old_instructions, &old),
        (new_instructions, &new),
    );
    assert_eq!(change.verdict, "better", "{change:?}");
    assert!(
        change.instructions <= -400_000,
        "a call and a return each time"
    );
    assert_eq!(change.by_hash.len(), 3);
    let words = changed(&change, Some("step"));
    assert!(
        words.contains("step") && words.contains("saves cycles"),
        "{words}"
    );

    let command = [outlined];
    let shown = text(&before, &model, &command);
    println!("{shown}{words}");
    assert!(shown.contains("Front end: Zen 3"), "{shown}");
    assert!(shown.contains("Functions that lose most"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 72),
        "{shown}"
    );
    let document = json(&before, &command);
    for pointer in [
        "/instructions",
        "/l1i_misses",
        "/user",
        "/kernel",
        "/geometry",
        "/frontend/user/cycles/value",
        "/frontend/places/functions/0/name",
    ] {
        assert!(
            document.pointer(pointer).is_some(),
            "{pointer}: {document:#}"
        );
    }
    assert!(document["frontend"]["kernel"].is_null());

    // Without symbols what can be counted is, and one sentence says what is missing.
    let stripped = format!("{}-stripped", command[0]);
    let strip = Command::new("strip")
        .args(["-o", &stripped, &command[0]])
        .status();
    if !strip.is_ok_and(|status| status.success()) {
        println!("skipped: strip is missing");
        return;
    }
    let nameless = run(&model, &stripped, folder);
    // The name of the program is longer, which its start reads.
    assert!(nameless.instructions().abs_diff(before.instructions()) < 1000);
    let shown = text(&nameless, &model, &[stripped]);
    let sentence = "The program has no symbols, so its code has addresses for names.";
    assert!(shown.contains(sentence), "{shown}");
}

#[test]
fn a_processor_that_is_not_there_is_one_sentence() {
    let Ok(model) = Model::new(None, None, None, false) else {
        println!("skipped: the plugin is missing");
        return;
    };
    for (name, said) in [
        ("486", "there is no processor '486'"),
        ("no.toml", "cannot read no.toml"),
    ] {
        let error = model.clone().with_processor(Some(name), false).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
    }
}
