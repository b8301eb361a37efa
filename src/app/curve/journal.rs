//! What was asked and answered so far, in a file of JSON Lines beside the tasks: each line is there before anything else
//! happens, so that a run that was ended anywhere goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use stint_types::units::{Money, Tokens};

/// One answer that is to be had: to which task, under which budget, and which of its samples.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct AnswerId {
    /// The task's key.
    pub(super) task: String,
    pub(super) budget: Tokens,
    pub(super) sample: u32,
}

/// What came of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JudgedAnswer {
    pub(super) right: bool,
    pub(super) thought: Tokens,
    pub(super) is_cut: bool,
    pub(super) solution: Tokens,
    pub(super) cost: Money,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Model(String),
    /// What it may cost at most, before it is sent.
    Asked(AnswerId, Money),
    Answered(AnswerId, JudgedAnswer),
    /// It cost this, and there is nothing to judge.
    Lost(AnswerId, Money),
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CurveJournalError {
    #[error("it cannot be read or written")]
    File(#[from] io::Error),
    #[error("line {0} of it cannot be read; move the file away to start again")]
    Line(usize, #[source] serde_json::Error),
    #[error("it is about the model {0}; give this one another file by --state")]
    OtherModel(String),
}

/// The journal, and what it adds up to.
pub(super) struct CurveJournal {
    file: File,
    answers: BTreeMap<AnswerId, JudgedAnswer>,
    under_way: BTreeMap<AnswerId, Money>,
    spent: Money,
}

impl CurveJournal {
    /// Opens one, and goes on where it ended.
    pub(super) fn open(path: &Path, model: &str) -> Result<CurveJournal, CurveJournalError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // What was written last may have been broken off.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        let mut journal =
            CurveJournal { file, answers: BTreeMap::new(), under_way: BTreeMap::new(), spent: Money::ZERO };
        for (at, line) in text[..whole].lines().enumerate() {
            let line = serde_json::from_str(line).map_err(|cause| CurveJournalError::Line(at + 1, cause))?;
            if let JournalLine::Model(other) = &line
                && other != model
            {
                return Err(CurveJournalError::OtherModel(other.clone()));
            }
            journal.apply(line);
        }
        if whole == 0 {
            journal.write(JournalLine::Model(model.to_owned()))?;
        }
        Ok(journal)
    }

    /// It is about to be asked, and may cost so much.
    pub(super) fn asked(&mut self, id: &AnswerId, at_most: Money) -> Result<(), CurveJournalError> {
        self.write(JournalLine::Asked(id.clone(), at_most))
    }

    pub(super) fn answered(&mut self, id: &AnswerId, answer: JudgedAnswer) -> Result<(), CurveJournalError> {
        self.write(JournalLine::Answered(id.clone(), answer))
    }

    /// It cost so much, and there is nothing to judge.
    pub(super) fn lost(&mut self, id: &AnswerId, cost: Money) -> Result<(), CurveJournalError> {
        self.write(JournalLine::Lost(id.clone(), cost))
    }

    /// All that was judged.
    pub(super) fn answers(&self) -> &BTreeMap<AnswerId, JudgedAnswer> {
        &self.answers
    }

    /// What was spent, and at most what is under way, or was when an earlier run ended.
    pub(super) fn spent_at_most(&self) -> Money {
        self.under_way.values().fold(self.spent, |sum, at_most| sum + *at_most)
    }

    /// Those of some answers that are not there yet.
    pub(super) fn missing(&self, wanted: impl Iterator<Item = AnswerId>) -> Vec<AnswerId> {
        let wanted: BTreeSet<AnswerId> = wanted.collect();
        wanted.into_iter().filter(|id| !self.answers.contains_key(id)).collect()
    }

    fn write(&mut self, line: JournalLine) -> Result<(), CurveJournalError> {
        let mut text = serde_json::to_string(&line).map_err(io::Error::other)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.apply(line);
        Ok(())
    }

    fn apply(&mut self, line: JournalLine) {
        match line {
            JournalLine::Model(_) => {}
            JournalLine::Asked(id, at_most) => {
                // Asked once more: what the first time cost nobody knows.
                let before = self.under_way.insert(id, at_most);
                self.spent += before.unwrap_or(Money::ZERO);
            }
            JournalLine::Answered(id, answer) => {
                self.under_way.remove(&id);
                self.spent += answer.cost;
                self.answers.insert(id, answer);
            }
            JournalLine::Lost(id, cost) => {
                self.under_way.remove(&id);
                self.spent += cost;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sample: u32) -> AnswerId {
        AnswerId { task: "t".into(), budget: Tokens(8), sample }
    }

    fn answer(cost: u64) -> JudgedAnswer {
        let (thought, solution) = (Tokens(8), Tokens(2));
        JudgedAnswer { right: true, thought, is_cut: true, solution, cost: Money(cost) }
    }

    #[test]
    fn a_journal_that_was_broken_off_goes_on_and_counts_what_was_under_way_at_its_most() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = CurveJournal::open(&path, "m").unwrap();
        journal.asked(&id(0), Money(100)).unwrap();
        journal.answered(&id(0), answer(30)).unwrap();
        journal.asked(&id(1), Money(100)).unwrap();
        drop(journal);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"answered\":[{\"ta");
        std::fs::write(&path, text).unwrap();
        let mut journal = CurveJournal::open(&path, "m").unwrap();
        assert_eq!((journal.answers().len(), journal.spent_at_most()), (1, Money(130)));
        assert_eq!(journal.missing([id(0), id(1)].into_iter()), [id(1)]);
        journal.asked(&id(1), Money(50)).unwrap();
        journal.answered(&id(1), answer(20)).unwrap();
        assert_eq!(journal.spent_at_most(), Money(150), "the first try may have cost 100");
        drop(journal);
        let journal = CurveJournal::open(&path, "m").unwrap();
        assert_eq!((journal.answers().len(), journal.spent_at_most()), (2, Money(150)));
        assert!(matches!(CurveJournal::open(&path, "n"), Err(CurveJournalError::OtherModel(_))));
    }
}
