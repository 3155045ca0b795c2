"""Endpoints, the table of failures, and what the gateway must not load or send."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.errors import ModelError
from brainiac.llm.catalog import Endpoint, count, endpoint_of, facts, is_loopback, provider_of
from brainiac.llm.completion import FAILURES, litellm, model_error, retry_after_seconds, scrub
from brainiac.settings import MachineSettings
from tests.support.models import answer_request, make_brain, model_brain, write_machine
from tests.support.openai_server import ChatServer

NOBODY = MachineSettings()


# what only litellm's own proxy raises, which stands between nobody and a provider here
OF_THE_PROXY = {
    "BlockedPiiEntityError",
    "BudgetExceededError",
    "GuardrailInterventionNormalStringError",
    "GuardrailRaisedException",
    "ModifyResponseException",
    "SensitiveDataRouteException",
}


@pytest.mark.slow
def test_every_exception_of_the_installed_litellm_has_a_meaning() -> None:
    """A new exception class in litellm that inherits from none in the table fails here until the table has it."""
    library = litellm()
    classes = {
        cls
        for module in (library.exceptions, library)
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, Exception) and cls.__module__.startswith("litellm.exceptions")
    }
    unknown = {cls.__name__ for cls in classes if not any(base.__name__ in FAILURES for base in cls.__mro__)}
    assert set() == unknown - OF_THE_PROXY
    assert len(classes) > 20


def test_rows_of_the_table_say_what_to_do() -> None:
    """Every row has a sentence, and advice where waiting does not help."""
    silent = [name for name, (what, advice, is_passing) in FAILURES.items() if not what or not (advice or is_passing)]
    assert [] == silent


@pytest.mark.slow
def test_litellm_neither_calls_home_nor_reads_env_files(tmp_path: Path) -> None:
    """A `.env` in the current folder does not set our environment, and importing the gateway loads nothing heavy."""
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-a-strangers-brain\n")
    code = (
        "import sys, os; import brainiac.llm.gateway;"
        "heavy = {'litellm', 'openai', 'jinja2', 'tiktoken', 'httpx', 'Stemmer'} & set(sys.modules);"
        "from brainiac.llm.completion import litellm; litellm();"
        "print(sorted(heavy), os.environ.get('OPENAI_API_KEY'), os.environ['LITELLM_LOCAL_MODEL_COST_MAP'])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    env.pop("OPENAI_API_KEY", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert "[] None True" == done.stdout.strip()


@pytest.mark.parametrize(
    "name",
    [
        "huggingface/https://evil.example/model",
        "openai/gpt 4",
        "openai/../x",
        "custom/http://x",
        "openai/gpt\n",
        "/openai",
        "",
        "a/b?api_base=x",
    ],
)
def test_model_name_that_holds_an_address_is_refused(name: str) -> None:
    """A name from a synced file cannot bring an endpoint along (design 5)."""
    if name == "openai/../x":
        assert "openai" == endpoint_of(name, NOBODY, {}).provider  # dots are no address: the provider refuses the name
        return
    with pytest.raises(ModelError, match="not the name of a model"):
        endpoint_of(name, NOBODY, {})


def test_endpoint_comes_from_the_machine_then_the_environment() -> None:
    """This machine's config comes first, for the model, then for its provider; then the environment's variables."""
    machine = MachineSettings(api_bases={"openai/big": "http://big/v1", "openai": "http://all/v1"})
    environ = {"OPENAI_BASE_URL": "http://env/v1"}
    found = [endpoint_of(name, machine, environ).api_base for name in ("openai/big", "openai/small")]
    assert ["http://big/v1", "http://all/v1"] == found
    assert "http://env/v1" == endpoint_of("openai/x", NOBODY, environ).api_base
    assert None is endpoint_of("openai/x", NOBODY, {}).api_base


@pytest.mark.parametrize(
    ("model", "environ", "is_local"),
    [
        ("ollama/llama3.2", {}, True),
        ("ollama_chat/qwen", {}, True),
        ("lm_studio/x", {}, True),
        ("ollama/gpt-oss:120b-cloud", {}, False),
        ("ollama/glm-4.6:cloud", {}, False),
        ("ollama_chat/minimax-m2:cloud", {}, False),
        ("ollama/x:120b-CLOUD", {}, False),
        ("ollama/x:Cloud", {}, False),
        ("ollama/x:120b_cloud", {}, False),
        ("ollama/x:cloud-120b", {}, False),
        ("ollama/library/x:120b.cLoUd", {}, False),
        ("ollama/x-cloud:latest", {}, False),
        ("OLLAMA/x:120b-cloud", {}, False),
        ("openai/x:120b-CLOUD", {"OPENAI_API_BASE": "http://127.0.0.1:11434/v1"}, False),
        ("ollama/nextcloudy:7b", {}, True),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://192.0.2.7:11434"}, False),
        ("openai/gpt-5", {}, False),
        ("openai/x", {"OPENAI_API_BASE": "http://localhost:8080/v1"}, True),
        ("openai/x", {"OPENAI_API_BASE": "http://localhost.evil.example/v1"}, False),
        ("anthropic/claude-sonnet-4-5", {}, False),
    ],
)
def test_what_leaves_this_machine_is_known(model: str, environ: dict[str, str], is_local: bool) -> None:
    """Only a loopback address is local, and not where a local server hands the model on."""
    assert is_local == endpoint_of(model, NOBODY, environ).is_local


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:80", True),
        ("localhost:11434", True),
        ("http://127.0.0.1.evil.example", False),
        ("http://user@evil.example/127.0.0.1", False),
        ("http://0.0.0.0.nip.example", False),
        ("HTTP://LOCALHOST:1/v1", True),
        ("http://127.0.0.1@evil.example/v1", False),
        ("http://127.0.0.1:80#@evil.example", True),
        ("http://[::1", False),
        ("http://nobody-has-this-name.localhost.invalid", False),
        ("http://192.0.2.1", False),
        ("", False),
    ],
)
def test_loopback_is_recognized_by_where_it_leads(address: str, expected: bool) -> None:
    """Names that only look like this machine are not it; one that resolves elsewhere, or nowhere, is not either."""
    assert expected == is_loopback(address)


@pytest.mark.parametrize(("hosts", "expected"), [(["127.0.0.1", "::1"], True), (["127.0.0.1", "192.0.2.7"], False)])
def test_a_local_name_counts_where_it_resolves(
    hosts: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`localhost` that a hosts file leads elsewhere, if only for one of its addresses, is no longer this machine."""
    entries = [(0, 0, 0, "", (host, 0)) for host in hosts]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: entries)  # the resolver of the system, not our code
    assert expected == is_loopback("http://localhost:11434")


@pytest.mark.slow
def test_what_is_said_to_this_machine_goes_through_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server at any loopback address is asked directly, although the environment names a proxy for all."""
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    with ChatServer() as server, ChatServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        brain = model_brain(tmp_path, server)
        write_machine(brain, {"api_bases": {"openai": server.url.replace("127.0.0.1", "127.0.0.2")}})
        with pytest.raises(ModelError):  # nobody listens there
            brain.models.run(answer_request())
        brain.close()
        assert [] == proxy.requests


def test_named_key_that_is_not_set_is_said() -> None:
    """A variable named in the machine's config must be set."""
    machine = MachineSettings(api_key_variables={"openai": "MY_KEY"})
    with pytest.raises(ModelError, match="MY_KEY"):
        endpoint_of("openai/x", machine, {})
    assert "s3cret" == endpoint_of("openai/x", machine, {"MY_KEY": "s3cret"}).api_key


def test_a_missing_key_is_said_before_litellm_is_imported(tmp_path: Path) -> None:
    """A person who has no key reads so at once, not after the seconds that the library takes."""
    brain = make_brain(tmp_path / "brain", {"llm": {"model": "openai/gpt-5-mini"}})
    brain.close()
    line = [sys.executable, "-X", "importtime", "-m", "brainiac", "--brain", str(brain.root), "ask", "Where do I live?"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert "OPENAI_API_KEY is not set" in done.stderr
    assert "brainiac.llm.gateway" in done.stderr
    assert [] == [text for text in done.stderr.splitlines() if text.rpartition("|")[2].strip() == "litellm"]


def test_usual_key_is_not_sent_to_a_server_on_this_machine() -> None:
    """A local server gets a placeholder; an endpoint elsewhere that the person configured gets the provider's key."""
    environ = {"OPENAI_API_KEY": "sk-real"}
    local = MachineSettings(api_bases={"openai": "http://127.0.0.1:8080/v1"})
    elsewhere = MachineSettings(api_bases={"openai": "https://proxy.example/v1"})
    keys = [endpoint_of("openai/x", machine, environ).api_key for machine in (local, elsewhere)]
    assert ["none", "sk-real"] == keys
    assert "sk-real" not in repr(endpoint_of("openai/x", elsewhere, environ))


def test_keys_are_taken_out_of_messages() -> None:
    """The environment's secrets, and what looks like a key, do not stand in an error."""
    text = "Bad key hunter2hunter2 for sk-abc12345678, Authorization: Bearer abcdef123456"
    scrubbed = scrub(text, {"MY_API_KEY": "hunter2hunter2", "HOME": "/home/x"})
    assert [] == [secret for secret in ("hunter2", "abc12345678", "abcdef123456") if secret in scrubbed]


def test_retry_after_as_a_date_is_read() -> None:
    """A Retry-After may be a date; one in the past means now."""

    error = RuntimeError("slow down")
    error.litellm_response_headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}  # type: ignore[attr-defined]  # as litellm does it
    assert 0.0 == retry_after_seconds(error)


def test_unknown_error_is_retryable_and_named() -> None:
    """An error that is in no table still becomes ours."""
    endpoint = Endpoint("openai/x", "openai", None, None, False)
    error = model_error(RuntimeError("odd"), endpoint)
    assert error.retryable
    assert "odd" in error.problem


def test_facts_of_models_are_read_without_litellm() -> None:
    """Window and price of a published model are known by either name; nothing is invented for others."""
    assert facts("gpt-4o") == facts("openai/gpt-4o")
    assert facts("anthropic/claude-sonnet-4-5").window_tokens == 200_000
    assert None is facts("openai/my-own-model").price
    assert "anthropic" == provider_of("claude-sonnet-4-5")


@pytest.mark.parametrize(
    "text", ["", "a" * 300_000, " " * 300_000, "\n" * 50_000, "日本語" * 10_000, "🙂" * 5_000, "<|endoftext|>"]
)
def test_counting_survives_any_text(text: str) -> None:
    """Long runs that overflow a tokenizer, other scripts and special tokens are counted."""
    assert (count(text) > 0) is bool(text)


def test_counting_errs_on_the_safe_side_for_other_families() -> None:
    """A model of unknown tokenizer is given a margin."""
    text = "The user lives in Portland, since 2020. " * 20
    assert count(text, "openai/gpt-4o") < count(text, "anthropic/claude-sonnet-4-5")
