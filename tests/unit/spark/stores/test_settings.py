"""What is set of stores and catalogs: what goes together, what each library is told, and that secrets stay unseen."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.feed import Feed
from penstock.spark.lake.options import LakeOptions
from penstock.spark.source.options import SourceOptions
from penstock.spark.stores.settings import check_catalog, check_storage
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage, catalog_properties
from penstock.spark.values.dead_letters import DeadLetters

KEYS = {"access_key": "AKIA", "secret_key": "env:SHOP_SECRET"}
SECRET = "not-to-be-seen"
ARN = "arn:aws:iam::123456789012:role/lake"


@pytest.mark.parametrize(
    ("given", "location", "said"),
    [
        ({"acces_key": "x"}, "", "storage.acces_key means nothing; did you mean storage.access_key?"),
        ({"zzz": "x"}, "", "storage.zzz means nothing; there are endpoint, region, access_key"),
        ({"region": " "}, "", "storage.region is empty: leave it out"),
        ({"access_key": "x", "secret_key": SECRET}, "", "storage.secret_key is a secret and has to be elsewhere: give"),
        ({"account": "a", "account_key": SECRET}, "", "storage.account_key is a secret"),
        ({"access_key": "x", "secret_key": "env:"}, "", "storage.secret_key is a secret"),
        ({"access_key": "x"}, "", "storage.access_key needs storage.secret_key"),
        ({"secret_key": "env:X"}, "", "storage.secret_key needs storage.access_key"),
        ({"session_token": "env:X"}, "", "storage.session_token needs storage.access_key"),
        ({"tenant_id": "t", "client_id": "c"}, "", "storage.client_id needs storage.client_secret"),
        ({"anonymous": "yes"}, "", "storage.anonymous is 'yes': it is true or false"),
        ({"anonymous": "true", **KEYS}, "", "storage.anonymous goes without storage.secret_key"),
        ({"account": "a", "account_key": "env:A", "sas_token": "env:B"}, "", "storage.sas_token and storage.account_k"),
        ({"endpoint": "minio:9000"}, "", "storage.endpoint is no address such as https://"),
        ({"endpoint": "https://user:pw@minio"}, "", "storage.endpoint is no address"),
        ({"endpoint": "http://minio/bucket"}, "", "storage.endpoint is no address"),
        ({"account": "a"}, "s3://lake/t", "storage.account means nothing at s3://lake/t: S3 settings are endpoint"),
        (
            KEYS,
            "gs://lake/t",
            "storage.access_key means nothing at gs://lake/t: Google's settings are endpoint, anonym",
        ),
        ({"region": "x"}, "abfss://c@a.dfs.core.windows.net/t", "storage.region means nothing at abfss://"),
        ({"sas_token": "env:X"}, "abfss://lake/t", "storage.account is missing: abfss://lake/t does not name"),
    ],
)
def test_what_cannot_be_is_told_by_its_name(given: dict[str, str], location: str, said: str) -> None:
    with pytest.raises(BadOption) as wrong:
        check_storage(given, location)
    assert str(wrong.value).startswith(said)
    assert SECRET not in str(wrong.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tokn": "x"}, "catalog.tokn means nothing; did you mean catalog.token?"),
        ({"token": SECRET}, "catalog.token is a secret"),
        ({"credential": SECRET}, "catalog.credential is a secret"),
        ({"token": "env:A", "credential": "env:B"}, "catalog.token and catalog.credential are two ways"),
        ({"scope": "all"}, "catalog.scope needs catalog.credential"),
    ],
)
def test_catalogs_too(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption) as wrong:
        check_catalog(given)
    assert str(wrong.value).startswith(said)
    assert SECRET not in str(wrong.value)


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ({}, "s3://lake/t"),
        ({"endpoint": "https://s3.example.com", "region": "eu-1", **KEYS, "path_style": "true"}, "s3a://lake/t"),
        ({"role": ARN, "region": "eu-west-1"}, "s3://lake/t"),
        ({"endpoint": "env:WHERE"}, "s3://lake/t"),
        ({"anonymous": "true"}, "gs://lake/t"),
        ({"sas_token": "file:/run/sas"}, "abfss://c@shop.dfs.core.windows.net/t"),
        ({"account": "a", "tenant_id": "t", "client_id": "c", "client_secret": "env:X"}, "az://c/t"),
        (KEYS, "/a/disk"),
    ],
)
def test_what_can_be_is_taken(given: dict[str, str], location: str) -> None:
    check_storage(given, location)


def test_references_are_followed_and_nobody_is_shown_what_they_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    (tmp_path / "token").write_text(f"{SECRET}-2\n")
    storage = Storage.of({**KEYS, "session_token": f"file:{tmp_path}/token"})
    assert storage.settings == {"access_key": "AKIA", "secret_key": SECRET, "session_token": f"{SECRET}-2"}
    assert pickle.loads(pickle.dumps(storage)) == storage
    options = LakeOptions.of({"path": "s3://lake/t", **{f"storage.{name}": each for name, each in KEYS.items()}})
    letters = DeadLetters.of("table:s3://lake/d", {}, storage)
    assert SECRET not in f"{storage!r} {storage} {options!r} {letters!r}"
    assert LakeOptions.of({"path": "s3://lake/t"}).storage == {}
    assert Storage.of({}) is FROM_ENVIRONMENT


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("env:SHOP_NOWHERE", "storage.secret_key is in SHOP_NOWHERE, and no such variable is set where this runs"),
        ("file:/no/such/file", "storage.secret_key is in /no/such/file, which cannot be read here: No such file"),
        ("file:{}/empty", "which has nothing in it"),
        ("file:{}/binary", "which cannot be read here: it is no text"),
        ("file:{}/long", "which has too much in it"),
    ],
)
def test_a_reference_that_leads_nowhere_says_so(tmp_path: Path, value: str, said: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "long").write_text("x" * 100_000)
    with pytest.raises(BadOption) as wrong:
        Storage.of({"access_key": "x", "secret_key": value.format(tmp_path)})
    assert said in str(wrong.value)


def test_a_key_that_is_renewed_in_its_file_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "key"
    given = {"access_key": "x", "secret_key": f"file:{file}"}
    file.write_text("one")
    first = Storage.of(given)
    file.write_text("two")
    assert [first.settings["secret_key"], Storage.of(given).settings["secret_key"]] == ["one", "two"]


def test_s3_as_each_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    storage = Storage({"endpoint": "http://minio:9000", "access_key": "a", "secret_key": "s", "path_style": "true"})
    safe = {"AWS_CONDITIONAL_PUT": "etag", "AWS_S3_ALLOW_UNSAFE_RENAME": "false"}
    assert storage.for_delta("s3://lake/t") == safe | {
        "AWS_ENDPOINT_URL": "http://minio:9000",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }
    assert storage.for_iceberg() == {
        "s3.endpoint": "http://minio:9000",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "s",
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
    }
    role = Storage({"role": ARN, "region": "eu-west-1"})
    assert role.for_delta("s3a://lake/t") == safe | {"AWS_IAM_ROLE_ARN": ARN, "AWS_REGION": "eu-west-1"}
    assert role.for_iceberg() == {"s3.role-arn": ARN, "s3.region": "eu-west-1"}
    # Whatever the environment says, two writers of one version are told apart.
    assert FROM_ENVIRONMENT.for_delta("s3://lake/t") == safe
    assert FROM_ENVIRONMENT.for_delta("/a/disk") is None
    assert FROM_ENVIRONMENT.for_iceberg() == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    assert FROM_ENVIRONMENT.for_iceberg() == {"s3.endpoint": "http://elsewhere:1", "s3.region": "us-east-1"}


def test_azure_and_google_as_each_library_is_told() -> None:
    azure = Storage({"account": "shop", "account_key": "a2V5", "endpoint": "http://127.0.0.1:10000"})
    assert azure.for_delta("abfss://lake/t") == {
        "azure_storage_account_name": "shop",
        "azure_storage_account_key": "a2V5",
        "azure_endpoint": "http://127.0.0.1:10000",
        "allow_http": "true",
    }
    assert azure.for_iceberg() == {
        "adls.account-name": "shop",
        "adls.account-key": "a2V5",
        "adls.blob-storage-authority": "127.0.0.1:10000",
        "adls.dfs-storage-authority": "127.0.0.1:10000",
        "adls.blob-storage-scheme": "http",
        "adls.dfs-storage-scheme": "http",
    }
    files, path = azure.file_system("abfss://lake@shop.dfs.core.windows.net/a/b/")
    assert (files.type_name, path) == ("abfs", "lake/a/b")
    google = Storage({"anonymous": "true", "endpoint": "http://127.0.0.1:4443"})
    assert google.for_delta("gs://lake/t") == {
        "google_base_url": "http://127.0.0.1:4443",
        "google_skip_signature": "true",
    }
    files, path = google.file_system("gs://lake/a/b")
    assert (files.type_name, path) == ("gcs", "lake/a/b")
    assert google.for_iceberg()["gcs.service.host"] == "http://127.0.0.1:4443"


def test_a_catalog_is_told_how_to_log_in_and_how_files_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARIS", "id:secret")
    given = {
        "credential": "env:POLARIS",
        "scope": "PRINCIPAL_ROLE:ALL",
        "warehouse": "shop",
        "oauth2_server": "https://t",
    }
    told = catalog_properties(given, Storage({"region": "eu-west-1"}))
    assert told == {
        "credential": "id:secret",
        "scope": "PRINCIPAL_ROLE:ALL",
        "warehouse": "shop",
        "oauth2-server-uri": "https://t",
        "s3.region": "eu-west-1",
    }


def test_topics_take_the_settings_for_their_tables_and_feeds_leave_them_out() -> None:
    given = {"subscribe": "orders", "kafka.bootstrap.servers": "b:9092", "storage.endpoint": "http://minio:9000"}
    given |= {"catalog.token": "env:T", "value.format": "json", "value.schema": "n INT"}
    options = SourceOptions.of(given, streaming=True)
    assert (options.storage, options.catalog_settings) == ({"endpoint": "http://minio:9000"}, {"token": "env:T"})
    assert "minio" not in Feed.of_source(given).to_property()
    with pytest.raises(BadOption, match=r"storage\.secret_key is a secret"):
        SourceOptions.of({**given, "storage.access_key": "a", "storage.secret_key": SECRET}, streaming=True)
