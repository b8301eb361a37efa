//! The bill of the gateway itself.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

use serde_json::Value;

fn bill(flags: &[&str]) -> String {
    sbom::bill(&flags.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

/// The names of what is linked.
fn linked(bill: &str) -> Vec<String> {
    let bill: Value = serde_json::from_str(bill).unwrap();
    let components = bill["components"].as_array().unwrap().iter();
    let linked = components.filter(|component| component["scope"] == "required");
    linked.map(|component| component["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_bill_has_what_is_in_the_binary_and_nothing_that_only_tests_need() {
    let whole = linked(&bill(&[]));
    for name in ["rustls", "aws-lc-sys", "libsqlite3-sys", "sqlx-postgres", "wgpu", "stint-engine"] {
        assert!(whole.iter().any(|known| known == name), "{name} is not there");
    }
    for name in ["proptest", "shuttle", "rcgen", "ring", "sqlx-mysql", "syn", "serde_derive", "oracle"] {
        assert!(!whole.iter().any(|known| known == name), "{name} is there");
    }
}

#[test]
fn without_its_features_the_binary_is_made_of_less() {
    let small = linked(&bill(&["--no-default-features"]));
    for name in ["wgpu", "sqlx-postgres", "stint-engine"] {
        assert!(!small.iter().any(|known| known == name), "{name} is there");
    }
    assert!(small.iter().any(|known| known == "libsqlite3-sys"));
}

#[test]
fn the_bill_is_the_same_each_time_and_names_no_place() {
    let one = bill(&[]);
    assert_eq!(one, bill(&[]));
    let here = std::env::current_dir().unwrap();
    assert!(!one.contains(here.parent().unwrap().to_str().unwrap()));
    assert!(!one.contains("timestamp") && !one.contains("serialNumber"));
}

#[test]
fn every_crate_of_the_registry_has_its_checksum_and_its_licence() {
    let bill: Value = serde_json::from_str(&bill(&[])).unwrap();
    for component in bill["components"].as_array().unwrap() {
        let is_own = component["name"].as_str().unwrap().starts_with("stint-");
        let checksum = component["hashes"][0]["content"].as_str();
        assert_eq!(checksum.map(str::len), (!is_own).then_some(64), "{component}");
        assert!(!component["licenses"][0]["expression"].as_str().unwrap().is_empty(), "{component}");
    }
}
