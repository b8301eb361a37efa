//! Kinds of numbers and other things of mathematics, in languages other than English. Other talk has these words as parts of others only.

use super::phrase_list::FoundPhrase;

/// With small letters, as far as those of ASCII go.
pub(super) const KINDS_ELSEWHERE: &[&str] = &[
    "positive ganze zahl",
    "ganze zahlen",
    "ganzen zahlen",
    "ganzer zahlen",
    "ganzzahlig",
    "natürliche zahl",
    "natürlichen zahl",
    "natürlicher zahl",
    "reelle zahl",
    "reellen zahl",
    "reeller zahl",
    "primzahl",
    "polynom",
    "entier strictement",
    "entier positif",
    "entiers positifs",
    "entiers strictement",
    "entier naturel",
    "entiers naturels",
    "nombres réels",
    "nombres entiers",
    "nombre premier",
    "nombres premiers",
    "polynôme",
    "enteros positivos",
    "entero positivo",
    "números enteros",
    "números reales",
    "número primo",
    "números primos",
    "números inteiros",
    "inteiros positivos",
    "inteiro positivo",
    "números reais",
    "numeri interi",
    "interi positivi",
    "intero positivo",
    "numeri reali",
    "numero primo",
    "numeri primi",
    "целых чис",
    "целое чис",
    "натуральное чис",
    "натурального чис",
    "натуральные чис",
    "натуральных чис",
    "действительные числа",
    "действительных чис",
    "вещественных чис",
    "простых чис",
    "простое чис",
    "многочлен",
    "liczb całkowit",
    "liczby całkowit",
    "liczb pierwsz",
    "tam sayı",
    "asal sayı",
    "正の整数",
    "素数",
    "自然数",
    "有理数",
    "多項式",
    "양의 정수",
    "자연수",
    "다항식",
    "الأعداد الصحيحة",
    "عدد صحيح",
    "عدد أولي",
    "धनात्मक पूर्णांक",
    "ऋणात्मक पूर्णांक",
    "पूर्णांकों",
    "अभाज्य",
];
/// What stands right before such a word where it is a part of another, as in "元素数量" (how many elements), "画素数" (how many pixels)
/// and "동양의 정수" (the essence of the East),
const PARTS_BEFORE: [&str; 23] = [
    "元", "像", "画", "畫", "要", "因", "毒", "激", "酸", "炭", "碳", "水", "窒", "色", "音", "词", "語",
    "语", "生", "태", "동", "서", "교",
];
/// and right behind it, as in "自然数据" (data of nature), "자연수명" (how long something lives) and "tam sayısı" (how many exactly).
const PARTS_BEHIND: [&str; 3] = ["据", "명", "sı"];

/// Whether a kind that was found is a word by itself.
pub(super) fn is_kind(found: &FoundPhrase<'_>) -> bool {
    let is_part = PARTS_BEFORE.iter().any(|part| found.before.ends_with(part))
        || PARTS_BEHIND.iter().any(|part| found.after.starts_with(part));
    !is_part
}
