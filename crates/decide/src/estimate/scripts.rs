//! How much a text says, whatever script it is written in.

use super::scale::share;

/// Bytes of English that say as much as a letter of Han, kana and Hangul, in tenths: of 46 sentences that were written in English and
/// Chinese, and of 14 in Japanese and Korean too. Letters of other scripts say as much as an English one.
const HAN: usize = 35;
const KANA: usize = 15;
const HANGUL: usize = 18;

/// The bytes of an English text that says as much.
pub(super) fn english_bytes(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let tenths = |letter: char| match letter {
        _ if is_han(letter) => HAN,
        _ if is_kana(letter) => KANA,
        '\u{ac00}'..='\u{d7a3}' => HANGUL,
        _ => 10,
    };
    text.chars().map(tenths).sum::<usize>() / 10
}

/// How much of a text is Chinese: the share of its bytes that are Han letters, if no kana say that it is Japanese.
pub(super) fn chinese_share(text: &str) -> f64 {
    let (mut han, mut kana) = (0_usize, 0_usize);
    for letter in text.chars() {
        han += usize::from(is_han(letter));
        kana += usize::from(is_kana(letter));
    }
    if kana > 0 { 0.0 } else { share(3 * han, text.len()) }
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

fn is_kana(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{30ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_say_the_same_are_about_as_long_in_all_scripts() {
        let english = english_bytes("Write a short poem about autumn.");
        for same in [
            "写一首关于秋天的短诗。",
            "秋についての短い詩を書いてください。",
            "가을에 관한 짧은 시를 써 주세요.",
            "Напиши короткое стихотворение об осени.",
            "اكتب قصيدة قصيرة عن الخريف.",
            "शरद ऋतु पर एक छोटी कविता लिखिए।",
        ] {
            let bytes = english_bytes(same);
            assert!((english - 8..english + 10).contains(&bytes), "{bytes} and {english}: {same}");
        }
    }

    #[test]
    fn chinese_is_told_from_japanese() {
        assert!(chinese_share("写一首短诗") > 0.99 && chinese_share("用C++写") > 0.5);
        assert!(
            chinese_share("短い詩を書いて") == 0.0
                && chinese_share("a poem") == 0.0
                && chinese_share("") == 0.0
        );
    }
}
