//! What the gateway's binary is made of, in the form of `CycloneDX` 1.6: every crate with its version, its licence and the checksum
//! of its source, and which of them uses which.
//!
//! It follows `cargo tree`, which knows the features that a build really has. `cargo metadata`, which other tools follow, adds up
//! what the tests of a workspace need: it names crates that are in no binary. There is neither a time nor a place nor a random
//! number in it, so that the same source makes the same bytes anywhere.

mod bill;
mod checksums;
mod error;
mod tree;

pub use error::SbomError;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bill of a build with these flags of cargo, as JSON. The workspace is the one that the current folder is in.
///
/// # Errors
/// Where cargo does not tell what the build is made of, or `Cargo.lock` cannot be read.
pub fn bill(flags: &[String]) -> Result<String, SbomError> {
    let root = workspace()?;
    let lock = root.join("Cargo.lock");
    let unreadable = |error: std::io::Error| SbomError::Lock { file: lock.clone(), why: error.to_string() };
    let checksums = checksums::read(&fs::read_to_string(&lock).map_err(unreadable)?)?;
    // What is linked, and what ran while it was built as well.
    let linked = tree::read(&cargo_tree(&root, "normal,no-proc-macro", flags)?)?;
    let built = tree::read(&cargo_tree(&root, "normal,build", flags)?)?;
    let bill = bill::write(&linked, &built, &checksums)?;
    serde_json::to_string_pretty(&bill).map(|text| text + "\n").map_err(SbomError::Json)
}

fn workspace() -> Result<PathBuf, SbomError> {
    let manifest =
        output(Command::new("cargo").args(["locate-project", "--workspace", "--message-format", "plain"]))?;
    let root = Path::new(manifest.trim()).parent();
    root.map(Path::to_owned).ok_or_else(|| SbomError::Cargo("it knows of no workspace here".to_owned()))
}

fn cargo_tree(root: &Path, edges: &str, flags: &[String]) -> Result<String, SbomError> {
    let mut tree = Command::new("cargo");
    tree.current_dir(root)
        .args(["tree", "--locked", "--quiet", "--package", "stint", "--edges", edges, "--prefix", "depth"])
        .args(["--format", tree::FORMAT, "--charset", "ascii"])
        .args(flags);
    output(&mut tree)
}

/// What a command of cargo's answers.
fn output(command: &mut Command) -> Result<String, SbomError> {
    let output = command.output().map_err(|error| SbomError::Cargo(error.to_string()))?;
    if !output.status.success() {
        return Err(SbomError::Cargo(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|_| SbomError::Cargo("it answered no text".to_owned()))
}
