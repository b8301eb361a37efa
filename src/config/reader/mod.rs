//! Reads a TOML document and collects every mistake on the way, each with its line and its remedy.
//!
//! From the bottom: what a mistake is (`diagnostic`), values (`value`), the files that were read (`files`), a document and its
//! mistakes (`document`), what keys may be (`shape`), tables key by key (`section`), the text behind it (`source`), and secrets
//! that it names (`secret`). It knows nothing of what the keys mean.

mod diagnostic;
mod document;
mod files;
pub(super) mod secret;
mod section;
mod shape;
pub(super) mod source;
mod value;

pub use diagnostic::{ConfigErrors, Diagnostic};

pub(super) use diagnostic::{ValueError, suggest};
pub(super) use document::{Document, ReadContext, SecretsPolicy};
pub(super) use files::ConfigFiles;
pub(super) use section::Section;
pub(super) use shape::{KeyShape, ShapeRecorder, ValueShape};
pub(super) use value::{AnyText, ByteSize, FromValue, address};
