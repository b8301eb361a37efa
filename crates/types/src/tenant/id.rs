//! The public name of a key: what logs, lists and commands call it by.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::units::AccountId;

use super::KeyError;
use super::key::{Hex, nibble};

const PREFIX: &str = "key_";
const LENGTH: usize = 10;

/// The id of a key, `key_` and 20 hexadecimal digits. It says nothing about the key itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; LENGTH]);

/// A text that is not the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a key: write `key_` and 20 hexadecimal digits, as `stint keys list` shows it")]
pub struct InvalidKeyId;

impl KeyId {
    /// A new id, of random bits.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn generate() -> Result<KeyId, KeyError> {
        let mut bits = [0; LENGTH];
        getrandom::fill(&mut bits).map_err(KeyError::NoRandomness)?;
        Ok(KeyId(bits))
    }

    /// The id of a key that the configuration declares, which has none of its own: it follows from the name alone.
    pub fn of_declared(account: &AccountId) -> KeyId {
        let digest: [u8; 32] = Sha256::digest(format!("declared key {account}")).into();
        let mut id = [0; LENGTH];
        id.copy_from_slice(&digest[..LENGTH]);
        KeyId(id)
    }
}

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<KeyId, InvalidKeyId> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidKeyId)?.as_bytes();
        if digits.len() != 2 * LENGTH {
            return Err(InvalidKeyId);
        }
        let mut id = [0; LENGTH];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let half = |digit| nibble(digit).map_err(|_| InvalidKeyId);
            *byte = (half(pair[0])? << 4) | half(pair[1])?;
        }
        Ok(KeyId(id))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", Hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_print_and_differ() {
        let (one, other) = (KeyId::generate().unwrap(), KeyId::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().parse(), Ok(one));
        let declared = KeyId::of_declared(&AccountId::new("alice"));
        assert_eq!(declared, KeyId::of_declared(&AccountId::new("alice")));
        for text in ["", "key_", "key_12", &format!("key_{}", "g".repeat(20)), &"a".repeat(24)] {
            assert_eq!(text.parse::<KeyId>(), Err(InvalidKeyId), "{text}");
        }
    }
}
