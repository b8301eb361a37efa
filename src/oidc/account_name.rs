//! The account that claims name: a part of a path for each, so written that two callers never share one.

use std::fmt::Write;

use stint_types::units::AccountId;

/// The account of these values below a tree; none where a value is empty or the path is too long.
pub(super) fn account(tree: &AccountId, values: &[String]) -> Option<AccountId> {
    if values.iter().any(String::is_empty) {
        return None;
    }
    let path = values.iter().fold(tree.as_str().to_owned(), |path, value| format!("{path}/{}", part(value)));
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
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
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
    }

    #[test]
    fn what_is_empty_or_too_long_names_no_account() {
        check(&[""], None);
        check(&["a", ""], None);
        check(&[&"a".repeat(300)], None);
    }
}
