//! Finds what a program may wait for that the recorder does not see, by the functions that its
//! files import: spinlocks, semaphores, barriers, OpenMP.
//!
//! That a file imports a function does not say that it is called: whoever asks must say
//! "may".

use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The beginnings of names of functions, and what they wait for.
const WAITS: [(&str, &str); 6] = [
    ("pthread_spin_lock", "spinlocks (pthread_spin_lock)"),
    ("sem_wait", "semaphores (sem_wait)"),
    ("sem_timedwait", "semaphores (sem_wait)"),
    ("pthread_barrier_wait", "barriers (pthread_barrier_wait)"),
    ("GOMP_", "locks and barriers of OpenMP"),
    ("__kmpc_", "locks and barriers of OpenMP"),
];

/// Returns what these files may wait for, each once; files that cannot be read say
/// nothing, and those of the C library define what others import.
pub(crate) fn kinds(files: &[PathBuf]) -> Vec<&'static str> {
    let mut kinds = BTreeSet::new();
    for file in files {
        let Ok(bytes) = fs::read(file) else { continue };
        let Ok(object) = object::File::parse(&*bytes) else {
            continue;
        };
        let imported = object
            .dynamic_symbols()
            .filter(|symbol| symbol.is_undefined());
        for symbol in imported {
            let name = symbol.name().unwrap_or_default();
            let found = WAITS.iter().filter(|(start, _)| name.starts_with(start));
            kinds.extend(found.map(|(_, words)| *words));
        }
    }
    kinds.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert!(kinds(&[PathBuf::from("/nowhere")]).is_empty());
        assert!(kinds(&[PathBuf::from("/proc/self/maps")]).is_empty());
    }
}
