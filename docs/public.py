"""What a plugin may import: the names of `brainiac` itself, and those below. They are added, never removed.

All other names are internal and may change at any time. The four processes come with the program and change with it;
they import what they need of it. A test looks at the examples and at the plugins that the documentation shows.
"""

from __future__ import annotations

NAMES = {  # why a plugin needs them: the names, by module
    "To know what is told, and to say what went wrong": {
        "brainiac.errors": "BrainiacError StorageError FormatError ConfinementError BudgetError PluginError",
        "brainiac.events": "PathKind RecordedChange new_id content_hash",
        "brainiac.clock": "Clock ManualClock iso day_in moment_in",
    },
    "To read and write files of the brain in their formats": {
        "brainiac.formats.access_log": "AccessEntry parse_access_log",
        "brainiac.formats.authors": "Author",
        "brainiac.formats.frontmatter": "split edit_meta render_meta",
        "brainiac.formats.markdown": "Link find_links format_link relative_link retarget_links escape StmEvent",
        "brainiac.formats.discretion": "Audience",
        "brainiac.formats.page": "Statement find_statements audience_of shareable_text parse_memory",
        "brainiac.formats.prompt": "Command parse_prompt parse_response response_path prompt_path_of conversation_of",
        "brainiac.formats.short_term": "ShortTermMemory Item",
        "brainiac.storage.pages": "PageSet linked_path",
    },
    "To search by other means, or to judge what was found": {
        "brainiac.search.query": "Query parse_query excerpt",
        "brainiac.text.tokens": "words pieces",
    },
    "To add a model, or to ask the one there is": {
        "brainiac.llm.schemas": "Engine Purpose Request Result QueriesRequest Queries AnswerRequest Answer "
        "ReflectRequest Reflection ConsolidateRequest Consolidation Operation Evidence PageRef VerifyRequest Verdicts "
        "Verdict Claim Quoted SynthesizeRequest Page Section SummarizeRequest Summary OrganizeRequest Proposals "
        "Proposal Said Existing PageName",
    },
    "To show a model no more than it may see": {
        "brainiac.llm.gate": "Gate",
        "brainiac.llm.redaction": "redact",
        "brainiac.llm.context.blocks": "Block Stability quoted spoken safe_line reference",
    },
    "To add a command": {"brainiac.cli.session": "command print_table print_json", "brainiac.terminal": "say"},
    "To test a plugin": {"brainiac.testing": "World install_plugin"},
}
