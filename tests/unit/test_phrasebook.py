"""The phrasebook: right French and right English, one translation each, nothing held out in training.

What is checked over the sentences is written here anew, from school grammar, and does not use the package's rules.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import jaxtyping
import pytest

from regard.errors import ConfigError
from regard.text.phrasebook import (
    ANIMAL_TIRED,
    ANIMAL_WIDE,
    Phrasebook,
    coreference,
    english,
    french,
    lexeme_count,
    make_phrasebook,
    write_phrasebook,
)
from regard.text.phrasebook.lexicon import ADJECTIVE, GROUPS, NOUN

PARTS = ("train", "valid", "test", "coreference")
VOWELS = "aàâeéèêëiîïoôuûœ"
MUTE_H = {"habite", "habiter", "habitons", "habitez", "habitent", "heure", "heures", "heureux", "heureuse", "heureuses",
          "hélicoptère", "hélicoptères", "hier", "hirondelle", "hirondelles", "histoire", "histoires", "hiver", "homme",
          "hommes", "honnête", "honnêtes", "horloge", "horloges", "hôpital", "hôpitaux", "hôtel", "hôtels", "huile",
          "huître", "huîtres", "humide", "humides"}  # fmt: skip
ASPIRATED_H = {"hache", "haches", "haie", "haies", "hamster", "hamsters", "hangar", "hangars", "haricot", "haricots",
               "harpe", "harpes", "haut", "haute", "hauts", "hautes", "hérisson", "hérissons", "héros", "hibou",
               "hiboux", "homard", "homards", "huit"}  # fmt: skip

# A French noun in -e is feminine, another is masculine, but for these.
MASCULINE_IN_E = {
    "singe", "tigre", "âne", "zèbre", "crocodile", "oncle", "père", "frère", "homme", "prince", "touriste", "légume",
    "verre", "téléphone", "timbre", "peigne", "portefeuille", "livre", "magazine", "dictionnaire", "poème", "message",
    "article", "garage", "village", "musée", "théâtre", "stade", "hélicoptère", "arbre", "costume", "uniforme", "cidre",
    "beurre", "sucre", "fromage", "parapluie", "journaliste", "pilote", "dentiste", "architecte", "peintre", "juge",
    "photographe", "secrétaire", "coffre",
}  # fmt: skip
FEMININE_ELSEWHERE = {
    "souris", "fourmi", "pie", "sœur", "clé", "photo", "fleur", "forêt", "cour", "mer", "tour", "moto", "eau",
    "jument", "maison", "université",
}  # fmt: skip


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the tests' run-time type checks, where many sentences are made; elsewhere they are on."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Phrasebook:
    """The book of the default seed and size, made without the tests' run-time type checks: they take a minute."""
    folder = tmp_path_factory.mktemp("phrasebook")
    program = "import sys, pathlib, regard.text.phrasebook as p; p.write_phrasebook(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
    return Phrasebook(*(read_pairs(folder, part) for part in PARTS))


@pytest.fixture(scope="module")
def all_english(book) -> str:
    return "\n".join(source for source, _ in everything(book))


@pytest.fixture(scope="module")
def all_french(book) -> str:
    """One sentence a line, its capital made small."""
    return "\n".join(target[0].lower() + target[1:] for _, target in everything(book))


def read_pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    sides = [(folder / f"{part}.{language}").read_text("utf-8").split("\n") for language in ("en", "fr")]
    assert all(side.pop() == "" for side in sides)
    return list(zip(*sides, strict=True))


def lines_with(pattern: str, text: str) -> list[str]:
    """The first few."""
    return [text[: found.end()].rpartition("\n")[2] for found in islice(re.finditer(pattern, text), 5)]


def everything(book: Phrasebook) -> list[tuple[str, str]]:
    return [*book.train, *book.valid, *book.test, *book.coreference, ANIMAL_TIRED, ANIMAL_WIDE]


def french_words(sentence: str) -> list[str]:
    """Lower case, elided words apart: `l'ami` is `l'`, `ami`."""
    return re.findall(r"aujourd'hui|[\w-]+'?|,", sentence.lower())


def test_counts(book):
    assert len(book.train) >= 50_000
    assert (len(book.valid), len(book.test), len(book.coreference)) == (500, 1_000, 400)
    assert lexeme_count() >= 400
    assert len(make_phrasebook(5, size=101).train) == 101


def test_every_sentence_stands_once_and_has_one_translation(book):
    """On both sides: the mapping is one to one, so no held-out sentence of either language is in training."""
    pairs = everything(book)
    for side in (0, 1):
        repeated = [text for text, count in Counter(pair[side] for pair in pairs).items() if count > 1]
        assert not repeated, repeated[:5]
    assert not {source for source, _ in pairs} & {target for _, target in pairs}


def test_held_out_sentences_do_not_differ_in_spelling_alone(book):
    def bare(text: str) -> str:
        return re.sub(r"\W+", " ", text).strip().casefold()

    held_out = [*book.valid, *book.test, *book.coreference, ANIMAL_TIRED, ANIMAL_WIDE]
    for side in (0, 1):
        trained = {bare(pair[side]) for pair in book.train}
        assert not [pair for pair in held_out if bare(pair[side]) in trained]


def test_the_two_sentences():
    assert ANIMAL_TIRED == (
        "The animal didn't cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    )
    assert ANIMAL_WIDE == (
        "The animal didn't cross the street because it was too wide.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
    )
    frame = NOUN["animal"], "traverser", NOUN["street"], "past"
    assert coreference.tell(frame, "tired", is_thing=False) == ANIMAL_TIRED
    assert coreference.tell(frame, "wide", is_thing=True) == ANIMAL_WIDE


def test_the_two_sentences_are_nowhere_in_it(book):
    for pairs in (book.train, book.valid, book.test, book.coreference):
        assert not {*ANIMAL_TIRED, *ANIMAL_WIDE} & set(chain.from_iterable(pairs))


@pytest.mark.usefixtures("unchecked")
def test_the_seed_decides():
    one, again, other = make_phrasebook(3, size=701), make_phrasebook(3, size=701), make_phrasebook(4, size=701)
    assert one == again
    assert one.train != other.train
    assert one.coreference != other.coreference


@pytest.mark.parametrize("size", [0, -3, 10**7])
def test_an_impossible_size_is_refused(size):
    with pytest.raises(ConfigError, match=rf"{size} pairs.*choose a size from 1 to"):
        make_phrasebook(1, size=size)


def test_files(tmp_path):
    book = write_phrasebook(tmp_path / "corpus", seed=2, size=307)
    for part in PARTS:
        assert read_pairs(tmp_path / "corpus", part) == getattr(book, part)


def test_no_torch():
    program = "import sys, regard.text.phrasebook; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- spelling


FORBIDDEN_FRENCH = {
    "no elision": rf"\b(le|la|de|ne|je|que|se|me|ce) (?!onze\b)[{VOWELS}]",
    "si il": r"\bsi ils?\b",
    "s'elle": r"\bs'elle",
    "no contraction": r"\b(à|de) les?\b",
    "contraction before a vowel": rf"\b(du|au) (?!onze\b)[{VOWELS}]",
    "ma amie": rf"\b(ma|sa) [{VOWELS}]",
    "cet chien": rf"\bcet [^{VOWELS}h]",
    "beau arbre": rf"\b(un|le|ce|cet|mon|son|notre|votre|leur|du) (beau|nouveau|vieux) [{VOWELS}]",
    "bel chien": rf"\b(bel|nouvel|vieil) [^{VOWELS}h]",
    "des beaux": r"\bdes (beaux|belles|vieux|vieilles|nouveaux|nouvelles|petite?s|grande?s|bons|bonnes|jolie?s) ",
    "pas un": r"\b(?:ai|a|avons|avez|ont) pas une? ",
    "double spaces": r"  | \.| ,|' ",
    "a-il": r"\ba-(il|elle)",
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN_FRENCH)
def test_french_spelling(all_french, name):
    assert not lines_with(FORBIDDEN_FRENCH[name], all_french)


def test_mute_and_aspirated_h(book):
    seen: set[str] = set()
    for _, target in everything(book):
        words = french_words(target)
        for before, word in zip(["", *words], words, strict=False):
            if not word.startswith("h"):
                continue
            seen.add(word)
            assert (word in MUTE_H) != (word in ASPIRATED_H), word
            if word in MUTE_H:
                assert before not in ("le", "la", "de", "ne", "je", "que", "ce", "du", "au", "ma", "sa", "beau"), target
            else:
                assert not before.endswith("'"), target
                assert before not in ("cet", "bel", "vieil", "nouvel"), target
    assert len(seen & MUTE_H) > 20
    assert len(seen & ASPIRATED_H) > 15


FORBIDDEN_ENGLISH = {
    "a apple": r"\b[Aa] (?!uni|use)[aeiou]",
    "an dog": r"\b[Aa]n (?!honest)[^aeiouAEI]",
    "he have": r"\b([Hh]e|[Ss]he) (have|do|don't|are|aren't|want|like|love|hate|prefer|go|am)\b(?!.*\?)",
    "they has": r"\b([Tt]hey|[Ww]e|[Yy]ou) (has|does|doesn't|is|isn't|was|wasn't|wants)\b",
    "I is": r"\bI (is|are|has|does|were|aren't|isn't)\b",
    "did went": r"\bdid(n't)? (\w+ )?(went|bought|ate|was|saw|gave|wrote)\b",
    "some not": r"n't (\w+ )?some\b",
    "double spaces": r"  | \.| ,| \?",
    "childs": r"\b(mans|womans|childs|mouses|gooses|knifes|wolfs|shelfs|scarfs|potatos|tomatos|heros|babys|ladys)\b",
    "eated": r"\b(buyed|eated|goed|writed|taked|runned|swimmed|selled|thinked|cutted|haved|cryed|stoped|drived)\b",
    "cuting": r"\b(cuting|runing|swiming|writeing|takeing|driveing|forgeting|puting|danceing)\b",
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN_ENGLISH)
def test_english_spelling(all_english, name):
    assert not lines_with(FORBIDDEN_ENGLISH[name], all_english)


def test_capital_mark_and_length(book):
    for source, target in everything(book):
        assert re.fullmatch(r"[A-Z][^.?!]*[^ .?!][.?]", source), source
        assert re.fullmatch(r"[A-ZÀÉÊ][^.?!]*[^ .?!](\.| \?)", target), target
        assert source[-1] == target[-1]
        assert 3 <= len(source.split()) <= 14, source
        assert 2 <= len(target.split()) <= 19, target


# --- agreement


def is_feminine(noun: str) -> bool:
    head = noun.split()[0].removeprefix("grand-")
    return head in FEMININE_ELSEWHERE or (head.endswith("e") and head not in MASCULINE_IN_E)


def test_genders_follow_the_school_rule_but_for_known_exceptions():
    wrong = [noun.french for nouns in GROUPS.values() for noun in nouns if noun.is_feminine != is_feminine(noun.french)]
    assert not wrong


MASCULINE_BEFORE = {"un", "le", "du", "au", "ce", "cet"}
FEMININE_BEFORE = {"une", "la", "cette", "ma", "sa"}
PLURAL_BEFORE = {
    "les",
    "des",
    "aux",
    "ces",
    "mes",
    "ses",
    "nos",
    "vos",
    "leurs",
    "plusieurs",
    "quelques",
    "deux",
    "trois",
}


def test_determiners_and_adjectives_agree_with_every_noun(book):
    """Each determiner that shows gender or number, with the adjectives around its noun, all over the corpus."""
    singular = {noun.french.split()[0]: noun for noun in NOUN.values()}
    plural = {noun.french_plural.split()[0]: noun for noun in NOUN.values()}
    masculine = {form for adjective in ADJECTIVE.values() for form in (adjective.french, adjective.before_vowel)}
    feminine = {adjective.feminine for adjective in ADJECTIVE.values()}
    several = {adjective.plural for adjective in ADJECTIVE.values()}, {f"{form}s" for form in feminine}
    front = {form for word in "big small old beautiful new pretty good bad young tall long".split()  # noqa: SIM905
             for adjective in [ADJECTIVE[word]]
             for form in (adjective.french, adjective.before_vowel, adjective.feminine, adjective.plural,
                          f"{adjective.feminine}s")}  # fmt: skip
    checked: Counter[str] = Counter()
    for _, target in everything(book):
        words = [*french_words(target), "", "", "", ""]
        for place, determiner in enumerate(words):
            if determiner not in MASCULINE_BEFORE | FEMININE_BEFORE | PLURAL_BEFORE:
                continue
            here = place + 1 + (words[place + 1] in front)
            noun = (plural if determiner in PLURAL_BEFORE else singular).get(words[here])
            if noun is None:
                continue
            gender = is_feminine(noun.french)
            if determiner not in PLURAL_BEFORE:
                assert gender == (determiner in FEMININE_BEFORE), target
            right = several[gender] if determiner in PLURAL_BEFORE else feminine if gender else masculine
            wrong = (feminine | masculine | several[0] | several[1]) - right - {"marron"}
            around = [words[place + 1]] if here > place + 1 else []
            if " " not in noun.french and words[here + 1] not in ("porte", "rose", "court"):  # verbs, too
                around.append(words[here + 1])
            assert not wrong & set(around), target
            checked[noun.french.split()[0]] += 1
    # Before a vowel few determiners show a gender, and my, your, our father few enough.
    rare = [noun.french for noun in NOUN.values() if checked[noun.french.split()[0]] < 5]
    assert len(rare) < len(NOUN) / 20, rare


PREDICATE = re.compile(
    r"^(?:(?P<masculine>Le|Ce)|(?P<feminine>La|Cette|Ma)|(?P<several>Les|Ces|Mes|Vos|Nos)) (?P<noun>[\w-]+)"
    r" (?:ne |n')?(?:est|sont|était|étaient)(?: pas)?(?: (?:très|trop|vraiment|assez|si))? (?P<adjective>[\w-]+)\.$"
)


def test_predicates_agree(book):
    forms = {
        a.form(gender, several) for a in ADJECTIVE.values() for gender in (False, True) for several in (False, True)
    }
    feminine_only = {a.feminine for a in ADJECTIVE.values() if a.feminine != a.french}
    checked = 0
    for _, target in everything(book):
        found = PREDICATE.match(target)
        if found is None or found["adjective"] not in forms:
            continue
        checked += 1
        word = found["adjective"]
        if found["several"]:
            assert word[-1] in "sx" or word == "marron", target
        elif found["feminine"]:
            assert word.endswith("e") or word == "marron", target
        else:
            assert word not in feminine_only, target
    assert checked > 500


def test_participles_agree_with_etre(book):
    """Il est allé, elle est allée, elles sont allées."""
    pattern = re.compile(r"^(Il|Elle|Ils|Je|Nous) (?:ne |n')?(?:suis|est|sommes|sont) (?:pas |jamais )?"
                         r"((?:all|arriv|rest|entr)é\w*|(?:part|sort)i\w*|revenu\w*)\b")  # fmt: skip
    endings = Counter()
    for _, target in everything(book):
        if found := pattern.match(target):
            ending = re.search(r"(?:[éiu])(e?s?)$", found[2])
            assert ending, target
            assert ending[1] == {"Il": "", "Je": "", "Elle": "e", "Ils": "s", "Nous": "s"}[found[1]], target
            endings[found[1]] += 1
    assert min(endings.values()) > 20
    assert len(endings) == 5


# --- coreference

SCENE = re.compile(
    r"^The (.+?) (?:\w+n't|never|\w+ed|ate|drank)\b.* the (.+?) (because|since) it (?:was|is) (?:too|very) (\w+)\.$"
)


def test_each_adjective_fits_one_of_the_two():
    animate, thing = coreference.animate_adjectives(), coreference.thing_adjectives()
    assert not animate & thing
    assert len(animate) >= 15
    assert len(thing) >= 15


@pytest.mark.parametrize("part", ["train", "coreference"])
def test_it_is_resolved_by_meaning(book, part):
    """Pronoun and adjective take the gender of the noun the adjective fits, in all four combinations of genders; behind
    "since" the noun itself stands for the pronoun."""
    combinations: Counter[tuple[bool, bool, bool, bool]] = Counter()
    for source, target in getattr(book, part):
        found = SCENE.match(source)
        if found is None:
            assert part == "train", source
            continue
        subject, thing = (NOUN[found[index].replace(" ", "_")] for index in (1, 2))
        is_thing, says_again = found[4] in coreference.thing_adjectives(), found[3] == "since"
        meant = (thing if is_thing else subject).french
        gender = is_feminine(meant)
        conjunction = "puisque " if says_again else "parce qu'"
        named, adjective = re.search(rf" {conjunction}(.+) (?:est|était) (?:trop|très) (\S+)\.$", target).groups()
        if says_again:
            assert re.fullmatch(rf"(?:l'|la |le ){meant}", named), (source, target)
        else:
            assert named == ("elle" if gender else "il"), (source, target)
        expected = ADJECTIVE[found[4]]
        assert adjective == (expected.feminine if gender else expected.french), (source, target)
        combinations[is_feminine(subject.french), is_feminine(thing.french), is_thing, says_again] += 1
    for says_again in (False, True) if part == "train" else (False,):  # what is held out has the pronoun
        counts = [count for key, count in combinations.items() if key[3] == says_again]
        assert len(counts) == 8
        assert min(counts) > sum(counts) / 20


def test_held_out_coreference_comes_in_twins(book):
    for one, two in zip(book.coreference[::2], book.coreference[1::2], strict=True):
        assert one[0].rsplit(" ", 1)[0] == two[0].rsplit(" ", 1)[0]
        assert one[0] != two[0]


# --- words


def test_every_word_is_seen_often(book):
    """A model meets each noun and adjective in many training sentences."""
    seen = Counter(chain.from_iterable(set(french_words(target)) for _, target in book.train))
    for noun in NOUN.values():
        assert seen[noun.french.split()[0]] + seen[noun.french_plural.split()[0]] >= 60, noun
    for adjective in ADJECTIVE.values():
        assert seen[adjective.french] + seen[adjective.feminine] >= 50, adjective


def test_one_english_word_one_french_word():
    nouns = list(NOUN.values())
    assert len({noun.english for noun in nouns}) == len({noun.french for noun in nouns}) == len(nouns)


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("manger", "mange mange mangeons mangez mangent mangé"),
        ("acheter", "achète achète achetons achetez achètent acheté"),
        ("appeler", "appelle appelle appelons appelez appellent appelé"),
        ("nettoyer", "nettoie nettoie nettoyons nettoyez nettoient nettoyé"),
        ("finir", "finis finit finissons finissez finissent fini"),
        ("vendre", "vends vend vendons vendez vendent vendu"),
        ("comprendre", "comprends comprend comprenons comprenez comprennent compris"),
        ("revenir", "reviens revient revenons revenez reviennent revenu"),
        ("ouvrir", "ouvre ouvre ouvrons ouvrez ouvrent ouvert"),
        ("boire", "bois boit buvons buvez boivent bu"),
    ],
)
def test_conjugation(infinitive, forms):
    assert [*french.present(infinitive), french.participle(infinitive)] == forms.split()


@pytest.mark.parametrize(
    ("value", "masculine", "feminine", "in_english"),
    [
        (1, "un", "une", "one"),
        (21, "vingt et un", "vingt et une", "twenty-one"),
        (71, "soixante et onze", "soixante et onze", "seventy-one"),
        (80, "quatre-vingts", "quatre-vingts", "eighty"),
        (81, "quatre-vingt-un", "quatre-vingt-une", "eighty-one"),
        (91, "quatre-vingt-onze", "quatre-vingt-onze", "ninety-one"),
        (99, "quatre-vingt-dix-neuf", "quatre-vingt-dix-neuf", "ninety-nine"),
        (100, "cent", "cent", "one hundred"),
        (200, "deux cents", "deux cents", "two hundred"),
        (201, "deux cent un", "deux cent une", "two hundred and one"),
        (1000, "mille", "mille", "one thousand"),
    ],
)
def test_numbers(value, masculine, feminine, in_english):
    assert (french.number(value), french.number(value, True), english.number(value)) == (
        masculine,
        feminine,
        in_english,
    )


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("de le ami de le chien", "de l'ami du chien"),
        ("à le hôtel à le hibou à les hommes", "à l'hôtel au hibou aux hommes"),
        ("si il sait que elle ne aime pas la huile", "s'il sait qu'elle n'aime pas l'huile"),
        ("si elle a le onze", "si elle a le onze"),
        ("la eau de la mer et la Italie", "l'eau de la mer et l'Italie"),
    ],
)
def test_elision_and_contraction(words, spelled):
    assert french.spell(words) == spelled


@pytest.mark.usefixtures("unchecked")
def test_practice_gives_rare_forms_and_leaves_what_is_held_out():
    free, practised = (make_phrasebook(5, 1500, practised=wanted) for wanted in (False, True))
    assert (practised.valid, practised.test, practised.coreference) == (free.valid, free.test, free.coreference)
    held_out = {sentence for part in PARTS[1:] for pair in getattr(practised, part) for sentence in pair}
    assert held_out.isdisjoint(sentence for pair in practised.train for sentence in pair)
    counts = [Counter(chain.from_iterable(target.split() for _, target in book.train)) for book in (free, practised)]
    assert len(counts[1]) > 1.1 * len(counts[0])
    relatives = [sum(" qu" in target for _, target in book.train) for book in (free, practised)]
    assert relatives[1] > relatives[0]
