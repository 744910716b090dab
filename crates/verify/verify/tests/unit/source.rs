//! Tests of src/source.rs, with access to what is private there.

use super::*;

#[test]
fn a_word_is_called_what_the_source_calls_it() {
    let file = "crates/locks/locks/src/mcs.rs";
    let text = FILES
        .iter()
        .find(|(name, _)| file.ends_with(name))
        .unwrap()
        .1;
    for (number, text) in text.lines().enumerate() {
        if let Some(column) = text.find(".store(ptr::null_mut(), Ordering::Relaxed)") {
            let field = field(file, number as u32 + 1, column as u32 + 2);
            assert_eq!(field.as_deref(), Some("next"), "{text}");
        }
        if text.trim() == ".swap(ptr::from_ref(node).cast_mut(), Ordering::AcqRel);" {
            let column = text.find("swap").unwrap() as u32 + 1;
            let field = field(file, number as u32 + 1, column);
            assert_eq!(field.as_deref(), Some("tail"));
        }
    }
    assert_eq!(line("somewhere/else.c", 1), None);
}

#[test]
fn a_word_in_c_is_called_what_it_is_there() {
    for (line, at, name) in [
        (
            "\tatomic_store_explicit(&before->next, node, x);",
            "atomic_s",
            "next",
        ),
        (
            "  while (atomic_load(&l->slots[slot % 2].flag)) {",
            "atomic_l",
            "flag",
        ),
        ("\tx = l->next;", "l->", "next"),
        ("\tif (locked) return;", "locked", "locked"),
        (
            "\tif (likely(cmpxchg_acquire(&lock->val, &val, 1)))",
            "likely",
            "val",
        ),
        ("\t__atomic_store_n(&held, 1, 5);", "__atomic", "held"),
        (
            "\tatomic_fetch_sub(&((struct rwlock *)lock)->state, 2);",
            "atomic_f",
            "state",
        ),
    ] {
        let column = line.find(at).unwrap() as u32 + 1;
        assert_eq!(field_in_c(line, column).as_deref(), Some(name), "{line}");
    }
}
