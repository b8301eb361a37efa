//! Counts answers by endpoint and class of status. The counters are looked up by the request's path, which is not kept: a label is
//! a path of the route table, or `other`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use stint_types::metrics::{IntCounter, Metrics, OTHER};

/// The classes, from 2xx on: nothing else ends a request.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// One for each class.
type ClassCounters = [IntCounter; CLASSES.len()];

/// The counters of all endpoints. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct EndpointCounters(Arc<CounterTable>);

#[derive(Debug)]
struct CounterTable {
    /// By a path without variables.
    fixed: HashMap<&'static str, ClassCounters>,
    /// By a path with variables, those with more segments first.
    patterns: Vec<(&'static str, ClassCounters)>,
    other: ClassCounters,
}

impl EndpointCounters {
    /// Begins at 0 for each of these paths.
    pub(super) fn new(metrics: &Metrics, paths: impl Iterator<Item = &'static str>) -> EndpointCounters {
        let of = |path: &str| CLASSES.map(|class| metrics.server.responses.with_label_values(&[path, class]));
        let (patterns, fixed): (Vec<_>, Vec<_>) =
            paths.map(|path| (path, of(path))).partition(|(path, _)| path.contains('{'));
        let fixed = fixed.into_iter().collect();
        EndpointCounters(Arc::new(CounterTable { fixed, patterns, other: of(OTHER) }))
    }

    /// The endpoint of a path, as the route table has it.
    pub(super) fn endpoint(&self, path: &str) -> &'static str {
        self.of(path).0
    }

    /// Counts an answer to a request for a path.
    pub(super) fn count(&self, path: &str, status: StatusCode) {
        self.of(path).1[class(status)].inc();
    }

    fn of(&self, path: &str) -> (&'static str, &ClassCounters) {
        let CounterTable { fixed, patterns, other } = &*self.0;
        match fixed.get_key_value(path) {
            Some((endpoint, counters)) => (*endpoint, counters),
            None => {
                let found = patterns.iter().find(|(pattern, _)| matches(pattern, path));
                found.map_or((OTHER, other), |(pattern, counters)| (*pattern, counters))
            }
        }
    }
}

/// Counts an answer that was given before anybody looked at the path.
pub(super) fn count_other(metrics: &Metrics, status: StatusCode) {
    metrics.server.responses.with_label_values(&[OTHER, CLASSES[class(status)]]).inc();
}

fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).clamp(2, CLASSES.len() + 1) - 2
}

/// Whether a path is one of a pattern's: `{name}` is one segment, `{*name}` all that are left.
fn matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let Some(segment) = segments.next() else { return false };
        if expected.starts_with("{*") {
            return !segment.is_empty();
        }
        let is_variable = expected.starts_with('{');
        if segment != expected && (!is_variable || segment.is_empty()) {
            return false;
        }
    }
    segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, status: u16, line: &str) {
        let metrics = Metrics::new().unwrap();
        let paths =
            ["/v1/models", "/v1/models/{*name}", "/v1/responses/{id}", "/v1/responses/{id}/input_items"];
        let counters = EndpointCounters::new(&metrics, paths.into_iter());
        counters.count(path, StatusCode::from_u16(status).unwrap());
        let page = metrics.render();
        assert!(page.contains(&format!("stint_http_responses_total{{{line}}} 1")), "{path}: {page}");
    }

    #[test]
    fn an_answer_counts_for_the_endpoint_and_the_class() {
        check("/v1/models", 200, r#"class="2xx",endpoint="/v1/models""#);
        check("/v1/models/a/b", 404, r#"class="4xx",endpoint="/v1/models/{*name}""#);
        check("/v1/responses/resp_7", 200, r#"class="2xx",endpoint="/v1/responses/{id}""#);
        check(
            "/v1/responses/resp_7/input_items",
            503,
            r#"class="5xx",endpoint="/v1/responses/{id}/input_items""#,
        );
        check("/v1/responses/", 404, r#"class="4xx",endpoint="other""#);
        check("/secret-of-a-caller", 404, r#"class="4xx",endpoint="other""#);
    }
}
