//! `deploy/prometheus/alerts.yml`: the alerts as Prometheus reads them, tried by its own tool.

use std::fmt::Write;
use std::path::Path;

use serde_json::json;

use super::alert_table::{Alert, Severity, alerts};
use super::prometheus::promtool;
use super::{is_up_to_date, names_in, series};

const FILE: &str = "deploy/prometheus/alerts.yml";
const PAGE: &str = "docs/operations/alerts.md";

const HEAD: &str = "# Made from tests/it/watching/alert_table.rs, which tries each of them. The job that scrapes the gateways is called stint.\n\
groups:\n  - name: stint\n    rules:\n";

/// Text as YAML takes it: JSON is YAML.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

fn rules() -> String {
    let mut rules = HEAD.to_owned();
    for alert in alerts() {
        let Alert { name, expression, hold, severity, summary, remedy, .. } = alert;
        let (severity, expression) = (severity.as_str(), quoted(expression));
        writeln!(rules, "      - alert: {name}\n        expr: {expression}\n        for: {hold}").unwrap();
        writeln!(rules, "        labels: {{ severity: {severity} }}").unwrap();
        let (summary, remedy) = (quoted(summary), quoted(remedy));
        writeln!(
            rules,
            "        annotations:\n          summary: {summary}\n          description: {remedy}"
        )
        .unwrap();
    }
    rules
}

/// The summary as it is sent.
fn with_labels(text: &str, labels: &[(&str, &str)]) -> String {
    labels.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{ $labels.{name} }}}}"), value)
    })
}

/// What `promtool test rules` is to try: each alert at the end of an hour that raises it, and at that of one that does not.
fn trials(file: &str) -> String {
    let mut tests = Vec::new();
    for alert in alerts() {
        for (values, is_raised) in [(alert.fires, true), (alert.quiet, false)] {
            let series: Vec<_> =
                values.iter().map(|(series, values)| json!({ "series": series, "values": values })).collect();
            let mut labels = serde_json::Map::new();
            labels.insert("severity".into(), alert.severity.as_str().into());
            labels.extend(alert.labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
            let told = json!({
                "exp_labels": labels,
                "exp_annotations": {
                    "summary": with_labels(alert.summary, alert.labels), "description": alert.remedy,
                },
            });
            tests.push(json!({
                "interval": "1m",
                "input_series": series,
                "alert_rule_test": [{
                    "eval_time": "60m",
                    "alertname": alert.name,
                    "exp_alerts": if is_raised { vec![told] } else { Vec::new() },
                }],
            }));
        }
    }
    json!({ "rule_files": [file], "evaluation_interval": "1m", "tests": tests }).to_string()
}

#[test]
fn the_file_of_alerts_is_the_tables() {
    is_up_to_date(FILE, &rules());
}

/// The page for those who were woken, in its two parts: by night and by day.
#[test]
fn every_alert_is_on_the_page_with_a_first_command() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let (night, day) = page.split_once("## In working hours").unwrap();
    for alert in alerts() {
        let part = if alert.severity == Severity::Page { night } else { day };
        let row = part.lines().find(|line| line.starts_with(&format!("| `{}` |", alert.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in its part of {PAGE}", alert.name));
        let cells: Vec<&str> = row.split(" | ").collect();
        assert!(cells.len() == 4 && cells[2].starts_with('`'), "{row}");
    }
}

#[test]
fn every_alert_asks_for_series_that_there_are() {
    let known: Vec<String> = series().into_iter().map(|series| series.name).collect();
    for alert in alerts() {
        for name in names_in(alert.expression) {
            assert!(known.contains(&name), "{name} in {}", alert.name);
        }
    }
}

/// OB-03: by Prometheus' own tool.
#[test]
fn every_alert_is_raised_by_its_fault_and_quiet_otherwise() {
    let folder = tempfile::TempDir::new().unwrap();
    let rules_file = folder.path().join("alerts.yml");
    std::fs::write(&rules_file, rules()).unwrap();
    promtool(&["check", "rules", rules_file.to_str().unwrap()]);
    let trials_file = folder.path().join("trials.yml");
    std::fs::write(&trials_file, trials("alerts.yml")).unwrap();
    promtool(&["test", "rules", trials_file.to_str().unwrap()]);
}

#[test]
fn promtool_finds_nothing_wrong_with_the_file_of_alerts() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    promtool(&["check", "rules", file.to_str().unwrap()]);
}
