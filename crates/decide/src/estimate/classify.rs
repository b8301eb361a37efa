//! What kind of work a request is, by simple rules.

use stint_types::catalog::TaskClass;

use super::task_cues::TaskCues;
use super::text::TextAnalysis;

/// The class of a text, by the first rule that holds. A request with tools is an agent's, whatever its text.
pub(super) fn class_of(reading: &TextAnalysis<'_>) -> TaskClass {
    let cues = reading.tally.cues();
    let unspaced =
        if cues.markup.unspaced > 0 { UnspacedCues::of(reading.text) } else { UnspacedCues::default() };
    if reading.options.len() >= 3 {
        TaskClass::MultipleChoice
    } else if cues.has_formulas(reading.text) {
        if is_of_a_contest(reading.text) { TaskClass::Code } else { TaskClass::Math }
    } else if cues.extracts_from_data() {
        TaskClass::Extraction
    } else if (cues.programs() && !is_of_another_kind(&cues, reading.text)) || unspaced.programs {
        TaskClass::Code
    } else if cues.extracts || unspaced.extracts {
        TaskClass::Extraction
    } else if cues.proves || cues.calculates() || unspaced.calculates {
        TaskClass::Math
    } else {
        TaskClass::Chat
    }
}

/// True of problems of programming contests, which are set like mathematics.
fn is_of_a_contest(text: &str) -> bool {
    ["Sample Input", "sample input", "standard input", "Standard Input", "-----Input", "Input Format"]
        .iter()
        .any(|words| text.contains(words))
}

/// True of codes and programs that no computer runs, where nothing else speaks of one that does.
fn is_of_another_kind(cues: &TaskCues, text: &str) -> bool {
    const OTHERS: [&str; 20] = [
        "dress code",
        "zip code",
        "postal code",
        "area code",
        "promo code",
        "discount code",
        "coupon code",
        "country code",
        "penal code",
        "civil code",
        "tax code",
        "qr code",
        "code of conduct",
        "code of ethics",
        "membership program",
        "loyalty program",
        "training program",
        "exercise program",
        "exchange program",
        "degree program",
    ];
    cues.is_only_named() && {
        let lower = text.to_lowercase();
        OTHERS.iter().any(|words| lower.contains(words))
    }
}

/// What Chinese and Japanese words hint at, which have no blanks between them.
#[derive(Default)]
struct UnspacedCues {
    programs: bool,
    extracts: bool,
    calculates: bool,
}

impl UnspacedCues {
    fn of(text: &str) -> UnspacedCues {
        const PROGRAMS: [&str; 7] = ["代码", "编程", "程序", "算法", "プログラム", "コード", "程式"];
        const EXTRACTS: [&str; 7] = ["摘要", "提取", "总结", "概括", "要約", "抽出", "總結"];
        const PROVES: [&str; 9] =
            ["方程", "证明", "函数", "概率", "證明", "方程式", "三角形", "整数", "積分"];
        const AMOUNTS: [&str; 8] = ["计算", "多少", "几个", "面积", "平均", "計算", "いくつ", "何個"];
        // A function that is written is a program, another one mathematics.
        const WRITES: [&str; 6] = ["编写", "写一个", "实现", "實現", "関数を書", "関数を作"];
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        UnspacedCues {
            programs: has(&PROGRAMS) || has(&WRITES) && has(&["函数", "関数"]),
            extracts: has(&EXTRACTS),
            calculates: has(&PROVES) || has_digits && (has(&AMOUNTS) || seeks(text)),
        }
    }
}

/// Whether something is to be found (求). The same letter stands in the words for demands and requests.
fn seeks(text: &str) -> bool {
    const BEFORE: [char; 13] = ['要', '需', '请', '請', '追', '寻', '尋', '征', '诉', '訴', '谋', '渴', '恳'];
    const AFTER: [char; 6] = ['职', '職', '助', '学', '购', '婚'];
    text.match_indices('求').any(|(at, letter)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + letter.len()..].chars().next());
        !before.is_some_and(|before| BEFORE.contains(&before))
            && !after.is_some_and(|after| AFTER.contains(&after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::QuestionText;

    fn check(text: &str, expected: TaskClass) {
        assert_eq!(class_of(&TextAnalysis::of(&QuestionText::question(text))), expected, "{text}");
    }

    #[test]
    fn numbers_with_operators_or_questions_of_amount_are_mathematics() {
        check("What is 34*27?", TaskClass::Math);
        check("12 - 5", TaskClass::Math);
        check("Randy has $30. He spent $10. What is the amount of money that he has left?", TaskClass::Math);
        check("Anna has 3 pens and buys 4 more. How many are there?", TaskClass::Math);
        check("Which is larger, 41 or 14?", TaskClass::Math);
        check("Prove that there is no largest prime.", TaskClass::Math);
    }

    #[test]
    fn programs_are_told_by_their_words_and_signs() {
        check("Why does `fn main() { return 1; }` not compile?", TaskClass::Code);
        check("def add(a, b): return a + b", TaskClass::Code);
        check("Write a function to find the shared elements from the given two lists.", TaskClass::Code);
        check("Fix this SQL query: SELECT * FORM users", TaskClass::Code);
        check("编写一个 Python 程序，可以生成五个不同的随机数。", TaskClass::Code);
        check(
            "```go\nfunc (c *C) Get() {\n\tc.mu.RLock()\n}\nb.close()\na.run()\n```\nReview it.",
            TaskClass::Code,
        );
    }

    #[test]
    fn formulas_are_mathematics_in_any_language() {
        check("Find all $n$ such that $\\frac{n^2+1}{n-3}$ is an integer.", TaskClass::Math);
        check("Let f be a function with $f(x)=x^2$. Write the function $f(f(x))$.", TaskClass::Math);
        check("小明有15个苹果，他给了小红4个，现在他有多少个苹果？", TaskClass::Math);
        check("求函数 y=sin x 的最小正周期", TaskClass::Math);
    }

    #[test]
    fn three_lettered_lines_are_a_choice() {
        check("Which gas?\nA) helium\nB) neon\nC) argon", TaskClass::MultipleChoice);
        check("Which gas?\n(A) 1 + 1\n(B) 2\n(C) 3", TaskClass::MultipleChoice);
    }

    #[test]
    fn prose_and_data_have_words_and_signs_of_programs_and_formulas_too() {
        for text in [
            "Pro is $20 a month, Team is $50 a month. Which should we take?",
            "Can I return this? What is your return policy?",
            "How does sodium react with water?",
            "Why do pandas eat bamboo?",
            "Why was the dress code invented?",
            "Write a letter about the membership program.",
            "请按以下要求写一篇800字的文章",
            "請求書の支払期限は5月31日ですか",
        ] {
            check(text, TaskClass::Chat);
        }
        let letter = "I have led teams for ten years, in three countries and with people of every trade; they grew, and so did I. ".repeat(6);
        check(&format!("Make this letter friendlier: {letter}"), TaskClass::Chat);
        check("Extract the vendor and the total: Acme Ltd, $20.00, shipping $5.00", TaskClass::Extraction);
        let form = r#"{"name": "", "contact": {"email": "", "phone": ""}}"#;
        check(
            &format!("Extract the person as JSON like {form} from this letter: Dear Ben, …"),
            TaskClass::Extraction,
        );
    }

    #[test]
    fn shells_and_functions_in_any_language_are_programs() {
        check("for f in $FILES; do mv $f $TARGET; done; echo `date`", TaskClass::Code);
        check("Why does `$ npm run build` fail in this script?", TaskClass::Code);
        check("编写一个函数，返回列表中的最大值", TaskClass::Code);
        check("Why does this code crash?", TaskClass::Code);
        check(
            "You are given an array nums and an integer k. Return the length of the shortest subarray.",
            TaskClass::Code,
        );
        check("def f(s):\n    return s.strip('\\n')\n\nassert f('\\n\\t') == ??", TaskClass::Code);
        check("How do I merge two dataframes in pandas?", TaskClass::Code);
        check("Create a React component for a login form.", TaskClass::Code);
    }

    #[test]
    fn finding_and_talking_are_told_apart() {
        check("Extract all names from this letter: Dear Ben, …", TaskClass::Extraction);
        check("Hello, who are you?", TaskClass::Chat);
        check("Tell me about 1984.", TaskClass::Chat);
    }
}
