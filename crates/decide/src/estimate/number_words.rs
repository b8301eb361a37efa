//! Numbers in figures and in words, as they stand before what is counted: "2,000 words", "five hundred", 两千.

/// Numbers by their words.
const NUMBERS: &[(f64, &[&str])] = &[
    (1.0, &["one", "ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uma", "одном", "одно"]),
    (2.0, &["two", "zwei", "deux", "dos", "dois", "duas", "due", "двух", "два"]),
    (3.0, &["three", "drei", "trois", "tres", "três", "tre", "трёх", "трех", "три"]),
    (4.0, &["four", "vier", "quatre", "cuatro"]),
    (5.0, &["five", "fünf", "cinq", "cinco"]),
    (6.0, &["six"]),
    (7.0, &["seven"]),
    (8.0, &["eight"]),
    (9.0, &["nine"]),
    (10.0, &["ten", "zehn", "dix", "diez"]),
    (11.0, &["eleven"]),
    (12.0, &["twelve"]),
    (15.0, &["fifteen"]),
    (20.0, &["twenty"]),
    (30.0, &["thirty"]),
    (40.0, &["forty"]),
    (50.0, &["fifty"]),
    (60.0, &["sixty"]),
    (70.0, &["seventy"]),
    (80.0, &["eighty"]),
    (90.0, &["ninety"]),
];
/// Chinese figures, and what they are multiplied with.
const HAN: [(char, u32); 15] = [
    ('零', 0),
    ('一', 1),
    ('二', 2),
    ('两', 2),
    ('三', 3),
    ('四', 4),
    ('五', 5),
    ('六', 6),
    ('七', 7),
    ('八', 8),
    ('九', 9),
    ('十', 10),
    ('百', 100),
    ('千', 1_000),
    ('万', 10_000),
];

/// The number that stands right before a unit, behind a blank or a hyphen, and what stands before it.
pub(super) fn count_before(text: &str) -> Option<(f64, &str)> {
    let (before, word) = last_word(text);
    let factor = match word {
        "hundred" => 100.0,
        "thousand" => 1_000.0,
        _ => return number(word).map(|count| with_tens(count, before)),
    };
    let (before, word) = last_word(before);
    let count = if word == "a" { Some(1.0) } else { number(word) };
    count.map(|count| (count * factor, before))
}

/// The number that a word is, or ends in.
pub(super) fn number(word: &str) -> Option<f64> {
    let digits: String = word.chars().filter(|letter| *letter != ',').collect();
    let figures = digits.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u32>().ok();
    let spelled = || NUMBERS.iter().find(|(_, names)| names.contains(&word)).map(|(count, _)| *count);
    figures.filter(|count| *count > 0).map(f64::from).or_else(spelled).or_else(|| han_number(word))
}

/// A number with the tens before it, as in "twenty-five".
fn with_tens(count: f64, before: &str) -> (f64, &str) {
    let (rest, word) = last_word(before);
    match number(word) {
        Some(tens) if before.ends_with('-') && tens >= 20.0 && count < 10.0 => (tens + count, rest),
        _ => (count, before),
    }
}

/// What stands before the last word of a text, and that word.
fn last_word(text: &str) -> (&str, &str) {
    let text = text.trim_end_matches([' ', '-', '\u{a0}']);
    let sign = text.char_indices().rev().find(|(_, letter)| !letter.is_alphanumeric() && *letter != ',');
    text.split_at(sign.map_or(0, |(at, letter)| at + letter.len_utf8()))
}

/// A number such as 两千, 十五 or 5千 at the end of a word. A figure alone is none, for 四字 is a kind of phrase, and 十 alone neither, for
/// 十字 is a cross.
fn han_number(word: &str) -> Option<f64> {
    let is_part = |letter: char| letter.is_ascii_digit() || han_value(letter).is_some();
    let (begins, _) = word.char_indices().rev().take_while(|(_, letter)| is_part(*letter)).last()?;
    let letters = &word[begins..];
    let multiplies = letters.chars().filter_map(han_value).any(|value| value >= 10);
    let count = multiplies.then(|| han_sum(letters))?;
    letters.chars().nth(1).map(|_| count)
}

fn han_value(letter: char) -> Option<u32> {
    HAN.iter().find(|(known, _)| *known == letter).map(|(_, value)| *value)
}

/// What such letters come to: 万 multiplies all before it, the others the figure before them.
fn han_sum(letters: &str) -> f64 {
    let (mut sum, mut figure) = (0.0_f64, 0.0_f64);
    for letter in letters.chars() {
        match han_value(letter) {
            None => figure = figure * 10.0 + letter.to_digit(10).map_or(0.0, f64::from),
            Some(value) if value < 10 => figure = f64::from(value),
            Some(10_000) => (sum, figure) = ((sum + figure).max(1.0) * 10_000.0, 0.0),
            Some(value) => (sum, figure) = (sum + figure.max(1.0) * f64::from(value), 0.0),
        }
    }
    sum + figure
}

#[cfg(test)]
mod tests {
    use super::count_before;

    #[test]
    fn the_number_right_before_something_is_read() {
        for (text, count, before) in [
            ("write 2,000 ", 2_000.0, "write "),
            ("in 500-", 500.0, "in "),
            ("five hundred ", 500.0, ""),
            ("a thousand ", 1_000.0, ""),
            ("in twenty-five ", 25.0, "in "),
            ("3-5 ", 5.0, "3-"),
            ("（三千五百", 3_500.0, "（"),
            ("（二十万", 200_000.0, "（"),
            ("（一百二十万三千", 1_203_000.0, "（"),
            ("（十五", 15.0, "（"),
            ("（十万", 100_000.0, "（"),
            ("（1万", 10_000.0, "（"),
            ("（5千", 5_000.0, "（"),
        ] {
            let found = count_before(text);
            assert!(
                found.is_some_and(|(number, rest)| (number - count).abs() < 0.1 && rest == before),
                "{found:?}"
            );
        }
        for text in ["", "the ", "0 ", "several hundred ", "四", "十", "红十", "几千"] {
            assert_eq!(count_before(text), None, "{text}");
        }
    }
}
