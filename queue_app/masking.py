"""Hide secrets in texts that are copied or shown; pure. Recognised by shape."""

from __future__ import annotations

import re

MASK = "•••"

# Begins after anything but a letter or digit: words of other scripts need no space before a key.
_KEYS = re.compile(
    r"""
    (?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{16,}                 # OpenAI, Anthropic and compatible keys
      | toff_[a-z0-9]{4,}_[A-Za-z0-9_-]{16,}  # our own tokens
      | gh[pousr]_[A-Za-z0-9]{20,}            # GitHub
      | github_pat_[A-Za-z0-9_]{20,}
      | xox[abprs]-[A-Za-z0-9-]{10,}          # Slack
      | AKIA[0-9A-Z]{16}[A-Za-z0-9]*          # AWS
      | AIza[0-9A-Za-z_-]{30,}                # Google
      | \d{8,10}:AA[A-Za-z0-9_-]{30,}         # Telegram bots
      # Signed web tokens; not inside a longer word, or each `-eyJ` of a long one is read to its end.
      | (?<![_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
    )
    """,
    re.VERBOSE,
)
# A name and password inside an address; after the keys, since a name can look like one.
_LOGINS = re.compile(r"(?<=://)[^\s:/@]{1,100}:[^\s/@]{1,200}(?=@)")


def mask(text: str) -> str:
    """Return the text with every secret of a known shape replaced."""
    return _LOGINS.sub(MASK, _KEYS.sub(_masked, text))


def _masked(found: re.Match[str]) -> str:
    secret = found.group()
    keep = 4 if ":" not in secret else 0
    return secret[:keep] + MASK
