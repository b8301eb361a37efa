//! `stint keys`: the two things that can be done with a key without a server.

use std::io::Read;
use std::process::ExitCode;

use crate::tenant::{NewKey, hash_key};

use super::command::{fail, say};

/// A key is shorter than this; reading stops here.
const KEY_MAX: u64 = 512;

pub(super) fn new() -> ExitCode {
    match NewKey::generate() {
        Ok(key) => {
            let hash = key.hash();
            say(&format!("key:  {}   (shown this once; give it to the caller)", key.reveal()));
            say(&format!("hash: {hash}   (goes into the configuration)"));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

/// From standard input, so that the key stays out of the shell's history.
pub(super) fn hash() -> ExitCode {
    let mut key = String::new();
    match std::io::stdin().take(KEY_MAX).read_to_string(&mut key) {
        Ok(_) => {
            say(&hash_key(key.trim()).to_string());
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}
