"""Strings to compare two tokenizers on: real text cut anywhere, random Unicode, and pieces that patterns care about."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator
from itertools import islice

__all__ = ["PIECES", "strings"]

PROSE = (
    "The committee met on Tuesday and agreed to publish what it'd found, in full, by June; nobody'll mind. "
    "L'été à Besançon, où l'on s'ennuie déjà — « vraiment ? » demanda-t-elle. Ça coûte 1 234,50 €. "
    "Die Straßenbahnhaltestelle lag jenseits der Brücke, am Fuß des Hügels. Żółć, gęś, jaźń. İstanbul'da ığdır. "
    "委员会星期二开会，同意在六月之前公布其全部调查结果。漢字とかな交じりの文章を、カタカナでも書く。"
    "위원회는 화요일에 만났다. "
    "Комитет собрался во вторник. Η επιτροπή συνεδρίασε την Τρίτη. "
    "اجتمعت اللجنة يوم الثلاثاء. הוועדה נפגשה ביום שלישי. "
    "समिति की बैठक मंगलवार को हुई। คณะกรรมการประชุมกันเมื่อวันอังคาร "
    "def total(rows):\n    return sum(row['price'] * row.get('count', 1) for row in rows)  # O(n)\n\n\n"
    '{"id":48213,"name":"ann","score":0.731,"created":"2026-03-14T09:26:53Z","tags":["a","b"],"parent":null}\r\n'
    "<div class=\"row\">\n\t\t<a href='https://example.org/?q=1&amp;r=2'>HTTPServerError</a>\n</div>\n"
    "SELECT * FROM t WHERE x >= 10 AND y != 'it''s' -- fine\n👩‍💻👍🏽🇫🇷 ❤️ ✅ → ≤ ½ ﬁ ﷺ 🅰"
)
PIECES = [
    *("'s", "'S", "'t", "'re", "'VE", "'ll", "'LL", "'d", "'m", "'", "’s", "'\u017f", "\u017f", "'K", "\u212a"),
    *(" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\xa0", "\u2028", "\u3000", "\u200b"),
    *("a", "A", "aB", "Ab", "ABC", "abc", "Ǆ", "ǅ", "ǆ", "ʰ", "ª", "ß", "İ", "ı", "é", "e\u0301", "\u0301", "\u0e33"),
    *("0", "1", "12", "123", "1234", "٣", "²", "Ⅷ", "½", "一", "漢", "か", "가", "ა", "Ꭰᏸ", "ꭰ", "𐐀", "𝔄", "𝟘"),
    *("/", "//", "/\n", ".\n", "...", "!", "_", "-", "--", "=", "====", "^", "\\", "<", ">", "{", "}", '"', "$", "€"),
    *("<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|", "|>", "</s>", "[INST]", "\x00", "\x7f", "\ufeff"),
    *("👍", "👍🏽", "👩\u200d💻", "🇫🇷", "❤\ufe0f", "\u200d", "\ufe0f", "\U000e0041", "\uffff", "\U0010ffff", "\ue000"),
]
_BLOCKS = [(0x20, 0x7F), (0xA0, 0x250), (0x250, 0x600), (0x600, 0xE00), (0xE00, 0x2000), (0x2000, 0x3000)]
_BLOCKS += [(0x3000, 0xA000), (0xA000, 0xD7FF), (0xE000, 0x10000), (0x10000, 0x20000), (0x20000, 0x110000)]


def strings(number: int, seed: int) -> Iterator[str]:
    """Yield ``number`` strings of some hundred bytes, the same for the same ``seed``."""
    rng = random.Random(seed)
    kinds = (_real, _unicode, _crafted, _mixed, _letters, _repeated)
    return islice((kinds[rng.randrange(len(kinds))](rng) for _ in iter(int, 1)), number)


def _real(rng: random.Random) -> str:
    start = rng.randrange(len(PROSE))
    return PROSE[start : start + rng.randrange(1, 300)]


def _unicode(rng: random.Random) -> str:
    first, last = rng.choice(_BLOCKS)
    return "".join(map(chr, (rng.randrange(first, last) for _ in range(rng.randrange(60)))))


def _crafted(rng: random.Random) -> str:
    return "".join(rng.choices(PIECES, k=rng.randrange(40)))


def _mixed(rng: random.Random) -> str:
    return "".join(kind(rng)[:20] for kind in rng.choices((_real, _unicode, _crafted, _letters), k=rng.randrange(8)))


def _letters(rng: random.Random) -> str:
    alphabet = rng.choice(
        (string.ascii_letters, string.digits, string.punctuation, string.printable, "0123456789abcdef")
    )
    if rng.random() < 0.2:
        return base64.b64encode(rng.randbytes(rng.randrange(150))).decode()
    return "".join(rng.choices(alphabet, k=rng.randrange(200)))


def _repeated(rng: random.Random) -> str:
    return rng.choice(PIECES) * rng.randrange(1, 200) + rng.choice(PIECES)
