"""Numbers of lists and headings as documents write them: letters, Roman, Chinese, circled, ordinals. Pure.

The names are Word's (ECMA-376 part 1, 17.18.59); `kind_of` maps those of OpenDocument, slides and CSS.
"""

from __future__ import annotations

import re

# As in Word, which uses other formats above these numbers.
_MOST_ROMAN, _MOST_LETTERS = 3_999, 780
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
# Alphabets; after the last letter follow aa and bb in Word, aa and ab in page numbers.
_LETTERS = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz", "upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "lowerGreek": "αβγδεζηθικλμνξοπρστυφχψω", "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ", "hebrew2": "אבגדהוזחטיכלמנסעפצקרשת",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي", "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
    "aiueoFullWidth": "アイウエオカキクケコサシスセソタチツテトナニヌネ"
    "ノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "irohaFullWidth": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウ"
    "ヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
    "hiragana": "あいうえおかきくけこさしすせそたちつてとなにぬね"
    "のはひふへほまみむめもやゆよらりるれろわをん",
    "ganada": "가나다라마바사아자차카타파하", "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸", "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "chicago": "*†‡§", "thaiLetters": "กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ",
}  # fmt: skip
_DIGITS = {
    "hindiNumbers": "०१२३४५६७८९", "thaiNumbers": "๐๑๒๓๔๕๖๗๘๙", "arabicIndic": "٠١٢٣٤٥٦٧٨٩",
    "decimalFullWidth": "０１２３４５６７８９", "ideographDigital": "〇一二三四五六七八九",
    "koreanDigital": "영일이삼사오육칠팔구", "persian": "۰۱۲۳۴۵۶۷۸۹", "bengali": "০১২৩৪৫৬৭৮৯",
}  # fmt: skip
# Digits and units of the Chinese way; whether ten is written without its one, and zeros are not written.
_COUNTING = {
    "chineseCountingThousand": ("零一二三四五六七八九", "十百千万", True, False),
    "chineseLegalSimplified": ("零壹贰叁肆伍陆柒捌玖", "拾佰仟万", False, False),
    "ideographLegalTraditional": ("零壹貳參肆伍陸柒捌玖", "拾佰仟萬", False, False),
    "japaneseCounting": ("〇一二三四五六七八九", "十百千万", True, True),
    "japaneseLegal": ("零壱弐参四伍六七八九", "拾百阡萬", False, True),
    "koreanCounting": ("영일이삼사오육칠팔구", "십백천만", True, True),
    "taiwaneseCountingThousand": ("零一二三四五六七八九", "十百千萬", True, False),
}
# The first character of a row of enclosed numbers, and how many there are.
_ENCLOSED = {
    "decimalEnclosedCircle": ((1, 20, "①"), (21, 35, "㉑"), (36, 50, "㊱")),
    "decimalEnclosedParen": ((1, 20, "⑴"),),
    "decimalEnclosedFullstop": ((1, 20, "⒈"),),
    "filledCircle": ((1, 10, "❶"), (11, 20, "⓫")),
    "ideographEnclosedCircle": ((1, 10, "㊀"),),
}
_SAME = {
    "chineseCounting": "chineseCountingThousand", "taiwaneseCounting": "taiwaneseCountingThousand",
    "taiwaneseDigital": "ideographDigital", "japaneseDigitalTenThousand": "ideographDigital",
    "decimalEnclosedCircleChinese": "decimalEnclosedCircle", "decimalFullWidth2": "decimalFullWidth",
    "koreanDigital2": "ideographDigital", "koreanLegal": "koreanCounting", "aiueo": "aiueoFullWidth",
    "iroha": "irohaFullWidth", "hebrew1": "hebrew2", "ideographLegalSimplified": "chineseLegalSimplified",
}  # fmt: skip
_ONES = (
    "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IRREGULAR = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
# Names of other formats: OpenDocument shows the first numbers, slides and CSS have words.
_NAMES = {
    "1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
    "01, 02, 03, ...": "decimalZero", "一, 二, 三, ...": "chineseCountingThousand",
    "①, ②, ③, ...": "decimalEnclosedCircle",
    "壹, 贰, 叁, ...": "chineseLegalSimplified", "壹, 貳, 參, ...": "ideographLegalTraditional",
    "甲, 乙, 丙, ...": "ideographTraditional", "子, 丑, 寅, ...": "ideographZodiac",
    "１, ２, ３, ...": "decimalFullWidth",
    "ア, イ, ウ, ...": "aiueoFullWidth", "イ, ロ, ハ, ...": "irohaFullWidth", "가, 나, 다, ...": "ganada",
    "일, 이, 삼, ...": "koreanCounting", "ㄱ, ㄴ, ㄷ, ...": "chosung", "א, ב, ג, ...": "hebrew2",
    "أ, ب, ت, ...": "arabicAlpha",
    "ก, ข, ฃ, ...": "thaiLetters", "๑, ๒, ๓, ...": "thaiNumbers", "१, २, ३, ...": "hindiNumbers",
    "1st": "ordinal", "First": "ordinalText", "One": "cardinalText", "α, β, γ, ...": "lowerGreek",
    "alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman",
    "arabic": "decimal", "arabicDb": "decimalFullWidth", "circleNumDb": "decimalEnclosedCircle",
    "circleNumWdBlack": "filledCircle", "circleNumWdWhite": "decimalEnclosedCircle",
    "ea1Chs": "chineseCountingThousand",
    "ea1Cht": "taiwaneseCountingThousand", "ea1JpnChs": "japaneseCounting", "ea1JpnKor": "koreanCounting",
    "hindiNum": "hindiNumbers", "hindiAlpha": "hindiNumbers", "hindiAlpha1": "hindiNumbers",
    "hebrew2": "hebrew2", "thaiAlpha": "thaiLetters",
    "thaiNum": "thaiNumbers", "arabic1": "arabicAlpha", "arabic2": "arabicAbjad",
    "decimal-leading-zero": "decimalZero", "lower-alpha": "lowerLetter", "lower-latin": "lowerLetter",
    "upper-alpha": "upperLetter", "upper-latin": "upperLetter", "lower-roman": "lowerRoman",
    "upper-roman": "upperRoman", "lower-greek": "lowerGreek", "cjk-decimal": "ideographDigital",
    "cjk-ideographic": "taiwaneseCountingThousand", "trad-chinese-informal": "taiwaneseCountingThousand",
    "simp-chinese-informal": "chineseCountingThousand", "simp-chinese-formal": "chineseLegalSimplified",
    "trad-chinese-formal": "ideographLegalTraditional", "japanese-informal": "japaneseCounting",
    "japanese-formal": "japaneseLegal", "korean-hangul-formal": "koreanCounting", "hiragana": "hiragana",
    "katakana": "aiueoFullWidth", "katakana-iroha": "irohaFullWidth", "hebrew": "hebrew2",
    "devanagari": "hindiNumbers",
    "thai": "thaiNumbers", "arabic-indic": "arabicIndic", "persian": "persian", "bengali": "bengali",
    "cjk-heavenly-stem": "ideographTraditional", "cjk-earthly-branch": "ideographZodiac", "hangul": "ganada",
    "decimal": "decimal", "none": "none", "disc": "bullet", "circle": "bullet", "square": "bullet",
}  # fmt: skip
_PADDED = re.compile(r"(\D*)([0-9]{1,9})(\D*)")
_SLIDE = re.compile(r"([a-zA-Z0-9]+?)(ParenBoth|ParenR|Period|Plain|Minus)")
_AFFIXES = {
    "ParenBoth": ("(", ")"), "ParenR": ("", ")"), "Period": ("", "."), "Plain": ("", ""), "Minus": ("", "-"),
}  # fmt: skip


def kind_of(name: str) -> str:
    """Word's name for a way to count of OpenDocument or CSS; empty for none that is known."""
    return _NAMES.get(name, "")


def slide_figure(number: int, name: str) -> str:
    """`number` with its signs in a way to count of slides, such as `alphaLcParenR`."""
    found = _SLIDE.fullmatch(name)
    if found is None:
        return f"{number}."
    before, after = _AFFIXES[found[2]]
    return f"{before}{figure(number, kind_of(found[1]) or 'decimal')}{after}"


def figure(number: int, kind: str, *, doubles: bool = True) -> str:
    """`number` in one of Word's formats, such as `decimal` or `lowerRoman`.

    `doubles`: after the last letter of an alphabet follow aa and bb, else aa and ab.
    """
    kind = _SAME.get(kind, kind)
    if kind in ("none", "bullet"):
        return ""
    if "," in kind:
        return _listed(number, kind)
    if kind in _DIGITS:
        return "".join(_DIGITS[kind][int(digit)] if digit.isdigit() else digit for digit in str(number))
    if 0 < number <= _MOST_LETTERS and (letters := _LETTERS.get(kind)):
        turn, letter = divmod(number - 1, len(letters))
        if turn and not doubles:
            return figure(turn, kind, doubles=False) + letters[letter]
        return letters[letter] * (turn + 1)
    if 0 < number <= _MOST_ROMAN and kind in ("lowerRoman", "upperRoman"):
        return _roman(number).upper() if kind == "upperRoman" else _roman(number)
    if 0 < number < 100_000 and kind in _COUNTING:
        return _counted(number, *_COUNTING[kind])
    for first, last, sign in _ENCLOSED.get(kind, ()):
        if first <= number <= last:
            return chr(ord(sign) + number - first)
    if 0 < number < 1_000 and kind in ("cardinalText", "ordinalText"):
        return _spelled(number, ordinal=kind == "ordinalText")
    match kind:
        case "decimalZero":
            return f"{number:02}"
        case "ordinal":
            suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 // 10 != 1 else 0, "th")
            return f"{number}{suffix}"
        case "hex":
            return f"{number:X}"
        case "numberInDash":
            return f"- {number} -"
        case "decimalEnclosedParen":
            return f"({number})"
        case "decimalEnclosedFullstop":
            return f"{number}."
    return str(number)


def _listed(number: int, kind: str) -> str:
    """In a way to count that shows its first numbers: `001, 002, 003, ...`."""
    listed = [each.strip() for each in kind.split(",")]
    if found := _PADDED.fullmatch(listed[0]):
        before, digits, after = found.groups()
        return f"{before}{int(digits) + number - 1:0{len(digits)}}{after}"
    named = [each for each in listed if each.strip(".…")]
    return named[number - 1] if 0 < number <= len(named) else str(number)


def _roman(number: int) -> str:
    pieces = []
    for value, letters in _ROMAN:
        pieces.append(letters * (number // value))
        number %= value
    return "".join(pieces)


def _counted(number: int, digits: str, units: str, bare_ten: bool, no_zero: bool) -> str:
    """Such as 一百零五, or 百五 where one unit is written without its one and zeros are not written."""
    if number >= 10_000:
        rest = number % 10_000
        head = _counted(number // 10_000, digits, units, bare_ten, no_zero) + units[3]
        zero = "" if no_zero or not rest or rest >= 1_000 else digits[0]
        return head + zero + (_counted(rest, digits, units, False, no_zero) if rest else "")
    text, gap = "", False
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if not digit:
            gap = bool(text)
            continue
        text += digits[0] if gap and not no_zero else ""
        gap = False
        bare = power and digit == 1 and bare_ten and (no_zero or (power == 1 and not text))
        text += ("" if bare else digits[digit]) + (units[power - 1] if power else "")
    return text


def _spelled(number: int, *, ordinal: bool) -> str:
    words = [f"{_ONES[number // 100]} hundred"] if number >= 100 else []
    rest = number % 100
    if rest >= 20:
        words.append("-".join(filter(None, (_TENS[rest // 10], _ONES[rest % 10]))))
    elif rest:
        words.append(_ONES[rest])
    text = " ".join(words)
    if ordinal:
        head, dash, last = text.rpartition("-") if "-" in text else text.rpartition(" ")
        regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
        text = f"{head}{dash}{_IRREGULAR.get(last, regular)}"
    return text.capitalize()
