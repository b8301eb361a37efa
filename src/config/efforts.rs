//! `[thinking.efforts]`: what callers mean by words of effort.

use std::collections::BTreeMap;

use stint_types::catalog::{EFFORT_SHARES, EFFORT_WORDS};
use stint_types::units::Effort;

use super::reader::Section;

/// The standard words, with the operator's on top.
pub(super) fn table(section: &Section<'_>) -> BTreeMap<String, Effort> {
    let mut table: BTreeMap<String, Effort> = EFFORT_WORDS
        .into_iter()
        .zip(EFFORT_SHARES)
        .filter_map(|(word, share)| Some((word.to_owned(), Effort::try_from(share).ok()?)))
        .collect();
    let stated = section.entries::<f64>();
    for (word, share) in &stated {
        let share = *share;
        match Effort::try_from(share) {
            Ok(effort) => drop(table.insert(word.clone(), effort)),
            Err(error) => {
                section.reject(word, error.to_string(), "1 is what the model usually thinks");
            }
        }
    }
    for pair in EFFORT_WORDS.windows(2) {
        let [less, more] = [&table[pair[0]], &table[pair[1]]].map(|effort| effort.get());
        if more < less {
            let at = if stated.iter().any(|(word, _)| word == pair[1]) { pair[1] } else { pair[0] };
            let what = format!("\"{}\" would be less than \"{}\"", pair[1], pair[0]);
            section.reject(at, what, "more effort never means a shorter thought: keep them in order");
        }
    }
    table
}
