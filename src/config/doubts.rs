//! What is right of models and hardly meant, each told at the model's own line.

use std::collections::BTreeMap;

use crate::catalog::Service;
use crate::units::Tokens;

use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Document;

/// Notes what of all models is not known, and what is assumed instead.
pub(super) fn of_models<'m>(document: &Document<'_>, all: impl Iterator<Item = &'m Declared>) {
    // Names that stand in one line have one note.
    let mut lines: BTreeMap<Option<usize>, Vec<&Declared>> = BTreeMap::new();
    // Of the embedded one everything is known.
    for declared in all.filter(|declared| declared.served.kind.is_some()) {
        lines.entry(declared.line).or_default().push(declared);
    }
    // Where there is no choice, nobody asks which is the abler.
    let has_choice = lines.values().flatten().filter(|declared| answers(declared)).count() > 1;
    let doubts = if has_choice { &DOUBTS[..] } else { &DOUBTS[..DOUBTS.len() - 1] };
    for (line, models) in lines {
        for (is_so, told) in doubts {
            let names: Vec<&str> =
                models.iter().filter(|declared| is_so(declared)).map(|it| &*it.model.name).collect();
            if !names.is_empty() {
                document.doubt(line, "backend", told(&names.join(", ")));
            }
        }
    }
}

type Doubt = (fn(&Declared) -> bool, fn(&str) -> Wrong);

/// The last is about choosing.
const DOUBTS: [Doubt; 4] =
    [(is_unpriced, unpriced), (is_untold, untold), (is_bare, bare), (is_guessed, guessed)];

/// Models without a price count as free, which is seldom meant.
fn is_unpriced(declared: &Declared) -> bool {
    declared.model.tariff.is_none()
}

fn unpriced(names: &str) -> Wrong {
    let what = format!(
        "no price is known of {names}: it counts as free, and is refused to keys with a limit on money"
    );
    Wrong::new(what, "write price_input and price_output; \"0\" is a price")
}

/// A model of which only the name is known is taken for one that does not think, and what callers say of its thinking is
/// not passed on.
fn is_untold(declared: &Declared) -> bool {
    !declared.is_told && declared.model.thinking_max == Tokens::ZERO && answers(declared)
}

fn untold(names: &str) -> Wrong {
    let what = format!(
        "nothing tells whether {names} can think: taken for one that does not, so that budgets and efforts stated for its \
         thinking have no effect"
    );
    Wrong::new(what, "say thinking_max (0 if it does not) or efforts, or run `stint probe`")
}

/// A model that is not known to do anything but chat refuses tools, forms and images.
fn is_bare(declared: &Declared) -> bool {
    declared.model.capabilities.is_empty() && answers(declared)
}

fn bare(names: &str) -> Wrong {
    let what = format!(
        "{names} is taken to do nothing beside plain text: requests with tools, a form for the answer or images are refused"
    );
    Wrong::new(what, "say capabilities = [\"tools\", \"schema\", \"images\"], or [\"tools\"] alone, as it is")
}

/// What a model is worth is guessed by its price where nothing says how able it is.
fn is_guessed(declared: &Declared) -> bool {
    declared.served.ability.is_none() && answers(declared)
}

fn guessed(names: &str) -> Wrong {
    let what = format!("how able {names} is nothing tells: `auto` guesses it by the price");
    Wrong::new(what, "say ability, the share of MMLU-Pro that it gets right, like 0.7")
}

fn answers(declared: &Declared) -> bool {
    declared.model.services.iter().any(|service| *service != Service::Embeddings)
}
