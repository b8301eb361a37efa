//! Logits of the local engine against candle: a crate of its own, so that only its tests build candle.

#[cfg(test)]
mod logits;
