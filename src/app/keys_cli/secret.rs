//! `stint keys new` and `stint keys hash`, which need no configuration and no database.

use std::io::{self, ErrorKind, Read};
use std::process::ExitCode;

use crate::app::output::{VerbResult, print_line};
use stint_types::tenant::{KEY_MAX, KeyHash, NewKey, hash_key};

/// Prints a new key and its hash.
pub(super) fn new() -> VerbResult {
    let key = NewKey::generate()?;
    let hash = key.hash();
    print_line(&format!("key:  {}   (shown this once; give it to the caller)", key.reveal()));
    print_line(&format!("hash: {hash}   (goes into the configuration)"));
    Ok(ExitCode::SUCCESS)
}

/// Prints the hash of a key on standard input, so that the key stays out of the shell's history.
pub(super) fn hash() -> VerbResult {
    print_line(&hashed(io::stdin())?.to_string());
    Ok(ExitCode::SUCCESS)
}

fn hashed(input: impl Read) -> io::Result<KeyHash> {
    let mut text = String::new();
    // One byte more than a key and its end of line may have tells that it is too long.
    input.take(KEY_MAX as u64 + 3).read_to_string(&mut text)?;
    match text.trim() {
        "" => Err(io::Error::new(ErrorKind::InvalidInput, "no key on standard input: pipe one in")),
        key if key.len() > KEY_MAX => {
            let message = format!("the key is longer than {KEY_MAX} bytes, so no caller could use it");
            Err(io::Error::new(ErrorKind::InvalidInput, message))
        }
        key => Ok(hash_key(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: Result<&str, &str>) {
        let hash = hashed(input.as_bytes()).map_err(|error| error.to_string());
        match (hash, expected) {
            (Ok(hash), Ok(key)) => assert_eq!(hash, hash_key(key), "{input:?}"),
            (Err(error), Err(says)) => assert!(error.contains(says), "{error}"),
            (hash, expected) => panic!("{hash:?} for {expected:?}"),
        }
    }

    #[test]
    fn only_what_a_caller_can_send_is_hashed() {
        check("sk-a\n", Ok("sk-a"));
        check("", Err("no key"));
        check(" \n", Err("no key"));
        check(&"x".repeat(512), Ok(&"x".repeat(512)));
        check(&"x".repeat(513), Err("longer than 512"));
        check(&format!("{}\r\n", "x".repeat(512)), Ok(&"x".repeat(512)));
    }
}
