//! The `locklab` command.

fn main() {}
