//! The account that claims name: a part of a path for each, so written that two callers never share one.

use std::fmt::Write;

use stint_types::units::AccountId;

/// What a claim has that names an account. A number is another caller than the text that looks like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamingValue {
    Text(String),
    Number(String),
}

/// The account of these values below a tree; none where a value is empty or the path is too long.
pub(super) fn account(tree: &AccountId, values: &[NamingValue]) -> Option<AccountId> {
    let mut path = tree.as_str().to_owned();
    for value in values {
        let part = match value {
            NamingValue::Text(text) if text.is_empty() => return None,
            NamingValue::Text(text) => part(text),
            // No text is written so: behind a `%` of one there are two hexadecimal digits.
            NamingValue::Number(digits) => format!("%n{digits}"),
        };
        path = format!("{path}/{part}");
    }
    path.parse().ok()
}

/// A text as one part of a path. What would be read as something else stands in it as `%` and two digits, as in an address.
fn part(text: &str) -> String {
    let (first, last) = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut part = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let is_outside = at < first || at >= last;
        if matches!(letter, '/' | '%') || letter.is_control() || is_outside {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                // Writing to a text does not fail.
                let _ = write!(part, "%{byte:02x}");
            }
        } else {
            part.push(letter);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], expected: Option<&str>) {
        let values: Vec<NamingValue> =
            values.iter().map(|&value| NamingValue::Text(value.to_owned())).collect();
        let account = account(&AccountId::new("staff"), &values);
        assert_eq!(account.as_ref().map(AccountId::as_str), expected, "{values:?}");
    }

    #[test]
    fn every_value_is_one_part_below_the_tree() {
        check(&["alice"], Some("staff/alice"));
        check(&["acme", "alice"], Some("staff/acme/alice"));
        check(&["Müller & Söhne"], Some("staff/Müller & Söhne"));
        check(&["auth0|12"], Some("staff/auth0|12"));
    }

    #[test]
    fn no_value_reaches_another_account() {
        check(&["acme/alice"], Some("staff/acme%2falice"));
        check(&["acme%2falice"], Some("staff/acme%252falice"));
        check(&["../first"], Some("staff/..%2ffirst"));
        check(&[" alice"], Some("staff/%20alice"));
        check(&["alice\n"], Some("staff/alice%0a"));
        check(&["a\u{0}b"], Some("staff/a%00b"));
        check(&["  "], Some("staff/%20%20"));
        check(&["é\u{a0}"], Some("staff/é%c2%a0"));
        check(&["%n12"], Some("staff/%25n12"));
        let number = account(&AccountId::new("staff"), &[NamingValue::Number("12".to_owned())]);
        assert_eq!(number, Some(AccountId::new("staff/%n12")));
    }

    #[test]
    fn what_is_empty_or_too_long_names_no_account() {
        check(&[""], None);
        check(&["a", ""], None);
        check(&[&"a".repeat(300)], None);
    }
}
