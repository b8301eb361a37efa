//! Fits how success at questions with free answers goes with ability and with the usual length of a thought, and says how far
//! what is foretold is from what was published and judged.
//!
//! A question's length comes from weights that were fitted without it (by thirds), but for GSM8K's test, which nothing was
//! fitted on.

mod exam;
mod fit;
mod published;
mod report;

use std::error::Error;
use std::path::Path;

use stint_decide::estimate;

pub use report::constants;

/// The constants, and the report.
///
/// # Errors
/// When the data, the catalogue or the weights that ship cannot be read.
pub fn make(folder: &Path, catalogue: &Path) -> Result<(String, String), Box<dyn Error>> {
    let exams = exam::exams(folder, catalogue, &estimate::shipped()?)?;
    let scale = fit::fit(&exams);
    let text = report::report(&scale, &exams);
    print!("{text}");
    Ok((constants(&scale), text))
}
