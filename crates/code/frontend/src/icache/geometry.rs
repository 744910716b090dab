//! The shape of a cache: size, ways, line size. Anything that builds here is
//! consistent, so the rest of the crate never checks again.

use std::fmt;

/// Code is followed page by page (see [`CodeMap`](crate::icache::CodeMap)), so a
/// cache line cannot be longer than a page.
pub(crate) const PAGE: u32 = 4096;

/// Size, associativity and line size of a cache; always consistent.
///
/// ```
/// use locklab_frontend::icache::Geometry;
/// let zen = Geometry::new(32 * 1024, 8, 64)?;
/// assert_eq!(zen.sets(), 64);
/// assert_eq!(zen.to_string(), "32 KiB, 8-way, 64-byte lines");
/// assert!(Geometry::new(48 * 1024, 8, 64).is_err()); // 96 sets
/// # Ok::<(), locklab_frontend::icache::GeometryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    size: u32,
    ways: u32,
    line: u32,
}

impl Geometry {
    /// Makes a cache of `size` bytes in `ways` ways of lines of `line` bytes.
    ///
    /// # Errors
    /// When a figure is zero or out of range, when the line is not a power of
    /// two, or when the number of sets (`size / ways / line`) is not a whole
    /// power of two: hardware picks the set by address bits.
    pub fn new(size: u32, ways: u32, line: u32) -> Result<Self, GeometryError> {
        if !(1 << 6..=1 << 26).contains(&size) {
            return Err(GeometryError::Size(size));
        }
        if ways == 0 {
            return Err(GeometryError::Ways);
        }
        if !line.is_power_of_two() || !(16..=PAGE).contains(&line) {
            return Err(GeometryError::Line(line));
        }
        let geometry = Geometry { size, ways, line };
        let bytes_a_set = u64::from(ways) * u64::from(line);
        let sets = u64::from(size) / bytes_a_set;
        if u64::from(size) % bytes_a_set != 0 || !sets.is_power_of_two() {
            return Err(GeometryError::Sets(geometry));
        }
        Ok(geometry)
    }

    /// Returns the size in bytes.
    pub fn size(self) -> u32 {
        self.size
    }

    /// Returns the lines that a set holds.
    pub fn ways(self) -> u32 {
        self.ways
    }

    /// Returns the line size in bytes.
    pub fn line(self) -> u32 {
        self.line
    }

    /// Returns the number of sets, a power of two.
    pub fn sets(self) -> u32 {
        self.size / self.ways / self.line
    }
}

/// 32 KiB, 8-way, 64-byte lines: the L1i of most x86 server cores from
/// Sandy Bridge and Zen 2 on.
impl Default for Geometry {
    fn default() -> Self {
        Geometry {
            size: 32 * 1024,
            ways: 8,
            line: 64,
        }
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.size.is_multiple_of(1024) {
            write!(f, "{} KiB", self.size / 1024)?;
        } else {
            write!(f, "{} bytes", self.size)?;
        }
        write!(f, ", {}-way, {}-byte lines", self.ways, self.line)
    }
}

/// Names the reason why a [`Geometry`] is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// The size in bytes is out of range.
    Size(u32),
    /// No ways.
    Ways,
    /// The line size in bytes is out of range or not a power of two.
    Line(u32),
    /// The number of sets is not a whole power of two.
    Sets(Geometry),
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeometryError::Size(size) => {
                write!(
                    f,
                    "cache size {size} is out of range: give bytes, from 64 to 64 MiB"
                )
            }
            GeometryError::Ways => f.write_str("a cache needs at least 1 way"),
            GeometryError::Line(line) => write!(
                f,
                "line size {line} is not a power of two from 16 to {PAGE} bytes"
            ),
            GeometryError::Sets(g) => write!(
                f,
                "{} bytes in {} ways of {}-byte lines make {:.2} sets; \
                 choose a size that gives a power of two, such as {}",
                g.size,
                g.ways,
                g.line,
                f64::from(g.size) / f64::from(g.ways) / f64::from(g.line),
                nearest_size(*g),
            ),
        }
    }
}

impl std::error::Error for GeometryError {}

/// Returns the largest valid size not above the given one (or one set).
fn nearest_size(g: Geometry) -> u64 {
    let bytes_a_set = u64::from(g.ways) * u64::from(g.line);
    let sets = (u64::from(g.size) / bytes_a_set).max(1);
    bytes_a_set << sets.ilog2()
}
