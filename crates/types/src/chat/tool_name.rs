//! Names of tools that every provider takes.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The longest name that every provider takes, in bytes.
const NAME_MAX: usize = 64;

/// The bytes of a name's hash, written out, and of the `_` before it.
const HASH_SUFFIX: usize = 9;

/// A tool's name, shortened where it is longer than some provider takes: how it begins, and a hash of the whole. Shortened
/// again it stays as it is.
pub fn short_tool_name(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_MAX {
        return name.into();
    }
    let begins = &name[..name.floor_char_boundary(NAME_MAX - HASH_SUFFIX)];
    let hash = Sha256::digest(name);
    format!("{begins}_{:08x}", u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_some_provider_would_not_take_is_shortened_once() {
        let long = |letter: &str, end: &str| format!("{}{end}", letter.repeat(63));
        assert_eq!(short_tool_name(&long("s", "1")), long("s", "1"));
        let (one, other) = (long("s", "__1"), long("s", "__2"));
        assert_eq!(short_tool_name(&one).len(), 64);
        assert_ne!(short_tool_name(&one), short_tool_name(&other));
        assert_eq!(short_tool_name(&short_tool_name(&one)), short_tool_name(&one));
        assert!(short_tool_name(&long("ä", "")).len() <= 64, "bytes are what counts");
    }
}
