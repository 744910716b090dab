//! Locks from the papers.
#![no_std]
