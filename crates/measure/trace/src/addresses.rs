//! The addresses that were seen lately, which take a byte: the reader and the
//! writer keep the same.

/// Number of addresses that can be referred to by a byte.
const REMEMBERED: usize = 64;

/// Addresses, by their places.
#[derive(Clone, Debug)]
pub(crate) struct Addresses([u64; REMEMBERED]);

impl Addresses {
    pub(crate) const NONE: Self = Self([0; REMEMBERED]);

    /// Returns the place of an address, and whether it is there. It is from then on.
    #[inline(always)]
    pub(crate) fn remember(&mut self, address: u64) -> (u8, bool) {
        let place = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
        let there = self.0[place] == address;
        self.0[place] = address;
        (place as u8, there)
    }

    /// Returns the address at a place.
    pub(crate) fn at(&self, place: u8) -> Option<u64> {
        self.0.get(usize::from(place)).copied()
    }
}
