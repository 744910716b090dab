//! Two builds of one source that differ in whether unlock is inlined.
//!
//! The user's own command builds each; words and variables tell it which of the
//! two to make, and nothing is known here of compilers. The folder that it
//! fills is a build as a file names one. Must never reuse an older
//! build: the source may have changed.

use crate::output::excerpt;
use crate::spec::Spec;
use crate::subject::Inline;
use locklab_host::error::Error;
use locklab_host::process::Launch;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time limit of a build.
const LIMIT: Duration = Duration::from_secs(3600);

/// Returns the command for one side: `{inline}` is `always` or `never`, `{out}` the
/// folder for its programs.
fn command(template: &str, inline: Inline, out: &Path) -> String {
    let out = out.display().to_string();
    let out = shlex::try_quote(&out).map_or_else(|_| out.clone(), Into::into);
    template
        .replace("{inline}", inline.word())
        .replace("{out}", &out)
}

/// Returns the flags that the header of the C library reads, after the user's own.
fn flags(variable: &str, inline: Inline) -> OsString {
    let mut flags = std::env::var_os(variable).unwrap_or_default();
    if !flags.is_empty() {
        flags.push(" ");
    }
    let value = u8::from(inline == Inline::Always);
    flags.push(format!("-DLOCKLAB_UNLOCK_INLINE={value}"));
    flags
}

/// Builds both sides below `folder` and gives them to the subjects.
///
/// # Errors
/// If there is a `--build` without `--inline`, a folder cannot be made, a build
/// fails, or it leaves nothing in its folder.
pub fn both(
    template: &str,
    spec: &mut Spec,
    folder: &Path,
    interrupt: &AtomicBool,
) -> Result<(), Error> {
    for (subject, side) in [
        (&mut spec.baseline, "baseline"),
        (&mut spec.experiment, "experiment"),
    ] {
        let Some(inline) = subject.inline else {
            return Err(Error::Usage(
                "--build makes the two of --inline; give that too".into(),
            ));
        };
        subject.name = Some(subject.label());
        subject.build = Some(one(template, inline, side, folder, interrupt)?);
    }
    Ok(())
}

fn one(
    template: &str,
    inline: Inline,
    side: &'static str,
    folder: &Path,
    interrupt: &AtomicBool,
) -> Result<PathBuf, Error> {
    let out = folder.join(side);
    let cannot =
        |e: std::io::Error| Error::Failed(format!("cannot make the folder {}: {e}", out.display()));
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(cannot)?;
    }
    std::fs::create_dir_all(&out).map_err(cannot)?;
    let command = command(template, inline, &out);
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), command.clone().into()],
        environment: vec![
            ("LOCKLAB_INLINE".into(), inline.word().into()),
            ("LOCKLAB_OUT".into(), out.clone().into()),
            ("CFLAGS".into(), flags("CFLAGS", inline)),
            ("CXXFLAGS".into(), flags("CXXFLAGS", inline)),
        ],
        folder: std::env::current_dir()
            .map_err(|e| Error::Failed(format!("there is no current folder: {e}")))?,
        cpus: Vec::new(),
        fixed: false,
    };
    let log = folder.join(format!("{side}-build"));
    let ended = launch
        .run(&log, LIMIT, interrupt)
        .map_err(|e| Error::Failed(format!("building the {side}: {e}")))?;
    if let Some(status) = ended.failure() {
        let stderr = std::fs::read_to_string(log.with_extension("err")).unwrap_or_default();
        return Err(Error::Failed(format!(
            "'{command}' failed ({status}); it said: {}",
            excerpt(&stderr)
        )));
    }
    let left = std::fs::read_dir(&out).map_err(cannot)?.count();
    if left == 0 {
        return Err(Error::Failed(format!(
            "'{command}' left nothing in {}; have it put the programs into {{out}}, which is also \
             $LOCKLAB_OUT",
            out.display()
        )));
    }
    Ok(out)
}
