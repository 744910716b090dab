//! What a replay by real threads gave, on the machine that recorded. It must never be
//! taken for a simulated rate.

/// Whether the program was replayed by real threads, under its own lock, on the
/// machine that recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum Here {
    /// At so many times its recorded rate.
    Rate(f64),
    /// It was not, for this reason.
    Not(String),
}
