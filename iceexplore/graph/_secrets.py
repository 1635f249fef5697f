"""What is a secret: by the name of a property, or by the form of a text."""

from __future__ import annotations

import re

__all__ = ["BLANK", "blank_secrets", "is_secret_name"]

BLANK = "REDACTED"

#: Iceberg's own keys ("partition-key", "key_metadata", "encryption.key-id", "encryption-keys") name no secret.
_SECRET_NAME = re.compile(
    r"""secret | token | pass(word|wd|phrase|code) | (?<![a-z])pass$ | pwd | credential | (?<![a-z])creds?(?![a-z])
    | (access|api|account|sse) [-_.]? key | (?<![a-z])(en|de)cryption [-_.]? key $
    | (?<![a-z])(sas|sig)(?![a-z]) | signature | private | authorization | bearer | cookie | jaas | webhook""",
    re.I | re.X,
)
#: A name that is given something: by "=", or by ":" where that is quoted, as in JSON (else it may be a column and its
#: type). After "/" it is a folder's, of a partition: places must stay right.
_GIVEN = re.compile(r"""(?<![/\w.-]) (?P<name>[\w.-]+) \\*["']? \s* (?: = \s* | : \s* (?=\\*["']) )""", re.X)
#: What it is given. A text that was cut has no quote at its end.
_VALUE = re.compile(
    r"""(?P<quote>["']) (?: (?!(?P=quote))[^\\] | \\. )* (?: (?P=quote) | \\?\Z )
    | (?P<escaped>\\+["']) .*? (?: (?<!\\)(?P=escaped) | \Z )
    | \{[^}]*\}? | [^\s&;"]+""",
    re.X | re.S,
)
#: In front of "@" in a URL of Azure stands no user but a container.
_FORMS = re.compile(
    r"""(?P<before> (?<!abfs)(?<!abfss)(?<!wasb)(?<!wasbs) :// ) [^/\s"]+ (?=@)
    | (?P<scheme> \b (?i:basic|bearer) \s+ ) (?=\S*(?:[0-9=]|[a-z][A-Z])) [\w.~+/=-]{6,}
    | (?P<hook> hooks\.slack\.com/ | discord(?:app)?\.com/api/webhooks/ | \.webhook\.office\.com/ ) [^\s"'<>]+
    | -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY (?: .*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY----- | .* )
    | (?<![A-Za-z0-9]) (?: (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9]) | eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)*
      | ya29\.[\w.-]{4,} | AIza[\w-]{30,} | xox[a-eprs]-[\w-]{4,} | gh[oprsu]_[A-Za-z0-9]{4,} | github_pat_\w{4,}
      | glpat-[\w-]{8,} | dapi[0-9a-f]{32} | sk_live_\w{8,} )""",
    re.X | re.S,
)


def is_secret_name(name: str) -> bool:
    """Whether a property of this name is a secret."""
    return _SECRET_NAME.search(name) is not None


def blank_secrets(text: str) -> str:
    """A text without what has the form of a secret.

    That is the user's part of URLs, what is given to a secret name (``password=...``, ``"token": "..."``, a signature),
    private keys, addresses of webhooks, and tokens that tell by their beginning what they are.
    """
    if text.isdecimal():  # as most of what summaries hold
        return text
    text = _FORMS.sub(lambda found: f"{found['before'] or found['scheme'] or found['hook'] or ''}{BLANK}", text)
    if "=" not in text and ":" not in text:
        return text
    parts, done = [], 0
    for given in _GIVEN.finditer(text):
        if given.start() < done or not is_secret_name(given["name"]):
            continue
        value = _VALUE.match(text, given.end())
        if value is not None:
            quote = value["quote"] or value["escaped"] or ""
            parts += [text[done : given.end()], quote, BLANK, quote]
            done = value.end()
    return "".join([*parts, text[done:]])
