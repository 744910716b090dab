//! Tests of src/reference.rs, with access to what is private there.

use super::*;

const HEAD: &str = r#"
        source = "s"
        date = "2019-03-04"
        machine = "m"
        read = "table"
        sure = "high"
    "#;

fn reference(figures: &str) -> Reference {
    Reference::parse("f.toml", &format!("{HEAD}{figures}")).unwrap()
}

#[test]
fn figures_are_found_by_key_by_mean_and_by_threads() {
    let reference = reference(
        "threads = [1, 2, 4]\n[ns]\na = [10, 20, 40]\nb = [5.0, 5.0, 8.0]\n[ratio]\nc = 1.37\n\
         [[row]]\nfast = { rate = 3 }\nslow = { rate = 1 }\n\
         [[row]]\nfast = { rate = 5 }\nslow = { rate = 3 }\n",
    );
    let find = |expression, threads, below| reference.figure(expression, threads, below);
    assert_eq!(find("ratio.c", 8, 8), Ok(1.37));
    assert_eq!(find("ns.a", 2, 2), Ok(20.0));
    assert_eq!(find("ns.a / ns.b", 4, 4), Ok(5.0));
    assert_eq!(find("ns.a / ns.a", 4, 1), Ok(4.0));
    assert_eq!(find("row.fast.rate / row.slow.rate", 1, 1), Ok(2.0));
}

#[test]
fn what_is_not_there_is_named_in_one_sentence() {
    let reference = reference("threads = [1, 2]\n[ns]\na = [1, 2]\nb = [1]\nc = [1, 0]\n");
    for (expression, threads, expected) in [
        ("ns.x", 1, "it has no figure `ns.x`"),
        ("x.a / ns.a", 1, "it has no figure `x.a`"),
        ("ns.a", 3, "`ns.a` has no figure for 3 threads"),
        ("ns.b", 1, "`ns.b` has 1 figures for 2 numbers of threads"),
        ("ns.c", 2, "`ns.c` holds a number that is not above 0"),
        ("ns", 1, "`ns` is of type table, and not a number"),
    ] {
        let error = reference
            .figure(expression, threads, threads)
            .expect_err(expression)
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_file_without_a_source_or_with_a_bad_date_is_refused() {
    for (text, expected) in [
        (
            HEAD.replace("date = \"2019-03-04\"", ""),
            "missing field `date`",
        ),
        (
            HEAD.replace("2019-03-04", "March 2019"),
            "the date is `March 2019`",
        ),
        (HEAD.replace("source = \"s\"", "source ="), "f.toml:"),
    ] {
        let error = Reference::parse("f.toml", &text)
            .expect_err(&text)
            .to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}
