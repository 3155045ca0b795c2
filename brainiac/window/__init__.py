"""The window: memory in a browser, drawn on the server of the daemon (docs/window.md).

How a page is added, in five steps:

1. A module in `pages/` with a function that takes a `Visit` and returns the values of its template. It only reads.
2. `PAGES` in that module: a `Page` with path, title and that function; `is_live` where it is drawn anew as things
   happen. `pages/__init__.py` names the module; the navigation has the order of the modules there.
3. A template of the path's name in `templates/`, from `layout.html`; what stands in its block `fresh` is drawn anew.
   Words of memory go through the filter `words`; a statement is a row by the macro `statement`, a button by `act`.
4. What its buttons do: functions in `ACTIONS` of the module, which take a `Visit` and return a `Done`. They call verbs,
   or the functions that the commands call; nothing else changes anything.
5. A test in `tests/live/` by `tests.support.browser`, with and without JavaScript, and the path in `PATHS` there, so
   that the tests of every page (hostile words, axe, 360 px, a request from elsewhere) visit it too.
"""
