//! The parsers as they are stand every check on mutants of the seeds; each planted mistake is found.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oracle::mutants::{Dice, mutant};
use oracle::{Check, SUBJECTS, Subject};

/// How many mutants a parser must stand, and in how many a mistake must be found.
const MUTANTS: u64 = 6_000;

fn seeds(subject: &Subject) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(subject.name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The first thing that is wrong, on a seed or a mutant, with what it was found on.
fn finding(subject: &Subject, check: Check) -> Option<String> {
    let seeds = seeds(subject);
    let of_seeds = seeds.iter().cloned();
    let mutants = (1..=MUTANTS).map(|number| mutant(&seeds, subject.words, &mut Dice::new(number)));
    of_seeds.chain(mutants).find_map(|bytes| {
        check(&bytes).err().map(|why| format!("{:?}: {why}", String::from_utf8_lossy(&bytes)))
    })
}

#[test]
fn the_parsers_stand_every_check() {
    for subject in SUBJECTS {
        assert_eq!(finding(&subject, subject.sound), None, "{}", subject.name);
    }
}

#[test]
fn every_planted_mistake_is_found() {
    for subject in SUBJECTS {
        for (mistake, check) in subject.planted {
            assert!(finding(&subject, *check).is_some(), "{} {mistake} was not found", subject.name);
        }
    }
}

#[test]
fn every_mistake_has_a_copy() {
    for subject in SUBJECTS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted").join(subject.name);
        let stem = |file: fs::DirEntry| file.path().file_stem().unwrap().to_str().unwrap().to_owned();
        let files: BTreeSet<String> = fs::read_dir(folder).unwrap().map(|file| stem(file.unwrap())).collect();
        let copies: BTreeSet<String> = subject.planted.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files, copies, "{}", subject.name);
        assert!(files.len() > 2, "{}", subject.name);
    }
}
