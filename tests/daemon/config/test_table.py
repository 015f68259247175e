"""The table of settings."""

from daemon.config import SETTINGS


def test_every_setting_has_a_default_that_its_parser_accepts() -> None:
    for setting in SETTINGS:
        assert setting.read("default", setting.default) == setting.default
        assert setting.about
