//! Tests that need the connection itself.

use super::*;
use crate::experiment::{Design, Labels, Provenance};
use locklab_judge::Family;

#[test]
fn a_full_disk_is_called_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let pages: i64 = store
        .db
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    store
        .db
        .pragma_update(None, "max_page_count", pages)
        .unwrap();
    let header = Experiment {
        kind: "matrix".into(),
        labels: Labels::new("ticket", "mcs"),
        spec: serde_json::Value::Null,
        design: Design {
            family: Family::Holm,
            ..Design::usual(8)
        },
        provenance: Provenance::Hardware("test".into()),
        facts: vec![],
        caveats: vec![],
        cells: vec![],
        interrupted: None,
    };
    let failed = (0..1000).find_map(|_| store.begin("key", "", &header).err());
    assert!(failed.unwrap().to_string().ends_with("the disk is full"));
}
