//! Threads of a test, used as those of `std`.

use crate::event::Place;
use crate::model;
use std::cell::RefCell;
use std::rc::Rc;

/// A thread that can be waited for.
pub struct JoinHandle<T> {
    id: usize,
    result: Rc<RefCell<Option<T>>>,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and returns what it returned.
    ///
    /// # Panics
    /// Never: a thread that panics ends the execution.
    #[track_caller]
    pub fn join(self) -> T {
        model::join(self.id, Place::here());
        let result = self.result.take();
        result.expect("the result of a thread that has ended")
    }

    /// Returns the number of the thread.
    pub fn id(&self) -> usize {
        self.id
    }
}

/// Creates a thread.
#[track_caller]
pub fn spawn<T: 'static>(code: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    let result = Rc::new(RefCell::new(None));
    let end = result.clone();
    let code = move || {
        let value = code();
        *end.borrow_mut() = Some(value);
    };
    JoinHandle {
        id: model::spawn(code, Place::here()),
        result,
    }
}
