"""What is a secret: by the name of a property, or by the form of a text."""

from __future__ import annotations

import re

__all__ = ["BLANK", "blank_secrets", "is_secret_name"]

BLANK = "REDACTED"

#: Iceberg's own keys ("partition-key", "key_metadata", "encryption.key-id", "encryption-keys") name no secret, and
#: neither does how somebody is authenticated ("auth.type").
_SECRET_NAME = re.compile(
    r"""secret | token | pass(word|wd|phrase|code) | (?<![a-z])pass$ | pwd | credential | (?<![a-z])creds?(?![a-z])
    | (access|api|account|sse) [-_.]? key | (?<![a-z])(en|de)cryption [-_.]? key $ | (?<![a-z_-])key $
    | (?<![a-z])(sas|sig|pin)(?![a-z]) | (?<![a-z])auth (?![a-z]) (?! [-_.] (type|mode|enabled|ur[il]|server) )
    | signature | private | authorization | bearer | cookie | jaas | webhook""",
    re.I | re.X,
)
#: What each of these has something of: looking for them takes a hundredth of the time.
_SECRET_PARTS = (
    "secret", "token", "pass", "pwd", "cred", "key", "sas", "sig", "pin", "auth", "private", "bearer", "cookie",
    "jaas", "webhook",
)  # fmt: skip
#: A name that is given something: by "=", by ":", or, of an option of a command, by a space. After "/" it is a
#: folder's, of a partition: places must stay right.
_GIVEN = re.compile(
    r"""(?<![/\w.-]) (?: (?P<name>[\w.-]+) \\*["']? \s* (?: = \s* | (?P<colon>:) (?!//) \s* )
    | (?P<option>--?[A-Za-z][\w.-]*) \s+ (?!-) )""",
    re.X,
)
#: Behind a name and ":" may stand the type of a column of that name, which is no secret.
_TYPE = re.compile(
    r"""(?: (?:optional|required) \s+ )? (?: boolean | int | long | float | double | date | time
    | timestamp(?:tz)?(?:_ns)?
    | string | uuid | binary | variant | unknown | (?:decimal|fixed|geometry|geography)\b [\[(]? [^\])]* [\])]?
    | (?:struct|list|map) (?=[<(]) ) (?= [\s,;)>\]}(<] | \Z )""",
    re.X,
)
#: What it is given. A text that was cut has no quote at its end.
_VALUE = re.compile(
    r"""(?P<quote>["']) (?: (?!(?P=quote))[^\\] | \\. )* (?: (?P=quote) | \\?\Z )
    | (?P<escaped>\\+["']) .*? (?: (?<!\\)(?P=escaped) | \Z )
    | \{[^}]*\}? | [^\s&;"]+""",
    re.X | re.S,
)
#: In front of "@" in a URL of Azure stands no user but a container. A password may have "/" in it, a port has none.
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
#: The query of a URL: signatures and tokens stand there. A URL ends where the next begins, or many would take long.
_QUERY = re.compile(r"""(?P<url> :// [^\s"'<>?\#:]* (?: : (?!//) [^\s"'<>?\#:]* )* \? ) [^\s"'<>]+""", re.X)
#: What every form and every gift has something of: most texts have nothing, and are looked at no further.
_PERHAPS = re.compile(
    r"""[:=] | (?<![/\w.-])- | -----BEGIN | (?i:basic|bearer) | hooks\. | webhook | AKIA | ASIA | eyJ | ya29
    | AIza | xox | gh[oprsu]_ | github_pat | glpat | dapi | sk_live""",
    re.X,
)


def is_secret_name(name: str) -> bool:
    """Return whether a property of this name is a secret."""
    if name.isascii():  # of other letters some are taken for these in another case
        plain = name.lower()
        if not any(part in plain for part in _SECRET_PARTS):
            return False
    return _SECRET_NAME.search(name) is not None


def blank_secrets(text: str) -> str:
    """Return a text without what has the form of a secret.

    That is the user's part and the query of URLs, what is given to a secret name (``password=...``, ``token: ...``,
    ``--password ...``), private keys, addresses of webhooks, and tokens that tell by their beginning what they are.
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
