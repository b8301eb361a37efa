//! The members of a line of text: as the library writes them, without what it takes to prepare them for colours.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, DefaultVisitor, Writer};

/// Writes members so. On a terminal the library does it, in colours.
pub(super) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        if writer.has_ansi_escapes() {
            return DefaultFields::new().format_fields(writer, fields);
        }
        let mut members = FieldWriter { text: String::with_capacity(USUAL), result: Ok(()) };
        fields.record(&mut members);
        members.result.and_then(|()| writer.write_str(&members.text))
    }
}

/// What the members of the line of a request take, in bytes.
const USUAL: usize = 512;

/// Writes into a text of its own: each piece would else pass through three layers.
struct FieldWriter {
    text: String,
    result: fmt::Result,
}

impl FieldWriter {
    fn put(&mut self, field: &Field, value: impl FnOnce(&mut String) -> fmt::Result) {
        if self.result.is_ok() {
            self.begin(field);
            self.result = value(&mut self.text);
        }
    }

    fn begin(&mut self, field: &Field) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let name = field.name();
        self.text.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.text.push('=');
    }

    /// What has more to it than a name and a plain value.
    fn put_other(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let is_empty = self.text.is_empty();
            let mut other = DefaultVisitor::new(Writer::new(&mut self.text), is_empty);
            record(&mut other);
            self.result = other.finish();
        }
    }
}

impl Visit for FieldWriter {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, |text| write!(text, "{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, |text| write!(text, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, |text| write!(text, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, |text| text.write_str(if value { "true" } else { "false" }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.put_other(|other| other.record_str(field, value));
        }
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        self.put(field, |text| {
            if !is_plain {
                return write!(text, "{value:?}");
            }
            text.extend(["\"", value, "\""]);
            Ok(())
        });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_other(|other| other.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // The library writes its own words without names, and leaves out what it has said already.
        if field.name() == "message" || field.name().starts_with("log.") {
            return self.put_other(|other| other.record_debug(field, value));
        }
        self.put(field, |text| write!(text, "{value:?}"));
    }
}
