//! Sentences are short. Half of a page's sentences have at most 16 words, nine of ten at most 30.

use super::{Page, pages};

const MEDIAN_MAX: usize = 16;
const NINTH_DECILE_MAX: usize = 30;
const COLUMNS_MAX: usize = 140;
const LINES_MAX: usize = 200;
const README_LINES_MAX: usize = 150;

/// Pages for looking things up, which may be longer. So may all in `docs/reference`.
const REFERENCE: [&str; 5] =
    ["docs/api.md", "docs/operating.md", "docs/upstreams.md", "docs/deciding.md", "docs/metrics.md"];

#[test]
fn sentences_lines_and_pages_are_short() {
    let faults: Vec<String> = pages().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn is_reference(page: &Page) -> bool {
    page.path.starts_with("docs/reference") || REFERENCE.iter().any(|name| page.path.as_os_str() == *name)
}

fn faults(page: &Page) -> Vec<String> {
    let path = page.path.display();
    let mut faults = Vec::new();
    let mut lengths: Vec<usize> = page.prose.iter().flat_map(|text| sentences(text)).collect();
    lengths.sort_unstable();
    if let Some(last) = lengths.len().checked_sub(1) {
        let (median, ninth) = (lengths[last / 2], lengths[last * 9 / 10]);
        if median > MEDIAN_MAX || ninth > NINTH_DECILE_MAX {
            faults
                .push(format!("{path}: half of the sentences have {median} words or more, a tenth {ninth}"));
        }
    }
    let lines = page.text.lines().count();
    let lines_max = if page.path.as_os_str() == "README.md" { README_LINES_MAX } else { LINES_MAX };
    if lines > lines_max && !is_reference(page) {
        faults.push(format!("{path} has {lines} lines"));
    }
    for (number, line) in page.text.lines().enumerate() {
        if line.chars().count() > COLUMNS_MAX && !line.trim_start().starts_with('|') {
            faults.push(format!("{path}:{} is longer than {COLUMNS_MAX} columns", number + 1));
        }
    }
    faults
}

/// How many words each sentence of a text has.
fn sentences(text: &str) -> impl Iterator<Item = usize> {
    text.split_inclusive(". ")
        .flat_map(|part| part.split_inclusive("? "))
        .map(|sentence| {
            sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
        })
        .filter(|words| *words > 0)
}
