"""Commits the brain to git once it has been quiet for a while; `git config brainiac.sync true` has it pull and push.

Copy it to the `plugins/` folder of a brain in a repository, and run `brainiac git setup` and
`brainiac plugins trust git_sync`. It commits the brain's own folders alone: what you staged yourself stays staged, and
nothing else is added.
"""

import os
import subprocess

from brainiac import Brain, hookimpl
from brainiac.formats.discretion import Audience
from brainiac.formats.page import audience_of

QUIET_SECONDS = 120.0
LISTED = 10  # statements in a message
SECONDS = 120.0


@hookimpl
def quiet_on_any_device(brain: Brain, idle_seconds: float) -> None:
    """Commit, and sync where the repository's settings say so; while git is busy, wait for the next quiet."""
    if idle_seconds < QUIET_SECONDS or brain.git is None or brain.git_operation:
        return
    _commit(brain)
    if _git(brain, "config", "--type=bool", "brainiac.sync").stdout.strip() == "true":
        _sync(brain)


def _commit(brain: Brain) -> None:
    """Commit what changed in the brain's folders, if anything did."""
    layout = brain.tree.layout
    folders = [name for name in (layout.inbox, layout.memory, layout.logs, "system") if (brain.root / name).exists()]
    _git(brain, "add", "--all", "--", *folders)
    folders = [name for name in folders if _git(brain, "ls-files", "--", name).stdout]  # git knows no empty folder
    if _git(brain, "diff", "--cached", "--quiet", "--", *folders).returncode == 0:
        return
    done = _git(brain, "commit", "--quiet", "--message", _message(brain), "--only", "--", *folders)
    if done.returncode:
        brain.log.warning("git_commit_failed", problem=done.stderr.strip())


def _message(brain: Brain) -> str:
    """Return a message that says what was learned; of private pages it says nothing."""
    changed = _git(brain, "diff", "--cached", "--name-only", "-z", "--", brain.tree.layout.memory).stdout.split("\0")
    pages = [path for path in changed if path.endswith(".md") and not path.endswith("_index.md")]
    learned = []
    for path in pages:
        text = (brain.root / path).read_text("utf-8", "replace") if (brain.root / path).is_file() else ""
        if text and audience_of(text) is Audience.ANYONE and "<!-- private -->" not in text and "/long_term/" in path:
            lines = _git(brain, "diff", "--cached", "--unified=0", "--", path).stdout.splitlines()
            learned += [line[1:] for line in lines if line.startswith("+- ")]
    subject = f"memory: {len(learned)} learned" if learned else "memory: what was said"
    return "\n".join([subject, "", *learned[:LISTED]]).rstrip()


def _sync(brain: Brain) -> None:
    """Pull and push; a failed push is tried again at the next quiet, an unfinished merge is named by `status`."""
    for command in (("pull", "--quiet", "--no-rebase", "--no-edit"), ("push", "--quiet")):
        done = _git(brain, *command)
        if done.returncode and not (brain.git_operation == "merge" and _conclude(brain)):
            brain.log.warning("git_sync_failed", command=command[0], problem=done.stderr.strip())
            return


def _conclude(brain: Brain) -> bool:
    """Conclude a merge, if all that git could not merge is in the brain's folders: `brainiac run` merges it then.

    A page that one clone moved and another edited stands at both paths, for one.
    """
    unmerged = ("diff", "--name-only", "--diff-filter=U", "-z")
    paths, everywhere = (_git(brain, *unmerged, *more).stdout.split("\0")[:-1] for more in (("--relative",), ()))
    layout = brain.tree.layout
    folders = tuple(f"{name}/" for name in (layout.inbox, layout.memory, layout.logs, "system"))
    if len(paths) < len(everywhere) or not all(path.startswith(folders) for path in paths):
        return False
    return not any(
        _git(brain, *command).returncode for command in (("add", "--", *paths), ("commit", "--quiet", "--no-edit"))
    )


def _git(brain: Brain, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # nobody is there to type a password
    command = ["git", "-C", str(brain.root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
