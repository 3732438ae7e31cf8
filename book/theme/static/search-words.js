/* The words of Sphinx's search page, from the edition's catalogue. (Sphinx's own translations are code in a text,
   which the pages' policy forbids.) */
{
  const _ = text => [text, window.words?.[text] ?? text];
  const said = [
    _("Searching"), _("Preparing search..."), _("Search Results"), _("Hide Search Matches"), _(", in "),
    _("Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories."),
  ];
  const [one, ofOne] = _("Search finished, found one page matching the search query.");
  const [, ofMore] = _("Search finished, found ${resultCount} pages matching the search query.");
  Object.assign(Documentation.TRANSLATIONS, Object.fromEntries(said), { [one]: [ofOne, ofMore] });
}
