//! What admins changed: an entry for each change, and the chain of hashes that holds all entries together.

use sha2::{Digest, Sha256};

use crate::units::Timestamp;

/// One thing that an admin changed. No secret and no hash of one is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who: the account of a key with a role, or a word for the token and for the command line.
    pub who: String,
    /// What was done, like `key.rotate`.
    pub action: String,
    /// To what: an account, a run, the configuration.
    pub subject: String,
    /// What was there before, as JSON.
    pub before: Option<String>,
    /// What is there now, as JSON.
    pub after: Option<String>,
}

/// An entry at its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// 1, 2, 3, …
    pub number: u64,
    /// The entry.
    pub entry: AuditEntry,
    /// That of the entry before, and of all of this one.
    pub hash: AuditHash,
}

/// The end of a chain of entries: anyone who changes, removes or puts in an earlier one changes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditHash(pub [u8; 32]);

impl AuditHash {
    /// After one more entry: SHA-256 over the hash before, the entry's number and time in eight bytes each, the least
    /// significant first, and its texts, each after its length in eight bytes; one that is absent has the length of all ones.
    #[must_use]
    pub fn after(&self, number: u64, entry: &AuditEntry) -> AuditHash {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(number.to_le_bytes());
        hash.update(entry.at.0.to_le_bytes());
        let texts = [Some(&entry.who), Some(&entry.action), Some(&entry.subject)];
        for text in texts.into_iter().chain([entry.before.as_ref(), entry.after.as_ref()]) {
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            hash.update(length.to_le_bytes());
            hash.update(text.map(String::as_str).unwrap_or_default());
        }
        AuditHash(hash.finalize().into())
    }
}

/// These entries after the last of a chain.
pub fn chained(mut number: u64, mut hash: AuditHash, entries: &[AuditEntry]) -> Vec<AuditRecord> {
    let next = |entry: &AuditEntry| {
        number += 1;
        hash = hash.after(number, entry);
        AuditRecord { number, entry: entry.clone(), hash }
    };
    entries.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_of_a_change_is_in_its_hash() {
        let entry = AuditEntry {
            at: Timestamp(1),
            who: "token".to_owned(),
            action: "key.create".to_owned(),
            subject: "a".to_owned(),
            before: None,
            after: Some("{}".to_owned()),
        };
        let mut hashes = vec![AuditHash::default().after(1, &entry), AuditHash::default().after(2, &entry)];
        hashes.push(AuditHash([1; 32]).after(1, &entry));
        for other in [
            AuditEntry { at: Timestamp(2), ..entry.clone() },
            AuditEntry { who: "token".repeat(2), ..entry.clone() },
            // A text that moves from one member to the next.
            AuditEntry { who: "toke".to_owned(), action: "nkey.create".to_owned(), ..entry.clone() },
            AuditEntry { before: Some(String::new()), ..entry.clone() },
            AuditEntry { before: entry.after.clone(), after: None, ..entry.clone() },
        ] {
            hashes.push(AuditHash::default().after(1, &other));
        }
        for (place, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..place].contains(hash), "{place}");
        }
    }
}
