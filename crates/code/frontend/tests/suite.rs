//! Tests of the front-end model, one program for all files.

mod laws;
mod processors;
