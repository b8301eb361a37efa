//! `docs/metrics.md`: every series, by subject.

use std::fmt::Write;

use stint_types::metrics::SeriesDescription;

use super::{is_up_to_date, series};

const HEAD: &str = "# Metrics\n\n\
Every series of `/metrics`. This page is made from what the server says of them. [Operating](operating.md#watching-it) says which\n\
to look at first. [A dashboard](../deploy/grafana/stint.json) shows them all. [Alerts](../deploy/prometheus/alerts.yml) watch them.\n\n\
Labels are names of the configuration or words of a list, never a key, a prompt or free text. A histogram `x` has the series\n\
`x_bucket`, `x_sum` and `x_count`.\n";

fn page() -> String {
    let (mut page, mut subject) = (HEAD.to_owned(), "");
    for series in series() {
        if series.subject != subject {
            subject = series.subject;
            write!(page, "\n## {subject}\n\n| series | type | labels | unit | |\n|---|---|---|---|---|\n")
                .unwrap();
        }
        let labels: Vec<String> = series.labels.iter().map(|label| format!("`{label}`")).collect();
        let SeriesDescription { name, kind, help, .. } = &series;
        let (kind, labels, unit) = (kind.as_str(), labels.join(", "), series.unit().as_str());
        writeln!(page, "| `{name}` | {kind} | {labels} | {unit} | {} |", help.replace('|', "\\|")).unwrap();
    }
    page
}

#[test]
fn the_reference_page_names_every_series() {
    is_up_to_date("docs/metrics.md", &page());
}

#[test]
fn every_series_is_described_once_and_in_words() {
    let all = series();
    for series in &all {
        assert_eq!(all.iter().filter(|other| other.name == series.name).count(), 1, "{}", series.name);
        assert!(series.help.len() > 10 && !series.subject.is_empty(), "{series:?}");
        let is_counter = series.kind.as_str() == "counter";
        assert_eq!(series.name.ends_with("_total"), is_counter, "{}", series.name);
    }
}
