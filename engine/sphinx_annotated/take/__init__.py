"""Write what readers take away: notebooks, standalone code and BibTeX entries."""
