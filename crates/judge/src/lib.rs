//! From paired samples to a verdict: better, worse, flat, unclear or invalid.
