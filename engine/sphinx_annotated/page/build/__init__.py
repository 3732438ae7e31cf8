"""What a build knows: its state, the book around the chapters, and which pages are read again."""
