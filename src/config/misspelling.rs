//! Whether the path of an account is another one, but for a slip of the fingers.
//!
//! Teams have names that are alike on purpose: `team1` and `team2`, `sales/eu` and `sales/us`. So words are compared one by one.

use stint_types::units::nearest_within;

/// Fewer letters make words that are alike by chance.
const LETTERS_MIN: usize = 4;

/// For so many letters of a word one may be wrong.
const LETTERS_PER_SLIP: usize = 5;

/// The most letters of a word that may be wrong.
const SLIPS_MAX: usize = 2;

/// Whether somebody who wrote `path` probably meant `declared`.
pub(super) fn is_slip(path: &str, declared: &str) -> bool {
    let (written, meant) = (words(path), words(declared));
    written.len() == meant.len() && written.iter().zip(meant).all(|(word, other)| is_nearly(word, other))
}

fn words(path: &str) -> Vec<&str> {
    path.split(|letter: char| !letter.is_alphanumeric()).collect()
}

fn is_nearly(word: &str, other: &str) -> bool {
    if word.eq_ignore_ascii_case(other) {
        return true;
    }
    if stem(word) == stem(other) || without_last(word) == without_last(other) {
        return false;
    }
    let letters = word.chars().count();
    let slips_max = (letters / LETTERS_PER_SLIP).min(SLIPS_MAX);
    let is_turned = letters >= LETTERS_MIN && sorted(word) == sorted(other);
    is_turned || nearest_within(word, [other], slips_max).is_some()
}

/// A word without a number at its end.
fn stem(word: &str) -> &str {
    word.trim_end_matches(|last: char| last.is_ascii_digit())
}

/// A word without its last letter, by which `teamA` and `teamB` are counted.
fn without_last(word: &str) -> &str {
    word.char_indices().next_back().map_or("", |(at, _)| &word[..at])
}

fn sorted(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_on_purpose_is_no_slip() {
        for (path, declared) in [
            ("acme/reserch", "acme/research"),
            ("amce/research", "acme/research"),
            ("acme/enginering", "acme/engineering"),
            ("acme-research", "acme/research"),
            ("Acme/research", "acme/research"),
            ("acme/marketting-eu", "acme/marketing-eu"),
        ] {
            assert!(is_slip(path, declared), "{path} for {declared}");
        }
        for (path, declared) in [
            ("eu/research", "us/research"),
            ("acme/sales-eu", "acme/sales-us"),
            ("acme/team-a", "acme/team-b"),
            ("acme/teamA", "acme/teamB"),
            ("acme/team2", "acme/team1"),
            ("acme/team", "acme/team1"),
            ("batch-2025", "batch-2026"),
            ("acme/data", "acme/date"),
            ("acme/research/new", "acme/research"),
            ("acme", "acme/research"),
        ] {
            assert!(!is_slip(path, declared), "{path} for {declared}");
        }
    }
}
