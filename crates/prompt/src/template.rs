//! Chat templates: Jinja as Hugging Face runs it.
//!
//! The template comes with the model file and is trusted like its weights, but not with unlimited time. Its memory is not bounded:
//! minijinja counts instructions, and not what `~` and `{% set %}` make. What a caller says is only ever data to it.

use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as Jinja};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use stint_types::units::Timestamp;

use super::error::PromptError;
use super::python_methods;

/// How many instructions a template may run.
const FUEL: u64 = 10_000_000;
const NAME: &str = "chat";

/// A model's chat template.
#[derive(Debug, Clone)]
pub struct ChatTemplate(Arc<Environment<'static>>);

/// The input of a template.
#[derive(Debug, Clone, Serialize)]
pub struct TemplateContext {
    /// The conversation as Hugging Face has it.
    pub messages: Value,
    /// The declarations of the tools; `null` without any.
    pub tools: Value,
    /// Whether the model is to think.
    pub enable_thinking: bool,
    /// The token that begins a text, as text.
    pub bos_token: String,
    /// The token that ends a text, as text.
    pub eos_token: String,
}

/// `raise_exception` was called.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TemplateException(String);

impl ChatTemplate {
    /// Reads a template.
    pub fn new(source: &str) -> Result<ChatTemplate, PromptError> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(PromptError::Template)?);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(python_methods::call);
        environment.add_function("raise_exception", raise);
        environment.add_filter("tojson", to_json);
        environment.add_template_owned(NAME, plain_blocks(source)).map_err(PromptError::Template)?;
        Ok(ChatTemplate(Arc::new(environment)))
    }

    /// The text of a prompt, ready for the model's turn. `now` is the date for templates that contain it.
    pub fn render(&self, context: &TemplateContext, now: Timestamp) -> Result<String, PromptError> {
        let strftime = Jinja::from_function(move |format: &str| strftime(now, format));
        let told = Jinja::from(Serde(context));
        let more = context! { add_generation_prompt => true, strftime_now => strftime };
        let template = self.0.get_template(NAME).map_err(PromptError::Template)?;
        template.render(context! { ..more, ..told }).map_err(render_error)
    }
}

/// The same template without Hugging Face's own blocks. They mark what a model says, for training, and change no text.
fn plain_blocks(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(block) = rest.find("{%").and_then(|at| Some(at..at + rest[at..].find("%}")?)) {
        let inner = &rest[block.clone()];
        let name = inner.trim_start_matches(['{', '%', '-', '+']).trim_end_matches(['-', '+']).trim();
        plain.push_str(&rest[..block.start]);
        match name {
            // White space around them goes as it would.
            "generation" => plain.push_str(&inner.replacen(name, "if true", 1)),
            "endgeneration" => plain.push_str(&inner.replacen(name, "endif", 1)),
            _ => plain.push_str(inner),
        }
        rest = &rest[block.end..];
    }
    plain.push_str(rest);
    plain
}

fn render_error(error: Error) -> PromptError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(TemplateException(message)) = cause.downcast_ref() {
            return PromptError::Refused(message.clone());
        }
        source = cause.source();
    }
    PromptError::Template(error)
}

fn raise(message: String) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raised").with_source(TemplateException(message)))
}

fn strftime(now: Timestamp, format: &str) -> Result<String, Error> {
    let wrong = |error: jiff::Error| Error::new(ErrorKind::InvalidOperation, error.to_string());
    let moment = jiff::Timestamp::from_millisecond(now.0).map_err(wrong)?;
    jiff::fmt::strtime::format(format, &moment.to_zoned(jiff::tz::TimeZone::UTC)).map_err(wrong)
}

/// Python's `json.dumps`, which spaces its separators, where minijinja's own filter escapes for HTML.
#[expect(clippy::needless_pass_by_value, reason = "minijinja hands the options over by value")]
fn to_json(value: &Jinja, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    let separators: Option<[String; 2]> = separators(&options)?;
    let sorts: Option<bool> = options.get("sort_keys")?;
    options.assert_all_used()?;
    if sorts != Some(true) {
        return write_json(value, indent, separators);
    }
    let mut sorted = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    sorted.sort_all_objects();
    write_json(&sorted, indent, separators)
}

fn write_json(
    value: &impl Serialize,
    indent: Option<usize>,
    separators: Option<[String; 2]>,
) -> Result<String, Error> {
    let mut text = Vec::new();
    let written = match indent {
        Some(width) => {
            let indent = " ".repeat(width.min(16));
            value.serialize(&mut Serializer::with_formatter(
                &mut text,
                PrettyFormatter::with_indent(indent.as_bytes()),
            ))
        }
        None => {
            let [item, key] = separators.unwrap_or_else(|| [", ", ": "].map(str::to_owned));
            value.serialize(&mut Serializer::with_formatter(&mut text, PythonJsonFormatter { item, key }))
        }
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(text).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// What stands between members, and between a member's name and its value.
fn separators(options: &Kwargs) -> Result<Option<[String; 2]>, Error> {
    let Some(stated) = options.get::<Option<Vec<String>>>("separators")? else { return Ok(None) };
    let two = <[String; 2]>::try_from(stated);
    two.map(Some).map_err(|_| Error::new(ErrorKind::InvalidOperation, "there are two separators"))
}

struct PythonJsonFormatter {
    item: String,
    key: String,
}

impl Formatter for PythonJsonFormatter {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.item.as_bytes()) }
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.item.as_bytes()) }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.key.as_bytes())
    }
}
