//! Reads what a bzImage says about itself, so that a kernel that answers is known to
//! be the one that was loaded. It must never guess: an image without the header
//! is refused.

use locklab_host::error::Error;
use std::path::Path;

/// Says where the header says where the version is, and what it adds to that.
const VERSION: usize = 0x20e;
const SECTOR: usize = 0x200;

/// Returns the release and the version in an image: what `uname -r` and `uname -v`
/// print in its kernel.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read, or is not a bzImage.
pub(crate) fn version(path: &Path) -> Result<[String; 2], Error> {
    let bytes = std::fs::read(path)
        .map_err(|e| Error::Usage(format!("cannot read the kernel {}: {e}", path.display())))?;
    parse(&bytes).ok_or_else(|| {
        Error::Usage(format!(
            "{} is not a bzImage, which kexec needs on a test machine",
            path.display()
        ))
    })
}

fn parse(bytes: &[u8]) -> Option<[String; 2]> {
    if bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = bytes.get(VERSION..VERSION + 2)?;
    let at = usize::from(u16::from_le_bytes([at[0], at[1]])) + SECTOR;
    let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(text);
    // "6.1.0 (user@host) #1 SMP ...": the builder is in no name.
    let (release, rest) = text.split_once(' ')?;
    let version = &rest[rest.find(") #")? + 2..];
    Some([release.to_owned(), version.trim().to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_names_its_kernel() {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        let text = b"6.1.0-56-cloud-amd64 (debian-kernel@lists.debian.org) #1 SMP Debian 6.1.192\0";
        bytes[0x300..0x300 + text.len()].copy_from_slice(text);
        let [release, version] = parse(&bytes).unwrap();
        assert_eq!(release, "6.1.0-56-cloud-amd64");
        assert_eq!(version, "#1 SMP Debian 6.1.192");
        assert_eq!(parse(b"\x7fELF"), None);
        bytes[0x202] = 0;
        assert_eq!(parse(&bytes), None);
    }
}
