//! Tasks that run ahead on several threads, and whose results are fetched in
//! any order.
//!
//! A result depends on its task alone, never on the number of threads
//! or on their order.

use locklab_harness::backend::Stopped;
use locklab_sim::SimError;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Tasks under way; they are abandoned when it is dropped.
pub(crate) struct Pool<K, T> {
    shared: Arc<Shared<K, T>>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared<K, T> {
    done: Mutex<HashMap<K, T>>,
    arrived: Condvar,
    next: AtomicUsize,
    stop: AtomicBool,
}

impl<K, T> Pool<K, T>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    T: Send + 'static,
{
    /// Begins `tasks` in their order, on `workers` threads.
    pub(crate) fn start(
        tasks: Vec<K>,
        threads: usize,
        work: impl Fn(K) -> T + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            done: Mutex::new(HashMap::new()),
            arrived: Condvar::new(),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let tasks = Arc::new(tasks);
        let work = Arc::new(work);
        let workers = (0..threads.clamp(1, tasks.len().max(1)))
            .map(|_| {
                let (shared, tasks, work) = (shared.clone(), tasks.clone(), work.clone());
                std::thread::spawn(move || {
                    while !shared.stop.load(Ordering::Relaxed) {
                        let at = shared.next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(at) else { break };
                        let result = work(*task);
                        shared.lock().insert(*task, result);
                        shared.arrived.notify_all();
                    }
                })
            })
            .collect();
        Self { shared, workers }
    }

    /// Waits for the result of one task while `go_on` returns true; `None`
    /// if it was abandoned, was never begun or was fetched before.
    pub(crate) fn fetch(&self, task: K, go_on: impl Fn() -> bool) -> Option<T> {
        let mut done = self.shared.lock();
        loop {
            if let Some(result) = done.remove(&task) {
                return Some(result);
            }
            if !go_on() || self.workers.iter().all(JoinHandle::is_finished) {
                return done.remove(&task);
            }
            let wait = Duration::from_millis(100);
            done = match self.shared.arrived.wait_timeout(done, wait) {
                Ok((done, _)) => done,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

impl<K, T> Pool<K, Result<T, SimError>>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    T: Send + 'static,
{
    /// Fetches a result as [`Pool::fetch`] does, for a backend: until `interrupt` is set. A
    /// simulation that failed stops what `failed` says.
    pub(crate) fn simulated(
        &self,
        task: K,
        interrupt: &AtomicBool,
        failed: fn(String) -> Stopped,
    ) -> Result<T, Stopped> {
        let go_on = || !interrupt.load(Ordering::Relaxed);
        match self.fetch(task, go_on) {
            Some(result) => result.map_err(|error| failed(error.to_string())),
            None if !go_on() => Err(Stopped::Interrupted),
            None => Err(Stopped::Fatal(
                "a simulation ended without an outcome".into(),
            )),
        }
    }
}

impl<K, T> Shared<K, T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, T>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Drop for Pool<K, T> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            // A worker that panicked has already reported it.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_their_tasks_in_any_order() {
        let pool = Pool::start((0..100_u64).collect(), 3, |n| n * n);
        for n in (0..100).rev() {
            assert_eq!(pool.fetch(n, || true), Some(n * n));
        }
        assert_eq!(pool.fetch(7, || true), None);
    }

    #[test]
    fn a_task_that_nobody_began_is_not_waited_for() {
        let pool = Pool::start(vec![1], 1, |n: u64| n);
        assert_eq!(pool.fetch(2, || true), None);
    }
}
