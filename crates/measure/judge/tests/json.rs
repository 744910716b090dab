//! The shape of the `serde` feature, which stored verdicts rely on.

use locklab_judge::{Comparison, Direction, Family, Order, Pair, Settings, Verdict, judge};

#[test]
fn verdicts_and_unknown_limits_as_json() {
    let pairs = vec![Pair::new(1.0, 2.0, Order::BaselineFirst); 3];
    let comparison = Comparison::primary(pairs, Direction::HigherIsBetter);
    let judged = judge(&[comparison], &Settings::default()).unwrap();
    let json = serde_json::to_value(&judged[0]).unwrap();
    assert_eq!(json["role"], "primary");
    assert_eq!(
        json["verdict"],
        serde_json::json!({"unclear": {"detectable": null, "pairs_for_flat": null}})
    );
    assert!(json["estimate"]["ci95"]["low"].is_null());
    assert_eq!(serde_json::to_value(Verdict::Better).unwrap(), "better");
}

#[test]
fn settings_from_json_keep_the_defaults_and_refuse_what_they_do_not_know() {
    let settings: Settings =
        serde_json::from_str(r#"{"delta": 0.02, "family": "false_discovery"}"#).unwrap();
    let expected = Settings {
        delta: 0.02,
        family: Family::FalseDiscovery,
        ..Settings::default()
    };
    assert_eq!(settings, expected);
    assert!(serde_json::from_str::<Settings>(r#"{"alpha": 0.1}"#).is_err());
}
