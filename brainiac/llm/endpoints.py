"""Where a model's requests go and with which key: from the environment or this machine's own config, never from
the tree, since a synced `config.yaml` must not send a key to a stranger (design 5)."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from brainiac.errors import ModelError
from brainiac.llm.catalog import provider_of
from brainiac.settings import MachineSettings

# servers that run beside us unless said otherwise; named here, so that we know that nothing leaves the machine
LOCAL_DEFAULTS = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
}
_NO_KEY = "none"  # clients refuse to call without one; servers that need none ignore it
_NAME = re.compile(r"[\w.:@+-]+(?:/[\w.:@+-]+)*", re.ASCII)
# Ollama hands models of such names (`glm-4.6:cloud`, `gpt-oss:120b-CLOUD`) on to its makers' servers
_IN_THE_CLOUD = re.compile(r"(?<![a-z0-9])cloud(?![a-z0-9])", re.IGNORECASE)
_KEY_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)(?:_|$)")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests for a model go.

    Attributes:
        api_base: None for the provider's own.
        api_key: None where litellm reads the provider's usual variable.
        is_local: Nothing leaves this machine.
    """

    model: str
    provider: str
    api_base: str | None
    api_key: str | None = field(repr=False)
    is_local: bool

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        return self.api_base or self.provider


def endpoint_of(model: str, machine: MachineSettings, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return where a model is served.

    Args:
        model: A litellm name. One that holds an address is refused: some providers would call it.
        machine: This machine's own settings.
        environ: The environment.

    Raises:
        ModelError: The name cannot be one, or the variable that should hold the key is not set.
    """
    if not _NAME.fullmatch(model):
        raise ModelError(
            f"`{model[:80]!r}` is not the name of a model.",
            advice="Use `offline` or a litellm name such as `openai/gpt-5-mini`; no addresses in it.",
        )
    provider = provider_of(model)
    family = provider.removesuffix("_chat").upper()
    base = (
        machine.api_bases.get(model)
        or machine.api_bases.get(provider)
        or environ.get(f"{family}_API_BASE")
        or environ.get(f"{family}_BASE_URL")
        or LOCAL_DEFAULTS.get(provider)
    )
    is_local = base is not None and is_loopback(base) and not _IN_THE_CLOUD.search(model)
    return Endpoint(model, provider, base, _key(model, provider, base, is_local, machine, environ), is_local)


def _key(
    model: str, provider: str, base: str | None, is_local: bool, machine: MachineSettings, environ: Mapping[str, str]
) -> str | None:
    variable = machine.api_key_variables.get(model) or machine.api_key_variables.get(provider)
    if variable:
        if not environ.get(variable):
            raise missing_key(model, [variable])
        return environ[variable]
    if base is None:
        return None
    usual = None if is_local else environ.get(f"{provider.upper()}_API_KEY")  # never to a server that did not ask
    return usual or _NO_KEY


def missing_key(model: str, variables: list[str]) -> ModelError:
    """Return the error for a key that is not set; waiting does not help, so it is not retryable."""
    return ModelError(
        f"There is no key for `{model}`: {' or '.join(variables) or 'its variable'} is not set in the environment.",
        advice="Set it where brainiac runs, or name another variable in this machine's config (api_key_variables), "
        "or set `llm.model: offline`.",
    )


def is_loopback(address: str) -> bool:
    """Return whether an address is this machine; a name counts where it leads, and elsewhere if that is unknown."""
    host = host_of(address)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return (host == "localhost" or host.endswith(".localhost")) and _leads_here(host)


def host_of(address: str) -> str:
    """Return the host of an address, in lower case; "" where there is none."""
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


def _leads_here(host: str) -> bool:
    """Return whether all that a name resolves to is this machine: whoever calls it may take any of them."""
    try:
        found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(each).is_loopback for each in found)


def scrub(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a provider's message without keys: the environment's, and what looks like one."""
    for name, value in environ.items():
        if len(value) >= 8 and _KEY_NAME.search(name.upper()):
            text = text.replace(value, "[key]")
    text = re.sub(r"\b(?:sk|pk|rk|gsk|xai|AIza|key)[-_]?[A-Za-z0-9_*-]{8,}", "[key]", text)
    return re.sub(r"(?i)(bearer|basic|api[-_ ]key(?: provided)?:?)\s+\S{6,}", r"\1 [key]", text)
