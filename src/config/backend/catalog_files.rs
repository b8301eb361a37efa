//! `[catalog]`: the files that tell of models, and what one's own models are weighed at.

use std::path::{Path, PathBuf};

use crate::config::reader::{ConfigErrors, Document, ReadContext, Section, source};
use crate::config::storage::data_folder;
use stint_types::catalog::{Prices, Tariff};
use stint_types::regular_file;
use stint_types::units::{Money, Price};

use super::known_models::KnownModels;
use super::openrouter::PriceCache;

/// What ships with the binary.
const SHIPPED: &str = include_str!("../../../config/models.toml");

/// A file of entries, read.
pub(in crate::config) struct CatalogFile {
    source: String,
    pub(in crate::config) text: String,
}

/// `[catalog]`.
pub(in crate::config) struct CatalogSources {
    /// The files that tell of models: `OpenRouter`'s prices, the shipped one or the operator's in its place, and what was learned.
    pub(in crate::config) files: Vec<CatalogFile>,
    /// Where `OpenRouter`'s prices are kept, if they are.
    pub(in crate::config) prices: Option<PriceCache>,
    /// Where what is learned is written down.
    pub(in crate::config) learned: Option<PathBuf>,
    /// What one's own models are weighed at, where nobody wrote a price for them.
    pub(in crate::config) own_price: Tariff,
}

/// What a million tokens of one's own model are taken to cost, read and written: about what a rented GPU comes to with a
/// model of 8 billion parameters and a usual load.
const OWN_PRICE: (Money, Money) = (Money(50_000_000), Money(200_000_000));

/// Reads the section of the catalogue.
pub(in crate::config) fn catalog_sources(root: &Section<'_>, place: ReadContext<'_>) -> CatalogSources {
    let section = root.section("catalog");
    let own_price = own_price(&section);
    let stated = section.path("file").and_then(|path| CatalogFile::read(&section, "file", &path));
    let shipped = || CatalogFile { source: "the shipped models.toml".to_owned(), text: SHIPPED.to_owned() };
    let learned = section.path("learned");
    let learned = learned.or_else(|| data_folder(&section).map(|folder| folder.join("models.toml")));
    // Nothing need have been learned yet.
    let there = learned.as_ref().filter(|path| section.document().files.exists(path));
    let there = there.and_then(|path| CatalogFile::read(&section, "learned", path));
    let prices = PriceCache::read(&section);
    let listed = prices.as_ref().and_then(|prices| cached_prices(&section, &prices.file, place, own_price));
    let files = listed.into_iter().chain([stated.unwrap_or_else(shipped)]).chain(there).collect();
    CatalogSources { files, prices, learned, own_price }
}

/// The prices that were kept. They are asked for again soon, so what is wrong with them keeps nobody from serving.
fn cached_prices(
    section: &Section<'_>,
    path: &Path,
    place: ReadContext<'_>,
    own_price: Tariff,
) -> Option<CatalogFile> {
    // They may be written at any time, and whole each time: that others write them is no change of the configuration.
    let text = regular_file::read_to_string(path).ok()?;
    let document = Document::new(&text, place);
    if let Some(table) = source::parse(&document) {
        KnownModels::from_files([&Section::root(&document, &table)], own_price);
    }
    let mistake = document.errors.into_inner().into_iter().next();
    if let Some(mistake) = mistake {
        let what = format!("its prices in {} are not used: {mistake}", path.display());
        section.warn("openrouter_file", what, "remove the file; it is written again");
        return None;
    }
    Some(CatalogFile { source: path.display().to_string(), text })
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
