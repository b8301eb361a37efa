//! What can be counted in a question by hand, as a baseline: lengths, digits, punctuation, formulas, cue words.

use crate::data::Row;

/// How many there are.
pub const COUNT: usize = 23;

/// Words that hint at what is asked.
const CUES: [&[&str]; 6] = [
    &["not", "except", "least", "false", "incorrect"],
    &["calculate", "compute", "determine", "find", "evaluate", "solve", "many", "much"],
    &["what", "which", "who", "when", "where"],
    &["why", "how", "explain", "best", "likely"],
    &["if", "suppose", "assume", "let", "given"],
    &["each", "per", "every", "times", "percent", "half", "twice"],
];

/// The features of a question with its options.
pub fn of(row: &Row) -> Vec<f64> {
    let text = row.text();
    let signs = |list: &str| log(text.chars().filter(|&c| list.contains(c)).count());
    let question = row.question.to_lowercase();
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).count();
    let letters: usize = words.iter().map(|word| word.len()).sum();
    let options: usize = row.options.iter().map(String::len).sum();
    let mut features = vec![
        log(row.question.len()),
        log(words.len()),
        letters as f64 / words.len().max(1) as f64,
        log(row.options.len()),
        options as f64 / row.options.len().max(1) as f64 / 100.0,
        log(numbers),
        log(text.bytes().filter(u8::is_ascii_digit).count()),
        log(text.chars().filter(|c| c.is_uppercase()).count()),
        log(question.lines().count()),
        signs("+*/=^<>"),
        signs("()[]{}"),
        signs("\\$"),
        signs(","),
        signs("."),
        signs("?"),
        signs("\"'"),
        signs("_"),
    ];
    features.extend(CUES.map(|cues| log(words.iter().filter(|word| cues.contains(word)).count())));
    features
}

/// Columns with mean 0 and deviation 1 on the fitted rows.
pub fn scaled(rows: &[Vec<f64>], fitted: &[usize]) -> Vec<Vec<f64>> {
    let count = fitted.len().max(1) as f64;
    let columns = rows.first().map_or(0, Vec::len);
    let mean = |column: usize| fitted.iter().map(|&row| rows[row][column]).sum::<f64>() / count;
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let square =
        |column: usize| fitted.iter().map(|&row| (rows[row][column] - means[column]).powi(2)).sum::<f64>();
    let spreads: Vec<f64> = (0..columns).map(|column| (square(column) / count).sqrt().max(1e-9)).collect();
    let scale =
        |row: &Vec<f64>| row.iter().zip(&means).zip(&spreads).map(|((v, m), s)| (v - m) / s).collect();
    rows.iter().map(scale).collect()
}

fn log(count: usize) -> f64 {
    (count as f64).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_all_features() {
        let row = Row {
            question: "What is 3 + 4?".into(),
            options: vec!["7".into(), "8".into()],
            ..Row::default()
        };
        let features = of(&row);
        assert_eq!(features.len(), COUNT);
        assert!((features[5] - 4.0_f64.ln_1p()).abs() < 1e-12, "four numbers");
        let scaled = scaled(&[vec![1.0], vec![3.0], vec![9.0]], &[0, 1]);
        assert_eq!(scaled, [[-1.0], [1.0], [7.0]]);
    }
}
