//! Keys: 256 random bits, shown once, kept as their SHA-256.

use std::fmt::{self, Write};
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The longest key that a caller may have, in bytes.
pub const KEY_MAX: usize = 512;

const KEY_PREFIX: &str = "sk-stint-";
const HASH_PREFIX: &str = "sha256:";

/// The SHA-256 of a key, written `sha256:` and 64 hexadecimal digits.
///
/// A fast hash is right here: 256 random bits cannot be guessed, unlike a person's password.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

/// A key that was just made. The text is shown once; only the hash is kept.
pub struct NewKey {
    text: String,
}

/// A secret of the operator's own, which only the server that knows its hash may see.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretToken {
    text: String,
}

/// Why a text is not the hash of a key, or a key could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not the form in which hashes are written.
    #[error(
        "not the hash of a key: write `sha256:` and 64 hexadecimal digits, as `stint keys new` prints it"
    )]
    NotAHash,
    /// The system gave no random bits.
    #[error("the system gave no random bits: {0}")]
    NoRandomness(getrandom::Error),
}

/// The hash of a full key, its prefix included.
pub fn hash_key(key: &str) -> KeyHash {
    KeyHash(Sha256::digest(key).into())
}

impl NewKey {
    /// Makes a key from 256 random bits.
    pub fn generate() -> Result<NewKey, KeyError> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(KeyError::NoRandomness)?;
        Ok(NewKey { text: format!("{KEY_PREFIX}{}", Hex(&bits)) })
    }

    /// The hash to keep.
    pub fn hash(&self) -> KeyHash {
        hash_key(&self.text)
    }

    /// The key itself, to be shown this once.
    pub fn reveal(self) -> String {
        self.text
    }
}

impl KeyHash {
    /// True if both are hashes of one text. Takes the same time whatever they are.
    pub fn matches(&self, other: &KeyHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Its 32 bytes, as a database keeps them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> KeyHash {
        KeyHash(bytes)
    }
}

impl SecretToken {
    /// Keeps the text to itself.
    pub fn new(text: impl Into<String>) -> SecretToken {
        SecretToken { text: text.into() }
    }

    /// What callers' tokens are compared with.
    pub fn hash(&self) -> KeyHash {
        hash_key(&self.text)
    }

    /// The token itself, to be sent.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretToken(…)")
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewKey(…)")
    }
}

impl FromStr for KeyHash {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeyHash, KeyError> {
        let digits = text.strip_prefix(HASH_PREFIX).ok_or(KeyError::NotAHash)?.as_bytes();
        if digits.len() != 64 {
            return Err(KeyError::NotAHash);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
        }
        Ok(KeyHash(hash))
    }
}

pub(super) fn nibble(digit: u8) -> Result<u8, KeyError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(KeyError::NotAHash),
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HASH_PREFIX}{}", Hex(&self.0))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Bytes as hexadecimal digits.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| {
            f.write_char(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]))?;
            f.write_char(char::from(b"0123456789abcdef"[usize::from(byte & 15)]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_sha_256_of_the_whole_key_and_reads_back() {
        let hash = hash_key("abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse(), Ok(hash));
    }

    #[test]
    fn what_is_not_a_hash_is_refused() {
        for text in ["", "sha256:", "sha256:00", "ba7816bf", &format!("sha256:{}", "g".repeat(64))] {
            assert_eq!(text.parse::<KeyHash>(), Err(KeyError::NotAHash), "{text}");
        }
    }

    #[test]
    fn new_keys_differ_and_never_show_themselves_in_logs() {
        let (one, other) = (NewKey::generate().unwrap(), NewKey::generate().unwrap());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(format!("{one:?}"), "NewKey(…)");
        let hash = one.hash();
        let text = one.reveal();
        assert_eq!(text.len(), KEY_PREFIX.len() + 64);
        assert_eq!(hash_key(&text), hash);
    }
}
