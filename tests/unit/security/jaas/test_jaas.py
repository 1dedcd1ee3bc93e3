"""JAAS texts: what Kafka's documentation shows, what surprises, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.secret import Secret
from penstock.security.jaas.entry import BadJaas, Entry, parse_entry
from penstock.security.jaas.logins import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    KerberosLogin,
    OAuthLogin,
    PlainLogin,
    ScramLogin,
    parse_login,
)
from penstock.security.jaas.tokens import lexemes

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def options(text: str) -> dict[str, str]:
    return {key: value.reveal() for key, value in parse_entry(f"m required {text};").options.items()}


def test_an_entry_as_documentation_shows_it() -> None:
    text = f'{PLAIN_MODULE} required \\\n  username="admin" \\\n password="a b" user_admin="a b" user_alice=x-1.2;'
    with pytest.raises(BadJaas, match="Value not specified"):
        parse_entry(text)  # the backslashes belong to the properties file, not to the text
    assert parse_entry(text.replace("\\\n", "")) == Entry(
        PLAIN_MODULE,
        "REQUIRED",
        {
            "username": Secret("admin"),
            "password": Secret("a b"),
            "user_admin": Secret("a b"),
            "user_alice": Secret("x-1.2"),
        },
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user_a-b='q u'", {"user_a-b": "q u"}),
        ('k="a\\"b" l=\'it"s\'', {"k": 'a"b', "l": 'it"s'}),
        (r'k="\n\t\b\f\r\a\v\061\0\q"', {"k": "\n\t\b\f\r\a\v1\0q"}),
        (r'k="\3777\477"', {"k": "\xff7'7"}),
        ('k="open\n', {"k": "open"}),
        ("k=a /* c */ l=b // c\n m=c / c\n", {"k": "a", "l": "b", "m": "c"}),
        ("k=a /\n l=b\n m=c", {"k": "a", "m": "c"}),
        ("k=é\u00a0x", {"k": "é\u00a0x"}),
        ("k=a k=b", {"k": "b"}),
        ("5=x -=y", {}),
    ],
)
def test_values_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert options(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Login module not specified in JAAS config"),
        ("// nothing", "Login module not specified in JAAS config"),
        ("m", "Login module control flag not specified in JAAS config"),
        ("m 5;", "Login module control flag is not available in the JAAS config"),
        ("m needed;", "Invalid login module control flag"),
        ("m required", "JAAS config entry not terminated by semi-colon"),
        ("m required password=a.b/c;", "JAAS config entry not terminated by semi-colon"),
        ("m required password=5;", "Value not specified for key 'password' in JAAS config"),
        ("m required password=-1;", "Value not specified for key 'password' in JAAS config"),
        ("m required password;", "Value not specified for key 'password' in JAAS config"),
        ("m required; m required;", "JAAS config property contains 2 login modules, should be 1 module"),
        ("'' required;", "does not begin with the name of a login module"),
        ("5 required;", "does not begin with the name of a login module"),
    ],
)
def test_what_is_no_entry_is_said_in_kafkas_words(text: str, words: str) -> None:
    with pytest.raises(BadJaas, match=words):
        parse_entry(text)


@pytest.mark.parametrize(
    "text", ["m required password=my swordfish;", "m swordfish;", "m required password=x swordfish y;", "m required '"]
)
def test_no_error_repeats_what_may_be_a_password(text: str) -> None:
    with pytest.raises(BadJaas) as refused:
        parse_entry(text)
    assert "swordfish" not in str(refused.value)


def test_nothing_that_prints_shows_a_password() -> None:
    text = f"{SCRAM_MODULE} required username=alice password=swordfish;"
    assert "swordfish" not in f"{parse_entry(text)!r} {parse_login(text, 'SCRAM-SHA-256')!r}"


@given(st.text(max_size=60))
def test_any_text_is_an_entry_or_refused(text: str) -> None:
    list(lexemes(text))
    with contextlib.suppress(BadJaas):
        parse_entry(text)


@given(st.text(alphabet="abc/*\n\r\"'\\;=-.5 ", max_size=40))
def test_cutting_ends_whatever_the_comments(text: str) -> None:
    assert sum(len(token.text or token.sign) for token in lexemes(text)) <= len(text) + 1


def test_plain_has_users_and_its_own_name() -> None:
    text = f"{PLAIN_MODULE} required username=me password=p user_alice=a user_=e;"
    users = {"alice": Secret("a"), "": Secret("e")}
    assert parse_login(text, "PLAIN") == PlainLogin("me", Secret("p"), users)
    assert parse_login(f"{PLAIN_MODULE} required;", "PLAIN") == PlainLogin(None, None)


def test_scram_may_log_in_by_a_token() -> None:
    text = f"{SCRAM_MODULE} required username=id password='aG==' tokenauth=TRUE;"
    assert parse_login(text, "SCRAM-SHA-512") == ScramLogin("id", Secret("aG=="), token=True)
    assert parse_login(f"{SCRAM_MODULE} required username=a;", "SCRAM-SHA-256") == ScramLogin("a", None)


def test_oauth_has_extensions() -> None:
    text = f"{OAUTH} required clientId=c clientSecret=s scope='a b' extension_pool=p unsecuredLoginStringClaim_sub=x;"
    login = parse_login(text, "OAUTHBEARER")
    assert isinstance(login, OAuthLogin)
    assert (login.client_id, login.client_secret, login.scope) == ("c", Secret("s"), "a b")
    assert login.extensions == {"pool": "p"}
    assert login.options["unsecuredLoginStringClaim_sub"] == Secret("x")


def test_kerberos_is_known_by_name() -> None:
    text = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;"
    assert parse_login(text, "GSSAPI") == KerberosLogin()


@pytest.mark.parametrize(
    "module",
    [
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
        "penstock.security.plain.PlainServer",
        "os.system",
    ],
)
def test_cve_2023_25194_cve_2025_27818_login_modules_are_a_fixed_table(module: str) -> None:
    with pytest.raises(BadJaas, match="is not known here"):
        parse_login(f"{module} required user.provider.url='ldap://x';", "PLAIN")


def test_a_module_of_another_mechanism_is_refused() -> None:
    with pytest.raises(BadJaas, match=r"does not log in by PLAIN: use .*PlainLoginModule"):
        parse_login(f"{SCRAM_MODULE} required username=a password=b;", "PLAIN")
    with pytest.raises(BadJaas, match="does not log in by X"):
        parse_login(f"{SCRAM_MODULE} required username=a password=b;", "X")
