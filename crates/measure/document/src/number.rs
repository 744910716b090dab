//! Figures formatted for readers, with their significant digits only.

use std::time::Duration;

/// Returns a ratio in at most five columns: 0.07, 1.24, 12.3, 124, 2e4.
#[must_use]
pub fn ratio(x: f64) -> String {
    match x {
        x if !x.is_finite() => "?".into(),
        x if x > 0.0 && x < 1e-9 => "<1e-9".into(),
        x if x < 0.0095 && x > 0.0 => format!("{x:.0e}"),
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x if x < 9999.5 => format!("{x:.0}"),
        x if x >= 9.5e9 => ">9e9".into(),
        x => format!("{x:.0e}"),
    }
}

/// Returns a ratio in a sentence, where the width does not matter: 1.24, 124, 8,100, 20,000.
#[must_use]
pub fn factor(x: f64) -> String {
    match x {
        x if (999.5..1e9).contains(&x) => {
            let unit = 10_f64.powi(x.log10().floor() as i32 - 1);
            grouped(((x / unit).round() * unit) as u64)
        }
        x => ratio(x),
    }
}

/// Returns a count or a rate in at most five columns: 0.71, 94.2, 1.24k, 18.3M.
#[must_use]
pub fn short(x: f64) -> String {
    if !x.is_finite() {
        return "?".into();
    }
    let size = x.abs();
    let (scaled, prefix) = match size {
        s if s < 999.5 => (x, ""),
        s if s < 999.5e3 => (x / 1e3, "k"),
        s if s < 999.5e6 => (x / 1e6, "M"),
        s if s < 999.5e9 => (x / 1e9, "G"),
        _ => return format!("{x:.0e}"),
    };
    match scaled.abs() {
        0.0 => "0".into(),
        s if s < 9.995 => format!("{scaled:.2}{prefix}"),
        s if s < 99.95 => format!("{scaled:.1}{prefix}"),
        _ => format!("{scaled:.0}{prefix}"),
    }
}

/// Returns a whole number in at most five columns: 7, 250, 1.24k.
#[must_use]
pub fn whole(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => short(n as f64),
    }
}

/// Returns a share from 0 to 1 in five columns; `?` for anything else.
#[must_use]
pub fn share(x: f64) -> String {
    if (0.0..=1.0005).contains(&x) {
        // Adding zero turns -0 into 0.
        format!("{:.3}", x + 0.0)
    } else {
        "?".into()
    }
}

/// Returns an optional figure; a dash where there is none.
#[must_use]
pub fn or_dash(x: Option<f64>, format: fn(f64) -> String) -> String {
    x.map_or_else(|| "-".into(), format)
}

/// Returns a percentage without its sign: 0.35, 9.1, 124.
#[must_use]
pub fn percent(x: f64) -> String {
    match x.abs() {
        s if !s.is_finite() => "?".into(),
        s if s < 9.95 && (s * 10.0).fract() == 0.0 => format!("{x}"),
        s if s < 0.995 => format!("{x:.2}"),
        s if s < 9.95 => format!("{x:.1}"),
        s if s < 99_999.5 => format!("{x:.0}"),
        _ => format!("{x:.0e}"),
    }
}

/// Returns a whole number in groups of three: 9,574,476,543.
#[must_use]
pub fn grouped(x: u64) -> String {
    let digits = x.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the figure of a metric in at most thirteen columns: large ones grouped,
/// small ones with four significant digits.
#[must_use]
pub fn figure(x: f64) -> String {
    match x.abs() {
        s if !s.is_finite() => "?".into(),
        0.0 => "0".into(),
        // There are as many digits as fit beside their commas and the sign.
        s if s.round() >= if x < 0.0 { 1e9 } else { 1e10 } => format!("{x:.4e}"),
        s if s >= 1e4 => {
            let sign = if x < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(s.round() as u64))
        }
        s if s >= 1e-4 => {
            let places = (3 - s.log10().floor() as i32).clamp(0, 7) as usize;
            format!("{x:.places$}")
        }
        _ => format!("{x:.3e}"),
    }
}

/// Returns "1 cell", "3 cells", "2 processes".
#[must_use]
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {}", plural(n, noun))
}

/// Returns the noun in the singular or plural, by the number: "cell", "cells".
#[must_use]
pub fn plural(n: usize, noun: &str) -> String {
    match n {
        1 => noun.to_owned(),
        _ if noun.ends_with('s') => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Returns a length or a number of threads, in at most six columns.
#[must_use]
pub fn label(n: u64) -> String {
    match n {
        _ if n < 1_000_000 => n.to_string(),
        _ if n.is_multiple_of(1_000_000) && n < 100_000_000_000 => {
            format!("{}M", n / 1_000_000)
        }
        _ => format!("{:.1e}", n as f64),
    }
}

/// Returns a time in words.
#[must_use]
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
        s if s < 100.0 * 3600.0 => format!("{:.1} hours", s / 3600.0),
        s if s < 1e5 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        s => format!("{:.0e} years", s / (365.25 * 86_400.0)),
    }
}

/// Returns a time in nanoseconds, with three digits and a unit.
#[must_use]
pub fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        t if t < 1e3 => (t, "ns"),
        t if t < 1e6 => (t / 1e3, "µs"),
        t if t < 1e9 => (t / 1e6, "ms"),
        t => (t / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(0.0), "0.00 ns");
        assert_eq!(time(12.34), "12.3 ns");
        assert_eq!(time(4567.0), "4.57 µs");
        assert_eq!(time(2.5e9), "2.50 s");
    }

    #[test]
    fn times_are_read_without_counting_zeros() {
        let words = |s: f64| duration(Duration::from_secs_f64(s));
        assert_eq!(words(0.0123), "12.3 ms");
        assert_eq!(words(107.0), "1 min 47 s");
        assert_eq!(words(1e11), "3e3 years");
    }
    use proptest::prelude::*;

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        assert_eq!(ratio(1.236), "1.24");
        assert_eq!(ratio(9.996), "10.0");
        assert_eq!(ratio(99.96), "100");
        assert_eq!(ratio(0.004), "4e-3");
        assert_eq!(factor(124.4), "124");
        assert_eq!(factor(8_106.0), "8,100");
        assert_eq!(factor(99_700.0), "100,000");
        assert_eq!(factor(f64::NAN), "?");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(999.6), "1.00k");
        assert_eq!(short(18_300_000.0), "18.3M");
        assert_eq!(figure(9_574_476_543.0), "9,574,476,543");
        assert_eq!(figure(9_999_999_999.6), "1.0000e10");
        assert_eq!(figure(-1_393_793_344.5), "-1.3938e9");
        assert_eq!(figure(-999_999_999.0), "-999,999,999");
        assert_eq!(figure(2.0452), "2.045");
        assert_eq!(figure(105.221), "105.2");
        assert_eq!(percent(-0.346), "-0.35");
        assert_eq!(percent(1.0), "1");
        assert_eq!(percent(2.5), "2.5");
        assert_eq!(percent(f64::NAN), "?");
        assert_eq!(count(1, "cell"), "1 cell");
        assert_eq!(count(0, "pair"), "0 pairs");
        assert_eq!(count(2, "process"), "2 processes");
    }

    proptest! {
        #[test]
        fn no_figure_is_wider_than_it_says(x in proptest::num::f64::ANY) {
            prop_assert!(ratio(x.abs()).len() <= 5);
            prop_assert!(short(x).len() <= 6);
            prop_assert!(share(x).len() <= 5);
            prop_assert!(figure(x).len() <= 13, "{}", figure(x));
        }
    }
}
