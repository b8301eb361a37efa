//! Words and pairs of words, weighted by how rare they are: the usual simple text model, as a baseline.
//!
//! As scikit-learn does it: words of two letters and more in lower case, pairs of neighbours, those that two
//! texts have at least, 1 + ln(count), the smoothed inverse document frequency, rows of length 1.

use std::collections::{BTreeMap, HashMap};

use crate::sparse::{Sparse, SparseRow};

/// A term is kept when this many of the texts that are fitted on have it.
const TEXTS_LEAST: u32 = 2;

/// Texts whose terms are counted once, to be weighted anew for each division into fitted and measured ones.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    texts: Vec<Vec<(u32, f64)>>,
    terms: usize,
}

impl Corpus {
    /// Counts the terms of these texts.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Corpus {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut number = |term: String| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(term).or_insert(next)
        };
        let mut counted = |text: &str| -> Vec<(u32, f64)> {
            terms(text).into_iter().map(|(term, count)| (number(term), 1.0 + f64::from(count).ln())).collect()
        };
        let texts = texts.into_iter().map(&mut counted).collect();
        Corpus { texts, terms: numbers.len() }
    }

    /// All texts as rows, weighted by how rare a term is among those in `fitted`; terms that are hardly
    /// among those are left out.
    #[expect(clippy::cast_precision_loss, reason = "counts of texts")]
    pub fn weighted(&self, fitted: &[usize]) -> Sparse {
        let mut with = vec![0_u32; self.terms];
        let seen = fitted.iter().flat_map(|&text| &self.texts[text]);
        seen.for_each(|&(term, _)| with[term as usize] += 1);
        let texts = (1 + fitted.len()) as f64;
        let weight = |&(term, count): &(u32, f64)| {
            let with = with[term as usize];
            (with >= TEXTS_LEAST).then(|| (term, count * ((texts / f64::from(1 + with)).ln() + 1.0)))
        };
        let row = |text: &Vec<(u32, f64)>| scaled(text.iter().filter_map(weight).collect());
        Sparse { rows: self.texts.iter().map(row).collect(), columns: self.terms }
    }
}

fn scaled(mut row: SparseRow) -> SparseRow {
    let length = row.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
    row.iter_mut().for_each(|(_, value)| *value /= length);
    row
}

fn terms(text: &str) -> BTreeMap<String, u32> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| word.chars().nth(1).is_some()).collect();
    let mut counts = BTreeMap::new();
    words.iter().for_each(|&word| *counts.entry(word.to_owned()).or_default() += 1);
    words.windows(2).for_each(|pair| *counts.entry(pair.join(" ")).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_length_one_and_only_terms_that_two_fitted_texts_have() {
        let corpus = Corpus::of(["the cat sat", "the dog sat", "the cat ran", "a cat", "the rare owl sat"]);
        let rows = corpus.weighted(&[0, 1, 2, 3]).rows;
        let sizes: Vec<usize> = rows.iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 2, 3, 1, 2], "of: the, cat, sat, the cat");
        let length = |row: &SparseRow| row.iter().map(|(_, value)| value * value).sum::<f64>();
        assert!(rows.iter().all(|row| (length(row) - 1.0).abs() < 1e-12));
        let (the, sat) = (rows[4][0].1.min(rows[4][1].1), rows[4][0].1.max(rows[4][1].1));
        assert!(sat > the, "what is rarer weighs more");
    }
}
