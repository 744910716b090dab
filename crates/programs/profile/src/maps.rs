//! The files that are mapped into the process, so that addresses get names: the
//! kernel's list of them. The loader's own would need its lock.

use core::ops::ControlFlow;

/// A mapped part of a file.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    /// Its first address.
    pub from: u64,
    /// The address after its last.
    pub to: u64,
    /// Says whether it is code.
    pub executable: bool,
    /// Says where it begins in the file.
    pub offset: u64,
    /// The file; a word in brackets, or nothing, where there is none.
    pub path: &'a [u8],
}

impl<'a> Mapped<'a> {
    /// Parses a line: from-to permissions offset device inode path.
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let hexadecimal = |text: &[u8]| {
            let text = core::str::from_utf8(text).ok()?;
            u64::from_str_radix(text, 16).ok()
        };
        let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
        Some(Self {
            from: hexadecimal(range.next()?)?,
            to: hexadecimal(range.next()?)?,
            executable: fields.next()?.contains(&b'x'),
            offset: hexadecimal(fields.next()?)?,
            path: fields.nth(2)?.trim_ascii(),
        })
    }
}

/// Shows every mapped part until one was looked for. Allocates nothing, takes no
/// lock, and leaves `errno` as it was; a line that is too long loses its end.
pub fn each(mut found: impl FnMut(Mapped<'_>) -> ControlFlow<()>) {
    let mut line = [0u8; 1024];
    let mut buffer = [0u8; 512];
    let mut length = 0;
    // SAFETY: a C string, our own descriptor and buffers, and the thread's errno.
    unsafe {
        let errno = *libc::__errno_location();
        let path = c"/proc/self/maps".as_ptr();
        let file = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            *libc::__errno_location() = errno;
            return;
        }
        'file: loop {
            let got = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
            let got = usize::try_from(got).ok().and_then(|got| buffer.get(..got));
            let Some(bytes) = got.filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            for &byte in bytes {
                if byte == b'\n' {
                    if Mapped::of(&line[..length]).is_some_and(|part| found(part).is_break()) {
                        break 'file;
                    }
                    length = 0;
                } else if let Some(place) = line.get_mut(length) {
                    *place = byte;
                    length += 1;
                }
            }
        }
        libc::close(file);
        *libc::__errno_location() = errno;
    }
}
