#!/bin/sh
# What the tests need beyond Python: tmux. Installed where that is possible without asking; else said.
set -eu
command -v tmux >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq tmux >/dev/null && exit 0
fi
echo "tmux is not installed: tests that need it will be skipped (Debian: apt-get install tmux; macOS: brew install tmux)" >&2
