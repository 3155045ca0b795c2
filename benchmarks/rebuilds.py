"""Two memories of the same facts in two wordings: what `brainiac diff` pairs, and how long it takes.

`python benchmarks/rebuilds.py` prints lines without and with pairing, pairs right and wrong, and the time for 5,000
statements. The wordings were written by hand as two models would state one fact; each is one line of two texts.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from brainiac.brain import Brain
from brainiac.history.past import Comparison, compare, likenesses_of, present_pages
from brainiac.testing import make_brain

# the same fact twice
REWORDED = """
Anna lives in Ghent, in the Hoogpoort.|Anna's home is in the Hoogpoort in Ghent.
Anna's birthday is on 4 May.|Anna was born on 4 May.
Anna plays the viola in the city orchestra.|In the city orchestra Anna is a viola player.
Anna does not eat nuts, she is allergic.|Anna has an allergy to nuts.
Bob works at the harbour as an engineer.|Bob is an engineer at the harbour.
Bob's locker is number 12, by the lift.|The locker of Bob is no. 12 and stands beside the lift.
Bob rides to work on a red bicycle.|Bob cycles to work; his bike is red.
Bob's phone number ends in 4471.|The last digits of Bob's phone are 4471.
The dentist is Dr. Maes in Leuven.|Dr. Maes of Leuven is the user's dentist.
The user's rent is 640 euros a month.|Every month the user pays 640 euros in rent.
The landlord is called Verhoeven.|Verhoeven is the name of the landlord.
The boiler is serviced each October.|In October of each year the boiler gets its service.
The user prefers tea to coffee in the morning.|In the mornings the user would rather have tea than coffee.
The user is learning Portuguese on Tuesdays.|Tuesday is when the user studies Portuguese.
The user wants to run a half marathon in autumn.|A half marathon in autumn is a goal of the user.
The server of the project runs on Debian.|Debian is the system of the project's server.
Backups are made at 3 in the night.|The nightly backup starts at 3.
The database of the project is PostgreSQL.|For the project PostgreSQL is used as the database.
Releases are tagged by Karin.|Karin makes the tags of releases.
The password of the test system is kept in the safe.|In the safe lies the password for the test system.
The team meets on Mondays at nine.|Mondays at nine there is a team meeting.
The project's budget is 12,000 euros.|12,000 euros are the budget for the project.
Karin is on leave until August.|Until August Karin is away on leave.
The meeting room is called Aquarium.|Aquarium is the name of the room for meetings.
The cat is called Minka and is four years old.|Minka, the cat, is 4 years of age.
Minka gets her pills with the food in the evening.|In the evening the pills of Minka go into her food.
The vet is on the Korenmarkt.|The vet's practice is at the Korenmarkt.
The garden gate squeaks and needs oil.|Oil is needed for the squeaking garden gate.
The tomatoes were planted in the greenhouse.|In the greenhouse there are the tomatoes that were planted.
The neighbour with the dog is called Luc.|Luc is the neighbour who has a dog.
The user flies to Lisbon on 12 June.|On 12 June the user takes the plane to Lisbon.
The hotel in Lisbon is the Casa Azul.|In Lisbon the user stays at Casa Azul.
The user's passport runs out in 2029.|The passport of the user is valid until 2029.
The visa for Brazil took three weeks.|It took three weeks to get the visa for Brazil.
The user's sister Eva studies law in Vienna.|Eva, the sister of the user, is a law student in Vienna.
Eva wants to become a judge.|Becoming a judge is Eva's wish.
The user's father had his knee operated on.|The knee of the user's father was operated.
The family meets at Easter in Bruges.|At Easter the family comes together in Bruges.
The piano is tuned by Mr. Claes.|Mr. Claes is the tuner of the piano.
The insurance of the car costs 410 euros a year.|The car's insurance is 410 euros per year.
Der Schlüssel zum Keller hängt im Flur.|Im Flur hängt der Kellerschlüssel.
Der Vertrag mit dem Stromanbieter endet im März.|Im März läuft der Stromvertrag aus.
Le médecin de famille s'appelle Dubois.|Dubois est le médecin de famille.
Le train de Bruxelles part à 7 h 40.|Le départ du train pour Bruxelles est à 7 h 40.
"""
# one thing with another value
OTHER_VALUE = """
The rent of the garage is 80 euros.|The garage costs 95 euros in rent.
The user's shoe size is 42.|The size of the user's shoes is 43.
The gym closes at 22.|The closing time of the gym is 21.
The bus to the office is line 5.|To the office the user takes bus line 8.
The loan is paid off in 2031.|In 2033 the loan will have been paid off.
The meter stood at 4410 in January.|In January the meter showed 4140.
"""
ONLY = """
The user's favourite film is Stalker.
Karin's office is on the second floor.
The bread knife was a present from Eva.
The router is in the cupboard.
Luc's dog is afraid of thunder.
The user voted by post.
The choir sings Bach in December.
The bicycle shop gives a discount to students.
"""  # half on either side
N_PAGES = 6


def main() -> None:
    """Print what was measured."""
    same, other = (_rows(text) for text in (REWORDED, OTHER_VALUE))
    only = [row[0] for row in _rows(ONLY)]
    pairs = {(first, second) for first, second in same + other}
    half = len(only) // 2
    with tempfile.TemporaryDirectory() as folder:
        first = _brain(Path(folder, "a"), [row[0] for row in same + other] + only[:half], 1)
        second = _brain(Path(folder, "b"), [row[1] for row in same + other] + only[half:], 2)
        plain = compare(present_pages(first), present_pages(second))
        print(f"without pairing {_lines(plain)} lines")
        for name, likenesses in (("trigrams", likenesses_of(first)[:1]), ("and the embedder", likenesses_of(first))):
            result = compare(present_pages(first), present_pages(second), likenesses)
            found = [(each.before, each.text) for each in result.differences if each.what in ("reworded", "changed")]
            right = sum(pair in pairs for pair in found)
            print(f"{name}: {_lines(result)} lines; pairs {right} right of {len(pairs)}, {len(found) - right} wrong")
        rng = random.Random(3)
        names = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(4000)]
        facts = [" ".join(rng.choices(names, k=9)) for _ in range(5000)]
        reordered = [" ".join(rng.sample(fact.split(), 9)) for fact in facts]
        big = [_brain(Path(folder, name), texts, 3) for name, texts in (("c", facts), ("d", reordered))]
        start = time.perf_counter()
        result = compare(present_pages(big[0]), present_pages(big[1]), likenesses_of(big[0]))
        print(f"5,000 statements each: {time.perf_counter() - start:.1f} s, {_lines(result)} lines not paired")
        for brain in (first, second, *big):
            brain.close()


def _rows(text: str) -> list[list[str]]:
    return [line.split("|") for line in text.strip().splitlines()]


def _lines(result: Comparison) -> int:
    return sum(each.kind == "statement" and each.what != "reworded" for each in result.differences)


def _brain(root: Path, facts: list[str], seed: int) -> Brain:
    """Make a brain with facts on a few pages; which page has which is another matter for each model."""
    brain, rng = make_brain(root), random.Random(seed)
    pages: dict[int, list[str]] = {}
    for number, fact in enumerate(facts):
        page = number * N_PAGES // len(facts) if rng.random() < 0.8 else rng.randrange(N_PAGES)
        pages.setdefault(page, []).append(fact)
    for page, lines in pages.items():
        body = "".join(f"- {line}\n" for line in lines)
        path = brain.tree.long_term / "concrete" / f"page-{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nuuid: {root.name}-{page}\n---\n# Page {page}\n\n{body}", "utf-8")
    return brain


if __name__ == "__main__":
    main()
