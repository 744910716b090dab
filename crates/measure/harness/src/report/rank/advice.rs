//! The first sentences of a ranking: what to take.
//!
//! The words are a function of the figures, and claim no more than the
//! standings. Nothing here measures or judges.

use crate::matrix::{self, EQUAL_SHARE, JAIN_1MS, LATENCY_P99, LATENCY_P999, STREAK_MEAN};
use crate::ranking::{Point, Ranked, Ranking};
use crate::report::inputs::Words;
use locklab_document::number;

/// Returns what to take, a sentence for each use.
pub(super) fn sentences(ranking: &Ranking, words: &Words) -> Vec<String> {
    let points: Vec<&Point> = ranking.points.iter().filter(|p| is_ranked(p)).collect();
    if points.is_empty() {
        return vec!["Nothing could be ranked, so nothing is recommended.".into()];
    }
    let advice = Advice {
        ranking,
        points,
        words,
    };
    let mut sentences = vec![advice.throughput()];
    sentences.extend(advice.kept());
    sentences.extend(advice.beside());
    sentences
}

fn primary(point: &Point) -> Option<&Ranked> {
    point.metrics.first()
}

fn is_ranked(point: &Point) -> bool {
    primary(point).is_some_and(|m| m.standings.iter().any(|s| s.of_best.is_some()))
}

/// Says where a lock is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regime {
    Alone,
    Contended,
    Crowded,
}

impl Regime {
    pub(super) const ALL: [Self; 3] = [Self::Contended, Self::Alone, Self::Crowded];

    pub(super) fn of(point: &Point) -> Self {
        match point.threads() {
            _ if point.oversubscribed => Self::Crowded,
            0 | 1 => Self::Alone,
            _ => Self::Contended,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Alone => "for one thread alone",
            Self::Contended => "where threads contend",
            Self::Crowded => "with more threads than CPUs",
        }
    }
}

/// Returns the lock that is best at these points, of those that are allowed: by the
/// geometric mean of its share of the best. A count of the sets it is in would
/// prefer one that is first at half of the points and far behind at the rest.
pub(super) fn choose(
    points: &[&Point],
    metric: &str,
    allowed: impl Fn(usize) -> bool,
) -> Option<usize> {
    let ranked: Vec<&Ranked> = points.iter().filter_map(|p| p.metric(metric)).collect();
    let locks = ranked.first()?.standings.len();
    let merit = |lock: usize| -> Option<f64> {
        let shares: Option<Vec<f64>> = ranked.iter().map(|m| m.share(lock)).collect();
        Some(shares?.iter().map(|s| s.max(1e-300).ln()).sum())
    };
    (0..locks)
        .filter(|lock| allowed(*lock))
        .filter_map(|lock| Some((lock, merit(lock)?)))
        // The first of equals stays.
        .reduce(|a, b| if b.1 > a.1 { b } else { a })
        .map(|(lock, _)| lock)
}

struct Advice<'a> {
    ranking: &'a Ranking,
    points: Vec<&'a Point>,
    words: &'a Words,
}

impl Advice<'_> {
    fn name(&self, lock: usize) -> String {
        format!("`{}`", self.ranking.question.subjects[lock].name)
    }

    fn metric(&self) -> &str {
        primary(self.points[0]).map_or("", |m| m.metric.name.as_str())
    }

    /// Returns whether something holds of the primary metric at all points.
    fn everywhere(&self, holds: impl Fn(&Ranked) -> bool) -> bool {
        self.points.iter().filter_map(|p| primary(p)).all(holds)
    }

    fn at_every_point(&self) -> &'static str {
        if self.points.len() > 1 {
            " at every point"
        } else {
            ""
        }
    }

    /// Returns the sentence on throughput, with which the advice begins.
    fn throughput(&self) -> String {
        let today = self.name(0);
        let margin = number::percent(100.0 * self.ranking.delta);
        if self.ranking.question.against {
            if self.everywhere(|m| m.standings[0].within_delta) {
                return format!(
                    "No difference that matters: keep {today}, which is shown within {margin} % of \
                     the best{}.",
                    self.at_every_point()
                );
            }
            if self.everywhere(|m| m.may_be_best(0)) {
                let behind = self.points.iter().filter_map(|p| primary(p));
                let low = behind.filter_map(|m| Some(m.standings[0].of_best?.low));
                let low = low.fold(1.0, f64::min);
                return format!(
                    "Keep {today}: nothing was shown to be better{}; it may be up to {} % behind \
                     the best.",
                    self.at_every_point(),
                    number::percent(100.0 * (1.0 - low))
                );
            }
        }
        let near = |lock: usize| {
            self.everywhere(|m| m.may_be_best(lock) || m.standings[lock].within_delta)
        };
        let mut parts: Vec<String> = Vec::new();
        let main = if let Some(one) = choose(&self.points, self.metric(), near) {
            parts.push(format!(
                "{} for throughput{}",
                self.name(one),
                self.compared(one, &self.points)
            ));
            Some(one)
        } else {
            self.by_regime(&mut parts)
        };
        parts.extend(main.and_then(|main| self.lean(main)));
        use_each(&parts)
    }

    /// Adds a part for each regime that has its own best lock; returns the first.
    fn by_regime(&self, parts: &mut Vec<String>) -> Option<usize> {
        let mut chosen: Vec<(usize, Vec<&Point>, Vec<Regime>)> = Vec::new();
        for regime in Regime::ALL {
            let of = self.points.iter().copied();
            let points: Vec<&Point> = of.filter(|p| Regime::of(p) == regime).collect();
            let Some(lock) = choose(&points, self.metric(), |_| true) else {
                continue;
            };
            match chosen.iter_mut().find(|(other, ..)| *other == lock) {
                Some((_, there, regimes)) => {
                    there.extend(points);
                    regimes.push(regime);
                }
                None => chosen.push((lock, points, vec![regime])),
            }
        }
        let several = chosen.len() > 1;
        for (i, (lock, points, regimes)) in chosen.iter().enumerate() {
            let mut part = self.name(*lock);
            if i == 0 {
                part.push_str(" for throughput");
            }
            if several {
                let words: Vec<&str> = regimes.iter().map(|r| r.words()).collect();
                part.push_str(&format!(" {}", words.join(" and ")));
            }
            part.push_str(&self.compared(*lock, points));
            parts.push(part);
        }
        chosen.first().map(|(lock, ..)| *lock)
    }

    /// Returns " (1.62 times today's `qspinlock`)", or the next one where none was
    /// named.
    fn compared(&self, lock: usize, points: &[&Point]) -> String {
        let ratios = |other: usize| -> Vec<f64> {
            points
                .iter()
                .filter_map(|p| primary(p))
                .filter_map(|m| Some(m.share(lock)? / m.share(other)?))
                .collect()
        };
        if self.ranking.question.against {
            if lock == 0 {
                return ", as today".into();
            }
            let today = format!("today's {}", self.name(0));
            return format!(" ({})", beside(&ratios(0), &today));
        }
        let others: Vec<usize> = (0..self.ranking.question.subjects.len())
            .filter(|i| *i != lock)
            .collect();
        let equal: Vec<String> = others
            .iter()
            .filter(|i| {
                points
                    .iter()
                    .filter_map(|p| primary(p))
                    .all(|m| m.may_be_best(**i))
            })
            .map(|i| self.name(*i))
            .collect();
        if !equal.is_empty() {
            return match equal.as_slice() {
                [_, _, _, _, ..] => format!(" ({} others cannot be told from it)", equal.len()),
                few => format!(" ({} cannot be told from it)", few.join(", ")),
            };
        }
        match choose(points, self.metric(), |i| i != lock) {
            Some(next) => {
                let name = format!("{}, the next", self.name(next));
                format!(" ({})", beside(&ratios(next), &name))
            }
            None => String::new(),
        }
    }

    /// Returns the best that is lean, if the main one is not.
    fn lean(&self, main: usize) -> Option<String> {
        let subjects = &self.ranking.question.subjects;
        if subjects[main].is_lean() {
            return None;
        }
        let lock = choose(&self.points, self.metric(), |i| subjects[i].is_lean())?;
        let shares: Vec<f64> = self
            .points
            .iter()
            .filter_map(|p| primary(p)?.share(lock))
            .collect();
        Some(format!(
            "{} {} ({} of the best)",
            self.name(lock),
            self.words.lean[1],
            span(&shares)
        ))
    }

    /// Says that the lock with the most operations has them because one thread keeps it, where
    /// another is shown to have more at equal share.
    fn kept(&self) -> Option<String> {
        /// The share of acquisitions that follow one of the same thread from which on a
        /// thread keeps the lock.
        const KEPT: f64 = 0.9;
        let of = self.points.iter().copied();
        let contended: Vec<&Point> = of.filter(|p| Regime::of(p) == Regime::Contended).collect();
        let most = choose(&contended, self.metric(), |_| true)?;
        let fair = choose(&contended, EQUAL_SHARE, |_| true)?;
        let behind = |p: &&Point| {
            p.metric(EQUAL_SHARE)
                .is_some_and(|m| !m.may_be_best(most) && !m.standings[most].within_delta)
        };
        let behind: Vec<&Point> = contended.iter().copied().filter(behind).collect();
        let kept: Vec<f64> = behind
            .iter()
            .filter_map(|p| Some(matrix::kept(p.metric(STREAK_MEAN)?.figures[most]?.value)))
            .collect();
        if fair == most || kept.is_empty() || kept.iter().any(|share| *share < KEPT) {
            return None;
        }
        let ratios = behind.iter().filter_map(|p| p.metric(EQUAL_SHARE));
        let ratios: Vec<f64> = ratios
            .filter_map(|m| Some(m.share(fair)? / m.share(most)?))
            .collect();
        // Where a thread had nothing at all there is no ratio.
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let times = match ratios.iter().all(|ratio| ratio.is_finite()) {
            true => beside(&ratios, "as many"),
            false if least.is_finite() => {
                format!("at least {} times as many", number::ratio(least))
            }
            false => "some, and it none".into(),
        };
        Some(format!(
            "{} has more operations, because one thread keeps it: {} % of its acquisitions follow \
             its own; at equal share {} has {}.",
            self.name(most),
            range(&kept, |share| number::percent(100.0 * share)),
            self.name(fair),
            times
        ))
    }

    /// Returns what else a reader may want: short waits, equal shares.
    fn beside(&self) -> Option<String> {
        let of = self.points.iter().copied();
        let several: Vec<&Point> = of.filter(|p| Regime::of(p) != Regime::Alone).collect();
        let mut parts: Vec<(usize, String)> = Vec::new();
        for (metric, what) in [
            (LATENCY_P99, "the shortest p99 of the wait"),
            (LATENCY_P999, "the shortest p99.9"),
            (JAIN_1MS, "equal shares within 1 ms"),
        ] {
            let Some(lock) = choose(&several, metric, |_| true) else {
                continue;
            };
            let ranked = || several.iter().filter_map(|p| p.metric(metric));
            let ties = (0..self.ranking.question.subjects.len())
                .filter(|i| *i != lock)
                .filter(|i| ranked().all(|m| m.standings[*i].within_delta || m.may_be_best(*i)))
                .count();
            let figures: Vec<f64> = ranked()
                .filter_map(|m| Some(m.figures[lock]?.value))
                .collect();
            let figure = match metric {
                JAIN_1MS => format!("Jain {}", range(&figures, number::share)),
                _ => format!("{} ns", range(&figures, number::short)),
            };
            let ties = match ties {
                0 => String::new(),
                n => format!("; {} cannot be told from it", number::count(n, "other")),
            };
            parts.push((lock, format!("{what} ({figure}{ties})")));
        }
        // One lock is named once.
        let mut named: Vec<String> = Vec::new();
        for group in parts.chunk_by(|a, b| a.0 == b.0) {
            let whats: Vec<&str> = group.iter().map(|(_, what)| what.as_str()).collect();
            named.push(format!(
                "{} for {}",
                self.name(group[0].0),
                whats.join(" and ")
            ));
        }
        (!named.is_empty()).then(|| use_each(&named))
    }
}

/// Returns a sentence for each part: `Use A for throughput. Use B for one thread alone.`
fn use_each(parts: &[String]) -> String {
    let sentences = parts.iter().map(|part| format!("Use {part}."));
    sentences.collect::<Vec<_>>().join(" ")
}

/// Returns "1.62 times `mcs`", or, where that would read 1.00, "less than 0.5 % ahead of
/// `mcs`".
fn beside(ratios: &[f64], other: &str) -> String {
    /// Holds what rounds to 1.00.
    const SAME: f64 = 0.005;
    if ratios.iter().any(|ratio| (ratio - 1.0).abs() >= SAME) {
        return format!("{} times {other}", span(ratios));
    }
    let ahead = ratios.iter().all(|ratio| *ratio >= 1.0);
    let side = if ahead { "ahead of" } else { "from" };
    format!(
        "less than {} % {side} {other}",
        number::percent(100.0 * SAME)
    )
}

/// Returns "1.62", or "1.05 to 1.62".
fn span(ratios: &[f64]) -> String {
    range(ratios, number::ratio)
}

pub(super) fn range(values: &[f64], format: fn(f64) -> String) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = (format(low), format(high));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_that_rounds_to_nothing_has_words() {
        assert_eq!(beside(&[1.62], "`mcs`"), "1.62 times `mcs`");
        assert_eq!(beside(&[1.004, 1.2], "`mcs`"), "1.00 to 1.20 times `mcs`");
        let close = "less than 0.5 % ahead of `mcs`, the next";
        assert_eq!(beside(&[1.004, 1.0], "`mcs`, the next"), close);
        assert_eq!(beside(&[0.997], "`mcs`"), "less than 0.5 % from `mcs`");
    }
}
