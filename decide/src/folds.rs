//! Which rows are fitted on and which are measured.

use std::collections::BTreeSet;

use crate::data::Row;
use stint_types::units::SeededRng;

/// One division of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// What it is called in a report.
    pub name: String,
    /// Rows to fit on.
    pub train: Vec<usize>,
    /// Rows to measure; none of them is in `train`.
    pub test: Vec<usize>,
}

/// `count` folds of rows in random order: each row is measured once.
pub fn random(rows: usize, count: usize, seed: u64) -> Vec<Fold> {
    let mut order: Vec<usize> = (0..rows).collect();
    SeededRng::new(seed).shuffle(&mut order);
    let fold = |at: usize| {
        let (test, train): (Vec<_>, Vec<_>) =
            order.iter().enumerate().partition(|(place, _)| place % count == at);
        let rows = |pairs: Vec<(usize, &usize)>| pairs.into_iter().map(|(_, &row)| row).collect();
        Fold { name: format!("fold {}", at + 1), train: rows(train), test: rows(test) }
    };
    (0..count).map(fold).collect()
}

/// One fold per category, which is left out of the fit whole.
pub fn by_category(rows: &[Row]) -> Vec<Fold> {
    let categories: BTreeSet<&str> = rows.iter().map(|row| row.category.as_str()).collect();
    let fold = |category: &str| {
        let (test, train) = (0..rows.len()).partition(|&row| rows[row].category == category);
        Fold { name: category.to_owned(), train, test }
    };
    categories.into_iter().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_measured_once_and_never_where_it_was_fitted() {
        let folds = random(103, 5, 0);
        let mut seen: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..103).collect::<Vec<_>>());
        assert!(folds.iter().all(|fold| fold.test.iter().all(|row| !fold.train.contains(row))));
    }
}
