//! Reads numbers as models write them: with signs, thousands, fractions, units and powers of ten, in plain text or LaTeX.
//!
//! What has a root or another power is no number here. It is compared as it is written.

use std::iter;

/// The most by which a power of ten moves the decimal point; what is written with a higher one is compared as a text.
const POINT_MOVE_MAX: u32 = 400;

/// What stands between a number and its power of ten.
const TIMES: [&str; 6] = ["\\times", "\\cdot", "×", "·", "*", "x"];

/// What turns the number beside it into another. A fraction is left only where it stands behind a whole number.
const OPERATORS: [&str; 6] = ["\\sqrt", "√", "\\pi", "π", "\\frac{", "binom{"];

/// Commands that say nothing about the value of the number beside them.
const LABELS: [&str; 6] = ["\\text", "\\mathrm", "\\mathbf", "\\approx", "\\quad", "\\circ"];

/// Spellings of LaTeX, and what is read for them.
const SPELLINGS: [(&str, &str); 18] = [
    ("−", "-"),
    ("–", "-"),
    ("\\(", "$"),
    ("\\)", "$"),
    ("\\[", "$"),
    ("\\]", "$"),
    ("\\left", ""),
    ("\\right", ""),
    ("\\,", ""),
    ("\\!", ""),
    ("\\;", ""),
    ("\\ ", " "),
    ("\\$", "$"),
    ("\\%", "%"),
    ("{,}", ","),
    ("^{\\circ}", "°"),
    ("^\\circ", "°"),
    ("}{", "/"),
];

/// A number, and where it stands.
struct WrittenNumber {
    start: usize,
    end: usize,
    /// Its digits, without a sign and with its power of ten.
    value: String,
}

/// The last number of a text, or the root or power that it is a part of.
pub(super) fn last_number(text: &str) -> Option<String> {
    last_of(&plain_spelling(text))
}

/// The number of a text that holds nothing else but its name before an equals sign, and its unit.
pub(super) fn only_number(text: &str) -> Option<String> {
    let text = plain_spelling(text);
    let value = text.split_once('=').map_or(text.as_str(), |(_, value)| value);
    if is_one_number(value) { last_of(value) } else { None }
}

/// One way to write signs, fractions, exponents and blanks.
fn plain_spelling(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut is_raised = false;
    for character in text.chars() {
        let raised = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺".chars().zip("0123456789-+".chars()).find(|(from, _)| *from == character);
        if raised.is_some() && !is_raised {
            plain.push('^');
        }
        is_raised = raised.is_some();
        plain.push(raised.map_or(character, |(_, digit)| digit));
    }
    let plain = SPELLINGS.iter().fold(plain, |plain, (from, to)| plain.replace(from, to));
    let plain = plain_fractions(&plain);
    // A blank before a command parts nothing: "2 \sqrt{3}".
    plain.replace(" \\", "\\")
}

/// Fractions without their command, but for those behind a digit: that is a mixed number, or a product.
fn plain_fractions(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once("frac{") {
        rest = behind;
        let command = ["\\", "\\d", "\\t"].iter().find_map(|begin| before.strip_suffix(begin));
        plain.push_str(command.unwrap_or(before));
        let number = plain.strip_suffix(' ').unwrap_or(&plain);
        if number.ends_with(|end: char| end.is_ascii_digit()) {
            plain.push_str("\\frac{");
        }
    }
    plain + rest
}

fn last_of(text: &str) -> Option<String> {
    let number = numbers(text).last()?;
    let sign = if number.value == "0" { "" } else { minus(&text[..number.start]) };
    Some(expression(text, &number).unwrap_or_else(|| sign.to_owned() + &number.value))
}

/// All numbers but those that are a part of a name or of a unit.
fn numbers(text: &str) -> impl Iterator<Item = WrittenNumber> {
    let mut from = 0;
    let all = iter::from_fn(move || {
        let number = next_number(text, from)?;
        from = number.end;
        Some(number)
    });
    all.filter(move |number| !is_of_name(&text[..number.start]))
}

fn next_number(text: &str, from: usize) -> Option<WrittenNumber> {
    let is_part = |character: char| character.is_ascii_digit() || matches!(character, '.' | ',' | '/');
    let start = from + text[from..].find(|character: char| character.is_ascii_digit())?;
    let end = text[start..].find(|character| !is_part(character)).map_or(text.len(), |at| start + at);
    let (digits, rest) = (&text[start..end], &text[end..]);
    let power_alone = rest.strip_prefix('^').filter(|_| digits == "10").and_then(exponent);
    let power = power_alone.map(|power| ("1", power)).or_else(|| Some((digits, power_of_ten(rest)?)));
    let moved =
        power.and_then(|(digits, (places, after))| Some((point_moved(&plain(digits), places)?, after)));
    let (value, after) = moved.unwrap_or_else(|| (plain(digits), rest));
    Some(WrittenNumber { start, end: text.len() - after.len(), value })
}

/// The power of ten behind a number (`e6`, `× 10^6`, `\times 10^{-6}`), and what stands behind that.
fn power_of_ten(rest: &str) -> Option<(i32, &str)> {
    if let Some(power) = rest.strip_prefix(['e', 'E']).and_then(exponent) {
        return Some(power);
    }
    let rest = rest.trim_start();
    let factor = TIMES.iter().find_map(|times| rest.strip_prefix(times))?;
    exponent(factor.trim_start().strip_prefix("10^")?)
}

fn exponent(text: &str) -> Option<(i32, &str)> {
    let braced = text.strip_prefix('{');
    let written = braced.unwrap_or(text);
    let end = written.find(|character: char| !character.is_ascii_digit() && !matches!(character, '-' | '+'));
    let (digits, after) = written.split_at(end.unwrap_or(written.len()));
    let after = if braced.is_some() { after.strip_prefix('}')? } else { after };
    let places: i32 = digits.parse().ok()?;
    let is_whole = !after.starts_with(char::is_alphanumeric);
    (is_whole && places.unsigned_abs() <= POINT_MOVE_MAX).then_some((places, after))
}

/// A number whose decimal point is so many places further to the right; nothing for a fraction.
fn point_moved(number: &str, places: i32) -> Option<String> {
    let by = usize::try_from(places.unsigned_abs()).ok().filter(|_| !number.contains('/'))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let zeros = "0".repeat(by);
    if places < 0 {
        let whole = zeros + whole;
        let (whole, small) = whole.split_at(whole.len() - by);
        return Some(plain(&format!("{whole}.{small}{fraction}")));
    }
    let fraction = fraction.to_owned() + &zeros;
    let (large, fraction) = fraction.split_at(by);
    Some(plain(&format!("{whole}{large}.{fraction}")))
}

/// Digits without thousands' commas, leading and trailing zeros and what ended the sentence.
fn plain(written: &str) -> String {
    let written = written.trim_end_matches(['.', ',', '/']);
    if let Some((above, below)) = written.split_once('/') {
        return format!("{}/{}", plain(above), plain(below));
    }
    let digits = written.replace(',', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// A minus before a number is a sign where nothing that could be subtracted from stands before it.
fn minus(before: &str) -> &'static str {
    let before = before.strip_suffix('.').unwrap_or(before);
    let before = before.strip_suffix('$').unwrap_or(before);
    let Some(before) = before.strip_suffix('-') else { return "" };
    let operand =
        before.trim_end().ends_with(|character: char| character.is_alphanumeric() || character == ')');
    if operand { "" } else { "-" }
}

/// Whether a number that stands behind this is an index (`x_1`) or the power of a unit or a variable (`cm^2`, `s^{-2}`).
fn is_of_name(before: &str) -> bool {
    let before = before.trim_end_matches(['{', '-', '+']);
    let is_name = |text: &str| text.ends_with(|end: char| end.is_alphanumeric() || end == '}');
    if let Some(indexed) = before.strip_suffix('_') {
        return is_name(indexed);
    }
    let Some(base) = before.strip_suffix('^') else { return false };
    let rest = base.trim_end_matches(char::is_alphabetic);
    let letters = &base[rest.len()..];
    let is_constant = matches!(letters, "e" | "π") || (letters == "pi" && rest.ends_with('\\'));
    base.ends_with('}') || !(letters.is_empty() || is_constant)
}

/// The root, power or multiple of pi that a number is a part of, as it is written.
fn expression(text: &str, number: &WrittenNumber) -> Option<String> {
    let (before, after) = (&text[..number.start], &text[number.end..]);
    let is_gap = |character: char| character.is_whitespace() || matches!(character, '=' | '≈' | '$');
    let left = before.rsplit(is_gap).next().unwrap_or(before);
    let right = after.split(is_gap).next().unwrap_or(after);
    let whole = format!("{left}{}{right}", &text[number.start..number.end]);
    let is_power = after.starts_with('^') || before.trim_end_matches(['{', '-', '+']).ends_with('^');
    if !is_power && !OPERATORS.iter().any(|sign| whole.contains(sign)) {
        return None;
    }
    let whole = whole.trim_start_matches(|begin: char| begin.is_alphabetic() || ":,*".contains(begin));
    Some(whole.trim_end_matches(['.', ',', ':', ';', '!', '*']).to_lowercase())
}

/// True for a number with no more than its sign and its unit.
fn is_one_number(value: &str) -> bool {
    let mut all = numbers(value);
    let (Some(number), None) = (all.next(), all.next()) else { return false };
    let before = value[..number.start].trim_start().trim_start_matches('+');
    let is_difference = before.contains('-') && minus(before).is_empty();
    let name = before.trim_end_matches(['-', '$', '.', '{']);
    let unit = value[number.end..].replace("^{-", "^{").replace("^-", "^");
    let digits = &value[number.start..number.end];
    !is_difference && has_thousands(digits) && is_label(name) && is_label(&unit)
}

/// True for words, units and signs of money beside a number.
fn is_label(text: &str) -> bool {
    let text = LABELS.iter().fold(text.to_owned(), |text, label| text.replace(label, ""));
    text.chars().all(|character| {
        character.is_alphanumeric() || character.is_whitespace() || "{}$%°€£¥^/.~".contains(character)
    })
}

/// True if every comma parts thousands, and not two numbers.
fn has_thousands(digits: &str) -> bool {
    let digits_of = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
    digits.split(',').skip(1).all(|part| digits_of(part) == 3)
}
