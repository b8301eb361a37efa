//! `SeriesDescription`: what one series is. The reference page, the dashboard and the alerts are made from these.

/// What one series is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesDescription {
    /// What it is about, as a heading.
    pub subject: &'static str,
    /// How it behaves.
    pub kind: SeriesKind,
    /// Its whole name.
    pub name: String,
    /// What it says.
    pub help: String,
    /// The names of its labels.
    pub labels: Vec<String>,
}

/// How a series behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It counts values by their size.
    Histogram,
}

/// What a series is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesUnit {
    /// Seconds.
    Seconds,
    /// A moment, in seconds since 1970.
    Timestamp,
    /// Dollars.
    Dollars,
    /// Dollars a second.
    DollarsPerSecond,
    /// Bytes.
    Bytes,
    /// Tokens.
    Tokens,
    /// A share of one.
    Ratio,
    /// Things.
    Count,
}

impl SeriesKind {
    /// Prometheus' word.
    pub fn as_str(self) -> &'static str {
        match self {
            SeriesKind::Counter => "counter",
            SeriesKind::Gauge => "gauge",
            SeriesKind::Histogram => "histogram",
        }
    }
}

impl SeriesUnit {
    /// The word in the reference; a count has none.
    pub fn as_str(self) -> &'static str {
        match self {
            SeriesUnit::Seconds => "seconds",
            SeriesUnit::Timestamp => "seconds since 1970",
            SeriesUnit::Dollars => "dollars",
            SeriesUnit::DollarsPerSecond => "dollars a second",
            SeriesUnit::Bytes => "bytes",
            SeriesUnit::Tokens => "tokens",
            SeriesUnit::Ratio => "share of 1",
            SeriesUnit::Count => "",
        }
    }
}

impl SeriesDescription {
    /// What it is counted in: names end in their unit, as Prometheus wants it.
    pub fn unit(&self) -> SeriesUnit {
        let name = self.name.strip_suffix("_total").unwrap_or(&self.name);
        let is_share = ["_ratio", "_score", "_predicted"].iter().any(|end| name.ends_with(end));
        match name {
            _ if name.ends_with("_timestamp_seconds") || name.ends_with("_start_time_seconds") => {
                SeriesUnit::Timestamp
            }
            _ if name.ends_with("_usd_per_second") => SeriesUnit::DollarsPerSecond,
            _ if name.ends_with("_seconds") => SeriesUnit::Seconds,
            _ if name.ends_with("_usd") || name.ends_with("_regret") => SeriesUnit::Dollars,
            _ if name.ends_with("_bytes") => SeriesUnit::Bytes,
            _ if name.contains("_tokens") => SeriesUnit::Tokens,
            _ if is_share => SeriesUnit::Ratio,
            _ => SeriesUnit::Count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, unit: SeriesUnit) {
        let (kind, name) = (SeriesKind::Gauge, name.to_owned());
        let series = SeriesDescription { subject: "", kind, name, help: String::new(), labels: Vec::new() };
        assert_eq!(series.unit(), unit, "{}", series.name);
    }

    #[test]
    fn a_name_ends_in_its_unit() {
        check("stint_request_seconds", SeriesUnit::Seconds);
        check("process_cpu_seconds_total", SeriesUnit::Seconds);
        check("process_start_time_seconds", SeriesUnit::Timestamp);
        check("stint_money_spent_usd_total", SeriesUnit::Dollars);
        check("stint_spend_rate_usd_per_second", SeriesUnit::DollarsPerSecond);
        check("stint_prompt_tokens_total", SeriesUnit::Tokens);
        check("stint_thinking_tokens_used", SeriesUnit::Tokens);
        check("process_resident_memory_bytes", SeriesUnit::Bytes);
        check("stint_budget_left_ratio", SeriesUnit::Ratio);
        check("stint_requests_total", SeriesUnit::Count);
    }
}
