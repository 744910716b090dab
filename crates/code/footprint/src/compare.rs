//! The entry point: takes two paths, reads both sides concurrently and pairs
//! them. Exists so that the order of steps is in one place. Must never
//! return a result of which one side was read in part.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bloat::BloatOMeter;
use crate::error::not_linked;
use crate::footprint::Footprint;
use crate::input::Input;
use crate::options::Options;
use crate::pairing::pair;
use crate::tally::{Tally, Wanted};
use locklab_host::error::Error;

/// Compares two ELF executables, objects, archives, kernel images, or two
/// folders of them, in which symbols are summed over all files. Both sides
/// are read at once, each in a thread.
///
/// # Errors
/// [`Error::Failed`] if a path cannot be read or has nothing to compare, the
/// two sides are of different kinds, counts are given for an input that is not
/// one linked file, or a file is damaged, also one of a folder: leaving it out
/// would show as a difference.
pub fn compare(old: &Path, new: &Path, options: &Options<'_>) -> Result<Footprint, Error> {
    let (old_input, new_input) = (Input::find(old)?, Input::find(new)?);
    if old_input.is_folder != new_input.is_folder {
        let (folder, file) = match old_input.is_folder {
            true => (old, new),
            false => (new, old),
        };
        return Err(Error::Failed(format!(
            "{} is a folder and {} is a file; give two files or two folders.",
            folder.display(),
            file.display()
        )));
    }
    for (path, input) in [(old, &old_input), (new, &new_input)] {
        if options.hot.is_some() && input.is_folder {
            return Err(not_linked(path.display()));
        }
    }

    let whole = old_input.bytes().saturating_add(new_input.bytes());
    let behind = AtomicU64::new(0);
    let progress = |bytes: u64| {
        let before = behind.fetch_add(bytes, Ordering::Relaxed);
        if let Some(tell) = options.progress {
            tell(before.saturating_add(bytes).min(whole), whole);
        }
    };
    let hot = options.hot.as_ref();
    let side = |counts| Wanted {
        inlined: options.inlined,
        call_sites_of: options.call_sites_of.as_deref(),
        counts,
    };
    let old_side = side(hot.map(|h| (h.counts.baseline.as_slice(), h.share)));
    let new_side = side(hot.map(|h| (h.counts.experiment.as_slice(), h.share)));
    let (old_tally, new_tally) = std::thread::scope(|scope| {
        let other = scope.spawn(|| Tally::read(&new_input, &new_side, &progress));
        let old_tally = Tally::read(&old_input, &old_side, &progress);
        let new_tally = match other.join() {
            Ok(tally) => tally,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (old_tally, new_tally)
    });
    let (old_tally, new_tally) = (old_tally?, new_tally?);
    let is_folder = old_input.is_folder;
    let sides = [&old_tally, &new_tally];
    Ok(pair([old, new], sides, options, is_folder))
}

/// Compares two inputs as `scripts/bloat-o-meter OLD NEW` does. Unlike it,
/// takes folders too, whose symbols are summed.
///
/// # Errors
/// The same errors as [`compare`].
pub fn bloat_o_meter_totals(old: &Path, new: &Path) -> Result<BloatOMeter, Error> {
    let options = Options {
        inlined: false,
        ..Options::default()
    };
    Ok(compare(old, new, &options)?.bloat_o_meter)
}
