//! `sbom FILE [--no-default-features | --features …]`: writes to the file what a build of the gateway with these flags is made of.

use std::path::Path;
use std::process::ExitCode;

use sbom::SbomError;

#[expect(clippy::print_stderr, reason = "who runs it reads there what is wrong")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        None => {
            eprintln!("usage: sbom FILE [--no-default-features | --features …]");
            ExitCode::from(2)
        }
        Some((file, flags)) => write(Path::new(file), flags).map_or_else(
            |error| {
                eprintln!("sbom: {error}");
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
    }
}

fn write(file: &Path, flags: &[String]) -> Result<(), SbomError> {
    let written = sbom::bill(flags)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(file, written))
        .map_err(|source| SbomError::Write { file: file.to_owned(), source })
}
