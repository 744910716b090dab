//! Tests of the front-end model, one program for all files.

mod counts;
mod laws;
mod processors;
