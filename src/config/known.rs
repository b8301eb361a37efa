//! What is known about models before the operator says anything: `models.toml`, and what `stint probe` has learned.
//!
//! An entry tells of all models whose upstream name fits one of its patterns, `*` standing for anything and capitals being
//! as small letters. Of several that fit all count, the ones with more letters over those with fewer, and what was learned
//! over what was shipped.

use std::path::{Path, PathBuf};

use super::backend::Base;
use super::dialect;
use super::kind::{KINDS, Kind, OWN_CAPABILITIES};
use super::mistake::{Mistakes, Wrong};
use super::model::{self, Declared};
use super::provider;
use super::reader::{Document, Section};
use super::storage;

/// What ships with the binary.
const SHIPPED: &str = include_str!("../../config/models.toml");

/// A file of entries, read.
pub(super) struct File {
    source: String,
    pub(super) text: String,
}

/// The files that tell of models: the shipped one or the operator's in its place, and what was learned; and where that
/// is written down.
pub(super) fn files(root: &Section<'_>) -> (Vec<File>, Option<PathBuf>) {
    let section = root.section("catalog");
    let stated = section.path("file").and_then(|path| File::read(&section, "file", &path));
    let shipped = || File { source: "the shipped models.toml".to_owned(), text: SHIPPED.to_owned() };
    let learned = section.path("learned");
    let learned = learned.or_else(|| storage::folder(&section).map(|folder| folder.join("models.toml")));
    // Nothing need have been learned yet.
    let there = learned.as_ref().filter(|path| section.document().files.is_there(path));
    let there = there.and_then(|path| File::read(&section, "learned", path));
    (std::iter::once(stated.unwrap_or_else(shipped)).chain(there).collect(), learned)
}

impl File {
    fn read(section: &Section<'_>, key: &str, path: &Path) -> Option<File> {
        let text = section.document().files.read(path).map_err(|error| {
            section.wrong(key, Wrong::new(format!("cannot be read: {error}"), "name a readable file"));
        });
        text.ok().map(|text| File { source: path.display().to_string(), text })
    }
}

/// The first of the files with which something is wrong.
pub(super) fn mistaken(files: &[File], documents: Vec<Document<'_>>) -> Option<Mistakes> {
    let each = files.iter().zip(documents).map(|(file, document)| (file, document.mistakes.into_inner()));
    let (file, mut list) = each.into_iter().find(|(_, list)| !list.is_empty())?;
    list.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    Some(Mistakes { source: file.source.clone(), list })
}

/// Entries about models, in the order in which they count.
pub(super) struct Known<'d>(Vec<Entry<'d>>);

struct Entry<'d> {
    /// The kinds of backends that it is about; all where empty.
    kinds: Vec<Kind>,
    /// The hosts that it is about; all where empty. Prices belong to a host.
    hosts: Vec<String>,
    patterns: Vec<String>,
    section: Section<'d>,
}

impl<'d> Known<'d> {
    /// The entries of some files, the later ones counting for more. What is wrong with an entry is noted in its file.
    pub(super) fn of<'s>(files: impl IntoIterator<Item = &'s Section<'d>>) -> Known<'d>
    where
        'd: 's,
    {
        let mut entries = Vec::new();
        for file in files {
            file.need::<String>("version", "write the date of what it says, like \"2026-11-21\"");
            let mut own: Vec<Entry<'d>> =
                file.sections("model").into_iter().filter_map(Entry::read).collect();
            own.sort_by_key(Entry::letters);
            entries.extend(own);
        }
        Known(entries)
    }

    /// A model with all that is known of it by its upstream's name.
    pub(super) fn tell(&self, mut model: Declared, base: &Base, upstream: &str) -> Declared {
        for entry in self.0.iter().filter(|entry| entry.is_about(base, upstream)) {
            model::apply(&entry.section, &mut model);
            model.is_told = true;
        }
        own(&mut model, base);
        provider::fit(None, &mut model);
        dialect::fit(None, &mut model);
        let most = model.kind.services_most();
        model.model.services.retain(|service| most.contains(service));
        model
    }
}

/// What an entry says of a model is said of its makers' API; a server of one's own has the rest besides, but for a model that
/// is said to have nothing.
fn own(model: &mut Declared, base: &Base) {
    let known = &mut model.model.capabilities;
    let usual = if base.is_own() && !known.is_empty() { OWN_CAPABILITIES } else { &[] };
    let lacking: Vec<_> = usual.iter().copied().filter(|capability| !known.contains(capability)).collect();
    known.extend(lacking);
}

impl<'d> Entry<'d> {
    fn read(section: Section<'d>) -> Option<Entry<'d>> {
        let remedy = "write the upstream's names that it is about, like [\"some-model*\"]";
        let patterns = section.need::<Vec<String>>("match", remedy);
        let entry = Entry {
            kinds: section.words("kinds", &KINDS),
            hosts: section.or("hosts", Vec::new()),
            patterns: patterns.unwrap_or_default(),
            section,
        };
        entry.check();
        (!entry.patterns.is_empty()).then_some(entry)
    }

    /// Applies the entry once, so that what is wrong with it is found though no model be about it.
    fn check(&self) {
        if self.section.has("name") {
            self.section.wrong("name", Wrong::new("not for an entry", "write match = [\"…\"]"));
        }
        let kinds = if self.kinds.is_empty() { &[Kind::OpenAi][..] } else { &self.kinds };
        for kind in kinds {
            model::apply(&self.section, &mut model::usual("", &Base::of(*kind), None));
        }
    }

    fn letters(&self) -> usize {
        self.patterns.iter().map(|pattern| pattern.replace('*', "").len()).min().unwrap_or(0)
    }

    fn is_about(&self, base: &Base, upstream: &str) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&base.kind))
            && (self.hosts.is_empty() || self.hosts.iter().any(|host| is_host(base.host().as_deref(), host)))
            && self.patterns.iter().any(|pattern| fits(pattern, upstream))
    }
}

/// Whether an upstream is at that host, or below it.
pub(super) fn is_host(at: Option<&str>, host: &str) -> bool {
    at.unwrap_or_default().strip_suffix(host).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a name fits a pattern in which `*` stands for anything, whatever their capitals.
fn fits(pattern: &str, name: &str) -> bool {
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
        fitting.iter().for_each(|name| assert!(fits(pattern, name), "{pattern} {name}"));
        others.iter().for_each(|name| assert!(!fits(pattern, name), "{pattern} {name}"));
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
