//! Rows of few numbers among many columns.

/// One row: columns and values, each column once.
pub type SparseRow = Vec<(u32, f64)>;

/// Rows whose columns are mostly zero.
#[derive(Debug, Clone, Default)]
pub struct Sparse {
    /// The rows.
    pub rows: Vec<SparseRow>,
    /// How many columns there are.
    pub columns: usize,
}

impl Sparse {
    /// Every row times a vector.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|row| dot(row, vector)).collect()
    }

    /// The sum of the rows, each times its weight.
    pub fn transposed_times(&self, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.columns];
        for (row, weight) in self.rows.iter().zip(weights) {
            row.iter().for_each(|&(column, value)| sum[column as usize] += weight * value);
        }
        sum
    }

    /// Some of the rows, in the order asked for.
    pub fn select(&self, rows: &[usize]) -> Sparse {
        Sparse { rows: rows.iter().map(|&row| self.rows[row].clone()).collect(), columns: self.columns }
    }
}

/// A row times a vector.
pub fn dot(row: &SparseRow, vector: &[f64]) -> f64 {
    row.iter().map(|&(column, value)| value * vector[column as usize]).sum()
}
