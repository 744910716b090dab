//! Who this machine is, as far as a stored sample must know: two samples are
//! comparable only if this is the same for both.
//!
//! What a reader of a report should know beside is [`crate::environment`]'s.

use crate::environment::Environment;
use serde::{Deserialize, Serialize};

/// What a sample depends on and no setting changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor and number of CPUs.
    pub name: String,
    /// Kernel release and architecture.
    pub kernel: String,
    /// What compiled the locks.
    pub compiler: String,
    /// Host name: told apart in the store, never printed.
    pub host: String,
    /// The CPUs that this process may use, best first.
    pub cpus: Vec<usize>,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn new(environment: &Environment, cpus: &[usize]) -> Self {
        Self {
            name: environment.name(),
            kernel: environment.kernel.to_string(),
            compiler: environment.compiler.to_string(),
            host: nix::sys::utsname::uname()
                .map(|name| name.nodename().to_string_lossy().into_owned())
                .unwrap_or_default(),
            cpus: cpus.to_vec(),
        }
    }
}
