//! The model that ships with the binary, as the catalog knows it.

use std::sync::Arc;

use crate::catalog::{Class, HandOff, Model, Prices};
use crate::units::{Money, Price, Tokens};

use super::backend::{Backend, Served, Source};
use super::model::Declared;

/// Its backend and itself. It has a small price, so that everything can be seen working.
pub(super) fn embedded() -> (Backend, Vec<Declared>) {
    let name: Arc<str> = "reasoner".into();
    let model = Model {
        name: name.clone(),
        prices: Some(Prices {
            input: dollars_per_million(100_000_000),
            output: dollars_per_million(400_000_000),
        }),
        context: Tokens(512),
        class: Class::Inline,
        thinking_max: Tokens(256),
        solution_default: Tokens(64),
        // Three tokens of hand-off, the start tag, and the end of the text.
        hand_off: HandOff { text: "\n</think>\n\n".to_owned(), overhead: Tokens(5) },
        capabilities: Vec::new(),
        efforts: Vec::new(),
    };
    let served = Served { name, source: Source::Embedded };
    let backend = Backend { name: "embedded".into(), models: vec![served.clone()] };
    (backend, vec![Declared { served, model, line: None }])
}

fn dollars_per_million(nanos: u64) -> Price {
    Price { per_million_tokens: Money(nanos) }
}
