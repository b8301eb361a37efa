//! Why a verifier gave no verdict.

/// The most bytes that a verifier may reply.
pub(super) const REPLY_MAX: usize = 64 << 10;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// It took too long.
    #[error("the verifier did not answer in time; make it faster, or raise its timeout")]
    Timeout,
    /// The program could not be run or its answer not be read.
    #[error("the verifier's program failed; run it by hand with a question on its standard input")]
    Program(#[source] std::io::Error),
    /// The program ended with an error.
    #[error(
        "the verifier's program ended with an error; run it by hand with a question on its standard input"
    )]
    Ended,
    /// The address could not be asked.
    #[error("the verifier's address could not be asked")]
    Unreachable(#[source] reqwest::Error),
    /// The address answered with an error.
    #[error("the verifier's address answered {0}; it must answer 200")]
    Status(u16),
    /// Its reply was too long.
    #[error("the verifier replied with more than 64 KiB; it must reply with one JSON object")]
    TooLong,
    /// Its reply was invalid.
    #[error("the verifier must say a JSON object with a score of 0 to 1")]
    Malformed,
}
