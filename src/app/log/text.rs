//! The members of a line of text: as the library writes them, without what it takes to prepare them for colours.

use std::error::Error;
use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, DefaultVisitor, Writer};

/// Writes members so. On a terminal the library does it, in colours.
pub(super) struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        if writer.has_ansi_escapes() {
            return DefaultFields::new().format_fields(writer, fields);
        }
        let mut text = FieldWriter { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut text);
        text.result
    }
}

struct FieldWriter<'w> {
    writer: Writer<'w>,
    is_empty: bool,
    result: fmt::Result,
}

impl FieldWriter<'_> {
    fn put(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.result.is_ok() {
            self.result = self.begin(field).and_then(|()| value(&mut self.writer));
        }
    }

    fn begin(&mut self, field: &Field) -> fmt::Result {
        if !std::mem::take(&mut self.is_empty) {
            self.writer.write_char(' ')?;
        }
        let name = field.name();
        self.writer.write_str(name.strip_prefix("r#").unwrap_or(name))?;
        self.writer.write_char('=')
    }

    /// What has more to it than a name and a plain value.
    fn put_other(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let mut other = DefaultVisitor::new(self.writer.by_ref(), std::mem::take(&mut self.is_empty));
            record(&mut other);
            self.result = other.finish();
        }
    }
}

impl Visit for FieldWriter<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, |writer| write!(writer, "{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, |writer| write!(writer, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, |writer| write!(writer, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, |writer| writer.write_str(if value { "true" } else { "false" }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.put_other(|other| other.record_str(field, value));
        }
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        self.put(field, |writer| {
            if !is_plain {
                return write!(writer, "{value:?}");
            }
            writer.write_char('"')?;
            writer.write_str(value)?;
            writer.write_char('"')
        });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_other(|other| other.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_other(|other| other.record_debug(field, value));
    }
}
