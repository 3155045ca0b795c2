"""The gateway against a real server on loopback, through the real litellm."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from brainiac.brain import Brain
from brainiac.errors import ModelError, WindowError
from brainiac.llm.salvage import read_result
from brainiac.llm.schemas import (
    Answer,
    ConsolidateRequest,
    Consolidation,
    Engine,
    Existing,
    Operation,
    Page,
    Queries,
    Relevance,
    Said,
    SummarizeRequest,
    SynthesizeRequest,
)
from tests.support.models import (
    MODEL,
    NOW,
    answer_request,
    event_of,
    model_brain,
    prompt_of,
    queries_request,
    run_answer,
    short_term,
    write_machine,
    write_settings,
)
from tests.support.openai_server import (
    Behaviour,
    Captured,
    ChatServer,
    babble,
    by_request,
    cut,
    hang,
    raw,
    refuse,
    say,
    say_json,
    stall,
    status,
)

MODELED = MODEL.removeprefix("openai/")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def brain(tmp_path: Path, server: ChatServer) -> Iterator[Brain]:
    brain = model_brain(tmp_path, server)
    yield brain
    brain.close()


def failure(brain: Brain, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        brain.models.run(answer_request(**fields))
    return caught.value


def test_answer_is_streamed_and_told_with_model_tokens_and_cost(brain: Brain, server: ChatServer) -> None:
    """An answer comes piece by piece, and says who gave it and what it took."""
    server.script(say("You live in Portland.", tokens=(812, 6)))
    pieces: list[str] = []
    answer = brain.models.run(answer_request(on_text=pieces.append))
    assert isinstance(answer, Answer)
    assert ("You live in Portland.", MODEL, 818, 0.0) == (answer.text, answer.model, answer.tokens, answer.cost_usd)
    assert len(pieces) > 1
    assert "You live in Portland." == "".join(pieces)
    assert MODELED == server.bodies[0]["model"]


def test_typed_result_comes_with_its_schema(brain: Brain, server: ChatServer) -> None:
    """A purpose with a typed result sends the schema and gets validated values."""
    server.script(say_json({"queries": ["Portland home"]}))
    assert Queries(queries=["Portland home"]) == brain.models.run(queries_request())
    assert "json_schema" == server.bodies[0]["response_format"]["type"]


def test_answer_that_fails_the_schema_is_asked_again_with_the_errors(brain: Brain, server: ChatServer) -> None:
    """The second request shows the model its own answer and what was wrong with it."""
    server.script(say_json({"queries": 3}), say_json({"queries": ["Portland"]}))
    assert Queries(queries=["Portland"]) == brain.models.run(queries_request())
    asked_again = server.requests[1].text
    assert '{"queries": 3}' in asked_again
    assert "`queries`" in asked_again


@pytest.mark.parametrize("text", ["{not json", "", "no braces at all", '{"queries": 3}'])
def test_two_invalid_answers_fail_and_nothing_stands_in(brain: Brain, server: ChatServer, text: str) -> None:
    """A second invalid answer is an error that waiting does not cure for a foreground purpose."""
    server.script(say(text), say(text))
    with pytest.raises(ModelError, match="no valid answer") as caught:
        brain.models.run(queries_request())
    assert (False, 2) == (caught.value.retryable, len(server.requests))


def test_a_number_beyond_its_bounds_is_taken_as_the_bound() -> None:
    """A small model's 0.9 of 0.3 means "much", and no grammar keeps it from saying so; a word is as left out."""
    said = '{"action": "new", "importance": 8, "relevance": {"type": 0.9, "topic": -1, "semantic": 0.2}}'
    operation = Operation.model_validate_json(said)
    assert (1.0, Relevance(type=0.3, topic=0.0, semantic=0.2)) == (operation.importance, operation.relevance)
    assert Relevance(type=0.2) == Relevance.model_validate_json('{"topic": "much", "type": 0.2}')


def test_json_in_a_fence_is_read(brain: Brain, server: ChatServer) -> None:
    """Prose and a code fence around the JSON do no harm."""
    server.script(say('Here you are:\n```json\n{"queries": ["a"]}\n```\nAnything else?'))
    assert Queries(queries=["a"]) == brain.models.run(queries_request())


def test_response_format_is_left_out_where_a_server_refuses_it(brain: Brain, server: ChatServer) -> None:
    """A server without structured output is asked without; it is not offered again."""
    server.script(status(400, "response_format is not supported"), say_json({"queries": []}), say_json({"queries": []}))
    brain.models.run(queries_request())
    brain.models.run(queries_request())
    assert [True, False, False] == ["response_format" in body for body in server.bodies]


@pytest.mark.parametrize(
    ("code", "message", "is_retryable", "advice"),
    [
        (400, "bad thing", False, "another model"),
        (401, "Incorrect API key provided: sk-abcdef1234567890", False, "api_key_variables"),
        (403, "not for you", False, "account"),
        (404, "model does not exist", False, "llm.model"),
        (422, "cannot process", False, "another model"),
        (500, "oops", True, ""),
        (502, "gateway", True, ""),
        (503, "overloaded", True, ""),
        (429, "insufficient_quota: check your plan", False, "credit"),
    ],
)
def test_status_says_whether_waiting_helps(
    brain: Brain, server: ChatServer, code: int, message: str, is_retryable: bool, advice: str
) -> None:
    """Each HTTP status becomes an error of ours with `retryable` and advice; retries are the bus's."""
    server.default = status(code, message)
    error = failure(brain)
    assert "Error" not in error.problem
    tries = 2 if code == 422 else 1  # litellm drops the parameter that it thinks was not understood, once
    assert (is_retryable, tries) == (error.retryable, len(server.requests))
    assert advice in error.advice
    assert "sk-abcdef" not in str(error)


def test_a_key_that_is_refused_is_named(brain: Brain, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable that holds it, which is what a person can mend."""
    write_machine(brain, {"api_bases": {"openai": server.url}, "api_key_variables": {"openai": "MY_KEY"}})
    monkeypatch.setenv("MY_KEY", "sk-wrong")
    server.default = status(401, "Incorrect API key provided")
    assert "Check MY_KEY in the environment" in failure(brain).advice


def test_retry_after_is_kept(brain: Brain, server: ChatServer) -> None:
    """A 429 with Retry-After tells the seconds."""
    server.script(status(429, "slow down", {"Retry-After": "7"}))
    error = failure(brain)
    assert (True, 7.0) == (error.retryable, error.retry_after_seconds)


def test_refused_connection_is_told_apart_from_a_missing_key(brain: Brain, server: ChatServer) -> None:
    """Nothing listening is worth waiting for and names the address."""

    write_machine(brain, {"api_bases": {"openai": "http://127.0.0.1:9/v1"}})
    error = failure(brain)
    assert error.retryable
    assert "Nothing answers at http://127.0.0.1:9/v1" in error.problem


@pytest.mark.slow
def test_silent_server_times_out(tmp_path: Path, server: ChatServer) -> None:
    """A server that says nothing, or stalls midway, is given up after the timeout."""
    brain = model_brain(tmp_path, server, timeout_seconds=0.5)
    server.script(hang(5), stall("You live", 5))
    assert [True, True] == [failure(brain).retryable, failure(brain).retryable]


@pytest.mark.parametrize(
    ("behaviour", "is_retryable", "told"),
    [
        (cut("You live in Port"), True, "broke off"),
        (babble("again "), False, "repeated itself"),
        (refuse("I cannot help with that."), False, "I cannot help with that."),
        (say("", finish="content_filter"), False, "refused"),
        # an account that is used up: it comes as 429 like "slow down", and is told by the provider's code
        (status(429, "You exceeded your current quota.", type="insufficient_quota"), False, "credit"),
        *((raw(body), True, "") for body in ("data: {no\n\n", "<html>Hi</html>", "data: []\n\n", "data: 17\n\n")),
    ],
)
def test_what_is_no_answer_is_an_error_of_ours(
    brain: Brain, server: ChatServer, behaviour: Behaviour, is_retryable: bool, told: str
) -> None:
    """Not half an answer and no repetition: a connection that closes midway, a refusal, no stream of the protocol."""
    server.default = behaviour
    error = failure(brain)
    assert (is_retryable, True) == (error.retryable, told in f"{error.problem} {error.advice}")


def test_empty_answer_is_asked_again_once(brain: Brain, server: ChatServer) -> None:
    """Nothing said: once more, then an error."""
    server.script(say(""), say("Portland."))
    assert "Portland." == run_answer(brain).text
    server.script(say("  "), say("\n"))
    assert "empty" in failure(brain).problem


def test_five_megabytes_are_cut_off(brain: Brain, server: ChatServer) -> None:
    """A flood is cut at the bound, kept, and said to be cut."""
    server.script(say("word " * 1_000_000))
    answer = brain.models.run(answer_request())
    assert isinstance(answer, Answer)
    assert 4096 * 16 < len(answer.text) < 400_000
    assert "cut off" in answer.text


@pytest.mark.slow
def test_trickle_ends_at_the_deadline(tmp_path: Path, server: ChatServer) -> None:
    """A word now and then does not keep a call alive for ever."""
    brain = model_brain(tmp_path, server, timeout_seconds=0.2)
    server.script(babble("x{} ", pause_seconds=0.05))
    error = failure(brain)
    assert error.retryable
    assert "did not finish" in error.problem


def test_call_is_abandoned_when_asked(brain: Brain, server: ChatServer) -> None:
    """Background work yields between pieces when the person returns."""
    server.script(babble(pause_seconds=0.01))
    error = failure(brain, abandon=lambda: True)
    assert error.retryable
    assert "given up" in error.problem


def test_answer_at_the_token_limit_says_so(brain: Brain, server: ChatServer) -> None:
    """An answer that ends for length is kept and marked."""
    server.script(say("You live in", finish="length"))
    assert "cut off at 4,096 tokens" in run_answer(brain).text


def test_links_in_the_answer_lead_from_the_response(brain: Brain, server: ChatServer) -> None:
    """A link copied from working memory is made relative to the response and counts as cited; others do not."""
    link = '[Portland](memory/long_term/concrete/portland.md "uuid:0199aaaa-0000-7000-8000-000000000001")'
    server.script(say(f"Portland ({link}), see [x](../../etc/passwd) and [y](memory/long_term/concrete/no.md)."))
    answer = brain.models.run(answer_request())
    assert isinstance(answer, Answer)
    assert [0] == answer.cited
    assert "(../memory/long_term/concrete/portland.md " in answer.text
    assert "[x](../../etc/passwd)" in answer.text


def test_a_link_that_a_model_made_up_is_no_link(brain: Brain, server: ChatServer) -> None:
    """Its title stays; a page that is there keeps its link, and so does an address."""
    real = '[Mara](memory/long_term/concrete/mara.md "uuid:0199aaaa-0000-7000-8000-000000000002")'
    invented = '[Kettle](memory/long_term/concrete/kettle.md "uuid:0190a1b2-0000-7000-8000-000000000004")'
    outside = '[passwd](../../../etc/passwd "uuid:0190a1b2-0000-7000-8000-000000000005")'
    server.script(say(f"{real}, {invented}, {outside}, [site](https://example.com/a.md)."))
    answer = brain.models.run(answer_request())
    assert isinstance(answer, Answer)
    assert f"{real}, Kettle, passwd, [site](https://example.com/a.md)." == answer.text


def test_private_prompt_may_go_to_a_model_on_this_machine(brain: Brain, server: ChatServer) -> None:
    """A server on loopback is no remote model."""
    assert MODEL == run_answer(brain, answer_request(is_private=True)).model
    assert 1 == len(server.requests)


def test_model_by_purpose_and_by_prompt(brain: Brain, server: ChatServer) -> None:
    """The prompt's own model comes first, then the purpose's, then the default; each setting counts at once.

    Seeds: R11, P3.
    """

    write_settings(brain.root, {"llm": {"model": "openai/a", "models": {"answer": "openai/b"}}})
    server.script(say_json({"queries": []}))
    brain.models.run(queries_request())
    brain.models.run(answer_request())
    brain.models.run(answer_request(prompt_of("Hi", "model: openai/c")))
    assert ["a", "b", "c"] == [body["model"] for body in server.bodies]


def test_engine_of_a_plugin_serves_by_its_name(brain: Brain) -> None:
    """A name registered by the hook `register_models` selects that engine."""
    from brainiac import hookimpl

    class Echo:
        name, is_remote = "echo", False

        def run(self, request: object) -> Answer:
            return Answer(text="echo")

    class Plugin:
        @hookimpl
        def register_models(self, register: Callable[[str, Callable[[Brain], Engine]], None]) -> None:
            register("echo", lambda brain: Echo())

    brain.plugins.register(Plugin(), "echoing")
    answer = run_answer(brain, answer_request(prompt_of("Hi", "model: echo")))
    assert ("echo", "echo") == (answer.text, answer.model)


def test_key_of_the_machine_goes_to_its_server_only(
    brain: Brain, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named key is sent; the environment's usual one is not sent to a server on loopback."""

    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one-0123456789")
    monkeypatch.setenv("LOCAL_KEY", "for-this-server")
    brain.models.run(answer_request())
    write_machine(brain, {"api_bases": {"openai": server.url}, "api_key_variables": {"openai": "LOCAL_KEY"}})
    brain.models.run(answer_request())
    sent = [request.headers.get("Authorization") for request in server.requests]
    assert ["Bearer none", "Bearer for-this-server"] == sent


def test_cache_marks_reach_anthropic_and_nobody_else(tmp_path: Path, server: ChatServer) -> None:
    """In the captured requests: two marks, the second after the event log, for Claude; none for others.

    Seeds: R7, C4.
    """
    claude = model_brain(tmp_path, server, model="anthropic/claude-sonnet-4-5")
    assert "All right." == run_answer(claude).text
    body = server.bodies[0]
    parts = [*body["system"], *(part for message in body["messages"] for part in message["content"])]
    marked = [part["text"] for part in parts if "cache_control" in part]
    assert 2 == len(marked)
    assert "Thing 1 happened." in marked[1]
    assert server.requests[0].text.startswith("## Core Identity")
    other = model_brain(tmp_path, server)
    other.models.run(answer_request())
    assert "cache_control" not in json.dumps(server.bodies[1])


def test_log_longer_than_the_window_is_consolidated_in_parts(tmp_path: Path, server: ChatServer) -> None:
    """No event is left unread because the log is long: halves are asked about one after the other."""
    brain = model_brain(tmp_path, server)
    write_settings(brain.root, {"llm": {"model": MODEL}, "context": {"budget_tokens": 3000}})
    server.default = by_request(
        lambda request: say_json(
            {
                "operations": [
                    {"action": "new", "text": f"User said {number}"}
                    for number in range(60)
                    if f"Thing {number} h" in request.text
                ]
            }
        )
    )
    said = [Said(f"e{number}", event_of(number)) for number in range(60)]
    result = brain.models.run(ConsolidateRequest(now=NOW, said=said, short_term=short_term(events=[])))
    assert isinstance(result, Consolidation)
    assert [f"User said {number}" for number in range(60)] == [each.text for each in result.operations]
    assert len(server.requests) > 1


def test_window_exceeded_at_the_provider_says_what_to_do(brain: Brain, server: ChatServer) -> None:
    """A server whose window is smaller than thought is told apart from other refusals."""
    server.script(status(400, "This model's maximum context length is 2048 tokens"))
    error = failure(brain)
    assert isinstance(error, WindowError)
    assert "context.budget_tokens" in error.advice


def test_background_result_that_fails_waits_and_nothing_stands_in(brain: Brain, server: ChatServer) -> None:
    """Reflection by a model that cannot is retryable: it is done later, never by something else instead."""
    server.default = say("no json")
    with pytest.raises(ModelError) as caught:
        brain.models.run(SummarizeRequest(now=NOW, remaining=[event_of(1)]))
    assert caught.value.retryable


# --- what is whole counts ------------------------------------------------------------------------------------------

FIRST = {
    "action": "new", "ids": [], "text": "User has a boat", "evidence": [{"exchange": "e1", "quote": "boat"}],
    "page": {"title": "Boat"}, "valid_until": "", "steps": [],
}  # fmt: skip
SECOND = {**FIRST, "text": "The boat is blue"}
ROWS = json.dumps([FIRST, SECOND])
TEXTS = ["User has a boat", "The boat is blue"]


def consolidated(brain: Brain) -> Consolidation:
    said = [Said(f"e{number}", event_of(number, "I have a boat.")) for number in (1, 2)]
    result = brain.models.run(ConsolidateRequest(now=NOW, said=said, short_term=short_term(0)))
    assert isinstance(result, Consolidation)
    return result


@pytest.mark.parametrize(
    "text",
    [
        f'<think>Perhaps {{"operations": []}}?</think>{{"operations": {ROWS}}}',
        f"See [e1]:\n```json\n{ROWS}\n```\nDone {{I hope}}.",
        f'{{"Consolidation": {{"operations": {ROWS}}}}}',
        "\n".join(map(json.dumps, (FIRST, SECOND))),
        json.dumps({"Operations": [{name.title(): value for name, value in FIRST.items()}, SECOND]}),
        f'{{"operations": [{{"action": "new", "text": "a draft"}}]}} No: {{"operations": {ROWS}}}',
        f'{{"operations": {ROWS}}}'.replace('"', "&quot;"),
        repr({"operations": [FIRST, SECOND]}),
        json.dumps({"operations": [FIRST, SECOND]}).replace("]}", "],}"),
        json.dumps({"operations": [[{"operation": FIRST}], SECOND]}),
        f'{{"operations": {ROWS[:-1]}, ]}}',
    ],
)
def test_operations_are_read_whatever_stands_around_them(brain: Brain, server: ChatServer, text: str) -> None:
    """Thoughts, prose, fences, wrappers, bare lists, lines, quotes, commas: one call, all operations, no other."""
    server.script(say(text))
    assert TEXTS == [operation.text for operation in consolidated(brain).operations]
    assert 1 == len(server.requests)


def test_a_page_with_headings_is_read_as_a_whole(brain: Brain, server: ChatServer) -> None:
    """Its sections are a part of it, and no rows that stand for all of the answer. F-MEM-10."""
    page = {"kind": "concrete", "title": "Boat", "sections": [{"heading": "Looks", "statements": ["s1"]}]}
    server.script(say(f"Here it is:\n{json.dumps(page, indent=1)}"))
    row = [Existing("s1", "The boat is blue.")]
    result = brain.models.run(
        SynthesizeRequest(now=NOW, kind="concrete", title="Boat", candidates=row, wants_headings=True)
    )
    assert isinstance(result, Page)
    assert ("Boat", ["Looks"]) == (result.title, [section.heading for section in result.sections])
    assert 1 == len(server.requests)


def test_each_value_is_taken_as_it_is_meant(brain: Brain, server: ChatServer) -> None:
    """`null` is as left out, a text a list of one, an unknown value of a list the default, a number a text. Seeds: I1,
    I2, R9."""
    odd = {
        **FIRST, "action": "NEW", "ids": None, "steps": "Row", "evidence": {"exchange": "e1", "quote": 7},
        "page": {"title": "Boat", "kind": "vessel", "aliases": "Bo"}, "category": "hobby", "subject_type": "Person",
        "importance": "high", "relevance": {"type": "much", "topic": 0.2}, "valid_until": None, "mood": "glad",
    }  # fmt: skip
    server.script(say_json({"operations": [odd, {**SECOND, "action": "merge"}]}))
    result = consolidated(brain)
    (read,) = result.operations
    assert ("new", [], ["Row"], "7") == (read.action, read.ids, read.steps, read.evidence[0].quote)
    assert ("concrete", ["Bo"], None, "person") == (read.page.kind, read.page.aliases, read.category, read.subject_type)
    assert (None, Relevance(topic=0.2), "") == (read.importance, read.relevance, read.valid_until)
    assert [("The boat is blue", True)] == [(row.text, "operation 2" in row.problem) for row in result.unread]


@pytest.mark.parametrize("broken", ['{"action": "new", "te: 3}', "{action: new, text: 'It's so'}"])
def test_a_broken_operation_takes_no_other_with_it(brain: Brain, server: ChatServer, broken: str) -> None:
    """What stands before and behind it counts, and it is told by itself."""
    server.script(say(f'{{"operations": [{json.dumps(FIRST)}, {broken}, {json.dumps(SECOND)}]}}'))
    result = consolidated(brain)
    assert TEXTS == [operation.text for operation in result.operations]
    assert [broken in row.text for row in result.unread] == [True]


@pytest.mark.parametrize("text", ["[" * 20_000, '{"a":' * 900 + ROWS + "}" * 900, '{"' + '\\"' * 20_000])
def test_what_is_nested_or_quoted_without_end_is_no_answer(text: str) -> None:
    """It is refused like any other, and soon: reading it takes no longer the longer it is."""
    started = time.process_time()
    with pytest.raises(ValidationError):
        read_result(text, Consolidation)
    assert time.process_time() - started < 4


def test_an_answer_that_never_ends_is_not_gone_on_with_for_ever(brain: Brain, server: ChatServer) -> None:
    """A model that is cut off each time with new operations is left at the most that one answer may have."""

    def endless(request: Captured) -> Behaviour:
        first = 150 * len(server.requests)
        rows = (json.dumps({"action": "new", "text": f"Row {number}."}) for number in range(first, first + 150))
        return say(f'{{"operations": [{", ".join(rows)}, {{"action"', finish="length")

    server.default = by_request(endless)
    assert 400 == len(consolidated(brain).operations)
    assert 3 == len(server.requests)


def test_what_was_cut_off_is_gone_on_with(brain: Brain, server: ChatServer) -> None:
    """The whole operations count, and only what follows them is asked for; what is said again counts once."""
    server.script(say(f'{{"operations": {ROWS[:-9]}', finish="length"), say(f'{{"operations": {ROWS}}}'))
    assert TEXTS == [operation.text for operation in consolidated(brain).operations]
    (_, going_on) = server.requests
    assert "only the operations after the last one that is whole" in going_on.text
