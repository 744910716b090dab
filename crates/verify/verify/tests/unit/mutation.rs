//! Tests of src/mutation.rs, with access to what is private there.

use super::*;

#[test]
fn each_step_goes_down_by_one() {
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    assert_eq!(weaker(Part::Update, AcqRel), [Acquire, Release]);
    assert_eq!(weaker(Part::Update, SeqCst), [AcqRel]);
    assert_eq!(weaker(Part::Load, SeqCst), [Acquire]);
    assert_eq!(weaker(Part::Store, Release), [Relaxed]);
    assert_eq!(weaker(Part::Fence, SeqCst), [AcqRel, Relaxed]);
    assert!(weaker(Part::Failure, Relaxed).is_empty());
}
