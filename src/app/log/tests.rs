//! What is logged, and how a line looks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::*;

fn check(filter: &str, requests: bool, expected: &str) {
    let log = LoggingSettings { filter: filter.to_owned(), format: LogFormat::Text, requests };
    assert_eq!(directives(&log), expected);
    assert!(EnvFilter::try_new(expected).is_ok());
}

#[test]
fn shader_compilers_and_pools_are_heard_only_where_they_are_named_and_requests_can_be_left_out() {
    let pools = "sqlx::pool=error,sqlx_core::pool=error,sqlx::postgres::notice=error";
    let quiet = format!("naga=warn,wgpu_core=warn,wgpu_hal=warn,{pools}");
    check("debug", true, &format!("debug,{quiet}"));
    check("info,stint::plan=debug", false, &format!("info,stint::plan=debug,{quiet},stint::requests=off"));
    check("debug,naga=debug", true, &format!("debug,naga=debug,wgpu_core=warn,wgpu_hal=warn,{pools}"));
    check("warn", true, &format!("warn,{pools}"));
    check("warn,sqlx=warn", true, "warn,sqlx=warn");
    check("error", true, "error");
    check("stint=debug", true, "stint=debug");
}

#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = CapturedLog;

    fn make_writer(&'a self) -> CapturedLog {
        self.clone()
    }
}

#[test]
fn a_json_line_has_every_name_once_and_numbers_as_numbers() {
    let kept = CapturedLog::default();
    let subscriber = tracing_subscriber::fmt().with_writer(kept.clone()).event_format(JsonLines).finish();
    tracing::subscriber::with_default(subscriber, || {
        let nothing: Option<u64> = None;
        tracing::info!(target: "stint::requests", target = "replica-2", tokens = 7, nothing, "request");
    });
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("\"target\"").count(), 1, "{text}");
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["target"], &line["module"]), (&"replica-2".into(), &"stint::requests".into()));
    assert_eq!(
        (&line["tokens"], &line["level"], &line["message"]),
        (&7.into(), &"INFO".into(), &"request".into())
    );
    assert!(line.get("nothing").is_none() && line["timestamp"].is_string());
}

/// What a line of text says behind where it comes from, by the library and by us.
fn lines(log: impl Fn()) -> [String; 2] {
    let (library, ours) = (CapturedLog::default(), CapturedLog::default());
    let builder = || tracing_subscriber::fmt().with_ansi(false).without_time();
    let subscriber = builder().with_writer(library.clone()).finish();
    tracing::subscriber::with_default(subscriber, &log);
    let subscriber = builder().with_writer(ours.clone()).fmt_fields(TextFields).finish();
    tracing::subscriber::with_default(subscriber, &log);
    [library, ours].map(|kept| String::from_utf8(kept.0.lock().unwrap().clone()).unwrap())
}

#[test]
fn a_line_of_text_is_as_the_library_writes_it() {
    let cause = std::io::Error::other("a\u{1b}[31m cause");
    let nothing: Option<u64> = None;
    let [library, ours] = lines(|| {
        let shown = tracing::field::display("0.000027");
        let error = &cause as &dyn std::error::Error;
        tracing::info!(
            r#type = "é\"\\\n",
            plain = "req_1 ~",
            n = 7,
            m = -7,
            half = 0.5,
            whole = 1.0,
            is = true,
            nothing,
            shown,
            error,
            "a request"
        );
        tracing::warn!(?nothing, "a {}", "\u{1b}[31m");
        tracing::warn!("alone");
    });
    assert_eq!(library, ours);
    assert!(ours.contains("a request type=\"é\\\"") && !ours.contains('\u{1b}'), "{ours}");
}
