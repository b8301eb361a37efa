//! What may be configured, for editors and for the reference page: every key, with what it may be and what it is for.
//!
//! Nothing here lists keys. Which there are and what they may be, the reader says while it reads; what they are for, the commented
//! file says that ships.

mod commented_line;
mod comments;
mod description;
mod json;
mod record;

use serde_json::Value;

pub use description::{DefaultDescription, SettingDescription};

use comments::Comments;

const COMPLETE: &str = include_str!("../../../config/stint.toml");

/// The JSON schema of a configuration.
pub fn json_schema() -> Value {
    let recorded = record::record();
    let comments = Comments::read(COMPLETE, &|path| recorded.all.contains_key(path));
    json::schema(&recorded, &comments)
}

/// Every setting, in the order of the commented file.
pub fn describe() -> Vec<SettingDescription> {
    let recorded = record::record();
    let comments = Comments::read(COMPLETE, &|path| recorded.all.contains_key(path));
    description::descriptions(&recorded, &comments)
}
