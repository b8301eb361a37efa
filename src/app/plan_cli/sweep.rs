//! What would be chosen from which worth to which, as a table.

use serde_json::Value;

use super::super::output::align_columns;
use super::text;

/// A line for each range, that of the worth in force marked.
pub(super) fn table(sweep: &Value) -> String {
    let head = ["", "worth from", "to USD", "model", "thinking", "samples", "success", "USD"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let now = dollars(&sweep["worth_usd"]);
    let ranges = sweep["ranges"].as_array().map_or(&[][..], Vec::as_slice);
    rows.extend(ranges.iter().map(|range| row(range, now)));
    let worth = text(&sweep["worth_usd"]);
    format!("{}\n\n→: what holds now, where a right answer is worth {worth} dollars", align_columns(&rows, 4))
}

fn row(range: &Value, now: f64) -> Vec<String> {
    let [from, to] = [0, 1].map(|end| &range["worth_usd"][end]);
    let is_now = (dollars(from)..=dollars(to)).contains(&now);
    vec![
        if is_now { "→" } else { "" }.to_owned(),
        short(dollars(from)),
        short(dollars(to)),
        who(range),
        span(&range["thinking_tokens"], text),
        text(&range["samples"]),
        span(&range["success"], |share| format!("{:.1} %", share.as_f64().unwrap_or(0.0) * 100.0)),
        span(&range["cost_usd"], |cost| short(dollars(cost))),
    ]
}

fn who(range: &Value) -> String {
    let model = text(&range["model"]);
    let effort = range["reasoning_effort"].as_str().map_or(String::new(), |word| format!(" ({word})"));
    let second = range["escalates_to"].as_str().map_or(String::new(), |second| format!(", then {second}"));
    format!("{model}{effort}{second}")
}

/// Both ends, or the one where they are alike.
fn span(ends: &Value, shown: impl Fn(&Value) -> String) -> String {
    let [from, to] = [0, 1].map(|end| shown(&ends[end]));
    if from == to { from } else { format!("{from}–{to}") }
}

fn dollars(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Dollars with three digits that count.
pub(in crate::app) fn short(dollars: f64) -> String {
    if dollars <= 0.0 {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few digits")]
    let decimals = (2.0 - dollars.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{dollars:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_range_is_a_line_and_the_one_in_force_is_marked() {
        let range = |from: &str, to: &str, model: &str, second: Option<&str>| {
            json!({ "worth_usd": [from, to], "model": model, "thinking_tokens": [0, 40], "samples": 1,
                    "success": [0.5, 0.6], "cost_usd": ["0.001", "0.001"], "escalates_to": second })
        };
        let ranges =
            [range("0.00001", "0.02", "small", None), range("0.0201", "100", "small", Some("large"))];
        let shown = table(&json!({ "worth_usd": "0.05", "ranges": ranges }));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[1],
            "   0.00001     0.02    small                  0–40        1  50.0 %–60.0 %  0.001"
        );
        assert_eq!(
            lines[2],
            "→  0.0201      100     small, then large      0–40        1  50.0 %–60.0 %  0.001"
        );
    }

    #[test]
    fn dollars_have_three_digits_that_count() {
        let shown = [0.0, 0.000_012_345, 0.05, 1.0, 123.4, 1234.5].map(short);
        assert_eq!(shown, ["0", "0.0000123", "0.05", "1", "123", "1234"]);
    }
}
