//! Seeds, changed a little at random.

/// A generator of numbers: the same ones for the same start.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// One that begins here.
    pub fn new(start: u64) -> Dice {
        Dice(start.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end.max(1)
    }
}

/// The longest mutant.
const LONGEST: usize = 320;

/// A seed with some changes.
pub fn mutant(seeds: &[Vec<u8>], words: &[&[u8]], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(4) {
        change(&mut bytes, seeds, words, dice);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&[u8]], dice: &mut Dice) {
    let place = dice.below(bytes.len() + 1);
    let end = (place + dice.below(12)).min(bytes.len());
    match dice.below(6) {
        0 => drop(bytes.drain(place..end)),
        1 => bytes.extend_from_within(place..end),
        2 => insert(bytes, place, &[u8::try_from(dice.below(256)).unwrap_or(0)]),
        3 => {
            let other = &seeds[dice.below(seeds.len())];
            let from = dice.below(other.len() + 1);
            insert(bytes, place, &other[from..]);
        }
        _ => insert(bytes, place, words[dice.below(words.len())]),
    }
}

fn insert(bytes: &mut Vec<u8>, place: usize, more: &[u8]) {
    drop(bytes.splice(place..place, more.iter().copied()));
}
