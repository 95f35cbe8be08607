"""What every test can rely on: no setting of the developer's own, and no haste."""

from __future__ import annotations

import os

import hypothesis

for name in list(os.environ):
    if name.startswith("BEAT_") or name in {"REDIS_URL", "RQ_REDIS_URL", "DJANGO_SETTINGS_MODULE", "NO_COLOR"}:
        del os.environ[name]

# A machine under load is slow, which is no fault of the code.
hypothesis.settings.register_profile("beat", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("beat")
