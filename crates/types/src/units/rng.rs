//! Pseudo-random numbers from a seed: the same seed gives the same numbers on every machine.

/// `SplitMix64` (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014).
#[derive(Debug, Clone, Copy)]
pub struct SeededRng(u64);

impl SeededRng {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> SeededRng {
        SeededRng(seed)
    }

    /// 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// One of so many, from 0; 0 where there is none.
    pub fn below(&mut self, count: usize) -> usize {
        let drawn = self.next_u64() % u64::try_from(count.max(1)).unwrap_or(1);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// From 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller, *A note on the generation of random normal deviates*, 1958).
    pub fn standard_normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.next_f64(), self.next_f64());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Brings a list into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

/// The bits of a number, spread over all of it.
pub fn mix64(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator_and_fall_evenly() {
        let mut dice = SeededRng::new(1_234_567);
        assert_eq!(
            [dice.next_u64(), dice.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
        let mut counts = [0_u32; 4];
        (0..4_000).for_each(|_| counts[dice.below(4)] += 1);
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&dice.next_f64())));
        let square = (0..10_000).map(|_| dice.standard_normal().powi(2)).sum::<f64>() / 1e4;
        assert!((0.95..1.05).contains(&square), "{square}");
    }
}
