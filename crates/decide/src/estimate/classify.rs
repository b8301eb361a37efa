//! What kind of work a request is, by simple rules.

use stint_types::catalog::TaskClass;

use super::contest_proof::is_contest_proof;
use super::task_cues::TaskCues;
use super::task_phrases::{asks_for_mathematics, speaks_of_programs};
use super::text::TextAnalysis;

/// What a single word of programs means is looked at in texts of so many bytes.
const SHORT: usize = 1_000;
/// What a sum asks for stands in so many bytes at its end.
const SUM_END: usize = 160;
/// So many bytes at the end tell the problem of a contest.
const CONTEST_END: usize = 600;

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
    } else if (cues.programs() && !is_of_another_kind(&cues, reading.text) && !is_inequality(reading.text))
        || unspaced.programs
    {
        TaskClass::Code
    } else if cues.extracts || unspaced.extracts {
        TaskClass::Extraction
    } else if speaks_of_programs(reading.text) || ends_like_a_contest(reading.text) {
        TaskClass::Code
    } else if cues.proves
        || cues.calculates()
        || cues.has_amounts() && asks_for_amount(reading.text)
        || unspaced.calculates
        || asks_for_mathematics(reading.text)
        || is_contest_proof(reading, false)
    {
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
        || ends_like_a_contest(text)
}

/// True of a text that ends with the examples or the limits of such a problem.
fn ends_like_a_contest(text: &str) -> bool {
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(CONTEST_END))..];
    has_limits(text, end) || end.contains("Sample Input") || end.contains("Sample Output")
}

/// As `1 <= n <= 50` beside examples. Templates of prompts have constraints too, in words.
fn has_limits(text: &str, end: &str) -> bool {
    let is_limited = |(_, limits): (&str, &str)| ["<=", "≤", "\\le"].iter().any(|sign| limits.contains(sign));
    end.split_once("Constraints:").is_some_and(is_limited)
        && text.contains("Input:")
        && text.contains("Output:")
}

/// True of inequalities between sums, whose indices look like names of programs.
fn is_inequality(text: &str) -> bool {
    text.contains(['≤', '≥']) && (text.contains("inequality") || text.contains("real numbers x"))
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
        let is_short = text.len() <= SHORT;
        let lower = text.to_lowercase();
        OTHERS.iter().any(|words| lower.contains(words)) || is_short && is_of_people(&lower)
    }
}

/// The words of programs that other worlds have too,
const SHARED: [&str; 6] = ["script", "query", "component", "bug", "variable", "program"];
/// and how those are told.
const OTHER_WORLDS: &[&str] = &[
    "movie",
    "film",
    "tv",
    "television",
    "cartoon",
    "sitcom",
    "comedy",
    "screenplay",
    "screenwriter",
    "podcast",
    "vlog",
    "theatre",
    "theater",
    "actor",
    "documentary",
    "voiceover",
    "wedding",
    "funeral",
    "church",
    "graduation",
    "gala",
    "literary",
    "manuscript",
    "insect",
    "insects",
    "bedroom",
    "kitchen",
    "fitness",
    "workout",
];
const OTHER_PHRASES: &[&str] = &[
    "query letter",
    "youtube script",
    "youtube video script",
    "video script",
    "sales script",
    "radio script",
    "radio program",
    "in my room",
    "in my house",
];
/// Who writes a program about films says what it shall do.
const OF_PROGRAMS: &[&str] = &[
    "a program to",
    "a program that",
    "a program which",
    "a program in",
    "a script to",
    "a script that",
    "a script which",
    "a query to",
    "a query that",
    "a query which",
];

/// True where the one word of programs is one of films, letters, feasts or insects, as other words say.
fn is_of_people(lower: &str) -> bool {
    let is_said = |known: &[&str]| {
        lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| known.contains(&word))
    };
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    is_said(&SHARED) && (is_said(OTHER_WORLDS) || has(OTHER_PHRASES)) && !has(OF_PROGRAMS)
}

/// Whether an amount is asked for in a language that writes beyond ASCII, at the end of a text.
fn asks_for_amount(text: &str) -> bool {
    const AMOUNTS: [&str; 10] =
        ["Сколько", "сколько", "كم ", "कितन", "몇 ", "얼마", "Cuánt", "cuánt", "kaç ", "Quanti "];
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(SUM_END))..];
    let begins_word = |at: usize| !end[..at].ends_with(char::is_alphanumeric);
    let is_asked = |word: &&str| end.match_indices(*word).any(|(at, _)| begins_word(at));
    !text.is_ascii() && AMOUNTS.iter().any(is_asked)
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
        const PROGRAMS: [&str; 10] = [
            "代码",
            "编程",
            "程序",
            "算法",
            "数据框",
            "React组件",
            "Vue组件",
            "プログラム",
            "コード",
            "程式",
        ];
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
    fn tools_errors_and_languages_are_of_programs_and_films_and_insects_are_not() {
        for text in [
            "Fix: TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: too many values to unpack",
            "npm ERR! peer dep missing: react@^17, what now?",
            "Segmentation fault (core dumped) when calling free() twice",
            "How do I sort a map by value in Go?",
            "C# LINQ: group by and count",
            "How do I create a Kubernetes deployment with 3 replicas?",
            "Implement an LRU cache.",
            "Fix the bug in the login form.",
            "SELECT name FROM users WHERE age > 3 -- make it faster",
            "Write a script that renames photos.",
            "Write a simple script that downloads images",
            "Write program to find factorial of a given no",
            "딕셔너리 리스트를 두 키로 정렬하는 파이썬 함수를 작성해 주세요.",
            "Port this C codebase to another language.",
            "Implement a B+tree with crash recovery in src/tree.rs.",
            "What's wrong with this? for i in range(10) print(i)",
            "Create a carousel component with arrows",
            "Write an Angular component for a date picker",
            "Write a MongoDB query for counting orders by month",
            "Write a shell script for monitoring disk space",
            "Write a program to store film titles.",
            "How do I read a table in Lua?",
            "Add unit tests.",
            "What is the largest n?\n\nExample 1:\nInput: n = 3\nOutput: 9 = 3 * 3\n\nConstraints:\n1 <= n <= 50",
            "如何在pandas中合并两个数据框？",
            "用C++实现一个LRU缓存",
            "There are 3 cups and 5 balls. Tell how many are full.\n\nSample Output 1\n\n3",
        ] {
            check(text, TaskClass::Code);
        }
        for text in [
            "Write a movie script about a bank robbery.",
            "Write a query letter to a literary agent.",
            "Why do bugs like light? There's a bug in my room.",
            "Write a program for our wedding day.",
            "What is played in C# minor?",
            "What chords go well with C#m?",
            "What is in a C# scale?",
            "You are a travel guide.\nInput: a city\nOutput: a plan of three days\nConstraints: be brief and friendly",
            "A que distância está a lua da Terra?",
            "Help me study for my biology unit test.",
            "Where do people go in Gozo?",
            "Is https://www.radio.rs down? Write to ben@radio.rs.",
            "data.go.kr 사이트가 안 열려요.",
            "这张图里的元素数量和像素数据是什么意思？",
            "このカメラの画素数は十分ですか。",
            "동양의 정수를 담은 여행지를 추천해 줘.",
            "Türkiye'deki köylerin tam sayısı biliniyor mu?",
            "Bewerte den Text: Gib nur eine ganze Zahl zurück.",
            "Who was Évariste Galois, and how did he die?",
            "How do I integrate Salesforce DX with our calendar?",
        ] {
            check(text, TaskClass::Chat);
        }
    }

    #[test]
    fn sums_in_words_and_proofs_in_other_languages_are_mathematics() {
        for text in [
            "what is 15% of 80",
            "A shirt costs $40 and is 25% off. Final price?",
            "Is 221 prime?",
            "What's the GCD of 48 and 18?",
            "Train A goes 60 km/h and train B 90 km/h, 300 km apart. When do they meet?",
            "square root of 2 to 5 digits",
            "How many ways are there to arrange the letters of MISSISSIPPI?",
            "Show that sqrt(2) is irrational.",
            "Démontre que la racine de deux est irrationnelle.",
            "Demuestra que la raíz de dos es irracional.",
            "Докажите, что корень из двух иррационален.",
            "√2が無理数であることを証明せよ。",
            "√2が無理数であることを証明してください。",
            "루트 2가 무리수임을 증명해 주세요.",
            "In how many ways can six books be placed on two shelves?",
            "If I roll two dice, how often do they show 7?",
            "루트 2가 무리수임을 증명하시오.",
            "أثبت أن جذر اثنين عدد غير نسبي.",
            "सिद्ध करें कि दो का वर्गमूल अपरिमेय है।",
            "Bestimme alle Tripel (a,b,p) positiver ganzer Zahlen mit p prim und a^p = b! + p.",
            "Combien de nombres premiers y a-t-il entre 50 et 60 ?",
            "¿Cuáles de estos números enteros no son números primos?",
            "أوجد جميع الثلاثيات (a,b,p) من الأعداد الصحيحة الموجبة حيث p عدد أولي و a^p = b! + p.",
            "ऐसे सभी धनात्मक पूर्णांक ज्ञात कीजिए जो 12 को विभाजित करते हैं।",
            "A train travels 120 km in 1.5 hours. What is its average speed?",
            "Ein Zug fährt 120 km in 1,5 Stunden. Wie hoch ist seine Durchschnittsgeschwindigkeit?",
            "Compute the fundamental group of the Klein bottle.",
            "Integrate sqrt(tan x) dx.",
            "100以内的素数有哪些？",
            "У Тома 15 яблок. Он отдаёт 4 Анне и покупает ещё 7. Сколько у него яблок?",
            "철수는 사과를 15개 가지고 있습니다. 영희에게 4개를 주었습니다. 철수는 사과를 몇 개 가지고 있나요?",
            "لدى أحمد 15 تفاحة. أعطى سارة 4 واشترى 7 أخرى. كم تفاحة لديه؟",
            "राम के पास 15 सेब हैं। वह 4 सीता को देता है। उसके पास कितने सेब हैं?",
            "由素数组成的集合是什么？",
            "正の整数 n が素数となるのはいつか。",
            "Determine all real numbers α such that, for every positive integer n, the integer ⌊α⌋ + … + ⌊nα⌋ is a multiple of n.",
        ] {
            check(text, TaskClass::Math);
        }
        for text in [
            "Show that you care.",
            "Is Amazon Prime worth it?",
            "Is Amazon Prime worth $139 a year?",
            "How many ways can I style a scarf?",
            "What board games with dice are good for 4 players?",
            "¿Qué dice el artículo 14 de la Constitución?",
            "자신을 증명하고 싶을 때 어떻게 하나요?",
            "自分の価値を証明して生きたいのですが、どう思いますか。",
            "Which 20% of topics matter most?",
            "Ce résultat prouve que nous avons raison.",
            "Напишите несколько слов о 2 городах и 3 реках.",
            "السلام عليكم ، لدي 2 من القطط و 3 كلاب.",
            "Is the average of all opinions a good opinion?",
        ] {
            check(text, TaskClass::Chat);
        }
    }

    #[test]
    fn finding_and_talking_are_told_apart() {
        check("Extract all names from this letter: Dear Ben, …", TaskClass::Extraction);
        check("Hello, who are you?", TaskClass::Chat);
        check("Tell me about 1984.", TaskClass::Chat);
    }
}
