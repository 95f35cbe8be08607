"""How long locks last, where settings say it, too."""

from __future__ import annotations

from datetime import timedelta

from beat.config.settings import Settings
from beat.storage import lifetimes


def test_the_setting_lock_ttl_has_the_default_of_the_lifetimes() -> None:
    assert Settings.model_fields["lock_ttl"].default == timedelta(milliseconds=lifetimes.LOCK_MS)
