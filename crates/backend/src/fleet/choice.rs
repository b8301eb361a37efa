//! Chooses the target for a conversation.
//!
//! If the conversation contains a signed thought, this is the target that signed it. Otherwise it is the conversation's
//! home, where its prefix is likely to be cached, unless the wait there is much longer than elsewhere. Otherwise it is the
//! better of two random targets.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use sha2::{Digest, Sha256};

use stint_types::chat::{ContentPart, Message, Request, Role, SigningDomain};
use stint_types::units::{SeededRng, mix64};

/// So much longer than elsewhere may a conversation wait at home.
const HOME_FACTOR: f64 = 2.0;
/// And so many seconds more: reading a prompt again takes as long.
const HOME_MARGIN: f64 = 0.25;

/// Of each text so many bytes are looked at, at both ends: long instructions differ in the last lines, if anywhere.
const END_BYTES: usize = 4 << 10;
/// So many texts are looked at.
const TEXTS_MAX: usize = 64;

/// Identifies a conversation by its beginning: the instructions and the first turn of the user. Every turn of an episode
/// has the same key, and so have both phases of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffinityKey {
    hash: u64,
    /// Where the last thought that comes back was signed: no other target could take it.
    signed_at: Option<SigningDomain>,
}

impl AffinityKey {
    /// How a request's conversation begins. The hash has no secret, so that replicas give a conversation the same home.
    pub fn of(request: &Request) -> AffinityKey {
        let mut hash = DefaultHasher::new();
        let first = request.messages.iter().position(|message| message.role == Role::User);
        let beginning = request.messages.iter().take(first.map_or(usize::MAX, |first| first + 1));
        let texts = beginning.flat_map(|message| own_parts(message).map(move |part| (message.role, part)));
        for (role, part) in texts.filter(|(_, part)| part.cache_ttl().is_none()).take(TEXTS_MAX) {
            hash_part(&mut hash, role, part);
        }
        let signed = request.messages.iter().rev().find_map(|message| message.signed.last());
        AffinityKey { hash: hash.finish(), signed_at: signed.map(|signed| signed.signer.domain) }
    }

    /// The key of the conversation, as a number.
    pub(super) fn hash(self) -> u64 {
        self.hash
    }

    /// A pseudo-random number from 0 to below 1 that a conversation of an account keeps from turn to turn.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn stable_share(&self, whose: &str) -> f64 {
        let hash = whose.bytes().fold(self.hash, |hash, byte| mix64(hash ^ u64::from(byte)));
        (mix64(hash) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A request that continues nothing: any target is as good as another.
    pub fn without_affinity(seed: u64) -> AffinityKey {
        AffinityKey { hash: mix64(seed), signed_at: None }
    }

    /// How well a target suits it: the highest wins, so that a target that comes or goes moves its own share of the
    /// conversations alone (rendezvous hashing).
    fn rendezvous_score(self, target: u64) -> u64 {
        mix64(self.hash ^ mix64(target))
    }
}

/// The message's parts without those that a gateway adds for one turn.
fn own_parts(message: &Message) -> impl Iterator<Item = &ContentPart> {
    message.content.iter().take_while(|part| !matches!(part, ContentPart::AdditionStart { .. }))
}

fn hash_part(hash: &mut DefaultHasher, role: Role, part: &ContentPart) {
    let text = match part {
        ContentPart::Text(text) => Cow::Borrowed(text),
        ContentPart::Other(value) => Cow::Owned(value.to_string()),
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => return,
    };
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at(bytes.len().min(END_BYTES));
    hash.write(role.as_str().as_bytes());
    hash.write_u64(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    hash.write(head);
    hash.write(&rest[rest.len().saturating_sub(END_BYTES)..]);
}

/// A target that could be asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetCandidate {
    /// Its place in the fleet.
    pub(super) index: usize,
    /// What its name comes to, for homes.
    pub(super) name_hash: u64,
    /// Who can verify what it signs.
    pub(super) origin: Option<SigningDomain>,
    /// How long one more call would wait there, in seconds.
    pub(super) expected_wait: f64,
}

/// The target to ask, among those that could be; among those that can verify what is brought along, where there are some.
pub(super) fn choose_target(
    candidates: &[TargetCandidate],
    beginning: AffinityKey,
    dice: &mut SeededRng,
) -> Option<usize> {
    let verifies =
        |one: &&TargetCandidate| beginning.signed_at.is_some_and(|signed| one.origin == Some(signed));
    let able: Vec<TargetCandidate> = candidates.iter().filter(verifies).copied().collect();
    let candidates = if able.is_empty() { candidates } else { &able };
    let home = candidates.iter().max_by_key(|candidate| beginning.rendezvous_score(candidate.name_hash))?;
    let others: Vec<&TargetCandidate> =
        candidates.iter().filter(|candidate| candidate.index != home.index).collect();
    let Some(other) = better_of_two(&others, dice) else { return Some(home.index) };
    let stays = home.expected_wait <= other.expected_wait * HOME_FACTOR + HOME_MARGIN;
    Some(if stays { home.index } else { other.index })
}

fn better_of_two<'c>(
    candidates: &[&'c TargetCandidate],
    dice: &mut SeededRng,
) -> Option<&'c TargetCandidate> {
    let first = dice.below(candidates.len());
    let step = 1 + dice.below(candidates.len().saturating_sub(1));
    let second = (first + step) % candidates.len().max(1);
    let (one, other) = (candidates.get(first)?, candidates.get(second)?);
    Some(if other.expected_wait < one.expected_wait { other } else { one })
}

/// A target's name as a number.
pub(super) fn name_hash(name: &str) -> u64 {
    let digest: [u8; 32] = Sha256::digest(name).into();
    digest[..8].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
