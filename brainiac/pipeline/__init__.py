"""From what is seen in the tree to the hooks of the plugins: watch, settle, tell apart, hand on."""
