// SPDX-License-Identifier: GPL-2.0-or-later
//! The plugin in a real QEMU, on programs whose counts are known.

mod lab;
mod system;
mod user;
