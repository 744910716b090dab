//! From a path to the ELF images behind it: a file, the members of an archive
//! (thin ones too, as the kernel's build makes them), or every ELF file and
//! archive of a folder. Exists so that the rest sees bytes and a label only.
//! Must never skip something damaged in silence, and must never follow a
//! symbolic link inside a folder: `libx.so -> libx.so.1` would count twice.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::read::archive::ArchiveFile;

use crate::error::{damaged, empty_folder, io};
use locklab_host::error::Error;

const ELF: &[u8] = b"\x7fELF";
const ARCHIVE: &[u8] = b"!<arch>\n";
const THIN: &[u8] = b"!<thin>\n";

/// One ELF image, in memory for as long as it is visited.
pub(crate) struct Image<'a> {
    /// The file, with the member in brackets where it is an archive.
    pub(crate) label: &'a str,
    /// The file's path below the folder that was given; its own name if a
    /// file was given.
    pub(crate) file: &'a str,
    pub(crate) data: &'a [u8],
}

/// The files behind one side of a comparison.
pub(crate) struct Input {
    path: PathBuf,
    /// Path and its length in bytes, in the order in which they are read.
    files: Vec<(PathBuf, u64)>,
    pub(crate) is_folder: bool,
}

impl Input {
    /// Looks what is at `path`, without reading the files' contents.
    pub(crate) fn find(path: &Path) -> Result<Self, Error> {
        let meta = fs::metadata(path).map_err(|e| io(path, &e))?;
        let mut files = Vec::new();
        if meta.is_dir() {
            walk(path, &mut files)?;
            if files.is_empty() {
                return Err(empty_folder(path));
            }
        } else if meta.is_file() {
            files.push((path.to_path_buf(), meta.len()));
        } else {
            return Err(Error::Failed(format!(
                "{} is neither a file nor a folder; give an ELF file, an archive, or a folder of \
                 them.",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_path_buf(),
            files,
            is_folder: meta.is_dir(),
        })
    }

    /// Returns the bytes of all files, for a progress bar.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Calls `visit` for each ELF image and `done` with the length of each
    /// file that is finished.
    pub(crate) fn images(
        &self,
        visit: &mut dyn FnMut(Image<'_>) -> Result<(), Error>,
        done: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut seen = 0;
        for (path, bytes) in &self.files {
            let name = path.strip_prefix(&self.path).unwrap_or(path);
            let name = if name.as_os_str().is_empty() {
                Path::new(path.file_name().unwrap_or(path.as_os_str()))
            } else {
                name
            };
            let file = name.to_string_lossy();
            let Some(map) = map(path)? else {
                return Err(Error::Failed(format!(
                    "{} is empty; build or copy it again.",
                    path.display()
                )));
            };
            seen += images_of(path, &file, &map, self.is_folder, visit)?;
            done(*bytes);
        }
        if seen == 0 {
            // Only archives without ELF members were found.
            return Err(empty_folder(&self.path));
        }
        Ok(())
    }
}

/// Visits the images of one file and returns how many there were.
fn images_of(
    path: &Path,
    file: &str,
    data: &[u8],
    in_folder: bool,
    visit: &mut dyn FnMut(Image<'_>) -> Result<(), Error>,
) -> Result<usize, Error> {
    let label = path.to_string_lossy();
    if data.starts_with(ELF) {
        let label = &label;
        visit(Image { label, file, data })?;
        return Ok(1);
    }
    if !data.starts_with(ARCHIVE) && !data.starts_with(THIN) {
        return Err(not_elf(path, data));
    }
    let archive = ArchiveFile::parse(data).map_err(|e| damaged(&label, e))?;
    let mut seen = 0;
    for member in archive.members() {
        let member = member.map_err(|e| damaged(&label, e))?;
        let name = String::from_utf8_lossy(member.name());
        let label = &format!("{label}({name})");
        if member.is_thin() {
            // A thin archive names its members relative to itself.
            let target = path.parent().unwrap_or(Path::new("")).join(&*name);
            if let Some(map) = map(&target)?
                && map.starts_with(ELF)
            {
                let data = &map;
                visit(Image { label, file, data })?;
                seen += 1;
            }
        } else {
            let data = member.data(data).map_err(|e| damaged(label, e))?;
            // Others are metadata of the compiler (`lib.rmeta`) or bitcode.
            if data.starts_with(ELF) {
                visit(Image { label, file, data })?;
                seen += 1;
            }
        }
    }
    if seen == 0 && !in_folder {
        return Err(Error::Failed(format!(
            "{} is an archive without an ELF member; give one made of object files.",
            path.display()
        )));
    }
    Ok(seen)
}

/// Maps a file; returns `None` if it is empty, because an empty file cannot be mapped.
fn map(path: &Path) -> Result<Option<Mmap>, Error> {
    let file = File::open(path).map_err(|e| io(path, &e))?;
    let meta = file.metadata().map_err(|e| io(path, &e))?;
    if meta.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is private and read-only. If another process shortens
    // the file meanwhile, touching a lost page ends this process by SIGBUS,
    // as with every linker and debugger; reading a kernel with its debug
    // information into memory instead would cost hundreds of megabytes.
    let map = unsafe { Mmap::map(&file) };
    map.map(Some).map_err(|e| io(path, &e))
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> Result<(), Error> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| io(&folder, &e))? {
            let entry = entry.map_err(|e| io(&folder, &e))?;
            let path = entry.path();
            // The entry's own size: symbolic links are not followed.
            let meta = entry.metadata().map_err(|e| io(&path, &e))?;
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() && is_wanted(&path)? {
                files.push((path, meta.len()));
            }
        }
    }
    files.sort();
    Ok(())
}

fn is_wanted(path: &Path) -> Result<bool, Error> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(|e| io(path, &e))?;
    file.take(8)
        .read_to_end(&mut start)
        .map_err(|e| io(path, &e))?;
    Ok(start.starts_with(ELF) || start == ARCHIVE || start == THIN)
}

fn not_elf(path: &Path, data: &[u8]) -> Error {
    const VMLINUX: &str = "give the vmlinux of the same build";
    const BUILT: &str = "give what the compiler or linker wrote";
    let is = |offset: usize, magic: &[u8]| data.get(offset..).is_some_and(|d| d.starts_with(magic));
    let (what, remedy) = if is(0x202, b"HdrS") {
        ("a compressed kernel image", VMLINUX)
    } else if is(0x38, b"ARM\x64") || is(0x38, b"RSC\x05") {
        ("a kernel image without its ELF tables", VMLINUX)
    } else if is(0, b"\x1f\x8b") || is(0, b"\xfd7zXZ") || is(0, b"\x28\xb5\x2f\xfd") {
        ("compressed", "decompress it first")
    } else if is(0, b"MZ") || is(0, b"\xcf\xfa\xed\xfe") || is(0, b"\0asm") || is(0, b"BC\xc0\xde")
    {
        ("a program of another format", BUILT)
    } else if is(0, b"#!") {
        ("a script", "give the program that it runs")
    } else {
        ("some other file", BUILT)
    };
    Error::Failed(format!(
        "{} is {what}, not an ELF file or an archive of them; {remedy}.",
        path.display()
    ))
}
