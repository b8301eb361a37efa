//! `curve`: the file in which `stint curve` wrote what it measured of a model.

use std::sync::Arc;

use crate::config::reader::Section;
use stint_types::catalog::CurveRecord;

/// What was measured of a model, where its section names a file.
pub(super) fn read(section: &Section<'_>) -> Option<Arc<CurveRecord>> {
    const KEY: &str = "curve";
    const REMEDY: &str = "name a file that `stint curve` wrote";
    let path = section.path(KEY)?;
    let text = section.document().files.read(&path).map_err(|error| {
        section.reject(KEY, format!("{} cannot be read: {error}", path.display()), REMEDY);
    });
    let record: Result<CurveRecord, toml::de::Error> = toml::from_str(&text.ok()?);
    let record = record.map_err(|error| {
        section.reject(KEY, format!("{} is no measured curve: {}", path.display(), error.message()), REMEDY);
    });
    let record = record.ok()?;
    if !record.curve.is_sound() {
        section.reject(KEY, format!("{} has numbers that no model has", path.display()), "measure it again");
        return None;
    }
    Some(Arc::new(record))
}
