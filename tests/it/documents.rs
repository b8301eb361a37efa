//! What people read: links lead somewhere, examples do what they say, and sentences are short.

mod cases;
mod commands;
mod configurations;
mod links;
mod page;
mod plain;
mod programs;

use page::{Page, pages};
