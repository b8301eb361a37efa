//! Holds answers of the local engine to a form: JSON that fits a schema, or calls of declared tools.
//!
//! [`form`] says what is wanted, [`GrammarCompiler`] makes a grammar of it off the engine's thread, and [`matcher`] tells the
//! engine which tokens may come next.

mod calls;
mod compiler;
mod form;
mod json_schema;
mod matcher;
mod number_bounds;
mod one_of;
mod subschemas;
mod vocabulary;

#[cfg(test)]
mod tests;

pub(super) use compiler::GrammarCompiler;
pub(super) use form::AnswerForm;
