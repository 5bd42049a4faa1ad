"""A secret that is given in place of another file, or in a wrong place, is in no message and in no output."""

import base64
import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kafka_assign.cli.app import program as commands
from kafka_assign.clients.connection import SettingsError, checked_servers, client_settings
from kafka_assign.samples import path
from kafka_assign.snapshot import SnapshotError, read_groups
from kafka_assign.snapshot.sources import excerpt
from kafka_assign.text.words import without_secrets

TABLE = path("orders-billing").read_text(encoding="utf-8")
PASSWORD = "S3cr3tPassw0rdXyzzy"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
KEY = base64.b64encode(random.Random(1).randbytes(1200)).decode()
PLAIN_KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + "".join(random.Random(2).choices(LETTERS, k=400))
BODY = "\n".join(re.findall(".{1,64}", KEY))
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{PASSWORD}";'
HEADER = "GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID\n"

FILES = {
    "a key": f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----\n",
    "a key with attributes": f"Bag Attributes\n    friendlyName: me\n-----BEGIN ENCRYPTED PRIVATE KEY-----\n{BODY}\n",
    "a key in one line": f"-----BEGIN RSA PRIVATE KEY-----{KEY}-----END RSA PRIVATE KEY-----",
    "a key without its header": f"{BODY}\n", "a key store in base64": f"{KEY}\n",
    "letters and digits": f"{PLAIN_KEY}\n",
    "an indented key": "\n".join(f"  {line}" for line in BODY.split("\n")),
    "settings": f"bootstrap.servers=k:9092\nsecurity.protocol=SASL_SSL\nsasl.jaas.config={LOGIN}\n"
                f"ssl.key.password={PASSWORD}\nssl.keystore.key={KEY}\n",
    "a password of Java": f"ssl.key.password={PASSWORD}\n", "a password of librdkafka": f"sasl.password={PASSWORD}\n",
    "a password after a colon": f"password: {PASSWORD}\n", "a netrc": f"machine k login alice password {PASSWORD}\n",
    "a script": f"export KAFKA_PASSWORD={PASSWORD}\n", "a login module": f"KafkaClient {{\n  {LOGIN}\n}};\n",
    "a line of a login module": LOGIN, "JSON": json.dumps({"username": "alice", "password": PASSWORD}),
    "cut JSON": f'{{"password": "{PASSWORD}", ', "lines of JSON": f'{{"password": "{PASSWORD}"}}\n' * 2,
    "YAML": f"sasl:\n  password: {PASSWORD}\n", "an address": f"https://alice:{PASSWORD}@host/\n",
    "a header of HTTP": f"Authorization: Bearer {PASSWORD}\n", "only a password": f"{PASSWORD}\n",
    "a web token": f"eyJhbGciOiJIUzI1NiJ9.{PASSWORD}.{PASSWORD}\n",
    "a table, then a password": f"{HEADER}ssl.key.password={PASSWORD}\n",
    "a table, then a password after a blank": f"{HEADER}password {PASSWORD} x y\n",
    "a table, then a key": f"{HEADER}{BODY}\n",
    "an output, then settings": f"{TABLE}\nsasl.password={PASSWORD}\n{BODY}\n"}
GOOD = str(path("orders-billing"))
LINES = {                                             # FILE stands for the secret, which is also on standard input
    "compare": "compare FILE", "compare -": "compare -", "compare both": f"compare {GOOD} FILE", "show": "show FILE",
    "assign": "assign FILE -s range", "rank": "rank FILE --all", "rank -": "rank -", "diff": f"diff FILE {GOOD}",
    "replay": "replay FILE --trace OUT.jsonl", "replay -": "replay -", "racks": f"compare {GOOD} --racks FILE",
    "assign to a file": f"assign {GOOD} FILE -s range -o OUT.json", "json": "show FILE --format json",
    "csv": f"rank {GOOD} FILE --format csv", "settings": "capture --command-config FILE --timeout 0.1",
    "settings and server": "capture --command-config FILE --bootstrap-server 127.0.0.1:1 --timeout 0.1"}


def parts_of(text):
    """What nobody may see: the password, and any 12 characters of the key in a row."""
    keys = [key for key in (KEY, PLAIN_KEY) if key[:40] in text]
    return [PASSWORD] * (PASSWORD in text) + [key[at:at + 12] for key in keys for at in range(0, len(key) - 12)]


def shows(text, secrets):
    return [secret for secret in secrets if secret in text]


@pytest.mark.parametrize("line", LINES)
def test_a_secret_in_place_of_a_file_is_not_shown(line, tmp_path):
    """Each kind of secret, in each place in which a file is named."""
    for kind, text in FILES.items():
        folder = tmp_path / re.sub(r"\W", "-", kind)
        folder.mkdir()
        file = folder / "secret"
        file.write_text(text, encoding="utf-8")
        words = [word.replace("FILE", str(file)).replace("OUT", str(folder / "out")) for word in LINES[line].split()]
        done = CliRunner().invoke(commands, words, input=text)
        assert done.exception is None or isinstance(done.exception, SystemExit), (kind, done.exception)
        written = "".join(one.read_text(encoding="utf-8") for one in folder.glob("out*"))
        assert not shows(done.stdout + done.stderr + written, parts_of(text)), (kind, done.stderr)


def test_python_does_not_show_it_either():
    """Rejects and ignored lines go into tables of a fleet, too."""
    for kind, text in FILES.items():
        if kind == "only a password":                     # below a table it may be the beginning of a row
            continue
        try:
            groups = read_groups(f"{TABLE}\n{text}")
            words = [one.reason for one in [*groups.rejects, *groups.ignored]]
        except SnapshotError as error:
            words = [str(error)]
        assert not shows(" ".join(words), parts_of(text)), (kind, words)


WRONG = {
    "a key as the place of a key": {"ssl.key.location": PLAIN_KEY},
    "a key as the place of a certificate": {"ssl.certificate.location": KEY},
    "a key without its header": {"ssl.keystore.type": "PEM", "ssl.keystore.key": PLAIN_KEY},
    "a short one": {"ssl.keystore.type": "PEM", "ssl.keystore.key": PASSWORD},
    "a certificate chain": {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": PLAIN_KEY},
    "a trust store": {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": KEY},
    "a key of librdkafka": {"ssl.key.pem": PLAIN_KEY, "ssl.certificate.pem": PLAIN_KEY},
    "a key as a kind": {"ssl.keystore.type": KEY, "ssl.keystore.location": PLAIN_KEY}}


@pytest.mark.parametrize("settings", WRONG.values(), ids=WRONG)
def test_a_key_in_a_wrong_setting_is_not_shown(settings):
    with pytest.raises(SettingsError) as error:
        client_settings({"security.protocol": "SSL", **settings})
    assert not shows(str(error.value), [PASSWORD, *parts_of("".join(settings.values()))])
    assert "ssl." in str(error.value)


@pytest.mark.parametrize("address", [f"alice:{PASSWORD}@k:9092", f"SASL_SSL://alice:{PASSWORD}@k:9092",
                                     f"k:9092,alice:{PASSWORD}@k"])
def test_a_login_in_an_address_is_not_shown(address):
    with pytest.raises(SettingsError) as error:
        checked_servers(address)
    assert PASSWORD not in str(error.value) and "HOST:PORT" in str(error.value)


def test_a_setting_of_spark_without_a_sign_is_not_shown():
    done = CliRunner().invoke(commands, [
        "fleet", "compare", GOOD, "-o", "runs", "--conf", f"spark.ssl.keyPassword {PASSWORD}"])
    assert done.exit_code and PASSWORD not in done.stderr


@given(st.binary(min_size=200, max_size=400), st.sampled_from([64, 76, 1000]), st.text(" \t", max_size=3))
def test_no_line_of_a_key_is_shown(data, width, before):
    """A key of any bytes, in lines of any usual width; only a last line that is short may look like a word."""
    text = base64.b64encode(data).decode()
    for line in re.findall(f".{{1,{width}}}", text):
        if len(line) >= 40 and re.search("[A-Z]", line) and re.search("[a-z]", line) and re.search("[0-9+]", line):
            assert excerpt(before + line) == "***"


@given(st.sampled_from(["password", "ssl.key.password", "sasl.password", "client.secret", "API_KEY", "access-token",
                        "ssl.keystore.key", "sasl.jaas.config", "ssl_keystore_password", "aws_secret_access_key"]),
       st.sampled_from(["=", " = ", ": ", '": "', ":"]), st.text(LETTERS + "!#$%&", min_size=6, max_size=30))
def test_what_follows_the_name_of_a_secret_is_not_shown(name, sign, secret):
    words = without_secrets(f"a {name}{sign}{secret}")
    assert words.startswith(f"a {name}") and words.endswith("***") and secret not in words.removeprefix(f"a {name}")


@pytest.mark.parametrize("text", [
    "orders-billing-2-17fe542e-3cbe-4091-921f-ba700e376c99",
    "consumer-payments-EU-1-17fe542e-3cbe-4091-921f-ba700e376c99",
    "/var/lib/kafka/data/captures/monday/describe.txt", "token-events  0  5  7",
    "org.apache.kafka.clients.consumer.RangeAssignor", "hdfs://namenode:8020/logs/2026/11/28",
    "EsTmRQKERQuDEJOExGbFOw", "key", "1234567890123456789012345678901234567890"])
def test_what_is_no_secret_is_shown(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize("part", ["passw", "A", "aA0", "secret.", "://", "-----BEGIN ", "=", " "])
def test_the_length_of_a_text_does_not_matter(part):
    """Secrets are looked for in the beginning only, of which a part is shown."""
    assert excerpt(part * 200_000) == excerpt(part * 20_000)


def test_settings_in_a_folder_of_outputs(tmp_path):
    """As people keep them: the group is read, and nothing of the rest is shown."""
    (tmp_path / "a.txt").write_text(TABLE, encoding="utf-8")
    for number, text in enumerate(FILES.values()):
        (tmp_path / f"s{number}.txt").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(commands, ["show", str(tmp_path), "--format", "json"])
    assert "orders-billing" in done.stdout
    assert not shows(done.stdout + done.stderr, [PASSWORD, *parts_of(KEY), *parts_of(PLAIN_KEY)])
