"""Where a book's files are online, on the hosts whose addresses are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from sphinx.errors import ConfigError


@dataclass(frozen=True)
class Host:
    """A kind of host: the ends of its addresses, and what its form for a new issue reads."""

    file: str
    edit: str
    issue: str
    title: str = ""  # of an issue; a form of GitHub has fields of its own instead
    text: str = ""


HOSTS = {
    "github": Host("blob/{branch}/{path}", "edit/{branch}/{path}", "issues/new"),
    "gitlab": Host(
        *("-/blob/{branch}/{path}", "-/edit/{branch}/{path}", "-/issues/new"),
        *("issue[title]", "issue[description]"),
    ),
    "forgejo": Host(
        *("src/branch/{branch}/{path}", "_edit/{branch}/{path}", "issues/new"),
        *("title", "body"),
    ),
}
# The kinds of well-known hosts, and where they publish the sites of repositories.
KNOWN = {
    "github.com": ("github", "github.io"),
    "gitlab.com": ("gitlab", "gitlab.io"),
    "codeberg.org": ("forgejo", "codeberg.page"),
}


@dataclass(frozen=True)
class Repository:
    """Where the book's files are online. Without an address they are nowhere.

    Of a host that is neither well known nor named, only the address itself is known.
    """

    url: str = ""  # https://github.com/owner/name
    branch: str = "main"
    notebooks: str = "notebooks"  # the folder of the readers' notebooks
    site: str = ""  # where the book is read, if not at the repository's pages
    host: str = ""  # the kind of a host of one's own: github, gitlab or forgejo

    def __post_init__(self) -> None:
        if self.host and self.host not in HOSTS:
            message = f'annotated_repository: host is "{self.host}". '
            raise ConfigError(f"{message}Name one of {', '.join(HOSTS)}.")

    @property
    def _host(self) -> Host | None:
        kind, _ = KNOWN.get(urlsplit(self.url).netloc, ("", ""))
        return HOSTS.get(self.host or kind)

    @property
    def pages(self) -> str:
        """The address of the site, with a slash at the end, or nothing."""
        if self.site:
            return f"{self.site.rstrip('/')}/"
        address = urlsplit(self.url)
        _, domain = KNOWN.get(address.netloc, ("", ""))
        owner, _, name = address.path.strip("/").removesuffix(".git").partition("/")
        if not domain or not name:
            return ""
        root = f"{owner.lower()}.{domain}"
        return f"https://{root}/" if name == root else f"https://{root}/{name}/"

    @property
    def colab(self) -> str:
        """The start of the addresses at which Colab opens files, or nothing."""
        if urlsplit(self.url).netloc != "github.com":
            return ""
        path = urlsplit(self.file("")).path
        return f"https://colab.research.google.com/github{path}"

    def file(self, path: str) -> str:
        """The address of a file, or nothing."""
        return self._at(self._host.file, path) if self._host else ""

    def edit(self, path: str) -> str:
        """The address at which a file is edited, or nothing."""
        return self._at(self._host.edit, quote(path)) if self._host else ""

    def issue(self, template: str, fields: Mapping[str, str]) -> str:
        """The address of a form for an issue with some fields filled in, or nothing."""
        host = self._host
        if host is None:
            return ""
        if host.title:
            text = "\n".join(f"{name}: {value}" for name, value in fields.items())
            given = {host.title: f"{fields.get('page', '')}: ", host.text: text}
        else:
            given = {"template": template, **fields}
        return f"{self._at(host.issue, '')}?{urlencode(given, safe='/')}"

    def _at(self, end: str, path: str) -> str:
        url = self.url.rstrip("/").removesuffix(".git")
        return f"{url}/{end.format(branch=self.branch, path=path)}" if url else ""
