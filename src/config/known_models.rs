//! What is known about models before the operator says anything: `models.toml`, and what `stint probe` has learned.
//!
//! An entry tells of all models whose upstream name fits one of its patterns, `*` standing for anything and capitals being
//! as small letters. Of several that fit all count, the ones with more letters over those with fewer, and what was learned
//! over what was shipped.

use std::path::{Path, PathBuf};

use crate::catalog::{Prices, Tariff};
use crate::units::{Chance, Money, Price};

use super::backend::BackendDefaults;
use super::diagnostic::{ConfigErrors, ValueError};
use super::dialect;
use super::kind::{BackendKind, KINDS, SELF_HOSTED_CAPABILITIES};
use super::model::{self, DeclaredModel};
use super::provider;
use super::reader::{Document, Section};
use super::storage;
use super::tariff;

/// What ships with the binary.
const SHIPPED: &str = include_str!("../../config/models.toml");

/// A file of entries, read.
pub(super) struct CatalogFile {
    source: String,
    pub(super) text: String,
}

/// `[catalog]`.
pub(super) struct CatalogSources {
    /// The files that tell of models: the shipped one or the operator's in its place, and what was learned.
    pub(super) files: Vec<CatalogFile>,
    /// Where what is learned is written down.
    pub(super) learned: Option<PathBuf>,
    /// What one's own models are weighed at, where nobody wrote a price for them.
    pub(super) own_price: Tariff,
}

/// What a million tokens of one's own model are taken to cost, read and written: about what a rented GPU comes to with a
/// model of 8 billion parameters and a usual load.
const OWN_PRICE: (Money, Money) = (Money(50_000_000), Money(200_000_000));

/// Reads what is said of the catalogue.
pub(super) fn catalog_sources(root: &Section<'_>) -> CatalogSources {
    let section = root.section("catalog");
    let own_price = own_price(&section);
    let stated = section.path("file").and_then(|path| CatalogFile::read(&section, "file", &path));
    let shipped = || CatalogFile { source: "the shipped models.toml".to_owned(), text: SHIPPED.to_owned() };
    let learned = section.path("learned");
    let learned = learned.or_else(|| storage::data_folder(&section).map(|folder| folder.join("models.toml")));
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
            section.reject(key, ValueError::new(format!("cannot be read: {error}"), "name a readable file"));
        });
        text.ok().map(|text| CatalogFile { source: path.display().to_string(), text })
    }
}

/// The first of the files with which something is wrong.
pub(super) fn first_errors(files: &[CatalogFile], documents: Vec<Document<'_>>) -> Option<ConfigErrors> {
    let each = files.iter().zip(documents).map(|(file, document)| (file, document.errors.into_inner()));
    let (file, mut list) = each.into_iter().find(|(_, list)| !list.is_empty())?;
    list.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    Some(ConfigErrors { source: file.source.clone(), errors: list })
}

/// Entries about models, in the order in which they count.
pub(super) struct KnownModels<'d> {
    entries: Vec<CatalogEntry<'d>>,
    own_price: Tariff,
}

/// The keys by which an entry tells how a model thinks.
const THINKING_KEYS: [&str; 6] =
    ["thinking_max", "classes", "efforts", "thinking", "thinks_always", "starts_in_thinking"];

struct CatalogEntry<'d> {
    /// The kinds of backends that it is about; all where empty.
    kinds: Vec<BackendKind>,
    /// The hosts that it is about; all where empty. Prices belong to a host.
    hosts: Vec<String>,
    patterns: Vec<String>,
    section: Section<'d>,
}

impl<'d> KnownModels<'d> {
    /// The entries of some files, the later ones counting for more. What is wrong with an entry is noted in its file.
    pub(super) fn from_files<'s>(
        files: impl IntoIterator<Item = &'s Section<'d>>,
        own_price: Tariff,
    ) -> KnownModels<'d>
    where
        'd: 's,
    {
        let mut entries = Vec::new();
        for file in files {
            file.require::<String>("version", "write the date of what it says, like \"2026-11-21\"");
            let mut own: Vec<CatalogEntry<'d>> =
                file.sections("model").into_iter().filter_map(CatalogEntry::read).collect();
            own.sort_by_key(CatalogEntry::specificity);
            entries.extend(own);
        }
        KnownModels { entries, own_price }
    }

    /// A model with all that is known of it by its upstream's name.
    pub(super) fn apply_known(
        &self,
        mut model: DeclaredModel,
        base: &BackendDefaults,
        upstream: &str,
    ) -> DeclaredModel {
        for entry in self.entries.iter().filter(|entry| entry.matches(base, upstream)) {
            model::apply(&entry.section, &mut model);
            model.is_thinking_known |= THINKING_KEYS.iter().any(|key| entry.section.has(key));
        }
        add_self_hosted_capabilities(&mut model, base);
        let names = name_variants(upstream);
        model.model.reference = self.reference_price(base, &names);
        model.config.ability = model.config.ability.or_else(|| self.ability(&names));
        provider::adjust_classes(None, &mut model);
        dialect::adjust_classes(None, &mut model);
        dialect::goes_on(&mut model);
        let most = model.kind.possible_services();
        model.model.services.retain(|service| most.contains(service));
        model
    }

    /// What a model is weighed at where nobody writes a price: what the catalogue knows under its name, whoever serves it
    /// there; else what one's own models are taken to cost.
    fn reference_price(&self, base: &BackendDefaults, names: &[String]) -> Option<Tariff> {
        let listed = names.iter().find_map(|name| self.listed_price(base, name));
        listed.or_else(|| base.is_self_hosted().then_some(self.own_price))
    }

    /// How able a model of one of these names is, whoever serves it.
    fn ability(&self, names: &[String]) -> Option<Chance> {
        let of = |name: &String| {
            let named = self.entries.iter().rev().filter(|entry| entry.matches_name(name));
            named.filter_map(|entry| entry.section.within("ability", 0.0..=1.0)).map(Chance::new).next()
        };
        names.iter().find_map(of)
    }

    /// The price of that name at any host.
    fn listed_price(&self, base: &BackendDefaults, name: &str) -> Option<Tariff> {
        let mut price = None;
        let priced = |entry: &&CatalogEntry<'_>| entry.matches_name(name) && entry.section.has("price_input");
        for entry in self.entries.iter().filter(priced) {
            tariff::apply(&entry.section, base.kind, &mut price);
        }
        price
    }
}

/// What an entry says of a model is said of its makers' API; a server of one's own has the rest besides, but for a model that
/// is said to have nothing.
fn add_self_hosted_capabilities(model: &mut DeclaredModel, base: &BackendDefaults) {
    let known = &mut model.model.capabilities;
    let usual =
        if base.is_self_hosted_server() && !known.is_empty() { SELF_HOSTED_CAPABILITIES } else { &[] };
    let lacking: Vec<_> = usual.iter().copied().filter(|capability| !known.contains(capability)).collect();
    known.extend(lacking);
}

impl<'d> CatalogEntry<'d> {
    fn read(section: Section<'d>) -> Option<CatalogEntry<'d>> {
        let remedy = "write the upstream's names that it is about, like [\"some-model*\"]";
        let patterns = section.require::<Vec<String>>("match", remedy);
        let entry = CatalogEntry {
            kinds: section.words("kinds", &KINDS),
            hosts: section.get_or("hosts", Vec::new()),
            patterns: patterns.unwrap_or_default(),
            section,
        };
        entry.check();
        (!entry.patterns.is_empty()).then_some(entry)
    }

    /// Applies the entry once, so that what is wrong with it is found though no model be about it.
    fn check(&self) {
        if self.section.has("name") {
            self.section.reject("name", ValueError::new("not for an entry", "write match = [\"…\"]"));
        }
        let kinds = if self.kinds.is_empty() { &[BackendKind::OpenAi][..] } else { &self.kinds };
        for kind in kinds {
            model::apply(&self.section, &mut model::default_model("", &BackendDefaults::new(*kind), None));
        }
    }

    fn specificity(&self) -> usize {
        self.patterns.iter().map(|pattern| pattern.replace('*', "").len()).min().unwrap_or(0)
    }

    fn matches(&self, base: &BackendDefaults, upstream: &str) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&base.kind))
            && (self.hosts.is_empty() || self.hosts.iter().any(|host| is_host(base.host().as_deref(), host)))
            && self.matches_name(upstream)
    }

    fn matches_name(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| matches_pattern(pattern, name))
    }
}

/// What a model may be known by: whoever passes requests on writes `maker/name`, and may write points for hyphens.
fn name_variants(upstream: &str) -> Vec<String> {
    let short = upstream.rsplit('/').next().unwrap_or(upstream);
    vec![upstream.to_owned(), short.to_owned(), short.replace('.', "-")]
}

/// Whether an upstream is at that host, or below it.
pub(super) fn is_host(at: Option<&str>, host: &str) -> bool {
    at.unwrap_or_default().strip_suffix(host).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a name fits a pattern in which `*` stands for anything, whatever their capitals.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            match rest.find(between) {
                Some(at) => rest = &rest[at + between.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |end: &str| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fitting: &[&str], others: &[&str]) {
        fitting.iter().for_each(|name| assert!(matches_pattern(pattern, name), "{pattern} {name}"));
        others.iter().for_each(|name| assert!(!matches_pattern(pattern, name), "{pattern} {name}"));
    }

    #[test]
    fn a_star_stands_for_anything() {
        check("gpt-5", &["gpt-5"], &["gpt-5-mini", "a-gpt-5"]);
        check("gpt-5*", &["gpt-5", "gpt-5-mini"], &["gpt-4"]);
        check("*qwen3*", &["qwen3", "a/qwen3-8b"], &["qwen2"]);
        check(
            "claude-*-4-5*",
            &["claude-opus-4-5", "claude-sonnet-4-5-20250929"],
            &["claude-4-5", "claude-opus-4"],
        );
        check("a*b*a", &["aba", "abba"], &["ab", "aa"]);
        check("*qwen3*Thinking*", &["Qwen/Qwen3-4B-Thinking-2507", "qwen3-4b-thinking"], &["Qwen/Qwen3-4B"]);
    }

    #[test]
    fn a_host_is_about_itself_and_what_is_below_it() {
        assert!(is_host(Some("api.openai.com"), "openai.com"));
        assert!(is_host(Some("openai.com"), "openai.com"));
        assert!(!is_host(Some("notopenai.com"), "openai.com"));
        assert!(!is_host(Some("openai.com.evil.example"), "openai.com"));
        assert!(!is_host(None, "openai.com"));
    }
}
