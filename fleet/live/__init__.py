"""Teams that live in tmux: made, found, told apart by what they do, spoken to and ended."""
