//! Suggests the known word that was probably meant.

/// The known word nearest to `word`, where one is near enough to be a slip of the fingers, or was cut short.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let slips_max = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|candidate| (if is_cut(word, candidate) { 1 } else { distance(word, candidate) }, candidate))
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
    let distances = known.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances.filter(|&(slips, _)| slips <= slips_max).min().map(|(_, candidate)| candidate)
}

/// Whether only the last words of the candidate lack.
fn is_cut(word: &str, candidate: &str) -> bool {
    !word.is_empty() && candidate.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'))
}

/// Levenshtein's distance, row by row.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
}
