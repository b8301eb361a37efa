//! A process of its own for what is measured of a whole process: beside other tests it would be theirs too.

use std::process::Command;

/// Set in such a process.
const ALONE: &str = "STINT_TEST_ALONE";

/// True in a process that runs this test alone. Anywhere else it runs one, in which the test must pass.
pub(crate) fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}", said.concat());
    false
}
