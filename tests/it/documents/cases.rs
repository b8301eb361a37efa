//! The table of cases names tests that there are, and each of them says the case's id.

use std::collections::BTreeSet;
use std::fs;

const TABLE: &str = "docs/reference/cases.md";

/// Groups of cases that the table has all of.
const GROUPS: [&str; 5] = ["AU-", "IN-", "CF-", "SC-", "OB-"];

#[test]
fn every_case_names_tests_that_there_are() {
    let table = fs::read_to_string(TABLE).unwrap();
    let (mut ids, mut faults) = (BTreeSet::new(), Vec::new());
    for row in table.lines().filter(|line| GROUPS.iter().any(|group| line.starts_with(&format!("| {group}"))))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (id, tests) = (cells[1], cells[3]);
        if !ids.insert(id.to_owned()) {
            faults.push(format!("{id} stands twice"));
        }
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            faults.push(format!("{id} has no test"));
        }
        faults.extend(tests.iter().filter_map(|test| Some(format!("{id}: {test} {}", fault(id, test)?))));
    }
    assert!(ids.len() > 70, "the table is not read: {ids:?}");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// What is wrong with a test as that of a case.
fn fault(id: &str, test: &str) -> Option<&'static str> {
    let Some((file, name)) = test.split_once("::") else { return Some("has no name behind ::") };
    let Ok(text) = fs::read_to_string(file) else { return Some("is in no file") };
    if !file.ends_with(".rs") {
        return (!text.contains(name)).then_some("is not in that file");
    }
    let Some(at) = text.find(&format!("fn {name}(")) else { return Some("is not in that file") };
    let above = text[..at].rsplit_once('\n').map_or("", |(above, _)| above).lines().rev();
    let head: Vec<&str> =
        above.take_while(|line| !line.trim().is_empty() && !line.starts_with('}')).collect();
    if !head.iter().any(|line| line.contains("test]") || line.contains("test(")) {
        return Some("is no test");
    }
    let says = |line: &str| line.trim_start().starts_with("//") && line.contains(id);
    let module = text.lines().take_while(|line| line.starts_with("//!"));
    (!head.into_iter().chain(module).any(says)).then_some("does not say the case's id")
}

#[test]
fn a_test_that_is_not_there_or_says_no_id_is_found() {
    let here = "tests/it/documents/cases.rs";
    // AU-01 stands in no comment above a test of this file.
    assert_eq!(fault("AU-01", &format!("{here}::nothing")), Some("is not in that file"));
    assert_eq!(fault("AU-01", "tests/it/nowhere.rs::nothing"), Some("is in no file"));
    assert_eq!(fault("AU-01", &format!("{here}::fault")), Some("is no test"));
    let own = format!("{here}::every_case_names_tests_that_there_are");
    assert_eq!(fault("AU-01", &own), Some("does not say the case's id"));
    assert_eq!(fault("AU-01", "tests/it/access.rs::every_route_lets_in_whom_its_row_says"), None);
    assert_eq!(fault("SC-08", "scripts/audit.sh::planted_advisories"), None);
}
