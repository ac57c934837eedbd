"""French word forms and spelling: agreement, conjugation, numbers, elision and contraction.

A verb's present is given for five subjects, in this order everywhere: je, il, nous, vous, ils.
"""

import re
from functools import cache

ASPIRATED = ("hache", "haie", "hamster", "hangar", "haricot", "harpe", "haut", "hérisson", "héros", "hibou", "homard",
             "huit", "onze")  # fmt: skip
"""No elision, no bel/cet/mon before these, nor before their inflected forms."""

IRREGULAR_PRESENT = {
    "être": "suis est sommes êtes sont",
    "avoir": "ai a avons avez ont",
    "aller": "vais va allons allez vont",
    "dire": "dis dit disons dites disent",
    "lire": "lis lit lisons lisez lisent",
    "écrire": "écris écrit écrivons écrivez écrivent",
    "rire": "ris rit rions riez rient",
    "boire": "bois boit buvons buvez boivent",
    "croire": "crois croit croyons croyez croient",
    "voir": "vois voit voyons voyez voient",
    "vouloir": "veux veut voulons voulez veulent",
    "pouvoir": "peux peut pouvons pouvez peuvent",
    "devoir": "dois doit devons devez doivent",
    "savoir": "sais sait savons savez savent",
    "recevoir": "reçois reçoit recevons recevez reçoivent",
    "connaître": "connais connaît connaissons connaissez connaissent",
    "prendre": "prends prend prenons prenez prennent",
    "suivre": "suis suit suivons suivez suivent",
    "courir": "cours court courons courez courent",
    "dormir": "dors dort dormons dormez dorment",
    "partir": "pars part partons partez partent",
    "sortir": "sors sort sortons sortez sortent",
    "ouvrir": "ouvre ouvre ouvrons ouvrez ouvrent",
    "venir": "viens vient venons venez viennent",
    "conduire": "conduis conduit conduisons conduisez conduisent",
    "construire": "construis construit construisons construisez construisent",
    "peindre": "peins peint peignons peignez peignent",
}
PREFIXED = {"apprendre": "prendre", "comprendre": "prendre", "revenir": "venir", "devenir": "venir", "sourire": "rire"}
IRREGULAR_PARTICIPLE = {
    "être": "été", "avoir": "eu", "dire": "dit", "lire": "lu", "écrire": "écrit", "rire": "ri",
    "boire": "bu", "croire": "cru", "voir": "vu", "vouloir": "voulu", "pouvoir": "pu", "savoir": "su",
    "recevoir": "reçu", "connaître": "connu", "prendre": "pris", "suivre": "suivi",
    "courir": "couru", "ouvrir": "ouvert", "venir": "venu", "conduire": "conduit", "construire": "construit",
    "peindre": "peint",
}  # fmt: skip
STRESSED_STEM = {"acheter": "achèt", "appeler": "appell", "envoyer": "envoi", "espérer": "espèr", "nettoyer": "nettoi",
                 "préférer": "préfèr"}  # fmt: skip
"""-er verbs whose stem changes where the ending is silent: je, il, ils."""
WITH_ETRE = frozenset({"aller", "arriver", "entrer", "partir", "rester", "revenir", "sortir", "venir"})
"""Verbs whose past takes être, and whose participle agrees with the subject."""
WAS = ("étais", "était", "étions", "étiez", "étaient")

UNITS = (
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize",
    "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
)  # fmt: skip
TENS = ("_", "_", "vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt")

_VOWEL = "aàâeéèêëiîïoôuûœAÀÂEÉÈÊIÎOÔUŒ"
_ELISION = re.compile(
    rf"\b(le|la|de|ne|je|que|ce|se) (?=[{_VOWEL}]|[hH])(?!(?:{'|'.join(ASPIRATED)}))|\b(s)i (?=ils?\b)"
)
_CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}
_CONTRACTION = re.compile(r"\b(de|à) les?\b")


def starts_with_vowel(word: str) -> bool:
    """Whether the words before it elide or change: l'homme, but le héros."""
    return word[0] in _VOWEL + "hH" and not word.startswith(ASPIRATED)


def plural(word: str) -> str:
    """Of a noun or a masculine adjective."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith(("eau", "eu")) and word != "bleu" else "s")


def feminine(adjective: str) -> str:
    for ending, replacement in (("e", "e"), ("eux", "euse"), ("if", "ive"), ("er", "ère"), ("en", "enne")):
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + replacement
    return adjective + "e"


@cache
def present(infinitive: str) -> tuple[str, ...]:
    """Its five forms."""
    model = PREFIXED.get(infinitive, infinitive)
    prefix, stem = infinitive.removesuffix(model), infinitive[:-2]
    if model in IRREGULAR_PRESENT:
        return tuple(prefix + form for form in IRREGULAR_PRESENT[model].split())
    if infinitive.endswith("er"):
        stressed = STRESSED_STEM.get(infinitive, stem)
        we = f"{stem}eons" if stem.endswith("g") else f"{re.sub('c$', 'ç', stem)}ons"
        return f"{stressed}e", f"{stressed}e", we, f"{stem}ez", f"{stressed}ent"
    endings = "is it issons issez issent" if infinitive.endswith("ir") else "s _ ons ez ent"
    return tuple(stem + ending.strip("_") for ending in endings.split())


@cache
def participle(infinitive: str) -> str:
    """The past one, masculine singular."""
    model = PREFIXED.get(infinitive, infinitive)
    if model in IRREGULAR_PARTICIPLE:
        return infinitive.removesuffix(model) + IRREGULAR_PARTICIPLE[model]
    return infinitive[:-2] + {"er": "é", "ir": "i", "re": "u"}[infinitive[-2:]]


def agree(participle: str, is_feminine: bool, is_plural: bool) -> str:
    word = participle + "e" * is_feminine
    return plural(word) if is_plural else word


def number(value: int, is_feminine: bool = False) -> str:
    """0 … 1000 in words; only a last "un" has a feminine."""
    if value == 1000:
        return "mille"
    if value >= 100:
        hundreds, rest = divmod(value, 100)
        start = "cent" if hundreds == 1 else f"{UNITS[hundreds]} cent"
        return f"{start} {number(rest, is_feminine)}" if rest else start + "s" * (hundreds > 1)
    word = _below_hundred(value)
    return word + "e" if is_feminine and re.search(r"\bun$", word) else word


def _below_hundred(value: int) -> str:
    if value < 20:
        return UNITS[value]
    ten = TENS[value // 10]
    rest = value % 20 if value >= 60 else value % 10
    if not rest:
        return "quatre-vingts" if value == 80 else ten
    joined = " et " if rest in (1, 11) and value < 80 else "-"
    return ten + joined + UNITS[rest]


def sentence(text: str, mark: str = ".") -> str:
    """Words with single spaces, every "le", "de", "que" … in full → a sentence as it is written."""
    text = spell(" ".join(text.split()))
    return text[0].upper() + text[1:] + (mark if mark == "." else f" {mark}")


def spell(text: str) -> str:
    """Elision first: "de le ami" is "de l'ami", and only "de le chien" becomes "du chien"."""
    text = _ELISION.sub(lambda found: (found[1] or "si")[:-1] + "'", text)
    return _CONTRACTION.sub(lambda found: _CONTRACTIONS[found[0]], text)
