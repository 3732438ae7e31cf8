"""The pages of chapters: rows of prose and code on a sheet, made of the site's notebook."""
