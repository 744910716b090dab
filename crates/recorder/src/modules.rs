//! The files that are mapped into the process, so that addresses get names.
//!
//! Found in the kernel's list: the loader's own would need its lock.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use locklab_trace::{Event, Payload};

/// The most mapped parts that are remembered.
const MOST: usize = 200;
/// How often the list is read at most: code made at run time is in no file.
const READS: u32 = 64;

/// The parts that have been recorded for this image.
#[repr(C)]
pub(crate) struct Known {
    reads: AtomicU32,
    reading: AtomicU32,
    count: AtomicU32,
    from: [AtomicU64; MOST],
    to: [AtomicU64; MOST],
}

impl Known {
    fn has(&self, address: u64) -> bool {
        // Acquire: pairs with the store in `add`.
        let count = self.count.load(Ordering::Acquire) as usize;
        self.from
            .iter()
            .zip(&self.to)
            .take(count)
            .any(|(from, to)| {
                (from.load(Ordering::Relaxed)..to.load(Ordering::Relaxed)).contains(&address)
            })
    }

    /// Remembers a part; returns whether it is new and there is room.
    fn add(&self, from: u64, to: u64) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let at = count as usize;
        if self.has(from) || at >= MOST {
            return false;
        }
        self.from[at].store(from, Ordering::Relaxed);
        self.to[at].store(to, Ordering::Relaxed);
        // Release: pairs with the load in `has`.
        self.count.store(count + 1, Ordering::Release);
        true
    }
}

/// Has the files recorded (`put`) that are new, if one of these addresses is in none that is
/// known.
pub(crate) fn cover(known: &Known, addresses: &[[u8; 8]], put: impl FnMut(&Event<'_>)) {
    let all = addresses
        .iter()
        .all(|address| known.has(u64::from_le_bytes(*address)));
    if all || known.reads.load(Ordering::Relaxed) >= READS {
        return;
    }
    // Who comes second leaves it to the first.
    if known.reading.swap(1, Ordering::Acquire) == 0 {
        known.reads.fetch_add(1, Ordering::Relaxed);
        read(known, put);
        // Release: pairs with the swap above.
        known.reading.store(0, Ordering::Release);
    }
}

fn read(known: &Known, mut put: impl FnMut(&Event<'_>)) {
    let mut line = [0u8; 600];
    let mut length = 0;
    let mut buffer = [0u8; 1024];
    // SAFETY: a C string, our own descriptor and buffers, and the thread's errno.
    unsafe {
        let errno = *libc::__errno_location();
        let file = libc::open(
            c"/proc/self/maps".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file >= 0 {
            loop {
                let got = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
                let Some(bytes) = usize::try_from(got).ok().and_then(|got| buffer.get(..got))
                else {
                    break;
                };
                if bytes.is_empty() {
                    break;
                }
                for &byte in bytes {
                    if byte == b'\n' {
                        note(known, &mut put, line.get(..length).unwrap_or_default());
                        length = 0;
                    } else if let Some(place) = line.get_mut(length) {
                        *place = byte;
                        length += 1;
                    }
                }
            }
            libc::close(file);
        }
        *libc::__errno_location() = errno;
    }
}

/// Records what a line of the list says, if code of a file is mapped there.
fn note(known: &Known, mut put: impl FnMut(&Event<'_>), line: &[u8]) {
    if let Some((from, to, offset, path)) = mapping(line)
        && known.add(from, to)
    {
        let path = Payload(path);
        put(&Event::Module {
            from,
            to,
            offset,
            path,
        });
    }
}

/// From, to, offset and path of mapped code.
fn mapping(line: &[u8]) -> Option<(u64, u64, u64, &[u8])> {
    // from-to permissions offset device inode path
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let hexadecimal = |text: &[u8]| {
        let text = core::str::from_utf8(text).ok()?;
        u64::from_str_radix(text, 16).ok()
    };
    let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
    let (from, to) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    if !fields.next()?.contains(&b'x') {
        return None;
    }
    let offset = hexadecimal(fields.next()?)?;
    let path = fields.nth(2)?.trim_ascii();
    path.starts_with(b"/").then_some((from, to, offset, path))
}
