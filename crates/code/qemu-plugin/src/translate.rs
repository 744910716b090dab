// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks at each block once, when QEMU translates it, and decides what runs
//! whenever it is executed. What the callbacks are given is never freed:
//! QEMU does not report when it has dropped a block for good.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use locklab_frontend::icache::marker::Marker;
use locklab_frontend::icache::{Block, CodeMap};
use locklab_frontend::{Instruction as Placed, Site, Sites};

use crate::api::{self, Id, Instruction, Tb, Translation};
use crate::arguments::Arguments;
use crate::hot::Hot;
use crate::seen::Mode;
use crate::session::{self, MarkerSite};
use crate::sites::Known;
use crate::vcpu::{self, Repeated};
use crate::x86;

/// Pages in which QEMU maps guest memory.
const PAGE: u64 = 4096;

/// Holds what is remembered between translations.
pub(crate) struct Translator {
    code: CodeMap,
    system: bool,
    markers: bool,
    sampled: bool,
    pub(crate) hot: Option<Hot>,
    /// Takes the place of `code` when a front end is modelled.
    pub(crate) sites: Option<Known>,
}

/// Runs when a block is translated.
///
/// # Safety
/// Called by QEMU with a live block.
pub(crate) unsafe extern "C" fn on_translate(_id: Id, tb: *mut Tb) {
    let (Some(qemu), Some(session)) = (api::get(), session::get()) else {
        return;
    };
    // SAFETY: `tb` lives until this callback returns.
    let block = unsafe { qemu.block(tb) };
    session.translator().translate(&block);
}

impl Translator {
    pub(crate) fn new(arguments: &Arguments, system: bool) -> Self {
        Translator {
            code: CodeMap::new(arguments.geometry),
            system,
            markers: arguments.markers,
            sampled: arguments.sample.is_some(),
            hot: arguments.hot.is_some().then(Hot::default),
            sites: arguments.processor.as_ref().and_then(|processor| {
                // The arguments were tried when they were read.
                let sites = Sites::new(processor, arguments.geometry).ok()?;
                Some(Known::new(sites))
            }),
        }
    }

    /// Returns how many blocks were met whose code had been written over.
    pub(crate) fn rewritten(&self) -> u64 {
        self.sites.as_ref().map_or(0, Known::rewritten)
    }

    fn code(&mut self) -> &mut CodeMap {
        match &mut self.sites {
            Some(sites) => sites.code(),
            None => &mut self.code,
        }
    }

    /// Returns the block for the front end, if one is modelled.
    fn site(&mut self, tb: &Translation, blocks: &[Block]) -> Option<&'static Site> {
        let sites = self.sites.as_mut()?;
        let (mut placed, mut code) = (Vec::new(), Vec::new());
        let mut buffer = [0; 16];
        for index in 0..tb.len() {
            let instruction = tb.instruction(index);
            let address = instruction.virtual_address();
            let host = if self.system {
                instruction.host_address()
            } else {
                None
            };
            placed.push(Placed {
                address,
                place: host.unwrap_or(address),
                bytes: instruction.size().min(15) as u8,
            });
            code.push(instruction.bytes(&mut buffer).to_vec());
        }
        Some(sites.site(&placed, &code, blocks.to_vec()))
    }

    fn translate(&mut self, tb: &Translation) {
        let Some(last) = tb.len().checked_sub(1) else {
            return;
        };
        let (first, last) = (tb.instruction(0), tb.instruction(last));
        let start = first.virtual_address();
        let bytes = last.virtual_address() + last.size() as u64 - start;
        // The kernel has the upper half of the addresses.
        let mode = if self.system && start >> 63 == 1 {
            Mode::Kernel
        } else {
            Mode::User
        };
        let blocks = self.blocks(tb, &first, bytes);
        let site = self.site(tb, &blocks);
        let executions = self
            .hot
            .as_mut()
            .map(|hot| hot.counter(start, bytes, tb.len()));

        let mut buffer = [0; 16];
        if x86::is_repeated(last.bytes(&mut buffer)) {
            let repeated: &'static Repeated = Box::leak(Box::new(Repeated {
                address: last.virtual_address(),
                alone: tb.len() == 1,
                blocks: blocks.into(),
                site,
                executions,
            }));
            tb.on_exec(vcpu::on_repeated(mode), ptr::from_ref(repeated) as u64);
        } else {
            if let Some(site) = site {
                tb.on_exec(vcpu::on_site(mode, self.sampled), vcpu::site_bits(site));
            } else {
                for block in blocks {
                    tb.on_exec(vcpu::on_block(mode, block), block.to_bits());
                }
            }
            if let Some(executions) = executions {
                tb.on_exec(on_hot, ptr::from_ref(executions) as u64);
            }
        }
        if self.markers {
            watch_markers(tb, mode);
        }
    }

    /// Returns the lines of a block, by the addresses that the cache goes by: a
    /// program's own, or where a machine's memory lies in QEMU, because
    /// processes share virtual addresses, and pages of code, and a real L1i
    /// has physical tags.
    fn blocks(&mut self, tb: &Translation, first: &Instruction, bytes: u64) -> Vec<Block> {
        let instructions = tb.len() as u16; // at most 512 in a block
        let start = first.virtual_address();
        let host = if self.system {
            first.host_address()
        } else {
            None
        };
        let Some(host) = host else {
            return self.code().blocks(start, bytes, instructions);
        };
        let in_page = PAGE - start % PAGE;
        let mut blocks = self.code().blocks(host, bytes.min(in_page), instructions);
        if bytes > in_page {
            // The next page lies elsewhere. Only an instruction that begins in
            // it shows where; without one, its line is counted with the block
            // that comes next.
            let next = (0..tb.len())
                .map(|index| tb.instruction(index))
                .find(|instruction| instruction.virtual_address() - start >= in_page);
            if let Some((next, host)) =
                next.and_then(|next| Some((next.virtual_address(), next.host_address()?)))
            {
                blocks.extend(self.code().blocks(host, start + bytes - next, 0));
            }
        }
        blocks
    }
}

fn watch_markers(tb: &Translation, mode: Mode) {
    let mut buffer = [0; 16];
    for index in 0..tb.len() {
        let instruction = tb.instruction(index);
        if instruction.size() != Marker::BYTES {
            continue;
        }
        if let Some(marker) = Marker::decode(instruction.bytes(&mut buffer)) {
            let after = (tb.len() - 1 - index) as u64;
            let site: &'static MarkerSite = Box::leak(Box::new(MarkerSite {
                marker,
                mode,
                after,
            }));
            instruction.on_exec(session::on_marker, ptr::from_ref(site) as u64);
        }
    }
}

/// Counts an execution; the userdata is a `&'static AtomicU64`.
extern "C" fn on_hot(_vcpu: c_uint, executions: *mut c_void) {
    if session::is_open() {
        // SAFETY: registered with a `&'static AtomicU64`.
        unsafe { &*executions.cast::<AtomicU64>() }.fetch_add(1, Relaxed);
    }
}
