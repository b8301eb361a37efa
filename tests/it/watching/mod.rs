//! What Prometheus and Grafana are given: the reference of the series, the dashboard, the alerts. All three are made from the
//! descriptions that the series carry; `STINT_UPDATE=1 cargo test --test it -- watching` writes them anew.

mod alert_table;
mod alerts;
mod dashboard;
mod panels;
mod prometheus;
mod reference;
mod scraping;

use std::path::Path;

use stint_types::metrics::{Metrics, SeriesDescription};

/// Every series.
fn series() -> Vec<SeriesDescription> {
    Metrics::new().unwrap().descriptions().to_vec()
}

/// Holds a file of the repository to what is made now.
pub(crate) fn is_up_to_date(path: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("STINT_UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == made, "{path} is stale: write it anew by running this test with STINT_UPDATE=1");
}

/// The names of series in an expression, without what histograms add to them.
fn names_in(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c: char| !is_name(c));
    let ours = words.filter(|word| word.starts_with("stint_") || word.starts_with("process_"));
    let bare = |word: &str| {
        let ends = ["_bucket", "_sum", "_count"];
        ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned()
    };
    ours.map(bare).collect()
}
