"""Build a chapter's page: rows of prose and code, figures, exercises and the title block."""
