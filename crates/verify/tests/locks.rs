//! Every lock of the catalogue keeps its promises within the bounds of the
//! default suite.

use locklab_locks::catalogue;
use locklab_verify::{Limits, Outcome, check, properties_of};

#[test]
fn every_lock_keeps_its_promises() {
    for entry in catalogue::ALL {
        let name = entry.info.name;
        for property in properties_of(name).expect("the catalogue lists it") {
            if property.thorough {
                continue;
            }
            let limits = Limits {
                executions: 20_000,
                ..Limits::default()
            };
            let explored = check(&property, limits, None);
            if let Outcome::Fails(failure) = explored.outcome {
                panic!(
                    "{name}, {}: {}\n{}",
                    property.name,
                    failure.message,
                    failure.trace.join("\n")
                );
            }
        }
    }
}
