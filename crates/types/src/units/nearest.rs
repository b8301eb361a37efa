//! Suggests the known word that was probably meant.

/// The most letters of a word that somebody may have meant. What is longer is not compared: that would take as many steps as the
/// product of both lengths, and a caller chooses one of them, or both.
const LETTERS_MAX: usize = 128;

/// The known word nearest to `word`, where one is near enough to be a slip of the fingers, or was cut short.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let letters = letters(word)?;
    let slips_max = letters.len().div_ceil(3);
    known
        .into_iter()
        .filter_map(|candidate| {
            let slips = if is_cut(word, candidate) { 1 } else { distance(&letters, candidate)? };
            Some((slips, candidate))
        })
        .filter(|&(slips, _)| slips <= slips_max)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The known word from which `word` differs by so many letters at most; of several the nearest.
pub fn nearest_within<'w>(
    word: &str,
    known: impl IntoIterator<Item = &'w str>,
    slips_max: usize,
) -> Option<&'w str> {
    let letters = letters(word)?;
    let distances =
        known.into_iter().filter_map(|candidate| Some((distance(&letters, candidate)?, candidate)));
    distances.filter(|&(slips, _)| slips <= slips_max).min().map(|(_, candidate)| candidate)
}

/// The letters of a word, if it has not too many.
fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().take(LETTERS_MAX + 1).collect();
    (letters.len() <= LETTERS_MAX).then_some(letters)
}

/// Whether only the last words of the candidate lack.
fn is_cut(word: &str, candidate: &str) -> bool {
    !word.is_empty() && candidate.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'))
}

/// Levenshtein's distance, row by row; none to a word that is too long.
fn distance(from: &[char], to: &str) -> Option<usize> {
    let to = letters(to)?;
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    Some(row[to.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["listen", "metrics_listen", "drain"]), expected, "{word}");
    }

    #[test]
    fn a_slip_of_the_fingers_finds_the_word_that_was_meant() {
        check("lisen", Some("listen"));
        check("metric_listen", Some("metrics_listen"));
        check("darin", Some("drain"));
        check("metrics", Some("metrics_listen"));
        check("colour", None);
        check("", None);
    }
    /// Compared letter by letter these would take minutes.
    #[test]
    fn a_word_that_is_far_too_long_is_near_nothing_and_takes_no_time() {
        let long = "x".repeat(32 << 20);
        check(&long, None);
        assert_eq!(nearest_within(&long, ["listen", "drain"], 1 << 30), None);
        assert_eq!(nearest("listen", [&*long, "lisen"]), Some("lisen"));
        assert_eq!(nearest(&long, [&*long]), None);
    }
}
