//! A model of an L1 instruction cache.
