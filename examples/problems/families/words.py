"""String processing and sets."""

from problem import PLACES, Problem, step

LINES = [
    "the quick brown fox jumps over the lazy dog",
    "she sells sea shells by the sea shore",
    "how much wood would a woodchuck chuck if a woodchuck could chuck wood",
    "a stitch in time saves nine but nine stitches save no time",
    "peter piper picked a peck of pickled peppers",
    "the rain in spain stays mainly in the plain",
    "all that glitters is not gold and not all gold glitters",
]
PEOPLE = ["Ana", "Ben", "Chloé", "Dan", "Eva", "Finn", "Gül", "Hana", "Ivo", "Jens", "Kim", "Lea",
          "Max", "Nils", "Ola", "Pia"]


def distinct_words(rng, number):
    words = " ".join(rng.sample(LINES, 4)).split()
    rng.shuffle(words)
    text, length = " ".join(words), rng.randint(3, 5)
    return Problem(
        f"How many different words with at least {length} letters are in this text? \"{text}\"",
        len({w for w in words if len(w) >= length}),
        [
            step("A set of the long words removes repetitions.", """
                text = "$text"
                words = text.split()
                chosen = {word for word in words if len(word) >= $length}
                print(len(words), "words,", sorted(chosen))
                """, text=text, length=length),
            step("The list shows each word once.", "final_answer(len(chosen))"),
        ],
        slip=step("I count the long words.",
                  "final_answer(sum(len(word) >= $length for word in words))", length=length),
    )


def caesar(rng, number):
    line, shift = rng.choice(LINES), rng.randint(3, 22)
    secret = "".join(chr((ord(c) - 97 + shift) % 26 + 97) if c.isalpha() else c for c in line)
    letter = rng.choice(sorted(set(line) - {" "}))
    values = dict(secret=secret, shift=shift, letter=repr(letter))
    return Problem(
        f"Each letter of a text was moved {shift} places forward in the alphabet (z is followed "
        f"by a). The result is \"{secret}\". How often does the letter {letter} occur in the "
        "original text?",
        line.count(letter),
        [
            step("I move every letter back and read the text.", """
                secret = "$secret"
                plain = ""
                for symbol in secret:
                    if symbol.isalpha():
                        plain += chr((ord(symbol) - ord("a") - $shift) % 26 + ord("a"))
                    else:
                        plain += symbol
                print(plain)
                """, **values),
            step("That is English, so the shift is right.", "final_answer(plain.count($letter))",
                 **values),
        ],
        difficulty="medium",
        mistakes={"type_error": step("I shift each letter back.", """
                secret = "$secret"
                plain = "".join(chr((symbol - $shift) % 26) for symbol in secret)
                print(plain)
                """, **values)},
    )


def longest_palindrome(rng, number):
    text = "".join(rng.choice("abc") for _ in range(rng.randint(24, 40)))
    spans = [text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)]
    best = max(len(s) for s in spans if s == s[::-1])
    return Problem(
        f"How long is the longest substring of \"{text}\" that reads the same forwards and "
        "backwards?",
        best,
        [
            step("The text is short, so trying every substring is fine.", """
                text = "$text"
                best = ""
                for begin in range(len(text)):
                    for end in range(begin + 1, len(text) + 1):
                        part = text[begin:end]
                        if part == part[::-1] and len(part) > len(best):
                            best = part
                print(best)
                """, text=text),
            step("It is a palindrome indeed.", """
                assert best == best[::-1] and best in text
                final_answer(len(best))
                """),
        ],
        difficulty="medium",
    )


def survey(rng, number):
    groups = {name: sorted(rng.sample(PEOPLE, rng.randint(6, 10)))
              for name in ("chess", "tennis", "choir")}
    exactly = rng.randint(1, 2)
    count = sum(sum(p in g for g in groups.values()) == exactly for p in PEOPLE)
    listing = "; ".join(f"{name}: {', '.join(g)}" for name, g in groups.items())
    return Problem(
        f"Members of three clubs are - {listing}. How many people are in exactly {exactly} of the "
        "clubs?",
        count,
        [
            step("I count for each person the clubs that hold them.", """
                groups = $groups
                people = set().union(*groups.values())
                memberships = {}
                for person in people:
                    memberships[person] = sum(person in group for group in groups.values())
                print(sorted(memberships.items()))
                """, groups=groups),
            step("Now only those with exactly $exactly.",
                 "final_answer(sum(1 for clubs in memberships.values() if clubs == $exactly))",
                 exactly=exactly),
        ],
        slip=step("I count the people who are in $exactly or more.",
                  "final_answer(sum(1 for clubs in memberships.values() if clubs >= $exactly))",
                  exactly=exactly),
    )


def divisible(rng, number):
    one, two, three = rng.sample([3, 4, 5, 7, 9, 11], 3)
    top = rng.randint(40, 300) * one
    hits = {n for n in range(1, top + 1) if (n % one == 0 or n % two == 0) and n % three}
    values = dict(one=one, two=two, three=three, top=top)
    return Problem(
        f"How many whole numbers from 1 to {top}, both included, are divisible by {one} or by "
        f"{two}, but not by {three}?",
        len(hits),
        [
            step("Three sets of multiples, then union and difference.", """
                def multiples(step):
                    return set(range(step, $top + 1, step))

                hits = (multiples($one) | multiples($two)) - multiples($three)
                print(len(hits), "numbers, the largest is", max(hits))
                """, **values),
            step("A direct count must agree.", """
                direct = sum(1 for n in range(1, $top + 1)
                             if (n % $one == 0 or n % $two == 0) and n % $three != 0)
                assert direct == len(hits)
                final_answer(direct)
                """, **values),
        ],
        mistakes={"assertion": step("Sets of multiples, checked by the size of the first.", """
                first = set(range($one, $top, $one))
                second = set(range($two, $top, $two))
                assert len(first) == $top // $one, f"{len(first)} multiples of $one"
                print(len((first | second) - set(range($three, $top, $three))))
                """, **values)},
    )


def two_lists(rng, number):
    domains = ["mail.example", "post.example", "box.example"]
    people = [f"{p.lower()}@{rng.choice(domains)}" for p in PEOPLE if p.isascii()]
    old = rng.sample(people, rng.randint(7, 11))
    new = rng.sample(people, rng.randint(7, 11))
    shown = [e.title() if rng.random() < 0.3 else e for e in new]
    return Problem(
        f"old.txt and new.txt hold the e-mail addresses of the {PLACES[number]} club, one per "
        "line; upper and lower case do not matter. How many addresses are in only one of the two "
        "files?",
        len(set(old) ^ set(new)),
        [
            step("I read both files into sets, lower-cased and stripped.", """
                def addresses(name):
                    with open(name) as lines:
                        return {line.strip().lower() for line in lines if line.strip()}

                old, new = addresses("old.txt"), addresses("new.txt")
                print(len(old), len(new), "gone:", sorted(old - new), "added:", sorted(new - old))
                """),
            step("In only one of them: the symmetric difference.", "final_answer(len(old ^ new))"),
        ],
        files={"old.txt": "\n".join(old) + "\n", "new.txt": "\n".join(shown) + "\n\n"},
    )


STRINGS = [distinct_words, caesar, longest_palindrome]
SETS = [survey, divisible, two_lists]
