"""A text of many scripts, made by a seed from sentences written for it: languages, code, numbers, emoji, combining marks in every
order, white space of every kind, ends of lines of three systems, and what looks like special tokens."""
import random
import sys
import unicodedata

SENTENCES = [
    "The ranks agree on every gradient before the step's end, don't they? We'll see; I'd say it's so, and they've said they're sure.",
    "Der große Rechner läuft über Nacht; fünf Maße, zwölf Grüße und ein schöner Straßenübergang.",
    "L'été où nous allions à l'île, la forêt brûlait déjà — n'est-ce pas étrange, « dit-elle » ?",
    "El pingüino comió piñas mañana y ayer; ¿cuántos años tenía? ¡Ninguno!",
    "A lição não está concluída: avó, avô, coração, órgãos e ações.",
    "Каждый вычислительный узел хранит часть весов, и обмен идёт по кольцу.",
    "Її українська їжа з'їдена ґазом ще вчора; об'єднання є.",
    "Η γλώσσα μας έχει τόνους, ΐ και ΰ, και τελικό σίγμα όπως λόγος.",
    "İstanbul'da ışık ılık, ağaçlar çiçekli, gökyüzü masmavi.",
    "Zażółć gęślą jaźń; w Łodzi świeci słońce, a źdźbło rośnie.",
    "Hôm nay trời đẹp quá, chúng tôi uống cà phê ở phố cổ Hà Nội.",
    "الحاسوب يتعلم اللغة العربية بِتَشْكِيلٍ كَامِلٍ، والأرقام ١٢٣٤٥.",
    "המחשב לומד עִבְרִית, עם נִקּוּד ובלי ניקוד.",
    "यह मॉडल हिन्दी के वाक्य सीखता है, और क्षत्रिय ज्ञान १२३ भी।",
    "মডেলটি বাংলা ভাষা শেখে এবং সংখ্যা ৪৫৬ পড়ে।",
    "இந்த மாதிரி தமிழ் மொழியைக் கற்கிறது.",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ และมีวรรณยุกต์ก็ดี",
    "每个节点保存一部分参数，梯度在环上传递；二〇二六年，共１２３步。",
    "それぞれのランクはパラメータの一部を持ち、カタカナとひらがなを学ぶ。ｶﾞｷﾞ も。",
    "모델은 한국어 문장을 배우고 기울기를 더한다.",
    "ქართული ენა და ანბანი; ამხარული የአማርኛ ጽሑፍ።",
]
CODE = [
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];  // dot\n}\n",
    "def f(x: int) -> str:\n    return f\"{x!r:>10}\" if x else ''\n",
    "SELECT name, COUNT(*) FROM runs WHERE step >= 1000 GROUP BY name;\r\n",
    "<div class=\"a-b\" data-x='1'>&amp;&nbsp;</div>\n",
    "$ ls -la /tmp | grep -E '^d' >> out.txt 2>&1\n",
    "{\"key\": [1, 2.5e-3, null, true], \"s\": \"\\u00e9\\n\"}\n",
    "x = y**2 + 3*z//4 % 5 ^ ~w; a->b::c(); !d && e || f <=> g\n",
]
EMOJI = ["😀", "👩‍💻", "🏳️‍🌈", "👍🏽", "🇩🇪🇯🇵", "❤️", "1️⃣", "👨‍👩‍👧‍👦", "🫠", "☕", "♟️", "𝔘𝔫𝔦", "ﬁ", "①Ⅷ½²", "㎏", "Å", "Ω"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\n\n  \n", "\u00a0", "\u2003", "\u3000", "\u180e",
          "\u200b", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\ufeff", "\x1c", "\u200d", "     \t  "]
SPECIAL = ["<|endoftext|>", "<|endof", "<|begin_of_text|>", "<mask>", " <mask> ", "<pad>  \n", "Kernel", "preKernel", "Kernels Kernel.",
           "<|im_start|>", "<|im_start|>user", "<|im_|>", "<|end", "|>", "Ame\u0301lie", "Amélie"]
CONTRACTIONS = ["I'M", "you'LL", "it'S", "it'\u017f", "we\u2019re", "O'Neil's", "'tis", "can't've", "''s", "'", "D'"]
MARKS = [chr(c) for c in [*range(0x300, 0x330), 0x345, 0x591, 0x5B0, 0x64B, 0x93C, 0x94D, 0x3099, 0x309A, 0x1AB0, 0x20DD, 0xFE0F]]


def odd_characters():
    """Every assigned character of the planes that have any, without surrogates and private ones."""
    return [chr(c) for c in range(1, 0x2FA1E) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]


def mixed_text(size, seed=1, without=frozenset()):
    rng = random.Random(seed)
    odd = [c for c in odd_characters() if c not in without]
    words = [sentence.split(" ") for sentence in SENTENCES]

    def piece():
        kind = rng.random()
        if kind < 0.62:
            source = rng.choice(words)
            return " ".join(rng.choice(source) for _ in range(rng.randint(1, 9))) + rng.choice([" ", ". ", ", ", "\n", "; "])
        if kind < 0.72:
            return rng.choice(CODE)
        if kind < 0.77:
            return str(rng.randrange(10 ** rng.randint(1, 12))) + rng.choice([" ", ",", ".5 ", "%", "th "])
        if kind < 0.81:
            return rng.choice(EMOJI) * rng.randint(1, 3)
        if kind < 0.85:
            return rng.choice("aeouAEOUcnsیकがㄱ하") + "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 5)))
        if kind < 0.91:
            return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 4)))
        if kind < 0.94:
            return rng.choice(SPECIAL)
        if kind < 0.96:
            return rng.choice(CONTRACTIONS) + " "
        if kind < 0.98:
            return "".join(rng.choice(odd) for _ in range(rng.randint(1, 4)))
        return "".join(rng.choice("abcdefgh_-=#") for _ in range(rng.randint(1, 40)))

    parts, bytes_so_far = [], 0
    while bytes_so_far < size:
        parts.append(piece())
        bytes_so_far += len(parts[-1].encode())
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.buffer.write(mixed_text(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1).encode())
