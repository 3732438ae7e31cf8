"""Where a book is online, on each kind of host, and without one."""

from urllib.parse import parse_qs, urlsplit

import pytest
from sphinx.errors import ConfigError
from sphinx_annotated.page.build.repository import Repository

ADDRESSES = {
    "https://github.com/Owner/name/": "https://owner.github.io/name/",
    "https://github.com/a/a.github.io": "https://a.github.io/",
    "https://github.com/a/b.git": "https://a.github.io/b/",
    "https://gitlab.com/group/sub/name": "https://group.gitlab.io/sub/name/",
    "https://codeberg.org/a/b": "https://a.codeberg.page/b/",
    "https://git.example.org/a/b": "",
    "https://example.org/": "",
    "https://github.com/a": "",
    "": "",
}
FILES = {
    "https://github.com/a/b": ("blob/main/x/y.py", "edit/main/x/y.py"),
    "https://gitlab.com/a/b": ("-/blob/main/x/y.py", "-/edit/main/x/y.py"),
    "https://codeberg.org/a/b": ("src/branch/main/x/y.py", "_edit/main/x/y.py"),
}


@pytest.mark.parametrize(("url", "pages"), ADDRESSES.items())
def test_the_site_is_where_the_host_publishes_it_or_where_the_setting_says(
    url: str, pages: str
) -> None:
    assert Repository(url).pages == pages
    assert Repository(url, site="https://b.org").pages == "https://b.org/"


@pytest.mark.parametrize("url", FILES)
def test_files_are_linked_as_the_host_has_them(url: str) -> None:
    file, edit = FILES[url]
    assert Repository(url).file("x/y.py") == f"{url}/{file}"
    assert Repository(f"{url}.git/").edit("x/y.py") == f"{url}/{edit}"
    assert Repository(url, "dr/aft").file("x").count("dr/aft/x") == 1


def test_an_issue_has_the_page_in_the_form_of_the_host() -> None:
    where = {"versions": "1.0", "page": "https://b.org/x.html"}
    for url, names in (
        ("https://github.com/a/b", {"template", "versions", "page"}),
        ("https://gitlab.com/a/b", {"issue[title]", "issue[description]"}),
        ("https://codeberg.org/a/b", {"title", "body"}),
    ):
        given = parse_qs(urlsplit(Repository(url).issue("words.yml", where)).query)
        assert given.keys() == names
        assert where["page"] in str(given)


def test_colab_opens_what_is_on_github_alone() -> None:
    start = "https://colab.research.google.com/github/a/b/blob/main/"
    assert Repository("https://github.com/a/b").colab == start
    for url in ("", "https://gitlab.com/a/b", "https://git.example.org/github.com/b"):
        assert Repository(url).colab == ""


def test_a_host_of_ones_own_is_linked_by_its_kind_and_without_it_by_its_address_alone() -> (
    None
):
    url = "https://git.example.org/a/b"
    own = Repository(url, host="gitlab")
    assert own.file("x") == f"{url}/-/blob/main/x" and own.pages == ""
    unknown = Repository(url)
    assert (unknown.file("x"), unknown.edit("x"), unknown.issue("", {})) == ("", "", "")
    with pytest.raises(ConfigError, match="Name one of github, gitlab, forgejo"):
        Repository(url, host="gitlub")
