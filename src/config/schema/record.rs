//! Has the reader read made-up configurations, one for each kind of backend, and notes what it asks for.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::backend::{self, KnownModels};
use crate::config::load;
use crate::config::reader::{
    ConfigFiles, Document, KeyShape, ReadContext, SecretsPolicy, Section, ShapeRecorder, source,
};

/// What each key may be, and whether it must be there, by its path.
pub(super) type NotedKeys = BTreeMap<String, (KeyShape, bool)>;

/// The keys of every configuration, and those of each kind of backend.
pub(super) struct Recorded {
    /// All keys, whatever the kind.
    pub(super) all: NotedKeys,
    /// The keys that a kind has, by its word.
    pub(super) by_kind: Vec<(&'static str, NotedKeys)>,
}

/// Reads a configuration for each kind.
pub(super) fn record() -> Recorded {
    let by_kind: Vec<_> = backend::kind_words().map(|word| (word, asked_for(&example(word)))).collect();
    let mut all = NotedKeys::new();
    for (path, (shape, is_required)) in by_kind.iter().flat_map(|(_, keys)| keys) {
        let (known, is_always_required) = all.entry(path.clone()).or_insert((KeyShape::Unread, *is_required));
        known.join(shape.clone());
        *is_always_required &= is_required;
    }
    Recorded { all, by_kind }
}

/// What is read of such a text. Its mistakes do not matter, and neither does the environment.
fn asked_for(text: &str) -> NotedKeys {
    let (files, shapes) = (ConfigFiles::default(), ShapeRecorder::default());
    let place = ReadContext {
        folder: Path::new(""),
        env: &|_| None,
        secrets: SecretsPolicy::Optional,
        files: &files,
    };
    let document = Document::noting(text, place, &shapes);
    if let Some(table) = source::parse(&document) {
        let root = Section::root(&document, &table);
        let sources = backend::catalog_sources(&root, place);
        load::read(&root, &KnownModels::from_files([], sources.own_price));
    }
    drop(document);
    let mut keys = shapes.into_keys();
    // What is merely asked after is refused where it stands: a secret in the file, a key of another kind.
    keys.retain(|_, (shape, _)| *shape != KeyShape::Unread);
    keys
}

/// A configuration in which whatever is asked for only beside something else has that beside it.
fn example(kind: &str) -> String {
    let mut text = "[[account]]\nname = 'a'\n[[key]]\nname = 'k'\n\
                    [[route]]\nname = 'r'\nrecipe = 'canary'\nshares = [{ route = 'auto', share = 0.1 }]\n"
        .to_owned();
    text += &format!("[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:1'\n");
    for rule in ["tiles", "crops", "patches"] {
        text += &format!(
            "[[backend.model]]\nname = '{rule}'\nprice_input = '1'\nprice_output = '1'\n\
             image_tokens = {{ rule = '{rule}', base = 1, tile = 1, side = 1 }}\n\
             long_context = {{ above = 1, price_input = '1', price_output = '1' }}\n"
        );
    }
    text
}
