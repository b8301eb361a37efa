//! Questions with all that routers look at, and what is to be foretold of them.

use crate::data::Row;
use crate::tfidf::Corpus;
use crate::{surface, train};
use stint_decide::estimate::prior::{self, PriorInput};
use stint_types::catalog::SURFACE_FEATURES;

/// Questions, prepared once for all folds.
#[derive(Debug)]
pub struct Pool {
    /// The questions.
    pub rows: Vec<Row>,
    /// What a caller would send.
    pub texts: Vec<String>,
    /// Their terms.
    pub corpus: Corpus,
    /// Their surface features, of the baseline.
    pub surface: Vec<Vec<f64>>,
    /// What Stint sees of them.
    pub sights: Vec<PriorInput>,
    /// What it counts in them without their options.
    pub bare: Vec<Option<[f64; SURFACE_FEATURES]>>,
}

/// What is foretold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// How much more often the stronger model is right.
    Gain {
        /// The weaker model.
        weak: String,
        /// The stronger.
        strong: String,
    },
    /// The share of all models that are wrong.
    Difficulty,
    /// Whether one model is right.
    Success(String),
}

/// Something to be foretold of every question.
#[derive(Debug, Clone)]
pub struct Goal {
    /// What it is called in a report.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The truth; none where a model was not asked.
    pub truth: Vec<Option<f64>>,
}

impl Pool {
    /// Prepares questions.
    pub fn of(rows: Vec<Row>) -> Pool {
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        Pool {
            corpus: Corpus::of(texts.iter().map(String::as_str)),
            surface: rows.iter().map(surface::of).collect(),
            sights: texts.iter().map(|text| prior::prior_input(text)).collect(),
            bare: rows.iter().map(train::bare).collect(),
            texts,
            rows,
        }
    }

    /// A goal on these questions.
    pub fn goal(&self, name: &str, kind: Kind) -> Goal {
        let truth = self.rows.iter().map(|row| kind.truth(row)).collect();
        Goal { name: name.into(), kind, truth }
    }
}

impl Kind {
    /// The truth of one question.
    pub fn truth(&self, row: &Row) -> Option<f64> {
        let asked = |model: &String| row.correct.get(model).map(|&right| f64::from(right));
        match self {
            Kind::Gain { weak, strong } => Some(asked(strong)? - asked(weak)?),
            Kind::Difficulty => Some(row.difficulty()),
            Kind::Success(model) => asked(model),
        }
    }

    /// A gain, by the names of two models.
    pub fn gain(weak: &str, strong: &str) -> Kind {
        Kind::Gain { weak: weak.into(), strong: strong.into() }
    }
}
