"""Recognition of secrets, by the name of a property or by the form of a text."""

from __future__ import annotations

import re

__all__ = ["BLANK", "blank_secrets", "is_secret_name"]

BLANK = "REDACTED"

#: Names of secrets. Iceberg's own keys ("partition-key", "key_metadata", "encryption.key-id", "encryption-keys") and
#: the authentication method ("auth.type") are not secrets and do not match.
_SECRET_NAME = re.compile(
    r"""secret | token | pass(word|wd|phrase|code) | (?<![a-z])pass$ | pwd | credential | (?<![a-z])creds?(?![a-z])
    | (access|api|account|sse) [-_.]? key | (?<![a-z])(en|de)cryption [-_.]? key $ | (?<![a-z_-])key $
    | (?<![a-z])(sas|sig|pin)(?![a-z]) | (?<![a-z])auth (?![a-z]) (?! [-_.] (type|mode|enabled|ur[il]|server) )
    | signature | private | authorization | bearer | cookie | jaas | webhook""",
    re.I | re.X,
)
#: Every secret name contains one of these; checking them first takes a hundredth of the time.
_SECRET_PARTS = (
    "secret", "token", "pass", "pwd", "cred", "key", "sas", "sig", "pin", "auth", "private", "bearer", "cookie",
    "jaas", "webhook",
)  # fmt: skip
#: A name, and what separates it from its value: "=", ":" or, after a command-line option, a space. A name after "/"
#: does not match: there, ``name=value`` is the folder of a partition, and locations must stay valid.
_GIVEN = re.compile(
    r"""(?<![/\w.-]) (?: (?P<name>[\w.-]+) \\*["']? \s* (?: = \s* | (?P<colon>:) (?!//) \s* )
    | (?P<option>--?[A-Za-z][\w.-]*) \s+ (?!-) )""",
    re.X,
)
#: After a name and ":" there may be the type of a column of that name, which is not a secret.
_TYPE = re.compile(
    r"""(?: (?:optional|required) \s+ )? (?: boolean | int | long | float | double | date | time
    | timestamp(?:tz)?(?:_ns)?
    | string | uuid | binary | variant | unknown | (?:decimal|fixed|geometry|geography)\b [\[(]? [^\])]* [\])]?
    | (?:struct|list|map) (?=[<(]) ) (?= [\s,;)>\]}(<] | \Z )""",
    re.X,
)
#: The value that follows the name of a secret. A truncated text may lack the closing quote.
_VALUE = re.compile(
    r"""(?P<quote>["']) (?: (?!(?P=quote))[^\\] | \\. )* (?: (?P=quote) | \\?\Z )
    | (?P<escaped>\\+["']) .*? (?: (?<!\\)(?P=escaped) | \Z )
    | \{[^}]*\}? | [^\s&;"]+""",
    re.X | re.S,
)
#: In an Azure URL, the part before "@" is a container, not a user. A password may contain "/", a port may not.
_FORMS = re.compile(
    r"""(?P<before> (?<!abfs)(?<!abfss)(?<!wasb)(?<!wasbs) :// )
      (?: [^/\s"@]+ (?: @ [^/\s"@]+ )* | [^/\s":@]+ : (?!\d+/) [^\s"@]{1,200} ) (?=@)
    | (?P<scheme> \b (?i:basic|bearer) \s+ ) (?=\S*(?:[0-9=]|[a-z][A-Z])) [\w.~+/=-]{6,}
    | (?P<hook> hooks\.slack\.com/ | discord(?:app)?\.com/api/webhooks/ | \.webhook\.office\.com/ ) [^\s"'<>]+
    | -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY (?: .*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY----- | .* )
    | (?<![A-Za-z0-9]) (?: (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9]) | eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)*
      | ya29\.[\w.-]{4,} | AIza[\w-]{30,} | xox[a-eprs]-[\w-]{4,} | gh[oprsu]_[A-Za-z0-9]{4,} | github_pat_\w{4,}
      | glpat-[\w-]{8,} | dapi[0-9a-f]{32} | sk_live_\w{8,} )""",
    re.X | re.S,
)
#: The query of a URL, which may hold signatures and tokens. A URL ends where the next begins, to keep matching linear.
_QUERY = re.compile(r"""(?P<url> :// [^\s"'<>?\#:]* (?: : (?!//) [^\s"'<>?\#:]* )* \? ) [^\s"'<>]+""", re.X)
#: Any secret contains one of these; most texts contain none and need no further check.
_PERHAPS = re.compile(
    r"""[:=] | (?<![/\w.-])- | -----BEGIN | (?i:basic|bearer) | hooks\. | webhook | AKIA | ASIA | eyJ | ya29
    | AIza | xox | gh[oprsu]_ | github_pat | glpat | dapi | sk_live""",
    re.X,
)


def is_secret_name(name: str) -> bool:
    """Return whether a property with this name has a secret as its value."""
    if name.isascii():  # the regular expression's case folding maps some other letters to ASCII ones
        plain = name.lower()
        if not any(part in plain for part in _SECRET_PARTS):
            return False
    return _SECRET_NAME.search(name) is not None


def blank_secrets(text: str) -> str:
    """Return a text in which everything that has the form of a secret is redacted.

    These are the user and the query of URLs, values of secret names (``password=...``, ``token: ...``,
    ``--password ...``), private keys, webhook URLs, and tokens with a known prefix.
    """
    if _PERHAPS.search(text) is None:
        return text
    text = _FORMS.sub(lambda found: f"{found['before'] or found['scheme'] or found['hook'] or ''}{BLANK}", text)
    if "?" in text:
        text = _QUERY.sub(lambda found: f"{found['url']}{BLANK}", text)
    if "=" not in text and ":" not in text and "-" not in text:
        return text
    parts, done = [], 0
    for given in _GIVEN.finditer(text):
        if given.start() < done or not is_secret_name(given["name"] or given["option"]):
            continue
        if given["colon"] and _TYPE.match(text, given.end()):
            continue
        value = _VALUE.match(text, given.end())
        if value is not None:
            quote = value["quote"] or value["escaped"] or ""
            parts += [text[done : given.end()], quote, BLANK, quote]
            done = value.end()
    return "".join([*parts, text[done:]])
