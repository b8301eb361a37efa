//! What is known about models without any configuration: `models.toml`, and what `stint probe` has learned.
//!
//! An entry describes all models whose upstream name matches one of its patterns. `*` matches anything, and case does not
//! matter. If several entries match, all count: entries with more letters override those with fewer, and what was learned
//! overrides what was shipped.

use crate::config::reader::Section;
use stint_decide::estimate::ability::{AbilityEvidence, Relative, SHIPPED, guess_ability};
use stint_types::catalog::{Capability, Tariff};

use super::declared_model::DeclaredModel;
use super::default_model::default_model;
use super::defaults::BackendDefaults;
use super::host::is_host;
use super::kind::{BackendKind, KINDS, SELF_HOSTED_CAPABILITIES};
use super::model_source::ModelSource;
use super::{ability, dialect, model_keys, provider, tariff};

/// Entries about models, in the order in which they count.
pub(in crate::config) struct KnownModels<'d> {
    entries: Vec<CatalogEntry<'d>>,
    /// The models whose scores were published, to guess others by.
    relatives: Vec<Relative>,
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
    ability: Option<AbilityEvidence>,
    section: Section<'d>,
}

impl<'d> KnownModels<'d> {
    /// The entries of some files, the later ones counting for more. What is wrong with an entry is noted in its file.
    pub(in crate::config) fn from_files<'s>(
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
        let relatives = entries.iter().filter_map(CatalogEntry::relative).collect();
        KnownModels { entries, relatives, own_price }
    }

    /// A model with all that is known of it by its upstream's name.
    pub(super) fn apply_known(
        &self,
        mut model: DeclaredModel,
        base: &BackendDefaults,
        upstream: &str,
    ) -> DeclaredModel {
        for entry in self.entries.iter().filter(|entry| entry.matches(base, upstream)) {
            model_keys::apply(&entry.section, &mut model);
            model.is_thinking_known |= THINKING_KEYS.iter().any(|key| entry.section.has(key));
        }
        if let ModelSource::File(_, local) = &mut model.config.source {
            // The file's own template counts for more than a name.
            local.settings.tool_syntax_usual = local.settings.tool_syntax.take();
        }
        add_self_hosted_capabilities(&mut model, base);
        let names = name_variants(upstream);
        let listed = names.iter().find_map(|name| self.listed_price(base, name));
        model.is_price_listed = listed.is_some();
        model.model.reference = self.reference_price(base, listed);
        if model.config.ability.is_none() {
            self.find_ability(&names, &mut model);
        }
        provider::adjust_classes(None, &mut model);
        dialect::adjust_classes(None, &mut model);
        dialect::goes_on(&mut model);
        let most = model.kind.possible_services();
        model.model.services.retain(|service| most.contains(service));
        model
    }

    /// What a model is weighed at where nobody writes a price: what the catalogue knows under its name, at any host
    /// there; else what one's own models are taken to cost.
    fn reference_price(&self, base: &BackendDefaults, listed: Option<Tariff>) -> Option<Tariff> {
        listed.or_else(|| base.is_self_hosted().then_some(self.own_price))
    }

    /// How able a model of one of these names is, at any host; else what the models tell that it is named like.
    fn find_ability(&self, names: &[String], model: &mut DeclaredModel) {
        let of = |name: &String| {
            let mut named = self.entries.iter().rev().filter(|entry| entry.matches_name(name));
            named.find_map(|entry| entry.ability.clone())
        };
        let found = names.iter().find_map(of);
        model.config.ability = Some(found.unwrap_or_else(|| {
            let name = names.first().map_or("", String::as_str);
            let (guess, from) = guess_ability(&SHIPPED, name, &self.relatives);
            model.model.ability_guess = Some(from);
            AbilityEvidence::Guessed(guess)
        }));
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
    let has_logprobs = reports_logprobs(model);
    let known = &mut model.model.capabilities;
    let usual =
        if base.is_self_hosted_server() && !known.is_empty() { SELF_HOSTED_CAPABILITIES } else { &[] };
    let can_be = |capability: &Capability| *capability != Capability::Logprobs || has_logprobs;
    let lacking: Vec<_> = usual.iter().copied().filter(|it| !known.contains(it) && can_be(it)).collect();
    known.extend(lacking);
}

/// False for a model that reports no chances of tokens while it thinks, and has no word for that it is not to think.
fn reports_logprobs(model: &DeclaredModel) -> bool {
    let (ModelSource::OpenAi(settings) | ModelSource::Vllm(settings)) = &model.config.source else {
        return true;
    };
    let is_omitted = settings.dialect.omits_thinking.iter().any(|word| word == "logprobs");
    !is_omitted || model.model.efforts.iter().any(|level| level.word == "none")
}

impl<'d> CatalogEntry<'d> {
    fn read(section: Section<'d>) -> Option<CatalogEntry<'d>> {
        let remedy = "write the upstream's names that it is about, like [\"some-model*\"]";
        let patterns = section.require::<Vec<String>>("match", remedy);
        let entry = CatalogEntry {
            kinds: section.words("kinds", &KINDS),
            hosts: section.get_or("hosts", Vec::new()),
            patterns: patterns.unwrap_or_default(),
            ability: ability::read(&section),
            section,
        };
        entry.check();
        (!entry.patterns.is_empty()).then_some(entry)
    }

    /// Applies the entry once, so that what is wrong with it is found though no model be about it.
    fn check(&self) {
        check_provenance(&self.section);
        if self.section.has("name") {
            self.section.reject("name", "not for an entry", "write match = [\"…\"]");
        }
        let kinds = if self.kinds.is_empty() { &[BackendKind::OpenAi][..] } else { &self.kinds };
        for kind in kinds {
            model_keys::apply(&self.section, &mut default_model("", &BackendDefaults::new(*kind), None));
        }
    }

    /// The model that it is about, to guess others by.
    fn relative(&self) -> Option<Relative> {
        ability::relative(self.patterns.first()?, self.ability.as_ref()?)
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

/// An entry may say which page it is from, and the day on which somebody last looked there.
fn check_provenance(section: &Section<'_>) {
    let source = section.get::<String>("source");
    if source.is_some_and(|source| source.trim().is_empty()) {
        section.reject("source", "empty", "name the page that it is from");
    }
    let checked = section.get::<String>("checked");
    if checked.is_some_and(|day| day.parse::<jiff::civil::Date>().is_err()) {
        section.reject("checked", "no date", "write the day on which it was checked, like \"2026-11-23\"");
    }
}

/// What a model may be known by: aggregators write `maker/name`, and may write points for hyphens.
fn name_variants(upstream: &str) -> Vec<String> {
    let short = upstream.rsplit('/').next().unwrap_or(upstream);
    vec![upstream.to_owned(), short.to_owned(), short.replace('.', "-")]
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
}
