//! What was measured: a table, a picture, and the file that the configuration reads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::output::align_columns;
use stint_lab::simulate::{Chart, ChartSeries, LineStyle};
use stint_types::catalog::{CurvePoint, CurveRecord};

/// Why it cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportError {
    #[error("{0} cannot be written")]
    File(PathBuf, #[source] std::io::Error),
    #[error("the curve cannot be written as TOML")]
    Toml(#[from] toml::ser::Error),
    #[error("the curve cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// The points as a table.
pub(super) fn table(points: &[CurvePoint]) -> String {
    let head = ["budget", "answers", "right", "95 % from", "to", "thought", "cut", "USD each"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    rows.extend(points.iter().map(|point| {
        vec![
            point.budget.to_string(),
            point.answers.to_string(),
            percent(share(point)),
            percent(point.low),
            percent(point.high),
            format!("{:.0}", point.thought),
            percent(point.cut),
            format!("{:.8}", point.cost_usd),
        ]
    }));
    align_columns(&rows, 0)
}

/// Accuracy against thinking budget, with its interval.
pub(super) fn chart(model: &str, points: &[CurvePoint]) -> Chart {
    let line = |name: &str, style, height: &dyn Fn(&CurvePoint) -> f64| {
        let place = |point: &CurvePoint| ((1.0 + point.budget.as_f64()).log2(), 100.0 * height(point));
        ChartSeries { name: name.to_owned(), points: points.iter().map(place).collect(), style }
    };
    Chart {
        title: format!("{model}: accuracy against thinking budget"),
        x_label: "thinking budget, as log2 of 1 + its tokens".to_owned(),
        y_label: "% right".to_owned(),
        series: vec![
            line("right", LineStyle::Line, &share),
            line("95 % from", LineStyle::Dashed, &|point| point.low),
            line("95 % to", LineStyle::Dashed, &|point| point.high),
            line("measured", LineStyle::Dot, &share),
        ],
    }
}

fn share(point: &CurvePoint) -> f64 {
    f64::from(point.right) / f64::from(point.answers.max(1))
}

/// The record as the configuration reads it.
fn toml(record: &CurveRecord) -> Result<String, ReportError> {
    Ok(format!(
        "# What `stint curve` measured of {}. `curve = \"…\"` in its [[backend.model]] names this file; plans then go by [curve],\n\
         # and the points are for people.\n\n{}",
        record.model,
        toml::to_string(record)?
    ))
}

/// Writes the record as TOML and JSON, and the picture; their paths come back.
pub(super) fn write(folder: &Path, record: &CurveRecord) -> Result<[PathBuf; 3], ReportError> {
    let name = file_name(&record.model);
    let paths = ["toml", "json", "svg"].map(|kind| folder.join(format!("{name}.curve.{kind}")));
    let texts = [
        toml(record)?,
        serde_json::to_string_pretty(record)? + "\n",
        chart(&record.model, &record.points).svg(),
    ];
    fs::create_dir_all(folder).map_err(|cause| ReportError::File(folder.to_owned(), cause))?;
    for (path, text) in paths.iter().zip(texts) {
        fs::write(path, text).map_err(|cause| ReportError::File(path.clone(), cause))?;
    }
    Ok(paths)
}

/// A model's name as part of a file's.
pub(super) fn file_name(model: &str) -> String {
    model.replace(|character: char| !character.is_ascii_alphanumeric() && !".-_".contains(character), "-")
}
