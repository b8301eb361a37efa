//! Words by which tasks are known that instructions set for every message. All of it is looked for in small letters.

/// What is done to each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandingKind {
    /// Data is extracted from it.
    Extract,
    /// It is told of what kind it is.
    Classify,
    /// A query or a command is written for it.
    Query,
    /// It is a program, and is reviewed.
    Review,
}

/// How a sentence begins that says who does the task, or what it will be given.
pub(super) const ROLES: &[&str] = &[
    "you are ",
    "you're ",
    "act as ",
    "as a",
    "you will be given",
    "you will receive",
    "you'll be given",
    "the user will ",
    "du bist ",
    "sie sind ",
    "tu es ",
    "vous êtes ",
    "eres ",
    "você é ",
    "ты ",
    "вы ",
    "你是",
    "您是",
    "あなたは",
    "당신은",
    "#",
];
/// Who says more of himself talks with people.
pub(super) const TALKS: &[&str] = &[
    " helps", " help ", "answer", "explain", "advis", "advice", "discuss", "chat", "convers", "tutor",
    "teach",
];
/// Who writes programs that do so does it not himself.
pub(super) const PROGRAMMERS: &[&str] = &[
    " engineer",
    " developer",
    " programmer",
    " scientist",
    " researcher",
    " working on",
    " works on",
    " building",
    " writing a",
];
/// What is done by whom.
pub(super) const ROLE_NAMES: &[(StandingKind, &[&str])] = &[
    (
        StandingKind::Query,
        &[
            "text-to-sql",
            "text to sql",
            "text2sql",
            "nl2sql",
            "sql generator",
            "query generator",
            "regex generator",
            "generates sql",
            "writes sql",
        ],
    ),
    (
        StandingKind::Review,
        &["code review", "reviews code", "reviews pull requests", "review pull requests", "reviews diffs"],
    ),
    (
        StandingKind::Classify,
        &[
            "classifier",
            "that classifies",
            "who classifies",
            "that categorizes",
            "that categorises",
            "content moderator",
            "content moderation",
            "moderation system",
            "intent detection",
            "intent recognition",
            "sentiment analy",
            "spam filter",
            "文本分类",
            "分类器",
        ],
    ),
    (
        StandingKind::Extract,
        &[
            "extraction engine",
            "extraction assistant",
            "extraction system",
            "extraction tool",
            "extraction bot",
            "extraction agent",
            "that extracts",
            "who extracts",
            "extractor",
            "parser",
            "that parses",
            "entity recogni",
            "信息提取",
            "信息抽取",
        ],
    ),
];
/// What may stand before the verb of an instruction.
pub(super) const PREFIXES: &[&str] = &[
    "task:",
    "instructions:",
    "your task is to ",
    "your job is to ",
    "your goal is to ",
    "the task is to ",
    "i want you to ",
    "you will ",
    "you should ",
    "you must ",
    "you need to ",
    "you ",
    "please ",
    "always ",
];
/// What stands before its comma.
pub(super) const GIVENS: [&str; 5] = ["given ", "for each ", "for every ", "from the ", "based on "];
/// What is so of some messages only,
pub(super) const CONDITIONS: &[&str] = &[
    ", if ",
    "if asked",
    "if the user",
    "if you ",
    "when asked",
    "when the user",
    " may ",
    " can ",
    "unless ",
    "never ",
    "sometimes",
];
/// and what is found by thinking, or of many things.
pub(super) const THOUGHT_OUT: &[&str] = &[
    "correct",
    "solution",
    "proof",
    "prove",
    "bug",
    "vulnerab",
    "valid",
    "reason",
    "step by step",
    "explain",
    "fallac",
    "diagnos",
    "legal",
    "root cause",
    "each word",
    "each token",
    "each sentence",
    "each line",
    "every word",
    "risk",
];
pub(super) const EXTRACTS: &[&str] = &[
    "extract ",
    "parse ",
    "identify all ",
    "identify and extract",
    "extrahiere ",
    "extrahieren sie",
    "extrais ",
    "extraire ",
    "extrae ",
    "extraiga ",
    "extraia ",
    "estrai ",
    "извлеки",
    "извлекай",
];
pub(super) const EXTRACTS_UNSPACED: &[&str] = &["提取", "抽取", "抽出し", "추출하", "추출해"];
pub(super) const CLASSIFIES: &[&str] = &[
    "classify ",
    "categorize ",
    "categorise ",
    "label ",
    "detect the language",
    "detect the intent",
    "determine the language",
    "determine the sentiment",
    "determine the intent",
    "determine the category",
    "determine the topic",
    "decide which",
    "klassifiziere",
    "kategorisiere",
    "ordne ",
    "classe ",
    "classez ",
    "classifie",
    "catégorise",
    "clasifica",
    "clasifique",
    "classifique",
    "classifica ",
    "классифицируй",
];
pub(super) const CLASSIFIES_UNSPACED: &[&str] =
    &["分类为", "分类成", "进行分类", "に分類", "分類して", "분류하", "분류해"];
/// What they are done to.
pub(super) const MESSAGES: &[&str] = &[
    "text",
    "message",
    "review",
    "ticket",
    "email",
    "e-mail",
    "quer",
    "input",
    "document",
    "comment",
    "sentence",
    "user",
    "post",
    "article",
    "resume",
    "invoice",
    "receipt",
    "request",
    "question",
    "following",
    "transcript",
    "conversation",
    "feedback",
    "tweet",
    "nachricht",
    "mensaje",
    "mensagem",
    "testo",
    "текст",
    "сообщен",
    "отзыв",
    "kommentar",
    "comentario",
];
/// How something is written for a message,
pub(super) const WRITES: &[&str] = &[
    "convert ",
    "translate ",
    "turn ",
    "transform ",
    "generate ",
    "write ",
    "produce ",
    "create ",
    "output ",
    "return ",
    "erzeuge ",
    "übersetze ",
    "schreibe ",
    "wandle ",
    "convierte ",
    "genera ",
    "convertis ",
    "génère ",
    "преобраз",
];
/// Those of them that keep what a message says, in another form,
pub(super) const CONVERTS: &[&str] =
    &["convert ", "translate ", "turn ", "transform ", "wandle ", "convierte ", "convertis ", "преобраз"];
pub(super) const CONVERTS_UNSPACED: &[&str] = &["转换", "转成", "変換"];
/// and those that do where they say what from.
pub(super) const RETURNS: &[&str] = &["output ", "return ", "produce "];
pub(super) const WRITES_UNSPACED: &[&str] = &["转换", "转成", "生成", "変換"];
/// what,
pub(super) const QUERIES: &[&str] = &[
    "sql",
    "regex",
    "regular expression",
    "bash command",
    "shell command",
    "terminal command",
    "command line",
    "cypher",
    "graphql",
    "mongodb quer",
    "elasticsearch",
    "xpath",
    "promql",
    "one-liner",
];
/// and of what.
pub(super) const SOURCES: &[&str] = &[
    "question",
    "request",
    "description",
    "natural language",
    "instruction",
    "user",
    "following",
    "frage",
    "pregunta",
    "问题",
    "用户",
    "自然语言",
    "質問",
];
pub(super) const REVIEWS: &[&str] = &["review ", "check ", "critique ", "inspect "];
pub(super) const PROGRAMS: &[&str] = &["code", "diff", "pull request", "patch", "snippet"];
