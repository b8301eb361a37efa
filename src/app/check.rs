//! `stint check`: the configuration and nothing else.

use std::path::Path;
use std::process::ExitCode;

use crate::config;

use super::command::{fail, say};

pub(super) fn check(file: Option<&Path>) -> ExitCode {
    match config::load(file, &config::environment) {
        Ok(settings) => {
            let models = settings.catalog.models.keys().map(|name| &**name).collect::<Vec<_>>().join(", ");
            say(&format!("the configuration is right; it serves {models} on {}", settings.http.listen));
            settings.warnings.iter().for_each(|warning| say(&format!("  but {warning}")));
            ExitCode::SUCCESS
        }
        Err(mistakes) => fail(&mistakes),
    }
}
