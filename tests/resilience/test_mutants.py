from __future__ import annotations

import pytest

from tests.resilience.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_finds_what_it_takes_out(mutant: Mutant) -> None:
    """`make mutants` takes minutes and is not run here: at least it must be able to run."""
    for file, what, instead in mutant.changes:
        assert (ROOT / file).read_text(encoding="utf-8").count(what) >= 1
        assert what != instead
    assert all((ROOT / test).exists() for test in mutant.tests if test.endswith(".py"))
