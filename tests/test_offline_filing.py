"""How the offline engine reflects, analyzes, places, summarizes and organizes."""

from __future__ import annotations

from typing import TypeVar

from brainiac.clock import parse_iso
from brainiac.events import content_hash
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.schemas import (
    AnalyzeRequest,
    Candidate,
    Candidates,
    Existing,
    IntegrateRequest,
    Operations,
    OrganizeRequest,
    Page,
    Proposals,
    Reflection,
    ReflectRequest,
    Request,
    Result,
    SummarizeRequest,
    Summary,
    SynthesizeRequest,
)
from brainiac.notes.prompt import Exchange, Prompt
from brainiac.notes.short_term import Item, ShortTermMemory, StmEvent

NOW = parse_iso("2026-03-16T10:00:00Z")
AT = "2026-03-16T09:00:00Z"
R = TypeVar("R", bound=Result)


def serve(request: Request, result: type[R]) -> R:
    served = OfflineEngine().run(request)
    assert isinstance(served, result)
    return served


def reflect(text: str, stm: ShortTermMemory | None = None) -> Reflection:
    asked = Prompt(path="inbox/p.md", text=text, sha256=content_hash(text.encode()), at=AT)
    exchange = Exchange("x1", asked, None, AT)
    return serve(ReflectRequest(now=NOW, exchange=exchange, short_term=stm or ShortTermMemory()), Reflection)


def analyze(*texts: str) -> list[Candidate]:
    events = [StmEvent(f"e{i}", f"2026-03-16T09:{i:02}:00Z", text) for i, text in enumerate(texts)]
    return serve(AnalyzeRequest(now=NOW, events=events, short_term=ShortTermMemory()), Candidates).candidates


def place(candidate: Candidate, **folders: str) -> Page:
    event = StmEvent("e0", AT, candidate.statement)
    request = SynthesizeRequest(now=NOW, candidate=candidate, events=[event], folders=folders)
    return serve(request, Page)


def test_reflection_files_each_sentence_by_its_kind() -> None:
    """Facts, decisions, tasks, goals and requests to forget go to lists of their own. Seeds: S11."""
    found = reflect(
        "I left Google last month. We decided to use Redis. todo: buy milk. "
        "I want to learn Welsh. Forget my old address."
    )
    assert (
        ["User left Google last month (February 2026)"],
        ["We decided to use Redis"],
        ["buy milk"],
        ["User wants to learn Welsh"],
        ["my old address"],
    ) == (found.facts, found.decisions, found.tasks, found.goals, found.forget)


def test_reflection_ticks_what_is_done_by_the_items_own_text() -> None:
    """Only open items that a sentence reports done are named, as they stand in the list. Seeds: S11."""
    stm = ShortTermMemory(tasks=(Item("cancel the gym membership at FitHub"), Item("book flights to Madrid")))
    assert ["cancel the gym membership at FitHub"] == reflect("Canceled the FitHub membership, finally.", stm).done
    assert [] == reflect("Booked a table for two.", stm).done


def test_questions_and_small_talk_add_nothing() -> None:
    """Thoughts say honestly that there was nothing to keep."""
    assert ("Small talk; nothing to keep.", []) == (reflect("thanks!").thoughts, reflect("thanks!").facts)
    assert [] == reflect("Where do I live?").facts


def test_candidates_are_statements_with_the_events_behind() -> None:
    """Small talk and questions give none; a statement told twice is one candidate of two events. Seeds: S12."""
    found = analyze("I live in Oslo.", "thanks!", "Where do I live?", "I live in Oslo")
    assert [("User lives in Oslo", ["e0", "e3"])] == [(one.statement, one.events) for one in found]


def test_numbers_and_negations_keep_statements_apart() -> None:
    """What differs in a number or a "not" is not the same statement."""
    assert 2 == len(analyze("The beta has 34 users.", "The beta has 112 users."))
    assert 2 == len(analyze("I like coffee.", "I don't like coffee."))


def test_kinds_of_candidates() -> None:
    """Lasting facts are concrete, what happened on a day is an event, a recipe is a skill. Seeds: S6."""
    found = analyze(
        "My dog is a beagle.", "We shipped the beta yesterday.", "To restart staging: ssh in, run the script."
    )
    assert ["concrete", "event", "skill"] == [one.kind for one in found]
    assert ["ssh in", "run the script"] == found[2].steps
    assert "We shipped the beta yesterday (15 March 2026)" == found[1].statement


def test_what_is_not_so_and_what_we_plan_is_worth_a_candidate() -> None:
    """A short denial says as much as a long statement; a denied mood says nothing for later."""
    told = ["I can't swim.", "I'm not married.", "I have no siblings.", "We plan a trip to Japan in April 2027."]
    moods = ["I'm not happy.", "I don't know.", "I can't wait."]
    assert [
        "User can't swim",
        "User is not married",
        "User has no siblings",
        "We plan a trip to Japan in April 2027",
    ] == [one.statement for one in analyze(*told, *moods)]


def test_numbered_steps_of_one_line() -> None:
    """Steps that are numbered within a line are the same steps as on lines of their own. Seeds: S6."""
    (found,) = analyze("How to reset the boiler: 1. switch it off 2. wait 5 minutes, 3. press the red button")
    assert ["switch it off", "wait 5 minutes", "press the red button"] == found.steps


def test_subjects_are_people_and_projects() -> None:
    """Who or what is named becomes the subject, a project before a person. Seeds: R9."""
    found = analyze(
        "My sister Elena lives in Madrid.", "We decided to use Redis for the Harbor project.", "I like tea."
    )
    assert [("Elena", "person"), ("Harbor", "project"), ("User", "person")] == [
        (one.subject, one.subject_type) for one in found
    ]


def test_a_finished_task_is_no_candidate() -> None:
    """Of a task that was done within the log only the report remains."""
    found = analyze("todo: call the landlord about the tap", "Called the landlord, the tap is fixed, done.")
    assert [False] == [one.statement.startswith("User needs") for one in found]


def test_a_request_to_forget_is_marked() -> None:
    """Integration gets it as an explicit request. Seeds: I6."""
    assert [("Forget buying milk", True)] == [
        (one.statement, one.is_forget) for one in analyze("Please delete my reminder about buying milk")
    ]


def test_a_fragment_stays_with_its_sentence() -> None:
    """A sentence that begins with a pronoun gets the name of the one before it, and can stand alone."""
    assert ["Biscuit ate the butter", "Biscuit is fine now"] == [
        one.statement for one in analyze("Biscuit ate the butter. She's fine now.")
    ]


def test_places_by_subject() -> None:
    """People and projects have pages of their own; the rest goes by topic; skills by what they are for. Seeds: S6."""
    elena = Candidate(statement="Elena lives in Madrid", subject="Elena", subject_type="person")
    harbor = Candidate(statement="We use Redis", subject="Harbor", subject_type="project")
    job = Candidate(statement="User works at Northwind", subject="User", subject_type="person")
    skill = Candidate(statement="To restart the staging server: ssh in", kind="skill", steps=["ssh in"])
    pages = [place(one) for one in (elena, harbor, job, skill)]
    assert [
        ("concrete", "people", "Elena"),
        ("concrete", "projects/harbor", "Harbor"),
        ("concrete", "work", "Work"),
        ("skill", "technology", "How to restart the staging server"),
    ] == [(page.kind, page.folder, page.title) for page in pages]


def test_existing_folders_come_first() -> None:
    """A folder that bears the subject's name is used where it is."""
    harbor = Candidate(statement="We use Redis", subject="Harbor", subject_type="project")
    assert "clients/harbor" == place(harbor, **{"concrete/clients/harbor": "What we do for Harbor."}).folder


def test_a_summary_holds_only_what_was_said() -> None:
    """At most three paragraphs of the person's own statements; nothing of nothing. Seeds: S12."""
    events = [
        StmEvent("a", "2026-03-02T09:00:00Z", "I live in Oslo. We decided to use Redis."),
        StmEvent("b", "2026-03-03T09:00:00Z", "todo: buy milk"),
    ]
    assert (
        "Between 2 March 2026 and 3 March 2026: User lives in Oslo.\n\nDecided: We decided to use Redis.\n\n"
        "Still to do: User needs to buy milk."
    ) == serve(SummarizeRequest(now=NOW, remaining=events), Summary).text
    assert "" == serve(SummarizeRequest(now=NOW, remaining=[]), Summary).text


def test_proposals_by_rule() -> None:
    """Read together: linked; read often and deep: lifted; unused: rested; overgrown: split. Seeds: S13."""
    deep = "memory/long_term/concrete/a/b/page.md"
    days = [f"memory/long_term/events/2025/01/{day}.md" for day in ("01", "02")]
    old = "memory/long_term/concrete/old.md"
    patterns = {
        "co_accessed": [{"paths": ["x.md", "y.md"], "cited": 10}],
        "frequent": [{"path": deep, "cited": 30}],
        "unused": [{"path": path, "last_used": "2025-02-01"} for path in (*days, old)],
        "overgrown": [{"folder": "memory/long_term/concrete", "entries": 260}],
    }
    found = serve(OrganizeRequest(now=NOW, patterns=patterns, structure={}), Proposals).proposals
    assert [
        ("link", ["x.md", "y.md"], ""),
        ("move", [deep], "memory/long_term/concrete/a"),
        ("archive", [old], ""),
        ("compress", days, ""),
        ("split", ["memory/long_term/concrete"], ""),
    ] == [(one.action, list(one.paths), one.target) for one in found]


def test_nothing_to_organize() -> None:
    """No statistics, no proposals."""
    assert [] == serve(OrganizeRequest(now=NOW, patterns={}, structure={}), Proposals).proposals


def test_integration_is_served() -> None:
    """Without existing memories a candidate is new. Seeds: I7."""
    request = IntegrateRequest(now=NOW, message="I live in Oslo", candidate=Candidate(statement="User lives in Oslo"))
    assert ["NEW"] == [one.operation for one in serve(request, Operations).operations]
    held = Existing("p#a", "User lives in Dallas and works at Google")
    moved = IntegrateRequest(now=NOW, message="", candidate=Candidate(statement="User moved to Oslo"), existing=[held])
    assert ["UPDATE"] == [one.operation for one in serve(moved, Operations).operations]
