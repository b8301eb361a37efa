//! `[catalog]`: the files that tell of models, and what one's own models are weighed at.

use std::path::{Path, PathBuf};

use crate::config::reader::{ConfigErrors, Document, Section};
use crate::config::storage::data_folder;
use stint_types::catalog::{Prices, Tariff};
use stint_types::units::{Money, Price};

/// What ships with the binary.
const SHIPPED: &str = include_str!("../../../config/models.toml");

/// A file of entries, read.
pub(in crate::config) struct CatalogFile {
    source: String,
    pub(in crate::config) text: String,
}

/// `[catalog]`.
pub(in crate::config) struct CatalogSources {
    /// The files that tell of models: the shipped one or the operator's in its place, and what was learned.
    pub(in crate::config) files: Vec<CatalogFile>,
    /// Where what is learned is written down.
    pub(in crate::config) learned: Option<PathBuf>,
    /// What one's own models are weighed at, where nobody wrote a price for them.
    pub(in crate::config) own_price: Tariff,
}

/// What a million tokens of one's own model are taken to cost, read and written: about what a rented GPU comes to with a
/// model of 8 billion parameters and a usual load.
const OWN_PRICE: (Money, Money) = (Money(50_000_000), Money(200_000_000));

/// Reads the section of the catalogue.
pub(in crate::config) fn catalog_sources(root: &Section<'_>) -> CatalogSources {
    let section = root.section("catalog");
    let own_price = own_price(&section);
    let stated = section.path("file").and_then(|path| CatalogFile::read(&section, "file", &path));
    let shipped = || CatalogFile { source: "the shipped models.toml".to_owned(), text: SHIPPED.to_owned() };
    let learned = section.path("learned");
    let learned = learned.or_else(|| data_folder(&section).map(|folder| folder.join("models.toml")));
    // Nothing need have been learned yet.
    let there = learned.as_ref().filter(|path| section.document().files.exists(path));
    let there = there.and_then(|path| CatalogFile::read(&section, "learned", path));
    let files = std::iter::once(stated.unwrap_or_else(shipped)).chain(there).collect();
    CatalogSources { files, learned, own_price }
}

/// `own_price = { input = "…", output = "…" }`.
fn own_price(catalog: &Section<'_>) -> Tariff {
    let section = catalog.section("own_price");
    let price = |key, usual| Price { per_million_tokens: section.get_or(key, usual) };
    Tariff::plain(Prices { input: price("input", OWN_PRICE.0), output: price("output", OWN_PRICE.1) })
}

impl CatalogFile {
    fn read(section: &Section<'_>, key: &str, path: &Path) -> Option<CatalogFile> {
        let text = section.document().files.read(path).map_err(|error| {
            section.reject(key, format!("cannot be read: {error}"), "name a readable file");
        });
        text.ok().map(|text| CatalogFile { source: path.display().to_string(), text })
    }
}

/// The first of the files with which something is wrong.
pub(in crate::config) fn first_errors(
    files: &[CatalogFile],
    documents: Vec<Document<'_>>,
) -> Option<ConfigErrors> {
    let each = files.iter().zip(documents).map(|(file, document)| (file, document.errors.into_inner()));
    let (file, mut list) = each.into_iter().find(|(_, list)| !list.is_empty())?;
    list.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    Some(ConfigErrors { source: file.source.clone(), errors: list })
}
