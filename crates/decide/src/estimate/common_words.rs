//! Words that name no subject: those that hold sentences together, and those of talk about an answer. And those that begin questions,
//! or refer to what was said before.

/// Words of grammar, of English and some German.
const GRAMMAR: &str = "a an the i you he she we they me my mine our his her him us your yours their what \
    which who whom whose where when why how is are was were be been being am do does did done doing has have \
    had having can could would will should shall may might must not don doesn didn isn if then than so and \
    or but as of to in into on at by for from with without about between out up down off over under after \
    before there here just please kindly very really only too still yet any some all each both one ones two \
    first second third last next final most less much many few little lot such that re ll ve let lets else \
    der die das den dem ein eine du ich mir es er sie ist sind hat geht genau und auf mit für von zu man \
    heißt bedeutet meinst";
/// Words of talk about an answer, or about what was handed over.
const OF_ANSWERS: &str = "way thing things something anything everything mean means meant make makes made \
    get gets got give given go goes going come comes say says said tell show shows explain describe check \
    verify know think use used using based work works need want like example examples detail details reason \
    reasons part parts case cases line point question questions problem task version code method approach \
    argument idea result results output text message response reply step theorem lemma claim formula \
    equation explanation list write rewrite redo repeat try solve prove finish complete fix change add \
    remove put exactly follow following below attached provided context file files document documents \
    mistake mistakes";

/// Words that refer to what was said before, or have it go on.
const REFERRING: &str = "it its this these those them above previous earlier same again another other \
    instead continue continues proceed resume further more yes yeah yep no nope ok okay sure why wrong \
    incorrect right correct shorter longer simpler now also elaborate solution answer proof steps weiter ja \
    nein warum falsch nochmal nochmals noch andere dasselbe dies stimmt sicher continuez oui non pourquoi \
    encore cela autre sigue continúa sí otra otro eso esto mismo sicuro perché ancora";
/// How messages begin that ask for something: a question, or a task.
const OPENINGS: &str = "what who whom whose which where when why how is are was were do does did has have \
    can could would will should please define describe draw explain find give list name show suggest tell \
    write compare create generate compute solve prove fix debug make rewrite implement translate recommend \
    summarize calculate convert classify analyze improve evaluate simplify wer wie wo wann nenne erkläre \
    schreibe";

/// Whether a word, in small letters, names no subject.
pub(super) fn is_common(word: &str) -> bool {
    is_one_of(GRAMMAR, word) || is_one_of(OF_ANSWERS, word)
}

/// Whether a message that begins with this word, in small letters, asks for something.
pub(super) fn is_opening(word: &str) -> bool {
    is_one_of(OPENINGS, word)
}

/// Whether a word, in small letters, refers to what was said before.
pub(super) fn is_referring(word: &str) -> bool {
    is_one_of(REFERRING, word)
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn a_whole_word_is_common() {
        for word in ["a", "meinst", "way", "mistakes", "having", "für"] {
            assert!(is_common(word), "{word}");
        }
        for word in ["", "kubernetes", "hav", "istake", "a an"] {
            assert!(!is_common(word), "{word}");
        }
    }
}
