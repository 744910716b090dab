//! Holds the counts of one lock, or of one call site.

use serde_json::{Map, Value, json};

/// Holds what was counted of one lock, or at one call site. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Holds the number of acquisitions, if those of free locks were seen too.
    pub acquired: Option<u64>,
    /// Holds the number of acquisitions that waited, in vain or not.
    pub contended: u64,
    /// Holds the time of all waits, if it was timed.
    pub waited_ns: Option<f64>,
    /// Holds the time of the longest wait, if it is known.
    pub longest_ns: Option<f64>,
    /// Holds the time for which it was held, if holds were seen.
    pub held_ns: Option<f64>,
}

impl Counts {
    /// Adds the counts of another lock or site: what either did not see is not known of
    /// the two.
    pub fn add(&mut self, other: &Self) {
        let sum = |one: &mut Option<f64>, two: Option<f64>| {
            *one = one.zip(two).map(|(one, two)| one + two);
        };
        self.acquired = self
            .acquired
            .zip(other.acquired)
            .map(|(one, two)| one + two);
        self.contended += other.contended;
        sum(&mut self.waited_ns, other.waited_ns);
        sum(&mut self.held_ns, other.held_ns);
        self.longest_ns = self
            .longest_ns
            .zip(other.longest_ns)
            .map(|(one, two)| one.max(two));
    }

    /// Orders by time waited, then held, then by number.
    pub(crate) fn heat(&self) -> [f64; 3] {
        let number = self.acquired.unwrap_or(self.contended);
        [
            self.waited_ns.unwrap_or(0.0),
            self.held_ns.unwrap_or(0.0),
            number as f64,
        ]
    }

    /// Returns the fields of a JSON document; what was not seen is not among them.
    #[must_use]
    pub fn json(&self) -> Value {
        let fields = [
            ("acquired", self.acquired.map(|number| json!(number))),
            ("contended", Some(json!(self.contended))),
            ("waited_ns", self.waited_ns.map(|ns| json!(ns))),
            ("longest_wait_ns", self.longest_ns.map(|ns| json!(ns))),
            ("held_ns", self.held_ns.map(|ns| json!(ns))),
        ];
        let known = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(known.collect::<Map<_, _>>())
    }
}
