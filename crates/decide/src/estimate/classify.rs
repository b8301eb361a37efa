//! What kind of work a request is, by simple rules.

use stint_types::catalog::TaskClass;

use super::text::TextAnalysis;

/// The class of a text, by the first rule that holds. A request with tools is an agent's, whatever its text.
pub(super) fn class_of(reading: &TextAnalysis<'_>) -> TaskClass {
    let cues = reading.tally.cues();
    let unspaced =
        if cues.markup.unspaced > 0 { UnspacedCues::of(reading.text) } else { UnspacedCues::default() };
    if reading.options.len() >= 3 {
        TaskClass::MultipleChoice
    } else if cues.has_formulas() {
        if is_of_a_contest(reading.text) { TaskClass::Code } else { TaskClass::Math }
    } else if cues.programs() || unspaced.programs {
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
        const AMOUNTS: [&str; 9] = ["计算", "多少", "几个", "求", "面积", "平均", "計算", "いくつ", "何個"];
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        UnspacedCues {
            programs: has(&PROGRAMS),
            extracts: has(&EXTRACTS),
            calculates: has(&PROVES) || has_digits && has(&AMOUNTS),
        }
    }
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
    fn finding_and_talking_are_told_apart() {
        check("Extract all names from this letter: Dear Ben, …", TaskClass::Extraction);
        check("Hello, who are you?", TaskClass::Chat);
        check("Tell me about 1984.", TaskClass::Chat);
    }
}
