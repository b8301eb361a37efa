//! What verbs read of the configuration that look after a running server: the sections that they need, whatever is wrong elsewhere. A
//! refused reload must not take them away.

use std::path::Path;

use crate::config::{self, ConfigErrors, Settings};

use super::server_call::harmless;

/// The settings, and the mistakes in the other sections, of which one line tells how many there are.
///
/// # Errors
/// When something is wrong with the sections of these names.
pub(super) fn load_needed(
    file: Option<&Path>,
    needed: &[&str],
) -> Result<(Settings, Option<ConfigErrors>), ConfigErrors> {
    let (settings, elsewhere) = config::load_sections(file, &config::environment, needed)?;
    elsewhere.iter().for_each(warn);
    Ok((settings, elsewhere))
}

#[expect(clippy::print_stderr, reason = "the command line's own words, beside the answer")]
fn warn(elsewhere: &ConfigErrors) {
    let (count, source) = (elsewhere.errors.len(), harmless(&elsewhere.source));
    let noun = if count == 1 { "mistake" } else { "mistakes" };
    eprintln!("stint: passed over {count} {noun} in {source}; `stint check` lists all");
}
