//! Keeps a small part of each recording beside the rows, compressed, so that a repository can
//! hold them and the rows be simulated again on any machine.
//!
//! It must never change a row: what was measured is of the whole program.

use crate::{Kept, Truth};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use locklab_trace::Trace;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// The most bytes of a part, compressed.
const MOST: usize = 40 << 10;

/// Writes the rows into `file`, and beside it the part of each row's recording and the machine
/// file that was fitted then.
pub(crate) fn keep(truth: &Truth, rows: &Value, file: &Path) -> Result<(), String> {
    let folder = file.with_extension("data");
    let failed = |e: io::Error| format!("{}: {e}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    for (name, _) in rows.as_object().into_iter().flatten() {
        let Ok(kept) = truth.kept_of(name) else {
            eprintln!("{name}: its recording was not kept");
            continue;
        };
        let recording = fs::read(&kept.trace).map_err(failed)?;
        let part = match Trace::read(recording.clone()) {
            Ok(trace) => part(&trace),
            // A recording of the kernel's events is small.
            Err(_) => packed(&recording),
        };
        let part = part.map_err(failed)?;
        fs::write(folder.join(format!("{name}.trace.gz")), part).map_err(failed)?;
        if kept.here.exists() {
            let here = folder.join(format!("{name}.toml"));
            fs::copy(&kept.here, here).map_err(failed)?;
        }
    }
    fs::write(file, format!("{rows:#}\n")).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns the middle of a recording, as long as it is small.
fn part(trace: &Trace) -> io::Result<Vec<u8>> {
    let (began, ended) = (trace.info.began, trace.info.ended);
    let middle = began + (ended - began) / 2;
    let mut half = (ended - began) / 2;
    loop {
        let part = trace.part(middle - half..middle + half);
        let part = packed(&part.ok_or_else(|| io::Error::other("a part is too large"))?)?;
        if part.len() <= MOST || half < 2 {
            return Ok(part);
        }
        half = half * 3 / 4;
    }
}

fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    packed.finish()
}

impl Kept {
    /// Unpacks the recording of a row that is kept in part.
    pub(crate) fn unpack(&self, into: &Path) -> io::Result<Self> {
        let packed = self.trace.with_extension("trace.gz");
        let trace = into.join(self.trace.file_name().unwrap_or_default());
        io::copy(
            &mut GzDecoder::new(File::open(packed)?),
            &mut File::create(&trace)?,
        )?;
        Ok(Self {
            trace,
            here: self.here.clone(),
        })
    }
}
