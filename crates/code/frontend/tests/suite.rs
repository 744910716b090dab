//! Tests of the front-end model, one program for all files.

mod counts;
mod geometry;
mod laws;
mod oracle;
mod processors;
