//! The identity of this machine, as far as a stored sample depends on it: two
//! samples are comparable only if it is the same for both.
//!
//! Everything else that a reader of a report should know is in
//! [`crate::environment`].

use crate::environment::Environment;
use serde::{Deserialize, Serialize};

/// The properties that a sample depends on and that no setting changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor and number of CPUs.
    pub name: String,
    /// Kernel release and architecture.
    pub kernel: String,
    /// The compiler of the locks.
    pub compiler: String,
    /// Host name: distinguished in the store, never printed.
    pub host: String,
    /// The CPUs that this process may use, best first.
    pub cpus: Vec<usize>,
}

impl Machine {
    /// Describes this machine by its environment and the CPUs that may be used.
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
