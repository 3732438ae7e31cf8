"""What authors write in prose beyond Markdown: directives, and the role of computed values."""
