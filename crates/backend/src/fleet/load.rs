//! Parses the queue lengths that inference engines publish in Prometheus' text format.

/// How busy an engine is, as it reports itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedLoad {
    /// Requests that wait.
    pub waiting: u32,
    /// Requests that are worked on.
    pub running: u32,
}

/// The series of waiting and of running requests, of vLLM, of `SGLang` and of llama.cpp's server.
const SERIES: [(&str, &str); 3] = [
    ("vllm:num_requests_waiting", "vllm:num_requests_running"),
    ("sglang:num_queue_reqs", "sglang:num_running_reqs"),
    ("llamacpp:requests_deferred", "llamacpp:requests_processing"),
];

impl ReportedLoad {
    /// Reads an engine's page. Series of several models or ranks are summed; nothing if the engine is unknown.
    pub fn parse(page: &str) -> Option<ReportedLoad> {
        SERIES.iter().find_map(|(waiting, running)| {
            let (waiting, running) = (sum(page, waiting), sum(page, running));
            (waiting.is_some() || running.is_some()).then(|| ReportedLoad {
                waiting: count(waiting.unwrap_or_default()),
                running: count(running.unwrap_or_default()),
            })
        })
    }
}

fn sum(page: &str, name: &str) -> Option<f64> {
    let values = page.lines().filter_map(|line| value(line, name));
    values.fold(None, |sum, value| Some(sum.unwrap_or_default() + value))
}

/// `name value`, `name{labels} value`, each with a time stamp or without.
fn value(line: &str, name: &str) -> Option<f64> {
    let rest = line.trim().strip_prefix(name)?;
    let rest = match rest.strip_prefix('{') {
        Some(labels) => after_labels(labels)?,
        None if rest.starts_with(char::is_whitespace) => rest,
        None => return None,
    };
    rest.split_whitespace().next()?.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

/// A label's value may have braces and escaped quotes in it.
fn after_labels(text: &str) -> Option<&str> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "finite, not negative, and it saturates"
)]
fn count(value: f64) -> u32 {
    value.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: Option<(u32, u32)>) {
        assert_eq!(
            ReportedLoad::parse(page),
            expected.map(|(waiting, running)| ReportedLoad { waiting, running }),
            "{page}"
        );
    }

    #[test]
    fn the_pages_of_three_engines_are_understood() {
        let vllm = "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
                    # TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"q\"} 7.0\n\
                    vllm:num_requests_running{engine=\"1\",model_name=\"q\"} 5.0\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"q\"} 3.0\n\
                    vllm:num_requests_waiting_by_reason{engine=\"0\"} 99.0\n";
        check(vllm, Some((3, 12)));
        let sglang =
            "sglang:num_running_reqs{model_name=\"m\"} 2.0\nsglang:num_queue_reqs{model_name=\"m\"} 11.0\n";
        check(sglang, Some((11, 2)));
        let llamacpp = "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 4\n\
                        llamacpp:requests_deferred 1 1700000000000\n";
        check(llamacpp, Some((1, 4)));
    }

    #[test]
    fn braces_and_quotes_in_labels_do_not_confuse() {
        check("vllm:num_requests_waiting{model_name=\"a}\\\" 7 {\"} 2\n", Some((2, 0)));
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        for page in [
            "",
            "<html>not here</html>",
            "other:num_requests_waiting 5",
            "vllm:num_requests_waiting",
            "vllm:num_requests_waiting NaN",
            "vllm:num_requests_waiting -1",
            "vllm:num_requests_waiting{model=\"x\" 5",
        ] {
            check(page, None);
        }
    }
}
