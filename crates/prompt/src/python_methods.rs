//! Python's methods that chat templates call.

use minijinja::value::{Value, from_args};
use minijinja::{Error, State};
use minijinja_contrib::pycompat;

/// Calls a method of Python's on a value of a template.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    match value.as_str().map(|text| (text, method)) {
        Some((text, "removeprefix")) => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        Some((text, "removesuffix")) => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        Some((text, "partition")) => {
            let (separator,): (&str,) = from_args(arguments)?;
            Ok(list(match text.split_once(separator) {
                Some((before, behind)) => [before, separator, behind],
                None => [text, "", ""],
            }))
        }
        Some((text, "rsplit")) => {
            let (separator, splits): (Option<&str>, Option<i64>) = from_args(arguments)?;
            Ok(list(rsplit(text, separator, splits.and_then(|splits| usize::try_from(splits).ok()))))
        }
        _ => pycompat::unknown_method_callback(state, value, method, arguments),
    }
}

fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> Value {
    Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>())
}

/// Splits from the right, so many times at most; at white space without a separator.
fn rsplit<'t>(text: &'t str, separator: Option<&str>, splits: Option<usize>) -> Vec<&'t str> {
    let most = splits.unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = match separator {
        Some(separator) => text.rsplitn(most.saturating_add(1), separator).collect(),
        None => words_from_right(text, most),
    };
    parts.reverse();
    parts
}

/// The words of a text, the last one first, and what is left of it after so many.
fn words_from_right(text: &str, most: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_end();
    while words.len() < most
        && let Some(at) = rest.rfind(char::is_whitespace)
    {
        words.push(rest[at..].trim_start());
        rest = rest[..at].trim_end();
    }
    if !rest.is_empty() {
        words.push(rest);
    }
    words
}
